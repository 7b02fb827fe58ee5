"""Ranks that have not entered what others wait in, and look-alikes where another rank is to blame, or the same for less."""

from collections.abc import Callable

from msgspec.structs import replace

from pardbg.watchdog.model.names import Cause, Kind
from pardbg.watchdog.sim.callsites import call_site, host_site
from pardbg.watchdog.sim.faults.fault import Expectation, Fault, unnamed_members
from pardbg.watchdog.sim.faults.rounds import metric, one_by_one
from pardbg.watchdog.sim.instruction import HostBlock, Launch, Op, Operation, Program, Style
from pardbg.watchdog.sim.layout import Group
from pardbg.watchdog.sim.program import alone, collective
from pardbg.watchdog.sim.scene import ProcessState, Scene
from pardbg.watchdog.sim.truth import Answer, Truth

_WRAPPED_RING = 3


def missing(*culprits: int, cause: Cause | None = None, note: str = "") -> Truth:
    """The truth of ranks that are absent from what others wait in."""
    guilty = tuple(sorted(culprits))
    return Truth(kind=Kind.MISSING_PARTICIPANT, cause=cause, culprits=guilty, victims_exclude=guilty, note=note)


def _plain(scene: Scene) -> Expectation:
    culprit = scene.pick_rank()
    scene.block(culprit)
    return Expectation(truth=missing(culprit, note="blocked on the host half-way through the step"))


def _with_stack(where: str, cause: Cause) -> Callable[[Scene], Expectation]:
    def stage(scene: Scene) -> Expectation:
        culprit = scene.pick_rank()
        scene.block(culprit, where)
        scene.shows_stacks = True
        return Expectation(truth=missing(culprit, cause=cause), is_proven_otherwise=True)

    return stage


def _two(scene: Scene) -> Expectation:
    first = scene.pick_rank()
    near = {rank for group in scene.layout.groups[1:] if first in group.ranks for rank in group.ranks}
    second = scene.pick_rank(
        [rank for rank in scene.ranks if rank not in near] or [rank for rank in scene.ranks if rank != first]
    )
    scene.block(first)
    scene.block(second)
    return Expectation(truth=missing(first, second, note="two independent faults: one finding or two, and nobody else"))


def _idle_majority(scene: Scene) -> Expectation:
    experts = scene.create_group(scene.ranks, "EXPERT_MODEL_PARALLEL_GROUP")
    busy = scene.pick_rank()
    for rank in scene.ranks:
        scene.insert(rank, *one_by_one([_generate(experts)]))
        after = one_by_one([_generate(experts)]) if rank == busy else [HostBlock(host_site("scheduler"))]
        scene.insert(rank, *after)
    scene.shows_stacks = True
    idle = tuple(rank for rank in scene.ranks if rank != busy)
    causes = (Cause.USER_CODE, Cause.NETWORK_IO, Cause.SLEEPING)
    answers = tuple(Answer(kind=Kind.MISSING_PARTICIPANT, cause=cause, culprits=idle) for cause in causes)
    truth = missing(*idle, note=f"rank {busy} has tokens; the others went back to the scheduler without a dummy forward pass")
    return Expectation(truth=replace(truth, acceptable=answers), is_proven_otherwise=True)


def _generate(experts: Group) -> Launch:
    shape = ((64, 5120),)
    return alone(Operation(experts, Op.ALL_TO_ALL, call_site("generate", Op.ALL_TO_ALL), shape, shape), "generate")


def _uneven(scene: Scene) -> Expectation:
    """Every waiting rank shows an all_to_all of another size."""
    experts = scene.pick_group(2, ("ep",))
    culprit = scene.pick_rank(experts.ranks)

    def issue(rank: int, group: Group) -> Program:
        here = group.group_rank(rank)
        sent, received = ((512 + 32 * here, 5120),), ((512 + 32 * (len(group.ranks) - 1 - here), 5120),)
        launch = alone(Operation(group, Op.ALL_TO_ALL, call_site("dispatch", Op.ALL_TO_ALL), sent, received), "uneven")
        return [HostBlock(host_site("host"))] if rank == culprit else [launch]

    scene.everyone(experts, issue)
    return Expectation(truth=missing(culprit, note="the sizes of an all_to_all may differ"))


def _queue(scene: Scene) -> Expectation:
    """The others have several groups outstanding, all queued in the same order."""
    group = scene.pick_group(3)
    culprit = scene.pick_rank(group.ranks)
    scene.block(culprit)
    scene.everyone(group, lambda _, own: [metric(own, 0), metric(scene.world, 1), metric(own, 2)])
    return Expectation(truth=missing(culprit, note="only the first of the outstanding operations is waited for"))


def _wrapped(scene: Scene) -> Expectation:
    group = scene.pick_group(3)
    culprit, ahead = scene.pick_ranks(2, group.ranks)
    scene.block(culprit)
    scene.everyone(group, lambda _, own: [metric(own, 0)])
    scene.ring_sizes[ahead] = _WRAPPED_RING
    note = f"the ring of rank {ahead} has wrapped past the operation the others wait in; its counters show that it is there"
    return Expectation(truth=missing(culprit, note=note))


def _late_group(scene: Scene) -> Expectation:
    group = scene.create_group(scene.ranks)
    culprit = scene.pick_rank()
    scene.block(culprit)
    scene.everyone(group, lambda _, own: [metric(own, 0)])
    truth = missing(culprit, note="the group's first operation, but not the ranks' first")
    return Expectation(truth=replace(truth, acceptable=unnamed_members(scene)))


