"""How long a scan of many agents takes over mutual TLS, and how much memory.

``python -m pardbg.watchdog.bench.agents [NODES,... [FAULT]]``. The agents are simulated in another process, on the same
machine: the scanner shares its processors with all of them.
"""

import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from pardbg.watchdog.bench.certificates import make_authority, sign
from pardbg.watchdog.bench.simulated_agents import Order, serve_agents
from pardbg.watchdog.errors import PardbgError
from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.report import Report
from pardbg.watchdog.sim.processes import RANKS_PER_HOST
from pardbg.watchdog.sim.recipe import Recipe

SIZES = (100, 1000)
FAULT = "desync-extra"
_ENTRIES = 100
_START_S = 300.0
_KIB_PER_MB = 1000


class AgentsRow(Noun, frozen=True, kw_only=True):
    """One scan. ``wall_s`` is that of the whole command, ``peak_mb`` its memory; ``answered``: so many nodes had no unknown."""

    nodes: int
    ranks: int
    wall_s: float
    cpu_s: float
    peak_mb: int
    answered: int
    verdict: str


def measure_agents(
    progress: Callable[[str], None], sizes: tuple[int, ...] = SIZES, fault: str = FAULT, options: tuple[str, ...] = ()
) -> Iterator[AgentsRow]:
    """Scans a simulated job of each size, with these further options.

    Raises:
        PardbgError: if the agents do not come up, or the scan gives no report.
    """
    for nodes in sizes:
        progress(f"simulating {nodes} agents of {RANKS_PER_HOST} ranks")
        with tempfile.TemporaryDirectory(prefix="pardbg-agents-") as name:
            yield _measure(Path(name), nodes, fault, options)


def _measure(folder: Path, nodes: int, fault: str, options: tuple[str, ...]) -> AgentsRow:
    authority = make_authority(folder)
    recipe = Recipe(fault=fault, ranks=nodes * RANKS_PER_HOST, entries=_ENTRIES)
    order = Order(recipe=recipe, folder=str(folder), certificate=str(authority.certificate), key=str(authority.key))
    context = multiprocessing.get_context("spawn")
    agents = context.Process(target=serve_agents, args=(msgspec.msgpack.encode(order),), daemon=True)
    agents.start()
    try:
        _wait_for(folder / "agents.txt", agents)
        user = sign(authority, folder, "root")
        shown = ("--tls-ca", str(authority.certificate), "--tls-cert", str(user.certificate), "--tls-key", str(user.key))
        return _scan(folder, nodes, (*shown, *options))
    finally:
        agents.terminate()
        agents.join()


def _wait_for(path: Path, agents: "multiprocessing.process.BaseProcess") -> None:
    until_s = time.monotonic() + _START_S
    while not path.exists():
        if not agents.is_alive() or time.monotonic() > until_s:
            raise PardbgError("the simulated agents have not come up", remedy="see that openssl is installed")
        time.sleep(0.05)


def _scan(folder: Path, nodes: int, options: tuple[str, ...]) -> AgentsRow:
    words = [sys.executable, "-m", "pardbg", "scan", "--job", "run:sim", "--via", "agents", "--json", "--timeout=60"]
    words += ["--agents", str(folder / "agents.txt"), *options]
    began_s = time.monotonic()
    with (folder / "report.json").open("w+b") as output:
        child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=output)  # noqa: S603 - our own words
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        wall_s = time.monotonic() - began_s
        output.seek(0)
        said = output.read()
    if not said:
        raise PardbgError(f"the scan gave no report (exit code {child.returncode})", remedy="see what it wrote above")
    report = msgspec.json.decode(said, type=Report)
    silent = {unknown.host for unknown in report.unknowns if unknown.rank is None}
    return AgentsRow(
        nodes=nodes,
        ranks=nodes * RANKS_PER_HOST,
        wall_s=round(wall_s, 2),
        cpu_s=round(usage.ru_utime + usage.ru_stime, 2),
        peak_mb=usage.ru_maxrss // _KIB_PER_MB,
        answered=nodes - len(silent),
        verdict=report.verdict.claim if report.verdict else "; ".join(report.notes),
    )


def _main(sizes: str = "", fault: str = FAULT) -> None:
    chosen = tuple(map(int, sizes.split(","))) if sizes else SIZES
    sys.stdout.write(f"{'nodes':>6}{'ranks':>7}{'wall s':>8}{'cpu s':>7}{'peak MB':>9}{'answered':>10}  verdict\n")
    for row in measure_agents(lambda _: None, chosen, fault):
        figures = f"{row.nodes:>6}{row.ranks:>7}{row.wall_s:>8.2f}{row.cpu_s:>7.2f}{row.peak_mb:>9}{row.answered:>10}"
        sys.stdout.write(f"{figures}  {row.verdict[:120]}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _main(*sys.argv[1:])
