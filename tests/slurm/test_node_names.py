"""Folded node lists, in Slurm's order and within limits."""

import time

import pytest

from pardbg.collectors.jobs.slurm.node_names import MOST_NODES, expand_nodes
from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.host_names import fold_hosts

pytest.importorskip("ClusterShell")


def test_names_come_in_slurms_order_with_their_zeros() -> None:
    assert expand_nodes("z9,gpu-a[01-03,10]-x,b.c_d") == ("z9", "gpu-a01-x", "gpu-a02-x", "gpu-a03-x", "gpu-a10-x", "b.c_d")
    assert expand_nodes("r[1-2]n[9-10]") == ("r1n9", "r1n10", "r2n9", "r2n10")
    assert expand_nodes("") == ()


def test_each_name_comes_once() -> None:
    assert expand_nodes("n[1-2],n2,n1") == ("n1", "n2")


@pytest.mark.parametrize(
    "text", ["n[1-", "n[1-a]", "@all", "n1&n2", "n[1-3]!n2", "n]1[", "n[]", "n1 n2", "n[1-200001]", "a[1-999]b[1-999]"]
)
def test_what_is_no_list_or_too_long_a_one_is_refused_at_once(text: str) -> None:
    started_s = time.monotonic()
    with pytest.raises(ParseError):
        expand_nodes(text)
    assert time.monotonic() - started_s < 1


def test_folding_and_back() -> None:
    assert fold_hosts(["n17", "n41", "n42"]) == "n[17,41-42]"
    assert fold_hosts(["n1"]) == "n1"
    assert fold_hosts([]) == ""
    assert len(expand_nodes(f"n[1-{MOST_NODES // 20}]")) == MOST_NODES // 20
