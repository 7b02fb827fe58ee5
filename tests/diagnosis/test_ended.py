"""Jobs that have ended, by what the probes of their ranks have left: who went first, who followed, and who cannot be blamed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import pytest

from pardbg.watchdog.judge.judge import Circumstances, judge
from pardbg.watchdog.model.evidence import Evidence, FlightRecording, JobDescription, RankDescription, SourceContext
from pardbg.watchdog.model.heartbeat import Ending, EndingKind, Heartbeat
from pardbg.watchdog.model.names import Cause, CollectorName, Confidence, JobSource, Kind, Status
from pardbg.watchdog.model.report import Report
from pardbg.watchdog.outputs.exit_code import exit_code
from pardbg.watchdog.store.view import EvidenceView
from tests.collectors.dumps import gloo
from tests.diagnosis.live_evidence import IN_LOOP, WHEN, Seen, frame, sleeps, waits
from tests.diagnosis.test_hand_made import evidence_from

NS_PER_S = 1_000_000_000
END_NS = 1_796_068_800 * NS_PER_S
PEER_LOST = "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:4242"
OWN = "ValueError: bad record"


def raised(text: str = OWN, at_s: float = 0.0) -> Ending:
    return Ending(
        kind=EndingKind.EXCEPTION,
        at_ns=END_NS + int(at_s * NS_PER_S),
        code=1,
        text=text,
        where="/home/mia/train.py:12 load",
        is_consequence=text is PEER_LOST,
    )


def returned(code: int = 0, at_s: float = 0.0) -> Ending:
    return Ending(kind=EndingKind.RETURNED, at_ns=END_NS + int(at_s * NS_PER_S), code=code)


def left_at_once(code: int, at_s: float = 0.0) -> Ending:
    return Ending(kind=EndingKind.AT_ONCE, at_ns=END_NS + int(at_s * NS_PER_S), code=code)


def signalled(number: int, at_s: float = 0.0) -> Ending:
    return Ending(kind=EndingKind.SIGNAL, at_ns=END_NS + int(at_s * NS_PER_S), code=-number)


VICTIM, TERMINATED, SEGMENTATION_FAULT = raised(PEER_LOST, 0.01), signalled(15, 0.05), signalled(11)


@dataclass(frozen=True)
class EndedJob:
    """Every rank has ended; ``endings`` holds None for a rank without a last word. ``seen``: where SIGTERM found ranks."""

    endings: Mapping[int, Ending | None]
    seen: Mapping[int, Seen] = field(default_factory=dict)
    oom_kills: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    codes: Mapping[int, int] = field(default_factory=dict)
    hosts: Mapping[int, str] = field(default_factory=dict)
    last_step_s: float | None = -60.0
    longest_step_s: float = 0.1
    rings: tuple[Evidence, ...] = ()

    def evidence(self) -> Iterable[Evidence]:
        """As a scan of an ended job gives it."""
        ranks = tuple(
            RankDescription(
                rank=rank, host=self.hosts.get(rank, "a"), pid=1000 + rank, state="gone", exit_code=self._code(rank, ending)
            )
            for rank, ending in self.endings.items()
        )
        job = JobDescription(job="j", world_size=len(self.endings), ranks=ranks, sampled_at=WHEN)
        yield Evidence(source=CollectorName.HOST, rank=None, observation=job, origin="/dev/shm/pardbg-0")  # noqa: S108
        for rank, ending in self.endings.items():
            before, after = self.oom_kills.get(rank, (None, None))
            step_ns = None if self.last_step_s is None else END_NS + int(self.last_step_s * NS_PER_S)
            beat = Heartbeat(
                step=41,
                step_ended_ns=step_ns,
                longest_step_s=self.longest_step_s,
                oom_kills=before,
                later_oom_kills=after,
                ending=ending,
            )
            yield Evidence(source=CollectorName.HOST, rank=rank, observation=beat, origin=f"{rank}/page")
        for rank, seen in self.seen.items():
            yield Evidence(source=CollectorName.STACKS, rank=rank, observation=seen.stack(0), origin=f"{rank}/stacks")
        yield from self.rings

    def _code(self, rank: int, ending: Ending | None) -> int | None:
        return self.codes.get(rank, ending.code if ending else None)

    def report(self) -> Report:
        """The judge's answer."""
        circumstances = Circumstances(decided_at=WHEN, source=JobSource.RUN, sampled_at=(WHEN,))
        return judge(EvidenceView.of(self.evidence()), circumstances)


