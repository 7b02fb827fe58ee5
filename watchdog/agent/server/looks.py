"""``POST /v1/look?scan=UUID``: one request of a scan, put to the look session of that scan; ``DELETE`` when it is over.

The scan must begin with finding its job: then it is settled whether the requester may look at it. What comes later is about
the same job, and of the same requester. A user's session is blind for processes of others; one of a Kubernetes user, who has no
uid here, is told the numbers of the processes instead of the name of the job.
"""

import asyncio
import math
import time
from uuid import UUID

from aiohttp import web
from msgspec.structs import replace

from pardbg.watchdog.agent.server.access import Access
from pardbg.watchdog.agent.server.authorising import named
from pardbg.watchdog.agent.server.devices import with_devices
from pardbg.watchdog.agent.server.diary import Diary
from pardbg.watchdog.agent.server.held import Held
from pardbg.watchdog.agent.server.options import ServerOptions
from pardbg.watchdog.agent.server.refused import BAD, FORBIDDEN, RefusedError
from pardbg.watchdog.agent.server.replying import reply_bytes, reply_json
from pardbg.watchdog.agent.server.requester import Requester, Right
from pardbg.watchdog.agent.server.sessions import Open, Sessions
from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.evidence import Absence, Evidence
from pardbg.watchdog.model.names import AbsenceReason, CollectorName
from pardbg.watchdog.model.watched import WatchedJob
from pardbg.watchdog.scan.nodes.messages import (
    AttachTo,
    Find,
    Found,
    Request,
    Seen,
    TakeSample,
    decode_reply,
    decode_request,
    encode,
)
from pardbg.watchdog.transport.answer import Answer

LONGEST_S = 60.0
"""Of one request, whatever it grants."""
_ON_THE_WAY_S = 1.0
_LATE, _FAILED = 504, 502
_FORBIDDEN_ATTACH = "not attached to: this node's agent may not (its site allows it with `pardbg agent --attach auto`)"


