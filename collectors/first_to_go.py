"""How every child process of a collector begins that may meet something large or stuck."""

import contextlib
import resource


def be_the_first_to_go() -> None:
    """If memory runs out on a machine that trains, this process must die before the job does, and leave no core file."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as score:  # noqa: PTH123
        score.write("1000")