def _first_step(scene: Scene) -> Expectation:
    scene.has_history = False
    scene.everyone(scene.world, lambda _, world: [metric(world, 0)])
    return _plain(scene)


def _stopped(scene: Scene) -> Expectation:
    culprit = scene.pick_rank()
    scene.block(culprit)
    scene.processes[culprit] = ProcessState("T")
    return Expectation(truth=missing(culprit, cause=Cause.STOPPED), is_proven_otherwise=True)


def _root_ahead(scene: Scene) -> Expectation:
    """A broadcast's root is done with it; the receiver is not, because its device is still behind another group's front."""
    root, receiver, bystander, culprit = scene.pick_ranks(4)
    wide, narrow = scene.create_group((root, receiver, bystander)), scene.create_group((receiver, culprit))
    scene.block(culprit)
    scene.insert(receiver, metric(narrow, 1))
    scene.insert(culprit, metric(narrow, 1))
    for rank in wide.ranks:
        shape = ((1, 2048),)
        operation = Operation(wide, Op.BROADCAST, call_site("data", Op.BROADCAST), shape, shape, "Long", root=0)
        scene.insert(rank, alone(operation, "ahead"))
    return Expectation(truth=missing(culprit, note=f"rank {receiver} queues behind its wait for rank {culprit}"))


def _reused_name(scene: Scene) -> Expectation:
    """split_group gives disjoint groups one name; that is legal."""
    half = len(scene.ranks) // 2
    name = str(len(scene.layout.groups))
    for ranks in (scene.ranks[:half], scene.ranks[half:]):
        group = Group(name, "undefined", "late", tuple(ranks))
        scene.join(group, ranks)
        scene.everyone(group, lambda _, own: [metric(own, 0)])
    return _plain(scene)


def _peer_on_host(scene: Scene) -> Expectation:
    group = scene.pick_group(2, ("pp", "dp", "tp"))
    receiver, culprit = group.ranks[:2]
    shape = ((1024,),)
    recv = Operation(group, Op.RECV, call_site("exchange", Op.RECV), shape, shape, peer=1)
    scene.insert(receiver, alone(recv, "lonely"))
    scene.block(culprit)
    return Expectation(truth=missing(culprit, note="the peer does not wait in communication"))


def _branching(scene: Scene) -> Expectation:
    scene.pick_group(2, ("tp",))
    scene.everyone(scene.world, lambda _, world: [alone(collective(world, Op.ALL_REDUCE, "metrics.0", (8,)), "metrics.0")])
    return _plain(scene)


_LOOK = "with its stack: "
FAULTS = (
    Fault(
        name="missing-participant",
        summary="one rank blocks on the host in mid-step; the hang cascades",
        stage=_plain,
        near_miss_of=("device-stuck-unreported",),
    ),
    Fault(
        name="missing-participant-checkpoint",
        summary=_LOOK + "in torch.save",
        stage=_with_stack("checkpoint", Cause.CHECKPOINT_IO),
    ),
    Fault(
        name="missing-participant-data-loader",
        summary=_LOOK + "in the data loader's queue",
        stage=_with_stack("data-loader", Cause.DATA_LOADING),
    ),
    Fault(name="missing-participant-lock", summary=_LOOK + "waiting for a lock", stage=_with_stack("lock", Cause.LOCK)),
    Fault(name="two-faults", summary="two independent ranks block on the host", stage=_two),
    Fault(
        name="idle-majority",
        summary="all but one rank wait in the scheduler; one is in the experts' all_to_all",
        stage=_idle_majority,
    ),
    Fault(
        name="uneven-all-to-all-missing",
        summary="a rank is missing from an all_to_all with legal uneven sizes",
        stage=_uneven,
        near_miss_of=("desync-size",),
    ),
    Fault(
        name="queue-behind-front",
        summary="several groups outstanding, in one and the same order, behind a missing rank",
        stage=_queue,
        near_miss_of=("order-inversion-enqueued",),
        backends=("nccl",),
    ),
    Fault(
        name="ring-wrapped",
        summary="the ring of an innocent rank wrapped past the operation the others wait in",
        stage=_wrapped,
        near_miss_of=("missing-participant",),
        backends=("nccl",),
    ),
    Fault(
        name="missing-late-group",
        summary="a rank is missing from a new group's first operation",
        stage=_late_group,
        near_miss_of=("init-stuck", "idle-majority"),
    ),
    Fault(
        name="missing-in-first-step",
        summary="a rank blocks in its first step, after some operations",
        stage=_first_step,
        near_miss_of=("init-stuck",),
    ),
    Fault(name="stopped-process", summary="a process in state T: alive, not dead", stage=_stopped, near_miss_of=("dead-rank",)),
    Fault(
        name="broadcast-root-ahead",
        summary="all others are done with a broadcast that a rank cannot start yet",
        stage=_root_ahead,
        near_miss_of=("device-stuck",),
        backends=("nccl",),
    ),
    Fault(
        name="group-name-reused",
        summary="disjoint groups share a name, as split_group does; an unrelated rank is missing",
        stage=_reused_name,
        near_miss_of=("group-mismatch",),
    ),
    Fault(
        name="p2p-peer-on-host",
        summary="a recv waits for a peer that is blocked on the host",
        stage=_peer_on_host,
        near_miss_of=("p2p-unmatched",),
        backends=("nccl",),
    ),
    Fault(
        name="branch-call-sites-missing",
        summary="the root broadcasts from a line of its own, and an unrelated rank is missing",
        stage=_branching,
        near_miss_of=("desync-extra",),
        style=Style(root_has_own_call_site=True),
    ),
)
