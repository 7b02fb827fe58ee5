"""Operations that differ in what they are or carry (C22, C23, C28, C99), and broadcasts that are one apart (C34)."""

from msgspec.structs import replace

from pardbg.watchdog.model.names import Cause, CollectorName, Kind, Mismatch
from pardbg.watchdog.sim.casebook.case import Case, Family, less_seen, near_miss, reported
from pardbg.watchdog.sim.casebook.draw import Draw
from pardbg.watchdog.sim.casebook.job import Job
from pardbg.watchdog.sim.casebook.lines import progress, timeout
from pardbg.watchdog.sim.casebook.rank_zero_only import differing
from pardbg.watchdog.sim.dump import Dump
from pardbg.watchdog.sim.faults.absent import missing
from pardbg.watchdog.sim.instruction import Op
from pardbg.watchdog.sim.truth import HEALTHY, NOT_SURE, Answer, unknown_because

_LOG = CollectorName.RANK_LOG
_HOST = (Cause.USER_CODE, Cause.LEFT_LOOP, Cause.BUSY_LOOP)


def _drop_frames(dump: Dump) -> None:
    for entry in dump["entries"]:
        entry["frames"] = []


def _two_sizes(draw: Draw, few: tuple[int, ...], world: int, sizes: tuple[int, int], *, without: str) -> Job:
    """``few`` wait with one size, the others with another; one of the two sides has no call sites."""
    (size, other), job = sizes, Job(draw, world)
    job.step(3)
    job.issue(Op.ALL_REDUCE, size, ranks=few, is_done=False)
    job.issue(Op.ALL_REDUCE, other, ranks=job.others(*few), is_done=False)
    job.unseen(*job.ranks, dumps=False)
    for rank in few if without == "few" else job.others(*few):
        job.edit(rank, _drop_frames)
    job.dump_name = "nccl_trace_rank_{host}_{rank}".format
    return job


def _first_rank_is_usual(draw: Draw) -> Case:
    few = draw.ranks(2, range(1, 64))
    return Case(
        scenario=(
            "64 ranks. At one sequence number 62 of them wait in an all_reduce of 1025 elements, recorded without call sites, "
            f"and ranks {list(few)} in one of 262144. Files are named by host and rank."
        ),
        files=_two_sizes(draw, few, 64, (262_144, 1025), without="many").files,
        truth=differing(*few, by=Mismatch.SIZE),
    )


def _first_rank_is_odd(draw: Draw) -> Case:
    few = (0, draw.rank(range(1, 64)))
    return Case(
        scenario=(
            f"64 ranks. At one sequence number ranks {list(few)} wait in an all_reduce of 1025 elements, recorded without call "
            "sites; 62 wait in one of 262144."
        ),
        files=_two_sizes(draw, few, 64, (1025, 262_144), without="few").files,
        truth=differing(*few, by=Mismatch.SIZE),
    )


def _even_split(draw: Draw) -> Case:
    few = draw.ranks(16, range(32))
    return Case(
        scenario="32 ranks. Half of them wait in an all_reduce of 1025 elements without call sites, half in one of 262144.",
        files=_two_sizes(draw, few, 32, (1025, 262_144), without="few").files,
        truth=differing(by=Mismatch.SIZE, candidates=tuple(range(32))),
    )


def _lines_of_three(draw: Draw) -> Case:
    job = Job(draw, 4)
    job.has_job_file = False
    seq = draw.number(900, 9_000)
    job.log(3, timeout(3, 3000, seq, "BROADCAST", numel=64) + progress(3, 3000.1, seq, seq + 1, seq - 1))
    job.log(2, timeout(2, 3000.4, seq, "BROADCAST", numel=24_084_544) + progress(2, 3000.5, seq, seq, seq - 1))
    job.log(0, timeout(0, 3000.9, seq + 2, "ALLREDUCE", numel=593_920))
    answers = (Answer(kind=Kind.DESYNC), Answer(kind=Kind.INSUFFICIENT_EVIDENCE))
    return Case(
        scenario=(
            f"Only watchdog lines of a job with four ranks. At {seq} rank 3 waits in a broadcast of 64 elements and rank 2 in "
            f"one of 24084544. Rank 0 waits in an all_reduce at {seq + 2}. Rank 1 says nothing."
        ),
        files=job.files,
        truth=replace(differing(by=Mismatch.SIZE), acceptable=answers),
        is_ended_unsaid=True,
    )


