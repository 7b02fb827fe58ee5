"""The report `pardbg.report/1`: what `--json` prints and every renderer reads. Field for field as in the contract."""

from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.names import (
    AbsenceReason,
    Cause,
    CollectorName,
    Confidence,
    Edit,
    JobSource,
    Kind,
    Mismatch,
    Scope,
    Status,
)

SCHEMA_NAME = "pardbg.report/1"


class Device(Noun, frozen=True, kw_only=True):
    """An accelerator. The UUID identifies it; the index alone never does."""

    index: int | None = None
    uuid: str | None = None
    pci_bus_id: str | None = None


class Subject(Noun, frozen=True, kw_only=True):
    """Whom a finding speaks of: a rank, host, device, link, stage or group.

    ``rank`` is the global rank, and null unless the scope is rank or device. ``coords`` places a rank on the parallel axes,
    e.g. ``{"tp": 1, "pp": 0}``. ``why`` is one clause that says what points at this subject.
    """

    scope: Scope
    rank: int | None = None
    ranks: tuple[int, ...] = ()
    host: str | None = None
    hosts: tuple[str, ...] = ()
    pid: int | None = None
    device: Device | None = None
    coords: dict[str, int] = {}
    why: str = ""

    @classmethod
    def of_host(cls, host: str, why: str, ranks: tuple[int, ...] = ()) -> "Subject":
        """A whole host, with those of its ranks that matter here."""
        return cls(scope=Scope.HOST, ranks=ranks, host=host, hosts=(host,), why=why)


class GroupRef(Noun, frozen=True, kw_only=True):
    """A process group: its name, description, the parallel axis it serves where known, and its members (global ranks)."""

    name: str
    desc: str
    axis: str | None
    ranks: tuple[int, ...]


class CollectiveRef(Noun, frozen=True, kw_only=True):
    """One operation. ``op`` is the bare name; ``seq`` is null for P2P; ``src`` and ``dst`` are global ranks."""

    op: str
    seq: int | None
    sizes: tuple[tuple[int, ...], ...]
    dtype: str | None
    src: int | None
    dst: int | None


class Side(Noun, frozen=True, kw_only=True):
    """The ranks that issued one and the same thing at a divergence; ``where`` is ``file:line function``, if recorded."""

    ranks: tuple[int, ...]
    op: str
    sizes: tuple[tuple[int, ...], ...]
    where: str | None


class Divergence(Noun, frozen=True, kw_only=True):
    """The earliest place where the members of a group did not issue the same operation."""

    group: str
    seq: int
    sides: tuple[Side, ...]


class Cost(Noun, frozen=True, kw_only=True):
    """What a slow subject costs: ``slowdown`` = T / T_ideal; ``share`` = part of the step time that is lost (0-1)."""

    slowdown: float
    share: float

    @classmethod
    def of_share(cls, share: float) -> "Cost":
        """By the part of the step time that is lost, less than 1."""
        return cls(slowdown=round(1 / (1 - share), 3), share=round(share, 3))


class EvidenceLine(Noun, frozen=True, kw_only=True):
    """One observed fact: which collector saw it, of whom, when (RFC 3339), and where it can be read again."""

    source: CollectorName
    rank: int | None
    host: str | None
    at: str | None
    text: str
    origin: str


class Action(Noun, frozen=True, kw_only=True):
    """Something the reader can do: what, the command line if there is one, and what it changes."""

    text: str
    command: str | None
    effect: str | None


class Finding(Noun, frozen=True, kw_only=True):
    """One claim with its evidence. ``victims`` only wait; ``candidates`` cannot be told apart; ``culprits`` are to blame."""

    kind: Kind
    cause: Cause | None = None
    confidence: Confidence
    culprits: tuple[Subject, ...] = ()
    candidates: tuple[Subject, ...] = ()
    waiting_for: tuple[Subject, ...] = ()
    victims: tuple[int, ...] = ()
    group: GroupRef | None = None
    collective: CollectiveRef | None = None
    mismatch: Mismatch | None = None
    edit: Edit | None = None
    first_divergence: Divergence | None = None
    cost: Cost | None = None
    layer: int | None = None
    since_step: int | None = None
    since_s: float | None = None
    claim: str
    evidence: tuple[EvidenceLine, ...] = ()
    advice: tuple[str, ...] = ()
    actions: tuple[Action, ...] = ()


class Job(Noun, frozen=True, kw_only=True):
    """Which job, and how large: ``world`` tells apart several worlds of one job, ``attempt`` the launches of one world."""

    id: str | None
    source: JobSource
    world: str | None = None
    world_size: int | None
    attempt: int | None = None


class Unknown(Noun, frozen=True, kw_only=True):
    """Something that was not seen. It lowers confidence; it never makes a rank guilty or a job healthy."""

    rank: int | None
    host: str | None
    collector: CollectorName
    reason: AbsenceReason
    detail: str


class Coverage(Noun, frozen=True, kw_only=True):
    """How much of the job was seen; ``by_collector`` counts ranks per collector."""

    ranks_expected: int | None
    ranks_seen: int
    by_collector: dict[str, int]


class Axis(Noun, frozen=True, kw_only=True):
    """One parallel axis: ``size`` ranks a group, neighbours ``stride`` global ranks apart."""

    size: int
    stride: int


class LayoutRef(Noun, frozen=True, kw_only=True):
    """The parallel layout as far as it was recovered, and from what."""

    axes: dict[str, Axis]
    source: str


class Software(Noun, frozen=True, kw_only=True):
    """Versions shared by some hosts, from what is mapped or recorded, not from the environment."""

    hosts: tuple[str, ...]
    torch: str | None
    nccl: str | None
    driver: str | None
    python: str | None


class Report(Noun, frozen=True, kw_only=True, tag_field="schema", tag=SCHEMA_NAME):
    """The whole answer for one job."""

    pardbg_version: str
    job: Job
    status: Status
    verdict: Finding | None
    findings: tuple[Finding, ...]
    set_aside: tuple[Finding, ...]
    unknowns: tuple[Unknown, ...]
    coverage: Coverage
    layout: LayoutRef | None
    software: tuple[Software, ...]
    decided_at: str
    sampled_at: tuple[str, ...]
    took_s: float
    notes: tuple[str, ...]
