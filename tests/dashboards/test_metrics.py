"""The agent's page of metrics: what is on it, that Prometheus reads it, and that nothing hostile gets through."""

import re
import subprocess
import time

import msgspec
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_open
from prometheus_client.parser import text_string_to_metric_families as parse_text

from pardbg.dashboards.catalogue import OF_CLIENT, all_metrics
from pardbg.dashboards.metric import Kind
from pardbg.watchdog.agent.metrics import MOST_CHARACTERS, MOST_CLAIM_CHARACTERS, metrics_text
from pardbg.watchdog.model.watched import AgentSnapshot, JobState, WatchedRank
from pardbg.watchdog.model.watched_layer import WatchedLayer
from tests.dashboards.history import needs
from tests.dashboards.snapshots import NOW_S, card, healthy_rank, hung_job, job, layer, routed, snapshot

OPEN = "application/openmetrics-text; version=1.0.0"
Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def samples(found: AgentSnapshot, accept: str = "") -> Samples:
    page, _ = metrics_text(found, [card(0)], accept)
    parse = parse_open if accept else parse_text
    read = [sample for family in parse(page.decode()) for sample in family.samples]
    kept = {(sample.name, tuple(sorted(sample.labels.items()))): sample.value for sample in read}
    assert len(kept) == len(read), "a sample twice"
    return kept


def values(found: Samples, name: str, label: str) -> dict[str, float]:
    return {dict(labels)[label]: value for (sample, labels), value in found.items() if sample == name}


@pytest.mark.parametrize("accept", ["", OPEN])
def test_page_holds_every_metric_of_the_catalogue_with_its_labels(accept: str) -> None:
    found = samples(snapshot(routed(hung_job())), accept)
    by_name = {name: {label for label, _ in labels} for name, labels in found}
    for metric, labels in all_metrics():
        assert by_name[metric.name] == set(labels), metric.name
    assert set(by_name) == {metric.name for metric, _ in all_metrics()} | set(OF_CLIENT)


def test_content_type_is_what_was_asked_for() -> None:
    assert metrics_text(snapshot(), (), OPEN)[1].startswith("application/openmetrics-text")
    assert metrics_text(snapshot(), (), "text/html, */*")[1].startswith("text/plain; version=0.0.4")


def test_promtool_finds_nothing_wrong_with_the_page() -> None:
    page, _ = metrics_text(snapshot(routed(hung_job()), job("other")), [card(number) for number in range(8)])
    checked = subprocess.run([needs("promtool"), "check", "metrics"], input=page, capture_output=True, check=False, timeout=30)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")


def test_names_follow_their_kind_and_unit() -> None:
    for metric, labels in all_metrics():
        assert metric.name.startswith("pardbg_")
        assert metric.name.endswith("_total") == (metric.kind is Kind.COUNTER)
        assert metric.name.endswith("_info") == (metric.kind is Kind.INFO)
        assert re.fullmatch(r"[A-Z].*\.", metric.help), metric.name
        assert "job" not in labels
        assert "host" in labels
        assert not {"pid", "message", "stack"} & set(labels)


def test_state_is_one_of_four_and_what_is_not_known_is_not_there() -> None:
    blind = WatchedRank(rank=1, pid=1, started_ticks=1, uid=0, problem="no rights")
    bare = WatchedRank(rank=0, pid=1, started_ticks=1, uid=0, quiet_s=4.0, limit_s=30.0)
    ranks = {0: bare, 1: blind}
    watched = msgspec.structs.replace(job(size=2, rank=ranks.__getitem__), world_size=None, state=JobState.SUSPECT)
    found = samples(snapshot(watched))
    assert values(found, "pardbg_job_state", "state") == {"healthy": 0, "suspect": 1, "hung": 0, "recovered": 0}
    assert values(found, "pardbg_job_state_timestamp_seconds", "job_id") == {"48213": NOW_S}
    assert values(found, "pardbg_rank_quiet_seconds", "rank") == {"0": 4.0}
    assert values(found, "pardbg_rank_quiet_limit_seconds", "rank") == {"0": 30.0}
    assert values(found, "pardbg_rank_visible", "rank") == {"0": 1, "1": 0}
    absent = ("pardbg_job_world_size", "pardbg_rank_phase", "pardbg_rank_steps_total", "pardbg_incident_info")
    assert [name for name, _ in found if name in absent] == []


