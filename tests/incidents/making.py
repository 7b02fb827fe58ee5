"""Incidents, clocks and receivers for tests."""

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from msgspec.structs import replace

from pardbg.watchdog.incidents.clock import Clock
from pardbg.watchdog.model.incident import Incident, IncidentState
from pardbg.watchdog.model.report import Report
from tests.outputs.samples import SAMPLES

MORNING_S = 1_796_000_000.0


def report(name: str = "checkpoint_io") -> Report:
    return SAMPLES[name]


def incident(number: int = 1, *, state: IncidentState = IncidentState.OPEN, of: str = "checkpoint_io") -> Incident:
    """The number makes the id and the hour."""
    return Incident(
        id=f"20261130-{number:06d}-4f2a",
        job="48213",
        attempt=0,
        world=f"10.0.0.1:29500|40|{number}",
        host="gpu-n01",
        state=state,
        opened_at=f"2026-11-30T{number % 24:02d}:00:00.000Z",
        updated_at=f"2026-11-30T{number % 24:02d}:30:00.000Z",
        report=report(of),
    )


def ended(one: Incident) -> Incident:
    return replace(one, state=IncidentState.ENDED)


class SetClock(Clock):
    """Shows the time that a test sets."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0

    def wall_s(self) -> float:
        """Epoch seconds."""
        return MORNING_S + self.now_s

    def steady_s(self) -> float:
        """Seconds."""
        return self.now_s


class Hook:
    """A receiver on 127.0.0.1. ``status`` is what it answers; ``said`` goes with it; ``bodies`` is what it has taken."""

    def __init__(self, port: int = 0) -> None:
        self.status, self.said, self.headers = 200, b"", {"X-None": ""}
        self.bodies: list[Any] = []
        self.seen_headers: list[dict[str, str]] = []
        self.news = threading.Condition()
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with hook.news:
                    hook.seen_headers.append(dict(self.headers))
                    if hook.status < 300:
                        hook.bodies.append(body)
                    hook.news.notify_all()
                self.send_response(hook.status)
                for name, value in hook.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(hook.said)))
                self.end_headers()
                self.wfile.write(hook.said)

            def log_message(self, format: str, *_arguments: Any) -> None:  # noqa: A002 - its name upstream
                """Silent."""

        self.server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self.thread.start()

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.server.server_address[1])

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}/hook"

    def wait_for(self, count: int, timeout_s: float = 10.0) -> list[Any]:
        """What it has taken, at least so many."""
        with self.news:
            assert self.news.wait_for(lambda: len(self.bodies) >= count, timeout_s), f"{len(self.bodies)} of {count} came"
            return list(self.bodies)

    def close(self) -> None:
        """Ends it: connections are refused from now on."""
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@contextlib.contextmanager
def hook(port: int = 0) -> Iterator[Hook]:
    made = Hook(port)
    try:
        yield made
    finally:
        made.close()