def ended(*endings: Ending | None) -> EndedJob:
    """A job of these ranks."""
    return EndedJob(dict(enumerate(endings)))


def told(report: Report) -> tuple[Kind | None, Cause | None, set[int | None]]:
    """Kind, cause and culprits of the verdict."""
    verdict = report.verdict
    return (verdict.kind, verdict.cause, {s.rank for s in verdict.culprits}) if verdict else (None, None, set())


@pytest.mark.parametrize(
    ("end", "cause", "confidence"),
    [
        (raised(), Cause.EXCEPTION, Confidence.ESTABLISHED),
        (left_at_once(7), Cause.EXITED, Confidence.ESTABLISHED),
        (left_at_once(137), Cause.EXITED, Confidence.ESTABLISHED),
        (returned(3), Cause.EXITED, Confidence.ESTABLISHED),
        (returned(0), Cause.EXITED, Confidence.ESTABLISHED),
        (SEGMENTATION_FAULT, Cause.SIGNAL, Confidence.ESTABLISHED),
        (None, Cause.SIGNAL, Confidence.SUPPORTED),
    ],
)
@pytest.mark.parametrize("others", [(VICTIM, VICTIM, VICTIM), (TERMINATED,) * 3, (TERMINATED, VICTIM, TERMINATED)])
def test_rank_that_ended_on_its_own_is_to_blame_and_not_its_victims(
    end: Ending | None, cause: Cause, confidence: Confidence, others: tuple[Ending, Ending, Ending]
) -> None:
    report = ended(others[0], others[1], end, others[2]).report()

    assert told(report) == (Kind.DEAD_RANK, cause, {2})
    assert (report.status, exit_code(report)) == (Status.FAILED, 3)
    assert report.verdict is not None
    assert report.verdict.confidence is confidence
    assert report.verdict.victims == (0, 1, 3)


def test_claim_says_how_and_where() -> None:
    claims = {
        end: (report.verdict.claim if (report := ended(VICTIM, VICTIM, end, VICTIM).report()).verdict else "")
        for end in (raised(), left_at_once(7), None, SEGMENTATION_FAULT)
    }

    assert "rank 2 ended with ValueError: bad record" in claims[raised()]
    assert "rank 2 left with os._exit(7)" in claims[left_at_once(7)]
    assert "rank 2 left no last word after step 41 (only SIGKILL" in claims[None]
    assert "rank 2 was killed by SIGSEGV" in claims[SEGMENTATION_FAULT]


def test_job_in_which_every_rank_returned_zero_is_healthy() -> None:
    report = ended(returned(), returned(), returned(), returned(at_s=9)).report()

    assert (report.status, report.verdict, exit_code(report)) == (Status.HEALTHY, None, 0)
    assert "the job has ended; every rank returned with code 0" in report.notes


def test_nobody_is_blamed_if_nobody_left_a_word() -> None:
    report = ended(None, None, None, None).report()

    assert told(report) == (Kind.INSUFFICIENT_EVIDENCE, None, set())
    assert (report.status, exit_code(report)) == (Status.UNDETERMINED, 4)
    assert report.verdict is not None
    assert "killed at once, from outside" in report.verdict.claim


def test_known_exit_code_makes_a_silent_end_certain() -> None:
    report = EndedJob(dict(enumerate((VICTIM, VICTIM, None, VICTIM))), codes={2: -9}).report()

    assert told(report) == (Kind.DEAD_RANK, Cause.SIGNAL, {2})
    assert report.verdict is not None
    assert (report.verdict.confidence, "SIGKILL" in report.verdict.claim) == (Confidence.ESTABLISHED, True)


