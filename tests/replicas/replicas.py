"""What probes say of replicas, made by hand."""

from collections.abc import Iterator, Mapping, Sequence

from pardbg.collectors.parsing.flight_recorder import parse_flight_recorder
from pardbg.watchdog.correlators.replica_divergence import correlate
from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.model.evidence import Evidence, FlightRecording, JobDescription, RankDescription
from pardbg.watchdog.model.heartbeat import Heartbeat
from pardbg.watchdog.model.names import CollectorName
from pardbg.watchdog.model.replica import ReplicaMoment, ReplicaParts, ReplicaSeen
from pardbg.watchdog.model.report import Finding
from pardbg.watchdog.store.view import EvidenceView
from tests.collectors.dumps import as_json, gloo, make_dump

STEPS = (0, 1, 2, 4, 8, 16, 32, 64, 128)
EQUAL = tuple(range(10, 19))
"""Weights at each of these steps, as long as nothing is wrong."""
OWN_PART = 3


def replica(
    weights: Sequence[int] = EQUAL,
    data: Sequence[int] = (),
    *,
    more_passes: int = 0,
    size: int = 4,
    ordinal: int = 1,
    parts: tuple[int, ...] = (1, 2, OWN_PART),
) -> ReplicaSeen:
    """One that was looked at after each of ``STEPS``, or the first of them."""
    taken = zip(STEPS, weights, data or [0] * len(weights), strict=False)
    return ReplicaSeen(
        ordinal=ordinal,
        group=77,
        size=size,
        tensors=6,
        parts=3,
        seen=50,
        whole=100,
        moments=tuple(ReplicaMoment(step, step + 1 + more_passes, value, taste) for step, value, taste in taken),
        newest=(ReplicaParts(STEPS[len(weights) - 1], parts),),
    )


def apart(since: int, other: int = 99) -> tuple[int, ...]:
    """Weights that differ from the moment with this place on."""
    return (*EQUAL[:since], *(value + other for value in EQUAL[since:]))


def evidence(ranks: Mapping[int, ReplicaSeen | None], hosts: Mapping[int, str] | None = None) -> Iterator[Evidence]:
    """As a scan has it. All on one host, if nothing else is said."""
    described = tuple(RankDescription(rank=rank, host=(hosts or {}).get(rank, "a"), pid=100 + rank) for rank in ranks)
    job = JobDescription(job="j", world_size=len(ranks), ranks=described)
    yield Evidence(source=CollectorName.HOST, rank=None, observation=job, origin="job.json")
    for rank, seen in ranks.items():
        beat = Heartbeat(step=200, replica=seen)
        yield Evidence(source=CollectorName.HOST, rank=rank, observation=beat, origin=f"/dev/shm/pardbg-0/{rank}/page")  # noqa: S108


def recorders(ranks: Mapping[int, ReplicaSeen | None], groups: Sequence[Sequence[int]]) -> Iterator[Evidence]:
    """Their recorders, which know these groups besides that of all ranks."""
    for rank in ranks:
        own = {str(number): group for number, group in enumerate([list(ranks), *groups]) if rank in group}
        configs = {name: {"name": name, "desc": f"group {name}", "ranks": str(list(group))} for name, group in own.items()}
        dump = as_json(make_dump([gloo(0, is_retired=True)], pg_config=configs))
        seen = FlightRecording(recording=parse_flight_recorder(dump))
        yield Evidence(source=CollectorName.FLIGHT_RECORDER, rank=rank, observation=seen, origin="socket")


def find(
    ranks: Mapping[int, ReplicaSeen | None],
    hosts: Mapping[int, str] | None = None,
    groups: Sequence[Sequence[int]] | None = None,
) -> list[Finding]:
    """What the correlator makes of it. Without ``groups`` no recorder was seen."""
    more = () if groups is None else recorders(ranks, groups)
    return list(correlate(Situation.of(EvidenceView.of([*evidence(ranks, hosts), *more]))))


def named(finding: Finding) -> tuple[set[int | None], set[int | None]]:
    """Culprits and candidates."""
    return {item.rank for item in finding.culprits}, {item.rank for item in finding.candidates}
