"""How the process of a rank ended: by what it said last, by its exit code, by its log - or by its saying nothing.

A rank whose probe worked and that left no last word was killed by what lets nobody speak: SIGKILL, or native code that leaves
at once. That is inferred, and only where somebody else could speak: if nobody could, the end came to all of them from outside.
"""

import re
import signal
from enum import IntEnum

from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.graph.log_facts import SHELL_SIGNAL_BASE, LogFact, is_in_doubt
from pardbg.watchdog.graph.standing import Stance
from pardbg.watchdog.model.heartbeat import Ending, EndingKind
from pardbg.watchdog.model.kernel import OomKill
from pardbg.watchdog.model.log_event import KilledForMemory
from pardbg.watchdog.model.names import Cause
from pardbg.watchdog.model.recording import Frame
from pardbg.watchdog.store.kernel_events import RANK_NAMES, name_host

ENDED_BY_OTHERS = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
ABORTED = frozenset({signal.SIGABRT})
_OF_MANY = {"was": "were", "has": "have"}
KILLED_CODES = frozenset({-signal.SIGKILL, SHELL_SIGNAL_BASE + signal.SIGKILL})
CLOCK_SLACK_NS = 5_000_000_000
_WORKER_KILLED = re.compile(
    r"DataLoader worker \(pid(?:\(s\))? (?P<pids>[\d, ]{1,200})\) (?:is killed by signal: Killed|exited unexp)"
)
_NUMBER = re.compile(r"\d{1,9}")
_BY_ITSELF = frozenset({EndingKind.RETURNED, EndingKind.AT_ONCE})


class Fate(IntEnum):
    """How a process ended, the likeliest first cause first."""

    KILLED = 0  # by a signal that no launcher and no watchdog sends
    RAISED = 1  # an exception of its own
    SILENT = 2  # without a last word
    FAILED = 3  # another exit code
    EXITED = 4  # exit code 0
    ENDED_BY_OTHERS = 5  # by the launcher, by its watchdog, or because a peer was lost


def fate_of(situation: Situation, rank: int) -> Fate:
    """How this rank ended."""
    ending, number = situation.view.endings.get(rank), signal_of(situation, rank)
    is_said = ending is not None and ending.kind is EndingKind.EXCEPTION
    if rank in situation.view.bereaved_ranks or (number in ENDED_BY_OTHERS and not is_said):
        return Fate.ENDED_BY_OTHERS
    is_killed = (number is not None and number not in ABORTED) or was_killed_for_memory(situation, rank)
    if is_killed and not is_said:
        return Fate.KILLED
    if rank in situation.view.tracebacks and not is_doubtful(situation, rank):
        return Fate.RAISED
    if rank in situation.view.silent_ranks:
        return Fate.SILENT
    code = exit_code_of(situation, rank)
    if _gave_up_waiting(situation, rank, code):
        return Fate.ENDED_BY_OTHERS
    return Fate.EXITED if code == 0 else Fate.FAILED


def is_doubtful(situation: Situation, rank: int) -> bool:
    """Whether the end of another rank may have raised its exception, or it was caught; where all others live, neither is so."""
    view = situation.view
    is_only_end = bool(view.looks) and view.ended_ranks == {rank}
    return is_in_doubt(view, rank) and not is_only_end


def _gave_up_waiting(situation: Situation, rank: int, code: int | None) -> bool:
    """Whether its own log says so; or whether an abort is that of a watchdog: the rank waited, or others were aborted, too."""
    if code != 0 and rank in situation.logs.gave_up - situation.own_failures.keys():
        return True
    if signal_of(situation, rank) not in ABORTED:
        return False
    is_waiting = situation.standings[rank].stance in {Stance.WAITING, Stance.HIDDEN}
    return is_waiting or sum(exit_code_of(situation, other) == code for other in situation.view.ended_ranks) > 1


def exit_code_of(situation: Situation, rank: int) -> int | None:
    """As Python writes it (-9: SIGKILL); None if nobody knows."""
    process, ending = situation.view.processes.get(rank), situation.view.endings.get(rank)
    if process is not None and process.exit_code is not None:
        return process.exit_code
    return ending.code if ending is not None else None


