"""A stand-in for a rank with a worker server, for answers that torch's own server does not give on this machine.

Arguments: ``tcp`` or a path for the socket; a JSON object from request line to the raw answer; how the answer is sent. It says
"ready" once a thread with torch's name for it waits in accept.
"""

import contextlib
import json
import socket
import sys
import threading
import time
from pathlib import Path

THREAD_NAME = "pt_workerserver"
place, answers, manner = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]


def answer(connection: socket.socket) -> None:
    line = connection.recv(65536).decode().split(" HTTP/1.1")[0]
    status, body = ("200 OK", answers[line]) if line in answers else ("404 Not Found", "no such handler")
    length = len(body) + (100 if manner == "short" else 0)
    whole = f"HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}".encode()
    if manner == "drip":
        for byte in whole * 1000:
            connection.sendall(bytes([byte]))
            time.sleep(0.01)
    elif manner == "flood":
        while True:
            connection.sendall(b"x" * 1024 * 1024)
    elif manner == "silent":
        time.sleep(3600)
    elif manner == "not-http":
        connection.sendall(b"\x00\x01\x02" * 100)
    else:
        connection.sendall(whole)


def serve(listener: socket.socket) -> None:
    if manner != "nameless":
        Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_text(THREAD_NAME)
    listener.settimeout(None)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while True:
        connection, _ = listener.accept()
        with connection, contextlib.suppress(ConnectionError):
            answer(connection)


if place == "tcp":
    listener = socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True)
else:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(place)
    listener.listen(5)
decoy = socket.create_server(("127.0.0.1", 0))  # like gloo's: whoever connects here has harmed the job
threading.Thread(target=serve, args=(listener,), daemon=True).start()
decoy.accept()  # the process ends: harmed
