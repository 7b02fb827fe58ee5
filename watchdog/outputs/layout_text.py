"""The report on a layout as text for a terminal: what is wrong, what comes near, groups, costs."""

from collections.abc import Iterator, Sequence

from pardbg.watchdog.layout.words import describe_sizes
from pardbg.watchdog.model.layout_report import AxisGroups, BytesPerRank, LayoutReport, NearbyLayout, RankPlace, Violation
from pardbg.watchdog.model.names import Kind
from pardbg.watchdog.model.ranks import fold_ranks
from pardbg.watchdog.outputs.wrapping import hang

_INDENT = "  "
_GIB = 2**30


def render_layout(report: LayoutReport, *, width: int = 80) -> str:
    """Lines of at most ``width``; of the groups of an axis as many as fit, the JSON has all."""
    sections = (
        ("WHAT CANNOT WORK", _violations(report, Kind.LAYOUT_INVALID, width)),
        ("NEAREST THAT CAN", (line for nearby in report.nearest for line in _nearby(nearby, width))),
        ("AT A COST", _violations(report, Kind.LAYOUT_WARNING, width)),
        ("AXES", _axes(report.axes, width)),
        ("AXES OF EXPERTS", _axes(report.expert_axes, width)),
        (f"RANK {report.rank.rank}" if report.rank else "", _rank(report.rank, width) if report.rank else ()),
        ("COSTS", _costs(report, width)),
        ("NOTES", (line for note in report.notes for line in hang(f"{_INDENT}- ", note, width))),
    )
    lines = hang(*_headline(report), width)
    for title, content in sections:
        block = list(content)
        lines += ["", title, *block] if block else []
    return "\n".join(lines) + "\n"


def _headline(report: LayoutReport) -> tuple[str, str]:
    ranks = f"{report.world_size} {'rank' if report.world_size == 1 else 'ranks'}"
    if not report.valid:
        count = sum(violation.kind is Kind.LAYOUT_INVALID for violation in report.violations)
        return "INVALID  ", f"{count} {'thing keeps' if count == 1 else 'things keep'} {ranks} from working as asked"
    dense = describe_sizes({name: axis.size for name, axis in (report.axes or {}).items()})
    experts = describe_sizes({name: axis.size for name, axis in (report.expert_axes or {}).items()})
    return "VALID  ", f"{ranks} as {dense}{f', experts as {experts}' if report.expert_axes else ''}"


def _violations(report: LayoutReport, kind: Kind, width: int) -> Iterator[str]:
    for violation in report.violations:
        if violation.kind is kind:
            yield from _violation(violation, width)


def _violation(violation: Violation, width: int) -> Iterator[str]:
    yield from hang(f"{_INDENT}- ", violation.claim, width)
    yield from hang(f"{_INDENT * 2}try: ", violation.advice, width)


def _nearby(nearby: NearbyLayout, width: int) -> Iterator[str]:
    options = " ".join(f"--{option.replace('_', '-')} {value}" for option, value in nearby.changes.items())
    experts = f", experts {describe_sizes(nearby.expert_axes)}" if nearby.expert_axes else ""
    yield f"{_INDENT}{options}"
    yield from hang(f"{_INDENT * 3}", f"{describe_sizes(nearby.axes)}{experts}", width)


def _axes(axes: dict[str, AxisGroups] | None, width: int) -> Iterator[str]:
    """A line an axis; axes of size 1 split nothing and are left out."""
    shown = {name: axis for name, axis in (axes or {}).items() if axis.size > 1}
    if not shown:
        return
    names = max(len(name) for name in (*shown, "axis"))
    head = f"{_INDENT}{'axis':{names}}   size  stride  groups  "
    yield f"{head}members"
    for name, axis in shown.items():
        row = f"{_INDENT}{name:{names}}  {axis.size:>5}  {axis.stride:>6}  {len(axis.groups):>6}  "
        yield f"{row}{_members(axis.groups, width - len(head))}"


def _members(groups: Sequence[tuple[int, ...]], room: int) -> str:
    """All groups, or as many as there is room for and the last one."""
    shown = [f"[{fold_ranks(group)}]" for group in groups[: room // 3]]  # none takes fewer than three characters
    if len(shown) == len(groups) and len(" ".join(shown)) <= room:
        return " ".join(shown)
    end = f".. [{fold_ranks(groups[-1])}]"
    while len(shown) > 1 and len(" ".join((*shown, end))) > room:
        shown.pop()
    return " ".join((*shown, end)) if len(f"{shown[0]} {end}") <= room else f"{shown[0]} .."


def _rank(place: RankPlace, width: int) -> Iterator[str]:
    yield f"{_INDENT}node {place.node_rank}, local rank {place.local_rank}"
    for name, ranks in place.groups.items():
        if len(ranks) > 1:
            label = f"{_INDENT}{name} {place.coords[name]} of {len(ranks)}: "
            yield from hang(label, f"in [{fold_ranks(ranks)}]", width)
    if place.experts is not None:
        yield from hang(f"{_INDENT}experts: ", f"{fold_ranks(place.experts)} of every layer", width)


def _costs(report: LayoutReport, width: int) -> Iterator[str]:
    if report.bubble_ratio:
        yield from hang(
            f"{_INDENT}bubble: ", f"{report.bubble_ratio:.1%} of a step with {report.micro_batches} micro-batches", width
        )
    if report.bytes_per_rank.weights is not None:
        yield from hang(f"{_INDENT}memory: ", _bytes(report.bytes_per_rank), width)


def _bytes(sizes: BytesPerRank) -> str:
    parts = {"weights": sizes.weights, "gradients": sizes.gradients, "optimizer": sizes.optimizer}
    known = {name: count for name, count in parts.items() if count is not None}
    listed = ", ".join(f"{name} {count / _GIB:.1f}" for name, count in known.items())
    return f"{sum(known.values()) / _GIB:.1f} GiB a rank ({listed})"
