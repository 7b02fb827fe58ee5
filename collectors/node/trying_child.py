"""The child process that tries what may hang: it answers line by line, so that what came before the hang counts."""

import contextlib
import os
import resource
import sys
from collections.abc import Iterator

import msgspec

from pardbg.collectors.node.answers import Answer, RanksRequest, Request, SoftwareRequest
from pardbg.collectors.node.ranks import look_at_ranks
from pardbg.collectors.node.software import read_software
from pardbg.collectors.node.trying import try_all


def main() -> None:
    """Answers the one request on standard input."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    request = msgspec.json.decode(sys.stdin.buffer.readline(), type=Request)
    if isinstance(request, SoftwareRequest):
        answers: Iterator[Answer] = read_software(request)
    else:
        answers = look_at_ranks(request) if isinstance(request, RanksRequest) else try_all(request)
    with os.fdopen(os.dup(1), "wb") as output:
        os.dup2(2, 1)  # nothing else may write between the lines
        with contextlib.suppress(BrokenPipeError):
            for answer in answers:
                output.write(msgspec.json.encode(answer) + b"\n")
                output.flush()
    os._exit(0)  # a thread that hangs is not waited for


if __name__ == "__main__":
    main()
