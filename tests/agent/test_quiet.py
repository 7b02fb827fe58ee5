"""How long a rank may be silent: by its habit, its phase, and the time after which the job would end itself."""

from pardbg.collectors.vitals.signs import Signs
from pardbg.watchdog.agent.quiet import Limits, Quiet

LIMITS = Limits()


def watched(*changes: tuple[float, int], until_s: float, phase: str = "", step: bool = False) -> Quiet:
    """A rank that was looked at every second, and whose counter changed at these times to these numbers."""
    quiet, number, pending = Quiet(0.0), 0, list(changes)
    now_s = 0.0
    while now_s <= until_s:
        while pending and pending[0][0] <= now_s:
            number = pending.pop(0)[1]
        quiet.feed(Signs(state="S", switches=0 if step else number, step=number if step else None, phase=phase), now_s)
        now_s += 1.0
    return quiet


def test_rank_that_sleeps_and_wakes_is_not_silent() -> None:
    quiet = watched(*((float(second), second) for second in range(100)), until_s=99)

    assert quiet.quiet_s == 0
    assert quiet.limit_s(LIMITS) == 30


def test_silence_counts_from_the_last_sign_of_life() -> None:
    assert watched((10, 1), until_s=52).quiet_s == 42


def test_long_pauses_of_late_allow_longer_ones() -> None:
    quiet = watched((10, 1), (50, 2), (51, 3), until_s=60)

    assert quiet.limit_s(LIMITS) == 120


def test_pause_at_the_start_is_forgotten_after_twenty_times_its_length() -> None:
    quiet = watched((1, 1), (16, 2), *((float(second), second) for second in range(17, 330)), until_s=329)

    assert quiet.limit_s(LIMITS) == 30


def test_nobody_may_be_silent_for_half_of_the_time_after_which_the_job_ends_itself() -> None:
    assert watched((1, 1), (290, 2), until_s=300).limit_s(LIMITS) == 300


def test_checkpoint_may_take_longer_than_a_step() -> None:
    assert watched((1, 1), until_s=10, phase="checkpoint").limit_s(LIMITS) == 120


def test_steps_count_for_more_than_a_thread_that_polls() -> None:
    quiet = Quiet(0.0)
    for second in range(60):
        quiet.feed(Signs(state="S", switches=second * 100, step=7), float(second))

    assert quiet.quiet_s == 59


def test_time_in_which_nobody_looked_is_no_silence() -> None:
    quiet = Quiet(0.0)
    for now_s in (0.0, 1.0, 2.0, 602.0, 603.0):  # the agent was stopped for ten minutes
        quiet.feed(Signs(state="S", switches=1), now_s)

    assert quiet.quiet_s < 10