def test_layers_are_told_apart_and_never_pooled_and_an_illness_is_one_of_five() -> None:
    found = samples(snapshot(routed(job())))
    assert values(found, "pardbg_moe_load_max_ratio", "layer") == {"0": 1.2, "3": 2.0}
    assert values(found, "pardbg_moe_aux_loss", "layer") == {"0": 1.012, "3": 1.02}
    ill = {
        (dict(labels)["layer"], dict(labels)["kind"]): value
        for (name, labels), value in found.items()
        if name.endswith("illness")
    }
    assert len(ill) == 10
    assert [key for key, value in ill.items() if value] == [("3", "drop-spike")]
    assert values(found, "pardbg_moe_illness_since_step", "layer") == {"3": 90}
    assert values(found, "pardbg_moe_layer_info", "name") == {f"model.layers.{number}.mlp.router": 1 for number in (0, 3)}
    places = values(found, "pardbg_moe_ep_rank_load_ratio", "ep_rank")
    assert {place: round(load, 6) for place, load in places.items()} == {"0": 1.16, "1": 1.0, "2": 1.0, "3": 0.84}


def test_what_a_layer_does_not_tell_is_not_there_and_experts_have_no_series() -> None:
    bare = msgspec.structs.replace(job(), layers=(WatchedLayer(layer=7, step=5, load_max_ratio=1.5),))
    names = {name for name, labels in samples(snapshot(bare)) if dict(labels).get("layer") == "7"}
    assert names == {
        "pardbg_moe_layer_info", "pardbg_moe_step", "pardbg_moe_illness", "pardbg_moe_doubts", "pardbg_moe_load_max_ratio"
    }  # fmt: skip
    assert not any("expert" in labels for _, labels in all_metrics())


def test_phase_is_bounded() -> None:
    phases = {0: "", 1: "checkpoint", 2: "my own \n phase"}
    watched = job(size=3, rank=lambda number: msgspec.structs.replace(healthy_rank(number), phase=phases[number]))
    assert set(values(samples(snapshot(watched)), "pardbg_rank_phase", "phase")) == {"training", "checkpoint", "other"}


HOSTILE = (
    'x"} 1\npardbg_job_state{state="hung"} 1\n',
    "back\\slash",
    "\x00nul\x1b[31m\u202eright to left",
    "lone \udcff surrogate",
    "é" * 10_000,
    "n" * 10_000,
    "",
)


@pytest.mark.parametrize("accept", ["", OPEN])
def test_hostile_names_and_claims_stay_one_readable_value(accept: str) -> None:
    jobs = [msgspec.structs.replace(hung_job(claim=text), job_id=text, world=text) for text in HOSTILE]
    found = samples(snapshot(*jobs), accept)
    names = values(found, "pardbg_job_blind", "job_id")
    assert len(names) == len(HOSTILE)
    assert all(len(name) <= MOST_CHARACTERS and name.isprintable() for name in names)
    claims = values(found, "pardbg_incident_info", "claim")
    assert all(len(claim) <= MOST_CLAIM_CHARACTERS and claim.isprintable() for claim in claims)
    assert sum(values(found, "pardbg_job_state", "state").values()) == 1  # the planted line is no sample


def test_long_names_that_differ_at_their_end_are_told_apart() -> None:
    jobs = [msgspec.structs.replace(job(), job_id="n" * 5000 + end) for end in "ab"]
    assert len(values(samples(snapshot(*jobs)), "pardbg_job_blind", "job_id")) == 2


def test_two_jobs_with_all_names_alike_are_no_double_sample() -> None:
    """Prometheus would refuse one of them, and complain at each scrape."""
    assert samples(snapshot(job(), job()))


def test_page_of_a_node_costs_next_to_nothing() -> None:
    """The budget is 1 % of a core, with a scrape each 15 s: 150 ms. Processor time, the best of several."""
    moe = msgspec.structs.replace(hung_job(), layers=tuple(layer(number) for number in range(60)))
    found, cards, costs_s = snapshot(moe), [card(number) for number in range(8)], []
    for _ in range(5):
        started_s = time.process_time()
        metrics_text(found, cards, OPEN)
        costs_s.append(time.process_time() - started_s)
    assert min(costs_s) < 0.05
