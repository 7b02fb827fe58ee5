"""What this machine lets pardbg see, gathered in about half a second.

Cost: five child processes, 0.4 s of a processor together; one more where there are GPUs. Jobs are read, not touched; what is
tried is tried on a process of our own (`own_trial.py`). Deadlines: those of `own_trial.py`, `processes.py`, `devices.py` and
of the census.
"""

import contextlib
import importlib.metadata
import os
import platform

import pardbg
from pardbg.collectors.jobs.census import take_census
from pardbg.collectors.jobs.environment import read_environment, recorder_settings
from pardbg.collectors.node.devices import try_devices
from pardbg.collectors.node.own_process import read_own_process, read_settings
from pardbg.collectors.node.own_trial import trial_under_way
from pardbg.collectors.node.processes import describe_processes
from pardbg.collectors.node.surroundings import Software, Surroundings


def look_around() -> Surroundings:
    """Gathers everything; the trial runs while the processes are counted.

    Raises:
        OSError: if there is no ``/proc``.
        ParseError: if ``/proc/self/status`` is not what Linux writes.
    """
    with trial_under_way() as finish_trial:
        census = take_census()
        return Surroundings(
            host=census.host,
            observed_at=census.observed_at or "",
            own=read_own_process(),
            settings=read_settings(),
            processes=describe_processes(census),
            software=_read_software(),
            environment=_own_environment(),
            devices=try_devices(),
            trial=finish_trial(),
        )


def _read_software() -> Software:
    torch = None
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        torch = importlib.metadata.version("torch")
    return Software(pardbg=pardbg.__version__, python=platform.python_version(), kernel=platform.release(), torch=torch)


def _own_environment() -> dict[str, str]:
    """What a job started from here would be told about its recorder."""
    return recorder_settings(read_environment(b"\0".join(b"%b=%b" % item for item in os.environb.items())))
