"""Evidence from files: walks the given paths, reads each file by its content, and says of which rank each speaks.

Cost: at most four child processes, whose memory is limited and freed at the end; no effect on the job. Deadlines: see
`reading.py`. Privilege: whatever reading the files takes.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from pardbg.collectors.attribution import ReadFile, attribute
from pardbg.collectors.newest import keep_newest
from pardbg.collectors.parsing.file_names import read_name
from pardbg.collectors.parsing.recognise import Content, guess_by_name
from pardbg.collectors.reading import DEADLINE_S, Reader
from pardbg.collectors.reading_protocol import ListedFile, Listing, Missing, Problem
from pardbg.collectors.walking import printable
from pardbg.watchdog.errors import InputError
from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.evidence import Absence, Evidence, FlightRecording

_FILES_BETWEEN_WORDS = 16


class CollectedFiles(Noun, frozen=True, kw_only=True):
    """Everything the files gave, sorted by path, and the paths of those that are no evidence."""

    evidence: tuple[Evidence, ...]
    unrecognised: tuple[str, ...]
    is_interrupted: bool = False


def collect_files(
    paths: Sequence[Path], progress: Callable[[str], None] = lambda _: None, *, deadline_s: float = DEADLINE_S
) -> CollectedFiles:
    """Reads evidence from files and folders. Whatever a file does, it becomes an absence, never an error.

    Args:
        paths: files or folders; folders are walked.
        progress: hears now and then, in words, how far the work is.
        deadline_s: how long one file or folder may give no answer.

    Raises:
        InputError: if a path does not exist, or there is no file at all.
    """
    with Reader(deadline_s=deadline_s) as reader:
        listings, troubles = reader.walk(dict.fromkeys(map(os.fsencode, paths)))
        problems = _check_listed(listings, troubles)
        listed = _unique_files(listings)

        def tell(count: int) -> None:
            if count % _FILES_BETWEEN_WORDS == 0 or count == len(listed):
                progress(f"read {count} of {len(listed)} files")

        answers = reader.read(listed, tell)
    files = [ReadFile(path=path, name=read_name(path), read=answers[path]) for path in sorted(answers)]
    evidence = [*map(_describe_problem, problems), *attribute(files)]
    _check_one_job(evidence)
    return CollectedFiles(
        evidence=tuple(sorted(keep_newest(evidence), key=lambda item: item.origin)),
        unrecognised=tuple(
            file.path for file in files if file.read.parsed.content is Content.UNRECOGNISED and file.read.problem is None
        ),
        is_interrupted=reader.is_interrupted,
    )


def _check_one_job(evidence: Iterable[Evidence]) -> None:
    """Refuses folders that hold the dumps of several jobs: mixed, they would give one wrong verdict.

    Raises:
        InputError: if two folders have a dump each of the same two ranks. (Samples and attempts are told apart before.)
    """
    folders: dict[tuple[int | None, int], list[str]] = {}
    for item in evidence:
        if isinstance(item.observation, FlightRecording) and item.rank is not None:
            folders.setdefault((item.rank, item.observation.sample), []).append(os.path.dirname(item.origin))  # noqa: PTH120
    rivals = [tuple(sorted(set(found))) for found in folders.values() if len(set(found)) > 1]
    if len(rivals) > 1:
        commands = " or ".join(f"pardbg analyze {folder}" for folder in rivals[0])
        raise InputError(f"{', '.join(rivals[0])} hold dumps of the same ranks: several jobs", remedy=commands)


def _check_listed(listings: Iterable[Listing], troubles: Iterable[Missing | Problem]) -> list[Problem]:
    """Sorts out what the walk could not see.

    Raises:
        InputError: for a path without anything behind it, or if nothing was found at all.
    """
    problems: list[Problem] = []
    for trouble in troubles:
        if isinstance(trouble, Missing):
            raise InputError(f"cannot read {trouble.path}: {trouble.detail}", remedy="give files or folders that exist")
        problems.append(trouble)
    listed = tuple(listings)
    for listing in listed:
        problems.extend(listing.problems)
    if not problems and not any(listing.files for listing in listed):
        raise InputError(
            f"there is no file in {', '.join(printable(listing.root) for listing in listed)}",
            remedy="give the folder with the flight-recorder dumps (TORCH_FR_DUMP_TEMP_FILE), stacks or logs",
        )
    return problems


def _unique_files(listings: Iterable[Listing]) -> list[tuple[bytes, ListedFile]]:
    """Each file once, though links or overlapping paths lead to it twice: under the name that tells a rank, else the first."""
    best: dict[tuple[int, int], tuple[bytes, ListedFile]] = {}
    for listing in listings:
        for file in listing.files:
            key = (file.device, file.inode)
            known = best.get(key)
            if known is None or _preference(file.path) < _preference(known[1].path):
                best[key] = (listing.root, file)
    return sorted(best.values(), key=lambda pair: pair[1].path)


def _preference(path: str) -> tuple[bool, str]:
    return read_name(path).rank is None, path


def _describe_problem(problem: Problem) -> Evidence:
    name = read_name(problem.path)
    return Evidence(
        source=guess_by_name(os.path.basename(problem.path)).source,  # noqa: PTH119 - a text, which need not be a path
        rank=name.rank,
        host=name.host,
        observation=Absence(reason=problem.reason, detail=problem.detail),
        origin=problem.path,
    )
