"""One HTTP request to a local server that may be dead, frozen or hostile: a total deadline, a bounded answer, nothing else.

Cost: one connection, which the answer closes. A frozen server finds a closed connection when it wakes, and drops it.
"""

import contextlib
import socket
import stat
import struct
import time
from collections.abc import Iterator

from pardbg.collectors.live.recorders.listening import TcpAddress, UnixAddress
from pardbg.collectors.live.recorders.trusted_file import RefusedError, looked_up
from pardbg.watchdog.errors import PardbgError
from pardbg.watchdog.model.names import AbsenceReason

MOST_ANSWER_BYTES = 256 * 1024**2
_PART_BYTES = 1024 * 1024
_BETWEEN_TRIES_S = 0.02
_HEAD_END = b"\r\n\r\n"
_PEER = struct.Struct("3i")  # struct ucred: pid, uid, gid
_OK = 200


class NoAnswerError(PardbgError):
    """The server did not answer; ``reason`` is for the absence."""

    remedy = "ask again later"

    def __init__(self, reason: AbsenceReason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def exchange(address: UnixAddress | TcpAddress, request_line: str, *, pid: int, until_s: float) -> bytes:
    """Sends a request without a body and returns the body of the answer.

    Args:
        address: the server.
        request_line: method and path, ``GET /handler/``.
        pid: who must be listening, where the kernel tells (unix sockets): nobody else is sent a byte.
        until_s: when to give up, on the monotonic clock.

    Raises:
        NoAnswerError: if there is no whole answer 200 by then.
    """
    try:
        with socket.socket(_family(address), socket.SOCK_STREAM) as connection:
            with _place(address) as place:
                _connect(connection, place, until_s)
            if isinstance(address, UnixAddress):
                _check_listener(connection, pid)
            head = f"{request_line} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            connection.sendall(head.encode())
            return parse_answer(_receive(connection, until_s))
    except RefusedError as error:
        raise NoAnswerError(error.refusal.reason, f"its worker server's socket: {error.refusal.detail}") from error
    except TimeoutError as error:
        raise NoAnswerError(AbsenceReason.TIMED_OUT, "its worker server gives no answer") from error
    except PermissionError as error:
        raise NoAnswerError(
            AbsenceReason.DENIED, "its worker server's socket belongs to another user: run pardbg as root"
        ) from error
    except OSError as error:
        raise NoAnswerError(AbsenceReason.UNREACHABLE, f"no worker server answers there: {error.strerror or error}") from error


def parse_answer(answer: bytes) -> bytes:
    """Takes the body out of a whole answer.

    Raises:
        NoAnswerError: if it is no HTTP, says anything but 200, or was cut off.
    """
    head, found, body = answer.partition(_HEAD_END)
    status_line, *fields = head.decode("latin-1").split("\r\n")
    words = status_line.split(maxsplit=2)
    if not found or not status_line.startswith("HTTP/1.") or len(words) < 2 or not words[1].isdecimal():
        raise NoAnswerError(AbsenceReason.UNREADABLE, "what answers there is no worker server")
    if int(words[1]) != _OK:
        raise NoAnswerError(AbsenceReason.UNREADABLE, f"its worker server answers HTTP {words[1]}")
    length = next((field.split(":", 1)[1].strip() for field in fields if field.lower().startswith("content-length:")), "")
    if length != str(len(body)):
        raise NoAnswerError(AbsenceReason.UNREADABLE, f"its worker server's answer broke off after {len(body)} bytes")
    return body


@contextlib.contextmanager
def _place(address: UnixAddress | TcpAddress) -> Iterator[bytes | tuple[str, int]]:
    """What to connect to. A socket below another root has no name here: it is reached through a handle of it."""
    if isinstance(address, TcpAddress):
        yield (address.host, address.port)
    elif address.root is None:
        yield address.path
    else:
        with looked_up(address.path, None, stat.S_IFSOCK, root=address.root) as (handle, _):
            yield b"/proc/self/fd/%d" % handle


def _connect(connection: socket.socket, place: bytes | tuple[str, int], until_s: float) -> None:
    while True:
        connection.settimeout(_left_s(until_s))
        try:
            connection.connect(place)
        except BlockingIOError:  # the queue of a unix socket is full
            time.sleep(_BETWEEN_TRIES_S)
        else:
            return


def _receive(connection: socket.socket, until_s: float) -> bytes:
    answer = bytearray()
    while True:
        connection.settimeout(_left_s(until_s))
        part = connection.recv(_PART_BYTES)
        if not part:
            return bytes(answer)
        answer += part
        if len(answer) > MOST_ANSWER_BYTES:
            raise NoAnswerError(AbsenceReason.UNREADABLE, f"an answer of more than {MOST_ANSWER_BYTES} bytes")


def _left_s(until_s: float) -> float:
    left = until_s - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _family(address: UnixAddress | TcpAddress) -> socket.AddressFamily:
    if isinstance(address, UnixAddress):
        return socket.AF_UNIX
    return socket.AF_INET6 if ":" in address.host else socket.AF_INET


def _check_listener(connection: socket.socket, pid: int) -> None:
    """All ranks share their environment, so the one socket it names belongs to one of them at most."""
    listener = _PEER.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))[0]
    if listener != pid:
        detail = f"the worker server's socket that its environment names belongs to process {listener}"
        raise NoAnswerError(AbsenceReason.UNREACHABLE, detail)
