"""Ranks of one group that issued different operations: which side is wrong, and how its sequence would have to be edited."""

from collections.abc import Callable

from msgspec.structs import replace

from pardbg.watchdog.model.names import Edit, Kind, Mismatch
from pardbg.watchdog.sim.faults.fault import Expectation, Fault
from pardbg.watchdog.sim.faults.rounds import DISTINCT_SIZES, EQUAL_SIZES, metric, metrics, one_by_one
from pardbg.watchdog.sim.instruction import Op, Program
from pardbg.watchdog.sim.layout import Group
from pardbg.watchdog.sim.program import alone, collective, transfer
from pardbg.watchdog.sim.scene import Scene
from pardbg.watchdog.sim.truth import Truth

_NCCL_ONLY = ("nccl",)  # gloo does not hang on another size or type: its peers die of it
_ENDS = (Op.SEND, Op.RECV)


def _diverged(culprit: int, mismatch: Mismatch, edit: Edit | None = None, note: str = "") -> Truth:
    guilty = (culprit,)
    return Truth(kind=Kind.DESYNC, culprits=guilty, victims_exclude=guilty, mismatch=mismatch, edit=edit, note=note)


def _one_rank(
    ours: Callable[[Group], Program], theirs: Callable[[Group], Program], mismatch: Mismatch, edit: Edit | None = None
) -> Callable[[Scene], Expectation]:
    """One rank of a group runs ``theirs``, everybody else ``ours``."""

    def stage(scene: Scene) -> Expectation:
        group = scene.pick_group(3)
        culprit = scene.pick_rank(group.ranks)
        scene.everyone(group, lambda rank, own: theirs(own) if rank == culprit else ours(own))
        return Expectation(truth=_diverged(culprit, mismatch, edit))

    return stage


def _other_op(scene: Scene, group: Group) -> Program:
    """Not an all_reduce. On gloo a barrier, which is sure to hang against one."""
    return [metric(group, 0, op=Op.BARRIER if scene.is_gloo else Op.ALL_GATHER)]


def _op(scene: Scene) -> Expectation:
    return _one_rank(lambda own: [metric(own, 0)], lambda own: _other_op(scene, own), Mismatch.OP)(scene)


def _all_metrics(group: Group) -> Program:
    return list(metrics(group))


def _skipped(group: Group) -> Program:
    return [launch for index, launch in enumerate(metrics(group)) if index != 1]


def _swapped(group: Group) -> Program:
    first, second, third = metrics(group, DISTINCT_SIZES)
    return [second, first, third]


def _then_barrier(group: Group) -> Program:
    return one_by_one([*metrics(group, EQUAL_SIZES), metric(group, 3, op=Op.BARRIER)])


def _with_extra(group: Group) -> Program:
    return [*one_by_one([alone(collective(group, Op.ALL_REDUCE, "extra", (1024,)), "extra")]), *_then_barrier(group)]


def _without_first(group: Group) -> Program:
    return _then_barrier(group)[2:]


def _by_call_site(theirs: Callable[[Group], Program], edit: Edit) -> Callable[[Scene], Expectation]:
    """Operations that match but for where they are called; the ranks block some operations later, at a barrier."""

    def stage(scene: Scene) -> Expectation:
        seen = _one_rank(_then_barrier, theirs, Mismatch.CALL_SITE, edit)(scene).truth
        blind = replace(
            seen, mismatch=Mismatch.OP, edit=None, note="without call sites only the end shows: barrier or all_reduce"
        )
        return Expectation(truth=seen, without_call_sites=blind)

    return stage


def _skipped_before_transfer(scene: Scene) -> Expectation:
    """One end of a transfer comes to it without the operation before it, and has the next one launched behind it."""
    group = scene.pick_group(2, ("pp", "dp", "tp"))
    ends = {
        rank: transfer(group, op, 1 - place, "exchange") for place, op, rank in zip((0, 1), _ENDS, group.ranks, strict=False)
    }
    culprit = scene.pick_rank(ends)
    for rank in scene.ranks:
        first, *later = metrics(scene.world)
        between = [alone(ends[rank], "exchange")] if rank in ends else []
        scene.insert(rank, *([] if rank == culprit else [first]), *between, *later)
    return Expectation(truth=_diverged(culprit, Mismatch.SIZE, Edit.SKIPPED, "the circle with the transfer is a consequence"))


def _split(scene: Scene, group: Group) -> Expectation:
    half = scene.pick_ranks(len(group.ranks) // 2, group.ranks)
    scene.everyone(group, lambda rank, own: _other_op(scene, own) if rank in half else [metric(own, 0)])
    truth = Truth(kind=Kind.DESYNC, candidates=group.ranks, mismatch=Mismatch.OP, note="no majority: nobody can be blamed")
    return Expectation(truth=truth)


def _even_split(scene: Scene) -> Expectation:
    even = [group for group in scene.layout.groups if len(group.ranks) >= 4 and len(group.ranks) % 2 == 0]
    group = scene.pick_group(4) if not even else scene.random.choice(even)
    return _split(scene, group)


def _two_ranks(scene: Scene) -> Expectation:
    return _split(scene, scene.create_group(sorted(scene.pick_ranks(2))))


FAULTS = (
    Fault(name="desync-op", summary="one rank issues another operation than its group", stage=_op),
    Fault(
        name="desync-size",
        summary="one rank's tensor has another size",
        stage=_one_rank(lambda own: [metric(own, 0)], lambda own: [metric(own, 0, size=512)], Mismatch.SIZE),
        backends=_NCCL_ONLY,
    ),
    Fault(
        name="desync-dtype",
        summary="one rank's tensor has another type",
        stage=_one_rank(lambda own: [metric(own, 0)], lambda own: [metric(own, 0, dtype="BFloat16")], Mismatch.DTYPE),
        backends=_NCCL_ONLY,
    ),
    Fault(
        name="desync-skipped",
        summary="one rank skips an operation and goes on",
        stage=_one_rank(_all_metrics, _skipped, Mismatch.SIZE, Edit.SKIPPED),
        near_miss_of=("desync-swapped",),
        backends=_NCCL_ONLY,
    ),
    Fault(
        name="desync-skipped-before-transfer",
        summary="one rank skips an operation and stands in a transfer, whose other end comes to it by the skipped one",
        stage=_skipped_before_transfer,
        near_miss_of=("order-inversion", "p2p-unmatched"),
        backends=_NCCL_ONLY,
    ),
    Fault(
        name="desync-skipped-call-site",
        summary="one rank skips an operation; sizes match, it blocks two operations later",
        stage=_by_call_site(_without_first, Edit.SKIPPED),
        near_miss_of=("desync-extra",),
    ),
    Fault(
        name="desync-extra",
        summary="one rank issues an extra operation; sizes match, it blocks three operations later",
        stage=_by_call_site(_with_extra, Edit.EXTRA),
        near_miss_of=("desync-skipped-call-site",),
    ),
    Fault(
        name="desync-swapped",
        summary="one rank issues two operations in the other order",
        stage=_one_rank(_all_metrics, _swapped, Mismatch.SIZE, Edit.SWAPPED),
        near_miss_of=("desync-skipped",),
        backends=_NCCL_ONLY,
    ),
    Fault(
        name="desync-even-split",
        summary="half of a group issues another operation",
        stage=_even_split,
        near_miss_of=("desync-op", "desync-dtype"),
    ),
    Fault(name="desync-two-ranks", summary="the two ranks of a group disagree", stage=_two_ranks, near_miss_of=("desync-op",)),
)
