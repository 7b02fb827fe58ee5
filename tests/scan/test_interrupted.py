"""Ctrl-C during a scan of many nodes: what is known so far is told, and the scan says that it was interrupted."""

from collections.abc import Collection, Iterator

import pytest

from pardbg.collectors.jobs.query import JobQuery
from pardbg.watchdog.bench.simulated_conversation import SimulatedConversation
from pardbg.watchdog.bench.simulated_nodes import SimulatedNodes
from pardbg.watchdog.model.names import AbsenceReason
from pardbg.watchdog.scan.nodes.nodes_site import NobodyAnsweredError, NodesSite
from pardbg.watchdog.scan.scan import Scanned, Settings, scan
from pardbg.watchdog.sim.recipe import Recipe
from pardbg.watchdog.transport.answer import Answer


class Interrupted:
    """A conversation in which Ctrl-C is pressed when so many answers have come."""

    def __init__(self, conversation: SimulatedConversation, after: int) -> None:
        self._conversation, self._left = conversation, after

    @property
    def nodes(self) -> tuple[str, ...]:
        """All of them."""
        return self._conversation.nodes

    def ask(self, data: bytes, until_s: float, nodes: Collection[str] | None = None) -> Iterator[Answer]:
        """As `Conversation.ask`."""
        for answer in self._conversation.ask(data, until_s, nodes):
            if not self._left:
                raise KeyboardInterrupt
            self._left -= 1
            yield answer


@pytest.fixture(scope="module")
def conversation() -> SimulatedConversation:
    """Four nodes of eight ranks."""
    return SimulatedConversation(SimulatedNodes(Recipe(fault="missing-participant", ranks=32, entries=40)))


def scan_until(conversation: SimulatedConversation, after: int) -> Scanned:
    site = NodesSite(Interrupted(conversation, after), JobQuery(job="sim"))
    scanned = scan(site, Settings(interval_s=0.1), lambda _: None)
    assert scanned.is_interrupted
    assert "interrupted before everything had been seen" in scanned.report.notes
    return scanned


def test_before_any_node_has_answered_nothing_is_known(conversation: SimulatedConversation) -> None:
    with pytest.raises(NobodyAnsweredError) as caught:
        scan_until(conversation, 0)
    assert caught.value.is_interrupted
    assert {absence.reason for absence in caught.value.absences.values()} == {AbsenceReason.SKIPPED}


def test_while_the_job_is_looked_for_the_ranks_that_were_found_are_told(conversation: SimulatedConversation) -> None:
    report = scan_until(conversation, 3).report
    assert "3 of 4 nodes answered, missing node" in report.notes[0]
    assert report.coverage.ranks_expected == 32
    assert "interrupted before it was looked at" in {unknown.detail for unknown in report.unknowns}


def test_nodes_that_have_only_said_which_ranks_they_have_are_told_from_silent_ones(conversation: SimulatedConversation) -> None:
    report = scan_until(conversation, 4).report
    assert "0 of 4 nodes answered what was asked last (4 of 4 the search for the job), missing" in report.notes[0]


def test_in_the_first_sample_what_has_come_of_it_counts(conversation: SimulatedConversation) -> None:
    report = scan_until(conversation, 4 + 2).report
    assert report.coverage.by_collector["flight-recorder"] == 16
    assert "2 of 4 nodes answered" in report.notes[0]


def test_in_the_second_sample_the_whole_first_one_counts(conversation: SimulatedConversation) -> None:
    report = scan_until(conversation, 4 + 4 + 1).report
    assert report.coverage.by_collector["flight-recorder"] == 32


def test_later_the_verdict_stands(conversation: SimulatedConversation) -> None:
    report = scan_until(conversation, 3 * 4 + 1).report
    assert report.verdict is not None
    assert report.verdict.kind.value == "missing-participant"
