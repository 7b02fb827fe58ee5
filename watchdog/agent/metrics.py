"""The agent's page of metrics: what it knows at this moment, in the text form that Prometheus and OpenMetrics scrape.

Nothing is kept between two scrapes, so what is gone vanishes by itself. Cost, measured on one core of a busy machine: 5 ms for
8 ranks with a GPU each, 18 ms with 60 MoE layers, 0.15 s for 1,000 ranks; to import the Prometheus client 0.1 s and 14 MB.
Read: the agent's own `/proc`.
"""

import hashlib
from collections.abc import Iterable, Iterator
from statistics import fmean
from typing import Any

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.openmetrics.exposition import ALLOWUTF8
from prometheus_client.registry import Collector

from pardbg.dashboards.catalogue import OF_CLIENT, TOPICS
from pardbg.dashboards.metric import Kind, Metric, Topic
from pardbg.dashboards.scene import CardShown, EpRankShown, IncidentShown, JobShown, LayerShown, RankShown, Scene
from pardbg.watchdog.model.incident import IncidentState
from pardbg.watchdog.model.text import printable_text
from pardbg.watchdog.model.watched import AgentSnapshot, WatchedJob
from pardbg.watchdog.outputs.phrases import name_subjects

MOST_CHARACTERS = 200
MOST_CLAIM_CHARACTERS = 300
_NAMED_CULPRITS = 3


def metrics_text(snapshot: AgentSnapshot, cards: Iterable[CardShown] = (), accept: str = "") -> tuple[bytes, str]:
    """Renders the page.

    Args:
        snapshot: what the agent knows.
        cards: the GPUs of this host.
        accept: the request's ``Accept`` header; it chooses between OpenMetrics and Prometheus's older text.

    Returns:
        The body and its ``Content-Type``.
    """
    registry = CollectorRegistry()
    registry.register(SnapshotCollector(scene_of(snapshot, cards)))
    encode, content_type = choose_encoder(accept)
    # All our names are plain: whatever way to escape was asked for, the bytes are the same, and this one is a fifth quicker.
    return encode(registry, escaping=ALLOWUTF8), content_type  # type: ignore[call-arg]


def scene_of(snapshot: AgentSnapshot, cards: Iterable[CardShown] = ()) -> Scene:
    """What there is to show, flat."""
    host, jobs = snapshot.host, snapshot.jobs
    open_ones = [(job, job.incident) for job in jobs if job.incident and job.incident.state is IncidentState.OPEN]
    return Scene(
        agents=(snapshot,),
        jobs=tuple(JobShown(host, job) for job in jobs),
        ranks=tuple(RankShown(host, job, rank) for job in jobs for rank in job.ranks),
        incidents=tuple(
            IncidentShown(host, job, incident, name_subjects(verdict.culprits, _NAMED_CULPRITS) if verdict else "")
            for job, incident in open_ones
            for verdict in (incident.report.verdict,)
        ),
        cards=tuple(cards),
        layers=tuple(LayerShown(host, job, layer) for job in jobs for layer in job.layers),
        ep_ranks=tuple(EpRankShown(host, job, place, ratio) for job in jobs for place, ratio in enumerate(_ep_loads(job))),
    )


def _ep_loads(job: WatchedJob) -> list[float]:
    """Load of each place / the mean of all places, over those layers whose groups are the largest."""
    size = max((len(layer.ep_shares) for layer in job.layers), default=0)
    layers = [layer.ep_shares for layer in job.layers if len(layer.ep_shares) == size]
    return [size * fmean(shares) for shares in zip(*layers, strict=True)]


class SnapshotCollector(Collector):
    """Every metric of the catalogue that has a value in a scene, and the agent's own process."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    def describe(self) -> Iterable[Family]:
        """Nothing: a registry that asks would collect twice."""
        return ()

    def collect(self) -> Iterator[Family]:
        """One family a metric."""
        for topic in TOPICS:
            yield from _families(topic, self._scene)
        yield from (family for family in ProcessCollector(registry=None).collect() if _is_wanted(family))


def _is_wanted(family: Family) -> bool:
    return family.name in OF_CLIENT or f"{family.name}_total" in OF_CLIENT


def _families(topic: Topic[Any], scene: Scene) -> Iterator[Family]:
    subjects = [(_fit(topic.labels, topic.label_values(subject)), subject) for subject in topic.of(scene)]
    for metric in topic.metrics:
        family = _family(metric, (*topic.labels, *metric.labels))
        seen: set[tuple[str, ...]] = set()  # two jobs may answer to one name: one sample twice would spoil the whole scrape
        for labels, subject in subjects:
            for own, value in metric.rows(subject):
                values = (*labels, *_fit(metric.labels, own))
                if values not in seen:
                    seen.add(values)
                    _add(family, values, value)
        if seen:
            yield family


def _family(metric: Metric[Any], labels: tuple[str, ...]) -> Family:
    if metric.kind is Kind.INFO:
        return InfoMetricFamily(metric.name.removesuffix("_info"), metric.help, labels=labels)
    made = CounterMetricFamily if metric.kind is Kind.COUNTER else GaugeMetricFamily
    return made(metric.name.removesuffix("_total"), metric.help, labels=labels, unit=metric.unit.value)


def _add(family: Family, labels: tuple[str, ...], value: float) -> None:
    if isinstance(family, InfoMetricFamily):
        family.add_metric(labels, {})
    elif isinstance(family, CounterMetricFamily | GaugeMetricFamily):
        family.add_metric(labels, value)


def _fit(names: tuple[str, ...], values: tuple[str, ...]) -> tuple[str, ...]:
    """Label values made safe: no control characters, nothing that UTF-8 cannot carry, and not longer than a person reads."""
    return tuple(_fit_one(name, value) for name, value in zip(names, values, strict=True))


def _fit_one(name: str, value: str) -> str:
    if name == "claim":
        shown = printable_text(value[:MOST_CLAIM_CHARACTERS])
        return shown if len(value) <= MOST_CLAIM_CHARACTERS >= len(shown) else f"{shown[: MOST_CLAIM_CHARACTERS - 1]}…"
    if len(value) <= MOST_CHARACTERS and len(shown := printable_text(value)) <= MOST_CHARACTERS:
        return shown
    digest = hashlib.sha256(value.encode(errors="surrogatepass")).hexdigest()[:8]  # what is cut must still differ
    return f"{printable_text(value[:MOST_CHARACTERS])[: MOST_CHARACTERS - 9]}~{digest}"
