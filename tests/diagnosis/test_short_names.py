"""py-spy's text shortens the names of files. It must tell the same as py-spy's JSON, which does not."""

import re

import pytest
from msgspec.structs import replace

from pardbg.collectors.parsing.stacks import parse_stacks
from pardbg.watchdog.judge.judge import Circumstances, judge
from pardbg.watchdog.model.evidence import Evidence, Stack
from pardbg.watchdog.model.names import Cause, Kind
from pardbg.watchdog.model.packages import INSTALLED
from pardbg.watchdog.model.recording import Frame
from pardbg.watchdog.model.short_names import holds_function, may_be_same_file, plain_name
from pardbg.watchdog.positions.position import Place
from pardbg.watchdog.positions.reading import read_position
from pardbg.watchdog.sim.recipe import Recipe
from pardbg.watchdog.sim.scenario import simulate
from pardbg.watchdog.store.view import EvidenceView
from tests.diagnosis.diagnosing import WHEN, evidence_of

SITE = "/opt/venv/lib/python3.11/site-packages"
_ABOVE = re.compile(r".*/(?:site-packages|lib/python3\.11|app)/")


@pytest.mark.parametrize(
    ("filename", "plain"),
    [
        (f"{SITE}/torch/utils/data/dataloader.py", "site-packages/torch/utils/data/dataloader.py"),
        ("/home/ray/anaconda3/lib/python3.11/site-packages/torch/_tensor.py", "site-packages/torch/_tensor.py"),
        ("/usr/lib/python3/dist-packages/yaml/loader.py", "site-packages/yaml/loader.py"),
        ("/usr/lib/python3.11/threading.py", "lib/python3/threading.py"),
        ("ray/_private/worker.py", "site-packages/ray/_private/worker.py"),
        ("threading.py", "lib/python3/threading.py"),
        ("multiprocessing/queues.py", "lib/python3/multiprocessing/queues.py"),
        ("worker.py", "worker.py"),
        ("my_ray/worker.py", "my_ray/worker.py"),
        ("/home/ray/train/worker.py", "/home/ray/train/worker.py"),
        ("<frozen os>", "<frozen os>"),
        ("<string>", "<string>"),
    ],
)
def test_place_of_a_library_is_left_out_however_long_its_name(filename: str, plain: str) -> None:
    assert plain_name(filename) == plain


@pytest.mark.parametrize(
    ("filename", "is_own"),
    [
        ("threading.py", False),
        ("torch/nn/modules/module.py", False),
        ("engine.py", True),
        ("my_torch/engine.py", True),
        ("torch.py", True),  # a program may be called so; the package is a folder
        ("aten/src/ATen/core/dispatch.cpp", False),
        ("/pytorch/torch/csrc/autograd/engine.cpp", False),
    ],
)
def test_frame_is_of_the_training_code_unless_it_is_of_a_library_or_native(filename: str, *, is_own: bool) -> None:
    assert Frame(name="run", filename=filename, line=7).is_own is is_own


@pytest.mark.parametrize(
    ("one", "other", "may_be"),
    [
        ("engine.py", "/root/code/engine.py", True),
        ("/root/code/engine.py", "engine.py", True),
        ("models/engine.py", "/root/code/models/engine.py", True),
        ("deepspeed/runtime/engine.py", f"{SITE}/deepspeed/runtime/engine.py", True),
        ("dali/pipeline.py", f"{SITE}/nvidia/dali/pipeline.py", True),  # a namespace: no package of its own
        ("engine.py", f"{SITE}/deepspeed/runtime/engine.py", False),  # whose short name begins with its package
        ("runtime/engine.py", f"{SITE}/deepspeed/runtime/engine.py", False),
        ("engine.py", "/root/code/my_engine.py", False),
        ("code/engine.py", "/root/other/engine.py", False),
        ("/a/engine.py", "/b/a/engine.py", False),
        ("<string>", "/root/<string>", False),
    ],
)
def test_short_name_may_be_any_longer_one_that_ends_with_it(one: str, other: str, *, may_be: bool) -> None:
    assert may_be_same_file(one, other) is may_be


