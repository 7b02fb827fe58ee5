"""What looking at processes and libraries gets wrong: py-spy (C107 to C109) and NCCL's own monitor (C105)."""

from collections.abc import Mapping

from msgspec.structs import replace

from pardbg.watchdog.model.names import Cause, CollectorName, Kind, Status
from pardbg.watchdog.sim.casebook.case import Case, Family, less_seen, near_miss, reported
from pardbg.watchdog.sim.casebook.draw import Draw
from pardbg.watchdog.sim.casebook.job import Job
from pardbg.watchdog.sim.casebook.places import LOADER, standard
from pardbg.watchdog.sim.faults.absent import missing
from pardbg.watchdog.sim.instruction import Op
from pardbg.watchdog.sim.truth import NOT_SURE, Answer, Truth, unknown_because

_RAS = CollectorName.RAS


def _late(draw: Draw, *, backend: str = "nccl") -> tuple[Job, int]:
    job = Job(draw, draw.world(4, 16), backend=backend)
    culprit = draw.rank(job.ranks)
    job.step(5)
    job.issue(Op.ALL_REDUCE, 1024, ranks=job.others(culprit), is_done=False)
    return job, culprit


def _left_stopped(draw: Draw) -> Case:
    job, culprit = _late(draw)
    job.end(culprit, state="T")
    return Case(
        scenario=(
            f"A profiler was killed while it looked at rank {culprit}: the process is in state T. The others wait in an "
            "all_reduce that it has not entered."
        ),
        files=job.files,
        truth=missing(culprit, cause=Cause.STOPPED),
    )


def _still_traced(draw: Draw) -> Case:
    job, culprit = _late(draw)
    job.end(culprit, state="t")
    return Case(
        scenario=(
            f"The process of rank {culprit} is in state t: a tracer holds it. The others wait in an all_reduce that it has not "
            "entered."
        ),
        files=job.files,
        truth=missing(culprit, cause=Cause.DEBUGGER),
    )


def _merely_sleeping(draw: Draw) -> Case:
    job, culprit = _late(draw)
    return Case(
        scenario=(
            f"The process of rank {culprit} sleeps (S). The others wait in an all_reduce that it has not entered. It has no "
            "stack."
        ),
        files=job.files,
        truth=missing(culprit),
    )


_MESSAGES = (
    "Error: Failed to get process executable name. Check that the process is running.\n",
    "Permission Denied: Try running again with elevated permissions by going 'sudo env \"PATH=$PATH\" !!'\n",
    "Error: Failed to suspend process\n",
    "Error: Failed to find python version from target process\n",
    "Error: Unsupported version of Python: 7.32.183\n",
)


def _refused(draw: Draw) -> Case:
    job, culprit = _late(draw)
    files = job.files
    for rank in job.ranks:
        files[f"stack_rank{rank}_s0.json"] = _MESSAGES[(rank + draw.seed) % len(_MESSAGES)].encode()
    return Case(
        scenario=(
            f"py-spy printed an error instead of stacks, for every rank another one. By the dumps all ranks but {culprit} wait "
            f"in an all_reduce that rank {culprit} has not entered."
        ),
        files=files,
        truth=missing(culprit),
    )


def _refused_without_dumps(draw: Draw) -> Case:
    job, culprit = _late(draw)
    job.unseen(culprit)
    files = {**job.files, f"stack_rank{culprit}_s0.json": _MESSAGES[draw.seed % len(_MESSAGES)].encode()}
    return Case(
        scenario=f"Of rank {culprit} there is only py-spy's error. The others wait in an all_reduce.",
        files=files,
        truth=unknown_because(f"rank {culprit} was not seen"),
    )


def _children_too(draw: Draw) -> Case:
    job, culprit = _late(draw)
    job.stand(culprit, *LOADER, *job.base)
    for worker in range(2):
        job.stand(
            culprit, standard("read", "socket.py", 706), draw.own("__getitem__", "dataset.py"), child=f"pt_data_worker{worker}"
        )
    return Case(
        scenario=(
            f"Rank {culprit} waits for its data loader; the stacks of its two workers were taken too: they read from a socket. "
            "The others wait in an all_reduce."
        ),
        files=job.files,
        truth=missing(culprit, cause=Cause.DATA_LOADING),
    )


def _parent_only(draw: Draw) -> Case:
    job, culprit = _late(draw)
    job.stand(culprit, *LOADER, *job.base)
    return Case(
        scenario=(
            f"Rank {culprit} waits for its data loader; of its workers no stacks were taken. The others wait in an all_reduce."
        ),
        files=job.files,
        truth=missing(culprit, cause=Cause.DATA_LOADING),
    )


def _workers_of_a_victim(draw: Draw) -> Case:
    job, culprit = _late(draw)
    job.stand(culprit, draw.own("evaluate", "evaluate.py"), *job.base)
    victim = draw.rank(job.others(culprit))
    job.stand(victim, standard("wait", "threading.py", 331), draw.own("worker", "dataset.py"), child="pt_data_worker0")
    return Case(
        scenario=(
            f"Rank {culprit} is in `evaluate`, below `train_step`. A loader's worker of rank {victim} sleeps. All ranks but "
            f"{culprit} wait in an all_reduce."
        ),
        files=job.files,
        truth=missing(culprit, cause=Cause.USER_CODE),
    )


