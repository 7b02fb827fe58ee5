"""Things that listen where an agent should, one behaviour a port, and what they send."""

import socket
import ssl
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress

from pardbg.watchdog.bench.certificates import Pair
from pardbg.watchdog.transport.agent_words import MOST_PACKED_BYTES

Behaviour = Callable[[socket.socket], None]
GOOD = b"\x81\xa4type\xa4seen"


def ok(body: bytes, *lines: str, kind: str = "application/msgpack", length: int | None = None) -> bytes:
    head = ["HTTP/1.1 200 OK", f"Content-Type: {kind}", f"Content-Length: {len(body) if length is None else length}", *lines]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def say(answer: bytes) -> Behaviour:
    def behave(client: socket.socket) -> None:
        client.sendall(answer)

    return behave


def drip(head: bytes) -> Behaviour:
    def behave(client: socket.socket) -> None:
        client.sendall(head)
        while True:
            client.sendall(b"x")
            time.sleep(0.05)

    return behave


def flood(client: socket.socket) -> None:
    client.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/msgpack\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        client.sendall(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")


def complain(status: int, body: bytes) -> Behaviour:
    return say(b"HTTP/1.1 %d x\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body))


BOMB = zlib.compress(b"\0" * 100_000_000, 9)
BEHAVIOURS: Mapping[str, tuple[Behaviour, str]] = {
    "good": (say(ok(GOOD)), ""),
    "packed": (say(ok(zlib.compress(GOOD), "Content-Encoding: deflate")), ""),
    "silent": (lambda _: time.sleep(5), "timed-out: the agent at "),
    "dripping-head": (drip(b"HTTP/1.1 200 OK\r\nX-A: "), "timed-out: "),
    "dripping-body": (drip(ok(b"", length=10_000)), "timed-out: "),
    "flooding": (flood, f"unreadable: its answer is larger than {MOST_PACKED_BYTES} bytes"),
    "too-large": (say(ok(b"x" * (MOST_PACKED_BYTES + 1))), "unreadable: its answer is larger than"),
    "cut-off": (say(ok(b"x", length=100)), "unreadable: what "),
    "bomb": (say(ok(BOMB, "Content-Encoding: deflate")), "unreadable: its answer cannot be used: it unpacks to more than"),
    "broken": (say(ok(b"no zlib", "Content-Encoding: deflate")), "unreadable: its answer cannot be used: it does not unpack"),
    "other-coding": (say(ok(GOOD, "Content-Encoding: br")), "unreadable: it answers with"),
    "html": (say(ok(b"<html>", kind="text/html")), "unreadable: it answers with 'text/html', which no agent does"),
    "elsewhere": (
        say(b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/x\r\nContent-Length: 0\r\n\r\n"),
        "unreadable: it sends us elsewhere (status 302): not followed",
    ),
    "many-heads": (say(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 5000 + b"\r\n"), "unreadable: what "),
    "long-head": (say(b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000 + b"\r\n\r\n"), "unreadable: what "),
    "no-http": (say(b"SSH-2.0-OpenSSH_9.2\r\n"), "unreadable: what "),
    "closing": (lambda _: None, "unreachable: "),
    "steering": (
        complain(403, b'{"error":"\\u001b[31mno\\nyou","remedy":"go"}'),
        "denied: its agent refuses: [31mno you; go",
    ),
    "old": (say(b"HTTP/1.1 404 x\r\nContent-Length: 0\r\n\r\n"), "unsupported: what answers there is no agent"),
    "failing": (say(b"HTTP/1.1 500 x\r\nContent-Length: 2\r\n\r\n{}"), "unreadable: its agent fails: status 500"),
    "own-words": (complain(502, b'{"error":"its rank went","reason":"gone"}'), "gone: its rank went"),
    "busy": (say(b"HTTP/1.1 429 x\r\nRetry-After: 600\r\nContent-Length: 0\r\n\r\n"), "skipped: its agent is busy: status 429"),
    "endless-error": (
        say(b"HTTP/1.1 403 x\r\nContent-Length: 99999999\r\n\r\n" + b"x" * 1_000_000),
        "denied: its agent refuses: status 403",
    ),
}


@contextmanager
def listening(behaviour: Behaviour, tls: ssl.SSLContext | None = None) -> Iterator[int]:
    """The port at which it is done with each connection, after its request has come."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        is_over = threading.Event()

        def attend(client: socket.socket) -> None:
            client.settimeout(5)
            talk = client if tls is None else tls.wrap_socket(client, server_side=True, do_handshake_on_connect=False)
            with talk, suppress(OSError):
                talk.recv(65536)
                behaviour(talk)
                talk.shutdown(socket.SHUT_WR)
                while talk.recv(65536):
                    pass

        def accept() -> None:
            while not is_over.is_set():
                with suppress(OSError):
                    client, _ = server.accept()
                    threading.Thread(target=attend, args=(client,), daemon=True).start()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            is_over.set()
            with suppress(OSError):
                socket.create_connection(server.getsockname(), timeout=1).close()
            thread.join(2)


@contextmanager
def all_listening() -> Iterator[dict[str, int]]:
    """The port of each behaviour."""
    with ExitStack() as stack:
        yield {name: stack.enter_context(listening(behaviour)) for name, (behaviour, _) in BEHAVIOURS.items()}


def server_tls(pair: Pair, client_ca: Pair | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pair.certificate, pair.key)
    if client_ca is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(client_ca.certificate)
    return context
