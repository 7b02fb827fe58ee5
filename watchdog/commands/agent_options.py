"""The options of `pardbg scan` that say which agents to ask, and who is asking."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])
_FILE = click.Path(path_type=Path)
_OPTIONS = (
    click.option(
        "--agents",
        envvar="PARDBG_AGENTS",
        show_envvar=True,
        metavar="LIST",
        help="The agents, for --via agents: n[01-64], n[01-64]:9475, a file or an http_sd URL with such names, "
        "a socket's path, local for this machine's. Of a Slurm job they are known. Where a site sets it, --via auto asks them.",
    ),
    click.option("--token-file", type=_FILE, envvar="PARDBG_TOKEN_FILE", metavar="FILE", help="Your bearer token for agents."),
    click.option("--tls-ca", type=_FILE, envvar="PARDBG_TLS_CA", metavar="FILE", help="Who signs the agents' certificates."),
    click.option("--tls-cert", type=_FILE, envvar="PARDBG_TLS_CERT", metavar="FILE", help="Your certificate for agents."),
    click.option("--tls-key", type=_FILE, envvar="PARDBG_TLS_KEY", metavar="FILE", help="Its key."),
    click.option(
        "--tls-name",
        envvar="PARDBG_TLS_NAME",
        metavar="NAME",
        help="The name in the agents' certificates, where it is not that of their hosts.",
    ),
    click.option(
        "--munge/--no-munge",
        "has_munge",
        default=None,
        help="Show agents a munge credential; without either, if munge runs and nothing else is given.",
    ),
    click.option("--munge-socket", default="", metavar="PATH", hidden=True, help="Of munged."),
)


def agent_options(command: Command) -> Command:
    """Adds them."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
