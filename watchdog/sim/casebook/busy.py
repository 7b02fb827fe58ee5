"""One rank is busy on its host, and moves or does not (C43, C44, C46, C47, C106)."""

from msgspec.structs import replace

from pardbg.watchdog.model.names import Cause, CollectorName, Kind
from pardbg.watchdog.sim.casebook.case import Case, Family, less_seen, near_miss, reported
from pardbg.watchdog.sim.casebook.compiling import slow
from pardbg.watchdog.sim.casebook.draw import Draw
from pardbg.watchdog.sim.casebook.job import Job
from pardbg.watchdog.sim.casebook.killed import restoring
from pardbg.watchdog.sim.casebook.places import DATASET_MAP, LOADER, SAVE, STORE_GET, standard
from pardbg.watchdog.sim.faults.absent import missing
from pardbg.watchdog.sim.instruction import Op
from pardbg.watchdog.sim.truth import HEALTHY, NOT_SURE, Answer, Truth, unknown_because

_LOG = CollectorName.RANK_LOG


def _reads_on(draw: Draw) -> Case:
    job, late = restoring(draw, moved=draw.number(10**7, 10**10))
    return Case(
        scenario=(
            f"All ranks but {late} wait in the barrier behind the restore of a checkpoint. Rank {late} is in `torch.load`; in "
            "the minute between two looks it read more bytes. Nothing was logged for hours."
        ),
        files=job.files,
        truth=slow(late, cause=Cause.CHECKPOINT_IO),
    )


def _reads_nothing(draw: Draw) -> Case:
    job, late = restoring(draw, moved=0)
    return Case(
        scenario=(
            f"All ranks but {late} wait in the barrier behind the restore of a checkpoint. Rank {late} is in `torch.load`; in "
            "the minute between two looks it read nothing."
        ),
        files=job.files,
        truth=missing(late, cause=Cause.CHECKPOINT_IO),
    )


def _read_once(draw: Draw) -> Case:
    job, late = restoring(draw, moved=None)
    return Case(
        scenario=(
            f"All ranks but {late} wait in the barrier behind a restore. Rank {late} is in `torch.load`; it was looked at once."
        ),
        files=job.files,
        truth=missing(late, cause=Cause.CHECKPOINT_IO),
    )


def _saving(draw: Draw, *, moved: int | None) -> Job:
    job = Job(draw, draw.world(4, 32), backend="gloo")
    job.step(draw.number(3, 9))
    at = job.at(Op.ALL_REDUCE, draw.own("wait_for_save", "checkpoint.py"), base=job.base[1:])
    job.issue(Op.ALL_REDUCE, 1, ranks=job.others(0), at=at, is_done=False)
    job.stand(0, *SAVE, draw.own("consolidate", "checkpoint.py"), *job.base[1:])
    if moved is not None:
        for rank in job.others(0):
            job.look(rank)
        job.look(0, moved_bytes=moved)
    return job


def _save_moves(draw: Draw) -> Case:
    return Case(
        scenario=(
            "Rank 0 consolidates a checkpoint: it is in `torch.save` and wrote more bytes between two looks. The others wait "
            "in an all_reduce of one element, called from `wait_for_save`."
        ),
        files=_saving(draw, moved=draw.number(10**7, 10**10)).files,
        truth=slow(0, cause=Cause.CHECKPOINT_IO),
    )


def _save_stands(draw: Draw) -> Case:
    return Case(
        scenario=(
            "Rank 0 is in `torch.save` at both looks and wrote nothing in between. The others wait in an all_reduce of one "
            "element."
        ),
        files=_saving(draw, moved=0).files,
        truth=missing(0, cause=Cause.CHECKPOINT_IO),
    )


def _save_once(draw: Draw) -> Case:
    return Case(
        scenario="Rank 0 was seen once, in `torch.save`. The others wait in an all_reduce of one element.",
        files=_saving(draw, moved=None).files,
        truth=missing(0, cause=Cause.CHECKPOINT_IO),
    )


_NO_ID = (
    "[{rank}] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d key-value store by key '0', but "
    "store->get('0') got error: Socket Timeout"
)


def _preparing(draw: Draw) -> Job:
    job = Job(draw, draw.world(4, 16))
    first_process = draw.own("main_process_first", "data/loader.py")
    for rank in job.ranks[1:]:
        job.log(rank, f"[rank{rank}]: torch.distributed.DistBackendError: {_NO_ID.format(rank=rank)}\n")
        job.stand(rank, *job.at(Op.BARRIER, first_process, base=job.base[2:]))
    return job


def _tokenising(draw: Draw) -> Case:
    job = _preparing(draw)
    job.stand(
        0,
        draw.own("tokenize", "data/template.py"),
        *DATASET_MAP,
        draw.own("get_dataset", "data/loader.py"),
        *job.base[2:],
        is_active=True,
    )
    answers = (
        Answer(kind=Kind.MISSING_PARTICIPANT, cause=Cause.DATA_LOADING, culprits=(0,)),
        Answer(kind=Kind.SLOW_PHASE, cause=Cause.DATA_LOADING),
        Answer(kind=Kind.INIT_STUCK, culprits=(0,)),
    )
    return Case(
        scenario=(
            "After half an hour the ranks but 0 log that they could not get NCCL's id from rank 0: the store's socket timed "
            "out. They stand in a barrier below `main_process_first`. Rank 0 is tokenising, in `datasets.map`; no operation "
            "was ever completed."
        ),
        files=job.files,
        truth=replace(missing(0), kind=Kind.INIT_STUCK, acceptable=answers),
        is_ended_unsaid=True,
    )


