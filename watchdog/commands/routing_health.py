"""From files or a job to how its layers route: what `pardbg moe` prints."""

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from pardbg.collectors.ended.look import find_ended_runs, read_run
from pardbg.collectors.ended.selection import describe_ago, select_run
from pardbg.collectors.jobs.find import find_world
from pardbg.collectors.jobs.job_ids import check_job_name
from pardbg.collectors.jobs.query import ChosenJob, JobQuery
from pardbg.collectors.live.moment import as_rfc3339, now_rfc3339
from pardbg.collectors.live.no_routing import explain_no_routing
from pardbg.collectors.live.routing import read_routing_files
from pardbg.watchdog.commands.analysis import diagnose_paths
from pardbg.watchdog.commands.no_counts import why_no_counts
from pardbg.watchdog.commands.output_options import COURSE_CHARACTERS
from pardbg.watchdog.correlators.layer_health import find_layer_health
from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.errors import AmbiguousJobError, InputError
from pardbg.watchdog.judge.judge import Circumstances, judge_situation
from pardbg.watchdog.model.evidence import Evidence, JobDescription
from pardbg.watchdog.model.names import CollectorName
from pardbg.watchdog.model.report import Report
from pardbg.watchdog.outputs.blocks import Depth
from pardbg.watchdog.outputs.exit_code import exit_code
from pardbg.watchdog.outputs.html import render_html
from pardbg.watchdog.outputs.markdown import render_markdown
from pardbg.watchdog.outputs.page import build_page
from pardbg.watchdog.outputs.sections.layers import BARS, PLAIN_BARS, layers_section
from pardbg.watchdog.outputs.terminal import render_page
from pardbg.watchdog.scan.description import describe_world
from pardbg.watchdog.store.view import EvidenceView

COURSE_POINTS = 50
RETRY_S, WITHIN_S = 0.25, 2.0

Progress = Callable[[str], None]


@dataclass(frozen=True)
class RoutingHealth:
    """A report of a job in which routing was counted."""

    report: Report
    situation: Situation

    @property
    def exit_code(self) -> int:
        """As for every report."""
        return exit_code(self.report)

    def as_json(self) -> str:
        """The report with ``layers``, all of them."""
        layers = find_layer_health(self.situation, COURSE_POINTS)
        whole = {**msgspec.to_builtins(self.report), "layers": msgspec.to_builtins(layers)}
        return json.dumps(whole, indent=2, allow_nan=False) + "\n"

    def as_text(self, most: int, width: int, *, color: bool, is_plain: bool) -> str:
        """The page of the report, with a line a layer before the rest."""
        layers = find_layer_health(self.situation, COURSE_CHARACTERS)
        first = (layers_section(layers, most, PLAIN_BARS if is_plain else BARS),) if layers else ()
        return render_page(build_page(self.report, Depth.NORMAL, first), width=width, color=color)

    def as_html(self) -> str:
        """The page with all layers."""
        return render_html(self.report, find_layer_health(self.situation, COURSE_CHARACTERS))

    def as_markdown(self, most: int) -> str:
        """The short form."""
        return render_markdown(self.report, find_layer_health(self.situation, COURSE_CHARACTERS), most)


def look_at_files(paths: Sequence[Path], progress: Progress) -> RoutingHealth:
    """Reads files as `pardbg analyze` does.

    Raises:
        InputError: if none of them counts routing.
    """
    try:
        diagnosed = diagnose_paths(paths, progress)
    except InputError as error:
        if not all(path.exists() for path in paths):
            raise
        raise _no_counts(paths, []) from error
    if not diagnosed.situation.routing.rows:
        unknowns = diagnosed.report.unknowns
        raise _no_counts(paths, [unknown.detail for unknown in unknowns if unknown.collector is CollectorName.ROUTING])
    return RoutingHealth(diagnosed.report, diagnosed.situation)


