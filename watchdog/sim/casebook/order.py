"""Groups entered in other orders (C25, C26), and communicators that block each other (C29)."""

from pardbg.watchdog.model.names import Kind, Mismatch
from pardbg.watchdog.sim.casebook.case import Case, Family, less_seen, near_miss, reported
from pardbg.watchdog.sim.casebook.draw import Draw
from pardbg.watchdog.sim.casebook.job import Job
from pardbg.watchdog.sim.casebook.rank_zero_only import differing
from pardbg.watchdog.sim.dump import Dump
from pardbg.watchdog.sim.instruction import Op
from pardbg.watchdog.sim.truth import HEALTHY, Answer, Truth, unknown_because


def _swapped(draw: Draw, world: int, culprit: int) -> Job:
    job = Job(draw, world, backend=draw.backend)
    first, second = (job.group(name, job.ranks) for name in ("group_a", "group_b"))
    for _ in range(3):
        job.issue(Op.ALL_REDUCE, 1024, group=first)
        job.issue(Op.ALL_REDUCE, 1024, group=second)
    job.issue(Op.ALL_REDUCE, 1024, group=first, ranks=job.others(culprit), is_done=False)
    job.issue(Op.ALL_REDUCE, 1024, group=second, ranks=[culprit], is_done=False)
    return job


def _one_swaps(draw: Draw) -> Case:
    world = draw.world(4, 32)
    culprit = draw.rank(range(world))
    return Case(
        scenario=(
            f"{world} ranks, all in two groups, a and b. Rank {culprit} waits in operation 4 of b and has not issued 4 of a; "
            "the others wait in 4 of a and have not issued 4 of b. Before, everybody used a, then b."
        ),
        files=_swapped(draw, world, culprit).files,
        truth=Truth(kind=Kind.ORDER_INVERSION, culprits=(culprit,), victims_exclude=(culprit,)),
    )


def _one_of_two_swaps(draw: Draw) -> Case:
    return Case(
        scenario="Two ranks in two groups. One waits in operation 4 of a, the other in operation 4 of b.",
        files=_swapped(draw, 2, draw.rank(range(2))).files,
        truth=Truth(kind=Kind.ORDER_INVERSION, candidates=(0, 1)),
    )


def _swapping_rank_unseen(draw: Draw) -> Case:
    world = draw.world(4, 32)
    culprit = draw.rank(range(world))
    job = _swapped(draw, world, culprit)
    job.unseen(culprit)
    return Case(
        scenario=(
            f"{world} ranks. All that were seen wait in operation 4 of group a. Rank {culprit} left neither dump nor stack."
        ),
        files=job.files,
        truth=unknown_because(f"rank {culprit} was not seen"),
    )


def _train_thread(dump: Dump) -> None:
    for entry in dump["entries"][-1:]:
        entry.update(thread_name="ThreadPoolExec", thread_id="139674295999999")


def _two_threads(draw: Draw) -> Case:
    job = Job(draw, draw.world(4, 16))
    culprit = draw.rank(job.ranks)
    experts = job.group("EXPERT_MODEL_PARALLEL_GROUP", job.ranks)
    sync = job.at(Op.ALL_GATHER, draw.own("update_weights", "rollout.py"), base=job.base[2:])
    job.issue(Op.ALL_GATHER, 4096, group=experts, at=sync, times=draw.number(20, 54))
    train = job.at(Op.REDUCE_SCATTER, draw.own("update_actor", "actor.py"))
    job.issue(Op.REDUCE_SCATTER, 4096, group=experts, ranks=[culprit], at=train, is_done=False)
    job.issue(Op.ALL_GATHER, 4096, group=experts, ranks=job.others(culprit), at=sync, is_done=False)
    job.stand(culprit, *sync)
    job.thread(culprit, "ThreadPoolExecutor-0_0", *train)
    job.edit(culprit, _train_thread)
    return Case(
        scenario=(
            "Weights are synchronised by one thread while another trains, both on the experts' group. At one number rank "
            f"{culprit} recorded a reduce_scatter from the training thread (`update_actor`), the others an all_gather from "
            "`update_weights`."
        ),
        files=job.files,
        truth=differing(culprit, by=Mismatch.OP),
    )


def _two_threads_agree(draw: Draw) -> Case:
    job = Job(draw, draw.world(4, 16))
    experts = job.group("EXPERT_MODEL_PARALLEL_GROUP", job.ranks)
    job.issue(Op.ALL_GATHER, 4096, group=experts, times=5)
    job.issue(Op.REDUCE_SCATTER, 4096, group=experts)
    for rank in job.ranks:
        job.edit(rank, _train_thread)
    return Case(
        scenario="Two threads of every rank issue on one group, in the same order everywhere; all is done.",
        files=job.files,
        truth=HEALTHY,
    )


def _communicators(draw: Draw, count: int) -> Job:
    job = Job(draw, draw.world(4, 16))
    groups = [job.group(name, job.ranks) for name in ("DATA_PARALLEL_GROUP", "TENSOR_MODEL_PARALLEL_GROUP")]
    for group in groups:
        job.issue(Op.ALL_REDUCE, 1024, group=group, times=draw.number(3, 20))
    for group in groups[:count]:
        job.issue(Op.ALL_REDUCE, 1024, group=group, is_done=False)
    return job


def _two_communicators(draw: Draw) -> Case:
    job = _communicators(draw, 2)
    return Case(
        scenario=(
            "Every rank has one operation outstanding in each of two groups, with the same numbers, sizes and call sites "
            "everywhere. Nothing moves."
        ),
        files=job.files,
        truth=Truth(kind=Kind.MULTI_COMM_DEADLOCK, acceptable=(Answer(kind=Kind.COMM_STUCK),)),
    )


def _one_communicator(draw: Draw) -> Case:
    job = _communicators(draw, 1)
    return Case(
        scenario="Every rank waits in the same operation of one group. Nothing moves. Nothing was logged.",
        files=job.files,
        truth=Truth(kind=Kind.COMM_STUCK),
    )


def _communicators_one_unseen(draw: Draw) -> Case:
    job = _communicators(draw, 2)
    job.unseen(draw.rank(job.ranks))
    return Case(
        scenario="All ranks but one, which left nothing, have one operation outstanding in each of two groups.",
        files=job.files,
        truth=unknown_because("one rank was not seen"),
    )


FAMILIES = (
    Family(
        number="C25",
        title="the order of two groups swapped",
        variants=(reported(_one_swaps), near_miss(_one_of_two_swaps), less_seen(_swapping_rank_unseen)),
    ),
    Family(
        number="C26",
        title="two threads on one communicator",
        variants=(reported(_two_threads), near_miss(_two_threads_agree)),
    ),
    Family(
        number="C29",
        title="several communicators in flight",
        variants=(reported(_two_communicators), near_miss(_one_communicator), less_seen(_communicators_one_unseen)),
    ),
)
