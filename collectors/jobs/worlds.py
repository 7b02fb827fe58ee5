"""The worlds of a census: which processes are the ranks of which job on this machine. Pure."""

from collections.abc import Iterator

from msgspec.structs import replace

from pardbg.collectors.jobs.ended import Vacancies, find_vacancies
from pardbg.collectors.jobs.environment import recorder_settings
from pardbg.collectors.jobs.family import Family
from pardbg.collectors.jobs.identity import WorldKey
from pardbg.collectors.jobs.job_ids import find_job_ids
from pardbg.collectors.jobs.members import Member, Members, find_members
from pardbg.collectors.jobs.process import Census, JobProcess, ProcessLook
from pardbg.watchdog.model.evidence import Absence, Evidence
from pardbg.watchdog.model.names import AbsenceReason, CollectorName
from pardbg.watchdog.model.world import RankProcess, World


def find_worlds(census: Census) -> tuple[World, ...]:
    """All worlds with a living rank here, the oldest first."""
    family = Family(census.processes)
    return tuple(
        _describe_world(key, members, census, family) for key, members in find_members(census.processes, family).items()
    )


def describe_rank(rank: int, process: JobProcess, local_rank: int | None, census: Census) -> RankProcess:
    """The rank that a process is. Of one that does not answer only the numbers are known."""
    look = process.look or ProcessLook(pid=process.pid, started_ticks=process.stat.started_ticks, uid=0)
    return RankProcess(
        rank=rank,
        pid=process.pid,
        started_ticks=process.stat.started_ticks,
        host=census.host,
        local_rank=local_rank,
        uid=look.uid,
        recorder=recorder_settings(look.environment),
        is_at_home=look.mount_namespace != "" and look.mount_namespace == census.mount_namespace,
        inner_pid=_unless_same(look.namespace_pids[-1] if look.namespace_pids else None, process.pid),
        inner_uid=_unless_same(look.inner_uid, look.uid),
    )


def _unless_same(inner: int | None, outer: int) -> int | None:
    return None if inner == outer else inner


def _describe_world(key: WorldKey, members: Members, census: Census, family: Family) -> World:
    vacancies = find_vacancies(key, members, census.processes, census.ticks_per_s)
    processes = [member.process for member in members.ranks.values()]
    launchers = [launcher for process in processes if (launcher := family.launcher(process))]
    return World(
        job_ids=find_job_ids(processes, launchers),
        store=key.store,
        world_size=key.world_size,
        attempt=key.attempt,
        ranks=_describe_ranks(members, vacancies, census),
        ended=vacancies.ended,
        evidence=(
            *(_duplicate(member, members.ranks[member.identity.rank], census) for member in members.duplicates),
            *_unseen(members, vacancies, census),
            *_elsewhere(vacancies, census),
        ),
    )


def _describe_ranks(members: Members, vacancies: Vacancies, census: Census) -> tuple[RankProcess, ...]:
    known = {
        rank: describe_rank(rank, member.process, member.identity.local_rank, census)
        for rank, member in members.ranks.items()
        if not member.process.is_silent
    }
    like = next(iter(known.values()), None)
    for rank, process in _silent(members, vacancies).items():
        own = describe_rank(rank, process, None, census)
        if like is not None:  # ranks of one launch run as one user, with one environment, in one place
            own = replace(own, uid=like.uid, inner_uid=like.inner_uid, recorder=like.recorder, is_at_home=like.is_at_home)
        known[rank] = own
    return tuple(known[rank] for rank in sorted(known))


def _silent(members: Members, vacancies: Vacancies) -> dict[int, JobProcess]:
    """Ranks whose process lives and does not answer."""
    return vacancies.silent | {rank: member.process for rank, member in members.ranks.items() if member.process.is_silent}


def _evidence(rank: int, absence: Absence, census: Census, process: JobProcess | None = None) -> Evidence:
    return Evidence(
        source=CollectorName.HOST,
        rank=rank,
        host=census.host,
        observed_at=census.observed_at,
        observation=absence,
        origin=f"/proc/{process.pid}" if process else "/proc",
    )


def _duplicate(older: Member, younger: Member, census: Census) -> Evidence:
    rank = older.identity.rank
    detail = (
        f"process {older.process.pid} says it is rank {rank}, too; the younger process {younger.process.pid} is taken for it"
    )
    return _evidence(rank, Absence(reason=AbsenceReason.DUPLICATE_RANK, detail=detail), census, older.process)


def _unseen(members: Members, vacancies: Vacancies, census: Census) -> Iterator[Evidence]:
    """Ranks that live and do not answer, and ranks that may be a process which we may not look into."""
    for rank, process in _silent(members, vacancies).items():
        detail = (
            f"process {process.pid} (state {process.stat.state}) does not show its memory: something holds it in the kernel; "
            "that it is this rank follows from the processes around it"
        )
        yield _evidence(rank, Absence(reason=AbsenceReason.TIMED_OUT, detail=detail), census, process)
    for rank in vacancies.unseen:
        is_denied = any(process.is_denied for process in vacancies.hidden)
        pids = ", ".join(str(process.pid) for process in vacancies.hidden[:4])
        detail = f"its process was not found; it may be one that could not be looked into (pid {pids})"
        reason = AbsenceReason.DENIED if is_denied else AbsenceReason.TIMED_OUT
        yield _evidence(rank, Absence(reason=reason, detail=detail), census)


def _elsewhere(vacancies: Vacancies, census: Census) -> tuple[Evidence, ...]:
    """What could not be seen of the machine, unless all ranks that belong here are accounted for."""
    return census.evidence if vacancies.unseen or not vacancies.expected else ()
