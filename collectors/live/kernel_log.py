"""The kernel log of this machine, as far as it can explain what its ranks do.

Cost: one child process of about 80 ms and 20 MB, in which the ring of the kernel is looked through (about 20 ms a
megabyte). Deadline: `WITHIN_S`. It leaves nothing behind, and reads nothing away from other readers.
"""

import time
from collections.abc import Sequence

from pardbg.collectors.live.kernel_reading import DEVICE, NS_PER_S
from pardbg.collectors.live.moment import now_rfc3339
from pardbg.collectors.reading import Reader, Task
from pardbg.collectors.reading_job import KernelLogRead, KernelLogRequest
from pardbg.collectors.reading_protocol import FileRead, Reply
from pardbg.watchdog.model.evidence import Absence, Evidence, Observation
from pardbg.watchdog.model.names import AbsenceReason, CollectorName

WITHIN_S = 3.0
CLOCK_SLACK_S = 5.0  # the kernel's clock and ours drift apart, and so does what was corrected meanwhile
_DENIED = "the kernel log is not readable (needs CAP_SYSLOG, and /dev/kmsg in a container): errors of GPUs and kills for memory"


def read_kernel_log(
    host: str, began_ns: int, *, within_s: float = WITHIN_S, command: Sequence[str] | None = None
) -> tuple[Evidence, ...]:
    """What the log tells, or why it tells nothing.

    Args:
        host: how the job calls this machine.
        began_ns: when the oldest rank here began, epoch ns; of processes and links only what was later is told.
        within_s: how long it may take, seconds.
        command: what the child of the reader runs.
    """
    began_up_s = time.clock_gettime(time.CLOCK_MONOTONIC) - (time.time_ns() - began_ns) / NS_PER_S
    task = Task(request=KernelLogRequest(since_up_s=began_up_s - CLOCK_SLACK_S), path=DEVICE)
    with Reader(deadline_s=within_s, command=command) as reader:
        reply = reader.ask([task], within_s=within_s).get(DEVICE)
    origin = reply.way if isinstance(reply, KernelLogRead) else DEVICE
    seen = _observe(reply)
    return (
        Evidence(
            source=CollectorName.KERNEL_LOG, rank=None, host=host, observed_at=now_rfc3339(), observation=seen, origin=origin
        ),
    )


def _observe(reply: Reply | None) -> Observation:
    if isinstance(reply, KernelLogRead):
        return reply.log
    problem = reply.problem if isinstance(reply, FileRead) else None
    if problem is None:
        return Absence(reason=AbsenceReason.TIMED_OUT, detail="the kernel log gave no answer")
    if problem.reason is AbsenceReason.DENIED:
        return Absence(reason=AbsenceReason.DENIED, detail=f"{_DENIED} would be in it")
    return Absence(reason=problem.reason, detail=f"the kernel log is not readable: {problem.detail}")
