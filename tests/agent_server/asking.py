"""Asks a server as `curl` would: one request on a connection of its own."""

import http.client
import json
import socket
import ssl
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_BY_SOCKET = """
import http.client, json, socket, sys
connection = http.client.HTTPConnection("localhost")
connection.sock = socket.socket(socket.AF_UNIX)
connection.sock.connect(sys.argv[1])
connection.request(sys.argv[2], sys.argv[3], body=sys.stdin.buffer.read() or None)
answer = connection.getresponse()
sys.stdout.buffer.write(b"%d\\n%b" % (answer.status, answer.read()))
"""


@dataclass(frozen=True)
class Answer:
    """What came."""

    status: int
    body: bytes
    headers: dict[str, str]

    @property
    def json(self) -> Any:
        """Decoded."""
        return json.loads(self.body)

    @property
    def error(self) -> str:
        """What it says is wrong; it has the form of all errors."""
        assert set(self.json) == {"error", "remedy", "reason"}
        return str(self.json["error"])


def ask(
    port: int,
    path: str,
    *,
    method: str = "GET",
    body: bytes | None = None,
    tls: ssl.SSLContext | None = None,
    shown: str = "",
) -> Answer:
    """By the port; ``shown`` is the ``Authorization``."""
    connection: http.client.HTTPConnection = (
        http.client.HTTPSConnection("127.0.0.1", port, timeout=10, context=tls)
        if tls is not None
        else http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    )
    try:
        connection.request(method, path, body=body, headers={"Authorization": shown} if shown else {})
        answer = connection.getresponse()
        return Answer(answer.status, answer.read(), dict(answer.getheaders()))
    finally:
        connection.close()


def ask_as(uid: int, path: Path, target: str, *, method: str = "GET", body: bytes = b"") -> Answer:
    """By the socket, as a user: the kernel says who it is."""
    words = [sys.executable, "-I", "-S", "-c", _BY_SOCKET, str(path), method, target]
    become = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"] if uid else []
    done = subprocess.run([*become, *words], input=body, capture_output=True, check=True, timeout=20)
    status, _, rest = done.stdout.partition(b"\n")
    return Answer(int(status), rest, {})


def send(port: int, data: bytes, *, wait: bool = True) -> bytes:
    """Bytes as they are; what comes back until the end, or nothing if it is not waited for."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(data)
        answer = b""
        while wait and (part := connection.recv(65536)):
            answer += part
        return answer
