"""Reads many files through child processes that may be abandoned: whatever a file or a mount does, the caller goes on.

Cost: a child takes about 80 ms and 20 MB to start; there are at most four. Each task has a deadline; a child that misses it is
killed and not waited for. After `_MOST_LOST_PER_DEVICE` lost children a file system is left alone, so that a dead mount with
thousands of files costs a few deadlines, not thousands.
"""

import os
import selectors
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType

from pardbg.collectors.reading_children import Child, reader_command
from pardbg.collectors.reading_protocol import (
    FileRead,
    ListedFile,
    Listing,
    Missing,
    Problem,
    ReadRequest,
    Reply,
    Request,
    WalkRequest,
    unread,
)
from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.names import AbsenceReason

DEADLINE_S = 10.0
_SLOWEST_BYTES_PER_S = 20e6  # a large file may take its time
_LARGEST_ALLOWANCE_S = 60.0
_MOST_CHILDREN = 4
_FILES_A_CHILD = 8
_TASKS_AHEAD = 2
_MOST_LOST_PER_DEVICE = 4


class Task(Noun, frozen=True, kw_only=True):
    """One request of the reader. ``device`` is the file system it touches, None before that is known."""

    request: Request
    path: str
    device: int | None = None
    allowance_s: float = 0.0


Answer = Callable[[Task, Reply], bool]
"""Takes one answer to a task; returns whether the task is finished by it."""