@pytest.mark.parametrize("codes", [{}, {2: -9}])
def test_rank_whose_cgroup_counts_a_kill_more_was_killed_for_memory(codes: dict[int, int]) -> None:
    report = EndedJob(dict(enumerate((VICTIM, VICTIM, None, VICTIM))), oom_kills={2: (1, 2)}, codes=codes).report()

    assert told(report) == (Kind.DEAD_RANK, Cause.OOM_KILLED, {2})
    assert report.verdict is not None
    assert "killed for memory" in report.verdict.claim
    assert report.verdict.confidence is Confidence.SUPPORTED


def test_same_count_of_kills_is_no_sign_of_memory() -> None:
    report = EndedJob(dict(enumerate((VICTIM, VICTIM, None, VICTIM))), oom_kills={2: (1, 1)}).report()

    assert told(report) == (Kind.DEAD_RANK, Cause.SIGNAL, {2})


def test_kill_in_the_cgroup_of_a_rank_that_raised_does_not_change_its_word() -> None:
    """A loader worker was killed for memory, and the rank says so."""
    report = EndedJob(dict(enumerate((VICTIM, VICTIM, raised(), VICTIM))), oom_kills={2: (0, 1)}).report()

    assert told(report) == (Kind.DEAD_RANK, Cause.EXCEPTION, {2})


def test_silent_rank_killed_for_memory_comes_before_an_exception_of_a_peer() -> None:
    report = EndedJob(dict(enumerate((raised("MyError: it broke", 1.0), VICTIM, None, VICTIM))), oom_kills={2: (0, 1)}).report()

    assert told(report) == (Kind.DEAD_RANK, Cause.OOM_KILLED, {2})


def test_exception_wins_over_the_silence_of_those_that_were_killed_after_it() -> None:
    report = ended(None, None, raised(), None).report()

    assert told(report) == (Kind.DEAD_RANK, Cause.EXCEPTION, {2})


def test_exceptions_at_one_time_are_all_to_blame_and_later_ones_are_not() -> None:
    together = ended(raised(at_s=0.2), raised(at_s=0.0), raised(at_s=0.9), raised(at_s=0.4)).report()
    later = ended(raised(at_s=1.2), VICTIM, raised(at_s=0.0), VICTIM).report()

    assert told(together)[2] == {0, 1, 2, 3}
    assert told(later)[2] == {2}


def test_clocks_of_several_hosts_are_compared_with_patience() -> None:
    endings = dict(enumerate((raised(at_s=4.0), VICTIM, raised(at_s=0.0), VICTIM)))

    assert told(EndedJob(endings, hosts={0: "b", 1: "b"}).report())[2] == {0, 2}
    assert told(EndedJob({**endings, 0: raised(at_s=6.0)}, hosts={0: "b", 1: "b"}).report())[2] == {2}


def test_exit_long_before_an_exception_went_first() -> None:
    report = ended(raised(at_s=3.0), VICTIM, left_at_once(7), VICTIM).report()

    assert told(report) == (Kind.DEAD_RANK, Cause.EXITED, {2})


def test_peers_that_choose_another_exit_code_after_the_first_are_victims() -> None:
    report = ended(returned(1, 0.01), returned(1, 0.02), left_at_once(7), returned(1, 0.01)).report()

    assert told(report) == (Kind.DEAD_RANK, Cause.EXITED, {2})


def test_ranks_that_choose_one_exit_code_at_one_time_are_candidates() -> None:
    report = ended(*(returned(1, at_s / 100) for at_s in range(4))).report()

    assert told(report) == (Kind.DEAD_RANK, Cause.EXITED, set())
    assert report.verdict is not None
    assert [subject.rank for subject in report.verdict.candidates] == [0, 1, 2, 3]
    assert (report.status, exit_code(report)) == (Status.FAILED, 3)


