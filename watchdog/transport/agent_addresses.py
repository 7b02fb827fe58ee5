"""Where agents are: a list of hosts, a file, or what Prometheus's service discovery says. Pure.

``n[01-64]``, ``n[01-64]:9475,m3``; lines of that in a file, with ``#`` before remarks; or the JSON of `http_sd` and `file_sd`:
``[{"targets": ["n01:9475"], "labels": {}}]``.
"""

import ipaddress
import re
from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from pardbg.collectors.jobs.slurm.node_names import MOST_NODES, expand_nodes
from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.base import Noun

USUAL_PORT = 9475
_PART = re.compile(r"(?:[^\[\],]|\[[^\]]*\])+")
_PORT = re.compile(r"(?P<hosts>.*?)(?::(?P<port>\d{1,5}))?$", re.ASCII | re.DOTALL)
_V6 = re.compile(r"\[(?P<host>[0-9a-fA-F:.]*:[0-9a-fA-F:.]*)\](?::(?P<port>\d{1,5}))?$", re.ASCII)
_LARGEST_PORT = 65535


class AgentAddress(Noun, frozen=True, kw_only=True):
    """One agent. ``node`` is how a report calls its machine; ``socket`` is the path of a unix socket, or empty."""

    node: str
    host: str = ""
    port: int = USUAL_PORT
    socket: str = ""

    @property
    def is_here(self) -> bool:
        """Whether only this machine can be meant."""
        return bool(self.socket) or is_loopback(self.host)

    @property
    def netloc(self) -> str:
        """As a URL has it."""
        if self.socket:
            return "localhost"
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class _Targets(Noun, frozen=True, kw_only=True):
    targets: tuple[str, ...] = ()


def is_loopback(host: str) -> bool:
    """Whether a name means this machine whoever asks."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def read_addresses(text: str) -> tuple[AgentAddress, ...]:
    """Reads a list in any of the forms, each agent once.

    Raises:
        ParseError: if it is none, or longer than `MOST_NODES`.
    """
    if text.lstrip().startswith("[{") or text.strip() == "[]":
        return name_nodes(pair for target in _targets(text) for pair in _read_list(target))
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    return name_nodes(pair for line in lines if line for pair in _read_list(line))


def name_nodes(pairs: Iterable[tuple[str, int]]) -> tuple[AgentAddress, ...]:
    """Agents at these hosts and ports. A node is called by its host alone where only one agent is there.

    Raises:
        ParseError: if they are more than `MOST_NODES`.
    """
    found: dict[tuple[str, int], None] = {}
    for pair in pairs:
        found[pair] = None
        if len(found) > MOST_NODES:
            raise ParseError(f"more than {MOST_NODES} agents")
    counts = Counter(host for host, _ in found)
    return tuple(
        AgentAddress(node=host if counts[host] == 1 else f"{host}:{port}", host=host, port=port) for host, port in found
    )


def _targets(text: str) -> Iterator[str]:
    try:
        groups = msgspec.json.decode(text, type=tuple[_Targets, ...])
    except (msgspec.DecodeError, RecursionError) as error:
        raise ParseError(f"not the JSON of Prometheus's service discovery: {error}") from error
    return (target for group in groups for target in group.targets)


def _read_list(text: str) -> Iterator[tuple[str, int]]:
    if (match := _V6.match(text)) is not None:
        yield match["host"], _port(match["port"], text)
        return
    if _PART.sub("", text).strip(", "):
        raise ParseError(f"not a list of hosts: {text[:80]!r}")
    for part in _PART.findall(text):
        match = _PORT.match(part.strip())
        hosts, port = (match["hosts"], match["port"]) if match else (part, None)
        number = _port(port, part)
        for host in expand_nodes(hosts):
            yield host, number


def _port(text: str | None, part: str) -> int:
    if text is None:
        return USUAL_PORT
    if not 0 < int(text) <= _LARGEST_PORT:
        raise ParseError(f"not a port: {part[:80]!r}")
    return int(text)
