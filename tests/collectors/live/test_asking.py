"""The child that reads `/proc` may hang, die or talk nonsense."""

import os
import sys
import time

import pytest

from pardbg.collectors.live.asking import Asker
from pardbg.collectors.live.asking_protocol import Denied, Gone, GroupsRequest, LookRequest
from pardbg.collectors.live.host import look_at_processes
from pardbg.watchdog.model.evidence import Absence
from pardbg.watchdog.model.names import AbsenceReason
from tests.collectors.live.started import identify

LOOK = LookRequest(pid=os.getpid(), started_ticks=0)


def test_a_silent_child_is_given_up_after_the_deadline() -> None:
    started_s = time.monotonic()
    with Asker(deadline_s=0.2, command=("/bin/sleep", "60")) as asker:
        answers = [asker.ask(LOOK) for _ in range(20)]
        assert asker.pid is None
    assert answers == [None] * 20
    assert time.monotonic() - started_s < 5  # four children are lost, no more


@pytest.mark.parametrize("code", ["", "print('x' * 999)", "import os; os.write(1, bytes(8))", "import os; os._exit(3)"])
def test_a_child_that_dies_or_talks_nonsense_gives_no_answer(code: str) -> None:
    with Asker(deadline_s=2, command=(sys.executable, "-I", "-S", "-c", code)) as asker:
        assert asker.ask(LOOK) is None


def test_a_program_that_does_not_exist_gives_no_answer() -> None:
    with Asker(command=("/no/such/program",)) as asker:
        assert asker.ask(LOOK) is None


def test_leaving_ends_the_child() -> None:
    with Asker() as asker:
        assert isinstance(asker.ask(LOOK), Gone)
        pid = asker.pid
    assert pid is not None
    with pytest.raises(ProcessLookupError):
        os.getpgid(pid)


def test_groups_of_another_process_are_not_read() -> None:
    with Asker() as asker:
        answer = asker.ask(GroupsRequest(pid=os.getpid(), started_ticks=1, addresses=(1,)))
    assert isinstance(answer, Gone | Denied)


def test_no_answer_is_an_absence() -> None:
    (item,) = look_at_processes([identify(os.getpid())], 0, deadline_s=0.0)
    assert isinstance(item.observation, Absence)
    assert item.observation.reason is AbsenceReason.TIMED_OUT
