"""What a broken connection does to gloo's recorder: it retires the operation that failed, as if it were done. Pure.

A rank whose last word is gloo's own error waited in the operation it had issued last. NCCL's recorder tells that by itself.
"""

from msgspec.structs import replace

from pardbg.watchdog.model.heartbeat import Ending, EndingKind
from pardbg.watchdog.model.recording import Operation, Recording

_GLOO = "gloo"


def reopen_last(recording: Recording, ending: Ending | None) -> Recording:
    """The recording, its last operation outstanding again if the rank's last word says that gloo broke it off.

    Not where the group also carries sends and receives, which gloo does not record: it may have been one of those.
    """
    is_broken = ending is not None and ending.kind is EndingKind.EXCEPTION and ending.is_consequence
    if not is_broken or ending is None or _GLOO not in ending.text.lower() or not recording.operations:
        return recording
    *before, last = recording.operations
    name = recording.groups[last.group].name
    if not last.is_done or recording.signatures[last.signature].backend != _GLOO or name in recording.unrecorded_p2p:
        return recording
    return replace(recording, operations=(*before, _open(last)))


def _open(operation: Operation) -> Operation:
    return replace(operation, is_done=False)
