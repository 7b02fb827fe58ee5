"""One stack: where its rank is, and what holds it."""

import pytest

from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.evidence import SourceContext, Stack, StackFrame, Thread
from pardbg.watchdog.model.names import Cause
from pardbg.watchdog.model.process import ProcessSample
from pardbg.watchdog.positions.position import Place
from pardbg.watchdog.positions.reading import read_position
from pardbg.watchdog.positions.rules import cause_rules, parse_rules

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
        (Cause.LOCK, [("wait", "threading.py", 324), ("get", "queue.py", 171), ("log", "metrics.py", 9)]),  # as py-spy shortens
        (Cause.LOCK, [("acquire", "filelock/_api.py", 300), ("load", "ops.py", 12)]),
        (Cause.NETWORK_IO, [("read", "ssl.py", 1166), ("recv_into", "ssl.py", 1311), ("log", "metrics.py", 9)]),
        (Cause.USER_CODE, [("wait", "my_threading.py", 324), ("log", "metrics.py", 9)]),
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


def native(*names: str) -> Stack:
    """A main thread with native frames above a line of the training code."""
    frames = [StackFrame(name=name, filename="/opt/lib/libtorch_cpu.so", line=0) for name in names]
    made = (*frames, StackFrame(name=TRAIN[0], filename=TRAIN[1], line=TRAIN[2]))
    return Stack(pid=1, threads=(Thread(name="MainThread", is_active=False, owns_gil=False, frames=made),), is_native=True)


def blocked(call: str) -> ProcessSample:
    return ProcessSample(pid=1, started_ticks=1, state="S", system_call=call)


def test_native_frames_show_a_wait_that_python_does_not() -> None:
    waiting = native("pthread_cond_timedwait", "gloo::transport::tcp::UnboundBuffer::waitRecv", "c10d::Work::wait")
    position = read_position(stack(TRAIN), blocked("futex"), waiting)
    assert position is not None
    assert (position.place, position.op) == (Place.COLLECTIVE, "")


@pytest.mark.parametrize(
    ("cause", "names"),
    [
        (Cause.LOCK, ("__futex_abstimed_wait_common64", "PyThread_acquire_lock_timed", "lock_PyThread_acquire_lock")),
        (Cause.STORE_WAIT, ("poll", "c10d::TCPStore::doWait", "c10d::TCPStore::get")),
    ],
)
def test_native_frames_tell_a_lock_and_the_store_from_communication(cause: Cause, names: tuple[str, ...]) -> None:
    position = read_position(stack(TRAIN), blocked("futex"), native(*names))
    assert position is not None
    assert (position.place, position.cause) == (Place.HOST, cause)


def test_line_that_waits_for_work_is_a_wait_only_while_it_is_blocked() -> None:
    line = StackFrame(name="step", filename=TRAIN[1], line=40, source=SourceContext(calls=("work.wait",)))
    threads = (Thread(name="MainThread", is_active=False, owns_gil=False, frames=(line,)),)
    places = [
        position.place
        for call in ("futex", "read")
        if (position := read_position(Stack(pid=1, threads=threads), blocked(call)))
    ]
    assert places == [Place.COLLECTIVE, Place.HOST]


def test_lock_that_a_sleeping_thread_of_native_code_holds_is_the_interpreter_lock() -> None:
    main = Thread(name="MainThread", is_active=False, owns_gil=False, frames=stack(TRAIN).threads[0].frames)
    frames = (StackFrame(name="crunch", filename="/home/mia/native.py", line=7),)
    holder = Thread(name="worker", is_active=False, owns_gil=True, frames=frames)
    position = read_position(Stack(pid=1, threads=(main, holder)), blocked("futex"))
    assert position is not None
    assert position.cause is Cause.GIL_HELD
    assert "held by thread worker, at crunch (mia/native.py:7)" in position.words


