"""What Slurm knows of the job that a user means: at most three questions, those first that burden the controller least.

`slurmctld` answers every command of a cluster under a few locks; when jobs hang it is often busy, and every user asks it. So:

1. ``scontrol show job ID`` reads one job, not the queue (`squeue` without ``--jobs`` copies every job of the cluster, and
   ``squeue --json`` of Slurm 22.05 does so even with it), and its answer has the same form in every version. `squeue` takes
   its place only where `scontrol` is missing or says what cannot be read.
2. Of a job that runs: `sinfo` (the node table: about 1 kB a node), then ``scontrol show step ID`` (one job). They tell which
   nodes do not answer, and which step trains. Of one that was cancelled, requeued or forgotten, or is completing: `sacct`,
   which asks the database daemon and leaves the controller alone. Then, if a node has failed, `sinfo`.

Cost: 20 ms a command on an idle cluster. The first may take all the time there is, the others `EXTRA_S` each; once one has
timed out the rest is left. Nothing is retried, nothing stays behind.
"""

from pardbg.collectors.jobs.job_ids import shorten
from pardbg.collectors.jobs.slurm.building import Findings, build_job
from pardbg.collectors.jobs.slurm.choosing import choose_records
from pardbg.collectors.jobs.slurm.commands import show_accounting, show_job, show_nodes, show_steps
from pardbg.collectors.jobs.slurm.history import last_ended_run, last_runs, with_canceller, with_known_end
from pardbg.collectors.jobs.slurm.interview import Interview
from pardbg.collectors.jobs.slurm.job import SlurmJob
from pardbg.collectors.jobs.slurm.listing import list_records
from pardbg.collectors.jobs.slurm.query import SlurmQuery, read_query
from pardbg.collectors.parsing.slurm_nodes import parse_nodes
from pardbg.collectors.parsing.slurm_record import SlurmNode, SlurmRecord, SlurmState, SlurmStep
from pardbg.collectors.parsing.slurm_sacct import parse_sacct
from pardbg.collectors.parsing.slurm_scontrol_job import parse_scontrol_jobs
from pardbg.collectors.parsing.slurm_steps import parse_steps
from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.evidence import Absence
from pardbg.watchdog.model.names import AbsenceReason

_LONGEST_LIST = 100_000  # the kernel takes 128 KiB an argument
_MOST_SIBLINGS = 6


def find_slurm_job(query: str, until_s: float) -> SlurmJob | Absence:
    """Asks Slurm for one job. Cost and commands: see the module.

    Args:
        query: ``1234``, ``1234_7``, ``1234+1``, each also with a step: ``1234.0``.
        until_s: deadline for everything together, on the monotonic clock.

    Returns:
        The job; else why not: ``gone`` means that Slurm answers and knows none, and the detail says what to try.

    Raises:
        AmbiguousJobError: if the id is an array's and several of its tasks may be meant.
    """
    meant = read_query(query)
    if meant is None:
        detail = f"{shorten(query)!r} is no job id of Slurm's, such as 1234, 1234_7, 1234+1"
        return Absence(reason=AbsenceReason.UNSUPPORTED, detail=detail)
    interview = Interview(until_s)
    records = list_records(interview, meant)
    if records is None and interview.unknowns[-1].reason is not AbsenceReason.GONE:
        return interview.unknowns[-1]
    chosen = choose_records(records or (), meant)
    try:
        found = _ask_of_known(interview, chosen, meant) if chosen else _ask_of_forgotten(interview, meant)
        return found if isinstance(found, Absence) else build_job(found, meant)
    except ParseError as error:
        return Absence(reason=AbsenceReason.UNREADABLE, detail=f"Slurm job {meant.name}: {error}")


