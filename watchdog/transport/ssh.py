"""Nodes over ssh: one client a host, as the user's own configuration says, but without anything that waits, asks or forwards.

Host keys are checked as the user's ssh does it; nothing asks, so that an unknown host is refused, not waited for. An existing
connection is used, none is left behind. A host that stops answering is noticed after `ALIVE_S` times `ALIVE_COUNT`.
"""

import re
from collections.abc import Iterable, Mapping

from pardbg.watchdog.errors import InputError
from pardbg.watchdog.model.names import AbsenceReason
from pardbg.watchdog.transport.quoting import quote_for_any_shell
from pardbg.watchdog.transport.remote import collect_command
from pardbg.watchdog.transport.way import NOT_THERE, Launch, Sign, Way

CONNECT_S = 10
ALIVE_S = 3
ALIVE_COUNT = 3
MOST_STARTING = 32

_OPTIONS = {
    "BatchMode": "yes",
    "ConnectTimeout": CONNECT_S,
    "ConnectionAttempts": 1,
    "ServerAliveInterval": ALIVE_S,
    "ServerAliveCountMax": ALIVE_COUNT,
    "NumberOfPasswordPrompts": 0,
    "UpdateHostKeys": "no",
    "ControlMaster": "no",
    "ClearAllForwardings": "yes",
    "ForwardAgent": "no",
    "ForwardX11": "no",
    "PermitLocalCommand": "no",
    "RemoteCommand": "none",
    "RequestTTY": "no",
    "EscapeChar": "none",
    "LogLevel": "INFO",  # below it ssh does not say that a host has stopped answering
}
_HOST = re.compile(r"[\w.%~+\[\]:@-]+")
_NOISE = re.compile(r"^Warning: Permanently added ")
_SIGNS = (
    Sign(
        words=re.compile(r"Host key verification failed|REMOTE HOST IDENTIFICATION HAS CHANGED"),
        reason=AbsenceReason.DENIED,
        advice="its host key is not the known one, or none is known: connect to it once by hand with ssh",
    ),
    Sign(
        words=re.compile(r"Permission denied|Too many authentication failures|publickey"),
        reason=AbsenceReason.DENIED,
        advice="ssh must get there without a password: ssh-add, or ssh-copy-id",
    ),
    Sign(
        words=re.compile(r"Access denied|account is (locked|not available)|Connection closed by"), reason=AbsenceReason.DENIED
    ),
    Sign(
        words=re.compile(r"Could not resolve|timed out|refused|No route to host|unreachable|Connection reset|not responding"),
        reason=AbsenceReason.UNREACHABLE,
    ),
    NOT_THERE,
)


def through_ssh(
    hosts: Iterable[str] | Mapping[str, str], command: tuple[str, ...] | None = None, options: tuple[str, ...] = ()
) -> Way:
    """One ssh client a host.

    Args:
        hosts: their names, which is what they are called in answers; those named twice are asked once. With what ssh is given
            for each where that is not its name: ``user@host``.
        command: what starts `pardbg collect` there.
        options: more words for ssh, e.g. ``("-F", "config")``; they win.

    Raises:
        InputError: for a host that ssh could take for something else.
    """
    words = command or collect_command()
    targets = hosts if isinstance(hosts, Mapping) else {host: host for host in hosts}
    launches = tuple(
        Launch(nodes=(host,), command=_client(host, targets[host], words, options), noise=_NOISE) for host in targets
    )
    return Way(name="ssh", launches=launches, most_starting=MOST_STARTING, signs=_SIGNS)


def _client(host: str, target: str, words: tuple[str, ...], options: tuple[str, ...]) -> tuple[str, ...]:
    if host.startswith("-") or target.startswith("-") or not _HOST.fullmatch(target):
        raise InputError(f"{target!r} is no host that ssh can be given", remedy="name hosts as in `ssh HOST`")
    settings = [word for name, value in _OPTIONS.items() for word in ("-o", f"{name}={value}")]
    return ("ssh", *options, *settings, "--", target, quote_for_any_shell(["exec", *words, "--node", host]))
