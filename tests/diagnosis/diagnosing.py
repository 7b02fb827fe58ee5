"""Simulated jobs straight to a report: encoded and parsed as files would be, without touching a disk."""

import json
from collections.abc import Iterator

from pardbg.collectors.parsing.flight_recorder import parse_flight_recorder
from pardbg.collectors.parsing.job_file import parse_job
from pardbg.collectors.parsing.rank_log import parse_rank_log
from pardbg.collectors.parsing.stacks import parse_stacks
from pardbg.watchdog.judge.judge import Circumstances, judge
from pardbg.watchdog.model.evidence import Evidence, FlightRecording
from pardbg.watchdog.model.names import CollectorName
from pardbg.watchdog.model.report import Report
from pardbg.watchdog.outputs.as_json import render_json
from pardbg.watchdog.outputs.exit_code import exit_code
from pardbg.watchdog.outputs.validation import validate_report
from pardbg.watchdog.sim.dump import encode_json, encode_pickle
from pardbg.watchdog.sim.recipe import Recipe
from pardbg.watchdog.sim.scenario import SimulatedJob, simulate
from pardbg.watchdog.sim.truth import Truth
from pardbg.watchdog.store.view import EvidenceView

WHEN = "2026-11-29T12:00:00Z"


def evidence_of(job: SimulatedJob) -> Iterator[Evidence]:
    """What collectors would make of the job's files."""
    encode = encode_json if job.recipe.is_json else encode_pickle
    for rank, dump in job.dumps.items():
        recording = FlightRecording(recording=parse_flight_recorder(encode(dump)))
        yield Evidence(source=CollectorName.FLIGHT_RECORDER, rank=rank, observation=recording, origin=f"trace_rank_{rank}")
    for rank, threads in job.stacks.items():
        stack = parse_stacks(json.dumps(threads).encode())
        yield Evidence(source=CollectorName.STACKS, rank=rank, observation=stack, origin=f"stack_rank{rank}.json")
    for rank, log in job.logs.items():
        for found in parse_rank_log(log):
            yield Evidence(source=CollectorName.RANK_LOG, rank=rank, observation=found.traceback, origin=f"rank{rank}.log")
    description = parse_job(json.dumps(job.job).encode())
    yield Evidence(source=CollectorName.HOST, rank=None, observation=description, origin="job.json")


def diagnose(recipe: Recipe) -> tuple[Report, Truth]:
    """Simulates and judges; the report has passed the schema."""
    job = simulate(recipe)
    report = judge(EvidenceView.of(evidence_of(job)), Circumstances(decided_at=WHEN))
    validate_report(json.loads(render_json(report)))
    return report, job.truth


def objections(report: Report, truth: Truth) -> list[str]:
    """Everything in which a report falls short of the truth; empty if it is right, or as honest as the truth allows."""
    verdict = report.verdict
    kind = verdict.kind if verdict else None
    blamed = {subject.rank or 0 for finding in report.findings for subject in finding.culprits}
    allowed = {*truth.culprits, *(rank for ranks in truth.also for rank in ranks)}
    found = [f"blames innocent ranks {sorted(blamed - allowed)}"] if blamed - allowed else []
    for answer in truth.acceptable:
        named = {subject.rank for subject in verdict.culprits} if verdict else set()
        if kind is answer.kind and named <= {*answer.culprits}:
            return found
    same_kind = [finding for finding in report.findings if finding.kind is kind]  # two faults may be two findings
    culprits = tuple(sorted({subject.rank or 0 for finding in same_kind for subject in finding.culprits}))
    candidates = {subject.rank for subject in verdict.candidates} if verdict else set()
    checks: list[tuple[str, object, object]] = [
        ("kind", kind, truth.kind),
        ("culprits", culprits, tuple(sorted(truth.culprits))),
        ("cause", verdict.cause if verdict else None, truth.cause),
        ("mismatch", verdict.mismatch if verdict else None, truth.mismatch),
        ("edit", verdict.edit if verdict else None, truth.edit),
        ("status", report.status, truth.status),
        ("exit code", exit_code(report), truth.exit_code),
        ("candidates left out", set(truth.candidates) - candidates, set()),
        ("wrong victims", set(verdict.victims if verdict else ()) & {*truth.victims_exclude}, set()),
    ]
    return found + [f"{name}: {got} instead of {right}" for name, got, right in checks if got != right]
