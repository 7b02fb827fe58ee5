"""All metrics of pardbg: names, types, units, labels and help. What shows, scrapes or alerts takes them from here.

Names begin with ``pardbg_`` and are in base units. No label is unbounded: no pid, no message, no stack, but for the claim of
an open incident, which is one series each. ``job`` is Prometheus's own label, so ours is ``job_id``; ``gpu`` and ``UUID`` are
spelled as dcgm-exporter spells them, for joins.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from pardbg.dashboards.metric import Kind, Metric, Topic, each, one
from pardbg.dashboards.moe_metrics import EP_RANK, MOE_LAYER, MOE_RANK
from pardbg.dashboards.scene import CardShown, IncidentShown, JobShown, RankShown
from pardbg.watchdog.model.watched import AgentSnapshot, JobState, WatchedRank

PHASES = ("training", "checkpoint", "compile", "evaluation", "other")
OF_CLIENT = ("process_start_time_seconds", "process_cpu_seconds_total", "process_resident_memory_bytes")
"""Of the agent's own process, by the Prometheus client: standard names."""
OF_PROMETHEUS = ("up",)


def epoch_s(moment: str) -> float | None:
    """Seconds since 1970 of an RFC 3339 moment; None if it is none."""
    try:
        return datetime.fromisoformat(moment.replace("Z", "+00:00")).timestamp()
    except ValueError:
        return None


def _phase(rank: WatchedRank) -> list[tuple[str, float]]:
    """Nothing of a rank without a probe: its phase is not known."""
    if rank.step is None and not rank.phase:
        return []
    now = rank.phase or PHASES[0]
    return [(now if now in PHASES else "other", 1)]


def _blamed(shown: IncidentShown) -> tuple[str, str, str, str]:
    verdict = shown.incident.report.verdict
    if verdict is None:
        return ("", "", shown.culprit, "")
    return (verdict.kind.value, verdict.cause.value if verdict.cause else "", shown.culprit, verdict.claim)


def _ecc(card: CardShown) -> list[tuple[str, float]]:
    counts = {"corrected": card.ecc_corrected, "uncorrected": card.ecc_uncorrected}
    return [(error, count) for error, count in counts.items() if count is not None]


def _attempt(attempt: int | None) -> str:
    return "" if attempt is None else str(attempt)


AGENT: Topic[AgentSnapshot] = Topic(
    labels=("host",),
    label_values=lambda agent: (agent.host,),
    of=lambda scene: scene.agents,
    metrics=(
        Metric(
            "pardbg_build_info",
            "Version of the agent.",
            lambda agent: (((agent.version,), 1),),
            kind=Kind.INFO,
            labels=("version",),
        ),
        Metric(
            "pardbg_agent_snapshot_timestamp_seconds",
            "When the agent last looked around.",
            one(lambda agent: epoch_s(agent.taken_at)),
        ),
        Metric("pardbg_agent_jobs", "Jobs that the agent watches.", one(lambda agent: len(agent.jobs))),
        Metric(
            "pardbg_agent_problem",
            "Something that the agent itself suffers from; absent if it does not. /healthz says it in words.",
            each(lambda agent: [(problem, 1) for problem in agent.problems]),
            labels=("problem",),
        ),
        Metric(
            "pardbg_agent_events_total",
            "What the agent has done since it started: scans, looks, refusals, notifications, retries.",
            each(lambda agent: agent.counts.items()),
            kind=Kind.COUNTER,
            labels=("event",),
        ),
        Metric(
            "pardbg_agent_unsent_notifications",
            "Notifications that wait for their receiver.",
            one(lambda agent: agent.unsent),
        ),
    ),
)

JOB: Topic[JobShown] = Topic(
    labels=("job_id", "world", "attempt", "host"),
    label_values=lambda shown: (shown.job.job_id, shown.job.world, _attempt(shown.job.attempt), shown.host),
    of=lambda scene: scene.jobs,
    metrics=(
        Metric(
            "pardbg_job_state",
            "Whether the watchdog finds the job in this state, 1 or 0.",
            each(lambda shown: [(state.value, float(state is shown.job.state)) for state in JobState]),
            labels=("state",),
        ),
        Metric(
            "pardbg_job_state_timestamp_seconds",
            "Since when the job is in its state.",
            one(lambda shown: epoch_s(shown.job.state_since)),
        ),
        Metric("pardbg_job_world_size", "Ranks the job should have, on all hosts.", one(lambda shown: shown.job.world_size)),
        Metric("pardbg_job_ranks", "Ranks of the job seen on this host.", one(lambda shown: len(shown.job.ranks))),
        Metric(
            "pardbg_job_blind",
            "Whether of no rank on this host a sign of life can be seen, 1 or 0.",
            one(lambda shown: float(shown.job.is_blind)),
        ),
    ),
)

RANK: Topic[RankShown] = Topic(
    labels=("job_id", "world", "rank", "host"),
    label_values=lambda shown: (shown.job.job_id, shown.job.world, str(shown.rank.rank), shown.host),
    of=lambda scene: scene.ranks,
    metrics=(
        Metric(
            "pardbg_rank_visible",
            "Whether the rank's signs of life can be seen, 1 or 0.",
            one(lambda shown: float(not shown.rank.problem)),
        ),
        Metric(
            "pardbg_rank_quiet_seconds",
            "For how long the rank has shown no sign of life.",
            one(lambda shown: None if shown.rank.problem else shown.rank.quiet_s),
        ),
        Metric(
            "pardbg_rank_quiet_limit_seconds",
            "For how long the rank may be quiet before its job is suspect.",
            one(lambda shown: shown.rank.limit_s or None),
        ),
        Metric(
            "pardbg_rank_steps_total",
            "Optimizer steps the rank has finished.",
            one(lambda shown: shown.rank.step),
            kind=Kind.COUNTER,
        ),
        Metric("pardbg_rank_step_seconds", "How long the rank's last step took.", one(lambda shown: shown.rank.step_s)),
        Metric(
            "pardbg_rank_phase",
            "The phase that the rank is in: " + ", ".join(PHASES) + "; absent if it has no probe.",
            each(lambda shown: _phase(shown.rank)),
            labels=("phase",),
        ),
    ),
)

