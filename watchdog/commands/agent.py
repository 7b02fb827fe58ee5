"""`pardbg agent`: the sidecar of a node."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

FC = TypeVar("FC", bound=Callable[..., Any])
_FILE = click.Path(path_type=Path)
_SECONDS = click.FloatRange(1.0, 86400.0)
_DAYS, _GIB = click.FloatRange(0.0, 3650.0), click.FloatRange(0.0, 1e6)


def _refuse_nan(_context: click.Context, _parameter: click.Parameter, value: float) -> float:
    """A range does not notice it."""
    if math.isnan(value):
        raise click.BadParameter("not a number")
    return value


def _option(name: str, *more: str, **settings: Any) -> Callable[[FC], FC]:
    """An option that may also be given as PARDBG_AGENT_NAME."""
    variable = "PARDBG_AGENT_" + name.partition("/")[0].lstrip("-").replace("-", "_").upper()
    return click.option(name, *more, envvar=variable, **settings)


@click.command(
    epilog="""\b
Examples:
  pardbg agent
  pardbg agent --webhook https://hooks.example.org/oncall --alertmanager http://alertmanager:9093
  pardbg agent --listen 0.0.0.0:9475 --tls-cert node.pem --tls-key node.key --client-ca site.pem
  curl -s http://127.0.0.1:9475/metrics | grep pardbg_job_state
""",
)
@_option("--state", "state_folder", type=_FILE, metavar="DIR", help="Where incidents and their evidence are kept.")
@_option("--node", default="", metavar="NAME", help="This machine's name among the nodes of a job.")
@_option("--listen", default="127.0.0.1:9475", show_default=True, metavar="HOST:PORT", help="For Prometheus and scans.")
@_option("--socket", type=_FILE, metavar="PATH", help="For people on this machine; the kernel says who they are.")
@_option("--tls-cert", type=_FILE, metavar="FILE", help="The agent's certificate.")
@_option("--tls-key", type=_FILE, metavar="FILE", help="Its key.")
@_option("--client-ca", type=_FILE, metavar="FILE", help="Who signs the certificates of users and other agents.")
@_option("--tokens", type=_FILE, metavar="FILE", help="Bearer tokens: lines 'sha256:HEX uid=N' or 'sha256:HEX admin look'.")
@_option("--admin-group", default="", metavar="NAME", help="Its members may see every job.")
@_option("--open-metrics", is_flag=True, help="Everybody may read /metrics, also from other machines.")
@_option("--munge/--no-munge", "has_munge", default=False, help="Believe munge credentials.")
@_option("--munge-socket", default="", metavar="PATH", help="Of munged, if it is not the usual one.")
@_option("--kubernetes", "is_kubernetes", is_flag=True, help="Ask the API server who may see a job.")
@_option("--agents", "agents", default="", metavar="LIST", help="The other agents: n[01-64], a file, an http_sd URL, dns:NAME.")
@_option("--peer-token-file", type=_FILE, metavar="FILE", help="The token this agent shows to others.")
@_option("--peer-ca", type=_FILE, metavar="FILE", help="Who signs the other agents' certificates; --client-ca if not given.")
@_option(
    "--attach", type=click.Choice(["never", "auto"]), default="never", show_default=True, help="See `pardbg scan --attach`."
)
@_option("--webhook", "webhooks", multiple=True, metavar="URL", help="Gets every incident as JSON. Repeatable.")
@_option("--webhook-token-file", type=_FILE, metavar="FILE", help="Its bearer token.")
@_option("--alertmanager", "alertmanagers", multiple=True, metavar="URL", help="Gets every incident as an alert. Repeatable.")
@_option(
    "--silent-after",
    "floor_s",
    type=_SECONDS,
    callback=_refuse_nan,
    default=30.0,
    show_default=True,
    metavar="S",
    help="A rank that shows no sign of life for so long is suspect; longer, if it often pauses for longer.",
)
@_option(
    "--silent-at-most",
    "cap_s",
    type=_SECONDS,
    callback=_refuse_nan,
    default=300.0,
    show_default=True,
    metavar="S",
    help="... but never longer than this: half of the job's own timeout.",
)
@_option("--keep-days", type=_DAYS, callback=_refuse_nan, default=30.0, show_default=True, help="Of incidents that are over.")
@_option("--keep-gib", type=_GIB, callback=_refuse_nan, default=10.0, show_default=True, help="Of evidence.")
@_option("--no-gpu", is_flag=True, help="Leave the GPUs alone.")
def agent(**options: Any) -> None:
    """Watch the jobs of this node, and say which rank is to blame as soon as one hangs.

    With no configuration it listens on this machine only, watches every job that it may look into (all of them as root), and
    keeps what it finds for `pardbg incidents`. It reads /proc and what probes keep; it stops and signals nobody. SIGTERM ends
    it. Every option may also be given in the environment: --keep-days as PARDBG_AGENT_KEEP_DAYS.
    """
    if options["floor_s"] > options["cap_s"]:
        raise click.UsageError("--silent-after is above --silent-at-most: give a larger --silent-at-most")
    from pardbg.watchdog.agent.request import Request  # noqa: PLC0415 - `--help` does not wait for it
    from pardbg.watchdog.agent.running import run_agent  # noqa: PLC0415

    run_agent(Request(**options))
