"""Why Slurm ended a job, by what it wrote into the job's output."""

import pytest

from pardbg.collectors.parsing.slurm_notices import tell_ending
from pardbg.watchdog.model.names import Cause

CANCELLED = "slurmstepd: error: *** JOB 992 ON n1 CANCELLED AT 2026-11-30T10:00:00{why} ***\n"


@pytest.mark.parametrize(
    ("text", "cause", "hosts"),
    [
        (CANCELLED.format(why=" DUE TO PREEMPTION"), Cause.PREEMPTED, ()),
        ("srun: error: Node failure on n17\n" + CANCELLED.format(why=" DUE TO NODE FAILURE"), Cause.NODE_LOST, ("n17",)),
        (CANCELLED.format(why=" DUE TO TIME LIMIT"), None, ()),
    ],
)
def test_the_last_notice_that_gives_a_reason_tells_the_end(text: str, cause: Cause | None, hosts: tuple[str, ...]) -> None:
    ending = tell_ending("step 50\n" + text + "srun: Job step aborted\n")
    assert ending is not None
    assert (ending.cause, ending.hosts, ending.is_hearsay, ending.is_from_outside) == (cause, hosts, True, True)


@pytest.mark.parametrize(
    "text",
    [
        CANCELLED.format(why=""),  # by whom, and why, it does not say
        CANCELLED.format(why=" DUE TO PREEMPTION") + "step 51 loss 0.1\n",  # put back, and running again
        CANCELLED.format(why=" DUE TO PREEMPTION") + "I1130 [default] Starting worker group\n",
        "the docs say: DUE TO PREEMPTION\n",
    ],
)
def test_no_other_notice_is_an_end(text: str) -> None:
    assert tell_ending(text) is None
