"""A GPU is what others wait for, by what the GPUs themselves show: an error of one, or that one does not do as the others do.

Whose it is and what must not be concluded is in `graph/device_blame.py`; what recorders alone show is in `device_stuck.py`.
"""

from collections.abc import Iterable, Iterator

from pardbg.watchdog.correlators.device_stuck import ask_devices, is_device_stuck
from pardbg.watchdog.correlators.device_words import device_line, name_device
from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.correlators.wording import (
    absent_line,
    count_ranks,
    name_meeting,
    name_ranks,
    since,
    wait_verb,
    waiting_line,
)
from pardbg.watchdog.graph.device_blame import DeviceBlame
from pardbg.watchdog.graph.device_faults import cause_of_xid, is_of_program, name_xid
from pardbg.watchdog.model.device import DeviceSeen, DeviceShape
from pardbg.watchdog.model.names import Cause, Confidence, Kind
from pardbg.watchdog.model.report import EvidenceLine, Finding

MAX_EVIDENCE = 8
ADVICE = {
    Cause.GPU_LOST: "Drain the node; the GPU needs a reset, a power cycle or a replacement.",
    Cause.ECC: "Drain the node and reset the GPU; if errors come again, have it replaced.",
    Cause.NVLINK: "Look at the NVLink counters of both ends and at the fabric manager before this node is used again.",
    Cause.XID: "Look the code up in NVIDIA's list of Xid errors: it tells a fault of the program from one of the GPU.",
    Cause.GPU_KERNEL: "See which kernel runs on that GPU (cuda-gdb stops the process): it does not end.",
}
NO_CAUSE = "Nothing was reported of this GPU: look at its rank's native stack, and for NCCL warnings in its log."


def correlate(situation: Situation) -> Iterable[Finding]:
    """One finding a cause: errors of several GPUs are seldom independent."""
    blames = [blame for blame in situation.device_blames.values() if not is_device_stuck(situation, blame.meeting)]
    for cause in dict.fromkeys(blame.cause for blame in blames):
        yield _describe(situation, [blame for blame in blames if blame.cause is cause])


def _describe(situation: Situation, blames: list[DeviceBlame]) -> Finding:
    first = blames[0]
    ranks = [blame.rank for blame in blames]
    keys = dict.fromkeys(blame.meeting.key for blame in blames)
    victims = tuple(rank for rank in situation.graph.victims([*keys, *ranks]) if rank not in ranks)
    return Finding(
        kind=Kind.DEVICE_STUCK,
        cause=first.cause,
        confidence=Confidence.SUGGESTED if _is_of_programs(situation, blames) else Confidence.SUPPORTED,
        culprits=tuple(situation.subject(blame.rank, f"its GPU {_trouble(situation, blame)}") for blame in blames),
        victims=victims,
        group=situation.meeting_group(first.meeting.key),
        collective=situation.collective_ref(first.meeting),
        since_s=situation.waiting_s(first.meeting),
        claim=(
            f"{_name(situation, ranks)} {_trouble(situation, first)}; {count_ranks(victims)} {wait_verb(victims)} in "
            f"{name_meeting(situation, first.meeting)}{since(situation, first.meeting)}"
        ),
        evidence=tuple(_evidence(situation, blames[:MAX_EVIDENCE])),
        advice=(ADVICE.get(first.cause, NO_CAUSE) if first.cause else NO_CAUSE,),
        actions=tuple(ask_devices(situation, ranks)),
    )


def _is_of_programs(situation: Situation, blames: list[DeviceBlame]) -> bool:
    """Whether the only errors are such that a program mostly makes itself."""
    return all(blame.cause is Cause.XID and is_of_program(situation.view.devices[blame.rank]) for blame in blames)


def _name(situation: Situation, ranks: list[int]) -> str:
    if len(ranks) > 1:
        return f"each of the GPUs of {name_ranks(ranks)}"
    host = situation.view.host(ranks[0])
    name = name_device(situation.view.devices[ranks[0]]).removeprefix("the ")
    return f"{name} of rank {ranks[0]}{f' on {host}' if host else ''}"


def _trouble(situation: Situation, blame: DeviceBlame) -> str:
    seen = situation.view.devices[blame.rank]
    if blame.cause is Cause.GPU_LOST:
        return "is lost"
    if blame.cause is Cause.GPU_KERNEL:
        return "works on something that does not end" if seen.shape in _WORKS else "runs a kernel that does not end"
    if blame.cause is not None:
        return error_words(seen, blame.cause)
    if blame.rank in blame.meeting.waiting:
        return "idles, while those of all others spin in what its rank has entered, too"
    return "idles, while its rank waits for it to finish"


_WORKS = frozenset({DeviceShape.BUSY, DeviceShape.THROTTLED})


def error_words(seen: DeviceSeen, cause: Cause) -> str:
    """Completes "its GPU ..."."""
    codes = dict.fromkeys(xid.code for xid in seen.xids if cause_of_xid(xid.code) is cause)
    if codes:
        implied = all(xid.is_implied for xid in seen.xids if xid.code in codes)
        unseen = " by what later errors name as their cause (the line itself was not found)" if implied else ""
        return f"has reported {' and '.join(map(name_xid, codes))}{unseen}"
    return "has lost an NVLink" if cause is Cause.NVLINK else "has a memory error that could not be corrected"


def _evidence(situation: Situation, blames: list[DeviceBlame]) -> Iterator[EvidenceLine]:
    yield from dict.fromkeys(waiting_line(situation, blame.meeting) for blame in blames if blame.meeting.entered)
    for blame in blames:
        if blame.rank in blame.meeting.absent:
            yield absent_line(situation, blame.meeting, blame.rank)
        line = device_line(situation, blame.rank)
        if line is not None:
            yield line
