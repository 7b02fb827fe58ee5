"""A server that answers TokenReview and SubjectAccessReview as the Kubernetes API does, on loopback, plain HTTP.

Whoever asks must show the agent's own token (401 without, 403 for another service account). Answers come with status 201. Of
users it knows tokens, groups, and what they may do; ``trouble`` is a status, ``slow`` or ``garbage``.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

OWN_TOKEN = "the agent's own"  # noqa: S105 - of nobody
AUDIENCE = "https://kubernetes.default.svc"

Json = dict[str, Any]


@dataclass
class Cluster:
    """Its users, by token; what they may do, as ``USER VERB RESOURCE``; and what was asked."""

    users: dict[str, str] = field(default_factory=dict)
    rules: set[str] = field(default_factory=set)
    trouble: int | str = ""
    asked: list[Json] = field(default_factory=list)
    url: str = ""
    is_ending: threading.Event = field(default_factory=threading.Event)

    def review(self, kind: str, spec: Json) -> Json:
        """The ``status`` of an answer."""
        if kind == "TokenReview":
            user = self.users.get(spec["token"])
            if user is None:
                return {"user": {}, "error": "[invalid bearer token, token lookup failed]"}
            told = {"username": user, "uid": f"uid-of-{user}", "groups": ["system:authenticated"], "extra": {"a/b": ["c"]}}
            return {"authenticated": True, "user": told, "audiences": [AUDIENCE]}
        wanted = spec.get("resourceAttributes")
        what = (
            f"{wanted['verb']} {wanted['namespace']}/{wanted['resource']}/{wanted['subresource']}"
            if wanted is not None
            else "{verb} {path}".format(**spec["nonResourceAttributes"])
        )
        assert spec["uid"] == f"uid-of-{spec['user']}"
        assert (spec["groups"], spec["extra"]) == (["system:authenticated"], {"a/b": ["c"]})
        is_allowed = f"{spec['user']} {what}" in self.rules
        return {"allowed": is_allowed, "reason": 'RBAC: allowed by RoleBinding "x/y"' if is_allowed else ""}


@contextmanager
def serving() -> Iterator[Cluster]:
    """Runs it until the block is left."""
    cluster = Cluster()

    class Handler(_Handler):
        state = cluster

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    cluster.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield cluster
    finally:
        cluster.is_ending.set()
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    state: Cluster
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.headers.get("Authorization") != f"Bearer {OWN_TOKEN}":
            self._say(
                401, {"kind": "Status", "status": "Failure", "message": "Unauthorized", "reason": "Unauthorized", "code": 401}
            )
            return
        if self.state.trouble == "slow":
            self.state.is_ending.wait(10)
        if isinstance(self.state.trouble, int):
            self._say(self.state.trouble, {"kind": "Status", "status": "Failure", "code": self.state.trouble})
            return
        version, kind = {
            "/apis/authentication.k8s.io/v1/tokenreviews": ("authentication.k8s.io/v1", "TokenReview"),
            "/apis/authorization.k8s.io/v1/subjectaccessreviews": ("authorization.k8s.io/v1", "SubjectAccessReview"),
        }[self.path]
        assert (body["apiVersion"], body["kind"]) == (version, kind)
        self.state.asked.append(body)
        if self.state.trouble == "garbage":
            self._say(201, ["no", "object"])
            return
        self._say(201, {**body, "metadata": {"creationTimestamp": None}, "status": self.state.review(kind, body["spec"])})

    def _say(self, status: int, value: object) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Says nothing."""
