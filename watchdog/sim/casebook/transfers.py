"""Sends and receives: batches, first uses, and what recorders say of them (C31, C32, C97, C98)."""

from pardbg.watchdog.model.names import Cause, Kind
from pardbg.watchdog.sim.casebook.case import Case, Family, less_seen, near_miss, reported
from pardbg.watchdog.sim.casebook.draw import Draw
from pardbg.watchdog.sim.casebook.job import Job
from pardbg.watchdog.sim.casebook.places import LOADER, RPC_WAIT, native
from pardbg.watchdog.sim.faults.absent import missing
from pardbg.watchdog.sim.instruction import Op
from pardbg.watchdog.sim.truth import HEALTHY, NOT_SURE, Answer, Truth, unknown_because


def _skip_connection(draw: Draw) -> tuple[Job, tuple[int, int, int]]:
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
            f"{target} in one batch of receives from {source} and {middle}; rank {middle} waits in a receive from {source}, "
            f"after which it would send to {target}."
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
            f"receives from both. Rank {stages[1]} left nothing."
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
            f"receive: it waits in an RPC for a control message that rank {sender} sends after this send."
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
            f"Batched transfers that are done are still recorded as scheduled. All ranks but {culprit} wait in a later "
            f"all_reduce; rank {culprit} waits for its data loader."
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
            "Both wait. The others wait in an all_reduce."
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
            f"Rank {left} waits in a batch of a send to and a receive from rank {left + 1}, which issued nothing: it waits for "
            "its data loader. The others wait in an all_reduce."
        ),
        files=job.files,
        truth=missing(left + 1, cause=Cause.DATA_LOADING),
    )


FAMILIES = (
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
