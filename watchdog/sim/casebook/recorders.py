"""What other tools get wrong about recorders: rings that wrap, states, names, absent dumps (C100 to C104, C110, C111)."""

from pardbg.watchdog.model.names import Cause, Status
from pardbg.watchdog.sim.casebook.case import Case, Family, less_seen, near_miss, reported
from pardbg.watchdog.sim.casebook.draw import Draw
from pardbg.watchdog.sim.casebook.job import Job
from pardbg.watchdog.sim.casebook.places import LOADER
from pardbg.watchdog.sim.dump import Dump
from pardbg.watchdog.sim.faults.absent import missing
from pardbg.watchdog.sim.instruction import Op
from pardbg.watchdog.sim.truth import HEALTHY, Truth, unknown_because


def _late(draw: Draw, *, backend: str = "nccl", has_stacks: bool = False) -> tuple[Job, int]:
    """One rank is missing from the last all_reduce."""
    job = Job(draw, draw.world(4, 16), backend=backend)
    culprit = draw.rank(job.ranks)
    job.step(20)
    job.issue(Op.ALL_REDUCE, 1024, ranks=job.others(culprit), is_done=False)
    if has_stacks:
        job.stand(culprit, *LOADER, *job.base)
    else:
        job.unseen(*job.ranks, dumps=False)
    return job, culprit


def _healthy(draw: Draw, *, backend: str = "nccl") -> Job:
    job = Job(draw, draw.world(4, 16), backend=backend)
    job.step(20)
    return job


def _short_ring(draw: Draw) -> Case:
    job = _healthy(draw)
    job.ring[draw.rank(job.ranks)] = 10
    return Case(
        scenario="The ring of one rank holds ten entries, those of the others two thousand. Everything is done.",
        files=job.files,
        truth=HEALTHY,
    )


def _short_ring_and_missing(draw: Draw) -> Case:
    job, culprit = _late(draw)
    job.ring[draw.rank(job.ranks)] = 10
    return Case(
        scenario=(
            f"All ranks but {culprit} wait in an all_reduce that rank {culprit} has not entered. The ring of one rank holds "
            "ten entries, those of the others two thousand."
        ),
        files=job.files,
        truth=missing(culprit),
    )


def _not_retired(dump: Dump) -> None:
    for entry in dump["entries"]:
        entry["retired"] = False


def _completed_not_retired(draw: Draw) -> Case:
    job = _healthy(draw)
    for rank in job.ranks:
        job.edit(rank, _not_retired)
    return Case(scenario="All entries are completed; none is retired.", files=job.files, truth=HEALTHY)


def _retired_not_completed(draw: Draw) -> Case:
    return Case(
        scenario="gloo: every entry is in state scheduled, and retired.",
        files=_healthy(draw, backend="gloo").files,
        truth=HEALTHY,
    )


def _retired_and_one_missing(draw: Draw) -> Case:
    job, culprit = _late(draw, backend="gloo")
    return Case(
        scenario=f"gloo: all entries are in state scheduled; only the last of all ranks but {culprit} is not retired.",
        files=job.files,
        truth=missing(culprit),
    )


def _named_by_host(draw: Draw) -> Case:
    job, culprit = _late(draw)
    job.dump_name = "nccl_trace_rank_{host}_{rank}".format
    return Case(
        scenario=f"Dumps are named by host and rank. All ranks but {culprit} wait in an all_reduce that it has not entered.",
        files=job.files,
        truth=missing(culprit),
    )


def _named_by_pci(draw: Draw) -> Case:
    job, culprit = _late(draw)
    job.dump_name = "{host}.pci3_rank_{rank}".format
    return Case(
        scenario=(
            f"Dumps are named by host, slot and rank. All ranks but {culprit} wait in an all_reduce that it has not entered."
        ),
        files=job.files,
        truth=missing(culprit),
    )


def _broken_files(draw: Draw) -> Case:
    job, culprit = _late(draw, has_stacks=True)
    files = job.files
    empty, cut = draw.ranks(2, job.others(culprit))
    files[f"nccl_trace_rank_{empty}"] = b""
    files[f"nccl_trace_rank_{cut}"] = files[f"nccl_trace_rank_{cut}"][:500]
    return Case(
        scenario=(
            f"The dump of rank {empty} is empty, that of rank {cut} is cut off. The other ranks but {culprit} wait in an "
            f"all_reduce; rank {culprit} has not entered it and waits for its data loader. Stacks of all ranks are there."
        ),
        files=files,
        truth=missing(culprit, cause=Cause.DATA_LOADING),
    )


def _culprits_file_empty(draw: Draw) -> Case:
    job, culprit = _late(draw)
    files = job.files
    files[f"nccl_trace_rank_{culprit}"] = b""
    return Case(
        scenario=f"All ranks but {culprit} wait in an all_reduce. The dump of rank {culprit} is an empty file.",
        files=files,
        truth=unknown_because("the one that matters cannot be read"),
    )


