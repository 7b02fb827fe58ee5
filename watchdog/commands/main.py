"""The console script `pardbg`: one group, one file per command, and what every failure looks like."""

import importlib
import os
import sys
from typing import Any

import click

from pardbg import __version__
from pardbg.watchdog.errors import AmbiguousJobError, InputError, PardbgError
from pardbg.watchdog.model.text import printable_text

TRACEBACK_VARIABLE = "PARDBG_TRACEBACK"
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130

COMMANDS = {
    "agent": "Watch the jobs of this node, and say who is to blame when one hangs.",
    "analyze": "Say which rank of a job is to blame, from the files it left.",
    "bench": "Measure speed and memory, with torchfrtrace on the same files.",
    "collect": "Answer a scan's questions on one node of a job; a scan starts it.",
    "dashboards": "Write, check or push Grafana dashboards and alert rules.",
    "demo": "Start a small real job with a planted fault and scan it while it hangs.",
    "doctor": "Say what on this machine would keep pardbg from seeing a job.",
    "incidents": "Show the hangs that the agent has found and kept.",
    "layout": "Check a parallel layout: what cannot work, who is in which group, what it costs.",
    "moe": "Say how a model with experts routes, layer by layer, the worst first.",
    "run": "Start a job so that every later scan sees more of it.",
    "scan": "Say which rank of a running job is to blame.",
    "sim": "Write the evidence of a simulated job, with the truth beside it.",
}


class LazyGroup(click.Group):
    """Imports a command's module when it is called: `pardbg --help` stays quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands, without importing any."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Imports one command."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"pardbg.watchdog.commands.{cmd_name}")
        command: click.Command = getattr(module, cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, from the table instead of the modules."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""\b
Example:
  pardbg analyze /shared/dumps/job-1234
""",
)
@click.version_option(__version__, prog_name="pardbg")
def pardbg() -> None:
    """Say which rank holds up a distributed training job, what it does, and who waits for it."""


def main(arguments: list[str] | None = None) -> Any:
    """Runs the command line. Errors of pardbg's own are one line each, and one for each choice; Ctrl-C exits 130."""
    try:
        sys.exit(pardbg.main(args=arguments, prog_name="pardbg", standalone_mode=False) or 0)
    except click.ClickException as error:
        error.show()
        sys.exit(EXIT_USAGE)
    except (click.Abort, KeyboardInterrupt):
        click.echo("pardbg: interrupted", err=True)
        sys.exit(EXIT_INTERRUPTED)
    except PardbgError as error:
        choices = error.choices if isinstance(error, AmbiguousJobError) else ()
        lines = [f"pardbg: {printable_text(str(error))}; {error.remedy}", *(f"  {printable_text(line)}" for line in choices)]
        click.echo("\n".join(lines), err=True)
        sys.exit(EXIT_USAGE if isinstance(error, InputError) else EXIT_FAILED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nobody reads: not even the flush at exit
        sys.exit(EXIT_FAILED)
    except OSError as error:
        where = f"{printable_text(str(error.filename))}: " if error.filename else ""
        click.echo(
            f"pardbg: {where}{error.strerror or error}; name another place, or look at the disk and the rights", err=True
        )
        sys.exit(EXIT_FAILED)
    except Exception as error:
        if os.environ.get(TRACEBACK_VARIABLE):
            raise
        click.echo(
            f"pardbg: internal error: {type(error).__name__}: {error}; set {TRACEBACK_VARIABLE}=1 and report what it prints",
            err=True,
        )
        sys.exit(EXIT_FAILED)
