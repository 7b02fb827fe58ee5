"""What an exception is to the rank that raised it: its own, what others did to it, or neither for certain."""

import pytest

from pardbg.collectors.parsing.consequences import Standing, judge_exception

NCCL = "torch.distributed.DistBackendError: NCCL error in: x.cpp:7, {}, NCCL version 2.20.5\nncclError: it failed.\n"
LOST = [
    "RuntimeError: Connection reset by peer",
    "RuntimeError: Broken pipe",
    "RuntimeError: connect() timed out. Original timeout was 7000 ms.",
    "RuntimeError: Stop_waiting response is expected",
    "RuntimeError: Timed out initializing process group in store based barrier on rank: 5, for key: k:1 (worker_count=3)",
    "RuntimeError: Application timeout caused pair closure",
    "RuntimeError: Gloo connectFullMesh failed with [x/transport/tcp/pair.cc:9] no error",
    "RuntimeError: Rank 5 successfully reached monitoredBarrier, but received errors. Please check rank 0 logs.",
    "RuntimeError: [Rank 5] Caught collective operation timeout: WorkNCCL(SeqNum=5) ran for 30 milliseconds",
    NCCL.format("internal error") + "Last error:\nNet : Connection closed by remote peer n1<1>",
    NCCL.format("unhandled system error") + "Last error:\nProxy Call to rank 3 failed (Connect)",
    NCCL.format("unhandled system error") + "Last error:\nsocketStartConnect: Connect to 10.0.0.9<1> failed : aborted",
    "RuntimeError: OPS function error: HcclAllreduce, error code is 6\n[ERROR] x\nEI0006: Getting socket times out.",
    "horovod.common.exceptions.HorovodInternalError: Horovod has been shut down.",
    "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.",
    "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.",
    "vllm.v1.engine.exceptions.EngineDeadError: see the stack trace for the root cause",
    "TimeoutError: RPC call to run_step timed out.",
    "ucp.exceptions.UCXConnectionReset: by its endpoint",
    "mpi4py.MPI.Exception: MPI_ERR_PROC_FAILED: Process Failure",
    "jaxlib.xla_extension.XlaRuntimeError: UNAVAILABLE: tasks are unhealthy",
]
UNSURE = [
    NCCL.format("unhandled system error") + "It can be also caused by unexpected exit of a remote peer",
    "RuntimeError: disagreement between rank0 and rank5",
    NCCL.format("invalid usage") + "Last error:\nDuplicate GPU detected : rank 1 and rank 0 both on CUDA device 10",
    "TimeoutError: the step took too long",
    "mylib.WorkerTimeout: 7",
    "_queue.Empty",
]
OWN = [
    "RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x3 and 5x6)",
    "RuntimeError: CUDA error: peer access is not supported between these two devices",
    NCCL.format("unhandled cuda error") + "Last error:\nCuda failure 'out of memory'",
    NCCL.format("unhandled system error") + "Last error:\nError while creating /dev/shm/nccl-x: No space left on device",
    "RuntimeError: [enforce fail at x/gloo/transport/tcp/device.cc:83] ifa != nullptr. Unable to find address for: eth9",
    "torch.distributed.DistNetworkError: The server socket has failed to bind (errno: 98 - Address already in use).",
    "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='hub', port=443): Connection reset by peer",
    "RuntimeError: DataLoader worker (pid(s) 88) exited unexpectedly",
    "RuntimeError: DataLoader timed out after 30 seconds",
    "RuntimeError: Rank 3, iteration 12: Unexpected result nan",
    "AssertionError: timeout of the other ranks",
    "mylib.BadToken: 7",
]


@pytest.mark.parametrize(
    ("standing", "words"),
    [
        *((Standing.PEER_LOST, words) for words in LOST),
        *((Standing.UNSURE, words) for words in UNSURE),
        *((Standing.OWN, words) for words in OWN),
        (Standing.WRAPPER, "lightning.pytorch.utilities.exceptions.SIGTERMException"),
    ],
)
def test_an_exception_is_judged_by_what_it_says(standing: Standing, words: str) -> None:
    assert judge_exception(words) is standing


def test_what_a_library_of_communication_raises_without_saying_why_is_unsure() -> None:
    words = "RuntimeError: unexpected state"
    assert judge_exception(words, "/venv/torch/distributed/distributed_c10d.py") is Standing.UNSURE
    assert judge_exception(words, "/app/train.py") is Standing.OWN
    assert judge_exception("TypeError: bad dtype", "/venv/torch/distributed/distributed_c10d.py") is Standing.OWN
