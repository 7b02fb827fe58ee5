"""What scans and agents agree on: where to ask, in which form, how large, and how an agent says no. Pure."""

import msgspec

from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.names import AbsenceReason
from pardbg.watchdog.transport.printable import printable

LOOK_PATH = "/v1/look"
JOBS_PATH = "/v1/jobs"
MSGPACK = "application/msgpack"
JSON = "application/json"
DEFLATE = "deflate"
"""The coding of answers, for those who accept it: `lines.pack`."""
MOST_REQUEST_BYTES = 1024**2
MOST_PACKED_BYTES = 8 * 1024**2
"""Of one answer, as it travels."""
MOST_ERROR_BYTES = 64 * 1024

_DENIED = frozenset({401, 403})
_BUSY = frozenset({429, 503})
_UNKNOWN = frozenset({404, 405, 415})


class Complaint(Noun, frozen=True, kw_only=True):
    """The JSON of every answer that is none. ``reason`` is an `AbsenceReason`, where one says it better than the status."""

    error: str = ""
    remedy: str = ""
    reason: str = ""


def explain_status(status: int, body: bytes) -> tuple[AbsenceReason, str]:
    """What an answer other than 200 means. Its text is an agent's, or somebody else's."""
    try:
        complaint = msgspec.json.decode(body, type=Complaint)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        complaint = Complaint()
    words = "; ".join(filter(None, (printable(complaint.error), printable(complaint.remedy))))
    if complaint.reason in {reason.value for reason in AbsenceReason}:
        return AbsenceReason(complaint.reason), words or f"its agent answers with status {status}"
    if status in _DENIED:
        return AbsenceReason.DENIED, f"its agent refuses: {words or f'status {status}'}"
    if status in _BUSY:
        return AbsenceReason.SKIPPED, f"its agent is busy: {words or f'status {status}'}"
    if status in _UNKNOWN:
        return AbsenceReason.UNSUPPORTED, f"what answers there is no agent of this version: {words or f'status {status}'}"
    if 300 <= status < 400:
        return AbsenceReason.UNREADABLE, f"it sends us elsewhere (status {status}): not followed"
    return AbsenceReason.UNREADABLE, f"its agent fails: {words or f'status {status}'}"