def ras_text(job: Job, counts: Mapping[int, int]) -> str:
    """What `ncclras` prints of one communicator; ``counts`` are the operations that each rank seen has launched."""
    world, most = len(job.ranks), max(counts.values())
    late = [rank for rank, count in counts.items() if count < most]
    lost = world - len(counts)
    nodes = len({job.host(rank) for rank in job.ranks})
    state = "INCOMPLETE" if lost else "MISMATCH" if late else "OK"
    lines = [
        "NCCL version 2.27.5 compiled with CUDA 12.9",
        "CUDA runtime version 12090, driver version 12090",
        "",
        "Job summary",
        "===========",
        "",
        "  Nodes  Processes         GPUs  Processes     GPUs",
        "(total)   per node  per process    (total)  (total)",
        f"{nodes:>7}{world // nodes:>11}{1:>13}{world:>11}{world:>9}",
        "",
        "Communicators... (0.00s)",
        "=============",
        "",
        "Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors",
        "    #  in group  per comm  per node  per comm  in group",
        f"    0         1{nodes:>10}{world // nodes:>10}{world:>10}{len(counts):>10}   RUNNING  {state}",
        "",
        "Errors",
        "======",
        "",
        *([f"INCOMPLETE\n  Missing communicator data from {lost} job process{'es' * (lost > 1)}"] if lost else []),
        "",
        "Warnings",
        "========",
        "",
    ]
    if late:
        lines += [
            "#0-0 (27a079b828ff1a75) MISMATCH",
            "  Communicator ranks have different collective operation counts",
            f"  {len(counts) - len(late)} ranks have launched up to operation {most}",
            f"  {len(late)} ranks have launched up to operation {counts[late[0]]}",
            *(f"  Rank {rank} -- GPU {rank % 8} managed by process {job.pid(rank)} on node {job.host(rank)}" for rank in late),
        ]
    return "\n".join(lines) + "\n"


def _ras(draw: Draw, *, late: int | None, unseen: tuple[int, ...] = (), most: int = 6650) -> Job:
    job = Job(draw, 16)
    counts = {rank: most - (rank == late) for rank in job.ranks if rank not in unseen}
    job.file("ncclras.txt", ras_text(job, counts))
    return job


def _one_behind(draw: Draw) -> Case:
    late = draw.number(0, 15)
    return Case(
        scenario=(
            "NCCL's monitor, asked once: fifteen of sixteen ranks have launched operation 6650 of the communicator, rank "
            f"{late} only 6649. Nothing else is known, not even whether the job moves."
        ),
        files=_ras(draw, late=late).files,
        truth=unknown_because(
            "one apart is what a job that moves looks like, too",
            acceptable=(Answer(kind=None), Answer(kind=Kind.MISSING_PARTICIPANT, culprits=(late,))),
        ),
        is_ended_unsaid=True,
    )


def _one_behind_twice(draw: Draw) -> Case:
    late = draw.number(0, 15)
    job = Job(draw, 16)
    for sample in range(2):
        job.file(f"ncclras_s{sample}.txt", ras_text(job, {rank: 6650 - (rank == late) for rank in job.ranks}))
    return Case(
        scenario=(
            f"NCCL's monitor, asked twice: both times fifteen of sixteen ranks have launched operation 6650, and rank {late} "
            "6649. Nothing else is known."
        ),
        files=job.files,
        truth=replace(missing(late), acceptable=(NOT_SURE,)),
        is_ended_unsaid=True,
    )


def _zero_everywhere(draw: Draw) -> Case:
    job = _ras(draw, late=None, most=0)
    return Case(
        scenario=(
            "NCCL's monitor: all sixteen ranks of a communicator have launched 0 operations, as newer versions always say."
        ),
        files=job.files,
        truth=Truth(kind=None, status=Status.UNDETERMINED, exit_code=4, acceptable=(NOT_SURE,)),
        is_ended_unsaid=True,
    )


def _part_seen(draw: Draw) -> Case:
    lost = draw.ranks(3, range(16))
    job = _ras(draw, late=None, unseen=lost)
    return Case(
        scenario="NCCL's monitor has answers of thirteen ranks, all at operation 6650. Three processes did not answer.",
        files=job.files,
        truth=unknown_because("three did not answer", acceptable=(Answer(kind=None),)),
        is_ended_unsaid=True,
    )


FAMILIES = (
    Family(
        number="C105",
        title="what NCCL's monitor proves",
        variants=(
            reported(_one_behind, _RAS),
            near_miss(_one_behind_twice, _RAS),
            near_miss(_zero_everywhere, _RAS),
            less_seen(_part_seen, _RAS),
        ),
    ),
    Family(
        number="C107",
        title="a tracer leaves its target stopped",
        variants=(reported(_left_stopped), near_miss(_still_traced), near_miss(_merely_sleeping)),
    ),
    Family(
        number="C108",
        title="py-spy cannot read the target",
        variants=(reported(_refused), less_seen(_refused_without_dumps)),
    ),
    Family(
        number="C109",
        title="children's stacks",
        variants=(reported(_children_too), near_miss(_workers_of_a_victim), less_seen(_parent_only)),
    ),
)
