"""A job's evidence as a scan of many nodes has it: digests, and the entries that it then asks for."""

from collections.abc import Sequence

from msgspec.structs import replace

from pardbg.collectors.cutting import cut
from pardbg.collectors.digesting import digest
from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.model.evidence import Evidence, FlightRecording
from pardbg.watchdog.model.recording import Recording
from pardbg.watchdog.model.wanted import Cut
from pardbg.watchdog.scan.entries import add_entries, choose_entries
from pardbg.watchdog.store.view import EvidenceView


def digest_evidence(evidence: Sequence[Evidence]) -> list[Evidence]:
    """The evidence with digests in place of rings."""
    return [
        replace(item, observation=replace(item.observation, recording=digest(item.observation.recording)))
        if isinstance(item.observation, FlightRecording)
        else item
        for item in evidence
    ]


def through_digests(evidence: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """The evidence as it reaches a judge over digests, with what was asked after them."""
    rings: dict[int | None, Recording] = {
        item.rank: item.observation.recording for item in evidence if isinstance(item.observation, FlightRecording)
    }
    digests = digest_evidence(evidence)
    question = choose_entries(Situation.of(EvidenceView.of(digests)))
    cuts = [Cut(wanted=wanted, recording=cut(rings[wanted.rank], wanted)) for wanted in question.wanted]
    return add_entries(digests, question, cuts, 0)
