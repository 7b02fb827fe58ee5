"""Flight recorders of a live job, where they are already reachable: one piece of evidence a rank.

Cost: up to four child processes (about 100 ms and 30 MB each), which may be abandoned; what it does to a rank is told in the
module of each way: `asking.py`, `nccl_pipe.py`, `dump_file.py`. Deadline: the caller's, for all ranks together. No rank is
stopped, and none is asked while it is.
"""

import contextlib
import os
import selectors
import subprocess
import time
from collections.abc import Iterator, Mapping

import msgspec
from msgspec import structs

from pardbg.collectors.live.moment import as_rfc3339
from pardbg.collectors.live.recorders.outcome import Obtained, Outcome, Refusal, StackAnswer
from pardbg.collectors.live.recorders.request import Reply, Request, Target, take_replies
from pardbg.collectors.own_child import child_command, end_child
from pardbg.watchdog.model.evidence import Absence, Evidence, FlightRecording
from pardbg.watchdog.model.names import AbsenceReason, CollectorName
from pardbg.watchdog.model.world import RankProcess, World

_ANSWER_S = 0.1  # for the child to hand over what it has when the time is up
_PART_BYTES = 1024 * 1024
_MOST_CHILDREN = 4
_RANKS_A_CHILD = 2
_ARENAS = "MALLOC_ARENA_MAX"  # each thread's arena would count as memory taken


def reach_recorders(world: World, sample: int, deadline_s: float, began_at: float) -> list[Evidence]:
    """One recording or one absence for each living rank of this machine, in the order of the ranks.

    Args:
        world: the ranks.
        sample: the number of the sample that the recordings belong to.
        deadline_s: for how long to try, in seconds from now.
        began_at: when the sample began, epoch seconds: a dump file written since is not asked for again.
    """
    if not world.ranks:
        return []
    until_s = time.monotonic() + deadline_s
    targets = tuple(map(Target.of, world.ranks))
    request = Request(targets=targets, until_s=until_s - _ANSWER_S, began_ns=int(began_at * 1e9))
    outcomes: dict[int, Outcome] = {}
    lost = Refusal(reason=AbsenceReason.TIMED_OUT, detail=f"its recorder gave no answer within {deadline_s:g} s")
    try:
        for reply in answers(request, until_s):
            if not isinstance(reply.outcome, StackAnswer):
                outcomes[reply.rank] = reply.outcome
    except (OSError, msgspec.DecodeError) as error:
        lost = Refusal(reason=AbsenceReason.UNREADABLE, detail=f"no process to reach its recorder with: {error}")
    return [_evidence(rank, outcomes.get(rank.rank, lost), sample) for rank in world.ranks]


def answers(request: Request, until_s: float) -> Iterator[Reply]:
    """Runs the children and yields their replies as they come; ends them, whatever happens, and does not wait for them.

    Raises:
        OSError: if no child can be started.
        msgspec.DecodeError: if one answers nonsense.
    """
    with contextlib.ExitStack() as stack, selectors.DefaultSelector() as selector:
        for part in _shares(request):
            child = stack.enter_context(_running_child(part))
            if child.stdout is not None:
                selector.register(child.stdout, selectors.EVENT_READ, bytearray())
        while selector.get_map() and (left_s := until_s - time.monotonic()) > 0:
            for key, _ in selector.select(left_s):
                if part_read := os.read(key.fd, _PART_BYTES):
                    key.data.extend(part_read)
                    yield from take_replies(key.data)
                else:
                    selector.unregister(key.fileobj)


def _shares(request: Request) -> list[Request]:
    """Parsing is what takes the time, and a process does one dump at a time."""
    count = min(os.cpu_count() or 1, _MOST_CHILDREN, -(-len(request.targets) // _RANKS_A_CHILD))
    return [structs.replace(request, targets=request.targets[first::count]) for first in range(count)]


@contextlib.contextmanager
def _running_child(request: Request) -> Iterator["subprocess.Popen[bytes]"]:
    """Starts the child with its request in a file that has no name: a pipe could fill up before it reads."""
    descriptor = os.memfd_create("pardbg-request")
    try:
        os.write(descriptor, msgspec.msgpack.encode(request))
        os.lseek(descriptor, 0, os.SEEK_SET)
        child = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            child_command("pardbg.collectors.live.recorders.child"),
            stdin=descriptor,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,
            env=_environment(os.environ),
        )
    finally:
        os.close(descriptor)
    try:
        yield child
    finally:
        end_child(child)


def _environment(inherited: Mapping[str, str]) -> dict[str, str]:
    return {**inherited, _ARENAS: "1"}


def _evidence(process: RankProcess, outcome: Outcome, sample: int) -> Evidence:
    if isinstance(outcome, Obtained):
        return Evidence(
            source=CollectorName.FLIGHT_RECORDER,
            rank=process.rank,
            host=process.host,
            observed_at=as_rfc3339(outcome.observed_ns),
            observation=FlightRecording(recording=outcome.recording, sample=sample),
            origin=outcome.origin,
        )
    return Evidence(
        source=CollectorName.FLIGHT_RECORDER,
        rank=process.rank,
        host=process.host,
        observed_at=as_rfc3339(time.time_ns()),
        observation=Absence(reason=outcome.reason, detail=outcome.detail),
        origin=outcome.origin or f"/proc/{process.pid}",
    )
