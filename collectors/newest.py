"""Several dumps or stacks of one rank: samples stay, of two that claim one sample the newest stays."""

from collections.abc import Iterable

from msgspec.structs import replace

from pardbg.watchdog.model.evidence import Absence, Evidence, FlightRecording, Stack
from pardbg.watchdog.model.names import AbsenceReason
from pardbg.watchdog.model.process import ProcessSample


def keep_newest(evidence: Iterable[Evidence]) -> list[Evidence]:
    """Replaces the older of two dumps, stacks or looks of one process and sample by an absence that names the newer file.

    A ring dumped twice, or the leftover of an earlier attempt, must not stand beside the current state. Newer is what recorded
    the later operation, then what was written later.
    """
    kept: list[Evidence] = []
    place: dict[tuple[object, ...], int] = {}
    for item in evidence:
        observation = item.observation
        if item.rank is None or not isinstance(observation, FlightRecording | Stack | ProcessSample):
            kept.append(item)
            continue
        which = (observation.child, observation.is_native) if isinstance(observation, Stack) else ()
        key = (type(observation), item.rank, observation.sample, *which)
        rival = place.setdefault(key, len(kept))
        kept.append(item)
        if rival != len(kept) - 1:
            older, newer = sorted((rival, len(kept) - 1), key=lambda index: _age_key(kept[index]))
            kept[older] = _set_aside(kept[older], kept[newer])
            place[key] = newer
    return kept


def _age_key(item: Evidence) -> tuple[int, str, str]:
    created_ns = 0
    if isinstance(item.observation, FlightRecording):
        operations = item.observation.recording.operations
        created_ns = operations[-1].created_ns if operations else 0
    return created_ns, item.observed_at or "", item.origin


def _set_aside(older: Evidence, newer: Evidence) -> Evidence:
    detail = f"older than {newer.origin}, which is of the same rank: not used"
    return replace(older, observation=Absence(reason=AbsenceReason.DUPLICATE_RANK, detail=detail))
