"""The clocks: that of the machine, and that of the file system that temporary files lie on. Pure."""

from collections.abc import Iterator

from pardbg.collectors.node.surroundings import Surroundings
from pardbg.watchdog.doctor.check import Check, State
from pardbg.watchdog.doctor.tracing import untried

_MOST_AHEAD_S = 2.0


def check_clock(surroundings: Surroundings) -> Iterator[Check]:
    """How far nodes are apart cannot be told on one of them; what the kernel thinks of its own clock can."""
    clock = surroundings.trial.clock
    if clock is None:
        yield untried("clock")
        return
    if clock.is_synchronised is None:
        seen = "the kernel may not be asked about its clock"
    elif clock.is_synchronised:
        seen = f"synchronised to {clock.largest_error_s:.3g} s; other nodes do not show here"
    else:
        seen = "not marked as synchronised; other nodes do not show here"
    yield Check(
        name="clock",
        state=State.UNKNOWN,
        seen=seen,
        cost="where clocks differ, what comes first on different nodes is told wrongly; who waits for whom is not",
        remedy="compare the nodes' `System time` and `Leap status`",
        command="chronyc tracking",
    )


def check_temporary_files(surroundings: Surroundings) -> Iterator[Check]:
    """Whether files can be written, and are dated by the same clock."""
    found = surroundings.trial.file_clock
    if found is None:
        yield untried("file-clock")
    elif found.ahead_s is None:
        yield Check(
            name="temporary-files",
            state=State.LIMITS,
            seen=f"{found.folder} cannot be written to ({found.error})",
            cost="nothing of a scan; `pardbg demo` and `pardbg bench` do not work",
            remedy="name another folder",
            command="export TMPDIR=/dev/shm",
        )
    elif abs(found.ahead_s) > _MOST_AHEAD_S:
        side = "ahead of" if found.ahead_s > 0 else "behind"
        yield Check(
            name="file-clock",
            state=State.LIMITS,
            seen=f"files in {found.folder} are dated {abs(found.ahead_s):.0f} s {side} this machine's clock",
            cost="which dump files are of this hang, and which sources changed since, is told wrongly",
            remedy="synchronise the clock of the file server with this machine's",
        )
    else:
        yield Check(name="file-clock", state=State.OK, seen=f"files in {found.folder} are dated by this machine's clock")
