"""Who comes late again and again, from the times in recorders: a small world of ranks with clocks of their own."""

import random
from collections.abc import Callable, Mapping, Sequence

import msgspec
import pytest
from msgspec.structs import replace

from pardbg.collectors.digesting import digest
from pardbg.watchdog.judge.judge import Circumstances, judge
from pardbg.watchdog.model.evidence import Evidence, FlightRecording, JobDescription, RankDescription
from pardbg.watchdog.model.names import Cause, CollectorName, Kind, Scope, Status
from pardbg.watchdog.model.recording import GroupConfig, GroupName, Operation, Recording, Signature
from pardbg.watchdog.model.report import Finding, Report
from pardbg.watchdog.store.view import EvidenceView

STEPS = 30
STEP_S = 0.5
Lateness = Callable[[int, int], float]
"""Seconds that a rank is late in a step, by its own doing."""
TENSOR = {f"tp{index}": ("TENSOR_MODEL_PARALLEL_GROUP", (2 * index, 2 * index + 1)) for index in range(4)}
DATA = {f"dp{index}": ("DATA_PARALLEL_GROUP", (index, index + 2, index + 4, index + 6)) for index in range(2)}
STAGES = {f"pp{index}": ("PIPELINE_MODEL_PARALLEL_GROUP", (index, index + 2, index + 4, index + 6)) for index in range(2)}
WORLD = {"0": ("default_pg", tuple(range(8)))}

Layout = Mapping[str, tuple[str, tuple[int, ...]]]


def play(
    layout: Layout, order: Sequence[str], lateness: Lateness, *, backend: str = "nccl", steps: int = STEPS
) -> list[Recording]:
    """Runs so many steps: each rank works, is late, then issues one collective in each of its groups of these kinds."""
    now = dict.fromkeys(range(8), 0.0)
    rows: dict[int, list[tuple[str, int, float, float]]] = {rank: [] for rank in range(8)}
    for step in range(steps):
        for rank in now:
            now[rank] += STEP_S + lateness(rank, step)
        for kind in order:
            for name, (_, members) in layout.items():
                if name.startswith(kind):
                    end = max(now[rank] for rank in members) + 0.001
                    for rank in members:
                        rows[rank].append((name, step + 1, now[rank], end))
                        now[rank] = end
    return [record(rank, rows[rank], layout, backend) for rank in range(8)]


def record(rank: int, rows: Sequence[tuple[str, int, float, float]], layout: Layout, backend: str) -> Recording:
    """The recorder of a rank whose clock is wrong by some minutes, but for gloo, where all are on one host."""
    epoch_ns = 1_700_000_000_000_000_000 + (rank * 97_000_000_000 if backend == "nccl" else 0)
    names = sorted({name for name, *_ in rows})
    return Recording(
        version="2.10",
        library_version="",
        groups=tuple(GroupName(name=name, desc=layout[name][0]) for name in names),
        signatures=(Signature(backend=backend, op="all_reduce", input_sizes=((8,),), output_sizes=((8,),)),),
        sites=(),
        operations=tuple(
            Operation(
                place,
                names.index(name),
                seq,
                0,
                0,
                -1,
                epoch_ns + int(came * 1e9),
                is_done=True,
                is_p2p=False,
                completed_ns=epoch_ns + int(end * 1e9) if backend == "nccl" else 0,
            )
            for place, (name, seq, came, end) in enumerate(rows)
        ),
        configs=tuple(GroupConfig.of(name, desc, ranks) for name, (desc, ranks) in layout.items() if rank in ranks),
        progress=(),
        local_ids={},
    )


def report_on(recordings: Sequence[Recording], hosts: Sequence[str | None], *more: Evidence) -> Report:
    """The judge's answer."""
    ranks = tuple(RankDescription(rank=rank, host=host) for rank, host in enumerate(hosts))
    job = JobDescription(job="late", world_size=len(hosts), ranks=ranks)
    told = Evidence(source=CollectorName.HOST, rank=None, observation=job, origin="job.json")
    dumps = [
        Evidence(
            source=CollectorName.FLIGHT_RECORDER, rank=rank, observation=FlightRecording(recording=one), origin=f"dump_{rank}"
        )
        for rank, one in enumerate(recordings)
    ]
    return judge(EvidenceView.of([told, *dumps, *more]), Circumstances(decided_at="2026-11-30T00:00:00Z"))


TWO_HOSTS = ("a", "a", "a", "a", "b", "b", "b", "b")
ONE_HOST = ("a",) * 8


def always(*ranks: int, late_s: float = 0.4) -> Lateness:
    """These ranks in every step."""
    return lambda rank, _: late_s if rank in ranks else 0.0


def straggler(report: Report) -> Finding:
    """The one finding."""
    (found,) = report.findings
    assert found.kind is Kind.STRAGGLER
    assert (report.status, found.confidence.value) == (Status.SLOW, "supported")
    return found


