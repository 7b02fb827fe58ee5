"""The layout report `pardbg.layout/1`: what `pardbg layout --json` prints, field for field as in the contract.

Beside what the contract names: ``world_size``, ``micro_batches``, ``rank`` and ``notes``.
"""

from enum import Enum

from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.names import Kind
from pardbg.watchdog.model.report import Axis

LAYOUT_SCHEMA_NAME = "pardbg.layout/1"


class LayoutRule(str, Enum):
    """What a violation goes against."""

    WORLD = "world"
    """The sizes of the axes multiply to the world."""
    REPLICAS = "replicas"
    """The replicas of a hybrid-sharded model divide its data-parallel ranks."""
    ORDER = "order"
    """Every axis has its place in the order of the ranks."""
    EXPERT_GRID = "expert-grid"
    """The expert axes divide a pipeline stage."""
    PIPELINE_GROUPS = "pipeline-groups"
    """The dense part and the experts of a layer are on one stage."""
    EXPERTS = "experts"
    HEADS = "heads"
    LAYERS = "layers"
    BATCH = "batch"
    INTERLEAVING = "interleaving"
    ZERO = "zero"
    # warnings
    NODES = "nodes"
    BUBBLE = "bubble"
    UNEVEN_STAGES = "uneven-stages"


class Violation(Noun, frozen=True, kw_only=True):
    """What is wrong with a layout, in one sentence, and what to change. ``kind``: cannot work, or works at a cost."""

    kind: Kind
    rule: LayoutRule
    claim: str
    advice: str


class AxisGroups(Axis, frozen=True, kw_only=True):
    """An axis with the members (global ranks) of all its groups."""

    groups: tuple[tuple[int, ...], ...]


class BytesPerRank(Noun, frozen=True, kw_only=True):
    """Bytes of a rank, the mean over pipeline stages. None: not known. Activations and buffers come on top."""

    weights: int | None = None
    gradients: int | None = None
    optimizer: int | None = None


class NearbyLayout(Noun, frozen=True, kw_only=True):
    """A valid layout near an invalid one: the options that change, and the sizes of its axes."""

    changes: dict[str, int | str]
    axes: dict[str, int]
    expert_axes: dict[str, int] | None


class RankPlace(Noun, frozen=True, kw_only=True):
    """Where a rank stands. ``experts``: those of every layer that it holds; None where they are not known."""

    rank: int
    node_rank: int
    local_rank: int
    coords: dict[str, int]
    groups: dict[str, tuple[int, ...]]
    experts: tuple[int, ...] | None


class LayoutReport(Noun, frozen=True, kw_only=True, tag_field="schema", tag=LAYOUT_SCHEMA_NAME):
    """What there is to say of a layout.

    ``axes``, ``expert_axes``: the fastest first; None where the grid cannot be made or, of experts, the model has none.
    ``bubble_ratio``: the part of a step's time (0-1) in which a pipeline stage has nothing to do. ``nearest``: of an invalid
    layout only, the nearest first. ``notes``: what the figures rest on, and why others are not known.
    """

    valid: bool
    violations: tuple[Violation, ...]
    axes: dict[str, AxisGroups] | None
    expert_axes: dict[str, AxisGroups] | None
    bubble_ratio: float | None
    bytes_per_rank: BytesPerRank
    nearest: tuple[NearbyLayout, ...]
    world_size: int
    micro_batches: int | None
    rank: RankPlace | None
    notes: tuple[str, ...]