def all_left_in_peace(situation: Situation) -> bool:
    """Whether ranks have ended, and every one of them with exit code 0 and without an error in its log."""
    view = situation.view
    codes = {exit_code_of(situation, rank) for rank in view.ended_ranks}
    return codes == {0} and not view.ended_ranks & (view.tracebacks.keys() | view.bereaved_ranks)


def signal_of(situation: Situation, rank: int) -> int | None:
    """The signal that ended this rank, if one did. A program may itself exit with any code, such as 137."""
    code, ending = exit_code_of(situation, rank), situation.view.endings.get(rank)
    chose_it = ending is not None and ending.kind in _BY_ITSELF and (code or 0) >= 0
    return None if chose_it else signal_number(code)


def signal_number(code: int | None) -> int | None:
    """The signal behind an exit code: -9 as Python writes it, 137 as shells do."""
    if code is None or (0 <= code <= SHELL_SIGNAL_BASE):
        return None
    return -code if code < 0 else code - SHELL_SIGNAL_BASE


def was_killed_for_memory(situation: Situation, rank: int) -> bool:
    """Whether a kernel log says so; or it went without a word, and the kernel has killed in its cgroup since it started."""
    if is_killed_by_log(situation, rank) or memory_notices(situation, rank):
        return True
    beat = situation.view.heartbeats.get(rank)
    is_wordless = rank in situation.view.silent_ranks or signal_of(situation, rank) == signal.SIGKILL
    counts = (beat.oom_kills, beat.later_oom_kills) if beat is not None else (None, None)
    return is_wordless and counts[0] is not None and counts[1] is not None and counts[1] > counts[0]


def is_killed_by_log(situation: Situation, rank: int) -> bool:
    """Whether the kernel log of its host tells that its process, or a child that it could not go on without, was killed."""
    return _own_kill(situation, rank) is not None or lost_child(situation, rank) is not None


def memory_notices(situation: Situation, rank: int) -> list[LogFact]:
    """Where a scheduler says that a process of the job was killed for memory: that is the only one that SIGKILL ended."""
    killed = [other for other in situation.view.ended_ranks if exit_code_of(situation, other) in KILLED_CODES]
    host = situation.view.host(rank)
    facts = [fact for fact, _ in situation.logs.of_type(KilledForMemory)] if killed == [rank] else []
    return [fact for fact in facts if fact.host is None or host is None or name_host(fact.host, [host])]


def is_killed_by_name(situation: Situation, rank: int) -> bool:
    """Whether only the name of a process in the kernel log says so, since its number is not known."""
    return rank not in situation.view.kernel.kills and _own_kill(situation, rank) is not None


def _own_kill(situation: Situation, rank: int) -> OomKill | None:
    """The death of its own process, by its number; where none is known, as the only one that may be meant."""
    kernel, host = situation.view.kernel, situation.view.host(rank)
    if not kernel.logs or exit_code_of(situation, rank) not in {None, *KILLED_CODES}:
        return None
    kill = kernel.kills.get(rank)
    if kill is not None:
        return None if _has_outlived(situation, rank, kill) else kill
    process = situation.view.processes.get(rank)
    has_number = rank in situation.view.looks or (process is not None and process.pid is not None)
    if exit_code_of(situation, rank) is None or has_number:
        return None
    here = (other for other in situation.view.ended_ranks if situation.view.host(other) == host)
    killed = [other for other in here if exit_code_of(situation, other) in KILLED_CODES]
    kills = [kill for kill in kernel.kills_on(host) if kill.name.startswith(RANK_NAMES)]
    is_only = len(killed) == len(kills) == 1
    return kills[0] if is_only and not _has_outlived(situation, rank, kills[0]) else None


def _has_outlived(situation: Situation, rank: int, kill: OomKill) -> bool:
    """Whether a rank did or said anything after a death, which then was that of another process with its number."""
    recording, ending = situation.view.recordings.get(rank), situation.view.endings.get(rank)
    times = [recording.operations[-1].created_ns] if recording is not None and recording.operations else []
    times += [ending.at_ns] if ending is not None and ending.at_ns is not None else []
    return kill.when.at_ns is not None and max(times, default=0) > kill.when.at_ns + CLOCK_SLACK_NS


