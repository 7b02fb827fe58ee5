"""What the child process is asked, and what it answers: one request with all ranks, one framed reply for each."""

import os

import msgspec

from pardbg.collectors.inside import RankRoot
from pardbg.collectors.live.recorders.outcome import Outcome, Refusal, StackAnswer
from pardbg.collectors.reading_protocol import LENGTH
from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.world import RankProcess

MOST_REPLY_BYTES = 2 * 1024**3


class Target(Noun, frozen=True, kw_only=True):
    """A rank to reach. ``environment`` is what its environment asks of the recorder; bytes, because a path need not be text.

    Attributes:
        own_pid: its number in its own pid namespace, as ``own_uid`` is its user's in its own user namespace.
        root: a handle of its root, once it was entered (`entering.py`); only for a rank in another mount namespace.
        closed: why there is none.
    """

    rank: int
    pid: int
    uid: int
    started_ticks: int
    is_at_home: bool
    environment: dict[str, bytes]
    own_pid: int
    own_uid: int
    root: int | None = None
    closed: Refusal | None = None

    @property
    def is_readable(self) -> bool:
        """Whether its files can be read."""
        return self.is_at_home or self.root is not None

    @property
    def foreign_root(self) -> RankRoot | None:
        """Where its paths begin; None if they are ours."""
        return None if self.is_at_home else RankRoot(pid=self.pid, started_ticks=self.started_ticks)

    @classmethod
    def of(cls, process: RankProcess) -> "Target":
        """Takes over what matters of a rank's process."""
        return cls(
            rank=process.rank,
            pid=process.pid,
            uid=process.uid,
            started_ticks=process.started_ticks,
            is_at_home=process.is_at_home,
            environment={name: os.fsencode(value) for name, value in process.recorder.items()},
            own_pid=process.own_pid,
            own_uid=process.own_uid,
        )


class Request(Noun, frozen=True, kw_only=True):
    """Reach these ranks.

    Attributes:
        until_s: when to give up, on the monotonic clock, which all processes of a machine share.
        began_ns: when the sample began, epoch ns: a dump written since then belongs to it and is not asked for again.
        is_for_stacks: their own stacks are wanted, not their recorders.
        mute_ranks: those whose worker servers have a question for stacks that they have not answered.
    """

    targets: tuple[Target, ...]
    until_s: float
    began_ns: int = 0
    is_for_stacks: bool = False
    mute_ranks: frozenset[int] = frozenset()


class Reply(Noun, frozen=True, kw_only=True):
    """What came of one rank."""

    rank: int
    outcome: Outcome | StackAnswer


def frame_reply(reply: Reply) -> bytes:
    """Encodes a reply with its length in front."""
    body = msgspec.msgpack.encode(reply)
    return LENGTH.pack(len(body)) + body


def take_replies(received: bytearray) -> list[Reply]:
    """Takes the whole replies off the front of what has been received.

    Raises:
        msgspec.DecodeError: if these are no replies.
    """
    replies = []
    while len(received) >= LENGTH.size:
        size = LENGTH.unpack_from(received)[0]
        if size > MOST_REPLY_BYTES:
            raise msgspec.DecodeError(f"a reply of {size} bytes")
        if len(received) < LENGTH.size + size:
            break
        replies.append(msgspec.msgpack.decode(memoryview(received)[LENGTH.size : LENGTH.size + size], type=Reply))
        del received[: LENGTH.size + size]
    return replies
