"""What `/proc` says of a rank's process at one moment, without asking the process anything."""

from pardbg.watchdog.model.base import Noun

STOPPED_STATES = frozenset({"T", "t"})
"""Of ``/proc/PID/stat``: stopped by a signal, or by a tracer."""


class ChildProcess(Noun, frozen=True, kw_only=True):
    """A child of a rank: a loader worker, a compiler, a shell command. ``state`` is as in ``/proc/PID/stat``."""

    pid: int
    name: str
    state: str
    wait_channel: str | None = None
    system_call: str | None = None
    cpu_s: float | None = None


class ProcessSample(Noun, frozen=True, kw_only=True, tag="process"):
    """One look at a rank's process; ``sample`` numbers the samples of one scan. None is "could not be read".

    The thread looked at is the main one, since that is the one that trains.

    Attributes:
        started_ticks: start time in clock ticks since boot; with the pid it identifies the process.
        state: as in ``/proc/PID/stat``.
        wait_channel: the kernel function the thread sleeps in, e.g. ``futex_do_wait``; empty if it runs.
        system_call: name of the call it is in, e.g. ``read``; "running" if it is in none.
        blocked_on: what that call's file descriptor is: "pipe", "socket to 127.0.0.1:29500", "/data/shard-3.bin (nfs4)".
        is_store: whether that descriptor is the connection to the job's store.
        voluntary_switches: how often the thread has gone to sleep so far.
        moved_bytes: bytes read and written so far by the process and its children.
        cpu_s: processor time of the thread so far, seconds.
        still_s: for how long the thread has not run, seconds; 0 if it runs.
        oom_kills: processes of its cgroup that the kernel has killed for memory so far.
        throttled_s: for how long its cgroup's quota has kept it from running so far, seconds of all processors together.
        uses_device: whether it has an accelerator open.
    """

    sample: int = 0
    pid: int
    started_ticks: int
    state: str
    wait_channel: str | None = None
    system_call: str | None = None
    blocked_on: str | None = None
    is_store: bool = False
    voluntary_switches: int | None = None
    moved_bytes: int | None = None
    cpu_s: float | None = None
    still_s: float | None = None
    children: tuple[ChildProcess, ...] = ()
    oom_kills: int | None = None
    throttled_s: float | None = None
    uses_device: bool = False
