"""Groups entered in opposite orders, groups of one name with different members, and transfers that wait in a cycle."""

from pardbg.watchdog.model.names import Kind
from pardbg.watchdog.sim.faults.fault import Expectation, Fault, unnamed_members
from pardbg.watchdog.sim.faults.rounds import metric, one_by_one
from pardbg.watchdog.sim.instruction import Launch, Op, Program, Style
from pardbg.watchdog.sim.layout import Group
from pardbg.watchdog.sim.program import alone, transfer
from pardbg.watchdog.sim.scene import Scene
from pardbg.watchdog.sim.truth import HEALTHY, Truth

_NCCL_ONLY = ("nccl",)


def _guilty(kind: Kind, *ranks: int, note: str = "") -> Expectation:
    culprits = tuple(sorted(ranks))
    return Expectation(truth=Truth(kind=kind, culprits=culprits, victims_exclude=culprits, note=note))


def _inverted(scene: Scene, group: Group, culprit: int, *, is_synchronous: bool) -> None:
    def issue(rank: int, own: Group) -> Program:
        launches = [metric(own, 0), metric(scene.world, 1)]
        ordered = launches[::-1] if rank == culprit else launches
        return one_by_one(ordered) if is_synchronous else list(ordered)

    scene.everyone(group, issue)
    if group not in scene.layout.groups:
        for rank in set(scene.ranks) - set(group.ranks):
            scene.insert(rank, metric(scene.world, 1))


def _inversion(scene: Scene) -> Expectation:
    group = scene.pick_group(3)
    culprit = scene.pick_rank(group.ranks)
    _inverted(scene, group, culprit, is_synchronous=True)
    return _guilty(Kind.ORDER_INVERSION, culprit)


def _enqueued_inversion(scene: Scene) -> Expectation:
    group = scene.pick_group(3)
    culprit = scene.pick_rank(group.ranks)
    _inverted(scene, group, culprit, is_synchronous=False)
    return _guilty(Kind.ORDER_INVERSION, culprit, note="every rank has both operations outstanding")


def _pair_inversion(scene: Scene) -> Expectation:
    group = scene.create_group(sorted(scene.pick_ranks(2)))
    _inverted(scene, group, group.ranks[0], is_synchronous=True)
    return Expectation(
        truth=Truth(
            kind=Kind.ORDER_INVERSION,
            candidates=group.ranks,
            acceptable=unnamed_members(scene),
            note="one against one: either may be wrong",
        )
    )


def _mismatched_group(scene: Scene) -> Expectation:
    """Two new groups; one rank creates them in the other order, so their names are exchanged for it."""
    members = scene.pick_group(3, ("dp", "ep", "tp", "pp")).ranks if len(scene.layout.groups) > 1 else tuple(scene.ranks)
    culprit = scene.pick_rank(members)
    first, second = (str(len(scene.layout.groups) + place) for place in range(2))
    narrow, wide = Group(first, "undefined", "late", members), Group(second, "undefined", "late", tuple(scene.ranks))
    own_wide, own_narrow = Group(first, "undefined", "late", wide.ranks), Group(second, "undefined", "late", members)
    for rank in scene.ranks:
        views = (own_wide, own_narrow) if rank == culprit else (narrow, wide)
        for group in views:
            if rank in group.ranks:
                scene.join(group, (rank,))
        for index, group in enumerate(sorted(views, key=lambda view: len(view.ranks))):
            if rank in group.ranks:
                scene.insert(rank, metric(group, index))
    return _guilty(Kind.GROUP_MISMATCH, culprit, note=f"groups {first} and {second} have exchanged names on rank {culprit}")


def _pair_deadlock(scene: Scene) -> Expectation:
    group = scene.pick_group(2, ("pp", "tp", "dp"))
    for here in range(2):
        ends = [transfer(group, op, 1 - here, "exchange") for op in (Op.SEND, Op.RECV)]
        scene.insert(group.ranks[here], *(alone(end, "exchange") for end in ends))
    return _guilty(Kind.P2P_DEADLOCK, *group.ranks[:2], note="both send first")


