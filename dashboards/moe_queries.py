"""Parts of queries and panels about MoE layers. A layer of several hosts has the worst of their values."""

from pardbg.dashboards.panel import Panel, Query, Shape, ShownUnit
from pardbg.dashboards.queries import JOB

NO_LAYER = "No layer's routing is counted: start the job with `pardbg run`"


def of(figure: str, worst: str = "max") -> str:
    """One figure of every layer; ``worst`` of what hosts say."""
    return f"{worst} by (world, layer) (pardbg_moe_{figure}{{{JOB}}})"


def heat_of(  # noqa: PLR0913 - each says what another part of the panel is
    figure: str,
    title: str,
    description: str,
    ends: tuple[float, float],
    unit: ShownUnit = ShownUnit.SHARE,
    *,
    is_low_bad: bool = False,
) -> Panel:
    """A line of color for each layer, over time: where it began and how it spread. ``ends`` have the outermost colors."""
    return Panel(
        title=title,
        description=description,
        shape=Shape.HEAT,
        queries=(Query(_padded(of(figure, "min" if is_low_bad else "max")), "layer {{row}}"),),
        unit=unit,
        empty=NO_LAYER,
        bottom=ends[0],
        top=ends[1],
        is_low_bad=is_low_bad,
        width=24,
        height=10,
    )


def _padded(expr: str) -> str:
    """Layers in the order of their numbers: Prometheus sorts labels as text."""
    for number, row in ((".", "00$1"), ("..", "0$1"), ("....*", "$1")):
        expr = f'label_replace({expr}, "row", "{row}", "layer", "({number})")'
    return f"max by (world, row) ({expr})"