def _lines_that_agree(draw: Draw) -> Case:
    job = Job(draw, 4)
    seq = draw.number(900, 9_000)
    for rank in (0, 2, 3):
        job.log(rank, timeout(rank, 3000 + rank / 10, seq, "BROADCAST", numel=64) + progress(rank, 3001, seq, seq, seq - 1))
    return Case(
        scenario=f"Watchdog lines of ranks 0, 2 and 3 name the same broadcast, {seq}, of 64 elements. Rank 1 says nothing.",
        files=job.files,
        truth=unknown_because("rank 1 was not seen"),
        is_ended_unsaid=True,
    )


def _other_operation(draw: Draw) -> Case:
    world = draw.world(4, 32)
    culprit = draw.rank(range(world))
    job = Job(draw, world, backend=draw.backend)
    job.issue(Op.ALL_REDUCE, 64, times=3)
    job.issue(Op.BROADCAST, 64, ranks=[culprit], is_done=False, root=0)
    job.issue(Op.ALL_REDUCE, 64, ranks=job.others(culprit), is_done=False)
    return Case(
        scenario=(
            f"{world} ranks. At number 4 rank {culprit} waits in a broadcast of 64 elements, all others in an all_reduce of 64."
        ),
        files=job.files,
        truth=differing(culprit, by=Mismatch.OP),
    )


def _other_operation_of_two(draw: Draw) -> Case:
    job = Job(draw, 2, backend=draw.backend)
    job.issue(Op.ALL_REDUCE, 64, times=3)
    job.issue(Op.ALL_GATHER, 6, ranks=[1], dtype="Double", is_done=False)
    job.issue(Op.ALL_REDUCE, 64, ranks=[0], is_done=False)
    return Case(
        scenario="Two ranks: at number 4 one waits in an all_reduce of 64 floats, the other in an all_gather of 6 doubles.",
        files=job.files,
        truth=differing(by=Mismatch.OP, candidates=(0, 1)),
    )