def lost_child(situation: Situation, rank: int) -> OomKill | None:
    """The child for whose death this rank raised: a loader's worker that the kernel killed for memory.

    By its process number where that was seen or is told by the exception; else as the only worker that died on the host.
    """
    found = situation.view.tracebacks.get(rank)
    match = _WORKER_KILLED.search(found.exception) if found is not None else None
    if match is None:
        return None
    host, kernel = situation.view.host(rank), situation.view.kernel
    seen = kernel.child_kills.get(rank)
    told = {int(number) for number in _NUMBER.findall(match["pids"])}
    workers = [kill for kill in kernel.kills_on(host) if kill.pid in told]
    if seen is not None or workers:
        return seen or workers[-1]
    others = [other for other in situation.view.tracebacks if other != rank and situation.view.host(other) == host]
    loaders = [kill for kill in kernel.kills_on(host) if kill.name.startswith("pt_data_worker")]
    is_only = not any(_WORKER_KILLED.search(situation.view.tracebacks[other].exception) for other in others)
    return loaders[0] if is_only and len(loaders) == 1 else None


def were_killed_together(situation: Situation) -> bool:
    """Whether SIGKILL ended every rank of the job, and no rank had said anything before."""
    view = situation.view
    kills = [rank for rank in view.ended_ranks if rank in view.silent_ranks or signal_of(situation, rank) == signal.SIGKILL]
    said = any(ending.kind is not EndingKind.SIGNAL for ending in view.endings.values())
    return situation.is_over and len(kills) == len(view.ended_ranks) > 1 and not said


def cause_of(situation: Situation, rank: int) -> Cause | None:
    """The cause of its end, as reports name it."""
    if was_killed_for_memory(situation, rank):
        return Cause.OOM_KILLED
    ending = situation.view.endings.get(rank)
    is_said = ending is not None and ending.kind is EndingKind.EXCEPTION
    if not is_said and (rank in situation.view.silent_ranks or signal_of(situation, rank) is not None):
        return Cause.SIGNAL
    if rank in situation.view.tracebacks:
        return Cause.EXCEPTION
    return None if exit_code_of(situation, rank) is None else Cause.EXITED


def end_in_words(situation: Situation, rank: int) -> str:
    """Completes "rank N ..."."""
    cause, number = cause_of(situation, rank), signal_of(situation, rank)
    code, ending = exit_code_of(situation, rank), situation.view.endings.get(rank)
    if cause is Cause.OOM_KILLED:
        child = lost_child(situation, rank)
        whom = f"ended because its child {child.name} was killed" if child is not None else "was killed"
        return f"{whom} for memory by the kernel{_last_seen(situation, rank)}"
    if cause is Cause.SIGNAL and number is None:
        return f"left no last word{_last_seen(situation, rank)} (only SIGKILL and exits of native code leave none)"
    if cause is Cause.SIGNAL and number is not None:
        return f"was killed by {name_signal(number)}{_where(ending)}"
    if cause is Cause.EXCEPTION:
        return f"ended with {situation.view.tracebacks[rank].exception}"
    if ending is not None and ending.kind is EndingKind.AT_ONCE:
        return f"left with os._exit({'' if code is None else code}){_where(ending)}"
    return "has ended" if code is None else f"exited with code {code}{_where(ending)}"


def of_many(end: str) -> str:
    """The same of several ranks: ``were killed by SIGKILL``."""
    verb, _, rest = end.partition(" ")
    return f"{_OF_MANY.get(verb, verb)} {rest}"


def name_signal(number: int) -> str:
    """``SIGKILL``, or ``signal 99``."""
    known = number in {item.value for item in signal.Signals}
    return signal.Signals(number).name if known else f"signal {number}"


def _last_seen(situation: Situation, rank: int) -> str:
    beat = situation.view.heartbeats.get(rank)
    if beat is None or beat.step is None:
        return ""
    return f" after step {beat.step}{f' (in {beat.phase})' if beat.phase else ''}"


def _where(ending: Ending | None) -> str:
    """The form of a call site, shortened as in chains of frames."""
    if ending is None or not ending.where:
        return ""
    place, _, function = ending.where.partition(" ")
    filename, _, line = place.rpartition(":")
    if not filename or not line.isdecimal():
        return f" at {ending.where}"
    return f" at {Frame(name=function, filename=filename, line=int(line)).short}"
