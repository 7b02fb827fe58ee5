"""The part of a job that runs on this machine.

What it does to the job: it reads `/proc`, the memory of its processes, its log and source files and what its probes keep, and
asks recorders that are reachable; where ranks have GPUs open, NVML is read. Nobody is stopped, except for native stacks
(`native_stacks.py`) and when it is asked to attach (`attaching.py`). Only ranks whose memory may not be read are asked for
their stacks, if they have a worker server or a probe (`asked_stacks.py`). Cost: about 50 ms of one processor a rank and sample.
Deadlines: those of the collectors.
"""

import socket
import time
from collections.abc import Callable, Collection, Mapping, Sequence

from pardbg.collectors.gpu.gpus import Gpus
from pardbg.collectors.gpu.looking import looking_at_devices
from pardbg.collectors.jobs.query import ChosenJob
from pardbg.collectors.live.fault_stacks import read_faulthandler_stacks
from pardbg.collectors.live.host import look_at_processes
from pardbg.collectors.live.kernel_log import read_kernel_log
from pardbg.collectors.live.logs import read_logs
from pardbg.collectors.live.moment import now_rfc3339
from pardbg.collectors.live.native_stacks import take_native_stacks
from pardbg.collectors.live.probe.asked_stacks import Mute, ask_where_refused
from pardbg.collectors.live.probe.members import name_members
from pardbg.collectors.live.probe.probes import read_probes
from pardbg.collectors.live.ras import read_ras
from pardbg.collectors.live.recorders.reach import reach_recorders
from pardbg.collectors.live.routing import read_routing_files
from pardbg.collectors.live.software import look_at_software
from pardbg.collectors.live.sources import annotate_stacks
from pardbg.collectors.live.stacks import take_stacks
from pardbg.collectors.live.start_time import started_ns
from pardbg.watchdog.model.evidence import Absence, Evidence
from pardbg.watchdog.model.reach import Reach
from pardbg.watchdog.model.wanted import Cut, Wanted
from pardbg.watchdog.model.world import RankProcess, World
from pardbg.watchdog.scan.attaching import read_by_attaching
from pardbg.watchdog.scan.description import NOTHING
from pardbg.watchdog.scan.sample import Sample
from pardbg.watchdog.scan.site import Attachment

RECORDER_S = 5.0
SOFTWARE_S = 3.0
LEAST_S = 0.5

Finder = Callable[[], ChosenJob]


class LocalSite:
    """This machine, for one job."""

    def __init__(self, find: Finder, gpus: Gpus | None = None) -> None:
        """Looks at nothing yet. ``find`` is asked again whenever processes have changed; ``gpus`` are read all the time."""
        self._find = find
        self._gpus = gpus
        self._world = World(world_size=None, ranks=())
        self._mute: frozenset[Mute] = frozenset()

    where = "this machine"
    remarks: tuple[str, ...] = ()
    silent: Mapping[str, Absence] = NOTHING

    @property
    def reach(self) -> Reach:
        """See `Site`: nobody has to go anywhere."""
        return Reach(here=socket.gethostname())

    def find(self) -> ChosenJob:
        """See `Site`."""
        chosen = self._find()
        self._world = chosen.world
        return chosen

    def sample(self, number: int, until_s: float) -> Sample:
        """See `Site`. Source lines belong to it: only they tell a rank in ``work.wait()`` from one that computes."""
        world = self._world
        began_at, began_at_s, taken_at = time.time(), time.monotonic(), now_rfc3339()
        looked = look_at_processes(world.ranks, number, store=world.store)
        with looking_at_devices(world.ranks, looked, number, self._gpus) as finish_devices:
            probes = read_probes(world.ranks, number)
            taken = take_stacks(world.ranks, number, looked, world_size=world.world_size)
            asked = ask_where_refused(taken, world.ranks, number, self._mute)
            self._mute |= asked.mute
            within_s = min(RECORDER_S, max(until_s - time.monotonic(), LEAST_S))
            recorders = name_members(reach_recorders(world, number, within_s, began_at), probes.groups)
            devices = finish_devices()
        evidence = (*looked, *probes.evidence, *annotate_stacks(asked.evidence, world.ranks), *recorders, *devices)
        return Sample(evidence, taken_at, began_at_s, asked.refused)

    def attach(self, ranks: Sequence[int], sample: int, until_s: float, *, is_kept: bool) -> Attachment:
        """See `Site`."""
        by_number = {rank.rank: rank for rank in self._world.ranks}
        chosen = [by_number[number] for number in ranks if number in by_number]
        return read_by_attaching(self._world, chosen, sample, until_s, is_kept=is_kept)

    def software(self, until_s: float) -> tuple[Evidence, ...]:
        """See `Site`."""
        return look_at_software(self._world.ranks, within_s=max(min(SOFTWARE_S, until_s - time.monotonic()), LEAST_S))

    def entries(self, wanted: Sequence[Wanted], until_s: float) -> tuple[Cut, ...]:
        """See `Site`: its samples hold whole rings."""
        del wanted, until_s
        return ()

    def logs(self, until_s: float) -> tuple[Evidence, ...]:
        """See `Site`."""
        del until_s  # has a deadline of its own
        return (*read_logs(self._world.ranks), *self._kernel_log(), *read_ras(self._world.ranks))

    def routing(self) -> tuple[Evidence, ...]:
        """See `Site`."""
        return tuple(read_routing_files(self._world.ranks))

    def fault_stacks(self, ranks: Collection[int], until_s: float) -> tuple[Evidence, ...]:
        """See `Site`."""
        del until_s  # has a deadline of its own
        found = read_faulthandler_stacks(self._world.ranks, sorted(ranks))
        return tuple(annotate_stacks(found, self._world.ranks))

    def native_stacks(self, ranks: Collection[int], sample: int, until_s: float) -> tuple[Evidence, ...]:
        """See `Site`."""
        chosen = self._ranks(ranks)
        left_s = until_s - time.monotonic()
        if not chosen or left_s < LEAST_S:
            return ()
        return tuple(take_native_stacks(chosen, sample, deadline_s=left_s / len(chosen)))

    def _kernel_log(self) -> tuple[Evidence, ...]:
        ranks = self._world.ranks
        return read_kernel_log(ranks[0].host, min(started_ns(rank.started_ticks) for rank in ranks)) if ranks else ()

    def _ranks(self, numbers: Collection[int]) -> list[RankProcess]:
        return [rank for rank in self._world.ranks if rank.rank in numbers]
