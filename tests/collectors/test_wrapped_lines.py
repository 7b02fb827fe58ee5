"""Lines of watchdogs that a terminal has broken: whose they are and what they tell, and what is too broken to be read."""

import pytest
from msgspec.structs import replace

from pardbg.collectors.parsing.log_events import parse_log_events
from pardbg.watchdog.model.log_event import CollectiveTimeout, GroupName, GroupStatus, LogEvent

HEAD = "[rank3]:[E909 09:55:46.9 ProcessGroupNCCL.cpp:607] "
CAUGHT = f"{HEAD}[Rank 3] Watchdog caught collective operation timeout: "
WORK = "WorkNCCL(SeqNum=20, OpType=REDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600034 milliseconds"
WAIT = CollectiveTimeout(rank=3, group_rank=3, seq=20, op="reduce", numel_in=1, numel_out=1, timeout_ms=600_000, ran_ms=600_034)
WORLD = f"{HEAD}[PG 0 (default_pg) Rank 3] "
STATUS = GroupStatus(rank=3, group=GroupName(name="0", desc="default_pg"), group_rank=3, at_work=20, enqueued=22, completed=19)


def events(text: str) -> list[LogEvent]:
    return [replace(event, at_ns=None, text="") for found in parse_log_events(text) for event in found.seen.events]


@pytest.mark.parametrize(
    ("text", "event"),
    [
        (f"{CAUGHT}\n{WORK} before\n", WAIT),
        (f"{CAUGHT}{WORK[:50]}\n{WORK[50:]} before        \n", WAIT),
        (f"{WORLD}Timeout at NCCL work: 20, last enqueued \nNCCL work: 22, last completed NCCL work: 19.\n", STATUS),
        (f"{WORLD}Timeout at NCCL work: 20, last enqueued\nNCCL work: 22, last completed NCCL work: 19.\n", STATUS),
        (f"{WORLD}Exception detected\nby watchdog at work: 20, last enqueued work: 22, last completed work: 19.\n", STATUS),
    ],
)
def test_a_broken_line_is_read_as_a_whole(text: str, event: LogEvent) -> None:
    assert events(f"step 1\n{text}step 2\n") == [event]


@pytest.mark.parametrize(
    "text",
    [
        f"{CAUGHT}{WORK[:33]}[451/1919]\n{WORK[36:]}\n",  # another terminal's words stand in the operation's name
        f"{CAUGHT}\n[rank4]: x\n{WORK}\n",
        f"{CAUGHT}\nTraceback (most recent call last):\n",
    ],
)
def test_what_is_too_broken_tells_nothing(text: str) -> None:
    assert events(text) == []


def test_a_status_that_nobody_signs_stays_nobodys() -> None:
    (status,) = events("step 5\nlast enqueued work: 13, last completed work: 12\n")
    assert status.rank is None
