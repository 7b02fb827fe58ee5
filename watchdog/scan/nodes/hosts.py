"""What the user gives with --hosts: folded names, each with the ``user@`` of ssh where it has one. Pure."""

import re

from pardbg.collectors.jobs.slurm.node_names import expand_nodes
from pardbg.watchdog.errors import InputError, ParseError

_PART = re.compile(r"(?:[^\[\],]|\[[^\]]*\])+")
_USER = re.compile(r"[\w.+-]+", re.ASCII)
_ADDRESS = re.compile(r"[0-9a-fA-F]*:[0-9a-fA-F:.]+(%[\w.-]+)?", re.ASCII)  # of IPv6: nothing in it is folded
_REMEDY = "write n[01-64], a,b,c or user@n[1-8]"


def read_hosts(text: str) -> dict[str, str]:
    """By the name that a host has in answers, what ssh is given: with the user, if there is one.

    Raises:
        InputError: if it is no list of hosts, or one of them has two users.
    """
    targets: dict[str, str] = {}
    if _PART.sub("", text).strip(","):
        raise InputError(f"--hosts: {text[:80]!r} is no list of hosts", remedy=_REMEDY)
    for part in map(str.strip, _PART.findall(text)):
        user, sign, hosts = part.rpartition("@")
        if sign and not (hosts and _USER.fullmatch(user)):
            raise InputError(f"--hosts: {part[:80]!r} is no user@host", remedy=_REMEDY)
        for name in _expand(hosts):
            target = f"{user}{sign}{name}"
            if targets.setdefault(name, target) != target:
                raise InputError(f"--hosts: {name} is given as {targets[name]} and as {target}", remedy="give it once")
    return targets


def _expand(hosts: str) -> tuple[str, ...]:
    if _ADDRESS.fullmatch(hosts):
        return (hosts,)
    try:
        return expand_nodes(hosts)
    except ParseError as error:
        raise InputError(f"--hosts: {error}", remedy=_REMEDY) from error