class Reader:
    """A pool of children. Use it as a context manager: leaving it ends every child, also after Ctrl-C."""

    def __init__(self, *, deadline_s: float = DEADLINE_S, command: Sequence[str] | None = None) -> None:
        """Starts nothing yet.

        Args:
            deadline_s: how long a child may be silent before it is abandoned.
            command: what a child runs.
        """
        self._deadline_s = deadline_s
        self._command = command or reader_command()
        self._children: list[Child[Task]] = []
        self._lost: Counter[int | None] = Counter()
        self._selector = selectors.DefaultSelector()
        self.is_interrupted = False

    def __enter__(self) -> "Reader":  # noqa: PYI034 - Self needs Python 3.11
        """Starts nothing: children start with the first work."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Ends all children; waits at most a moment for each."""
        for child in list(self._children):
            self._drop(child)
        self._selector.close()

    @property
    def pids(self) -> tuple[int, ...]:
        """The process ids of the living children."""
        return tuple(child.pid for child in self._children)

    def walk(self, paths: Iterable[bytes]) -> tuple[list[Listing], list[Missing | Problem]]:
        """Lists what lies under each path, in the order of the paths. Deadline: `deadline_s` without a sign from the child."""
        tasks = [Task(request=WalkRequest(path=path), path=path.decode(errors="backslashreplace")) for path in paths]
        listings: dict[str, list[Listing]] = {task.path: [] for task in tasks}
        troubles: list[Missing | Problem] = []

        def answer(task: Task, reply: Reply) -> bool:
            if isinstance(reply, Listing):
                listings[task.path].append(reply)
                return reply.is_last
            if isinstance(reply, FileRead):
                troubles.extend(filter(None, [reply.problem]))
            elif isinstance(reply, Missing):
                troubles.append(reply)
            return True

        self._run(tasks, answer, child_count=1)
        return [part for path in listings for part in listings[path]], troubles

    def read(self, files: Sequence[tuple[bytes, ListedFile]], told: Callable[[int], None]) -> dict[str, FileRead]:
        """Reads and parses listed files, each with the root it must not leave; by path.

        Deadline: `deadline_s` for each file, and more for a large one. ``told`` hears how many files are finished. Ctrl-C ends
        the reading, sets `is_interrupted` and keeps what has been read.
        """
        tasks = [
            Task(
                request=ReadRequest(path=file.real_path, root=root),
                path=file.path,
                device=file.device,
                allowance_s=min(file.size_bytes / _SLOWEST_BYTES_PER_S, _LARGEST_ALLOWANCE_S),
            )
            for root, file in files
        ]
        answers: dict[str, FileRead] = {}

        def answer(task: Task, reply: Reply) -> bool:
            if isinstance(reply, FileRead):
                answers[task.path] = reply
                told(len(answers))
            return True

        try:
            self._run(tasks, answer, child_count=_child_count(len(tasks)))
        except KeyboardInterrupt:
            self.is_interrupted = True
            unread_tasks = (task for task in tasks if task.path not in answers)
            skipped = (AbsenceReason.SKIPPED, "interrupted before it was read")
            answers |= {task.path: _refuse(task, skipped) for task in unread_tasks}
        return answers

    def ask(self, tasks: Sequence[Task], *, within_s: float) -> dict[str, Reply]:
        """Puts any requests with one answer each; answers by the tasks' paths, a `FileRead` with its problem for what failed.

        Deadline: `deadline_s` for each, and ``within_s`` for all together.
        """
        answers: dict[str, Reply] = {}

        def answer(task: Task, reply: Reply) -> bool:
            answers[task.path] = reply
            return True

        self._run(tasks, answer, child_count=_child_count(len(tasks)), until_s=time.monotonic() + within_s)
        return answers

    def _run(self, tasks: Iterable[Task], answer: Answer, *, child_count: int, until_s: float = float("inf")) -> None:
        waiting = deque(tasks)
        while waiting or any(child.tasks for child in self._children):
            left_s = until_s - time.monotonic()
            if left_s <= 0:
                self._give_up(waiting, answer)
                return
            self._fill(waiting, answer, child_count)
            for key, _ in self._selector.select(min(left_s, self._next_deadline_s())):
                self._listen(key.data, waiting, answer)
            for child in [child for child in self._children if child.tasks and self._time_left_s(child) <= 0]:
                silence = f"no answer within {self._deadline_s + child.tasks[0].allowance_s:.0f} s: a dead mount, or a trap"
                self._abandon(child, waiting, answer, (AbsenceReason.TIMED_OUT, silence))

    def _give_up(self, waiting: deque[Task], answer: Answer) -> None:
        """Ends a run whose time is over; children with nothing in their hands stay."""
        for child in [child for child in self._children if child.tasks]:
            self._abandon(child, waiting, answer, (AbsenceReason.TIMED_OUT, "no answer when the time for all was over"))
        while waiting:
            task = waiting.popleft()
            answer(task, _refuse(task, (AbsenceReason.TIMED_OUT, "not reached: others took the time for all")))

    def _fill(self, waiting: deque[Task], answer: Answer, child_count: int) -> None:
        """Gives every child its next tasks, one in hand and one ahead."""
        while waiting and len(self._children) < child_count:
            try:
                child: Child[Task] = Child(self._command)
            except OSError as error:
                if self._children:
                    break
                while waiting:
                    task = waiting.popleft()
                    answer(task, _refuse(task, (AbsenceReason.UNREADABLE, f"no process to read it with: {error}")))
                return
            self._children.append(child)
            self._selector.register(child.fileno(), selectors.EVENT_READ, child)
        for ahead in range(1, _TASKS_AHEAD + 1):
            for child in self._children:
                while waiting and len(child.tasks) < ahead:
                    task = waiting.popleft()
                    if self._lost[task.device] >= _MOST_LOST_PER_DEVICE:
                        detail = f"not tried: {_MOST_LOST_PER_DEVICE} files of the same file system gave no answer"
                        answer(task, _refuse(task, (AbsenceReason.TIMED_OUT, detail)))
                    else:
                        child.ask(task, task.request)

    def _listen(self, child: Child[Task], waiting: deque[Task], answer: Answer) -> None:
        for reply in child.hear():
            if child.tasks and answer(child.tasks[0], reply):
                child.tasks.popleft()
        if child.is_lost:
            died = "the process that read it died: too large, or made to crash its reader"
            self._abandon(child, waiting, answer, (AbsenceReason.UNREADABLE, died))

    def _abandon(self, child: Child[Task], waiting: deque[Task], answer: Answer, why: tuple[AbsenceReason, str]) -> None:
        """Gives up a child and the task in its hands; the task ahead goes back."""
        self._drop(child)
        if not child.tasks:
            return
        task = child.tasks.popleft()
        waiting.extendleft(reversed(child.tasks))
        if why[0] is AbsenceReason.TIMED_OUT:
            self._lost[task.device] += task.device is not None
        answer(task, _refuse(task, why))

    def _drop(self, child: Child[Task]) -> None:
        self._selector.unregister(child.fileno())
        self._children.remove(child)
        child.end()

    def _time_left_s(self, child: Child[Task]) -> float:
        return child.heard_at_s + self._deadline_s + child.tasks[0].allowance_s - time.monotonic()

    def _next_deadline_s(self) -> float:
        return max(0.0, min((self._time_left_s(child) for child in self._children if child.tasks), default=0.0))


def _child_count(task_count: int) -> int:
    return min(os.cpu_count() or 1, _MOST_CHILDREN, -(-task_count // _FILES_A_CHILD))


def _refuse(task: Task, why: tuple[AbsenceReason, str]) -> FileRead:
    reason, detail = why
    return unread(Problem(path=task.path, reason=reason, detail=detail))