def _ask_of_known(interview: Interview, chosen: tuple[SlurmRecord, ...], query: SlurmQuery) -> Findings:
    """What the controller's own record leaves open depends on the state."""
    first = chosen[0]
    if first.state is SlurmState.COMPLETING:
        accounted = interview.ask(show_accounting(query.name), lambda answer: parse_sacct(answer.text)) or ()
        return _gather(interview, (with_known_end(first, accounted), *chosen[1:]), Findings(records=chosen))
    if first.state.holds_nodes:
        nodes = _ask_nodes(interview, chosen)
        return _gather(interview, chosen, Findings(records=chosen, nodes=nodes, steps=_ask_steps(interview, chosen, query)))
    if first.state is SlurmState.NODE_FAIL:
        return _gather(interview, chosen, Findings(records=chosen, nodes=_ask_nodes(interview, chosen)))
    if first.state is SlurmState.CANCELLED or (first.state is SlurmState.PENDING and first.restarts):
        accounted = interview.ask(show_accounting(query.name), lambda answer: parse_sacct(answer.text)) or ()
        if first.state is SlurmState.CANCELLED:
            return _gather(interview, (with_canceller(first, accounted), *chosen[1:]), Findings(records=chosen))
        previous = last_ended_run(first, accounted)
        nodes = _ask_nodes(interview, (previous,)) if previous and previous.state is SlurmState.NODE_FAIL else ()
        return _gather(interview, chosen, Findings(records=chosen, previous_run=previous, nodes=nodes))
    return _gather(interview, chosen, Findings(records=chosen))


def _ask_of_forgotten(interview: Interview, query: SlurmQuery) -> Findings | Absence:
    accounted = interview.ask(show_accounting(query.name), lambda answer: parse_sacct(answer.text))
    silence = interview.unknowns[-1] if accounted is None else None
    chosen = choose_records(last_runs(accounted or ()), query)
    if not chosen:
        gone = f"Slurm knows no job {query.name}"
        if parts := _ask_siblings(interview, query):
            return Absence(reason=AbsenceReason.GONE, detail=f"{gone}; it knows {parts}")
        forgotten = "it forgets ended ones after MinJobAge, 300 s by default"
        return Absence(reason=AbsenceReason.GONE, detail=f"{gone} ({forgotten}; {_tell_accounting(silence)})")
    nodes = _ask_nodes(interview, chosen) if chosen[0].state is SlurmState.NODE_FAIL else ()
    return _gather(interview, chosen, Findings(records=chosen, nodes=nodes))


def _tell_accounting(silence: Absence | None) -> str:
    if silence is None:
        return "accounting has none either"
    if silence.reason is AbsenceReason.SWITCHED_OFF:
        return "accounting is off"
    return f"accounting: {shorten(silence.detail.rpartition(': ')[2])}"


def _ask_siblings(interview: Interview, query: SlurmQuery) -> str:
    """The tasks or components that there are, where one is meant that is not; empty if none is known."""
    if query.name == str(query.job_id):
        return ""
    records = interview.ask(show_job(str(query.job_id)), lambda answer: parse_scontrol_jobs(answer.text)) or ()
    names = list(dict.fromkeys(record.spelled for record in records))
    more = f" and {len(names) - _MOST_SIBLINGS} more" if len(names) > _MOST_SIBLINGS else ""
    return ", ".join(names[:_MOST_SIBLINGS]) + more


def _ask_nodes(interview: Interview, records: tuple[SlurmRecord, ...]) -> tuple[SlurmNode, ...]:
    folded = ",".join(record.node_list for record in records if record.node_list)
    if not 0 < len(folded) < _LONGEST_LIST:
        return ()
    return interview.ask(show_nodes(folded), lambda answer: parse_nodes(answer.text)) or ()


def _ask_steps(interview: Interview, records: tuple[SlurmRecord, ...], query: SlurmQuery) -> tuple[SlurmStep, ...]:
    """Of a het job each component has its part of a step, which matters only where a step is meant."""
    found: list[SlurmStep] = []
    for record in records if query.step is not None else records[:1]:
        found += interview.ask(show_steps(record.job_id), lambda answer: parse_steps(answer.text)) or ()
    return tuple(found)


def _gather(interview: Interview, records: tuple[SlurmRecord, ...], found: Findings) -> Findings:
    """With the commands that told it. A job without steps, or that only accounting remembers, is no unknown."""
    answered = {AbsenceReason.GONE, AbsenceReason.EMPTY}
    unknowns = tuple(unknown for unknown in interview.unknowns if unknown.reason not in answered)
    return Findings(
        records=records,
        steps=found.steps,
        nodes=found.nodes,
        previous_run=found.previous_run,
        told_by=interview.told_by,
        unknowns=unknowns,
    )