def _no_counts(paths: Sequence[Path], unread: Sequence[str]) -> InputError:
    named = f"no file in {', '.join(map(str, paths))} counts routing"
    reason = None if unread else why_no_counts(paths)
    if reason is not None:
        return InputError(f"{named}: {reason.why}", remedy=reason.remedy)
    return InputError(
        f"{named}{f': {unread[0]}' if unread else ''}",
        remedy="log an object a step and layer (step, layer, counts), or see pardbg analyze for the rest",
    )


def look_at_job(job: str | None, pids: tuple[int, ...], progress: Progress) -> RoutingHealth:
    """Reads what the probes of a job's ranks on this machine keep. Deadline: `WITHIN_S` after the job was found.

    Raises:
        InputError: if there is no such job here, several, or none of its ranks counts routing.
    """
    began_s = time.monotonic()
    progress("looking for the job's processes")
    query = JobQuery(job=job, pids=pids)
    try:
        chosen = _find(query)
    except AmbiguousJobError:
        raise
    except InputError as error:
        return _look_at_ended(query, error, began_s)
    evidence = _read(chosen)
    situation = Situation.of(EvidenceView.of(evidence))
    if not situation.routing.rows:
        reason = explain_no_routing(chosen.world.ranks)
        raise InputError(
            f"no rank of {chosen.job_id} on this machine counts how it routes: {reason.why}",
            remedy=f"{reason.remedy}; or log counts and give their file",
        )
    here, size = len(chosen.world.ranks), chosen.world.world_size
    notes = (f"only this machine was looked at: {here} of {size} ranks",) if size is not None and here < size else ()
    circumstances = Circumstances(
        decided_at=now_rfc3339(),
        took_s=round(time.monotonic() - began_s, 3),
        source=chosen.source,
        notes=notes,
    )
    return RoutingHealth(judge_situation(situation, circumstances), situation)


def _look_at_ended(query: JobQuery, no_job: InputError, began_s: float) -> RoutingHealth:
    """Reads what the ranks of a job that has ended here have counted.

    Raises:
        InputError: ``no_job`` if none is meant, or none of its ranks has counted anything.
    """
    chosen = select_run(find_ended_runs(os.environ), query, time.time_ns())
    if chosen is None:
        raise no_job
    left, ago = read_run(chosen.run), describe_ago(chosen.run, time.time_ns())
    counted = left.of_routing()
    if not counted:
        raise InputError(
            f"no rank of {chosen.job_id}, which has {ago}, has left counts of how it routes",
            remedy="see pardbg scan for why it ended; log counts to a file to keep them",
        )
    described = JobDescription(job=chosen.job_id, world_size=chosen.run.key.world_size)
    own = Evidence(source=CollectorName.HOST, rank=None, observation=described, origin=counted[0].origin)
    situation = Situation.of(EvidenceView.of([own, *counted]))
    circumstances = Circumstances(
        decided_at=now_rfc3339(),
        took_s=round(time.monotonic() - began_s, 3),
        source=chosen.source,
        sampled_at=(as_rfc3339(chosen.run.ended_ns),),
        notes=(f"the job has {ago}: these are the last steps that its ranks on this machine have counted",),
    )
    return RoutingHealth(judge_situation(situation, circumstances), situation)


def _find(query: JobQuery) -> ChosenJob:
    if query.job is not None:
        check_job_name(query.job)
    try:
        return find_world(query)
    except AmbiguousJobError as error:
        choices = tuple(choice.replace("pardbg scan", "pardbg moe", 1) for choice in error.choices)
        raise AmbiguousJobError(str(error), choices) from error


def _read(chosen: ChosenJob) -> Iterator[Evidence]:
    """A file that is torn now is whole a moment later."""
    until_s = time.monotonic() + WITHIN_S
    found = tuple(read_routing_files(chosen.world.ranks))
    while not found and time.monotonic() < until_s:
        time.sleep(RETRY_S)
        found = tuple(read_routing_files(chosen.world.ranks))
    yield describe_world(chosen.world, chosen.job_id, (), now_rfc3339())
    yield from found
