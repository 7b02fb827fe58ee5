"""The probe of one rank: what happens when, from the import of torch's distributed package to the end of the process."""

import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from . import identity, places
from .folder import clear, make_private, make_root, write_json, write_whole
from .groups import notice_groups, write_group
from .harmless import harmless, note, problems
from .last_dump import keep_last_dump
from .last_words import LastWords
from .page import Page, is_in_memory
from .page_format import END_EXCEPTION
from .phases import CHECKPOINT, EVALUATION, Phases
from .recorder_places import DUMP_VARIABLES, PIPE_VARIABLE, drop_old_names, make_attempt_folder, move_dumps, move_pipe
from .replica_watch import ReplicaWatch
from .routing_watch import RoutingWatch
from .signals import Signals, allow_tracing
from .steps import Ledger, Steps
from .worker_server import start_server

OWNER_VARIABLE = "PARDBG_RANK_PID"
"""Which process is the rank: its children inherit its environment, and with it the rank's number."""


class RankProbe:
    """Waits for torch, and keeps one `_Life` for the process that is a rank: a child made by `fork` begins its own."""

    def __init__(self) -> None:
        self._c10d: ModuleType | None = None
        self._life: _Life | None = None
        self._heard: list[Callable[[Phases], None]] = []
        self._signals = Signals()
        self._routing, self._replicas = RoutingWatch(), ReplicaWatch()
        os.register_at_fork(after_in_child=harmless(self._signals.lead_nowhere))

    def see_torch(self, c10d: ModuleType) -> None:
        """The distributed package has been imported."""
        self._c10d = c10d
        harmless(drop_old_names)(os.environ, _torch_version())
        is_child = multiprocessing.parent_process() is not None
        owner = os.environ.get(OWNER_VARIABLE, str(os.getpid()))
        if identity.read_rank() is not None and not is_child and owner == str(os.getpid()):
            self._begin(c10d)
        notice_groups(c10d, self._see_group)

    def see_modules(self, modules: ModuleType) -> None:
        """The part of torch that models are made of has been imported: from now on routers can be found."""
        self._routing.listen(modules)

    def see_compiler(self, callback: ModuleType) -> None:
        """The compiler has been imported."""
        harmless(self._routing.listen_to_compiler)(callback.callback_handler)
        self._hear(lambda phases: phases.listen_to_compiler(callback.callback_handler))

    def see_checkpoints(self, saver: ModuleType) -> None:
        """The distributed checkpoints have been imported."""
        self._hear(lambda phases: phases.wrap(saver, "save", CHECKPOINT))

    def _see_group(self, group: Any, members: Mapping[int, int]) -> None:
        """A process group has been made: whatever this process is, now it is a rank."""
        if identity.read_rank() is None or self._c10d is None or not hasattr(group, "size"):
            return
        if self._life is None or not self._life.is_ours():
            self._begin(self._c10d)
        if self._life is not None:
            self._life.see_group(group, members)

    def _begin(self, c10d: ModuleType) -> None:
        self._life = None
        self._life = _Life(c10d, self._signals, self._routing, self._replicas)
        if self._life.phases is not None:
            for tell in self._heard:
                harmless(tell)(self._life.phases)

    def _hear(self, tell: Callable[[Phases], None]) -> None:
        self._heard.append(tell)
        if self._life is not None and self._life.phases is not None:
            tell(self._life.phases)


