"""Who killed a rank: only a kernel log can say that it was for memory, and only of the right process. Near misses beside."""

from collections.abc import Iterable, Mapping

import pytest

from pardbg.collectors.parsing.kernel_log import parse_kernel_log
from pardbg.watchdog.judge.judge import Circumstances, judge
from pardbg.watchdog.model.evidence import Evidence, JobDescription, LogTraceback, RankDescription
from pardbg.watchdog.model.log_event import LauncherFailure, LogSeen
from pardbg.watchdog.model.names import Cause, CollectorName, Confidence, Kind
from pardbg.watchdog.model.process import ChildProcess, ProcessSample
from pardbg.watchdog.model.report import Report
from pardbg.watchdog.store.view import EvidenceView
from tests.collectors.dumps import Entry, gloo, make_entry, outstanding
from tests.diagnosis.diagnosing import WHEN
from tests.diagnosis.test_hand_made import evidence_from

WAITING = {rank: [make_entry(0), outstanding(1)] for rank in (0, 2, 3)}
ENDED = {1: -9, 0: -15, 2: -15, 3: -15}
WORKER = "RuntimeError: DataLoader worker (pid 21) is killed by signal: Killed. "


def kill(pid: int, name: str = "python3", at: str = "2023-11-14T22:13:25+00:00") -> str:
    return f"{at} h1 kernel: Memory cgroup out of memory: Killed process {pid} ({name}) total-vm:9kB, anon-rss:8kB\n"


def report_of(
    text: str | None,
    *more: Evidence,
    codes: dict[int, int] = ENDED,
    has_pids: bool = True,
    host: str = "h1",
    rings: Mapping[int, Iterable[Entry]] | None = None,
) -> Report:
    ranks = tuple(
        RankDescription(
            rank=rank,
            host="h1",
            pid=100 + rank if has_pids else None,
            state="gone" if rank in codes else None,
            exit_code=codes.get(rank),
        )
        for rank in range(4)
    )
    job = JobDescription(job="j", world_size=4, ranks=ranks)
    evidence = [Evidence(source=CollectorName.HOST, rank=None, observation=job, origin="job.json"), *more]
    if text is not None:
        log = parse_kernel_log(text)
        evidence.append(
            Evidence(source=CollectorName.KERNEL_LOG, rank=None, host=host, observation=log, origin=f"kernel_{host}.log")
        )
    return judge(
        EvidenceView.of([*evidence, *evidence_from(WAITING if rings is None else rings)]), Circumstances(decided_at=WHEN)
    )


def told(report: Report) -> tuple[Kind | None, Cause | None, set[int | None]]:
    verdict = report.verdict
    return (verdict.kind, verdict.cause, {subject.rank for subject in verdict.culprits}) if verdict else (None, None, set())


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (kill(101), Cause.OOM_KILLED),
        (kill(101, "pt_main_thread"), Cause.OOM_KILLED),
        (kill(4321), Cause.SIGNAL),  # somebody else's process, or this one by a number of another namespace
        (kill(100), Cause.SIGNAL),  # the process of a rank that the launcher ended
        (kill(101, at="2023-11-14T09:00:00+00:00"), Cause.OOM_KILLED),  # nothing was seen of the rank since
        ("", Cause.SIGNAL),
        (None, Cause.SIGNAL),
    ],
)
def test_a_rank_that_got_sigkill_was_killed_for_memory_only_where_the_log_says_so(text: str | None, cause: Cause) -> None:
    assert told(report_of(text)) == (Kind.DEAD_RANK, cause, {1})


def test_the_line_of_the_log_is_evidence_and_makes_it_certain() -> None:
    report = report_of(kill(101))
    assert report.verdict is not None
    assert report.verdict.confidence is Confidence.ESTABLISHED
    assert "rank 1 was killed for memory by the kernel" in report.verdict.claim
    (line,) = [line for line in report.verdict.evidence if line.source is CollectorName.KERNEL_LOG]
    assert line.text == "its process was killed for memory: python3 (process 101) at 2023-11-14 22:13:25 UTC"


def test_a_death_that_may_be_anybodys_is_told_and_believed_of_nobody() -> None:
    report = report_of(kill(4321))
    assert report.verdict is not None
    lines = [line.text for line in report.verdict.evidence if line.source is CollectorName.KERNEL_LOG]
    assert lines == [
        "the kernel killed python3 (process 4321) at 2023-11-14 22:13:25 UTC for memory: not known to be a process of rank 1"
    ]


