"""The jobs that run here, and what they were told: about the recorder, about attaching, about a timeout. Pure."""

from collections.abc import Iterator

from pardbg.collectors.attach.attaching import NEVER, VARIABLE
from pardbg.collectors.live.recorders.switched_off import is_off_by_default, is_off_by_environment
from pardbg.collectors.node.surroundings import JobHere, Surroundings
from pardbg.watchdog.doctor.check import Check, State
from pardbg.watchdog.outputs.phrases import count_of, list_names, name_ranks

_SIZES = ("TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE")
_WAYS = ("TORCH_NCCL_DEBUG_INFO_PIPE_FILE", "TORCH_WORKER_SERVER_SOCKET")
_OFF_COST = "no flight recorder: the verdict comes from stacks alone, and is `supported` at most"
_SWITCH_ON = "start the job with a recorder (torch before 2.8 calls it TORCH_NCCL_TRACE_BUFFER_SIZE)"
_SWITCH_ON_COMMAND = "export TORCH_FR_BUFFER_SIZE=2000"
_MOST_NAMES = 4
_NO_TIMEOUT = "NCCL_TIMEOUT"
_ATTACH_REMEDY = "ask again when the job hangs; or start it with `pardbg run`, then nothing need be attached to"


def check_jobs(surroundings: Surroundings) -> Iterator[Check]:
    """Who runs here, and who does not answer."""
    processes = surroundings.processes
    if processes.problem:
        yield Check(
            name="jobs",
            state=State.BLOCKS,
            seen=processes.problem,
            cost="no job is found",
            remedy="run the command again when the machine is less busy",
        )
        return
    names = [f"{job.name} ({count_of(len(job.world.ranks), 'rank')})" for job in processes.jobs]
    yield Check(
        name="jobs", state=State.OK, seen=f"running here: {list_names(names, _MOST_NAMES)}" if names else _no_job(surroundings)
    )
    if processes.silent:
        yield Check(
            name="silent-processes",
            state=State.LIMITS,
            seen=f"no answer from process {list_names([*map(str, processes.silent)], _MOST_NAMES)}: the kernel holds it",
            cost="of such a process only its state is seen, no environment and no stack",
            remedy="see what it waits for",
            command=f"cat /proc/{processes.silent[0]}/wchan",
        )


def check_recorder(surroundings: Surroundings) -> Iterator[Check]:
    """Whether torch's flight recorder is on."""
    jobs = surroundings.processes.jobs
    if jobs:
        yield from map(_check_recorder_of, jobs)
    else:
        yield _check_next_job(surroundings)


def check_recorder_access(surroundings: Surroundings) -> Iterator[Check]:
    """Whether an environment opens a way to a recorder. A debug server that a job's code starts does not show there."""
    on = [job for job in surroundings.processes.jobs if not _check_recorder_of(job).is_hindrance]
    closed = [job.name for job in on if not all(any(rank.recorder.get(way) for way in _WAYS) for rank in job.world.ranks)]
    if closed:
        yield Check(
            name="recorder-access",
            state=State.UNKNOWN,
            seen=f"no dump pipe and no worker server asked for: {list_names(closed, _MOST_NAMES)}",
            cost="unless the job's code starts a debug server, its recorder is read only by attaching; see attach",
            remedy="start the job with `pardbg run`",
        )
    elif on:
        yield Check(name="recorder-access", state=State.OK, seen="each job here asks for a dump pipe or a worker server")


def check_attach(surroundings: Surroundings) -> Iterator[Check]:
    """What attaching could do now for each job. ``PARDBG_ATTACH=never`` is a decision of the job's owner, not a fault."""
    for job in surroundings.processes.jobs:
        forbidden = [rank.rank for rank in job.world.ranks if rank.recorder.get(VARIABLE) == NEVER]
        reasons = {look.pid: look.why_no_attach for look in job.looks}
        asked = [rank for rank in job.world.ranks if rank.rank not in forbidden]
        able = [rank.rank for rank in asked if reasons.get(rank.pid) == ""]
        told = dict.fromkeys(reason.partition(":")[0] for rank in asked if (reason := reasons.get(rank.pid)))
        parts = [
            f"could reach the recorders of {name_ranks(able)}" if able else "",
            f"forbidden by {name_ranks(forbidden)}" if forbidden else "",
            f"of others not now ({list_names(list(told), _MOST_NAMES)})" if told else "",
        ]
        if seen := "; ".join(filter(None, parts)):
            state = State.OK if len(able) == len(asked) else State.UNKNOWN
            yield Check(name="attach", state=state, seen=f"{job.name}: {seen}", remedy=_ATTACH_REMEDY if told else None)