class _Life:
    """One process, from the moment it can be a rank."""

    def __init__(self, c10d: ModuleType, signals: Signals, routing: RoutingWatch, replicas: ReplicaWatch) -> None:
        """Makes the folder and listens to the process's end.

        Raises:
            OSError: if there is no place to write to. Then there is no probe.
        """
        self._pid = os.getpid()
        self._here = [self._pid]  # emptied in a forked child
        os.register_at_fork(after_in_child=self._here.clear)
        self._c10d = c10d
        self._ledger = Ledger()
        self._is_member = False
        self._identity = identity.describe()
        self._signal: int | None = None
        self._attempt_folder = harmless(make_attempt_folder)(os.environ, identity.read_attempt())
        self._folder = self._make_folder()
        self._page = harmless(self._make_page)()
        self._signals = signals
        self._routing, self._replicas = routing, replicas
        self.phases = Phases(self._page, self._ledger, self.is_ours) if self._page is not None else None
        os.environ[OWNER_VARIABLE] = str(self._pid)
        self._begin()

    def is_ours(self) -> bool:
        """Whether this is still the process that began."""
        return bool(self._here)

    def see_group(self, group: Any, members: Mapping[int, int]) -> None:
        """A process group has been made."""
        write_group(self._at(places.GROUPS_FILE), self._c10d, group, members)
        if not self._is_member:
            self._is_member = True
            self._identity.update(identity.describe())
            self._identity.update(rank=self._c10d.get_rank(), world_size=self._c10d.get_world_size())
            self._join()
            harmless(self._write_rank)()

    def _begin(self) -> None:
        if self._attempt_folder is not None:
            harmless(move_dumps)(os.environ, self._attempt_folder)
        harmless(move_pipe)(os.environ, self._folder)
        harmless(allow_tracing)()
        self._signal = harmless(self._signals.listen)(self._folder)
        if self._page is not None:
            harmless(LastWords(self._page, self.is_ours, self._keep, self._count_oom_kills).listen)()
        harmless(self._write_rank)()

    def _join(self) -> None:
        """The first group is there, and with it all of torch."""
        bindings = sys.modules["torch._C._distributed_c10d"]
        harmless(start_server)(self._at(places.SERVER_SOCKET), bindings, self._signal)
        if self._page is None or self.phases is None:
            return
        torch: Any = sys.modules["torch"]
        steps = Steps(self._page, self._ledger, self._here, self.phases.stack)
        steps.end_evaluation = self.phases.end_evaluation
        harmless(self._routing.start)(steps, self._at(places.ROUTING_FILE), self._ledger, self._here)
        harmless(self._replicas.start)(self._page, self._ledger, self._here)
        harmless(steps.listen)()
        harmless(self.phases.wrap)(torch, "save", CHECKPOINT)
        harmless(self.phases.wrap_start)(torch.nn.Module, "eval", EVALUATION)

    def _make_folder(self) -> str:
        root = places.memory_root(os.geteuid(), os.environ)
        folder = places.rank_folder(root, self._pid, identity.started_ticks())
        make_root(root)
        make_private(folder)
        clear(folder)
        return folder

    def _make_page(self) -> Page | None:
        path = self._at(places.PAGE_FILE)
        if places.ROOT_VARIABLE not in os.environ and not is_in_memory(path):
            note(f"{path} does not lie in memory: no page")
            return None
        return Page(path)

    def _write_rank(self) -> None:
        prefix = next((os.environ[name] for name in DUMP_VARIABLES if os.environ.get(name)), None)
        content = {
            **self._identity,
            "created_ns": time.time_ns(),
            "is_member": self._is_member,
            "torch": _torch_version(),
            "dumps": prefix,
            "pipe": os.environ.get(PIPE_VARIABLE),
            "last_dump": self._last_dump(),
            "stack_signal": self._signal,
            "problems": problems,
        }
        write_json(self._at(places.RANK_FILE), content)

    def _keep(self, kind: int, stack: str) -> None:
        if stack:
            write_whole(self._at(places.INTERRUPTED_STACKS), stack.encode(errors="replace"))
        path = self._last_dump()
        if self._is_member and path is not None:
            bindings = sys.modules["torch._C._distributed_c10d"]
            keep_last_dump(path, self._c10d, bindings, has_failed=kind == END_EXCEPTION)

    def _last_dump(self) -> str | None:
        rank = self._identity["rank"]
        if self._attempt_folder is None or not isinstance(rank, int):
            return None
        return places.last_dump(self._attempt_folder, rank, self._pid)

    def _count_oom_kills(self) -> int | None:
        folder = self._identity["cgroup"]
        return identity.count_oom_kills(folder if isinstance(folder, str) else None)

    def _at(self, name: str) -> str:
        return os.path.join(self._folder, name)


def _torch_version() -> str:
    """While torch is being imported only this part of it knows."""
    return str(getattr(sys.modules.get("torch.version"), "__version__", ""))
