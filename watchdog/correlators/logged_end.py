"""A process whose end a launcher, a shell or Slurm tells, though not which rank it was; or one that was killed for memory.

What is told is the end that was noticed first, so that one SIGKILL is not the launcher's own. Who ends with an exit code, or is
aborted, may have lost a peer. Several that were killed were so from outside, or by who cleaned up: none of them is the first.
"""

import signal
from collections.abc import Iterable

from pardbg.watchdog.correlators import dead_rank
from pardbg.watchdog.correlators.fates import ENDED_BY_OTHERS, KILLED_CODES, name_signal, signal_number
from pardbg.watchdog.correlators.log_words import MAX_LINES, are_logs_alone, log_line
from pardbg.watchdog.correlators.reported import OWN_SIGNALS
from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.graph.log_facts import LogFact
from pardbg.watchdog.model.host_names import fold_hosts_briefly
from pardbg.watchdog.model.kernel import OomKill
from pardbg.watchdog.model.log_event import KilledForMemory, LauncherFailure, TrainingDone
from pardbg.watchdog.model.names import Cause, Confidence, Kind
from pardbg.watchdog.model.report import Finding, Subject
from pardbg.watchdog.store.kernel_events import RANK_NAMES

MAX_TOLD = 4
_CRASHES = OWN_SIGNALS - {-signal.SIGABRT}
_ASK_WHO_KILLED = (
    "SIGKILL comes from outside of a process: look for `Out of memory` in the kernel log of the host (dmesg -T), at the memory "
    "limit of the container or the job, and ask who ended it."
)
_BY_WHOM_UNKNOWN = "that came from outside, and none is known to be the first"
_WHY_UNKNOWN = "why is not told: whoever loses a peer, or waits in vain, ends so, too"
_READ_ITS_LOG = "Bring the whole log of that process: its first error, or its stack at the crash, tells why it ended."

_End = tuple[LogFact, LauncherFailure]


def correlate(situation: Situation) -> Iterable[Finding]:
    """At most one finding, where no log tells of an error that is clearly a rank's own.

    Where ranks gave up a wait, somebody may have ended a job that hung.
    """
    if not are_logs_alone(situation) or situation.own_failures or any(dead_rank.correlate(situation)):
        return
    reports = situation.logs.of_type(LauncherFailure)
    ends = [end for end in reports if signal_number(end[1].code) not in ENDED_BY_OTHERS and end[1].code != 0]
    memory = situation.logs.of_type(KilledForMemory)
    if memory and not situation.logs.of_type(TrainingDone):
        yield _for_memory(situation, memory, ends)
    elif ends and all(event.rank is None for _, event in reports) and not situation.logs.tells_of_waits:
        yield _ended(situation, ends)


def _for_memory(situation: Situation, memory: list[tuple[LogFact, KilledForMemory]], ends: list[_End]) -> Finding:
    killed = [fact for fact, event in ends if event.code in KILLED_CODES]
    hosts = sorted({fact.host for fact, _ in memory if fact.host})
    is_of_rank = bool(killed) or any(event.is_of_task for _, event in memory)
    doubt = "which rank's it was is" if is_of_rank else "whose it was, and whether the job ended of it, is"
    teller = memory[0][1].teller
    subjects = tuple(Subject.of_host(host, f"{teller} says that a process was killed for memory there") for host in hosts)
    is_clear = is_of_rank and len(hosts) == 1
    where = f" on {fold_hosts_briefly(hosts)}" if hosts else ""
    return Finding(
        kind=Kind.DEAD_RANK if is_of_rank else Kind.INSUFFICIENT_EVIDENCE,
        cause=Cause.OOM_KILLED,
        confidence=Confidence.SUPPORTED if is_of_rank else Confidence.SUGGESTED,
        culprits=subjects if is_clear else (),
        candidates=() if is_clear else subjects,
        victims=tuple(sorted(situation.logs.bereaved)),
        claim=f"{teller} says that a process of the job was killed for memory{where}; {doubt} not told",
        evidence=tuple(map(log_line, [*(fact for fact, _ in memory), *killed][:MAX_LINES])),
        advice=(dead_rank.SAVE_MEMORY,),
    )