INCIDENT: Topic[IncidentShown] = Topic(
    labels=("job_id", "world", "attempt", "incident", "host"),
    label_values=lambda shown: (
        shown.job.job_id,
        shown.job.world,
        _attempt(shown.incident.attempt),
        shown.incident.id,
        shown.host,
    ),
    of=lambda scene: scene.incidents,
    metrics=(
        Metric(
            "pardbg_incident_info",
            "An open incident, with what the last scan of it has found.",
            lambda shown: ((_blamed(shown), 1),),
            kind=Kind.INFO,
            labels=("kind", "cause", "culprit", "claim"),
        ),
        Metric(
            "pardbg_incident_opened_timestamp_seconds",
            "When the open incident began.",
            one(lambda shown: epoch_s(shown.incident.opened_at)),
        ),
    ),
)

CARD: Topic[CardShown] = Topic(
    labels=("gpu", "UUID", "host", "job_id", "world", "rank"),
    label_values=lambda card: (card.gpu, card.uuid, card.host, card.job_id, card.world, card.rank),
    of=lambda scene: scene.cards,
    metrics=(
        Metric("pardbg_gpu_lost", "Whether the driver has lost the GPU, 1 or 0.", one(lambda card: float(card.is_lost))),
        Metric(
            "pardbg_gpu_silent",
            "Whether the driver does not answer when it is asked of the GPU, 1 or 0.",
            one(lambda card: float(card.is_silent)),
        ),
        Metric("pardbg_gpu_nvlinks_down", "NVLinks of the GPU that were up and are not.", one(lambda card: card.down_links)),
        Metric(
            "pardbg_gpu_utilization_ratio",
            "Share of time in which any kernel was on the GPU.",
            one(lambda card: card.utilization_ratio),
        ),
        Metric(
            "pardbg_gpu_memory_utilization_ratio",
            "Share of time in which the GPU's memory was read or written.",
            one(lambda card: card.memory_ratio),
        ),
        Metric("pardbg_gpu_memory_used_bytes", "Memory in use on the GPU.", one(lambda card: card.memory_used_bytes)),
        Metric("pardbg_gpu_memory_total_bytes", "Memory of the GPU.", one(lambda card: card.memory_total_bytes)),
        Metric("pardbg_gpu_power_watts", "What the GPU draws.", one(lambda card: card.power_watts)),
        Metric("pardbg_gpu_power_limit_watts", "What the GPU may draw.", one(lambda card: card.power_limit_watts)),
        Metric("pardbg_gpu_sm_clock_hertz", "Clock of the GPU's processors.", one(lambda card: card.sm_clock_hertz)),
        Metric("pardbg_gpu_memory_clock_hertz", "Clock of the GPU's memory.", one(lambda card: card.memory_clock_hertz)),
        Metric("pardbg_gpu_temperature_celsius", "Heat of the GPU.", one(lambda card: card.temperature_celsius)),
        Metric(
            "pardbg_gpu_memory_temperature_celsius",
            "Heat of the GPU's memory.",
            one(lambda card: card.memory_temperature_celsius),
        ),
        Metric(
            "pardbg_gpu_clock_reason",
            "Something that holds the GPU's clocks down; absent if it does not.",
            each(lambda card: [(reason, 1) for reason in card.clock_reasons]),
            labels=("reason",),
        ),
        Metric(
            "pardbg_gpu_pcie_replays_total",
            "Transfers over PCIe that had to be repeated.",
            one(lambda card: card.pcie_replays),
            kind=Kind.COUNTER,
        ),
        Metric(
            "pardbg_gpu_nvlink_errors_total",
            "Errors on the GPU's NVLinks.",
            one(lambda card: card.nvlink_errors),
            kind=Kind.COUNTER,
        ),
        Metric(
            "pardbg_gpu_ecc_errors_total",
            "Memory errors of the GPU, corrected and uncorrected.",
            each(_ecc),
            kind=Kind.COUNTER,
            labels=("error",),
        ),
        Metric(
            "pardbg_gpu_last_xid",
            "Code of the last error (Xid) that the driver has reported of the GPU; absent if none.",
            one(lambda card: card.last_xid),
        ),
    ),
)


TOPICS: tuple[Topic[Any], ...] = (AGENT, JOB, RANK, INCIDENT, CARD, MOE_LAYER, MOE_RANK, EP_RANK)


def all_metrics() -> Iterator[tuple[Metric[Any], tuple[str, ...]]]:
    """Every metric of the catalogue with all its labels."""
    for topic in TOPICS:
        for metric in topic.metrics:
            yield metric, (*topic.labels, *metric.labels)


def known_names() -> frozenset[str]:
    """Every name that a query may use."""
    return frozenset((*(metric.name for metric, _ in all_metrics()), *OF_CLIENT, *OF_PROMETHEUS))
