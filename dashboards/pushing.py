"""Puts dashboards into a Grafana, through its HTTP API: a folder, and each dashboard in it by its uid.

Pushing twice changes nothing. What somebody has changed by hand is put back; Grafana's history keeps the former version.
Needs grafana-client (`pip install 'pardbg[grafana]'`), in an environment of its own: it replaces urllib3 for everybody.
"""

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from pardbg.watchdog.errors import InputError, PardbgError

FOLDER_UID = "pardbg"
Json = dict[str, Any]
_GOES_BY_ITSELF = frozenset({"schemaVersion"})
"""Grafana brings it up to date when it reads."""


class PushError(PardbgError):
    """Grafana did not take it."""


@dataclass(frozen=True)
class Step:
    """What was done, or would be: ``created``, ``updated``, ``unchanged``, to what."""

    done: str
    what: str
    url: str = ""


class Grafana:
    """One Grafana. Every request has a deadline; errors are `PushError` with what to try."""

    def __init__(self, url: str, token: str, *, timeout_s: float = 10.0) -> None:
        """Sends nothing yet.

        Raises:
            InputError: if the address is none, or grafana-client is not installed.
        """
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise InputError(f"{parts.path or url!r} is no address of a Grafana", remedy="give --url https://HOST")
        if parts.username or parts.password:
            raise InputError("the address of Grafana holds a password", remedy="give a token with --token-file instead")
        self.url = url.rstrip("/")
        self._api: Any = _client().GrafanaApi.from_url(f"{self.url}/", token or None, timeout_s)

    def close(self) -> None:
        """Lets go of its connections."""
        self._api.client.s.close()

    def push(self, dashboards: Iterable[Json], *, folder: str, message: str, is_dry: bool = False) -> Iterator[Step]:
        """The folder, by its title if it has to be made, then the dashboards; ``message`` goes into their history.

        Raises:
            PushError: at the first that is refused; what came before stays.
        """
        if self._get("the folder", lambda: self._api.folder.get_folder(FOLDER_UID)) is None:
            if not is_dry:
                self._do("the folder", lambda: self._api.folder.create_folder(folder, FOLDER_UID))
            yield Step("created", f"folder {folder}")
        for dashboard in dashboards:
            yield self._push_one(dashboard, message, is_dry=is_dry)

    def _push_one(self, ours: Json, message: str, *, is_dry: bool) -> Step:
        name = f"dashboard {ours['title']!r}"
        theirs = self._get(name, lambda: self._api.dashboard.get_dashboard(ours["uid"]))
        there = theirs["dashboard"] if theirs else {}
        where = f"{self.url}/d/{ours['uid']}"
        if theirs and theirs.get("meta", {}).get("folderUid") == FOLDER_UID and _holds(there, ours):
            return Step("unchanged", name, where)
        payload = {
            "dashboard": {**ours, "id": None, "version": there.get("version", 0)},
            "folderUid": FOLDER_UID,
            "overwrite": False,  # who changes it between our look and our push is told of, not run over
            "message": message,
        }
        if not is_dry:
            self._do(name, lambda: self._api.dashboard.update_dashboard(payload))
        return Step("updated" if theirs else "created", name, where)

    def _get(self, what: str, ask: Any) -> Json | None:
        """None if there is no such thing."""
        with contextlib.suppress(_NotThereError):
            return self._do(what, ask)
        return None

    def _do(self, what: str, ask: Any) -> Json:
        client = _client().client
        try:
            answer = ask()
        except client.GrafanaTimeoutError as error:
            raise PushError(f"Grafana at {self.url} did not answer in time, at {what}", remedy="try --timeout 60") from error
        except client.GrafanaException as error:
            raise _explain(self.url, what, error.status_code, error.response) from error
        except (OSError, ValueError) as error:
            remedy = "look at the address, the network and the certificate"
            raise PushError(f"no Grafana answers at {self.url}: {error}", remedy=remedy) from error
        if not isinstance(answer, dict):
            raise PushError(
                f"{self.url} answers something else than Grafana, at {what}", remedy="look for a login page in between"
            )
        return answer


class _NotThereError(PushError):
    """404."""


_REMEDIES = {
    401: "give a valid token of a service account, with --token-file or GRAFANA_TOKEN",
    403: "give the token's service account the role Editor (folders:create, dashboards:create, dashboards:write)",
    412: "somebody has changed it at this moment, or another one has its title: look, then push again",
    429: "wait a minute and push again",
}


def _explain(url: str, what: str, code: int, response: Any) -> PushError:
    words = response.get("message") if isinstance(response, dict) else None
    said = f": {words}" if words else ""
    kind = _NotThereError if code == 404 else PushError
    usual = "Grafana itself has failed: look at its log, and push again" if code >= 500 else "look at what Grafana says"
    return kind(f"Grafana at {url} refused {what} with {code}{said}", remedy=_REMEDIES.get(code, usual))


def _holds(theirs: Any, ours: Any) -> bool:
    """Whether all that is ours is there as we want it; Grafana may add to it."""
    if isinstance(ours, dict):
        wanted = {key: value for key, value in ours.items() if key not in _GOES_BY_ITSELF}
        return isinstance(theirs, dict) and all(_holds(theirs.get(key), value) for key, value in wanted.items())
    if isinstance(ours, list):
        return isinstance(theirs, list) and len(theirs) == len(ours) and all(map(_holds, theirs, ours))
    return bool(theirs == ours)


def _client() -> Any:
    try:
        import grafana_client  # noqa: PLC0415 - of the extra `grafana`
        import grafana_client.client  # noqa: PLC0415
    except ImportError as error:
        raise InputError(
            "grafana-client is not installed",
            remedy="pip install 'pardbg[grafana]' in an environment of its own, or import the files of `dashboards build`",
        ) from error
    return grafana_client
