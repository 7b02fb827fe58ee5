"""Whatever was counted, there is a report that its schema accepts, and a table."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pardbg.watchdog.correlators.layer_health import find_layer_health
from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.judge.judge import Circumstances, judge_situation
from pardbg.watchdog.model.evidence import Evidence
from pardbg.watchdog.model.names import CollectorName
from pardbg.watchdog.model.routing import RoutingRow, RoutingSeries
from pardbg.watchdog.model.routing_order import in_order
from pardbg.watchdog.outputs.as_json import render_json
from pardbg.watchdog.outputs.sections.layers import layers_section
from pardbg.watchdog.outputs.terminal import render_terminal
from pardbg.watchdog.outputs.validation import validate_report
from pardbg.watchdog.store.view import EvidenceView
from tests.diagnosis.diagnosing import WHEN

_COUNT = st.sampled_from([0, 1, 100, 2**40])
_FEW = st.sampled_from([None, 1, 2])
_AMOUNT = st.one_of(st.none(), st.sampled_from([0.0, 1e-12, 1.0, 2.0**52]))


@st.composite
def _series(draw: st.DrawFn) -> RoutingSeries:
    """A stretch of equal rows and another one, of a layer or two: few choices, many steps."""
    rows = []
    for layer in range(draw(st.integers(1, 2))):
        step = draw(st.integers(0, 3))
        for _ in range(2):
            counts = tuple(draw(st.lists(_COUNT, min_size=2, max_size=5)))
            first = RoutingRow(
                step=step,
                layer=layer,
                counts=counts,
                dropped=draw(_AMOUNT),
                capacity=draw(_AMOUNT),
                tokens=draw(_AMOUNT),
                aux_loss=draw(_AMOUNT),
                router_grad_norm=draw(_AMOUNT),
                top_k=draw(_FEW),
                ep_size=draw(_FEW),
            )
            length = draw(st.integers(1, 90))
            rows += [replace(first, step=step + number) for number in range(length)]
            step += length * draw(st.sampled_from([0, 1, 1000]))
    return RoutingSeries(rows=in_order(rows))


@settings(max_examples=25, deadline=None)
@given(st.lists(_series(), min_size=1, max_size=2), st.booleans())
def test_any_counts_give_a_valid_report_and_a_table(found: list[RoutingSeries], has_ranks: bool) -> None:  # noqa: FBT001
    evidence = [
        Evidence(source=CollectorName.ROUTING, rank=number if has_ranks else None, observation=one, origin=f"{number}.jsonl")
        for number, one in enumerate(found)
    ]
    situation = Situation.of(EvidenceView.of(evidence))
    report = judge_situation(situation, Circumstances(decided_at=WHEN))

    validate_report(json.loads(render_json(report)))
    assert render_terminal(report)
    layers = find_layer_health(situation, 16)
    if layers:
        assert layers_section(layers, 1).blocks
