"""What lines of logs tell, in the forms in which they are found, and that no text can hurt the reader."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pardbg.collectors.parsing.log_events import parse_log_events
from pardbg.collectors.parsing.log_lines import lines_with, read_line
from pardbg.collectors.parsing.recognise import Content, parse_file, recognise
from pardbg.watchdog.model.log_event import (
    BarrierFailed,
    CollectiveTimeout,
    CommunicatorStep,
    DispatchTimeout,
    Fingerprint,
    FingerprintMismatch,
    GroupName,
    GroupStatus,
    LauncherFailure,
    LogEvent,
    LostSign,
    NcclProcess,
    NcclWarning,
    OwnFailure,
    PeerLost,
    StoreTimeout,
    TrainingDone,
    Trouble,
    WatchdogStuck,
    Way,
    WayChosen,
)
from tests.diagnosis.log_files import torchrun_report

WORK = "WorkNCCL(SeqNum=41, OpType=ALLREDUCE, NumelIn=8, NumelOut=16, Timeout(ms)=1800000) ran for 2954391 milliseconds"
TIMEOUT = f"Watchdog caught collective operation timeout: {WORK} before timing out."
DETECTED = "detected by watchdog at work sequence id: 1 PG status: last enqueued work: 5, last completed work: -1"
WAIT = CollectiveTimeout(seq=41, op="all_reduce", numel_in=8, numel_out=16, timeout_ms=1_800_000, ran_ms=2_954_391)
WORLD = GroupName(name="0", desc="default_pg")
NCCL = NcclProcess(host="node-a", pid=12, device=3)


def events(text: str) -> list[LogEvent]:
    """All events, without times and words."""
    return [replace(event, at_ns=None, text="") for found in parse_log_events(text) for event in found.seen.events]


@pytest.mark.parametrize(
    ("prefix", "wait"),
    [
        ("[E ProcessGroupNCCL.cpp:475] [Rank 5] ", replace(WAIT, group_rank=5)),
        ("[rank5]:[E1129 14:23:01.755 ProcessGroupNCCL.cpp:616] [Rank 1] ", replace(WAIT, rank=5, group_rank=1)),
        ("[rank9]:[E1129 14:23:01.7 x.cpp:1] [PG 1 Rank 5] ", replace(WAIT, rank=9, group_rank=5, group=GroupName(name="1"))),
        ("[E1129 14:23:01.7 x.cpp:1] [PG 0 (default_pg) Rank 5] ", replace(WAIT, rank=5, group_rank=5, group=WORLD)),
        ("[PG ID 0 PG GUID 0(default_pg) Rank 5] ", replace(WAIT, rank=5, group_rank=5, group=WORLD)),
        ("[PG ID 6 PG GUID 623(TP) Rank 13] ", replace(WAIT, group_rank=13, group=GroupName(name="623", desc="TP"))),
        ("\x1b[36m(Actor pid=123, ip=10.0.0.1)\x1b[0m [rank2]:[E x.cpp:1] [Rank 2] ", replace(WAIT, rank=2, group_rank=2)),
        ("loss 0.1:  50%|xxx   | 3/6 [rank2]:[E x.cpp:1] [Rank 2] ", replace(WAIT, rank=2, group_rank=2)),
        ("loss 0.1: 40%|x\r[rank2]:[E x.cpp:1] [Rank 2] ", replace(WAIT, rank=2, group_rank=2)),
    ],
)
def test_a_timeout_of_every_generation_keeps_global_and_group_ranks_apart(prefix: str, wait: CollectiveTimeout) -> None:
    assert events(f"step 1\n{prefix}{TIMEOUT}\nbye\n") == [wait]


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ("Timeout at NCCL work: 41, last enqueued NCCL work: 45, last completed NCCL work: 40.", (41, 45, 40)),
        ("Exception detected by watchdog at work: 41, last enqueued NCCL work: 45, last completed NCCL work: 40", (41, 45, 40)),
        (f" failure {DETECTED}", (1, 5, -1)),
    ],
)  # fmt: skip
def test_status_lines_of_three_generations(words: str, status: tuple[int, int, int]) -> None:
    at_work, enqueued, completed = status
    expected = GroupStatus(group=WORLD, group_rank=3, rank=3, at_work=at_work, enqueued=enqueued, completed=completed)
    assert events(f"[rank3]:[E x.cpp:1] [PG 0 (default_pg) Rank 3] {words}") == [expected]


@pytest.mark.parametrize(
    ("line", "event"),
    [
        ("[rank1]:[F x.cpp:1] Heartbeat monitor timed out! workMetaList_.size()=84", WatchdogStuck(rank=1, pending=84)),
        ("ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress", WatchdogStuck()),
        ("Observed flight recorder dump signal from another rank via TCPStore.", PeerLost(sign=LostSign.DUMP_SIGNAL)),
        ("Received a dump signal due to a collective timeout from  rank 34 and we", PeerLost(sign=LostSign.DUMP_SIGNAL)),
        ("sendBytes failed on SocketImpl(fd=67, addr=[a]:1, remote=[b]:2)", PeerLost(sign=LostSign.STORE)),
        ("[/x/pair.cc:553] Connection closed by peer [127.0.0.1]:1148. �", PeerLost(sign=LostSign.CONNECTION)),
        (
            "[/x/unbound_buffer.cc:78] Timed out waiting 25000ms for recv operation to complete",
            PeerLost(sign=LostSign.GLOO_TIMEOUT),
        ),
        ("wait timeout after 600000ms, keys: /default_pg/0//x", StoreTimeout(keys="/default_pg/0//x")),
        (
            "[1] is setting up NCCL communicator and retrieving ncclUniqueId from [0], but store->get('0') got error: x",
            StoreTimeout(keys="0", waits_for=0),
        ),
        ("[Rank 0]: Ranks 4, 5 failed to pass monitoredBarrier in 9 ms", BarrierFailed(absent=(4, 5), group_rank=0)),
        (
            "Rank 3 successfully reached monitoredBarrier but received errors while waiting for send/recv from rank 0",
            BarrierFailed(absent=(0,), group_rank=3, is_hearsay=True),
        ),
        ("[rank2]: CUDA error: an illegal memory access was encountered", OwnFailure(rank=2)),
        ("ran out of memory with exception: CUDA out of memory. Skipping batch", OwnFailure(is_survived=True)),
        ("DeepEP dispatch forwarder timeout (RDMA meta), channel: 8, RDMA: 0", DispatchTimeout()),
        ("{'train_runtime': 93.1, 'epoch': 3.0}", TrainingDone()),
        ("[rank1]: Training complete\n[rank2]: step 5 loss 1.0\n[rank1]: saved to ckpt", TrainingDone(rank=1)),
        ("fold 1/5: training complete\nfold 2/5 step 1 loss 2.2\n", TrainingDone(is_passed=True)),
        (
            "node-a:12:99 [3] NCCL INFO comm 0x7f rank 5 nranks 8 cudaDev 3 busId 1b000 commId 0xab - Init COMPLETE",
            CommunicatorStep(process=NCCL, id="0xab", comm_rank=5, size=8, bus_id="1b000", step="Init COMPLETE"),
        ),
        (
            "[2026-11-29 14:00:00] node-a:12:99 [3] shm.cc:87 NCCL WARN failed to extend /dev/shm/nccl-x: No space left",
            NcclWarning(process=NCCL, trouble=Trouble.SHM_FULL),
        ),
        (
            "node-a:12:99 [3] net.cc:1 NCCL WARN NET/IB : Got completion from peer 10.0.0.3<4000> with error 12, opcode 1",
            NcclWarning(process=NCCL, trouble=Trouble.COMPLETION_ERROR, peer="10.0.0.3", status=12),
        ),
        ("node-a:12:99 [3] NCCL INFO Channel 00 : 0[0] -> 1[1] via SHM/direct", WayChosen(process=NCCL, way=Way.SHM)),
    ],
)
def test_what_a_line_tells(line: str, event: LogEvent) -> None:
    assert events(line) == [event]


@pytest.mark.parametrize(
    "line",
    [
        "training completed epoch 3",
        "Training finished step 7",
        "the OOM killer may have killed it; potential root causes: (1) SIGKILL by OOM killer",
        "monitoredBarrier is slow",
        "node-a:12:99 [3] NCCL INFO Using network Socket",
        "node-a:12:99 [3] NCCL INFO NCCL_P2P_DISABLE set by environment to 0.",
        "memory: 12 GB, watchdog ok, last enqueued",
    ],
)
def test_what_a_line_does_not_tell(line: str) -> None:
    assert events(line) == []


def test_detail_mode_gives_both_fingerprints() -> None:
    text = (
        "Detected mismatch between collectives on ranks. Rank 0 is running collective: CollectiveFingerPrint(SequenceNumber=12,"
        " OpType=ALLREDUCE, TensorShape=[256, 4], TensorDtypes=BFloat16, TensorDeviceTypes=TensorOptions(dtype=float (x))),"
        " but Rank 1 is running collective: CollectiveFingerPrint(SequenceNumber=12, OpType=BARRIER).Collectives differ in x"
    )
    own = Fingerprint(group_rank=0, seq=12, op="all_reduce", shape="[256, 4]", dtype="BFloat16")
    assert events(text) == [FingerprintMismatch(own=own, other=Fingerprint(group_rank=1, seq=12, op="barrier"))]


def test_torchruns_report_gives_each_rank_its_code_and_marks_what_it_calls_the_cause() -> None:
    first, second = events("noise\n" + torchrun_report({1: -9, 0: -15}, root=0))
    assert first == LauncherFailure(rank=0, code=-15, host="n1", local_rank=0, pid=10_000, is_called_cause=True)
    assert second == LauncherFailure(rank=1, code=-9, host="n1", local_rank=1, pid=10_001)


def test_a_later_report_of_a_rank_counts_more() -> None:
    text = torchrun_report({0: 1}, root=0) + torchrun_report({0: -9}, root=0)
    (event,) = events(text)
    assert isinstance(event, LauncherFailure)
    assert event.code == -9


@pytest.mark.parametrize(
    ("line", "at_ns"),
    [
        ("[rank0]:[E0101 00:00:01.5 x.cpp:1] a", 1_500_000_000),
        ("E0101 00:01:00 123 api.py:1] a", 60_000_000_000),
        ("2026-01-02 00:00:00,250 [rank0]:[E0101 00:00:01.5 x.cpp:1] a", 86_400_250_000_000),  # one clock a log: the outer
        ("[rank0]:[E9999 00:00:01.5 x.cpp:1] a", None),
        ("no time 12:00:00", None),
    ],
)
def test_times_count_from_the_beginning_of_the_year(line: str, at_ns: int | None) -> None:
    assert read_line(line).at_ns == at_ns


def test_secrets_in_a_line_are_hidden() -> None:
    (found,) = parse_log_events("[rank0]: CUDA error: an illegal memory access was encountered token=abcdefgh12345678\n")
    assert found.seen.events[0].text.endswith("token=***")


def test_what_is_said_again_is_kept_once_and_more_than_is_kept_is_said() -> None:
    (found,) = parse_log_events(f"[Rank 5] {TIMEOUT}\n" * 500)
    assert (len(found.seen.events), found.seen.is_cut) == (1, False)

    read, is_cut = lines_with("a word\n" * 5, ({"wor": ("word",)},), most=3)
    assert (len(read), is_cut) == (3, True)


def test_a_log_of_many_ranks_goes_to_each_of_them() -> None:
    text = f"[rank0]: x\n[rank4]:[E x.cpp:1] [Rank 0] {TIMEOUT}\n[rank7]:[E x.cpp:1] [Rank 1] {TIMEOUT}\n"
    assert {found.rank for found in parse_file("job.log", text.encode()).found} == {4, 7}
    assert parse_file("job.log", text.encode()).signed_by == {0, 4, 7}


@pytest.mark.parametrize("text", [torchrun_report({0: 1}, root=0), f"[Rank 5] {TIMEOUT}\n", "a:1:2 [0] NCCL INFO Bootstrap\n"])
def test_such_text_is_a_log_whatever_its_name(text: str) -> None:
    assert recognise("captured", text.encode()) is Content.RANK_LOG


PIECES = st.sampled_from(
    [
        *(
            "[rank3]:",
            "[rank99999999999]:",
            "[E1129 14:23:01.7 x.cpp:1] ",
            "[PG 0 (default_pg) Rank 5] ",
            TIMEOUT,
            WORK,
            DETECTED,
        ),
        *(
            "\n",
            "\r",
            "\x1b[36m",
            ", ",
            "Ranks 1, 2 failed to pass monitoredBarrier",
            "exitcode  : -9 (pid: 1)",
            "with error 12",
        ),
        "Detected mismatch between collectives on ranks. ",
        "Rank 0 is running collective: CollectiveFingerPrint(SequenceNumber=12",
        *("a:1:2 [3] NCCL WARN ", "comm 0x1 rank 1 nranks 2 - Init START", "Got completion from peer "),
        torchrun_report({0: 1}, root=0),
    ]
)


@settings(max_examples=60, deadline=None)
@given(st.lists(PIECES | st.text(max_size=20), max_size=25))
def test_no_text_hurts_the_reader(pieces: list[str]) -> None:
    text = "".join(pieces)
    kept = [event for found in parse_log_events(text) for event in found.seen.events]
    assert len(kept) <= text.count("\n") + text.count("\r") + len(pieces) + 1
    parse_file("x.log", text.encode(errors="replace"))


@pytest.mark.parametrize(
    "text", ["Rank 1, " * 50_000, f"{WORK} " * 5_000, "(local_rank: " * 50_000, "[rank1]: last enqueued " * 20_000]
)
def test_a_hostile_text_costs_no_more_than_its_length(text: str) -> None:
    began = time.process_time()
    parse_log_events(text)
    assert time.process_time() - began < 3.0


def test_want_of_memory_after_which_the_program_trains_on_is_survived() -> None:
    oom = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    assert events(f"{oom}\nstep 9 loss 0.1\n") == [OwnFailure(is_survived=True)]
    assert events(f"{oom}\nfailed at step 9\n") == [OwnFailure()]
    assert events("RuntimeError: CUDA error: device-side assert triggered\nstep 9 loss 0.1\n") == [OwnFailure()]


def test_a_dump_signal_that_names_how_far_its_rank_had_come_is_a_status() -> None:
    line = "[rank5]:[E x.cpp:1] [PG ID 0 PG GUID 0(default_pg) Rank 5] Received a dump signal due to a timeout from  rank 0 "
    status = GroupStatus(group=WORLD, group_rank=5, rank=5, enqueued=40, completed=40)
    assert events(line + "and we. Last enqueued NCCL work: 40, last completed NCCL work: 40.") == [status]
