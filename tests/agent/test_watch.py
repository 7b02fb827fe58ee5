"""What becomes of a job: signs of life and reports in, a state out. Time is made up."""

from collections.abc import Iterable

import pytest
from msgspec.structs import replace
from tests.agent.reports import report

from pardbg.collectors.vitals.signs import Signs
from pardbg.watchdog.agent.quiet import Limits
from pardbg.watchdog.agent.watch import Patience, Watch
from pardbg.watchdog.model.names import Kind, Status
from pardbg.watchdog.model.report import Report
from pardbg.watchdog.model.watched import JobState

HUNG = report(Status.HUNG, Kind.MISSING_PARTICIPANT)
SLOW = report(Status.SLOW, Kind.SLOW_PHASE)
STARTING = report(Status.HUNG, Kind.INIT_STUCK)
UNCLEAR = report(Status.HUNG, Kind.INSUFFICIENT_EVIDENCE)
HEALTHY = report(Status.HEALTHY, None)
UNDETERMINED = report(Status.UNDETERMINED, None)


class Job:
    """Four ranks under watch, second by second."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.watch = Watch(began_at_s=0.0, limits=Limits(), patience=Patience())
        self._switches = dict.fromkeys(range(4), 0)

    def live(self, seconds: int, *, silent: Iterable[int] = ()) -> JobState:
        """Goes on; everybody but these shows signs of life."""
        for _ in range(seconds):
            self.now_s += 1.0
            for rank in self._switches.keys() - set(silent):
                self._switches[rank] += 1
            seen = {rank: Signs(state="S", switches=number) for rank, number in self._switches.items()}
            self.watch.feed(seen, self.now_s)
        return self.watch.state

    def lose(self, rank: int) -> None:
        """The process of a rank ends."""
        del self._switches[rank]

    def judge(self, found: Report) -> JobState:
        """A scan comes to its end."""
        self.watch.judge(found, self.now_s)
        return self.watch.state

    @property
    def wants_scan(self) -> bool:
        """Whether a scan is due."""
        return self.watch.wants_scan(self.now_s)


@pytest.fixture
def hanging() -> Job:
    """A job that trained for five minutes, and of which three ranks wait for longer than they may."""
    job = Job()
    job.live(300)
    job.live(33, silent={0, 1, 3})
    return job


def test_job_that_lives_is_never_scanned() -> None:
    job = Job()

    assert job.live(3600) is JobState.HEALTHY
    assert not job.wants_scan


def test_silence_of_some_ranks_is_suspect_and_wants_a_scan(hanging: Job) -> None:
    assert hanging.watch.state is JobState.SUSPECT
    assert hanging.wants_scan


def test_one_look_is_no_suspicion() -> None:
    job = Job()
    job.live(300)

    assert job.live(31, silent={1}) is JobState.HEALTHY
    assert job.live(1, silent={1}) is JobState.SUSPECT


def test_only_a_report_makes_a_job_hung(hanging: Job) -> None:
    assert hanging.live(600, silent={0, 1, 3}) is JobState.SUSPECT
    assert hanging.judge(HUNG) is JobState.HUNG


def test_hung_job_is_scanned_again_after_minutes_only(hanging: Job) -> None:
    hanging.judge(HUNG)
    hanging.live(290, silent={0, 1, 3})
    assert not hanging.wants_scan
    hanging.live(20, silent={0, 1, 3})
    assert hanging.wants_scan


@pytest.mark.parametrize("found", [SLOW, HEALTHY])
def test_scan_that_finds_no_hang_buys_the_job_twice_as_much_time_each_time(hanging: Job, found: Report) -> None:
    waits: list[int] = []
    for _ in range(4):
        hanging.judge(found)
        waits.append(next(second for second in range(1, 2000) if hanging.live(1, silent={0, 1, 3}) and hanging.wants_scan))

    assert waits == pytest.approx([30, 60, 120, 240], abs=3)


@pytest.mark.parametrize("found", [UNDETERMINED, UNCLEAR])
def test_scan_that_cannot_tell_leaves_a_suspicion(hanging: Job, found: Report) -> None:
    assert hanging.judge(found) is JobState.SUSPECT
    assert not hanging.wants_scan


def test_suspicion_ends_with_a_sign_of_life(hanging: Job) -> None:
    assert hanging.live(1) is JobState.HEALTHY


def test_job_that_goes_on_has_recovered_and_is_healthy_a_minute_later(hanging: Job) -> None:
    hanging.judge(HUNG)

    assert hanging.live(5) is JobState.RECOVERED
    assert hanging.live(70) is JobState.HEALTHY


def test_last_stir_of_ranks_that_are_ended_is_no_recovery(hanging: Job) -> None:
    hanging.judge(HUNG)
    hanging.live(1)
    for rank in range(4):
        hanging.lose(rank)

    assert hanging.live(20) is JobState.HUNG


def test_rank_that_dies_and_the_others_that_wait_for_it_are_suspect() -> None:
    job = Job()
    job.live(100)
    job.lose(2)

    assert job.live(33, silent={0, 1, 3}) is JobState.SUSPECT


def test_ranks_that_are_not_there_yet_are_a_fault_only_after_minutes() -> None:
    job = Job()
    job.live(35, silent=range(4))
    assert job.judge(STARTING) is JobState.SUSPECT
    job.live(200, silent=range(4))
    assert job.judge(STARTING) is JobState.HUNG


def test_second_hang_is_found_like_the_first(hanging: Job) -> None:
    hanging.judge(HUNG)
    hanging.live(10)

    assert hanging.live(40, silent={2}) is JobState.SUSPECT
    assert hanging.wants_scan


def test_failed_job_with_ranks_left_hangs(hanging: Job) -> None:
    assert hanging.judge(replace(HUNG, status=Status.FAILED)) is JobState.HUNG


def test_hang_that_an_earlier_agent_has_found_lasts_until_the_ranks_are_seen_to_move() -> None:
    job = Job()
    job.live(1, silent=range(4))
    job.watch.resume(job.now_s)

    assert job.live(20, silent=range(4)) is JobState.HUNG
    assert job.wants_scan
    assert job.live(5) is JobState.RECOVERED


def test_new_silence_is_scanned_whatever_became_of_an_older_one(hanging: Job) -> None:
    hanging.judge(HEALTHY)
    hanging.live(3)
    hanging.live(100, silent=range(4))

    assert hanging.wants_scan


def test_word_of_another_agent_is_enough_for_one_scan() -> None:
    job = Job()
    job.live(100)
    job.watch.warn(job.now_s)
    assert job.live(1) is JobState.SUSPECT
    assert job.wants_scan
    assert job.judge(HEALTHY) is JobState.HEALTHY
    for _ in range(5):
        job.watch.warn(job.now_s)
        job.live(4)
        assert not job.wants_scan


def test_word_of_another_agent_that_says_no_more_is_forgotten() -> None:
    job = Job()
    job.watch.warn(job.now_s)

    assert job.live(30) is JobState.HEALTHY


def test_nodes_that_differ_in_software_are_no_hang(hanging: Job) -> None:
    assert hanging.judge(report(Status.HUNG, Kind.CONFIG_MISMATCH)) is JobState.SUSPECT
