"""Groups entered in other orders (C25, C26), communicators that block each other (C29), and transfers (C31, C32, C97, C98)."""

from pardbg.watchdog.model.names import Cause, Kind, Mismatch
from pardbg.watchdog.sim.casebook.case import Case, Family, less_seen, near_miss, reported
from pardbg.watchdog.sim.casebook.draw import Draw
from pardbg.watchdog.sim.casebook.job import Job
from pardbg.watchdog.sim.casebook.places import LOADER, RPC_WAIT, native
from pardbg.watchdog.sim.casebook.rank_zero_only import differing
from pardbg.watchdog.sim.dump import Dump
from pardbg.watchdog.sim.faults.absent import missing
from pardbg.watchdog.sim.instruction import Op
from pardbg.watchdog.sim.truth import HEALTHY, NOT_SURE, Answer, Truth, unknown_because


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
            "the others "
            "wait in 4 of a and have not issued 4 of b. Before, everybody used a, then b."
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
            f"{culprit} "
            "recorded a reduce_scatter from the training thread (`update_actor`), the others an all_gather from "
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
            "everywhere. "
            "Nothing moves."
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


def _skip_connection(draw: Draw, *, seen: bool = True) -> tuple[Job, tuple[int, int, int]]:
    job = Job(draw, draw.world(4, 8))
    first = draw.number(0, len(job.ranks) - 3)
    source, middle, target = first, first + 1, first + 2
    job.step(2)
    job.transfer(source, (Op.SEND, middle), (Op.SEND, target), is_done=False)
    job.transfer(target, (Op.RECV, source), (Op.RECV, middle), is_done=False)
    job.transfer(middle, (Op.RECV, source), is_done=False)
    idle = job.others(source, middle, target)
    job.issue(Op.ALL_REDUCE, 4, ranks=idle, is_done=False)
    return job, (source, middle, target)


def _batched_skip(draw: Draw) -> Case:
    job, stages = _skip_connection(draw)
    source, middle, target = stages
    return Case(
        scenario=(
            f"A pipeline with a skip connection. Rank {source} waits in one batch of sends to {middle} and {target}; rank "
            f"{target} in "
            f"one batch of receives from {source} and {middle}; rank {middle} waits in a receive from {source}, after which "
            "it would "
            f"send to {target}."
        ),
        files=job.files,
        truth=Truth(kind=Kind.P2P_DEADLOCK, culprits=stages, acceptable=(NOT_SURE, Answer(kind=Kind.P2P_DEADLOCK))),
    )


def _batched_skip_middle_unseen(draw: Draw) -> Case:
    job, stages = _skip_connection(draw)
    job.unseen(stages[1])
    return Case(
        scenario=(
            f"Rank {stages[0]} waits in one batch of sends to {stages[1]} and {stages[2]}; rank {stages[2]} in one batch of "
            "receives "
            f"from both. Rank {stages[1]} left nothing."
        ),
        files=job.files,
        truth=unknown_because("the rank between was not seen"),
    )


def _first_transfer(draw: Draw) -> tuple[Job, int, int]:
    job = Job(draw, draw.world(4, 8))
    pipe = job.group("PIPELINE_MODEL_PARALLEL_GROUP", job.ranks)
    sender = draw.number(0, len(job.ranks) - 2)
    job.step(2)
    job.transfer(sender, (Op.SEND, sender + 1), is_done=False, group=pipe)
    job.issue(Op.ALL_REDUCE, 4, ranks=job.others(sender, sender + 1), is_done=False)
    return job, sender, sender + 1


def _peer_waits_for_control(draw: Draw) -> Case:
    job, sender, receiver = _first_transfer(draw)
    job.stand(receiver, *RPC_WAIT, draw.own("await_control_message", "pipeline.py"), *job.base[1:])
    job.stand(sender, native("ncclTransportP2pConnect", "libnccl.so.2"), *job.at(Op.SEND), is_native=True)
    return Case(
        scenario=(
            f"Rank {sender} is in its first send to rank {receiver}; natively it connects. Rank {receiver} has not posted a "
            "receive: it "
            f"waits in an RPC for a control message that rank {sender} sends after this send."
        ),
        files=job.files,
        truth=Truth(kind=Kind.COMM_STUCK, cause=Cause.FOREIGN_COMM, acceptable=(NOT_SURE, Answer(kind=Kind.INIT_STUCK))),
    )