class Looks:
    """Handles the requests."""

    def __init__(self, held: Held, options: ServerOptions, access: Access, sessions: Sessions, diary: Diary) -> None:
        self._held, self._options, self._access = held, options, access
        self._sessions, self._diary = sessions, diary

    async def handle(self, request: web.Request) -> web.Response:
        """Answers one."""
        requester, body = await self._access.receive(request)
        scan, asked = _read_scan(request.query.get("scan", "")), _decode(body)
        if isinstance(asked, Find):
            jobs = await self._meant(asked, requester)
            if not jobs:
                return reply_bytes(request, encode(self._found_nothing(asked)))
            opened = self._sessions.open(scan, requester, jobs, _restriction(requester, jobs))
            body = encode(_as_processes(asked, jobs)) if requester.kubernetes is not None and not requester.is_admin else body
        else:
            opened = self._sessions.find(scan, requester)
            if isinstance(asked, AttachTo) and not self._options.may_attach:
                return reply_bytes(request, encode(self._refuse_attach(asked, opened.jobs)))
        self._note(requester, opened, asked)
        within_s = min(max(asked.within_s, 0.0), LONGEST_S) if math.isfinite(asked.within_s) else LONGEST_S
        answer = await asyncio.wrap_future(opened.session.ask(body, time.monotonic() + within_s + _ON_THE_WAY_S))
        data = _data_of(answer)
        if isinstance(asked, TakeSample):
            data = self._complete(data, asked, opened.jobs)
        return reply_bytes(request, data)

    def _complete(self, data: bytes, asked: TakeSample, jobs: tuple[WatchedJob, ...]) -> bytes:
        """Only where the look has found a GPU in use: else it is passed on as it came."""
        if not self._held.has_devices:
            return data
        reply = decode_reply(data)
        return encode(with_devices(reply, asked.number, jobs, self._held)) if isinstance(reply, Seen) else data

    async def end(self, request: web.Request) -> web.Response:
        """The scan is over."""
        requester = await self._access.identify(request)
        self._sessions.end(_read_scan(request.query.get("scan", "")), requester)
        return reply_json(request, None)

    async def _meant(self, asked: Find, requester: Requester) -> tuple[WatchedJob, ...]:
        """The jobs that are meant and may be looked at; none if nothing here is meant.

        Raises:
            RefusedError: if something is, and nothing of it is the requester's.
        """
        snapshot = self._held.snapshot()
        meant = named(snapshot, asked.job) if asked.job is not None else list(snapshot.jobs)
        if asked.pids:
            pids = frozenset(asked.pids)
            meant = [job for job in meant if pids & {rank.pid for rank in job.ranks}]
        parts = [await self._access.may.part_of(job, requester, Right.LOOK) for job in meant]
        allowed = tuple(part for part in parts if part is not None)
        if meant and not allowed and not requester.may_look:
            told = "your token may only read: it lacks `look`"
            raise RefusedError(FORBIDDEN, told, remedy="ask an admin of this node to write `look` after it (--tokens)")
        if meant and not allowed:
            what = f"job {asked.job}" if asked.job is not None else "what runs here"
            raise RefusedError(
                FORBIDDEN, f"{what[:80]} is not yours to look at", remedy="ask its owner, or an admin of this node"
            )
        return allowed

    def _found_nothing(self, asked: Find) -> Found:
        what = f"job {asked.job}" if asked.job is not None else "any such job"
        host = self._held.snapshot().host
        return Found(
            problem=f"the agent on {host} sees no rank of {what[:80]}", remedy="look at the id, or at the list of agents"
        )

    def _refuse_attach(self, asked: AttachTo, jobs: tuple[WatchedJob, ...]) -> Seen:
        absence = Absence(reason=AbsenceReason.SWITCHED_OFF, detail=_FORBIDDEN_ATTACH)
        host = self._held.snapshot().host
        ranks = {rank.rank: rank for job in jobs for rank in job.ranks if rank.rank in asked.ranks}
        return Seen(
            evidence=tuple(
                Evidence(
                    source=CollectorName.FLIGHT_RECORDER,
                    rank=number,
                    host=host,
                    observation=absence,
                    origin=f"/proc/{rank.pid}",
                )
                for number, rank in ranks.items()
            )
        )

    def _note(self, requester: Requester, opened: Open, asked: Request) -> None:
        names = ",".join(job.job_id or job.world for job in opened.jobs)
        pids = tuple(rank.pid for job in opened.jobs for rank in job.ranks)
        what = type(asked).__name__
        ranks = getattr(asked, "ranks", ())
        self._diary.note_look(requester.name, names, pids, f"{what} of ranks {list(ranks)}" if ranks else what)


def _read_scan(text: str) -> str:
    try:
        return str(UUID(text[:64]))
    except ValueError:
        raise RefusedError(BAD, "the look names no scan", remedy="POST /v1/look?scan=UUID") from None


def _decode(body: bytes) -> Request:
    try:
        return decode_request(body)
    except ParseError as error:
        raise RefusedError(BAD, str(error)[:200], remedy="send one msgpack object of scan/nodes/messages.py") from error


def _restriction(requester: Requester, jobs: tuple[WatchedJob, ...]) -> int | None:
    """Whose processes the session sees; None for everybody's."""
    if requester.is_admin:
        return None
    uids = {uid for job in jobs for uid in job.uids}
    return requester.uid if requester.uid is not None else uids.pop() if len(uids) == 1 else None


def _as_processes(asked: Find, jobs: tuple[WatchedJob, ...]) -> Find:
    return replace(asked, job=None, pids=tuple(rank.pid for job in jobs for rank in job.ranks))


def _data_of(answer: Answer) -> bytes:
    if answer.data is not None:
        return answer.data
    absence = answer.absence or Absence(reason=AbsenceReason.UNREADABLE, detail="no answer")
    status = _LATE if absence.reason is AbsenceReason.TIMED_OUT else _FAILED
    remedy = "scan again" if absence.reason is AbsenceReason.GONE else "see the agent's log"
    raise RefusedError(status, absence.detail, remedy=remedy, reason=absence.reason)
