"""The lines of the conversation with `pardbg collect`: one JSON object each, which says itself whose it is. Pure.

Request: ``{"pardbg": "collect/1", "id": 7, "data": "<base64 of zlib>", "within_s": 9.5, "nodes": ["n17"]}``.
Answer: ``{"pardbg": "collect/1", "id": 7, "node": "n17", "part": 0, "of": 3, "data": "<piece of that>"}`` in any number
of parts, or ``{..., "reason": "timed-out", "detail": "..."}`` in one.
Id 0: a node that has come up greets with an empty part; a request with id 0 asks whether it hears, and it says `HEARD`.

Everything after ``collect/1`` and a dot is a minor version and does not matter: keys that are not known are ignored.
"""

import re
import zlib
from collections.abc import Iterator
from typing import Annotated, TypeVar

import msgspec

from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.names import AbsenceReason

PROTOCOL = "collect/1"
GREETING_ID = 0
HEARD = "heard"
LINE_BYTES = 1000
"""No answer's line is longer, its end included: srun hands longer ones (1,024) on in pieces, with others' lines in between."""
LONGEST_REQUEST_BYTES = 1024**2
USUAL_WITHIN_S = 60.0

Number = Annotated[int, msgspec.Meta(ge=-(2**53), le=2**53)]
"""What every JSON library can hold; others have been sent to do harm."""

_LONGEST_NAME = 255
_FEWEST_PIECE_BYTES = 96
_MARK = b'{"pardbg":'
_MAJOR = re.compile(r"collect/1(\.\d{1,9})?")


class Request(Noun, frozen=True, kw_only=True, omit_defaults=True):
    """One question to ``nodes`` (None: to everybody who hears it). It is worth nothing to the asker after ``within_s``."""

    pardbg: str
    id: Number
    data: bytes
    within_s: float = USUAL_WITHIN_S
    nodes: tuple[str, ...] | None = None


class Part(Noun, frozen=True, kw_only=True, omit_defaults=True):
    """One line of an answer. ``reason`` is not empty where the node says why it has no answer."""

    pardbg: str
    id: Number
    node: str
    part: Number = 0
    of: Number = 1
    data: bytes = b""
    reason: str = ""
    detail: str = ""


class Stranger(Noun, frozen=True, kw_only=True):
    """A line of ours in a version that is not spoken here."""

    pardbg: str
    node: str = ""
    id: object = None


Line = TypeVar("Line", Request, Part)

_requests = msgspec.json.Decoder(Request)
_parts = msgspec.json.Decoder(Part)
_strangers = msgspec.json.Decoder(Stranger)


def encode_request(request_id: int, packed: bytes, within_s: float, nodes: tuple[str, ...] | None) -> bytes:
    """A request's line. ``packed`` comes from `pack`.

    Raises:
        ValueError: if it is longer than `LONGEST_REQUEST_BYTES`.
    """
    request = Request(pardbg=PROTOCOL, id=request_id, data=packed, within_s=round(within_s, 3), nodes=nodes)
    line = msgspec.json.encode(request) + b"\n"
    if len(line) > LONGEST_REQUEST_BYTES:
        raise ValueError(f"a request of {len(line)} bytes: at most {LONGEST_REQUEST_BYTES} can be sent")
    return line


def decode_request(line: bytes) -> Request | Stranger | None:
    """What a line asks; None if it is none of ours."""
    return _decode(line, _requests)


def encode_answer(request_id: int, node: str, data: bytes) -> Iterator[bytes]:
    """The lines of an answer, each at most `LINE_BYTES` long."""
    packed = pack(data)
    bare = len(msgspec.json.encode(Part(pardbg=PROTOCOL, id=request_id, node=node, part=10**6, of=10**6, data=b"123")))
    piece_bytes = max((LINE_BYTES - bare) // 4 * 3, _FEWEST_PIECE_BYTES)
    of = -(-len(packed) // piece_bytes)
    for part in range(of):
        piece = packed[part * piece_bytes : (part + 1) * piece_bytes]
        line = Part(pardbg=PROTOCOL, id=request_id, node=node, part=part, of=of, data=piece)
        yield msgspec.json.encode(line) + b"\n"


def encode_refusal(request_id: int, node: str, reason: AbsenceReason, detail: str) -> bytes:
    """The line that says why there is no answer; a long ``detail`` is cut."""
    while True:
        part = Part(pardbg=PROTOCOL, id=request_id, node=node, reason=reason.value, detail=detail)
        line = msgspec.json.encode(part) + b"\n"
        if len(line) <= LINE_BYTES or not detail:
            return line
        detail = detail[: len(detail) * 3 // 4]


def encode_greeting(node: str, detail: str = "") -> bytes:
    """The first line of a node; with ``detail=HEARD`` its answer to whether it hears."""
    return msgspec.json.encode(Part(pardbg=PROTOCOL, id=GREETING_ID, node=node, detail=detail)) + b"\n"


def decode_answer_line(line: bytes) -> Part | Stranger | None:
    """What an answer's line says; None if it is none of ours, or damaged."""
    return _decode(line, _parts)


def pack(data: bytes) -> bytes:
    """The form in which data travels, before base64."""
    return zlib.compress(data, 6)


def unpack(packed: bytes, most_bytes: int) -> bytes:
    """The inverse of `pack`, of data that others have sent.

    Raises:
        ValueError: if it is damaged, or would be larger than ``most_bytes``; no more memory than that is taken.
    """
    inflating = zlib.decompressobj()
    try:
        data = inflating.decompress(packed, most_bytes)
    except zlib.error as error:
        raise ValueError(f"it does not unpack ({error})") from error
    if inflating.unconsumed_tail or (not inflating.eof and len(data) >= most_bytes):
        raise ValueError(f"it unpacks to more than {most_bytes} bytes")
    if not inflating.eof or inflating.unused_data:
        raise ValueError("it unpacks to something that has no end, or has more after it")
    return data


def _decode(line: bytes, decoder: "msgspec.json.Decoder[Line]") -> Line | Stranger | None:
    start = line.rfind(_MARK)  # a progress bar without an end of line, or another node's unfinished frame, may be before it
    if start < 0:
        return None
    try:
        found = decoder.decode(line[start:])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _decode_stranger(line[start:])
    if _MAJOR.fullmatch(found.pardbg):
        return found
    return Stranger(pardbg=found.pardbg, node=found.node if isinstance(found, Part) else "", id=found.id)


def _decode_stranger(line: bytes) -> Stranger | None:
    """A line of ours that is shaped otherwise: of another version, else damaged."""
    try:
        stranger = _strangers.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    is_other = stranger.pardbg.startswith("collect/") and not _MAJOR.fullmatch(stranger.pardbg)
    return stranger if is_other and len(stranger.node) <= _LONGEST_NAME else None
