"""Ranks that have left the training loop while the others are in its next step (C01, C02), and the idle majority (C14)."""

from msgspec.structs import replace

from pardbg.watchdog.model.names import Cause, Kind
from pardbg.watchdog.sim.casebook.case import Case, Family, less_seen, near_miss, reported
from pardbg.watchdog.sim.casebook.draw import Draw
from pardbg.watchdog.sim.casebook.job import Job
from pardbg.watchdog.sim.casebook.places import LOADER, standard
from pardbg.watchdog.sim.faults.absent import missing
from pardbg.watchdog.sim.instruction import Op
from pardbg.watchdog.sim.truth import Answer, Truth, unknown_because

_SLEEP = standard("sleep", "time.py", 1)


def _uneven(draw: Draw) -> tuple[Job, int]:
    """All but one rank wait in the gradients' all_reduce of one more step."""
    job = Job(draw, draw.world(), backend=draw.backend)
    culprit = draw.rank(job.ranks)
    job.step(draw.number(2, 8))
    job.issue(Op.ALL_REDUCE, 4_194_304, ranks=job.others(culprit), is_done=False)
    return job, culprit


def _one_batch_less(draw: Draw) -> Case:
    job, culprit = _uneven(draw)
    job.stand(culprit, draw.own("write_metrics", "metrics.py"), draw.own("on_epoch_end", "hooks.py"), *job.base[2:])
    return Case(
        scenario=(
            f"{len(job.ranks)} ranks train with DDP on {draw.backend}. Every rank but {culprit} waits in an all_reduce of the "
            f"training step. Rank {culprit} has finished the all_reduce before, has nothing outstanding, and its stack is in "
            "`on_epoch_end`, which `main` calls after `train` has returned."
        ),
        files=job.files,
        truth=missing(culprit, cause=Cause.LEFT_LOOP),
    )


def _still_in_the_loop(draw: Draw) -> Case:
    job, culprit = _uneven(draw)
    job.stand(culprit, *LOADER, *job.base[1:])
    return Case(
        scenario=(
            f"Every rank but {culprit} waits in an all_reduce of the training step. Rank {culprit} has finished the one "
            "before; its stack is in the iterator of the data loader, called from `train`."
        ),
        files=job.files,
        truth=missing(culprit, cause=Cause.DATA_LOADING),
    )


def _stack_not_taken(draw: Draw) -> Case:
    job, culprit = _uneven(draw)
    job.unseen(culprit, dumps=False)
    return Case(
        scenario=(
            f"Every rank but {culprit} waits in an all_reduce of the training step. The flight recorder of rank {culprit} "
            "shows nothing outstanding, and the same operations before. Nobody took its stack."
        ),
        files=job.files,
        truth=missing(culprit),
    )


def _nothing_of_it(draw: Draw) -> Case:
    job, culprit = _uneven(draw)
    job.unseen(culprit)
    return Case(
        scenario=f"Every rank but {culprit} waits in an all_reduce. Of rank {culprit} there is neither a dump nor a stack.",
        files=job.files,
        truth=unknown_because(f"rank {culprit} was not seen"),
    )


def _stopped_early(draw: Draw) -> tuple[Job, tuple[int, ...]]:
    job = Job(draw, draw.world(4, 16), backend=draw.backend)
    gone = draw.ranks(draw.number(1, len(job.ranks) - 2), job.ranks)
    job.step(7)
    job.issue(Op.ALL_REDUCE, 4_194_304, ranks=job.others(*gone), is_done=False)
    return job, gone


def _exited_cleanly(draw: Draw) -> Case:
    job, gone = _stopped_early(draw)
    for rank in gone:
        job.end(rank, 0)
    return Case(
        scenario=(
            f"Of {len(job.ranks)} ranks the processes of {list(gone)} have ended with exit code 0. The others live and wait in "
            "the all_reduce of step 8. Early stopping is switched on; every rank decides by its own loss."
        ),
        files=job.files,
        truth=Truth(kind=Kind.DEAD_RANK, cause=Cause.EXITED, culprits=gone, victims_exclude=gone),
    )


def _evaluates_instead(draw: Draw) -> Case:
    job, gone = _stopped_early(draw)
    for rank in gone:
        job.stand(rank, _SLEEP, draw.own("final_report", "report.py"), *job.base[2:])
    return Case(
        scenario=(
            f"Ranks {list(gone)} of {len(job.ranks)} live, have nothing outstanding, and stand in `final_report`, which `main` "
            "calls after `train` has returned. The others wait in the all_reduce of step 8."
        ),
        files=job.files,
        truth=replace(missing(*gone, cause=Cause.LEFT_LOOP), acceptable=_hosts(gone, Cause.SLEEPING)),
    )