def test_a_number_on_another_host_is_another_process() -> None:
    assert told(report_of(kill(101), host="h2")) == (Kind.DEAD_RANK, Cause.SIGNAL, {1})


def test_a_rank_that_went_on_after_the_death_was_not_killed_then() -> None:
    rings = WAITING | {1: [make_entry(0, time_created_ns=1_700_000_100_000_000_000)]}
    assert told(report_of(kill(101), rings=rings)) == (Kind.DEAD_RANK, Cause.SIGNAL, {1})


def test_where_no_number_is_known_the_only_death_of_a_fitting_name_is_the_ranks() -> None:
    report = report_of(kill(4321), has_pids=False)
    assert told(report) == (Kind.DEAD_RANK, Cause.OOM_KILLED, {1})
    assert report.verdict is not None
    assert report.verdict.confidence is Confidence.SUPPORTED

    assert told(report_of(kill(4321) + kill(4322), has_pids=False))[1] is Cause.SIGNAL
    assert told(report_of(kill(4321, "postgres"), has_pids=False))[1] is Cause.SIGNAL


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (kill(77), Cause.OOM_KILLED),
        (kill(77, "kworker/u8:1"), Cause.SIGNAL),  # in a container the launcher counts its own way
        (kill(4321), Cause.SIGNAL),
    ],
)
def test_the_number_that_a_launcher_reports_counts_only_for_what_is_called_as_ranks_are(text: str, cause: Cause) -> None:
    ends = tuple(LauncherFailure(rank=rank, host="h1", code=code, pid=76 + rank) for rank, code in ENDED.items())
    launcher = Evidence(source=CollectorName.RANK_LOG, rank=None, observation=LogSeen(events=ends), origin="torchrun.log")
    report = report_of(text, launcher, codes={}, has_pids=False)
    assert told(report) == (Kind.DEAD_RANK, cause, {1})


def raised(rank: int, exception: str = WORKER) -> Evidence:
    found = LogTraceback(exception=exception, where=None)
    return Evidence(source=CollectorName.RANK_LOG, rank=rank, observation=found, origin=f"rank{rank}.log")


def test_a_loaders_worker_killed_for_memory_takes_its_rank_along() -> None:
    codes = {1: 1, 0: -15, 2: -15, 3: -15}
    report = report_of(kill(21, "pt_data_worker"), raised(1), codes=codes)
    assert told(report) == (Kind.DEAD_RANK, Cause.OOM_KILLED, {1})
    assert report.verdict is not None
    assert "rank 1 ended because its child pt_data_worker was killed for memory by the kernel" in report.verdict.claim

    assert told(report_of("", raised(1), codes=codes)) == (Kind.DEAD_RANK, Cause.EXCEPTION, {1})
    other = raised(1, "RuntimeError: shape")
    assert told(report_of(kill(21, "pt_data_worker"), other, codes=codes)) == (Kind.DEAD_RANK, Cause.EXCEPTION, {1})


def test_a_worker_whose_number_is_another_namespaces_is_known_only_if_no_other_rank_lost_one() -> None:
    codes = {1: 1, 0: -15, 2: -15, 3: -15}
    assert told(report_of(kill(5000, "pt_data_worker"), raised(1), codes=codes))[1] is Cause.OOM_KILLED
    both = {1: 1, 2: 1, 0: -15, 3: -15}
    assert told(report_of(kill(5000, "pt_data_worker"), raised(1), raised(2), codes=both))[1] is Cause.EXCEPTION


def test_the_dead_child_of_a_rank_that_lives_is_told_beside_where_it_stands() -> None:
    child = ChildProcess(pid=21, name="pt_data_worker", state="S")
    look = ProcessSample(pid=101, started_ticks=1, state="S", system_call="read", children=(child,))
    seen = Evidence(source=CollectorName.HOST, rank=1, host="h1", observation=look, origin="/proc/101")
    rings = {rank: [gloo(0, is_retired=True), gloo(1, is_retired=False)] for rank in (0, 2, 3)} | {
        1: [gloo(0, is_retired=True)]
    }
    report = report_of(kill(21, "pt_data_worker"), seen, codes={}, rings=rings)
    assert told(report)[2] == {1}
    assert report.verdict is not None
    lines = [line.text for line in report.verdict.evidence if line.source is CollectorName.KERNEL_LOG]
    assert lines == ["its child was killed for memory: pt_data_worker (process 21) at 2023-11-14 22:13:25 UTC"]
