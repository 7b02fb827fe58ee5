"""Which of a worker server's handlers to ask for the flight recorder, by the list it gives itself: pure.

Every back end has its recorder. Asked for the wrong one, the server answers with an empty trace, which would look like a rank
that has entered nothing. So all that can hold something are asked, and the fullest answer counts.
"""

from collections.abc import Collection

import msgspec

from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.recording import Recording

_NCCL_JSON = "dump_nccl_trace_json"
_NCCL_PICKLE = "dump_nccl_trace_pickle"
_C10D = "fr_trace_json"
_TORCHCOMMS = "torchcomms_fr_trace_json"
_PER_BACKEND_SIGN = "fr_dump_file"  # came together with one recorder for each back end
_HAS_ENTRIES, _HAS_PROGRESS, _EMPTY = 2, 1, 0


def parse_handler_names(body: bytes) -> frozenset[str]:
    """Reads the answer to ``GET /handler/``.

    Raises:
        ParseError: if it is not a worker server's list.
    """
    try:
        names = frozenset(msgspec.json.decode(body, type=list[str]))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ParseError("what answers there is no worker server") from error
    if "ping" not in names:
        raise ParseError("what answers there is no worker server of torch")
    return names


def choose_questions(names: Collection[str]) -> tuple[str, ...]:
    """Paths to POST to, the most telling first: NCCL's recorder before gloo's, since a GPU job uses gloo beside it.

    All of them take neither the GIL nor a stack.
    """
    questions = []
    if _NCCL_JSON in names:
        questions.append(_NCCL_JSON)
    elif _NCCL_PICKLE in names:
        questions.append(f"{_NCCL_PICKLE}?includestacktraces=false")
    if _C10D in names:
        if _PER_BACKEND_SIGN in names:
            questions.append(f"{_C10D}?backend=nccl2")
        questions.append(_C10D)
    if _TORCHCOMMS in names:
        questions.append(_TORCHCOMMS)
    return tuple(f"/handler/{question}" for question in questions)


def rate(recording: Recording) -> int:
    """How much a recording says: operations, at least counters, or nothing."""
    if recording.operations:
        return _HAS_ENTRIES
    return _HAS_PROGRESS if recording.progress else _EMPTY
