"""Stands in for `pardbg collect`: says who it is, and sleeps or dies when it is told to."""

import os
import sys
import time

from pardbg.watchdog.scan.nodes.messages import Find, Found, Seen, TakeSample, decode_request, encode
from pardbg.watchdog.transport.serving import serve

SLEEPS, DIES = 7, 8


def answer(data: bytes) -> bytes:
    request = decode_request(data)
    if isinstance(request, Find):
        return encode(Found(problem=f"{os.getpid()} {' '.join(sys.argv[1:])} {request.job} {request.pids}"))
    if isinstance(request, TakeSample) and request.number == SLEEPS:
        time.sleep(60)
    if isinstance(request, TakeSample) and request.number == DIES:
        os._exit(3)
    return encode(Seen(taken_at="now"))


if __name__ == "__main__":
    serve(answer, node="n1")
