"""Who descends from whom among the processes of a census."""

from collections.abc import Iterable, Iterator

from pardbg.collectors.jobs.process import JobProcess


class Family:
    """The tree of processes. Parents that are not in the census (another pid namespace's, ended ones) end a line."""

    def __init__(self, processes: Iterable[JobProcess]) -> None:
        self._by_pid = {process.pid: process for process in processes}

    def get(self, pid: int) -> JobProcess | None:
        """The process of that number."""
        return self._by_pid.get(pid)

    def ancestors(self, process: JobProcess) -> Iterator[JobProcess]:
        """Parent, its parent, and so on. A ring, which a torn reading can show, is walked once."""
        seen = {process.pid}
        parent = self._by_pid.get(process.stat.parent_pid)
        while parent is not None and parent.pid not in seen:
            seen.add(parent.pid)
            yield parent
            parent = self._by_pid.get(parent.stat.parent_pid)

    def launcher(self, process: JobProcess) -> JobProcess | None:
        """The nearest launcher above."""
        return next((ancestor for ancestor in self.ancestors(process) if ancestor.is_launcher), None)

    def has_ancestor(self, process: JobProcess, pids: frozenset[int]) -> bool:
        """Whether any of these is above it."""
        return any(ancestor.pid in pids for ancestor in self.ancestors(process))

    def children(self, parents: frozenset[int]) -> list[JobProcess]:
        """The children of these processes, oldest first."""
        return sorted(
            (process for process in self._by_pid.values() if process.stat.parent_pid in parents),
            key=lambda process: process.age,
        )