@pytest.mark.parametrize("backend", ["nccl", "gloo"])
def test_rank_that_is_always_late_is_named_whatever_clocks_say(backend: str) -> None:
    hosts = TWO_HOSTS if backend == "nccl" else ONE_HOST
    found = straggler(report_on(play(WORLD, ["0"], always(5), backend=backend), hosts))

    assert [subject.rank for subject in found.culprits] == [5]
    assert found.victims == (0, 1, 2, 3, 4, 6, 7)
    assert found.cost is not None
    lost = 0.25 if backend == "nccl" else 0.4  # of 0.9 s; noticing the end takes a device's back end up to 0.15 s
    assert found.cost.share == pytest.approx(lost / 0.9, rel=0.05)
    assert found.cause is None


def test_peer_that_came_late_because_it_had_to_wait_for_the_late_one_is_a_victim() -> None:
    found = straggler(report_on(play({**TENSOR, **DATA}, ["tp", "dp"], always(4)), TWO_HOSTS))

    assert [subject.rank for subject in found.culprits] == [4]
    assert 5 in found.victims


def test_all_ranks_of_one_host_are_one_straggler() -> None:
    hosts = ("a", "a", "b", "b", "c", "c", "d", "d")
    found = straggler(report_on(play(WORLD, ["0"], always(2, 3)), hosts))

    assert [(subject.scope, subject.host, subject.ranks) for subject in found.culprits] == [(Scope.HOST, "b", (2, 3))]


def test_stage_that_has_more_to_do_is_named_and_not_its_ranks() -> None:
    layout = {**STAGES, "dp0": ("DATA_PARALLEL_GROUP", tuple(range(8)))}
    found = straggler(report_on(play(layout, ["dp"], always(6, 7)), ONE_HOST))

    assert [(subject.scope, subject.ranks, subject.coords) for subject in found.culprits] == [(Scope.STAGE, (6, 7), {"pp": 3})]
    assert found.cause is Cause.PIPELINE_STAGE


def test_lateness_that_goes_round_names_nobody() -> None:
    found = straggler(report_on(play(WORLD, ["0"], lambda rank, step: 0.4 if step % 8 == rank else 0.0), TWO_HOSTS))

    assert (found.cause, found.culprits, found.candidates) == (Cause.ROTATING, (), ())


@pytest.mark.parametrize("backend", ["nccl", "gloo"])
@pytest.mark.parametrize("seed", range(5))
def test_chance_makes_no_straggler(backend: str, seed: int) -> None:
    chance = random.Random(seed)
    report = report_on(play(WORLD, ["0"], lambda *_: abs(chance.gauss(0, 0.1 * STEP_S)), backend=backend, steps=300), ONE_HOST)

    assert (report.status, report.findings) == (Status.HEALTHY, ())


@pytest.mark.parametrize(
    "lateness",
    [
        pytest.param(lambda *_: 0.4, id="everyone"),
        pytest.param(lambda rank, step: 20.0 if (rank, step) == (3, 15) else 0.0, id="one-long-pause"),
        pytest.param(lambda rank, step: 0.4 if rank == 3 and step < 10 else 0.0, id="over-since-long"),
        pytest.param(lambda rank, _: 0.01 if rank == 3 else 0.0, id="not-worth-a-word"),
        pytest.param(lambda rank, _: 0.4 if rank % 2 else 0.0, id="half-of-them"),
    ],
)
def test_near_misses_accuse_nobody(lateness: Lateness) -> None:
    report = report_on(play(WORLD, ["0"], lateness), TWO_HOSTS)

    assert (report.status, report.findings) == (Status.HEALTHY, ())


def test_nothing_is_said_where_transfers_are_hidden() -> None:
    recordings = play(WORLD, ["0"], always(5), backend="gloo")
    hidden = [replace(one, unrecorded_p2p=("0",)) for one in recordings]

    assert report_on(hidden, ONE_HOST).findings == ()


def test_rank_without_a_recorder_is_not_accused_and_others_are_not_either() -> None:
    recordings = play(WORLD, ["0"], always(7), backend="nccl")[:7]

    assert report_on(recordings, TWO_HOSTS[:7]).findings == ()


@pytest.mark.parametrize("backend", ["nccl", "gloo"])
def test_digests_tell_who_is_late_as_whole_rings_do(backend: str) -> None:
    hosts = TWO_HOSTS if backend == "nccl" else ONE_HOST
    layout, order = ({**TENSOR, **DATA}, ["tp", "dp"]) if backend == "nccl" else (WORLD, ["0"])
    whole = play(layout, order, always(4), backend=backend)
    small = [digest(one) for one in whole]

    assert straggler(report_on(small, hosts)).culprits == straggler(report_on(whole, hosts)).culprits
    assert max(len(msgspec.msgpack.encode(one.summary)) for one in small) < 1024
    assert report_on([digest(one) for one in play(layout, order, lambda *_: 0.4, backend=backend)], hosts).findings == ()
