"""`pardbg scan`: who is to blame in a job that runs now."""

import math
import sys
from pathlib import Path
from typing import Any

import click

from pardbg.watchdog.commands.agent_options import agent_options
from pardbg.watchdog.commands.output_options import COURSE_CHARACTERS, Destinations, output_options
from pardbg.watchdog.commands.progress import show_progress
from pardbg.watchdog.errors import InputError, ParseError
from pardbg.watchdog.positions.rules import CauseRule, cause_rules, parse_rules

SHORTEST_S, LONGEST_S = 0.1, 3600.0


def _read_causes(_context: click.Context, _parameter: click.Parameter, path: Path | None) -> tuple[CauseRule, ...] | None:
    """The user's rules before the shipped ones."""
    if path is None:
        return None
    try:
        return (*parse_rules(path.read_bytes()), *cause_rules())
    except ParseError as error:
        raise InputError(f"{path}: {error}", remedy="see watchdog/positions/causes.json for the form") from error
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}", remedy="name a file with a table of causes") from error


def _refuse_nan(_context: click.Context, _parameter: click.Parameter, value: float | None) -> float | None:
    """A range does not notice it."""
    if value is not None and math.isnan(value):
        raise click.BadParameter("not a number of seconds")
    return value


def _read_only_job(_context: click.Context, _parameter: click.Parameter, jobs: tuple[str, ...]) -> str | None:
    if len(jobs) > 1:
        raise click.UsageError(f"--job is given {len(jobs)} times: a scan is of one job")
    return jobs[0] if jobs else None


@click.command(
    epilog="""\b
Examples:
  pardbg scan --job demo
  pardbg scan --local --html report.html
  pardbg scan --pid 4711 --json | jq .verdict.claim
  pardbg scan --job 1234                           # from a login node: srun looks on every node of the Slurm job
  pardbg scan --job exp7 --hosts n[01-08]          # the same over ssh
  pardbg scan --job 1234 --via agents              # the same by the agents that run on the nodes
  pardbg scan --job k8s:train/exp7                # kubectl looks into every pod of the job
  pardbg scan --job 1234 --save /shared/hang-1234
"""
)
@click.option(
    "--job",
    metavar="ID",
    multiple=True,  # so that a second one is noticed
    callback=_read_only_job,
    help="The job: a run id, a Slurm job, ...; torchrun:ID, slurm:ID, k8s:ID, run:ID say which.",
)
@click.option(
    "--pid",
    "pids",
    type=click.IntRange(min=1),
    multiple=True,
    metavar="PID",
    help="A process of the job. Repeatable: one for each rank, in their order, where processes do not say their rank.",
)
@click.option("--local", "is_local", is_flag=True, help="The only job of this machine.")
@click.option("--world", "world_size", type=click.IntRange(min=1), metavar="N", help="Only a job of N ranks.")
@click.option(
    "--via",
    type=click.Choice(["auto", "local", "agents", "srun", "ssh", "kubectl"]),
    default="auto",
    show_default=True,
    help="How to reach the job's nodes: auto asks Slurm or Kubernetes where the job runs, and srun or kubectl to look there.",
)
@click.option("--hosts", metavar="LIST", help="The nodes, for --via ssh: n[01-64], or a,b,c. Of a Slurm job they are known.")
@agent_options
@click.option(
    "--remote-command",
    envvar="PARDBG_REMOTE",
    show_envvar=True,
    metavar="CMD",
    help="What starts pardbg on the nodes; if not given, the same Python and folder as here.",
)
@click.option(
    "--attach",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    envvar="PARDBG_ATTACH",
    show_default=True,
    show_envvar=True,
    help="Whether a thread of a rank is borrowed for a millisecond to write the rank's flight recorder: auto does so where the "
    "job hangs and nothing else gives access to it. PARDBG_ATTACH=never in the job's environment always forbids it.",
)
@click.option("--keep-attached", "is_kept", is_flag=True, help="Leave torch's worker server in ranks that are attached to.")
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(SHORTEST_S, LONGEST_S),
    callback=_refuse_nan,
    default=60.0,
    show_default=True,
    metavar="S",
    help="Stop after so many seconds and say what is known.",
)
@click.option(
    "--interval",
    "interval_s",
    type=click.FloatRange(SHORTEST_S, LONGEST_S),
    callback=_refuse_nan,
    metavar="S",
    help="Seconds between the two samples; adapted to the job if not given (2 to 30).",
)
@click.option(
    "--causes",
    "rules",
    type=click.Path(path_type=Path),
    callback=_read_causes,
    envvar="PARDBG_CAUSES",
    metavar="FILE",
    help="Your own table of causes, tried before the shipped one.",
)
@click.option("--save", "folder", type=click.Path(path_type=Path), metavar="DIR", help="Keep the evidence for `analyze`.")
@output_options
@click.pass_context
def scan(context: click.Context, /, destinations: Destinations, **options: Any) -> None:
    """Say which rank of a running job is to blame, what it does, at which line, since when, and who waits.

    Nothing need be prepared. Exactly one of --job, --pid and --local says which job. The job's processes are read, not stopped
    (two of them for some 50 ms where nothing else explains; all for a millisecond where it hangs, see --attach). Two samples
    are taken; a job that waits for less than five seconds is given the time to move. Exit code: 0 healthy, 3 a fault was found,
    4 undetermined.
    """
    if options["is_kept"] and options["attach"] == "never":
        raise click.UsageError("--keep-attached asks for what --attach never forbids")
    from pardbg.watchdog.commands.scanning import Request, keep_evidence, run_scan  # noqa: PLC0415 - `--help` does not wait for it
    from pardbg.watchdog.correlators.layer_health import layers_in  # noqa: PLC0415

    typed = context.get_parameter_source("remote_command") is click.core.ParameterSource.COMMANDLINE
    request = Request(**options, is_remote_typed=typed)
    with show_progress(sys.stderr) as progress:
        scanned = run_scan(request, progress)
    layers = layers_in(scanned.evidence, COURSE_CHARACTERS) if destinations.has_files else ()
    code = destinations.publish(scanned.report, layers)
    keep_evidence(request, scanned)
    if scanned.is_interrupted:
        raise click.Abort
    context.exit(code)
