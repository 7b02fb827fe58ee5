"""``/proc/PID/status``."""

import pytest

from pardbg.collectors.procfs.status import ProcessStatus, parse_status
from pardbg.watchdog.errors import ParseError


def test_effective_user_and_numbers_of_nested_namespaces() -> None:
    text = "Name:\ta: b\nUid:\t1000\t1001\t1002\t1003\nNSpid:\t4321\t7\n"
    assert parse_status(text) == ProcessStatus(uid=1001, namespace_pids=(4321, 7))


def test_old_kernels_do_not_tell_the_namespaces() -> None:
    assert parse_status("Uid:\t0\t0\t0\t0\n") == ProcessStatus(uid=0)


@pytest.mark.parametrize("text", ["", "Uid:\n", "Uid:\tx\ty\tz\tw\n", "Uid:\t0 0\nNSpid:\tone\n"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        parse_status(text)
