"""The application: which path is answered by what, and what every refusal and every failure looks like."""

import asyncio
import os

from aiohttp import web
from aiohttp.typedefs import Handler

from pardbg.watchdog.agent.server.access import WHO, Access
from pardbg.watchdog.agent.server.diary import Diary
from pardbg.watchdog.agent.server.held import Held
from pardbg.watchdog.agent.server.jobs import Jobs
from pardbg.watchdog.agent.server.looks import Looks
from pardbg.watchdog.agent.server.options import ServerOptions
from pardbg.watchdog.agent.server.pages import Pages
from pardbg.watchdog.agent.server.refused import SERVER, RefusedError, complain
from pardbg.watchdog.agent.server.sessions import Sessions
from pardbg.watchdog.transport.agent_words import JOBS_PATH, LOOK_PATH, MOST_REQUEST_BYTES

_FAILED, _NOT_FOUND = 500, 404
_ONE_JOB = JOBS_PATH + "/{job}"


def make_application(held: Held, options: ServerOptions, access: Access, sessions: Sessions, diary: Diary) -> web.Application:
    """Puts the parts together."""
    pages = Pages(held, options, access)
    jobs = Jobs(held, access)
    looks = Looks(held, options, access, sessions, diary)

    async def sign(_: web.Request, response: web.StreamResponse) -> None:
        response.headers["Server"] = SERVER

    application = web.Application(middlewares=[_answering(diary)], client_max_size=MOST_REQUEST_BYTES)
    application.on_response_prepare.append(sign)
    application.add_routes(
        [
            web.get("/metrics", pages.metrics),
            web.get("/healthz", pages.health),
            web.get("/sd", pages.discovery),
            web.get(JOBS_PATH, jobs.list_all),
            web.get(_ONE_JOB, jobs.show),
            web.get(_ONE_JOB + "/digest", jobs.digest),
            web.get(_ONE_JOB + "/series", jobs.series),
            web.post(_ONE_JOB + "/entries", jobs.entries),
            web.post(LOOK_PATH, looks.handle),
            web.delete(LOOK_PATH, looks.end),
        ]
    )
    return application


def _answering(diary: Diary) -> "web.middleware":  # type: ignore[valid-type]
    @web.middleware
    async def answer(request: web.Request, handler: Handler) -> web.StreamResponse:
        what = f"{request.method} {request.path}"
        who = request.remote or "the socket"
        try:
            return await handler(request)
        except RefusedError as error:
            refused = error
        except web.HTTPException as error:
            refused = RefusedError(error.status, f"no such thing here: {error.reason}", remedy="see GET /v1/jobs")
        except (asyncio.CancelledError, ConnectionError):
            raise
        except Exception as error:  # noqa: BLE001 - nobody else is to suffer, and nobody sees our insides
            diary.note_failure(what, f"{type(error).__name__} at {_place(error)}")
            refused = RefusedError(_FAILED, f"the agent failed: {type(error).__name__}", remedy="see its log")
        if refused.status != _NOT_FOUND:  # who asks for what is not here is not refused
            diary.note_refusal(request.get(WHO, who), what, str(refused))
        return complain(refused)

    return answer


def _place(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f"{os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}" if trace else "an unknown place"  # noqa: PTH119
