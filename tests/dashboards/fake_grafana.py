"""Enough of Grafana's HTTP API to push to: folders, dashboards with versions, a token; and faults at will."""

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOKEN = "glsa_right"  # noqa: S105 - of no real server


class FakeGrafana:
    """State and faults. ``answers`` go out first, to whatever is asked; ``delay_s`` before every answer."""

    def __init__(self) -> None:
        self.folders: dict[str, str] = {}
        self.dashboards: dict[str, dict[str, Any]] = {}
        self.saved: list[str] = []
        self.answers: list[tuple[int, Any]] = []
        self.delay_s = 0.0
        self.url = ""

    def answer(self, method: str, path: str, token: str, body: Any) -> tuple[int, Any]:  # noqa: PLR0911 - a case a line
        """Status and JSON, as Grafana 11 gives them."""
        time.sleep(self.delay_s)
        if self.answers:
            return self.answers.pop(0)
        if token != f"Bearer {TOKEN}":
            return 401, {"message": "Invalid API key"}
        if path.startswith("/api/folders/"):
            uid = path.rsplit("/", 1)[1]
            return (
                (200, {"uid": uid, "title": self.folders[uid]})
                if uid in self.folders
                else (404, {"message": "folder not found"})
            )
        if (method, path) == ("POST", "/api/folders"):
            self.folders[body["uid"]] = body["title"]
            return 200, body
        if path.startswith("/api/dashboards/uid/"):
            found = self.dashboards.get(path.rsplit("/", 1)[1])
            return (200, found) if found else (404, {"message": "Dashboard not found"})
        if (method, path) == ("POST", "/api/dashboards/db"):
            return self._save(body)
        return 404, {"message": "Not found"}

    def _save(self, body: dict[str, Any]) -> tuple[int, Any]:
        given, uid = body["dashboard"], body["dashboard"]["uid"]
        there = self.dashboards.get(uid)
        version = there["dashboard"]["version"] if there else 0
        if given["version"] != version and not body["overwrite"]:
            return 412, {"status": "version-mismatch", "message": "The dashboard has been changed by someone else"}
        kept = {**given, "id": 7, "version": version + 1, "schemaVersion": 42}  # newer ones bring it up to date
        self.dashboards[uid] = {"dashboard": kept, "meta": {"folderUid": body["folderUid"], "provisioned": False}}
        self.saved.append(body["message"])
        return 200, {"status": "success", "uid": uid, "version": version + 1}


@contextmanager
def fake_grafana() -> Iterator[FakeGrafana]:
    """Serves one on loopback."""
    fake = FakeGrafana()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            status, answer = fake.answer(self.command, self.path, self.headers.get("Authorization", ""), body)
            text = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "text/html" if isinstance(answer, str) else "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            with contextlib.suppress(OSError):  # who asked has given up
                self.wfile.write(text)

        do_POST = do_GET  # noqa: N815 - http.server finds it by this name

        def log_message(self, *_: Any) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    fake.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
