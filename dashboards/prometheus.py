"""Asks a Prometheus, by its HTTP API. Reads only; each answer within a deadline and of bounded size."""

import json
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

from pardbg.watchdog.errors import InputError, PardbgError

_MOST_BYTES = 64 * 1024**2
_STEP_S = 60


class QueryError(PardbgError):
    """Prometheus refuses a query, in its words."""


class Prometheus:
    """One server. ``now_s``: the moment to ask for, epoch seconds; ``range_s`` seconds of the past are asked for."""

    def __init__(self, url: str, now_s: float, *, range_s: float = 3600.0, timeout_s: float = 30.0) -> None:
        self._url = url.rstrip("/")
        self._now_s = now_s
        self._range_s = range_s
        self._timeout_s = timeout_s

    def count_now(self, expr: str) -> int:
        """How many series a query has now.

        Raises:
            QueryError: if it is refused.
            InputError: if no Prometheus answers.
        """
        return len(self._ask("query", {"query": expr, "time": self._now_s})["result"])

    def count(self, expr: str) -> int:
        """How many series a query has over the whole range. Raises as `count_now`."""
        times = {"start": self._now_s - self._range_s, "end": self._now_s, "step": _STEP_S}
        return len(self._ask("query_range", {"query": expr, **times})["result"])

    def label_values(self, label: str, selector: str) -> list[str]:
        """The values of a label, of the series that the selector finds. Raises as `count_now`."""
        match = {"match[]": selector} if selector else {}
        times = {"start": self._now_s - self._range_s, "end": self._now_s}
        return [str(value) for value in self._ask(f"label/{urllib.parse.quote(label)}/values", {**match, **times})]

    def _ask(self, path: str, parameters: dict[str, Any]) -> Any:
        url = f"{self._url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            return self._read(url)["data"]
        except urllib.error.HTTPError as error:
            with error:
                raise _refusal(error, self._url) from error
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise self._no_prometheus(str(getattr(error, "reason", error))) from error

    def _read(self, url: str) -> Any:
        if not url.startswith(("http://", "https://")):
            raise ValueError("no URL of HTTP")
        with urllib.request.urlopen(url, timeout=self._timeout_s) as answer:  # noqa: S310 - the scheme was looked at
            return json.loads(answer.read(_MOST_BYTES))

    def _no_prometheus(self, why: str) -> InputError:
        return InputError(f"no Prometheus answers at {self._url}: {why}", remedy="give its address, http://HOST:9090")


def _refusal(error: urllib.error.HTTPError, url: str) -> PardbgError:
    try:
        return QueryError(str(json.loads(error.read(_MOST_BYTES))["error"]))
    except (OSError, ValueError, KeyError, TypeError):
        return InputError(f"{url} answers {error.code} {error.reason}", remedy="give the address of a Prometheus")
