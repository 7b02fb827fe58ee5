"""Source lines of training code beside the frames of a live job's stacks.

Cost: each file is read once, by at most four child processes of about 80 ms and 20 MB; they may be abandoned, since a job's
sources can lie on a dead mount. Nothing touches the job's processes. Deadline: `WITHIN_S` for all files. Leaves nothing behind.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from pardbg.collectors.live.moment import now_rfc3339
from pardbg.collectors.live.start_time import CLOCK_SLACK_NS, started_ns
from pardbg.collectors.live.views import View, find_views
from pardbg.collectors.reading import Reader, Task
from pardbg.collectors.reading_job import SourceRead, SourceRequest
from pardbg.collectors.reading_protocol import FileRead, Reply
from pardbg.watchdog.model.evidence import Absence, Evidence, SourceContext, Stack, StackFrame
from pardbg.watchdog.model.names import AbsenceReason, CollectorName
from pardbg.watchdog.model.world import RankProcess

WITHIN_S = 3.0
MOST_FILES = 64
_MOST_NAMED = 3
_MOST_LINES = 2**31
_File = tuple[View, str]
_SOURCE = re.compile(r"/(?:[^\0]*/)?[^/\0]+\.py$|/(?:[^\0]*/)?[^./\0]+$")


def annotate_stacks(
    evidence: Sequence[Evidence],
    ranks: Sequence[RankProcess],
    *,
    within_s: float = WITHIN_S,
    command: Sequence[str] | None = None,
) -> list[Evidence]:
    """Gives the main thread's frames of training code their `SourceContext`.

    A frame stays without one if its file could not be read (one `Absence` for each reason names the files), has changed since
    its process started, or has no statement at that line. What ranks of another mount namespace name is read below their root.

    Args:
        evidence: anything; only the stacks of ranks themselves are looked at, not those of their children.
        ranks: whose stacks they are.
        within_s: how long all of it may take, seconds.
        command: what a child of the reader runs.

    Returns:
        The evidence in its order, and then the absences.
    """
    views = find_views(ranks)
    wanted: dict[_File, set[int]] = {}
    for item in evidence:
        if item.rank in views:
            for frame in _training_frames(item):
                wanted.setdefault((views[item.rank], frame.filename), set()).add(frame.line)
    kept = dict(list(wanted.items())[:MOST_FILES])
    replies = _read(kept, within_s, command)
    sources = {file: reply for file, reply in replies.items() if isinstance(reply, SourceRead)}
    newest_ns = {rank.rank: started_ns(rank.started_ticks) + CLOCK_SLACK_NS for rank in ranks}
    annotated = [_annotate(item, views, sources, newest_ns) for item in evidence]
    troubles = [*_unread(replies), *_left_out(len(wanted))]
    host = ranks[0].host if ranks else None
    return annotated + [replace(trouble, host=host, observed_at=now_rfc3339()) for trouble in troubles]


def _training_frames(item: Evidence) -> Iterator[StackFrame]:
    stack = item.observation
    if isinstance(stack, Stack) and not stack.child and stack.main_thread is not None:
        for frame in stack.main_thread.frames:
            if 0 < frame.line < _MOST_LINES and _SOURCE.match(frame.filename) and not frame.is_library:
                yield frame


def _read(wanted: Mapping[_File, set[int]], within_s: float, command: Sequence[str] | None) -> dict[_File, Reply]:
    tasks = [
        Task(request=_request(view, path, lines), path=str(number))
        for number, ((view, path), lines) in enumerate(wanted.items())
    ]
    with Reader(deadline_s=within_s / 2, command=command) as reader:
        answers = reader.ask(tasks, within_s=within_s)
    found = ((file, answers.get(str(number))) for number, file in enumerate(wanted))
    return {file: reply for file, reply in found if reply is not None}  # as they were asked, not as they came


def _request(view: View, path: str, lines: Iterable[int]) -> SourceRequest:
    sought = tuple(sorted(lines))
    return SourceRequest(path=path.encode(errors="replace"), lines=sought, inside=view.inside, uid=view.uid, whose=view.whose)


def _annotate(
    item: Evidence, views: Mapping[int, View], sources: Mapping[_File, SourceRead], newest_ns: Mapping[int, int]
) -> Evidence:
    stack = item.observation
    if item.rank is None or item.rank not in newest_ns or not isinstance(stack, Stack):
        return item
    view = views[item.rank]
    contexts: dict[tuple[str, int], SourceContext] = {
        (frame.filename, frame.line): source.contexts[frame.line]
        for frame in _training_frames(item)
        if (source := sources.get((view, frame.filename)))
        and source.changed_ns <= newest_ns[item.rank]
        and frame.line in source.contexts
    }
    if not contexts:
        return item
    main = stack.main_thread
    threads = tuple(
        replace(thread, frames=tuple(_with_source(frame, contexts) for frame in thread.frames)) if thread is main else thread
        for thread in stack.threads
    )
    return replace(item, observation=replace(stack, threads=threads))


def _with_source(frame: StackFrame, contexts: Mapping[tuple[str, int], SourceContext]) -> StackFrame:
    context = contexts.get((frame.filename, frame.line))
    return frame if context is None else replace(frame, source=context)


def _unread(replies: Mapping[_File, Reply]) -> Iterator[Evidence]:
    by_reason: dict[AbsenceReason, list[tuple[str, str]]] = {}
    for (_, path), reply in replies.items():
        if isinstance(reply, FileRead) and reply.problem is not None:
            by_reason.setdefault(reply.problem.reason, []).append((path, reply.problem.detail))
    for reason, files in by_reason.items():
        named = "; ".join(f"{path}: {detail}" for path, detail in files[:_MOST_NAMED])
        more = f"; and {len(files) - _MOST_NAMED} more files" if len(files) > _MOST_NAMED else ""
        yield _absent(reason, f"source not read: {named}{more}", files[0][0])


def _left_out(count: int) -> Iterator[Evidence]:
    if count > MOST_FILES:
        yield _absent(AbsenceReason.SKIPPED, f"{count - MOST_FILES} source files: only {MOST_FILES} are read", "")


def _absent(reason: AbsenceReason, detail: str, origin: str) -> Evidence:
    """Of no rank: the stacks themselves were seen."""
    absence = Absence(reason=reason, detail=detail)
    return Evidence(source=CollectorName.STACKS, rank=None, observation=absence, origin=origin)