def _nobody_prepares(draw: Draw) -> Case:
    job = _preparing(draw)
    job.stand(0, *STORE_GET, *job.base[2:])
    return Case(
        scenario=(
            "The ranks but 0 log that they could not get NCCL's id from rank 0 and stand in a barrier. Rank 0 stands in the "
            "store's barrier of `init_process_group`."
        ),
        files=job.files,
        truth=Truth(kind=Kind.INIT_STUCK, acceptable=(NOT_SURE, Answer(kind=Kind.INIT_STUCK, culprits=(0,)))),
        is_ended_unsaid=True,
    )


def _rank_zero_unseen(draw: Draw) -> Case:
    job = _preparing(draw)
    return Case(
        scenario=(
            "The ranks but 0 log that they could not get NCCL's id from rank 0 and stand in a barrier. Of rank 0 nothing is "
            "known."
        ),
        files=job.files,
        truth=unknown_because("rank 0 was not seen", acceptable=(Answer(kind=Kind.INIT_STUCK),)),
        is_ended_unsaid=True,
    )


def _forked(draw: Draw, *, moved: int | None) -> tuple[Job, int]:
    job = Job(draw, draw.world(4, 16), backend="gloo")
    culprit = draw.rank(job.ranks)
    job.step(2)
    job.issue(Op.ALL_REDUCE, 4_194_304, ranks=job.others(culprit), is_done=False)
    job.stand(culprit, *LOADER, *job.base)
    lock = standard("__enter__", "threading.py", 243)
    job.stand(
        culprit,
        lock,
        draw.own("tokenize", "data/transform.py"),
        draw.own("__getitem__", "data/dataset.py"),
        child="pt_data_worker",
    )
    if moved is not None:
        for rank in job.others(culprit):
            job.look(rank)
        job.look(culprit, moved_bytes=moved)
    return job, culprit


def _worker_in_a_lock(draw: Draw) -> Case:
    job, culprit = _forked(draw, moved=0)
    return Case(
        scenario=(
            f"Rank {culprit}'s main thread waits for its data loader; the loader's worker, forked after threads were started, "
            "stands in a lock inside the tokenizer. Nothing moved between two looks. The others wait in an all_reduce."
        ),
        files=job.files,
        truth=missing(culprit, cause=Cause.DATA_LOADING),
    )


def _worker_reads(draw: Draw) -> Case:
    job, culprit = _forked(draw, moved=draw.number(10**6, 10**9))
    return Case(
        scenario=(
            f"Rank {culprit}'s main thread waits for its data loader. Between two looks it and its workers read more bytes. "
            "The others wait in an all_reduce."
        ),
        files=job.files,
        truth=slow(culprit, cause=Cause.DATA_LOADING),
    )


def _worker_unseen(draw: Draw) -> Case:
    job, culprit = _forked(draw, moved=None)
    job.recorder_off(culprit)
    return Case(
        scenario=(
            f"Rank {culprit}'s recorder is off; its stack, taken once, waits for the data loader. The others wait in an "
            "all_reduce."
        ),
        files=job.files,
        truth=missing(culprit, cause=Cause.DATA_LOADING),
    )


def _evaluation(draw: Draw, *, moved: int) -> tuple[Job, int]:
    job = Job(draw, draw.world(4, 16), backend="gloo")
    busy = draw.rank(job.ranks)
    job.step(4)
    job.issue(Op.BARRIER, ranks=job.others(busy), at=job.at(Op.BARRIER, draw.own("after_eval", "evaluate.py")), is_done=False)
    job.stand(busy, *LOADER, draw.own("evaluate", "evaluate.py"), *job.base[2:])
    for rank in job.others(busy):
        job.look(rank, seconds_apart=30.0)
    job.look(busy, seconds_apart=30.0, moved_bytes=moved)
    return job, busy


def _evaluates(draw: Draw) -> Case:
    job, busy = _evaluation(draw, moved=draw.number(10**6, 10**9))
    return Case(
        scenario=(
            f"Twelve minutes into an evaluation all ranks but {busy} wait in the barrier behind it. Rank {busy} evaluates: it "
            "waits for its data loader, and read more bytes between two looks."
        ),
        files=job.files,
        truth=slow(busy, cause=Cause.DATA_LOADING),
    )


def _evaluation_stands(draw: Draw) -> Case:
    job, busy = _evaluation(draw, moved=0)
    return Case(
        scenario=(
            f"Twelve minutes into an evaluation all ranks but {busy} wait in the barrier behind it. Rank {busy} waits for its "
            "data loader at both looks, and nothing was read in between."
        ),
        files=job.files,
        truth=missing(busy, cause=Cause.DATA_LOADING),
    )


def _all_done(draw: Draw) -> Case:
    job = Job(draw, draw.world(4, 16), backend=draw.backend)
    job.step(4)
    job.unseen(*job.ranks, dumps=False)
    return Case(scenario="Nothing is outstanding on any rank.", files=job.files, truth=HEALTHY)


FAMILIES = (
    Family(
        number="C43",
        title="a slow read is no deadlock",
        variants=(reported(_reads_on), near_miss(_reads_nothing), less_seen(_read_once)),
    ),
    Family(
        number="C44",
        title="a consolidation outlives the timeout",
        variants=(reported(_save_moves), near_miss(_save_stands), less_seen(_save_once)),
    ),
    Family(
        number="C46",
        title="preprocessing outlives the store's timeout",
        variants=(reported(_tokenising, _LOG), near_miss(_nobody_prepares, _LOG), less_seen(_rank_zero_unseen, _LOG)),
    ),
    Family(
        number="C47",
        title="fork after threads",
        variants=(reported(_worker_in_a_lock), near_miss(_worker_reads), less_seen(_worker_unseen)),
    ),
    Family(
        number="C106",
        title="an evaluation is no hang",
        variants=(reported(_evaluates), near_miss(_evaluation_stands), near_miss(_all_done)),
    ),
)