def test_one_silent_rank_among_those_that_chose_to_fail_went_first() -> None:
    report = ended(returned(1, 0.01), returned(1, 0.02), None, returned(1, 0.01)).report()

    assert told(report) == (Kind.DEAD_RANK, Cause.SIGNAL, {2})


def test_one_rank_that_chose_to_fail_among_silent_ones_went_first() -> None:
    report = ended(None, None, returned(1), None).report()

    assert told(report) == (Kind.DEAD_RANK, Cause.EXITED, {2})


def test_silent_rank_and_one_that_chose_to_fail_cannot_be_told_apart() -> None:
    report = ended(None, returned(1)).report()

    assert told(report)[2] == set()
    assert report.verdict is not None
    assert [subject.rank for subject in report.verdict.candidates] == [0, 1]


def test_rank_that_raised_with_work_outstanding_is_no_victim() -> None:
    """It had issued an operation before the exception took it away."""
    rings = {rank: [gloo(0, is_retired=True), gloo(1, is_retired=False)] for rank in range(4)}
    job = EndedJob(dict(enumerate((VICTIM, VICTIM, raised(), VICTIM))), rings=tuple(evidence_from(rings)))

    assert told(job.report()) == (Kind.DEAD_RANK, Cause.EXCEPTION, {2})


def test_last_dumps_name_the_operation_that_the_dead_rank_missed() -> None:
    """A broken connection retires operations of gloo: those of the victims look finished."""
    rings = {rank: [gloo(0, is_retired=True), gloo(1, is_retired=True)] for rank in (0, 1, 3)} | {2: [gloo(0, is_retired=True)]}
    job = EndedJob(dict(enumerate((VICTIM, VICTIM, raised(), VICTIM))), rings=tuple(evidence_from(rings)))
    verdict = job.report().verdict

    assert verdict is not None
    assert {subject.rank for subject in verdict.culprits} == {2}
    assert verdict.collective is not None
    assert verdict.collective.op == "all_reduce"


def asleep() -> Seen:
    """A rank on the host, at a line whose source was read: there was no process to look at."""
    source = SourceContext(calls=("time.sleep",))
    return replace(sleeps(), frames=(frame("load_batch", 12, source=source), *IN_LOOP))


def hung(*seen: Seen, **changes: object) -> EndedJob:
    """A job whose ranks were all ended by SIGTERM, and stood there."""
    return EndedJob(dict.fromkeys(range(len(seen)), signalled(15)), dict(enumerate(seen)), **changes)  # type: ignore[arg-type]


def test_hang_that_somebody_ended_is_told_from_the_stacks_at_its_end() -> None:
    report = hung(waits(), waits(), asleep(), waits()).report()

    assert told(report) == (Kind.MISSING_PARTICIPANT, Cause.SLEEPING, {2})
    assert (report.status, exit_code(report)) == (Status.FAILED, 3)
    assert report.verdict is not None
    assert report.verdict.confidence is Confidence.SUPPORTED
    assert report.verdict.victims == (0, 1, 3)


@pytest.mark.parametrize("changes", [{"last_step_s": -0.3}, {"last_step_s": -20.0, "longest_step_s": 10.0}])
def test_job_that_was_ended_while_it_trained_blames_nobody(changes: dict[str, float]) -> None:
    report = hung(waits(), waits(), asleep(), waits(), **changes).report()

    assert (report.status, report.verdict, exit_code(report)) == (Status.UNDETERMINED, None, 4)
    assert any("after their last step: too early to say that they hung" in note for note in report.notes)


def test_line_without_source_may_wait_in_native_code_and_blames_nobody() -> None:
    report = hung(waits(), waits(), sleeps(), waits()).report()

    assert told(report) == (Kind.INSUFFICIENT_EVIDENCE, None, set())


def test_job_that_was_ended_where_nobody_waited_blames_nobody() -> None:
    report = hung(asleep(), asleep(), asleep(), asleep()).report()

    assert told(report) == (Kind.INSUFFICIENT_EVIDENCE, None, set())
    assert report.status is Status.UNDETERMINED