def test_function_of_a_short_name_is_among_those_of_long_ones() -> None:
    known = {("/root/code/engine.py", "train_one_epoch"), (f"{SITE}/ray/_private/worker.py", "get")}

    assert holds_function(known, ("engine.py", "train_one_epoch"))
    assert not holds_function(known, ("engine.py", "evaluate"))
    assert not holds_function(known, ("worker.py", "get"))


def text_of(*frames: str) -> Stack:
    """What py-spy prints of a main thread with these frames."""
    return parse_stacks("\n".join(["Process 7: python train.py", 'Thread 7 (idle): "MainThread"', *frames]).encode())


@pytest.mark.parametrize(
    ("place", "cause", "frames"),
    [
        (Place.FOREIGN, None, ["get_objects (ray/_private/worker.py:920)", "fetch (rl.py:71)"]),
        (Place.FOREIGN, None, ["wait (threading.py:324)", "synchronize (horovod/torch/mpi_ops.py:1270)", "step (train.py:9)"]),
        (Place.HOST, Cause.USER_CODE, ["get_objects (worker.py:920)", "fetch (rl.py:71)"]),
        (Place.HOST, Cause.DATA_LOADING, ["get (queue.py:180)", "next_batch (ray/data/iterator.py:88)", "train (train.py:9)"]),
        (Place.HOST, Cause.LOCK, ["wait (threading.py:324)", "update (shared.py:29)"]),
        (Place.HOST, Cause.DATA_LOADING, ["run (dali/pipeline.py:1290)", "train (train.py:9)"]),
        (Place.COLLECTIVE, None, ["all_reduce (torch/distributed/distributed_c10d.py:2933)", "train (train.py:9)"]),
    ],
)
def test_text_of_py_spy_is_understood(place: Place, cause: Cause | None, frames: list[str]) -> None:
    position = read_position(text_of(*(f"    {frame}" for frame in frames)))

    assert position is not None
    assert (position.place, position.cause) == (place, cause)


def test_packages_of_the_tables_are_known_by_their_short_names() -> None:
    waits = "horovod mpi4py nixl ray ucp ucxx vllm sglang flashinfer cupy mscclpp"
    data = "datasets grain lhotse litdata petastorm streaming torchdata torchtitan webdataset wids dali ffcv"
    files = "torchsnapshot orbax dlrover composer lightning pytorch_lightning torchtune nvidia_resiliency_ext tensorboard"
    services = (
        "adlfs aim aiobotocore azure boto3 botocore clearml comet_ml dvclive fsspec gcsfs google grpc httpx huggingface_hub "
        "mlflow neptune requests s3fs s3torchconnector s3transfer sentry_sdk smart_open swanlab trackio urllib3 wandb zmq"
    )
    compilers = "cutlass deep_gemm deepspeed numba tilelang torch torch_tensorrt triton"

    assert {name for names in (waits, data, files, services, compilers) for name in names.split()} - INSTALLED == set()


def in_text(evidence: Evidence) -> Evidence:
    """The same stacks as py-spy's text has them."""
    if not isinstance(evidence.observation, Stack):
        return evidence
    lines = []
    for thread in evidence.observation.threads:
        lines.append(f'Thread 7 (idle): "{thread.name}"')
        lines += [f"    {frame.name} ({_ABOVE.sub('', frame.filename)}:{frame.line})" for frame in thread.frames]
    return replace(evidence, observation=parse_stacks("\n".join(lines).encode()))


@pytest.mark.parametrize(
    ("fault", "answer"),
    [
        ("missing-participant-lock", (Kind.MISSING_PARTICIPANT, Cause.LOCK)),
        ("foreign-communicator", (Kind.COMM_STUCK, Cause.FOREIGN_COMM)),
    ],
)
def test_verdict_is_that_of_the_long_names(fault: str, answer: tuple[Kind, Cause]) -> None:
    job = simulate(Recipe(fault=fault, ranks=8, entries=60))
    found = judge(EvidenceView.of(map(in_text, evidence_of(job))), Circumstances(decided_at=WHEN)).verdict

    assert found is not None
    assert (found.kind, found.cause) == answer
    assert tuple(culprit.rank for culprit in found.culprits) == job.truth.culprits
