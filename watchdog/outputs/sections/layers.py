"""One line a layer that routes, worst first, with the course of a figure as a line of small bars."""

from collections.abc import Sequence

from pardbg.watchdog.model.routing_health import LayerHealth, Trend, TrendFigure
from pardbg.watchdog.outputs.blocks import Paragraph, Section, Table, Text, Verbatim

BARS, PLAIN_BARS = "▁▂▃▄▅▆▇█", "_.-:=+*#"
_LEGEND = (
    "The bars are the course of the figure that is ill, else of the load. Load: the busiest expert's over the mean; EP: the "
    "busiest EP rank's over the mean. Figures are of the newest steps."
)
_SMALLEST_SHARE = 0.0005
_SCALES = {
    TrendFigure.LOAD: (1.0, 3.0),
    TrendFigure.EP_LOAD: (1.0, 1.5),
    TrendFigure.DROPPED: (0.0, 0.2),
    TrendFigure.DEAD: (0.0, 0.2),
    TrendFigure.GRADIENT: (0.0, 0.0),
}
"""Where the bars begin, and the least at which they end: the noise of a layer that is well stays low."""


def layers_section(layers: Sequence[LayerHealth], most: int, bars: str = BARS, all_of_them: str = "") -> Section:
    """A table of the first ``most`` layers, and what its columns mean; ``all_of_them`` says where the others are."""
    tops = {figure: _top(layers, figure) for figure in TrendFigure}
    rows = tuple(_row(health, tops[health.trend.figure], bars) for health in layers[:most])
    left = len(layers) - most
    more = (Paragraph(text=f"... and {left} more; {all_of_them or f'--layers {len(layers)} shows all'}."),) if left > 0 else ()
    steps = f"steps {layers[0].trend.first_step}-{layers[0].trend.last_step}"
    table = Table(columns=("layer", steps, "load", "dropped", "dead", "EP", "state"), rows=rows)
    return Section(title="Layers", blocks=(table, *more, Paragraph(text=_LEGEND)))


def draw(trend: Trend, top: float, bars: str = BARS) -> str:
    """The course as characters of rising height; a space where nothing was counted."""
    least, _ = _SCALES[trend.figure]
    span = max(top - least, 1e-12)
    heights = (None if mean is None else int((mean - least) / span * len(bars)) for mean in trend.means)
    return "".join(" " if height is None else bars[min(max(height, 0), len(bars) - 1)] for height in heights)


def _top(layers: Sequence[LayerHealth], figure: TrendFigure) -> float:
    means = [mean for health in layers if health.trend.figure is figure for mean in health.trend.means if mean is not None]
    return max([*means, _SCALES[figure][1]])


def _row(health: LayerHealth, top: float, bars: str) -> tuple[Text, ...]:
    figures = health.figures
    return (
        Verbatim(text=f"{health.layer:>5}"),
        Verbatim(text=draw(health.trend, top, bars)),
        Verbatim(text=f"{figures.load_ratio_max:>4.1f}"),
        _share(figures.drop_ratio, 7),
        _share(figures.dead_ratio, 4),
        Verbatim(text="  -" if figures.ep_load_ratio_max is None else f"{figures.ep_load_ratio_max:.1f}"),
        _state(health),
    )


def _share(value: float | None, width: int) -> Verbatim:
    text = "-" if value is None else f"{value:.1%}" if _SMALLEST_SHARE <= value < 0.1 else f"{value:.0%}"
    return Verbatim(text=f"{text:>{width}}")


def _state(health: LayerHealth) -> str:
    if not health.illnesses:
        return "unclear" if health.doubts else "well"
    first, more = health.illnesses[0], len(health.illnesses) - 1
    ended = " (over)" if first.until_step is not None else ""
    return f"{first.kind.value}{ended}{f' +{more}' if more else ''}"
