"""Attaches to ranks that nobody prepared: each writes its flight recorder and its groups where a scan then reads them.

Cost to a rank: one parked thread stands still for about 1 ms, then runs Python with the interpreter lock held before it goes on
with its call: 10 to 50 ms for a ring of 2,000 operations. Afterwards the process is as it was; a rank that uses NCCL runs
torch's own worker server until it is left. Deadline: the caller's; a rank whose interpreter lock is held does it when the lock
comes free. The child that does it is never killed by us, and may be killed by anybody.
``PARDBG_ATTACH=never`` in a rank's environment forbids it.
"""

import os
import select
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import msgspec

from pardbg.collectors.attach.request import Answer, KeepRequest, Request, Target
from pardbg.collectors.own_child import child_command
from pardbg.collectors.probe.places import ROOT_VARIABLE, memory_root, rank_folder
from pardbg.watchdog.model.evidence import Absence
from pardbg.watchdog.model.names import AbsenceReason
from pardbg.watchdog.model.world import RankProcess

VARIABLE, NEVER = "PARDBG_ATTACH", "never"
_ANSWER_S = 0.2  # for the child to hand over what it has when the time is up
_LEAVE_S = 1.0
_PART_BYTES = 65536


class Attached:
    """Ranks that are attached to, for as long as the context that made it lasts."""

    def __init__(self, child: "subprocess.Popen[bytes] | None", refused: dict[int, Absence]) -> None:
        """For `attached` only."""
        self._child = child
        self._received = b""
        self.refused = refused
        """Why others are not attached to, by rank."""
        self.answers: dict[int, Answer] = {}
        """What came of each that was tried."""

    @property
    def ranks(self) -> frozenset[int]:
        """Those that have written, or serve."""
        return frozenset(rank for rank, answer in self.answers.items() if answer.is_done)

    def keep(self, until_s: float) -> tuple[int, ...]:
        """Makes them run torch's worker server from now on, for later scans. Returns the ranks in which it answers."""
        wanted = {rank for rank, answer in self.answers.items() if answer.is_fired}
        answers = self.ask(KeepRequest(until_s=until_s - _ANSWER_S), len(wanted), until_s)
        return tuple(sorted(answer.rank for answer in answers if answer.is_serving))

    def ask(self, request: Request | KeepRequest, count: int, until_s: float) -> list[Answer]:
        """Sends a request and waits for so many answers, or for the time to be up."""
        if self._child is None or self._child.stdin is None:
            return []
        try:
            self._child.stdin.write(msgspec.json.encode(request) + b"\n")
            self._child.stdin.flush()
        except BrokenPipeError:
            return []
        answers: list[Answer] = []
        for line in self._lines(until_s):
            answers.append(msgspec.json.decode(line, type=Answer))
            if len(answers) == count:
                break
        return answers

    def _lines(self, until_s: float) -> Iterator[bytes]:
        assert self._child is not None  # noqa: S101 - for mypy
        assert self._child.stdout is not None  # noqa: S101
        while True:
            while b"\n" in self._received:
                line, _, self._received = self._received.partition(b"\n")
                yield line
            if not select.select([self._child.stdout], [], [], max(0.0, until_s - time.monotonic()))[0]:
                return
            part = self._child.stdout.read1(_PART_BYTES)  # type: ignore[attr-defined]
            if not part:
                return
            self._received += part


@contextmanager
def attached(ranks: Sequence[RankProcess], until_s: float) -> Iterator[Attached]:
    """Makes each of these write its recorder, in this order: the one to try first in front. At the end they are left.

    Args:
        ranks: of one world.
        until_s: when to stop waiting, on the monotonic clock.
    """
    refused = {rank.rank: absence for rank in ranks if (absence := why_forbidden(rank)) is not None}
    targets = [_target(rank) for rank in ranks if rank.rank not in refused]
    if not targets:
        yield Attached(None, refused)
        return
    with _running_child() as child:
        attached = Attached(child, refused)
        request = Request(targets=tuple(targets), until_s=until_s - _ANSWER_S)
        attached.answers = {answer.rank: answer for answer in attached.ask(request, len(targets), until_s)}
        is_lost = child.poll() is not None
        detail = "not attached to: the process that does it has ended" if is_lost else "it was not attached to in time"
        late = Answer(rank=0, reason=AbsenceReason.UNREADABLE if is_lost else AbsenceReason.TIMED_OUT, detail=detail)
        for target in targets:
            answer = attached.answers.get(target.rank, late)
            if not answer.is_done:
                refused[target.rank] = Absence(reason=answer.reason, detail=answer.detail)
        yield attached


def why_forbidden(rank: RankProcess) -> Absence | None:
    """Why a rank is not attached to whatever its process is like; None if nobody forbids it."""
    if rank.recorder.get(VARIABLE, "").strip().lower() == NEVER:
        return Absence(reason=AbsenceReason.SWITCHED_OFF, detail=f"not attached to: {VARIABLE}={NEVER} in its environment")
    if not os.path.isabs(memory_root(rank.uid, rank.recorder)):  # noqa: PTH117
        detail = f"not attached to: {ROOT_VARIABLE} in its environment is no absolute path"
        return Absence(reason=AbsenceReason.UNSUPPORTED, detail=detail)
    if not rank.is_at_home:
        detail = "not attached to: it lives in another mount namespace; run pardbg in its container"
        return Absence(reason=AbsenceReason.UNREACHABLE, detail=detail)
    return None


def _target(rank: RankProcess) -> Target:
    root = memory_root(rank.uid, rank.recorder)
    folder = rank_folder(root, rank.pid, rank.started_ticks)
    return Target(rank=rank.rank, pid=rank.pid, started_ticks=rank.started_ticks, uid=rank.uid, root=root, folder=folder)


@contextmanager
def _running_child() -> "Iterator[subprocess.Popen[bytes]]":
    """In a session of its own: Ctrl-C ends our waiting, not its work. It ends by itself once nobody asks it any more."""
    child = subprocess.Popen(  # noqa: S603 - our own interpreter and module
        child_command("pardbg.collectors.attach.child"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield child
    finally:
        if child.stdin is not None:
            with suppress(BrokenPipeError):
                child.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            child.wait(timeout=_LEAVE_S)
        if child.stdout is not None:
            child.stdout.close()
        child.returncode = child.returncode if child.returncode is not None else 0  # late: left alone, and not complained of