def _ended(situation: Situation, ends: list[_End]) -> Finding:
    crashed = [end for end in ends if end[1].code in _CRASHES]
    killed = [end for end in ends if end[1].code in KILLED_CODES]
    first = crashed or (killed if len(killed) == len(ends) else [])
    if len(first) == 1 and not first[0][1].is_several:
        return _describe(situation, *first[0])
    are_killed = len(killed) == len(ends)
    told = "; ".join(dict.fromkeys(_words(event) for _, event in ends[:MAX_TOLD]))
    doubt = _BY_WHOM_UNKNOWN if are_killed else _WHY_UNKNOWN
    return Finding(
        kind=Kind.INSUFFICIENT_EVIDENCE,
        confidence=Confidence.SUGGESTED,
        victims=tuple(sorted(situation.logs.bereaved)),
        claim=f"{told}; {doubt}",
        evidence=tuple(log_line(fact) for fact, _ in ends[:MAX_LINES]),
        advice=(_ASK_WHO_KILLED if killed else _READ_ITS_LOG,),
    )


def _describe(situation: Situation, fact: LogFact, end: LauncherFailure) -> Finding:
    """One process that was killed, or that crashed."""
    is_killed = end.code in KILLED_CODES
    rank, kill = _rank_of(situation, end), _kill_of(situation, end) if is_killed else None
    why = _words(end)
    host = end.host or (kill[0] if kill else None)
    named = situation.subject(rank, why) if rank is not None else Subject.of_host(host, why) if host else None
    memory = f"; the kernel log{f' of {kill[0]}' if kill[0] else ''} says that it was for memory" if kill else ""
    whose = "" if rank is not None else "; which global rank that is, is not told"
    if rank is None and end.local_rank is not None:
        whose += f" (rank {end.local_rank}, if the job has one host)"
    return Finding(
        kind=Kind.DEAD_RANK,
        cause=Cause.OOM_KILLED if kill else Cause.SIGNAL,
        confidence=Confidence.SUPPORTED if end.pid is not None or end.local_rank is not None else Confidence.SUGGESTED,
        culprits=(named,) if named is not None else (),
        victims=tuple(sorted(situation.logs.bereaved - {rank})),
        claim=f"{f'rank {rank}: ' if rank is not None else ''}{why}{memory}{whose}",
        evidence=(log_line(fact),),
        advice=(dead_rank.SAVE_MEMORY if kill else _ASK_WHO_KILLED if is_killed else _READ_ITS_LOG,),
    )


def _words(end: LauncherFailure) -> str:
    """``the process of local rank 3 on n07 (pid 801) was ended by SIGKILL``."""
    number = signal_number(end.code)
    where = (f" on {end.host}" if end.host else "") + (f" (pid {end.pid})" if end.pid is not None else "")
    how = f"ended with exit code {end.code}" if number is None else f"ended by {name_signal(number)}"
    was = ("were " if end.is_several else "was ") if number is not None else ""
    return f"{end.called or 'a process'}{where} {was}{how}"


def _rank_of(situation: Situation, end: LauncherFailure) -> int | None:
    """The global rank, where a description of the job has one such local rank only."""
    if end.local_rank is None:
        return None
    alike = [seen.rank for seen in situation.view.job.ranks if seen.local_rank == end.local_rank]
    return alike[0] if len(alike) == 1 else None


def _kill_of(situation: Situation, end: LauncherFailure) -> tuple[str | None, OomKill] | None:
    """The death for memory of this process in a kernel log, by its number and by what ranks are called; and whose log it is."""
    kills = [
        (item.host, kill)
        for _, item, log in situation.view.kernel.logs
        for kill in log.kills
        if kill.pid == end.pid and kill.name.startswith(RANK_NAMES)
    ]
    return kills[0] if end.pid is not None and len(kills) == 1 else None
