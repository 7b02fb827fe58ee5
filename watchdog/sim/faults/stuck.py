"""Everybody is there and nothing moves: one device, one communicator, or several of them."""

from pardbg.watchdog.model.names import Cause, Kind
from pardbg.watchdog.sim.callsites import host_site
from pardbg.watchdog.sim.faults.fault import Expectation, Fault
from pardbg.watchdog.sim.faults.rounds import metric, metrics, one_by_one
from pardbg.watchdog.sim.instruction import Fate, HostBlock, Join, Op, Program, Synchronize
from pardbg.watchdog.sim.layout import WORLD, Group
from pardbg.watchdog.sim.program import alone, collective
from pardbg.watchdog.sim.scene import Scene
from pardbg.watchdog.sim.truth import NOT_SURE, Truth

_NCCL_ONLY = ("nccl",)


def _device(culprit: int, *, also: tuple[tuple[int, ...], ...] = (), note: str = "") -> Truth:
    return Truth(kind=Kind.DEVICE_STUCK, culprits=(culprit,), victims_exclude=(culprit,), also=also, note=note)


def _stuck_device(scene: Scene) -> Expectation:
    group = scene.pick_group(3)
    culprit = scene.pick_rank(group.ranks)
    scene.everyone(group, lambda rank, own: [metric(own, 0).with_fate(Fate.STUCK_HERE if rank == culprit else Fate.NORMAL)])
    return Expectation(truth=_device(culprit, note="the others have completed what is outstanding here"))


def _unreported(scene: Scene) -> Expectation:
    """A device error: the operations ran, their completion events are lost, and the host gets no further."""
    group = scene.pick_group(3)
    culprit = scene.pick_rank(group.ranks)

    def issue(rank: int, own: Group) -> Program:
        if rank != culprit:
            return list(metrics(own))
        return [*(launch.with_fate(Fate.NOT_REPORTED) for launch in metrics(own)), HostBlock(host_site("synchronize"))]

    scene.everyone(group, issue)
    return Expectation(truth=_device(culprit, note="as in NVRx's gpu_error dumps: several operations behind the others"))


def _device_and_host(scene: Scene) -> Expectation:
    stuck, peer, third, blocked = scene.pick_ranks(4)
    group = scene.create_group((stuck, peer, third))
    for rank in group.ranks:
        scene.insert(rank, metric(group, 0).with_fate(Fate.STUCK_HERE if rank == stuck else Fate.NORMAL))
    scene.block(blocked)
    return Expectation(truth=_device(stuck, also=((blocked,),), note=f"and rank {blocked} is blocked on its host"))


def _communicator(scene: Scene) -> Expectation:
    group = scene.pick_group(2)
    fates = dict.fromkeys(group.ranks, Fate.NEVER_DONE)
    scene.everyone(group, lambda rank, own: one_by_one([metric(own, 0).with_fate(fates.get(rank, Fate.NORMAL))]))
    return Expectation(truth=Truth(kind=Kind.COMM_STUCK, note=f"all of group {group.name} entered, none is done"))


def _foreign(scene: Scene) -> Expectation:
    group = scene.pick_group(2, ("ep", "tp", "pp", "dp", WORLD))
    inside = group.ranks if len(group.ranks) < len(scene.ranks) else group.ranks[1:]
    for rank in inside:
        scene.block(rank, "foreign")
    scene.shows_stacks = True
    truth = Truth(
        kind=Kind.COMM_STUCK,
        cause=Cause.FOREIGN_COMM,
        acceptable=(NOT_SURE,),
        note="the ranks the others wait for wait themselves, inside DeepEP",
    )
    return Expectation(truth=truth, is_proven_otherwise=True)


def _several(scene: Scene) -> Expectation:
    """Two communicators' kernels hold each other's resources; both are entered by everybody."""
    group = scene.pick_group(2, ("dp", "tp", "pp"))

    def issue(_: int, own: Group) -> Program:
        first = alone(collective(own, Op.ALL_REDUCE, "metrics.0", (1024,)), "metrics.0", is_async=True)
        second = alone(collective(scene.world, Op.ALL_REDUCE, "metrics.1", (1024,)), "metrics.1", is_async=True)
        broken = [launch.with_fate(Fate.NEVER_DONE) for launch in (first, second)]
        return [*broken, Join(), Synchronize(host_site("synchronize"))]

    scene.everyone(group, issue)
    return Expectation(truth=Truth(kind=Kind.MULTI_COMM_DEADLOCK, note="two groups outstanding on every rank, all matching"))


FAULTS = (
    Fault(
        name="device-stuck",
        summary="one device does not finish what the others have finished",
        stage=_stuck_device,
        backends=_NCCL_ONLY,
    ),
    Fault(
        name="device-stuck-unreported",
        summary="one device reports no completion any more and falls behind",
        stage=_unreported,
        backends=_NCCL_ONLY,
    ),
    Fault(
        name="two-faults-device-and-host",
        summary="a stuck device, and elsewhere a rank blocked on its host",
        stage=_device_and_host,
        backends=_NCCL_ONLY,
    ),
    Fault(
        name="comm-stuck",
        summary="all members entered one operation, none finishes",
        stage=_communicator,
        near_miss_of=("multi-comm-deadlock",),
    ),
    Fault(
        name="foreign-communicator",
        summary="the ranks waited for are inside another communication library",
        stage=_foreign,
        near_miss_of=("missing-participant",),
    ),
    Fault(
        name="multi-comm-deadlock",
        summary="two communicators outstanding on every rank, all matching",
        stage=_several,
        near_miss_of=("comm-stuck",),
        backends=_NCCL_ONLY,
    ),
)
