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
