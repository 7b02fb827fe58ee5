"""What the reader and its child processes say to each other: length-prefixed msgpack frames."""

import struct

import msgspec

from pardbg.collectors.jobs.process import LookRequest, Looks
from pardbg.collectors.parsing.recognise import Content, ParsedFile
from pardbg.collectors.reading_job import JobReply, JobRequest
from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.names import AbsenceReason

LENGTH = struct.Struct("<Q")


class WalkRequest(Noun, frozen=True, kw_only=True, tag="walk"):
    """List the files under a path that the user gave."""

    path: bytes


class ReadRequest(Noun, frozen=True, kw_only=True, tag="read"):
    """Read one file; ``root`` is the resolved folder it must not leave."""

    path: bytes
    root: bytes


Request = WalkRequest | ReadRequest | JobRequest | LookRequest


class ListedFile(Noun, frozen=True, kw_only=True):
    """A file worth opening. ``path`` is for people, ``real_path`` has no link in it and need not be text.

    ``device`` and ``inode`` identify what is behind the name.
    """

    path: str
    real_path: bytes
    size_bytes: int
    device: int
    inode: int


class Problem(Noun, frozen=True, kw_only=True, tag="problem"):
    """Something at ``path`` that was not read, and why."""

    path: str
    reason: AbsenceReason
    detail: str


class Listing(Noun, frozen=True, kw_only=True, tag="listing"):
    """A part of the answer to a walk; more follow until ``is_last``. ``root`` is the resolved folder."""

    root: bytes
    files: tuple[ListedFile, ...]
    problems: tuple[Problem, ...]
    is_last: bool


class FileRead(Noun, frozen=True, kw_only=True, tag="file"):
    """The answer to a read. ``problem`` stands in for what could not be read or parsed."""

    parsed: ParsedFile
    mtime_ns: int | None = None
    problem: Problem | None = None


class Missing(Noun, frozen=True, kw_only=True, tag="missing"):
    """There is nothing at the path that was to be walked."""

    path: str
    detail: str


Reply = Listing | FileRead | Missing | JobReply | Looks


def unread(problem: Problem, content: Content = Content.UNRECOGNISED, mtime_ns: int | None = None) -> FileRead:
    """The answer for a file that gave nothing."""
    return FileRead(parsed=ParsedFile(content=content), mtime_ns=mtime_ns, problem=problem)


def frame(message: Request | Reply) -> bytes:
    """Encodes a message with its length in front."""
    body = msgspec.msgpack.encode(message)
    return LENGTH.pack(len(body)) + body