def _one_dump_cut(draw: Draw) -> Case:
    """The one that differs left a dump that is cut off; what it did is not known."""
    case = _other_operation(draw)
    files = dict(case.files)
    (culprit,) = case.truth.culprits
    name = f"nccl_trace_rank_{culprit}"
    files[name] = files[name][: len(files[name]) // 3]
    files = {key: content for key, content in files.items() if key != f"stack_rank{culprit}_s0.json"}
    return Case(
        scenario=(
            f"All ranks but {culprit} wait in one all_reduce. The dump of rank {culprit} is cut off; there is no stack of it."
        ),
        files=files,
        truth=unknown_because("the one that matters was not seen", acceptable=(Answer(kind=Kind.DESYNC, culprits=(culprit,)),)),
    )


def _broadcast_apart(draw: Draw) -> tuple[Job, int]:
    job = Job(draw, draw.world(4, 16))
    group = job.group("vllm_tp", job.ranks)
    at = job.at(Op.BROADCAST, draw.own("all_to_all_by_broadcasts", "communicator.py"))
    job.issue(Op.BROADCAST, 7168, group=group, at=at, times=draw.number(5, 20), root=0)
    job.issue(Op.BROADCAST, 7168, group=group, ranks=[0], at=at, root=0)
    job.issue(Op.BROADCAST, 7168, group=group, ranks=job.others(0), at=at, root=0, is_done=False)
    job.issue(Op.BROADCAST, 7168, group=group, at=at, root=1 % len(job.ranks), is_done=False)
    return job, 0


def _root_is_ahead(draw: Draw) -> Case:
    job, _ = _broadcast_apart(draw)
    return Case(
        scenario=(
            f"{len(job.ranks)} ranks build an all-to-all out of broadcasts. Rank 0, root of broadcast k, has completed it and "
            "waits in k+1; all others wait in k and have issued k+1 as well. Sizes and call sites agree."
        ),
        files=job.files,
        truth=replace(unknown_because("a root may finish first"), acceptable=(Answer(kind=Kind.COMM_STUCK),), exit_code=3),
    )


def _one_never_came(draw: Draw) -> Case:
    job = Job(draw, draw.world(4, 16))
    group = job.group("vllm_tp", job.ranks)
    late = draw.rank(job.ranks[1:])
    at = job.at(Op.BROADCAST, draw.own("all_to_all_by_broadcasts", "communicator.py"))
    job.issue(Op.BROADCAST, 7168, group=group, at=at, times=5, root=0)
    job.issue(Op.BROADCAST, 7168, group=group, ranks=[0], at=at, root=0)
    job.issue(Op.BROADCAST, 7168, group=group, ranks=job.others(0, late), at=at, root=0)
    job.issue(Op.BROADCAST, 7168, group=group, ranks=job.others(late), at=at, root=late, is_done=False)
    job.stand(late, draw.own("schedule", "scheduler.py"), *job.base[1:])
    causes = tuple(Answer(kind=Kind.MISSING_PARTICIPANT, cause=cause, culprits=(late,)) for cause in _HOST)
    return Case(
        scenario=(
            f"All but rank {late} wait in broadcast k+1, whose root is rank {late}; it issued neither k nor k+1: it is in the "
            "scheduler."
        ),
        files=job.files,
        truth=replace(missing(late, cause=Cause.LEFT_LOOP), acceptable=causes),
    )


def _two_status_lines(draw: Draw) -> Case:
    job = Job(draw, 4)
    seq = draw.number(2_000, 9_000)
    for rank, number in ((0, seq + 1), (3, seq)):
        lines = timeout(rank, 3000 + rank, number, "BROADCAST", numel=7168, group="4")
        job.log(rank, lines + progress(rank, 3001 + rank, number, seq + 735, number - 1, group="4"))
    return Case(
        scenario=(
            f"Watchdog lines only, group 4: rank 0 timed out in broadcast {seq + 1} (completed {seq}), rank 3 in broadcast "
            f"{seq} (completed {seq - 1}). Both had enqueued {seq + 735}; sizes agree. Ranks 1 and 2 say nothing."
        ),
        files=job.files,
        truth=replace(unknown_because("a root may finish first"), acceptable=(Answer(kind=Kind.COMM_STUCK), NOT_SURE)),
        is_ended_unsaid=True,
    )


def _rooted_types(draw: Draw, *, has_fault: bool) -> tuple[Job, int]:
    job = Job(draw, draw.world(4, 16))
    culprit = draw.rank(job.ranks[1:])
    for _ in range(4):
        job.issue(Op.BROADCAST, 2048, ranks=[0], root=0, dtype="Float")
        job.issue(Op.BROADCAST, 2048, ranks=job.others(0), root=0, dtype="BFloat16")
        job.issue(Op.ALL_REDUCE, 64)
    if has_fault:
        job.issue(Op.ALL_REDUCE, 64, ranks=job.others(culprit), is_done=False)
    job.unseen(*job.ranks, dumps=False)
    return job, culprit


def _root_of_another_type(draw: Draw) -> Case:
    job, _ = _rooted_types(draw, has_fault=False)
    return Case(
        scenario="Rank 0 broadcasts floats, the others record what they receive as bfloat16. Everything is done.",
        files=job.files,
        truth=HEALTHY,
    )


def _root_of_another_type_and_missing(draw: Draw) -> Case:
    job, culprit = _rooted_types(draw, has_fault=True)
    return Case(
        scenario=(
            f"Broadcasts that are done were recorded with another type on their root. All ranks but {culprit} wait in a later "
            f"all_reduce; rank {culprit} has nothing outstanding."
        ),
        files=job.files,
        truth=missing(culprit),
    )


FAMILIES = (
    Family(
        number="C22",
        title="the first rank is no reference",
        variants=(reported(_first_rank_is_usual), near_miss(_first_rank_is_odd), near_miss(_even_split)),
    ),
    Family(
        number="C23",
        title="broadcasts out of step, by watchdog lines",
        variants=(reported(_lines_of_three, _LOG), near_miss(_lines_that_agree, _LOG)),
    ),
    Family(
        number="C28",
        title="another operation at the same number",
        variants=(reported(_other_operation), near_miss(_other_operation_of_two), less_seen(_one_dump_cut)),
    ),
    Family(
        number="C34",
        title="an all-to-all of broadcasts, one apart",
        variants=(reported(_root_is_ahead), near_miss(_one_never_came), less_seen(_two_status_lines, _LOG)),
    ),
    Family(
        number="C99",
        title="a root's type differs and is legal",
        variants=(reported(_root_of_another_type), near_miss(_root_of_another_type_and_missing)),
    ),
)