def test_rank_that_raised_among_those_ended_in_a_collective_is_the_verdict() -> None:
    endings = {rank: signalled(15, 0.1) for rank in (0, 1, 3)} | {2: raised()}
    report = EndedJob(endings, {0: waits(), 1: waits(), 3: asleep()}).report()

    assert told(report) == (Kind.DEAD_RANK, Cause.EXCEPTION, {2})
    assert {subject.rank for finding in report.findings for subject in finding.culprits} == {2}
    assert report.verdict is not None
    assert report.verdict.collective is not None


def test_watchdogs_that_gave_up_do_not_blame_their_ranks() -> None:
    report = EndedJob(
        dict.fromkeys((0, 1, 3), signalled(6)) | {2: signalled(15)}, {0: waits(), 1: waits(), 2: asleep(), 3: waits()}
    ).report()

    assert told(report) == (Kind.MISSING_PARTICIPANT, Cause.SLEEPING, {2})


def test_young_wait_counts_where_ranks_ended_by_an_error_of_their_own() -> None:
    """A mismatch breaks the connections at once; one rank is aborted by it, and its launcher ends another."""
    sizes = {0: [[8, 8]], 2: [[1000]]}
    rings = {
        rank: [gloo(0, is_retired=True), gloo(1, is_retired=False, input_sizes=size, output_sizes=size)]
        for rank, size in sizes.items()
    }
    endings = {0: VICTIM, 1: signalled(6), 2: VICTIM, 3: signalled(15, 0.1)}
    verdict = EndedJob(endings, rings=tuple(evidence_from(rings)), last_step_s=-0.1).report().verdict

    assert verdict is not None
    assert (verdict.kind, verdict.mismatch, verdict.culprits) == (Kind.DESYNC, "size", ())
    assert {subject.rank for subject in verdict.candidates} >= {0, 2}


def test_rank_that_was_signalled_before_its_peers_lost_it_went_first() -> None:
    endings = {0: VICTIM, 1: VICTIM, 2: signalled(15, -0.05), 3: signalled(15, 0.1)}

    assert told(EndedJob(endings, last_step_s=-0.2).report()) == (Kind.DEAD_RANK, Cause.SIGNAL, {2})


def test_rank_that_was_interrupted_in_a_hang_is_told_from_one_that_trained() -> None:
    endings = {0: VICTIM, 1: VICTIM, 2: signalled(2, -0.05), 3: VICTIM}
    rings = {rank: [gloo(0, is_retired=True), gloo(1, is_retired=False)] for rank in (0, 1, 3)} | {
        2: [gloo(0, is_retired=True)]
    }
    job = EndedJob(endings, seen={2: asleep()}, rings=tuple(evidence_from(rings)), last_step_s=-60.0)

    assert told(job.report()) == (Kind.MISSING_PARTICIPANT, Cause.SLEEPING, {2})


def test_abort_of_a_rank_that_waits_is_that_of_its_watchdog() -> None:
    endings = {0: VICTIM, 1: signalled(6), 2: VICTIM, 3: VICTIM}
    report = EndedJob(endings, {1: waits()}).report()

    assert 1 not in {subject.rank for finding in report.findings for subject in finding.culprits}


def test_nobody_is_blamed_if_every_rank_was_killed_even_if_the_kernel_says_so() -> None:
    report = EndedJob(dict.fromkeys(range(4), signalled(9)), codes=dict.fromkeys(range(4), -9)).report()

    assert told(report) == (Kind.INSUFFICIENT_EVIDENCE, None, set())


def test_recording_counts_as_evidence_of_an_ended_rank() -> None:
    rings = {rank: [gloo(0, is_retired=True), gloo(1, is_retired=False)] for rank in (0, 1, 3)} | {
        2: [gloo(0, is_retired=True)]
    }
    job = EndedJob(dict.fromkeys(range(4), TERMINATED), rings=tuple(evidence_from(rings)))

    assert all(isinstance(item.observation, FlightRecording) for item in job.rings)
    assert job.report().status in {Status.FAILED, Status.UNDETERMINED}
