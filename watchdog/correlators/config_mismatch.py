"""One host runs other versions than the rest: of torch, NCCL, the driver or Python. Seldom the cause, worth knowing always."""

from collections import Counter
from collections.abc import Iterable

from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.model.names import CollectorName, Confidence, Kind
from pardbg.watchdog.model.report import EvidenceLine, Finding, Subject

LEAST_HOSTS = 3
CLEAR_RATIO = 2
PARTS = ("torch", "nccl", "driver", "python")
WORDS = {"torch": "torch", "nccl": "NCCL", "driver": "the driver", "python": "Python"}


def correlate(situation: Situation) -> Iterable[Finding]:
    """At most one finding a part of the software; who is odd only where a clear majority says so."""
    for part in PARTS:
        versions = _versions(situation, part)
        if len(set(versions.values())) > 1:
            yield _describe(part, versions)


def _versions(situation: Situation, part: str) -> dict[str, str]:
    """By host, as the first rank of it that is known."""
    found: dict[str, str] = {}
    for rank, seen in sorted(situation.view.software.items()):
        host, version = situation.view.host(rank), getattr(seen, part)
        if host is not None and version is not None:
            found.setdefault(host, version)
    return found


def _describe(part: str, versions: dict[str, str]) -> Finding:
    counts = Counter(versions.values()).most_common()
    usual, count = counts[0]
    odd = sorted(host for host, version in versions.items() if version != usual)
    is_clear = len(versions) >= LEAST_HOSTS and count >= CLEAR_RATIO * len(odd)
    subjects = tuple(
        Subject.of_host(host, f"has {WORDS[part]} {versions[host]}") for host in (odd if is_clear else sorted(versions))
    )
    told = ", ".join(f"{version} on {number} host{'s' if number > 1 else ''}" for version, number in counts)
    return Finding(
        kind=Kind.CONFIG_MISMATCH,
        confidence=Confidence.ESTABLISHED,
        culprits=subjects if is_clear else (),
        candidates=() if is_clear else subjects,
        claim=f"{WORDS[part]} is not the same everywhere: {told}",
        evidence=tuple(_line(part, host, versions[host]) for host in odd[:4]),
        advice=("Give all nodes one image and one driver; until then leave the odd ones out.",),
    )


def _line(part: str, host: str, version: str) -> EvidenceLine:
    text = f"{WORDS[part]} {version}, from what its ranks have mapped"
    return EvidenceLine(source=CollectorName.HOST, rank=None, host=host, at=None, text=text, origin="/proc")
