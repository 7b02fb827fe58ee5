"""``/v1/jobs``: what the agent holds, of the jobs that the requester may see. Reads alone: no process is touched.

``GET /v1/jobs``, ``GET /v1/jobs/ID``, ``GET /v1/jobs/ID/digest``, ``GET /v1/jobs/ID/series?rank=N``, and ``POST
/v1/jobs/ID/entries`` with a JSON list of `Wanted`. ID is a name of the job or its world; it is compared and nothing else.
"""

import msgspec
from aiohttp import web
from msgspec.structs import replace

from pardbg.watchdog.agent.server.access import Access
from pardbg.watchdog.agent.server.authorising import named
from pardbg.watchdog.agent.server.held import Held
from pardbg.watchdog.agent.server.refused import BAD, FORBIDDEN, RefusedError
from pardbg.watchdog.agent.server.replying import reply_json
from pardbg.watchdog.agent.server.requester import Requester, Right
from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.wanted import Wanted
from pardbg.watchdog.model.watched import WatchedJob

_UNKNOWN, _AMBIGUOUS = 404, 409
_MOST_WANTED = 10_000


class JobList(Noun, frozen=True, kw_only=True):
    """The answer of ``GET /v1/jobs``: jobs without their MoE layers, since thousands of nodes may be asked."""

    jobs: tuple[WatchedJob, ...]


class Jobs:
    """Handles the requests."""

    def __init__(self, held: Held, access: Access) -> None:
        self._held, self._access = held, access

    async def list_all(self, request: web.Request) -> web.Response:
        """Those that the requester may see. ``?suspect=WORLD``: another agent, an admin, suspects a job of ours."""
        requester = await self._access.identify(request)
        if requester.is_admin and (world := request.query.get("suspect")):
            self._held.suspect(world)
        parts = [await self._access.may.part_of(job, requester, Right.READ) for job in self._held.snapshot().jobs]
        return reply_json(request, JobList(jobs=tuple(replace(part, layers=()) for part in parts if part is not None)))

    async def show(self, request: web.Request) -> web.Response:
        """One."""
        return reply_json(request, await self._job(request))

    async def digest(self, request: web.Request) -> web.Response:
        """What was seen of it last."""
        job = await self._job(request)
        ranks = {rank.rank for rank in job.ranks}
        found = self._held.digest(job)
        return reply_json(request, [item for item in found if item.rank is None or item.rank in ranks])

    async def series(self, request: web.Request) -> web.Response:
        """Its figures over time."""
        job = await self._job(request)
        rank = _read_rank(request.query.get("rank"))
        ranks = {one.rank for one in job.ranks}
        return reply_json(request, [one for one in self._held.series(job, rank) if one.rank in ranks])

    async def entries(self, request: web.Request) -> web.Response:
        """Entries of its rings."""
        requester, body = await self._access.receive(request)
        job = await self._of(request, requester)
        try:
            wanted = msgspec.json.decode(body, type=tuple[Wanted, ...])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise RefusedError(BAD, f"no list of entries: {str(error)[:100]}", remedy='send [{"rank": 0}]') from error
        if len(wanted) > _MOST_WANTED:
            raise RefusedError(BAD, f"more than {_MOST_WANTED} wishes", remedy="ask for less at once")
        ranks = {rank.rank for rank in job.ranks}
        return reply_json(request, self._held.entries(job, [one for one in wanted if one.rank in ranks]))

    async def _job(self, request: web.Request) -> WatchedJob:
        return await self._of(request, await self._access.identify(request))

    async def _of(self, request: web.Request, requester: Requester) -> WatchedJob:
        """The job that the path means, as far as it is the requester's."""
        text = request.match_info["job"]
        meant = named(self._held.snapshot(), text)
        parts = [await self._access.may.part_of(job, requester, Right.READ) for job in meant]
        allowed = [part for part in parts if part is not None]
        if not meant:
            raise RefusedError(_UNKNOWN, f"no job {text[:80]!r} here", remedy="see GET /v1/jobs")
        if not allowed:
            raise RefusedError(FORBIDDEN, f"job {text[:80]!r} is not yours", remedy="ask its owner, or an admin of this node")
        if len(allowed) > 1:
            told = f"{text[:80]!r} means {len(allowed)} worlds"
            raise RefusedError(_AMBIGUOUS, told, remedy="give the world of one, see GET /v1/jobs")
        return allowed[0]


def _read_rank(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isascii() or not text.isdecimal() or len(text) > 9:
        raise RefusedError(BAD, "no rank", remedy="write ?rank=3")
    return int(text)
