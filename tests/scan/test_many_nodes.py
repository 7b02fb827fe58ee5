"""A scan of hundreds of nodes, some of which are dead, slow or talk rubbish."""

import time

import pytest

from pardbg.collectors.jobs.query import JobQuery
from pardbg.watchdog.bench.simulated_conversation import Illness, SimulatedConversation
from pardbg.watchdog.bench.simulated_nodes import SimulatedNodes
from pardbg.watchdog.model.names import AbsenceReason
from pardbg.watchdog.model.report import Report
from pardbg.watchdog.scan.nodes.nodes_site import NodesSite, Times
from pardbg.watchdog.scan.scan import Settings, scan
from pardbg.watchdog.sim.recipe import Recipe

NODES, ILL_NODES = 256, 13  # 5 %
LOOK_S = 1.0


@pytest.fixture(scope="module")
def simulated() -> SimulatedNodes:
    return SimulatedNodes(Recipe(fault="missing-participant", ranks=NODES * 8, entries=40))


@pytest.fixture(scope="module")
def conversation(simulated: SimulatedNodes) -> SimulatedConversation:
    return SimulatedConversation(simulated)


def scan_nodes(conversation: SimulatedConversation) -> tuple[Report, float]:
    site = NodesSite(conversation, JobQuery(job="sim"), times=Times(find_s=LOOK_S, look_s=LOOK_S))
    began_s = time.monotonic()
    scanned = scan(site, Settings(interval_s=0.1), lambda _: None)
    return scanned.report, time.monotonic() - began_s


def ill_nodes(simulated: SimulatedNodes, illness: Illness) -> dict[str, Illness]:
    """Every 19th node, but that of the culprit."""
    (culprit,) = simulated.truth.culprits
    numbers = [number for number in range(0, NODES, 19) if number != culprit // 8][:ILL_NODES]
    return {f"node{number:03d}": illness for number in numbers}


@pytest.mark.parametrize("illness", Illness)
def test_ill_nodes_change_no_verdict_and_are_named(
    simulated: SimulatedNodes, conversation: SimulatedConversation, illness: Illness
) -> None:
    ill = ill_nodes(simulated, illness)
    report, took_s = scan_nodes(conversation.with_ill(ill))
    assert report.verdict is not None
    assert report.verdict.kind is simulated.truth.kind
    assert tuple(subject.rank for subject in report.verdict.culprits) == simulated.truth.culprits
    assert f"{NODES - len(ill)} of {NODES} nodes answered, missing node[" in report.notes[0]
    missing = {unknown.host for unknown in report.unknowns if unknown.host in ill}
    assert missing == set(ill)
    assert took_s < 60


def test_node_that_never_answers_is_waited_for_once(simulated: SimulatedNodes, conversation: SimulatedConversation) -> None:
    slow = next(iter(ill_nodes(simulated, Illness.SLOW)))
    with_one_slow = conversation.with_ill({slow: Illness.SLOW})
    scan_nodes(with_one_slow)
    assert with_one_slow.asked[slow] == 1
    assert min(count for node, count in with_one_slow.asked.items() if node != slow) > 2


def test_healthy_nodes_leave_no_note_and_no_unknown_nor_do_those_without_a_rank(conversation: SimulatedConversation) -> None:
    with_idle = conversation.with_idle("node900", "node901")
    report, _ = scan_nodes(with_idle)
    assert report.verdict is not None
    assert not any("answered" in note for note in report.notes)
    assert [unknown for unknown in report.unknowns if unknown.reason is not AbsenceReason.SKIPPED] == []
    assert (with_idle.asked["node900"], with_idle.asked["node901"]) == (1, 1)  # for the job, and then no more
