"""What is alerted about in MoE routing: one alert a job and illness, however many of its layers and hosts show it.

None waits before it fires: the detectors have waited already, until they were sure (`watchdog/routing`). Experts that are dead
because their router collapses or does not learn are not told beside that; drops are, since each of them costs what it costs.
"""

from pardbg.dashboards.alert import Alert, Severity
from pardbg.watchdog.model.names import Kind

_SHOWN_LAYERS = 3


def _ill(kind: Kind) -> str:
    return f'max by (job_id, world, layer) (pardbg_moe_illness{{kind="{kind.value}"}}) == 1'


def _layers(kind: Kind, *but: Kind) -> str:
    """How many layers of each job have an illness, but for those that have another one."""
    lines = [_ill(kind), *(f"unless\n  {_ill(other)}" for other in but)]
    return "count by (job_id, world) (\n  " + "\n  ".join(lines) + "\n)"


def _asked(query: str, words: str) -> str:
    """Words about what a query finds when the text is written; ``%q`` in it are the alert's job and world."""
    return f"{{{{ with query (printf `{query}` $labels.job_id $labels.world) }}}}{words}{{{{ end }}}}"


def _where(kind: Kind) -> str:
    """The layers that had it first."""
    since = f'min by (layer) (pardbg_moe_illness_since_step{{job_id=%q, world=%q, kind="{kind.value}"}})'
    one = '{{ if $i }}, {{ end }}layer {{ $one.Labels.layer }} since step {{ printf "%.0f" $one.Value }}'
    return _asked(f"bottomk({_SHOWN_LAYERS}, {since})", f"{{{{ range $i, $one := . }}}}{one}{{{{ end }}}}")


def _most(kind: Kind, figure: str, said: str, shown: str = "humanizePercentage") -> str:
    """The highest value of a figure among the layers that are ill, in a sentence with ``{}`` for it."""
    ill = f'pardbg_moe_illness{{kind="{kind.value}"}} == 1'
    query = f"max(pardbg_moe_{figure}{{job_id=%q, world=%q}} and on (job_id, world, layer, host) {ill})"
    return _asked(query, "; " + said.replace("{}", f"{{{{ . | first | value | {shown} }}}}"))


_ASK = ". Ask: pardbg moe --job {{ $labels.job_id }}"
_COUNT = "{{ $value }} MoE layer{{ if gt $value 1.0 }}s{{ end }}"

MOE_ALERTS = (
    Alert(
        name="PardbgMoeDropRateSpike",
        expr=_layers(Kind.DROP_SPIKE),
        severity=Severity.WARNING,
        summary=f"Job {{{{ $labels.job_id }}}} drops tokens in {_COUNT}.",
        description=_where(Kind.DROP_SPIKE)
        + _most(Kind.DROP_SPIKE, "drop_ratio", "up to {} of a layer's assignments are dropped now")
        + _ASK,
    ),
    Alert(
        name="PardbgRouterCollapse",
        expr=_layers(Kind.ROUTER_COLLAPSE),
        severity=Severity.CRITICAL,
        summary=f"The routers of {_COUNT} of job {{{{ $labels.job_id }}}} collapse.",
        description=_where(Kind.ROUTER_COLLAPSE)
        + _most(Kind.ROUTER_COLLAPSE, "top_expert_ratio", "one expert gets up to {} of a layer's assignments")
        + _ASK,
    ),
    Alert(
        name="PardbgDeadExperts",
        expr=_layers(Kind.DEAD_EXPERTS, Kind.ROUTER_COLLAPSE, Kind.ROUTER_NO_GRADIENT),
        severity=Severity.WARNING,
        summary=f"Experts of {_COUNT} of job {{{{ $labels.job_id }}}} get no tokens.",
        description=_where(Kind.DEAD_EXPERTS)
        + _most(Kind.DEAD_EXPERTS, "dead_expert_ratio", "up to {} of a layer's experts")
        + _ASK,
    ),
    Alert(
        name="PardbgEpImbalance",
        expr=_layers(Kind.EP_IMBALANCE),
        severity=Severity.WARNING,
        summary=f"One EP rank gets most of the load in {_COUNT} of job {{{{ $labels.job_id }}}}.",
        description=_where(Kind.EP_IMBALANCE)
        + _most(Kind.EP_IMBALANCE, "ep_load_max_ratio", "up to {} times the mean load", 'printf "%.2f"')
        + _ASK,
    ),
    Alert(
        name="PardbgRouterNoGradient",
        expr=_layers(Kind.ROUTER_NO_GRADIENT),
        severity=Severity.WARNING,
        summary=f"The routers of {_COUNT} of job {{{{ $labels.job_id }}}} do not learn.",
        description=_where(Kind.ROUTER_NO_GRADIENT) + ": no gradient comes to the router's weights" + _ASK,
    ),
    Alert(
        name="PardbgMoeDropsDisagree",
        expr="count by (job_id, world) (\n  max by (job_id, world, layer) (pardbg_moe_drops_disagree) == 1\n)",
        hold="5m",
        severity=Severity.WARNING,
        summary=f"Drops in {_COUNT} of job {{{{ $labels.job_id }}}} are not those that capacity explains.",
        description="The mask that is applied and the capacity that is told do not fit" + _ASK,
    ),
)
