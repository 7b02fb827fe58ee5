"""The source lines of the simulated training program: where it issues operations, waits, and gets lost."""

from functools import cache

from pardbg.watchdog.model.recording import Frame
from pardbg.watchdog.sim.instruction import CallSite, Op

_TORCH = "/opt/venv/lib/python3.11/site-packages/torch"
_APP = "/app"
BASE_FRAMES = (
    Frame(name="train_step", filename=f"{_APP}/train.py", line=188),
    Frame(name="train", filename=f"{_APP}/train.py", line=241),
    Frame(name="main", filename=f"{_APP}/train.py", line=297),
    Frame(name="<module>", filename=f"{_APP}/train.py", line=302),
)
_C10D_LINES = {
    Op.ALL_REDUCE: ("all_reduce", 3081),
    Op.ALL_GATHER: ("all_gather_into_tensor", 4061),
    Op.REDUCE_SCATTER: ("reduce_scatter_tensor", 4525),
    Op.ALL_TO_ALL: ("all_to_all_single", 4672),
    Op.BROADCAST: ("broadcast", 2981),
    Op.BARRIER: ("barrier", 5001),
    Op.SEND: ("send", 2621),
    Op.RECV: ("recv", 2661),
}
# Where the model issues what, by the prefix of the launch's label.
_PLACES = {
    "init": ("initialize_distributed", "megatron/training/initialize.py", 312),
    "data": ("broadcast_data", "megatron/core/tensor_parallel/data.py", 96),
    "data.root": ("broadcast_data", "megatron/core/tensor_parallel/data.py", 91),
    "gather": ("_gather_along_first_dim", "megatron/core/tensor_parallel/mappings.py", 131),
    "scatter": ("_reduce_scatter_along_first_dim", "megatron/core/tensor_parallel/mappings.py", 174),
    "dispatch": ("token_permutation", "megatron/core/transformer/moe/token_dispatcher.py", 511),
    "combine": ("token_unpermutation", "megatron/core/transformer/moe/token_dispatcher.py", 590),
    "pipe": ("_communicate", "megatron/core/pipeline_parallel/p2p_communication.py", 294),
    "grads": ("start_grad_sync", "megatron/core/distributed/param_and_grad_buffer.py", 301),
    "loss": ("average_losses_across_data_parallel_group", "megatron/training/utils.py", 83),
    "end": ("end_of_step", "train.py", 219),
    "extra": ("hidden_save", "checkpointing.py", 57),
    "metrics.0": ("log_throughput", "metrics.py", 24),
    "metrics.1": ("log_grad_norm", "metrics.py", 31),
    "metrics.2": ("log_expert_load", "metrics.py", 40),
    "metrics.3": ("log_barrier", "metrics.py", 47),
    "exchange": ("exchange_halo", "context_parallel.py", 66),
    "generate": ("execute_model", "serve/worker.py", 128),
}
_LOST = {
    "checkpoint": (
        ("_write_record", f"{_TORCH}/serialization.py", 944),
        ("_save", f"{_TORCH}/serialization.py", 1204),
        ("save", f"{_TORCH}/serialization.py", 966),
        ("save_checkpoint", f"{_APP}/checkpointing.py", 44),
    ),
    "data-loader": (
        ("wait", "/usr/lib/python3.11/threading.py", 331),
        ("get", "/usr/lib/python3.11/queue.py", 180),
        ("_try_get_data", f"{_TORCH}/utils/data/dataloader.py", 1275),
        ("_next_data", f"{_TORCH}/utils/data/dataloader.py", 1448),
        ("__next__", f"{_TORCH}/utils/data/dataloader.py", 733),
        ("next_batch", f"{_APP}/train.py", 140),
    ),
    "lock": (
        ("__enter__", "/usr/lib/python3.11/threading.py", 243),
        ("acquire_cache", f"{_APP}/feature_cache.py", 71),
        ("lookup", f"{_APP}/feature_cache.py", 90),
    ),
    "scheduler": (
        ("wait_for_request", f"{_APP}/serve/scheduler.py", 83),
        ("schedule", f"{_APP}/serve/scheduler.py", 47),
    ),
    "foreign": (
        ("low_latency_dispatch", "/opt/venv/lib/python3.11/site-packages/deep_ep/buffer.py", 553),
        ("dispatch", f"{_APP}/megatron/core/transformer/moe/fused_a2a.py", 91),
    ),
    "index": (
        ("_build_document_index", f"{_APP}/megatron/core/datasets/gpt_dataset.py", 602),
        ("build_dataset", f"{_APP}/megatron/core/datasets/gpt_dataset.py", 233),
    ),
    "host": (("evaluate_hook", f"{_APP}/hooks.py", 19),),
    "synchronize": (
        ("synchronize", f"{_TORCH}/cuda/__init__.py", 1083),
        ("wait_for_loss", f"{_APP}/train.py", 203),
    ),
}


def operation_frames(op: Op) -> tuple[Frame, ...]:
    """PyTorch's own frames at the top of a call of ``op``, innermost first."""
    name, line = _C10D_LINES[op]
    return (
        Frame(name=name, filename=f"{_TORCH}/distributed/distributed_c10d.py", line=line),
        Frame(name="wrapper", filename=f"{_TORCH}/distributed/c10d_logger.py", line=81),
    )


@cache
def call_site(place: str, op: Op) -> CallSite:
    """Where the program issues ``op``; ``place`` is a key of the table above."""
    function, path, line = _PLACES[place]
    frames = (
        *operation_frames(op),
        Frame(name=function, filename=f"{_APP}/{path}", line=line),
        *BASE_FRAMES,
    )
    return CallSite(frames)


@cache
def host_site(what: str) -> CallSite:
    """Where a host stands that is not issuing operations: blocked for good, or in `synchronize`."""
    frames = tuple(Frame(name=name, filename=filename, line=line) for name, filename, line in _LOST[what])
    return CallSite((*frames, *BASE_FRAMES))
