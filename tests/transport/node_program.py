"""A node for tests: the real serving side with a handler that echoes, or one of several ways to be no good.

Started as ``python node_program.py BEHAVIOUR --node NAME``.
"""

import json
import os
import signal
import subprocess
import sys
import time
import zlib
from base64 import b64encode
from collections.abc import Callable

from pardbg.watchdog.model.names import AbsenceReason
from pardbg.watchdog.transport.serving import CannotAnswerError, node_name, serve

ROUND_S = 0.1
PARENT = os.getppid()


def echo(data: bytes) -> bytes:
    """Its own name, a colon and what it was asked; some questions ask for more."""
    words = data.split()
    match words[:1]:
        case [b"sleep"] if len(words) < 3 or words[2].decode() == NAME:
            time.sleep(float(words[1]))
        case [b"spin"]:
            while True:
                pass
        case [b"bytes"]:
            return os.urandom(int(words[1]))
        case [b"print"]:
            print("a stray print")  # noqa: T201 - that is what is tested
            subprocess.run(["/bin/echo", "a stray child"], check=False)
        case [b"raise"]:
            raise RuntimeError("secret=hunter2")
        case [b"refuse"]:
            raise CannotAnswerError(AbsenceReason.GONE, "no rank of that job is here")
        case [b"pid"]:
            return str(os.getpid()).encode()
        case [b"die"] if len(words) < 2 or words[1].decode() == NAME:
            os.kill(os.getpid(), signal.SIGKILL)
    return NAME.encode() + b":" + data


def say(text: str) -> None:
    """Straight to standard output, as rubbish comes."""
    sys.stdout.write(text)
    sys.stdout.flush()


def line(**keys: object) -> str:
    """A line as a node would write it, with whatever is wrong with it."""
    return json.dumps({"pardbg": "collect/1", "node": NAME, "id": 1, "part": 0, "of": 1, **keys}) + "\n"


def packed(data: bytes) -> str:
    """Data as it travels."""
    return b64encode(zlib.compress(data)).decode()


def linger() -> None:
    """Stays whatever comes, until its parent is gone: a test run that is killed must leave nothing."""
    while os.getppid() == PARENT:
        time.sleep(ROUND_S)


def dead() -> None:
    """Ends before it has said anything."""
    sys.exit("node_program: cannot start today")


def mid_answer() -> None:
    """Ends when a part of its answer is out."""
    sys.stdin.readline()
    say(line(of=3, data="QUJD"))
    os.kill(os.getpid(), signal.SIGKILL)


def silent() -> None:
    """Neither speaks nor ends, not even when its input does."""
    linger()


def deaf() -> None:
    """Comes up, and reads nothing."""
    say(line(id=0))
    linger()


def rubbish() -> None:
    """Answers with anything but an answer."""
    sys.stdin.readline()
    sys.stdout.buffer.write(bytes(range(256)) * 20 + b'\n{"pardbg": [1, {}]}\n{"pardbg": "collect/1", "id": 1}\n')
    say(line(part="first") + line(data="not base64!") + "\x1b[31mred\n")
    linger()


def huge_of() -> None:
    """Announces a thousand million parts."""
    sys.stdin.readline()
    say(line(of=10**9, data="QUJD"))
    linger()


def bomb() -> None:
    """Answers with a lot of nothing, well packed."""
    sys.stdin.readline()
    inner = b64encode(zlib.compress(bytes(200 * 1024**2), 9)).decode()
    pieces = [inner[at : at + 800] for at in range(0, len(inner), 800)]
    for part, piece in enumerate(pieces):
        say(line(part=part, of=len(pieces), data=piece))
    linger()


def endless() -> None:
    """Writes for ever, without an end of line."""
    while True:
        sys.stdout.buffer.write(b"x" * 65536)


def endless_lines() -> None:
    """Writes lines for ever."""
    while True:
        say("yes\n" * 10000)


def endless_parts() -> None:
    """Sends parts of one answer for ever."""
    sys.stdin.readline()
    part = 0
    while True:
        say(line(part=part, of=60000, data="QUJD" * 150))
        part += 1


def impostor() -> None:
    """Answers in the name of another node."""
    sys.stdin.readline()
    say(line(node="somebody-else", data=packed(b"mine")))
    linger()


def newer() -> None:
    """Speaks the next major version."""
    say(json.dumps({"pardbg": "collect/2", "from": NAME}) + "\n")
    linger()


def minor() -> None:
    """Speaks a later minor version: keys and a spelling that are not known here."""
    while json.loads(sys.stdin.readline())["id"] == 0:
        pass
    say(line(pardbg="collect/1.3", data=packed(b"minor"), colour="blue"))
    linger()


def banner() -> None:
    """Talks before it works, and its last words have no end of line."""
    say("Welcome to the cluster!\n\nLast login: Monday\nloading modules 100%\r")
    serve(echo, node=NAME)


def slow_start() -> None:
    """Takes a while to come up."""
    time.sleep(1.5)
    serve(echo, node=NAME)


def backwards() -> None:
    """Sends its parts in the wrong order, each twice, among other lines."""
    sys.stdin.readline()
    whole = zlib.compress(b"backwards")
    for part in reversed(range(len(whole))):
        say((line(part=part, of=len(whole), data=b64encode(whole[part : part + 1]).decode()) + "noise\n") * 2)
    linger()


def good() -> None:
    """As it should be."""
    serve(echo, node=NAME, idle_s=float(os.environ.get("TEST_IDLE_S", "120")))


BEHAVIOURS: dict[str, Callable[[], None]] = {
    made.__name__: made
    for made in (
        *(
            dead,
            mid_answer,
            silent,
            deaf,
            rubbish,
            huge_of,
            bomb,
            endless,
            endless_lines,
            endless_parts,
            impostor,
            newer,
            minor,
        ),
        *(banner, slow_start, backwards, good),
    )
}

if __name__ == "__main__":
    NAME = node_name(sys.argv[sys.argv.index("--node") + 1] if "--node" in sys.argv else None)
    BEHAVIOURS[sys.argv[1]]()