def test_own_rules_come_first() -> None:
    rules = parse_rules(
        b'{"rules": [{"cause": "network-io", "words": "asking the feature store", "call": "^fs\\\\.", "advice": "-"}]}'
    )
    line = StackFrame(name="step", filename=TRAIN[1], line=40, source=SourceContext(calls=("fs.read",)))
    threads = (Thread(name="MainThread", is_active=False, owns_gil=False, frames=(line,)),)
    position = read_position(Stack(pid=1, threads=threads), blocked("read"), rules=(*rules, *cause_rules()))
    assert position is not None
    assert (position.cause, position.words) == (Cause.NETWORK_IO, "asking the feature store (read), step (mia/train.py:40)")


def test_rule_that_is_no_pattern_is_refused() -> None:
    with pytest.raises(ParseError, match="not a table of causes"):
        parse_rules(b'{"rules": [{"cause": "lock", "words": "-", "file": "(", "advice": "-"}]}')


@pytest.mark.parametrize(("call", "cause"), [("gc.collect", Cause.GC), ("my_gc.collect", Cause.USER_CODE)])
def test_line_that_collects_garbage_itself_is_known_by_its_call(call: str, cause: Cause) -> None:
    line = StackFrame(name="train", filename="/home/mia/train.py", line=40, source=SourceContext(calls=(call,)))
    main = Stack(pid=1, threads=(Thread(name="MainThread", is_active=True, owns_gil=False, frames=(line,)),))
    position = read_position(main, None, None, cause_rules())

    assert position is not None
    assert position.cause is cause


