"""What a scan asks a node's `pardbg collect`, and what that answers: msgpack, one tagged object each way.

Readers ignore keys they do not know and fill in those that are missing, so that versions one minor apart understand each other.
``within_s`` is how long the node may take: its clock is not ours.
"""

import msgspec

from pardbg.collectors.jobs.query import ChosenJob
from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.evidence import Evidence
from pardbg.watchdog.model.wanted import Cut, Wanted


class Find(Noun, frozen=True, kw_only=True, tag="find"):
    """Find the ranks of a job on this node. ``job`` as the user gave it; ``pids`` and ``world_size`` as `JobQuery` has them."""

    within_s: float
    job: str | None = None
    pids: tuple[int, ...] = ()
    world_size: int | None = None


class TakeSample(Noun, frozen=True, kw_only=True, tag="sample"):
    """Look at everything once; the number is the sample's."""

    within_s: float
    number: int


class AttachTo(Noun, frozen=True, kw_only=True, tag="attach"):
    """Attach to ranks, in this order. Those that are not here are another node's."""

    within_s: float
    ranks: tuple[int, ...]
    sample: int
    is_kept: bool = False


class ReadLogs(Noun, frozen=True, kw_only=True, tag="logs"):
    """Read what the logs of the ranks say."""

    within_s: float


class ReadSoftware(Noun, frozen=True, kw_only=True, tag="software"):
    """Read the versions that the ranks run."""

    within_s: float


class ReadFaultStacks(Noun, frozen=True, kw_only=True, tag="fault-stacks"):
    """Read the stacks that ranks have written about themselves."""

    within_s: float
    ranks: tuple[int, ...]


class TakeNativeStacks(Noun, frozen=True, kw_only=True, tag="native-stacks"):
    """Take stacks with native frames of a few ranks."""

    within_s: float
    ranks: tuple[int, ...]
    sample: int


class ReadEntries(Noun, frozen=True, kw_only=True, tag="entries"):
    """Give entries of the rings of which digests were sent last. Ranks that are not here are another node's."""

    within_s: float
    wanted: tuple[Wanted, ...]


Looking = TakeSample | AttachTo | ReadSoftware | ReadLogs | ReadFaultStacks | TakeNativeStacks
Request = Find | Looking | ReadEntries


class Found(Noun, frozen=True, kw_only=True, tag="found"):
    """The job's part here. Without one ``problem`` says why, ``remedy`` what to try, ``choices`` which commands mean one."""

    chosen: ChosenJob | None = None
    problem: str = ""
    remedy: str = ""
    choices: tuple[str, ...] = ()


class Seen(Noun, frozen=True, kw_only=True, tag="seen"):
    """Evidence. ``refused_ranks`` may not be looked into, ``kept_count`` ranks keep a server."""

    evidence: tuple[Evidence, ...] = ()
    taken_at: str = ""
    refused_ranks: tuple[int, ...] = ()
    kept_count: int = 0


class Entries(Noun, frozen=True, kw_only=True, tag="cuts"):
    """What was wanted, as far as it is here."""

    cuts: tuple[Cut, ...] = ()


class Failed(Noun, frozen=True, kw_only=True, tag="failed"):
    """The node could not do it, and why."""

    problem: str


Reply = Found | Seen | Entries | Failed

_ENCODER = msgspec.msgpack.Encoder()
_REQUESTS = msgspec.msgpack.Decoder(Request)
_REPLIES = msgspec.msgpack.Decoder(Reply)


def encode(message: Request | Reply) -> bytes:
    """One message."""
    return _ENCODER.encode(message)


def decode_request(data: bytes) -> Request:
    """Reads a request.

    Raises:
        ParseError: if it is none that this version knows.
    """
    try:
        return _REQUESTS.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ParseError(f"no request that pardbg knows: {error}") from error


def decode_reply(data: bytes) -> Reply:
    """Reads a reply.

    Raises:
        ParseError: if it is none that this version knows.
    """
    try:
        return _REPLIES.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ParseError(f"no answer that pardbg knows: {error}") from error
