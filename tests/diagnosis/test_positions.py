"""One stack: where its rank is, and what holds it."""

import pytest

from pardbg.watchdog.model.evidence import Stack, StackFrame, Thread
from pardbg.watchdog.model.names import Cause
from pardbg.watchdog.positions.position import Place, read_position

LIB = "/opt/venv/lib/python3.11"
SITE = f"{LIB}/site-packages"
TRAIN = ("train", "/home/mia/train.py", 40)


def stack(*frames: tuple[str, str, int], **locals_: str) -> Stack:
    """A main thread, innermost frame first; ``locals_`` belong to the innermost frame."""
    made = tuple(
        StackFrame(name=name, filename=filename, line=line, locals=locals_ if index == 0 else {})
        for index, (name, filename, line) in enumerate(frames)
    )
    return Stack(pid=1, threads=(Thread(name="MainThread", is_active=False, owns_gil=False, frames=made),))


@pytest.mark.parametrize(
    ("cause", "frames"),
    [
        (
            Cause.CHECKPOINT_IO,
            [("_save", f"{SITE}/torch/serialization.py", 1312), ("save", f"{SITE}/torch/serialization.py", 966)],
        ),
        (Cause.CHECKPOINT_IO, [("write", f"{SITE}/torch/distributed/checkpoint/filesystem.py", 300)]),
        (
            Cause.DATA_LOADING,
            [("wait", f"{LIB}/threading.py", 320), ("_next_data", f"{SITE}/torch/utils/data/dataloader.py", 700)],
        ),
        (
            Cause.DATA_LOADING,
            [("__getitem__", "/home/mia/data.py", 9), ("fetch", f"{SITE}/torch/utils/data/_utils/fetch.py", 52)],
        ),
        (Cause.LOCK, [("wait", f"{LIB}/threading.py", 320), ("get", f"{LIB}/queue.py", 171)]),
        (Cause.NETWORK_IO, [("readinto", f"{LIB}/socket.py", 706), ("send", f"{SITE}/requests/adapters.py", 486)]),
        (Cause.COMPILE, [("compile_fx", f"{SITE}/torch/_inductor/compile_fx.py", 1100)]),
        (Cause.STORE_WAIT, [("_store_based_barrier", f"{SITE}/torch/distributed/distributed_c10d.py", 870)]),
        (Cause.DEBUGGER, [("cmdloop", f"{LIB}/pdb.py", 400)]),
        (Cause.FILE_IO, [("copyfile", f"{LIB}/shutil.py", 260)]),
        (Cause.USER_CODE, [("tokenize", "/home/mia/prepare.py", 12)]),
    ],
)
def test_cause_is_read_from_the_frames(cause: Cause, frames: list[tuple[str, str, int]]) -> None:
    position = read_position(stack(*frames, TRAIN))
    assert position is not None
    assert (position.place, position.cause) == (Place.HOST, cause)


@pytest.mark.parametrize(
    ("place", "frames"),
    [
        (Place.COLLECTIVE, [("all_reduce", f"{SITE}/torch/distributed/distributed_c10d.py", 3245)]),
        (
            Place.COLLECTIVE,
            [
                ("barrier", f"{SITE}/torch/distributed/distributed_c10d.py", 5356),
                ("wrapper", f"{SITE}/torch/distributed/c10d_logger.py", 83),
            ],
        ),
        (Place.FOREIGN, [("dispatch", f"{SITE}/deep_ep/buffer.py", 300)]),
        (Place.DEVICE, [("synchronize", f"{SITE}/torch/cuda/__init__.py", 1040)]),
    ],
)
def test_waiting_in_communication_is_not_being_on_the_host(place: Place, frames: list[tuple[str, str, int]]) -> None:
    position = read_position(stack(*frames, TRAIN))
    assert position is not None
    assert position.place is place


def test_peer_of_a_receive_comes_from_the_locals_of_its_frame() -> None:
    position = read_position(stack(("recv", f"{SITE}/torch/distributed/distributed_c10d.py", 2600), TRAIN, src="3"))
    assert position is not None
    assert (position.place, position.peer, position.is_sender) == (Place.P2P, 3, False)


def test_running_a_compiled_model_is_not_compiling() -> None:
    frames = [("forward", "/home/mia/model.py", 30), ("_fn", f"{SITE}/torch/_dynamo/eval_frame.py", 600), TRAIN]
    position = read_position(stack(*frames))
    assert position is not None
    assert position.cause is Cause.USER_CODE


def test_stack_without_frames_says_nothing() -> None:
    assert read_position(Stack(pid=1, threads=())) is None
