"""Several commands in a row: what was told by which, what stayed unknown, and how much time each may take."""

import time
from collections.abc import Callable
from typing import TypeVar

from pardbg.collectors.jobs.own_command import Answer
from pardbg.collectors.jobs.slurm.asking import ask
from pardbg.collectors.jobs.slurm.commands import Command
from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.evidence import Absence
from pardbg.watchdog.model.names import AbsenceReason

EXTRA_S = 5.0
"""What a command may take that only adds to the answer."""

Told = TypeVar("Told")


class Interview:
    """Puts questions until ``until_s`` (monotonic clock). After one has timed out the rest is not asked: Slurm is busy."""

    def __init__(self, until_s: float) -> None:
        self.told_by: tuple[str, ...] = ()
        self.unknowns: tuple[Absence, ...] = ()
        self._until_s = until_s

    def ask(self, command: Command, parse: Callable[[Answer], Told], *, is_extra: bool = True) -> Told | None:
        """What the command says, read; None if it says nothing, and then the last of ``unknowns`` says why."""
        if any(unknown.reason is AbsenceReason.TIMED_OUT for unknown in self.unknowns):
            self._note(Absence(reason=AbsenceReason.SKIPPED, detail=f"{command[0]}: not asked, Slurm is busy"))
            return None
        until_s = min(self._until_s, time.monotonic() + EXTRA_S) if is_extra else self._until_s
        answer = ask(command, until_s)
        if isinstance(answer, Absence):
            self._note(answer)
            return None
        try:
            told = parse(answer)
        except ParseError as error:
            self._note(Absence(reason=AbsenceReason.UNREADABLE, detail=f"{answer.command}: {error}"))
            return None
        self.told_by = (*self.told_by, answer.command)
        return told

    def _note(self, why: Absence) -> None:
        self.unknowns = (*self.unknowns, why)