def check_nccl_timeout(surroundings: Surroundings) -> Iterator[Check]:
    """A variable that does not exist and that people set."""
    for job in surroundings.processes.jobs:
        ranks = [rank.rank for rank in job.world.ranks if _NO_TIMEOUT in rank.recorder]
        if ranks:
            yield _no_such_timeout(f"{job.name}: {_NO_TIMEOUT} is set in {name_ranks(ranks)}", None)
    if _NO_TIMEOUT in surroundings.environment:
        yield _no_such_timeout(f"{_NO_TIMEOUT} is set here, and in jobs started from here", f"unset {_NO_TIMEOUT}")


def read_torch_version(text: str | None) -> tuple[int, int] | None:
    """``2.13.0+cpu`` is 2.13; None if it is no version."""
    parts = (text or "").split(".")
    return (int(parts[0]), int(parts[1])) if len(parts) > 1 and parts[0].isdigit() and parts[1].isdigit() else None


def _check_recorder_of(job: JobHere) -> Check:
    torch = {look.pid: look.torch for look in job.looks}
    settings = {rank.rank: {name: value.encode() for name, value in rank.recorder.items()} for rank in job.world.ranks}
    zero = [rank for rank, environment in settings.items() if is_off_by_environment(environment)]
    old = [rank.rank for rank in job.world.ranks if is_off_by_default(settings[rank.rank], torch.get(rank.pid))]
    if zero or old:
        version = next((torch[rank.pid] for rank in job.world.ranks if rank.rank in old), None)
        why = "its environment sets the size 0" if zero else f"torch {version[0]}.{version[1]} leaves it off" if version else ""
        return Check(
            name="recorder",
            state=State.LIMITS,
            seen=f"{job.name}: off in {name_ranks(sorted({*zero, *old}))}: {why}",
            cost=_OFF_COST,
            remedy=_SWITCH_ON,
            command=_SWITCH_ON_COMMAND,
        )
    unsure = [
        rank.rank
        for rank in job.world.ranks
        if torch.get(rank.pid) is None and not any(name in settings[rank.rank] for name in _SIZES)
    ]
    if unsure:
        seen = f"{job.name}: the torch of {name_ranks(unsure)} does not show; before 2.11 it is off"
        return Check(name="recorder", state=State.UNKNOWN, seen=seen, remedy=_SWITCH_ON, command=_SWITCH_ON_COMMAND)
    return Check(name="recorder", state=State.OK, seen=f"{job.name}: on in {count_of(len(settings), 'rank')}")


def _check_next_job(surroundings: Surroundings) -> Check:
    """No job runs: what one would get that is started from here."""
    environment = {name: value.encode() for name, value in surroundings.environment.items()}
    version = read_torch_version(surroundings.software.torch)
    off = "its size is 0 in this environment" if is_off_by_environment(environment) else ""
    if is_off_by_default(environment, version):
        off = f"torch {surroundings.software.torch} leaves it off"
    if off:
        return Check(
            name="recorder",
            state=State.LIMITS,
            seen=f"off in a job started from here: {off}",
            cost=_OFF_COST,
            remedy=_SWITCH_ON,
            command=_SWITCH_ON_COMMAND,
        )
    size = next((surroundings.environment[name] for name in _SIZES if name in surroundings.environment), None)
    if size is not None:
        return Check(name="recorder", state=State.OK, seen=f"on in a job started from here, its size {size}")
    if version is not None:
        seen = f"on in a job started from here: torch {version[0]}.{version[1]} sets the size 2000"
        return Check(name="recorder", state=State.OK, seen=seen)
    return Check(
        name="recorder",
        state=State.UNKNOWN,
        seen="no job runs here and no torch is installed here; before torch 2.11 it is off",
        remedy=_SWITCH_ON,
        command=_SWITCH_ON_COMMAND,
    )


def _no_job(surroundings: Surroundings) -> str:
    return "no job shows here; see other-users" if surroundings.processes.denied.count else "no job runs here"


def _no_such_timeout(seen: str, command: str | None) -> Check:
    return Check(
        name="nccl-timeout",
        state=State.LIMITS,
        seen=f"{seen}: there is no such variable, nobody reads it",
        cost="the job's timeout is another than meant: a hang may end before it is looked at, or much later",
        remedy="give init_process_group(timeout=timedelta(...)); without, it is 10 minutes with NCCL and 30 with gloo",
        command=command,
    )
