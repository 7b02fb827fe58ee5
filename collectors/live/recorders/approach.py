"""One rank, all ways to its recorder in turn: the worker server, the NCCL pipe, a dump file; else why there is none."""

from msgspec.structs import replace

from pardbg.collectors.live.probe.place import recorder_places
from pardbg.collectors.live.recorders.asking import ask_server
from pardbg.collectors.live.recorders.dump_file import read_newest_dump
from pardbg.collectors.live.recorders.entering import entered
from pardbg.collectors.live.recorders.nccl_pipe import ask_through_pipe
from pardbg.collectors.live.recorders.outcome import Obtained, Outcome, Refusal
from pardbg.collectors.live.recorders.owner import living, memory_map
from pardbg.collectors.live.recorders.request import Target
from pardbg.collectors.live.recorders.serial_parser import SerialParser
from pardbg.collectors.live.recorders.switched_off import REMEDY, is_off_by_default, is_off_by_environment, read_version
from pardbg.collectors.procfs.stat import ProcessStat
from pardbg.watchdog.model.names import AbsenceReason
from pardbg.watchdog.model.process import STOPPED_STATES

_NO_WAY = "its recorder may be on, but nothing gives access to it: no worker server, no dump pipe, no dump file"
_TELLING = (AbsenceReason.DENIED, AbsenceReason.TIMED_OUT, AbsenceReason.EMPTY, AbsenceReason.UNREADABLE)


def reach(target: Target, parser: SerialParser, began_ns: int, until_s: float) -> Outcome:
    """The rank's recording by the first way that gives one.

    Args:
        target: the rank.
        parser: reads what is found.
        began_ns: when the sample began, epoch ns.
        until_s: when to give up, on the monotonic clock.
    """
    process = living(target)
    if process is None:
        return Refusal(reason=AbsenceReason.GONE, detail="its process has ended", origin=f"/proc/{target.pid}")
    with entered(target) as target_seen:
        return _reach(target_seen, process, parser, began_ns, until_s)


def _reach(target: Target, process: ProcessStat, parser: SerialParser, began_ns: int, until_s: float) -> Outcome:
    origin = f"/proc/{target.pid}"
    target = _as_its_probe_says(target, began_ns)
    if is_off_by_environment(target.environment):
        return Refusal(reason=AbsenceReason.SWITCHED_OFF, detail=f"its environment sets the size 0: {REMEDY}", origin=origin)
    refusals: list[Refusal] = []
    if process.state in STOPPED_STATES:
        detail = f"its process is stopped (state {process.state}) and can answer nothing"
        refusals.append(Refusal(reason=AbsenceReason.UNREACHABLE, detail=detail, origin=origin))
    else:
        outcome = ask_server(target, parser, until_s)
        if outcome is None or (isinstance(outcome, Refusal) and outcome.reason is not AbsenceReason.TIMED_OUT):
            refusals += [outcome] if outcome else []
            outcome = ask_through_pipe(target, parser, began_ns, until_s) if target.is_readable else None
        if isinstance(outcome, Obtained):
            return outcome
        refusals += [outcome] if outcome else []
    outcome = read_newest_dump(target, parser, until_s) if target.is_readable else None
    if isinstance(outcome, Obtained):
        return outcome
    return _explain(target, [*refusals, *([outcome] if outcome else [])], origin)


def _as_its_probe_says(target: Target, began_ns: int) -> Target:
    places = recorder_places(target, began_ns)
    return replace(target, environment={**target.environment, **places})


def _explain(target: Target, refusals: list[Refusal], origin: str) -> Refusal:
    """One absence for all that was tried; the most telling reason stands in front."""
    if not refusals or all(refusal.reason is AbsenceReason.UNREACHABLE for refusal in refusals):
        version = read_version(memory_map(target), target.root) if target.is_readable else None
        if version is not None and is_off_by_default(target.environment, version):
            detail = f"torch {version[0]}.{version[1]} records nothing unless it is told to: {REMEDY}"
            return Refusal(reason=AbsenceReason.SWITCHED_OFF, detail=detail, origin=origin)
    if target.closed is not None:
        refusals = [*refusals, target.closed]
    if not refusals:
        return Refusal(reason=AbsenceReason.UNREACHABLE, detail=_NO_WAY, origin=origin)
    first = min(refusals, key=lambda refusal: _TELLING.index(refusal.reason) if refusal.reason in _TELLING else len(_TELLING))
    others = [refusal.detail for refusal in refusals if refusal is not first]
    return Refusal(reason=first.reason, detail="; ".join(dict.fromkeys([first.detail, *others])), origin=first.origin or origin)