def _peer_loads_data(draw: Draw) -> Case:
    job, sender, receiver = _first_transfer(draw)
    job.stand(receiver, *LOADER, *job.base)
    return Case(
        scenario=(
            f"Rank {sender} is in a send to rank {receiver}. Rank {receiver} has not posted a receive: it waits for its data "
            "loader."
        ),
        files=job.files,
        truth=missing(receiver, cause=Cause.DATA_LOADING),
    )


def _peer_unseen(draw: Draw) -> Case:
    job, sender, receiver = _first_transfer(draw)
    job.unseen(receiver)
    return Case(
        scenario=f"Rank {sender} is in a send to rank {receiver}, of which nothing is known. The others wait in an all_reduce.",
        files=job.files,
        truth=unknown_because("the peer was not seen"),
    )


def _exchange(job: Job, *, times: int) -> None:
    """Every rank sends to the next and receives from the one before, launched together: all members stay `scheduled`."""
    size = len(job.ranks)
    for _ in range(times):
        for rank in job.ranks:
            job.transfer(rank, (Op.SEND, (rank + 1) % size), (Op.RECV, (rank - 1) % size))


def _done_but_scheduled(draw: Draw) -> Case:
    job = Job(draw, draw.world(4, 16))
    _exchange(job, times=3)
    job.step(1)
    return Case(
        scenario=(
            "Transfers that are done are still recorded as scheduled, as NCCL's batched ones are. Later operations are done."
        ),
        files=job.files,
        truth=HEALTHY,
    )


def _done_but_scheduled_and_missing(draw: Draw) -> Case:
    job = Job(draw, draw.world(4, 16))
    culprit = draw.rank(job.ranks)
    _exchange(job, times=2)
    job.step(1, ranks=job.ranks)
    job.issue(Op.ALL_REDUCE, 8, ranks=job.others(culprit), is_done=False)
    job.stand(culprit, *LOADER, *job.base)
    return Case(
        scenario=(
            "Batched transfers that are done are still recorded as scheduled. All ranks but "
            f"{culprit} wait in a later all_reduce; rank {culprit} waits for its data loader."
        ),
        files=job.files,
        truth=missing(culprit, cause=Cause.DATA_LOADING),
    )


def _both_send_first(draw: Draw) -> Case:
    job = Job(draw, draw.world(4, 8))
    left = draw.number(0, len(job.ranks) - 2)
    pair = (left, left + 1)
    pipe = job.group("PIPELINE_MODEL_PARALLEL_GROUP", job.ranks)
    job.step(2)
    for rank, peer in (pair, pair[::-1]):
        job.transfer(rank, (Op.SEND, peer), group=pipe, is_done=False)
        job.transfer(rank, (Op.RECV, peer), group=pipe, is_done=False)
    job.issue(Op.ALL_REDUCE, 4, ranks=job.others(*pair), is_done=False)
    return Case(
        scenario=(
            f"Ranks {pair[0]} and {pair[1]} each issued a send to the other, one by one and not batched, then the receive. "
            "Both wait. "
            "The others wait in an all_reduce."
        ),
        files=job.files,
        truth=Truth(kind=Kind.P2P_DEADLOCK, culprits=pair, victims_exclude=pair),
    )


def _last_of_a_batch(draw: Draw) -> Case:
    """The receive is the last member of the batch; its peer is the source, not the rank itself."""
    job = Job(draw, draw.world(4, 8))
    left = draw.number(0, len(job.ranks) - 2)
    job.step(2)
    job.transfer(left, (Op.SEND, left + 1), (Op.RECV, left + 1), is_done=False)
    job.issue(Op.ALL_REDUCE, 4, ranks=job.others(left, left + 1), is_done=False)
    job.stand(left + 1, *LOADER, *job.base)
    return Case(
        scenario=(
            f"Rank {left} waits in a batch of a send to and a receive from rank {left + 1}, which issued nothing: it waits "
            "for its data "
            "loader. The others wait in an all_reduce."
        ),
        files=job.files,
        truth=missing(left + 1, cause=Cause.DATA_LOADING),
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
    Family(
        number="C31",
        title="skip connection with batched transfers",
        variants=(reported(_batched_skip), near_miss(_last_of_a_batch), less_seen(_batched_skip_middle_unseen)),
    ),
    Family(
        number="C32",
        title="the first transfer needs its peer",
        variants=(reported(_peer_waits_for_control), near_miss(_peer_loads_data), less_seen(_peer_unseen)),
    ),
    Family(
        number="C97",
        title="transfers stay scheduled",
        variants=(reported(_done_but_scheduled), near_miss(_done_but_scheduled_and_missing)),
    ),
    Family(
        number="C98",
        title="the last entry of a batch",
        variants=(reported(_both_send_first), near_miss(_last_of_a_batch)),
    ),
)
