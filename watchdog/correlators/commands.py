"""What a reader may run next, as actions: with the host it is to be run on, and never with a gap left in the command."""

import re

from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.model.report import Action

_GAP = re.compile(r"\b(PID|PATH)\b")


def action_on(
    situation: Situation, host: str | None, text: str, command: str | None = None, effect: str | None = None
) -> Action:
    """An action on one host: the command line leads there where a way is known, else the words say where."""
    if host is not None and (command is None or not situation.reach.names_place(host)):
        text = f"on {host}: {text}"
    return Action(text=text, command=situation.reach.on(host, command) if command else None, effect=effect if command else None)


def fill(command: str, pid: int | None, path: str) -> str | None:
    """A rule's command with the process and the file in hand; without those of its parts that need what is not known.

    Args:
        command: with ``PID`` and ``PATH`` in it, its parts divided by ``;``.
        pid: the rank's process, None if it is not known.
        path: as a shell is to read it, empty if it is not known.
    """
    known = {"PID": str(pid) if pid is not None else "", "PATH": path}
    parts = (part for part in command.split("; ") if all(known[gap] for gap in _GAP.findall(part)))
    return "; ".join(_GAP.sub(lambda gap: known[gap[1]], part) for part in parts) or None


def take_stack(situation: Situation, rank: int) -> Action:
    """To look into a rank that was not looked into; without a command where its process is not known."""
    process = situation.view.processes.get(rank)
    pid = process.pid if process is not None else None
    command = f"py-spy dump --pid {pid}" if pid is not None else None
    return action_on(
        situation,
        situation.view.host(rank),
        f"look at what rank {rank} does",
        command,
        "stops the process for about 0.1 s",
    )
