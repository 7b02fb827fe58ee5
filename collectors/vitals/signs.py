"""One rank's signs of life at one moment."""

from pardbg.watchdog.model.base import Noun


class Signs(Noun, frozen=True, kw_only=True):
    """What a rank shows without its help. None: not known.

    Attributes:
        state: of its main thread, as in ``/proc/PID/stat``.
        switches: how often that thread has gone to sleep so far. It does not while it waits in a collective of gloo or NCCL.
        step: optimizer steps finished so far, if its probe says.
        step_s: how long the last one took, seconds.
        phase: what it does beside training steps (`Heartbeat.phase`).
    """

    state: str
    switches: int
    step: int | None = None
    step_s: float | None = None
    phase: str = ""
