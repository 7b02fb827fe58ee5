"""The child process that touches files: it may hang in the kernel, run out of memory or be killed, and nothing else suffers.

It answers one request after the other on its standard streams and keeps nothing of a file.
"""

import gc
import os
from typing import BinaryIO

import msgspec
from msgspec.structs import replace

from pardbg.collectors.first_to_go import be_the_first_to_go
from pardbg.collectors.jobs.looking import look_at_all
from pardbg.collectors.jobs.process import LookRequest
from pardbg.collectors.live.answering import answer_job
from pardbg.collectors.opening import read_regular_file
from pardbg.collectors.parsing.recognise import Content, parse_as, recognise, tell_unread
from pardbg.collectors.reading_protocol import LENGTH, FileRead, Problem, ReadRequest, Request, WalkRequest, frame, unread
from pardbg.collectors.walking import printable, walk
from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.names import AbsenceReason


def main() -> None:
    """Serves until the parent closes the pipe."""
    be_the_first_to_go()
    gc.disable()  # parsed dumps are trees: reference counts free them, and the collector doubles the time to build them
    with os.fdopen(os.dup(0), "rb") as requests, os.fdopen(os.dup(1), "wb") as replies:
        os.dup2(2, 1)  # nothing else may write between the frames
        serve(requests, replies)


def serve(requests: BinaryIO, replies: BinaryIO) -> None:
    """Answers each request in order; a walk with several frames."""
    decoder = msgspec.msgpack.Decoder(Request)
    while len(length := requests.read(LENGTH.size)) == LENGTH.size:
        request = decoder.decode(requests.read(LENGTH.unpack(length)[0]))
        if isinstance(request, ReadRequest):
            replies.write(answer_read(request))
        elif isinstance(request, WalkRequest):
            for part in walk(request.path):
                replies.write(frame(part))
                replies.flush()  # each part is a sign of life
        elif isinstance(request, LookRequest):
            replies.write(frame(look_at_all(request)))
        else:
            replies.write(answer_job(request))
        replies.flush()


def answer_read(request: ReadRequest) -> bytes:
    """Reads and parses one file, and encodes what it says or why it says nothing."""
    content, mtime_ns = Content.UNRECOGNISED, None
    reason = AbsenceReason.UNREADABLE
    try:
        opened = read_regular_file(request.path, request.root)
        mtime_ns = opened.mtime_ns
        name = printable(os.path.basename(request.path))  # noqa: PTH119 - bytes
        content = recognise(name, opened.data)
        if not opened.data.strip() and content not in {Content.EMPTY_LOG, Content.UNRECOGNISED}:
            reason, detail = AbsenceReason.EMPTY, "the file is empty: its writer was killed, or the disk was full"
        else:
            parsed = parse_as(content, opened.data)
            omitted = tuple(tell_unread(content, len(opened.data), opened.size_bytes))
            return frame(FileRead(parsed=replace(parsed, found=(*parsed.found, *omitted)), mtime_ns=mtime_ns))
    except ParseError as error:
        detail = str(error)
    except PermissionError as error:
        reason, detail = AbsenceReason.DENIED, error.strerror or str(error)
    except OSError as error:
        detail = error.strerror or str(error)
    except MemoryError:
        detail = "it asks for more memory than a file of its size can need"
    except (OverflowError, UnicodeEncodeError, RecursionError) as error:
        detail = f"values that no recorder writes: {error}"
    return frame(unread(Problem(path=printable(request.path), reason=reason, detail=detail), content, mtime_ns))


if __name__ == "__main__":
    main()
