"""Pages of no job: ``/metrics`` for Prometheus, ``/sd`` that tells it of the other agents, ``/healthz``.

On a port of this machine and on the socket everybody may read them; beyond it admins, and those whom Kubernetes lets read
``/metrics``, unless the site opens the metrics. ``/healthz`` says one word, to everybody: kubelets show no credentials; on a
port of this machine, and to root and the agent's own user on the socket, also what the agent suffers from.
"""

import os

from aiohttp import web

from pardbg.watchdog.agent.server.access import Access
from pardbg.watchdog.agent.server.held import Held
from pardbg.watchdog.agent.server.identifying import peer_uid
from pardbg.watchdog.agent.server.options import ServerOptions, join_host, split_host
from pardbg.watchdog.agent.server.refused import FORBIDDEN, RefusedError
from pardbg.watchdog.agent.server.replying import reply_json


class Pages:
    """Handles the requests."""

    def __init__(self, held: Held, options: ServerOptions, access: Access) -> None:
        self._held, self._options, self._access = held, options, access

    async def metrics(self, request: web.Request) -> web.Response:
        """The page for Prometheus."""
        if not self._options.opens_metrics:
            await self._check(request)
        body, content_type = self._held.metrics_text(request.headers.get("Accept", ""))
        return web.Response(body=body, headers={"Content-Type": content_type})

    async def discovery(self, request: web.Request) -> web.Response:
        """This agent and its peers, in the form of http_sd."""
        await self._check(request)
        own = self._options.listen
        if own:
            host, port = split_host(own)
            own = join_host(host if self._options.is_local else self._options.name, port)
        targets = list(dict.fromkeys(filter(None, (own, *self._options.peers))))
        labels = {"__scheme__": "https"} if self._options.is_encrypted else {}
        return web.json_response([{"targets": targets, "labels": labels}])

    async def health(self, request: web.Request) -> web.Response:
        """Whether it is well; to those near it, why it is not."""
        problems = self._held.snapshot().problems
        told = {"problems": problems} if problems and self._may_know_why(request) else {}
        return reply_json(request, {"status": "degraded" if problems else "ok", **told})

    def _may_know_why(self, request: web.Request) -> bool:
        uid = peer_uid(request.transport) if request.transport is not None else None
        return self._options.is_local and _is_tcp(request) if uid is None else uid in {0, os.geteuid()}

    async def _check(self, request: web.Request) -> None:
        if self._options.is_local or not _is_tcp(request):
            return
        requester = await self._access.identify(request)
        if not await self._access.may.may_read_page(requester, request.path):
            told = f"{request.path} tells of everybody's jobs: it is for admins"
            raise RefusedError(FORBIDDEN, told, remedy="ask an admin of this node for a token")


def _is_tcp(request: web.Request) -> bool:
    return request.transport is None or isinstance(request.transport.get_extra_info("peername"), tuple)
