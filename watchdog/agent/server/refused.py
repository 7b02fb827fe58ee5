"""A request that is not done, and how that is said: a status, and JSON with one line and a remedy."""

import math

import msgspec
from aiohttp import web

from pardbg.watchdog.errors import PardbgError
from pardbg.watchdog.model.names import AbsenceReason
from pardbg.watchdog.transport.agent_words import JSON, Complaint

UNAUTHENTICATED, FORBIDDEN, BAD = 401, 403, 400
SERVER = "pardbg"
"""What it says of itself: no versions."""


class RefusedError(PardbgError):
    """The request is not done.

    Attributes:
        status: HTTP's.
        who: who asked, as far as it is known.
        again_in_s: when asking again may help, seconds.
        reason: what a scan should take it for, where the status does not say it.
    """

    remedy = "see the section on the agent in SECURITY.md"

    def __init__(
        self,
        status: int,
        message: str,
        *,
        remedy: str | None = None,
        again_in_s: float | None = None,
        reason: AbsenceReason | None = None,
    ) -> None:
        super().__init__(message, remedy=remedy)
        self.status, self.again_in_s, self.reason = status, again_in_s, reason
        self.who = ""


def complain(error: RefusedError) -> web.Response:
    """The answer."""
    reason = error.reason.value if error.reason is not None else ""
    body = msgspec.json.encode(Complaint(error=str(error), remedy=error.remedy, reason=reason))
    headers = {"Server": SERVER}
    if error.again_in_s is not None:
        headers["Retry-After"] = str(max(1, math.ceil(error.again_in_s)))
    if error.status == UNAUTHENTICATED:
        headers["WWW-Authenticate"] = 'Bearer realm="pardbg"'
    return web.Response(status=error.status, body=body, content_type=JSON, headers=headers)
