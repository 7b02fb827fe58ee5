"""Attaches to ranks that nobody prepared: each writes its flight recorder and its groups where a scan then reads them.

Cost to a rank: one parked thread stands still for about 1 ms, then runs Python for 20 to 50 ms (2,000 operations) before it
goes on with its call; afterwards the process is as it was. Deadline: the caller's; a rank whose interpreter lock is held does
it when the lock comes free. The child that does it is never killed by us, and may be killed by anybody. Leaves an empty folder
where a rank is that late. ``PARDBG_ATTACH=never`` in a rank's environment forbids it.
"""

import contextlib
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from pardbg.collectors.attach.request import Answer, Request, Target
from pardbg.collectors.live.moment import now_rfc3339
from pardbg.collectors.own_child import child_command
from pardbg.collectors.probe.folder import make_private, make_root
from pardbg.collectors.probe.places import RANK_FILE, dump_prefix, memory_root, rank_folder
from pardbg.watchdog.model.evidence import Absence, Evidence
from pardbg.watchdog.model.names import AbsenceReason, CollectorName
from pardbg.watchdog.model.world import RankProcess

FORBIDDEN = "PARDBG_ATTACH"
_NEVER = "never"
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True)
class Attached:
    """The ranks that have written, and why others have not. ``folders`` go when they have been read."""

    ranks: tuple[RankProcess, ...]
    evidence: tuple[Evidence, ...]
    folders: tuple[str, ...]

    def clean(self) -> None:
        """Removes what the ranks wrote. A folder into which one may still write stays, empty."""
        for folder in self.folders:
            shutil.rmtree(folder, ignore_errors=True)


def attach(ranks: Sequence[RankProcess], until_s: float, *, keep_server: bool = False) -> Attached:
    """Attaches to each of these, in this order.

    Args:
        ranks: of one world; the one to try first in front.
        until_s: when to stop waiting, on the monotonic clock.
        keep_server: whether each starts torch's worker server, for later scans.
    """
    refused: dict[int, Absence] = {}
    targets: dict[int, Target] = {}
    for rank in ranks:
        target = _prepare(rank, keep_server=keep_server)
        if isinstance(target, Absence):
            refused[rank.rank] = target
        else:
            targets[rank.rank] = target
    answers = {answer.rank: answer for answer in _ask(tuple(targets.values()), until_s)} if targets else {}
    done = tuple(rank for rank in ranks if rank.rank in answers and answers[rank.rank].is_done)
    refused |= {number: _explain(answers.get(number)) for number in targets if number not in {rank.rank for rank in done}}
    by_number = {rank.rank: rank for rank in ranks}
    return Attached(
        ranks=done,
        evidence=tuple(_evidence(by_number[number], absence) for number, absence in refused.items()),
        folders=tuple(target.folder for target in targets.values() if not target.keep_server),
    )


def _prepare(rank: RankProcess, *, keep_server: bool) -> Target | Absence:
    """Makes the folder that the rank will write to, as the rank's user would."""
    if rank.recorder.get(FORBIDDEN) == _NEVER:
        return Absence(reason=AbsenceReason.SWITCHED_OFF, detail=f"{FORBIDDEN}=never in its environment: not attached to")
    if not rank.is_at_home:
        detail = "it lives in another mount namespace: run pardbg in its container to attach to it"
        return Absence(reason=AbsenceReason.UNREACHABLE, detail=detail)
    root = memory_root(rank.uid, rank.recorder)
    folder = rank_folder(root, rank.pid, rank.started_ticks)
    try:
        with _as_user(rank.uid):
            make_root(root)
            make_private(folder)
            own = {
                "schema": "pardbg.rank/1",
                "rank": rank.rank,
                "pid": rank.pid,
                "started_ticks": rank.started_ticks,
                "boot_id": _BOOT_ID.read_text(encoding="ascii").strip(),
                "dumps": dump_prefix(folder),
            }
            Path(folder, RANK_FILE).write_bytes(msgspec.json.encode(own))
    except OSError as error:
        return Absence(reason=AbsenceReason.DENIED, detail=f"no folder for it to write to, {folder}: {error.strerror}")
    return Target(rank=rank.rank, pid=rank.pid, started_ticks=rank.started_ticks, folder=folder, keep_server=keep_server)


@contextlib.contextmanager
def _as_user(uid: int) -> Iterator[None]:
    """What is made within belongs to that user, and nothing is followed that he could not follow. Root only; others are it."""
    before = os.geteuid()
    if uid != before:
        os.seteuid(uid)
    try:
        yield
    finally:
        if uid != before:
            os.seteuid(before)


def _ask(targets: tuple[Target, ...], until_s: float) -> Iterator[Answer]:
    """Runs the child and yields its answers. One that is late is left alone."""
    child = subprocess.Popen(  # noqa: S603 - our own interpreter and module
        child_command("pardbg.collectors.attach.child"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C ends our waiting, not its work
    )
    assert child.stdin is not None  # noqa: S101 - for mypy
    assert child.stdout is not None  # noqa: S101
    with contextlib.suppress(BrokenPipeError):
        child.stdin.write(msgspec.json.encode(Request(targets=targets)))
        child.stdin.close()
    received = b""
    try:
        while (left_s := until_s - time.monotonic()) > 0:
            if not select.select([child.stdout], [], [], left_s)[0]:
                return
            part = os.read(child.stdout.fileno(), 65536)
            if not part:
                child.wait()
                return
            *lines, received = (received + part).split(b"\n")
            yield from (msgspec.json.decode(line, type=Answer) for line in lines)
    finally:
        child.stdout.close()
        child.returncode = child.returncode if child.returncode is not None else 0  # not waited for: left alone


def _explain(answer: Answer | None) -> Absence:
    if answer is None:
        return Absence(reason=AbsenceReason.TIMED_OUT, detail="attaching to it took too long: left alone")
    if answer.is_fired:
        detail = "attached to, but its interpreter lock is held: it will write its recorder when the lock comes free"
        return Absence(reason=AbsenceReason.TIMED_OUT, detail=detail)
    return Absence(reason=AbsenceReason.UNSUPPORTED, detail=f"not attached to: {answer.why}")


def _evidence(rank: RankProcess, absence: Absence) -> Evidence:
    return Evidence(
        source=CollectorName.FLIGHT_RECORDER,
        rank=rank.rank,
        host=rank.host,
        observed_at=now_rfc3339(),
        observation=absence,
        origin=f"/proc/{rank.pid}",
    )