def _nameless_groups(draw: Draw) -> Case:
    job, culprit = _late(draw, backend="gloo")
    return Case(
        scenario=(
            f"gloo dumps whose group table has no usable key. All ranks but {culprit} wait in an all_reduce of the default "
            f"group that rank {culprit} has not entered."
        ),
        files=job.files,
        truth=missing(culprit),
    )


def _nameless_and_done(draw: Draw) -> Case:
    return Case(
        scenario="gloo dumps whose group table has no usable key. Everything is done.",
        files=_healthy(draw, backend="gloo").files,
        truth=HEALTHY,
    )


def _no_dump_of_one(draw: Draw) -> Case:
    job, culprit = _late(draw)
    job.unseen(culprit)
    return Case(
        scenario=f"Rank {culprit} left no dump: writing it ended the process that wrote. The others wait in an all_reduce.",
        files=job.files,
        truth=unknown_because(f"rank {culprit} was not seen"),
    )


def _no_dump_of_a_bystander(draw: Draw) -> Case:
    job, culprit = _late(draw)
    job.unseen(draw.rank(job.others(culprit)))
    return Case(
        scenario=f"One rank left no dump. All others but {culprit} wait in an all_reduce that rank {culprit} has not entered.",
        files=job.files,
        truth=missing(culprit),
    )


def _empty_trace(draw: Draw) -> Case:
    job, culprit = _late(draw)
    job.file(
        "trace_empty.json", '{"schemaVersion": 1, "traceEvents": [{"ph": "M", "name": "process_name", "pid": 1, "args": {}}]}'
    )
    return Case(
        scenario=(
            f"A profiler's trace holds metadata only. By the dumps all ranks but {culprit} wait in an all_reduce that it has "
            "not entered."
        ),
        files=job.files,
        truth=missing(culprit),
    )


def _empty_trace_and_done(draw: Draw) -> Case:
    job = _healthy(draw)
    job.file("trace_empty.json", '{"schemaVersion": 1, "traceEvents": []}')
    return Case(scenario="A profiler's trace is empty. By the dumps everything is done.", files=job.files, truth=HEALTHY)


def _idle_rank_never_dumps(draw: Draw) -> Case:
    job, culprit = _late(draw, has_stacks=True)
    job.unseen(culprit, stacks=False)
    return Case(
        scenario=(
            f"The watchdog of rank {culprit} is inactive while it has no batch, so it left no dump. Its stack was taken all "
            "the same: it waits for its data loader. The others wait in an all_reduce."
        ),
        files=job.files,
        truth=missing(culprit, cause=Cause.DATA_LOADING),
    )


def _idle_rank_unseen(draw: Draw) -> Case:
    job, culprit = _late(draw, has_stacks=True)
    job.unseen(culprit)
    return Case(
        scenario=f"The watchdog of rank {culprit} is inactive, and nobody took its stack. The others wait in an all_reduce.",
        files=job.files,
        truth=unknown_because(f"rank {culprit} was not seen"),
    )


def _recorders_off(draw: Draw) -> Case:
    job, _ = _late(draw)
    job.recorder_off(*job.ranks)
    return Case(
        scenario="The recorders of all ranks were off: their dumps are empty frames. No stacks were taken.",
        files=job.files,
        truth=Truth(kind=None, status=Status.UNDETERMINED, exit_code=4, acceptable=unknown_because("").acceptable),
        is_ended_unsaid=True,
    )


FAMILIES = (
    Family(
        number="C100",
        title="rings wrap at different places",
        variants=(reported(_short_ring), near_miss(_short_ring_and_missing)),
    ),
    Family(
        number="C101",
        title="completed and retired",
        variants=(reported(_completed_not_retired), near_miss(_retired_not_completed), near_miss(_retired_and_one_missing)),
    ),
    Family(
        number="C102",
        title="names of files, and files that are broken",
        variants=(reported(_named_by_host), reported(_named_by_pci), near_miss(_broken_files), less_seen(_culprits_file_empty)),
    ),
    Family(
        number="C103",
        title="gloo's dumps do not name their groups",
        variants=(reported(_nameless_groups), near_miss(_nameless_and_done)),
    ),
    Family(
        number="C104",
        title="an absent dump is a finding",
        variants=(reported(_no_dump_of_one), near_miss(_no_dump_of_a_bystander), less_seen(_recorders_off)),
    ),
    Family(
        number="C110",
        title="a trace with metadata only",
        variants=(reported(_empty_trace), near_miss(_empty_trace_and_done)),
    ),
    Family(
        number="C111",
        title="the idle rank's watchdog is inactive",
        variants=(reported(_idle_rank_never_dumps), less_seen(_idle_rank_unseen)),
    ),
)
