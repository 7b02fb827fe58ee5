"""How the nodes of a job are reached."""

import os

import pytest

from pardbg.watchdog.errors import InputError
from pardbg.watchdog.scan.nodes.reaching import become_owner

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")


@as_root
def test_root_becomes_the_owner_of_a_job_and_nobody_else_does() -> None:
    assert become_owner(65534)[:2] == ("setpriv", "--reuid=65534")
    assert become_owner(0) == become_owner(None) == ()


@as_root
def test_owner_without_an_account_here_is_a_clear_error() -> None:
    with pytest.raises(InputError, match="uid 3999999, which has no account here"):
        become_owner(3999999)