def _ends_unknown(draw: Draw) -> Case:
    job, gone = _stopped_early(draw)
    job.unseen(*gone)
    return Case(
        scenario=(
            f"Ranks {list(gone)} left neither dump nor stack; their processes were alive. The others wait in an all_reduce."
        ),
        files=job.files,
        truth=unknown_because("those the others wait for were not seen"),
    )


def _hosts(ranks: tuple[int, ...], *causes: Cause) -> tuple[Answer, ...]:
    return tuple(Answer(kind=Kind.MISSING_PARTICIPANT, cause=cause, culprits=ranks) for cause in causes)


def _experts(draw: Draw) -> tuple[Job, int]:
    job = Job(draw, draw.world(4, 32))
    experts = job.group("EXPERT_MODEL_PARALLEL_GROUP", job.ranks)
    busy = draw.rank(job.ranks)
    job.issue(Op.ALL_REDUCE, 8)
    job.issue(Op.ALL_TO_ALL, 7168, group=experts, times=draw.number(2, 9))
    job.issue(Op.ALL_TO_ALL, 7168, group=experts, ranks=[busy], is_done=False)
    return job, busy


def _idle_majority(draw: Draw) -> Case:
    job, busy = _experts(draw)
    idle = job.others(busy)
    wait, schedule = draw.own("wait_for_request", "serve/scheduler.py"), draw.own("schedule", "serve/scheduler.py")
    for rank in idle:
        job.stand(rank, wait, schedule, *job.base[2:])
    return Case(
        scenario=(
            f"{len(job.ranks)} ranks serve a mixture-of-experts model; each takes its own requests. Rank {busy} has tokens and "
            "waits in the experts' all_to_all. All others are back in the scheduler and wait for requests; they have nothing "
            "outstanding."
        ),
        files=job.files,
        truth=replace(
            missing(*idle, cause=Cause.LEFT_LOOP),
            acceptable=_hosts(idle, Cause.USER_CODE, Cause.NETWORK_IO, Cause.SLEEPING, Cause.LEFT_LOOP),
        ),
    )


def _all_but_one_early(draw: Draw) -> Case:
    """The rank in the all_to_all is one of those who should be there; the majority waits in the same operation."""
    job = Job(draw, draw.world(4, 32))
    experts = job.group("EXPERT_MODEL_PARALLEL_GROUP", job.ranks)
    late = draw.rank(job.ranks)
    job.issue(Op.ALL_REDUCE, 8)
    job.issue(Op.ALL_TO_ALL, 7168, group=experts, times=3)
    job.issue(Op.ALL_TO_ALL, 7168, group=experts, ranks=job.others(late), is_done=False)
    job.stand(
        late, draw.own("wait_for_request", "serve/scheduler.py"), draw.own("schedule", "serve/scheduler.py"), *job.base[2:]
    )
    causes = (Cause.USER_CODE, Cause.NETWORK_IO, Cause.SLEEPING, Cause.LEFT_LOOP)
    return Case(
        scenario=(
            f"All ranks but {late} wait in the experts' all_to_all. Rank {late} is in the scheduler and waits for requests."
        ),
        files=job.files,
        truth=replace(missing(late, cause=Cause.LEFT_LOOP), acceptable=_hosts((late,), *causes)),
    )


def _idle_ranks_not_seen(draw: Draw) -> Case:
    job, busy = _experts(draw)
    job.unseen(*job.others(busy))
    return Case(
        scenario=(
            f"Rank {busy} waits in the experts' all_to_all. The watchdogs of the idle ranks dumped nothing; no stacks were "
            "taken."
        ),
        files=job.files,
        truth=unknown_because("only the victim was seen"),
    )


FAMILIES = (
    Family(
        number="C01",
        title="uneven number of batches",
        variants=(
            reported(_one_batch_less),
            near_miss(_still_in_the_loop),
            less_seen(_stack_not_taken),
            less_seen(_nothing_of_it),
        ),
    ),
    Family(
        number="C02",
        title="early stop on some ranks only",
        variants=(reported(_exited_cleanly), near_miss(_evaluates_instead), less_seen(_ends_unknown)),
    ),
    Family(
        number="C14",
        title="idle ranks return early, the experts' all_to_all waits",
        variants=(reported(_idle_majority), near_miss(_all_but_one_early), less_seen(_idle_ranks_not_seen)),
    ),
)
