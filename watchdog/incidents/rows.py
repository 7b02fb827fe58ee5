"""An incident as a row of the database, and back. Pure."""

import json

import msgspec

from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.incident import Incident
from pardbg.watchdog.model.report import Report, Subject


def encode(incident: Incident) -> str:
    """JSON in ASCII: names from a job may hold what UTF-8 cannot carry."""
    return json.dumps(msgspec.to_builtins(incident), separators=(",", ":"), allow_nan=False)


def decode(body: str) -> Incident:
    """What `encode` has made of it.

    Raises:
        ParseError: if it is none, or of a version that knows other words.
    """
    try:
        return msgspec.convert(json.loads(body), Incident)
    except (ValueError, msgspec.MsgspecError, RecursionError) as error:
        raise ParseError(f"an incident that cannot be read: {error}") from error


def culprit_names(report: Report) -> frozenset[str]:
    """The hosts and devices that held a culprit of the verdict, as `host_name` and `device_name` write them."""
    return frozenset({*map(host_name, culprit_hosts(report)), *map(device_name, culprit_devices(report))})


def culprit_hosts(report: Report) -> tuple[str, ...]:
    """The hosts on which the verdict sees a culprit, sorted."""
    return tuple(sorted({host for subject in _culprits(report) for host in (subject.host, *subject.hosts) if host}))


def culprit_devices(report: Report) -> tuple[str, ...]:
    """The UUIDs of the devices that the verdict sees as culprits, sorted."""
    devices = (subject.device for subject in _culprits(report))
    return tuple(sorted({device.uuid for device in devices if device is not None and device.uuid}))


def _culprits(report: Report) -> tuple[Subject, ...]:
    return report.verdict.culprits if report.verdict else ()


def host_name(host: str) -> str:
    """As the table of culprits has a host."""
    return f"host {_safe(host)}"


def device_name(uuid: str) -> str:
    """As the table of culprits has a device."""
    return f"device {_safe(uuid)}"


def _safe(text: str) -> str:
    return text.encode("ascii", "backslashreplace").decode("ascii")