def _ring(rank: int, group: Group) -> list[Launch]:
    size, here = len(group.ranks), group.group_rank(rank)
    ends = [transfer(group, Op.SEND, (here + 1) % size, "exchange"), transfer(group, Op.RECV, (here - 1) % size, "exchange")]
    return [alone(end, "exchange") for end in ends]


def _coalesced_ring(rank: int, group: Group) -> Program:
    ends = tuple(launch.first for launch in _ring(rank, group))
    return [Launch(ends, is_coalesced=True, label="exchange")]


def _ring_deadlock(scene: Scene) -> Expectation:
    group = scene.pick_group(3)
    for rank in group.ranks:
        scene.insert(rank, *_ring(rank, group))
    return _guilty(Kind.P2P_DEADLOCK, *group.ranks, note="every rank of the ring sends first")


def _unmatched(scene: Scene) -> Expectation:
    group = scene.pick_group(2, ("dp", "tp", "pp"))
    receiver, culprit = group.ranks[:2]
    scene.insert(receiver, alone(transfer(group, Op.RECV, 1, "exchange"), "exchange"))
    return _guilty(Kind.P2P_UNMATCHED, culprit, note=f"rank {culprit} went on without the send that rank {receiver} waits for")


def _coalesced_exchange(scene: Scene) -> Expectation:
    group = scene.pick_group(2, ("dp", "tp", "pp"))
    scene.everyone(group, _coalesced_ring)
    return Expectation(truth=HEALTHY)


def _exchange_then_missing(scene: Scene) -> Expectation:
    group = scene.pick_group(2, ("dp", "tp", "pp"))
    scene.everyone(group, _coalesced_ring)
    culprit = scene.pick_rank()
    scene.block(culprit)
    note = "the exchange is done: its members stay `scheduled`, only the closing entry tells"
    return _guilty(Kind.MISSING_PARTICIPANT, culprit, note=note)


def _coalesced_pipeline(scene: Scene) -> Expectation:
    scene.pick_group(2, ("pp",))
    return Expectation(truth=HEALTHY)


FAULTS = (
    Fault(name="order-inversion", summary="one rank enters two groups in the other order and waits in each", stage=_inversion),
    Fault(
        name="order-inversion-enqueued",
        summary="the same, with both operations enqueued on every rank",
        stage=_enqueued_inversion,
        backends=_NCCL_ONLY,
    ),
    Fault(
        name="order-inversion-pair",
        summary="two ranks enter two groups in opposite orders",
        stage=_pair_inversion,
        near_miss_of=("order-inversion",),
    ),
    Fault(
        name="group-mismatch",
        summary="one rank created two groups in the other order",
        stage=_mismatched_group,
        backends=_NCCL_ONLY,
    ),
    Fault(name="p2p-deadlock", summary="two ranks both send first", stage=_pair_deadlock, backends=_NCCL_ONLY),
    Fault(name="p2p-deadlock-ring", summary="all ranks of a ring send first", stage=_ring_deadlock, backends=_NCCL_ONLY),
    Fault(
        name="p2p-unmatched", summary="a peer never sends and waits in another operation", stage=_unmatched, backends=_NCCL_ONLY
    ),
    Fault(
        name="p2p-exchange-coalesced",
        summary="healthy: both send first, but coalesced with the receives",
        stage=_coalesced_exchange,
        near_miss_of=("p2p-deadlock",),
        backends=_NCCL_ONLY,
    ),
    Fault(
        name="p2p-exchange-then-missing",
        summary="a done coalesced exchange still shows `scheduled`; a rank is missing elsewhere",
        stage=_exchange_then_missing,
        near_miss_of=("p2p-deadlock-ring",),
        backends=_NCCL_ONLY,
    ),
    Fault(
        name="healthy-coalesced-pipeline",
        summary="healthy: all pipeline transfers are coalesced and stay `scheduled`",
        stage=_coalesced_pipeline,
        near_miss_of=("p2p-deadlock",),
        backends=_NCCL_ONLY,
        style=Style(p2p_is_coalesced=True),
    ),
)
