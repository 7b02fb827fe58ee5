"""Kubernetes is asked who a token belongs to (TokenReview) and what he may do (SubjectAccessReview).

Deadline: that of the options for a question, at most `AT_ONCE` at once. Answers are kept for `KEPT_S`. Whatever goes wrong is a
refusal.
"""

import asyncio
import hashlib
import ssl
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import aiohttp
import msgspec

from pardbg.watchdog.agent.server.options import KubernetesOptions
from pardbg.watchdog.agent.server.refused import RefusedError
from pardbg.watchdog.agent.server.requester import KubernetesUser
from pardbg.watchdog.errors import InputError
from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.names import AbsenceReason

KEPT_S = 30.0
AT_ONCE = 8
_MOST_KEPT = 1000
_MOST_BYTES = 256 * 1024
_UNAVAILABLE = 503
_CREATED = (200, 201)
_OWN_FAULT = frozenset({401, 403})
_REVIEW = "/apis/authentication.k8s.io/v1/tokenreviews"
_ACCESS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


class _Spec(Noun, frozen=True, kw_only=True, omit_defaults=True):
    token: str = ""
    audiences: tuple[str, ...] = ()
    user: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = {}
    resourceAttributes: dict[str, str] = {}  # noqa: N815 - Kubernetes' name
    nonResourceAttributes: dict[str, str] = {}  # noqa: N815


class _Question(Noun, frozen=True, kw_only=True):
    apiVersion: str  # noqa: N815
    kind: str
    spec: _Spec


class _User(Noun, frozen=True, kw_only=True):
    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] | None = None
    extra: dict[str, tuple[str, ...]] | None = None


class _Status(Noun, frozen=True, kw_only=True):
    authenticated: bool = False
    user: _User = _User()
    audiences: tuple[str, ...] | None = None
    allowed: bool = False
    denied: bool = False


class _Answer(Noun, frozen=True, kw_only=True):
    status: _Status = _Status()


Found = TypeVar("Found")


class Kubernetes:
    """Asks one API server."""

    def __init__(self, options: KubernetesOptions, tell: Callable[[str, str], None]) -> None:
        """Connects to nobody yet. ``tell`` is `Diary.note_failure`.

        Raises:
            InputError: if the file of the API server's CA cannot be used.
        """
        self._options, self._tell = options, tell
        self._gate = asyncio.Semaphore(AT_ONCE)
        self._kept: dict[tuple[str, str], tuple[float, object]] = {}
        self._session: aiohttp.ClientSession | None = None
        try:
            self._tls = ssl.create_default_context(cafile=options.ca_file) if options.api.startswith("https://") else None
        except (OSError, ssl.SSLError) as error:
            raise InputError(f"cannot use {options.ca_file}: {error}", remedy="name the CA of the API server") from error

    async def close(self) -> None:
        """Closes connections."""
        if self._session is not None:
            await self._session.close()

    async def whose(self, token: str) -> KubernetesUser | None:
        """The user of a token; None if it is nobody's.

        Raises:
            RefusedError: if Kubernetes does not say.
        """
        spec = _Spec(token=token, audiences=self._options.audiences)
        return await self._remembered(("whose", hashlib.sha256(token.encode()).hexdigest()), lambda: self._review(spec))

    async def may(self, user: KubernetesUser, verb: str, namespace: str) -> bool:
        """Whether he may do to pods of a namespace what is called ``VERB pods/exec``.

        Raises:
            RefusedError: if Kubernetes does not say.
        """
        wanted = {"namespace": namespace, "verb": verb, "resource": "pods", "subresource": "exec"}
        return await self._is_allowed(user, _Spec(resourceAttributes=wanted))

    async def may_get(self, user: KubernetesUser, path: str) -> bool:
        """Whether he may read a page that is of no namespace, as Prometheus may ``/metrics``.

        Raises:
            RefusedError: if Kubernetes does not say.
        """
        return await self._is_allowed(user, _Spec(nonResourceAttributes={"path": path, "verb": "get"}))

    async def _review(self, spec: _Spec) -> KubernetesUser | None:
        status = await self._ask(_REVIEW, _Question(apiVersion="authentication.k8s.io/v1", kind="TokenReview", spec=spec))
        is_ours = not spec.audiences or bool(set(spec.audiences) & set(status.audiences or ()))
        if not status.authenticated or not status.user.username or not is_ours:
            return None
        user = status.user
        return KubernetesUser(username=user.username, uid=user.uid, groups=user.groups or (), extra=user.extra or {})

    async def _is_allowed(self, user: KubernetesUser, wanted: _Spec) -> bool:
        spec = msgspec.structs.replace(
            wanted, user=user.username, uid=user.uid, groups=user.groups, extra=dict(sorted(user.extra.items()))
        )
        question = _Question(apiVersion="authorization.k8s.io/v1", kind="SubjectAccessReview", spec=spec)

        async def find() -> bool:
            status = await self._ask(_ACCESS, question)
            return status.allowed and not status.denied

        return await self._remembered(("may", msgspec.json.encode(spec).hex()), find)

    async def _remembered(self, about: tuple[str, str], find: Callable[[], Awaitable[Found]]) -> Found:
        kept = self._kept.get(about)
        if kept is not None and time.monotonic() - kept[0] < KEPT_S:
            return kept[1]  # type: ignore[return-value] # it is what `find` of the same question has given
        found = await find()
        if len(self._kept) >= _MOST_KEPT:
            self._kept.clear()
        self._kept[about] = (time.monotonic(), found)
        return found

    async def _ask(self, path: str, question: _Question) -> _Status:
        try:
            async with self._gate:
                return await asyncio.wait_for(self._post(path, question), self._options.within_s)
        except asyncio.TimeoutError as error:
            told = f"Kubernetes has not answered within {self._options.within_s:g} s"
            raise self._unavailable(told, AbsenceReason.TIMED_OUT) from error
        except (aiohttp.ClientError, OSError, ValueError, msgspec.DecodeError) as error:
            raise self._unavailable(f"Kubernetes cannot be asked: {type(error).__name__}") from error

    async def _post(self, path: str, question: _Question) -> _Status:
        if self._session is None:
            self._session = aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar())
        own = self._options.token_file.read_text(encoding="ascii").strip()
        async with self._session.post(
            self._options.api.rstrip("/") + path,
            data=msgspec.json.encode(question),
            headers={"Authorization": f"Bearer {own}", "Content-Type": "application/json"},
            allow_redirects=False,
            ssl=self._tls if self._tls is not None else True,
        ) as response:
            if response.status in _OWN_FAULT:
                raise self._unavailable(
                    f"Kubernetes lets this agent ask nobody (status {response.status}): see its ClusterRole"
                )
            if response.status not in _CREATED:
                raise self._unavailable(f"Kubernetes answers with status {response.status}")
            body = await response.content.read(_MOST_BYTES)
            return msgspec.json.decode(body, type=_Answer).status

    def _unavailable(self, words: str, reason: AbsenceReason = AbsenceReason.DENIED) -> RefusedError:
        self._tell("kubernetes", words)
        return RefusedError(_UNAVAILABLE, words, remedy="try again, or use another way to say who you are", reason=reason)
