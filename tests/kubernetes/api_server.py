"""A server that answers the real kubectl as the Kubernetes API does, as far as listing pods goes; on loopback, plain HTTP.

It serves discovery, pods by label with pages (``limit``, ``continue``), single pods and RayClusters, and on demand what goes
wrong in life: refusals, an expired page, a busy or broken server, an answer that is late, cut off, or rubbish.
"""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

Json = dict[str, Any]

GROUPS = ("jobset.x-k8s.io/v1alpha2", "kubeflow.org/v1", "batch.volcano.sh/v1alpha1", "ray.io/v1", "apps/v1", "batch/v1")
_PODS = re.compile(r"/api/v1/namespaces/([^/]+)/pods(?:/([^/]+))?")
_RAY = re.compile(r"/apis/ray.io/v1/namespaces/([^/]+)/rayclusters")
_IN = re.compile(r"(.+) in \((.*)\)")
_CODES = {
    401: ("Unauthorized", "Unauthorized"),
    403: ("Forbidden", 'pods is forbidden: User "ada" cannot list resource "pods" in API group "" in the namespace "train"'),
    410: ("Expired", "The provided continue parameter is too old to display a consistent list result."),
    429: ("TooManyRequests", "the server is currently unable to handle the request, too many requests"),
    500: ("InternalError", "Internal error occurred: etcdserver: no leader"),
    503: ("ServiceUnavailable", "the server is currently unable to handle the request"),
}


@dataclass
class Api:
    """The state of the server. ``trouble`` is a status code, ``slow``, ``cut`` or ``garbage``, for lists of pods alone."""

    pods: list[Json] = field(default_factory=list)
    ray_clusters: list[Json] = field(default_factory=list)
    groups: tuple[str, ...] = GROUPS
    trouble: int | str = ""
    page_trouble: int = 0
    asked: list[str] = field(default_factory=list)
    url: str = ""
    is_ending: threading.Event = field(default_factory=threading.Event)

    @property
    def selectors(self) -> list[str]:
        """Of all lists of pods that were asked for, pages apart."""
        return [
            query["labelSelector"][0]
            for query in (parse_qs(urlsplit(path).query) for path in self.asked if _PODS.match(path))
            if "labelSelector" in query and "continue" not in query
        ]

    def write_config(self, folder: Path) -> Path:
        """A kubeconfig of a user of this server."""
        path = folder / "kubeconfig"
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": {"server": self.url}}],
            "users": [{"name": "ada", "user": {}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "ada"}}],
            "current-context": "test",
        }
        path.write_text(json.dumps(config))
        return path


@contextmanager
def serving() -> Iterator[Api]:
    """Runs it until the block is left."""
    api = Api()

    class Handler(_Handler):
        state = api

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    api.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield api
    finally:
        api.is_ending.set()
        server.shutdown()
        server.server_close()
        thread.join()


def status(code: int) -> Json:
    """What the API answers where it refuses."""
    reason, message = _CODES[code]
    return {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message, "code": code}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    state: Api

    def log_message(self, *_: object) -> None:
        """Nothing on standard error."""

    def do_GET(self) -> None:
        self.state.asked.append(self.path)
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if parts.path in {"/api", "/apis", "/version"}:
            self._discover(parts.path)
        elif match := _PODS.fullmatch(parts.path):
            self._pods(match[1], match[2], query)
        elif match := _RAY.fullmatch(parts.path):
            self._answer(
                {"kind": "RayClusterList", "apiVersion": "ray.io/v1", **self._select(self.state.ray_clusters, match[1], query)}
            )
        elif parts.path.startswith(("/api/", "/apis/")):
            self._answer(_resources(parts.path))
        else:
            self._answer(status(403), 403)

    def _discover(self, path: str) -> None:
        if path == "/version":
            self._answer({"major": "1", "minor": "32", "gitVersion": "v1.32.0"})
        elif path == "/api":
            self._answer({"kind": "APIVersions", "versions": ["v1"]})
        else:
            groups = [
                {"name": group, "versions": [version], "preferredVersion": version}
                for group, version in ((name.partition("/")[0], _version(name)) for name in self.state.groups)
            ]
            self._answer({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})

    def _pods(self, namespace: str, name: str | None, query: dict[str, str]) -> None:
        if self._is_troubled(query):
            return
        if name is None:
            self._answer({"kind": "PodList", "apiVersion": "v1", **self._select(self.state.pods, namespace, query)})
            return
        found = [pod for pod in self.state.pods if (pod["metadata"]["namespace"], pod["metadata"]["name"]) == (namespace, name)]
        missing = {**status(403), "reason": "NotFound", "code": 404, "message": f'pods "{name}" not found'}
        self._answer({"kind": "Pod", "apiVersion": "v1", **found[0]} if found else missing, 200 if found else 404)

    def _is_troubled(self, query: dict[str, str]) -> bool:
        trouble = self.state.trouble
        if "continue" in query and self.state.page_trouble:
            self._answer(status(self.state.page_trouble), self.state.page_trouble)
            return True
        if isinstance(trouble, int):
            self._answer(status(trouble), trouble)
        elif trouble == "slow":
            self.state.is_ending.wait(60)
            self.close_connection = True
        elif trouble == "cut":
            self._send(b'{"kind": "PodList", "apiVersion": "v1", "items": [{"metad', 200, 4096)
            self.close_connection = True
        elif trouble == "garbage":
            self._send(b"<html>502 Bad Gateway</html>", 200, None)
        return bool(trouble)

    def _select(self, objects: list[Json], namespace: str, query: dict[str, str]) -> Json:
        found = [
            one
            for one in objects
            if one["metadata"]["namespace"] == namespace and _answers(one, query.get("labelSelector", ""))
        ]
        start, limit = int(query.get("continue", "0")), int(query.get("limit", "0")) or len(found)
        rest = len(found) - start - limit
        more = {"continue": str(start + limit), "remainingItemCount": rest} if rest > 0 else {}
        return {"metadata": {"resourceVersion": "1", **more}, "items": found[start : start + limit]}

    def _answer(self, body: Json, code: int = 200) -> None:
        self._send(json.dumps(body).encode(), code, None)

    def _send(self, data: bytes, code: int, length: int | None) -> None:
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data) if length is None else length))
        if code == 429:
            self.send_header("Retry-After", "1")
        self.end_headers()
        self.wfile.write(data)


def _version(name: str) -> Json:
    return {"groupVersion": name, "version": name.partition("/")[2]}


def _resources(path: str) -> Json:
    group = path.partition("/apis/")[2] or "v1"
    names = {"v1": ("pods", "Pod"), "ray.io/v1": ("rayclusters", "RayCluster")}
    listed = [names.get(group, ("things", "Thing"))]  # kubectl does not remember a group without any
    resources = [
        {"name": name, "singularName": kind.lower(), "namespaced": True, "kind": kind, "verbs": ["get", "list"]}
        for name, kind in listed
    ]
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group, "resources": resources}


def _answers(one: Json, selector: str) -> bool:
    labels = one["metadata"].get("labels", {})
    if match := _IN.fullmatch(selector):
        return labels.get(match[1]) in match[2].split(",")
    name, _, value = selector.partition("=")
    return not selector or labels.get(name) == value