@pytest.mark.parametrize(
    ("cause", "frames"),
    [
        (Cause.DATA_LOADING, [("get", f"{LIB}/queue.py", 180), ("next", f"{SITE}/torchdata/nodes/map.py", 290)]),
        (
            Cause.DATA_LOADING,
            [("get", "/w/Megatron-LM/megatron/core/datasets/indexed_dataset.py", 381), ("get_batch", "/w/pretrain.py", 9)],
        ),
        (
            Cause.DATA_LOADING,
            [("get", f"{LIB}/queue.py", 180), ("__next__", f"{SITE}/grain/_src/python/dataset/dataset.py", 700)],
        ),
        (Cause.NETWORK_IO, [("wait", f"{LIB}/threading.py", 629), ("sync", f"{SITE}/fsspec/asyn.py", 92)]),
        (
            Cause.NETWORK_IO,
            [("wait", f"{LIB}/threading.py", 324), ("wait", f"{SITE}/wandb/sdk/mailbox/mailbox_handle.py", 117)],
        ),
        (Cause.NETWORK_IO, [("wait", f"{LIB}/threading.py", 324), ("_blocking", f"{SITE}/grpc/_channel.py", 1160)]),
        (Cause.NETWORK_IO, [("sleep", f"{SITE}/urllib3/util/retry.py", 376), ("send", f"{SITE}/requests/adapters.py", 667)]),
        (
            Cause.LOCK,
            [("acquire", f"{SITE}/filelock/_api.py", 344), ("hf_hub_download", f"{SITE}/huggingface_hub/file_download.py", 9)],
        ),
        (
            Cause.CHECKPOINT_IO,
            [
                ("result", f"{LIB}/concurrent/futures/_base.py", 451),
                ("maybe_wait_for_staging", f"{SITE}/torchtitan/components/checkpoint.py", 520),
            ],
        ),
        (
            Cause.CHECKPOINT_IO,
            [
                ("get", f"{LIB}/queue.py", 1),
                ("_wait_for_response", f"{SITE}/torch/distributed/checkpoint/_async_process_executor.py", 152),
            ],
        ),
        (
            Cause.COMPILE,
            [("run", f"{LIB}/subprocess.py", 550), ("_run_ninja_build", f"{SITE}/torch/utils/cpp_extension.py", 2100)],
        ),
        (
            Cause.COMPILE,
            [("wait", f"{SITE}/torch/utils/file_baton.py", 50), ("load", f"{SITE}/torch/utils/cpp_extension.py", 1309)],
        ),
        (Cause.STORE_WAIT, [("get_all", f"{SITE}/torch/distributed/elastic/utils/store.py", 75)]),
        (Cause.GC, [("GarbageCollection.collect", f"{SITE}/torchtitan/tools/utils.py", 61)]),
        (Cause.FILE_IO, [("_iterdir", f"{LIB}/glob.py", 164), ("glob", f"{LIB}/glob.py", 24)]),
        (Cause.FILE_IO, [("walk", "<frozen os>", 344), ("find_shards", "/home/mia/shards.py", 9)]),
        (Cause.FILE_IO, [("flush", f"{LIB}/logging/__init__.py", 1087), ("info", f"{LIB}/logging/__init__.py", 1489)]),
        (
            Cause.FILE_IO,
            [("join", f"{LIB}/queue.py", 90), ("flush", f"{SITE}/tensorboard/summary/writer/event_file_writer.py", 125)],
        ),
        (
            Cause.DEBUGGER,
            [
                ("prompt", f"{SITE}/prompt_toolkit/shortcuts/prompt.py", 1035),
                ("cmdloop", f"{SITE}/IPython/terminal/debugger.py", 169),
            ],
        ),
        # near misses
        (Cause.LOCK, [("get", f"{LIB}/queue.py", 180), ("next", "/home/mia/nodes/map.py", 290)]),
        (Cause.LOCK, [("wait", f"{LIB}/threading.py", 324), ("log", "/home/grpc/wandb_like.py", 9)]),
        (Cause.USER_CODE, [("run", f"{SITE}/triton/runtime/jit.py", 569), ("forward", "/home/mia/model.py", 3)]),  # a launch
        (Cause.USER_CODE, [("run", f"{SITE}/torch/_inductor/runtime/triton_heuristics.py", 1200)]),
        (Cause.USER_CODE, [("run", f"{SITE}/torchtitan/tools/utils.py", 56)]),
        (Cause.USER_CODE, [("join", "<frozen posixpath>", 90), ("name_of", "/home/mia/shards.py", 9)]),
    ],
)
def test_cause_is_read_from_what_waits_beneath_the_lock(cause: Cause, frames: list[tuple[str, str, int]]) -> None:
    position = read_position(stack(*frames, TRAIN))
    assert position is not None
    assert (position.place, position.cause) == (Place.HOST, cause)


def test_environment_below_a_folder_called_like_a_library_is_no_sign_of_it() -> None:
    below = "/home/ray/anaconda3/lib/python3.11/site-packages"
    position = read_position(stack(("__next__", f"{below}/torch/utils/data/dataloader.py", 708), TRAIN))
    assert position is not None
    assert (position.place, position.cause) == (Place.HOST, Cause.DATA_LOADING)


@pytest.mark.parametrize(
    ("frames", "is_timing"),
    [
        ([("do_bench", f"{SITE}/triton/testing.py", 149), ("_bench", f"{SITE}/triton/runtime/autotuner.py", 160)], True),
        ([("benchmark_gpu", f"{SITE}/torch/_inductor/runtime/benchmarking.py", 300)], True),
        ([("run", f"{SITE}/triton/runtime/autotuner.py", 189)], False),
        ([("clip_grad_norm_", "/home/mia/optim.py", 8)], False),
    ],
)
def test_wait_for_the_device_is_told_from_one_that_times_kernels(
    frames: list[tuple[str, str, int]], *, is_timing: bool
) -> None:
    position = read_position(stack(("synchronize", f"{SITE}/torch/cuda/__init__.py", 1040), *frames, TRAIN))
    assert position is not None
    assert (position.place, position.is_timing) == (Place.DEVICE, is_timing)
    assert position.cause is (Cause.COMPILE if is_timing else None)
