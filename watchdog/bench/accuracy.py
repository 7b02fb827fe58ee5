"""How right pardbg is: on the casebook, on simulated faults of several sizes, and torchfrtrace on the same dumps beside it.

Cost: a case of the casebook takes about 10 ms, a simulated job of 512 ranks about a second, one of 4096 some ten.
"""

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path, PurePath

from pardbg.watchdog.bench.objections import objections, objections_to_case
from pardbg.watchdog.bench.peer import is_installed, run_peer
from pardbg.watchdog.bench.reading_files import diagnose_files
from pardbg.watchdog.bench.simulated_scan import scan_simulated
from pardbg.watchdog.bench.tally import Said, Tally, class_of, read_report
from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.sim.casebook.families import Instance, instances
from pardbg.watchdog.sim.recipe import Recipe
from pardbg.watchdog.sim.scenario import SCENARIOS, simulate
from pardbg.watchdog.sim.truth import Truth
from pardbg.watchdog.sim.write import encode_files

OURS, PEER = "pardbg", "torchfrtrace"
ALL = "all"
TUNED, HELD_OUT = "casebook, tuned on", "casebook, held out"
LARGEST_FILES = 512  # ranks; of larger jobs a scan keeps digests, and nobody writes all the files

_ENTRIES = 60
_BATCH = 250  # folders that lie on the disk at once


class Score(Noun, frozen=True, kw_only=True):
    """The sums of one tool over one class of one set of cases. Rates are null where nothing was asked."""

    tool: str
    cases_of: str
    kind: str
    cases: int
    right: int
    precision: float | None
    recall: float | None
    cause_accuracy: float | None
    controls: int
    false_alarms: int
    untold: int
    elected: int
    crashed: int


Files = Mapping[str, bytes]
_Asked = tuple[str, Truth, Files]
_Tallies = dict[tuple[str, str, str], Tally]  # by tool, set and class


def measure_accuracy(
    progress: Callable[[str], None], *, seeds: int = 4, sizes: Iterable[int] = (16,), has_peer: bool = True
) -> Iterator[Score]:
    """Scores every class of every set: the two halves of the casebook, then the simulated faults by world size.

    Args:
        progress: hears what is being done.
        seeds: how many jobs each variant of the casebook makes, half of them held out.
        sizes: world sizes of the simulated faults.
        has_peer: whether torchfrtrace reads the same dumps, where torch is installed and the job is written as files.
    """
    tallies: _Tallies = {}
    for batch in _batches(_ask(progress, seeds, tuple(sizes), tallies)):
        if has_peer and is_installed():
            progress(f"{PEER} on {len(batch)} jobs")
            for (cases_of, truth, _), said in zip(batch, _ask_peer(batch), strict=True):
                _count(tallies, PEER, cases_of, truth, said)
    yield from _scores(tallies)


def _scores(tallies: _Tallies) -> Iterator[Score]:
    """Every class, and after those of a set the whole of it."""
    for tool, cases_of in dict.fromkeys((tool, cases_of) for tool, cases_of, _ in tallies):
        classes = [(kind, tallies[tool, cases_of, kind]) for *key, kind in sorted(tallies) if key == [tool, cases_of]]
        total = Tally()
        for kind, tally in classes:
            total.include(tally)
            yield _score(tool, cases_of, kind, tally)
        yield _score(tool, cases_of, ALL, total)


def _ask(progress: Callable[[str], None], seeds: int, sizes: tuple[int, ...], tallies: _Tallies) -> Iterator[_Asked]:
    """Has pardbg answer every case; those whose dumps a peer can read come out."""
    progress(f"the casebook, {seeds} jobs a variant")
    for instance in instances(range(seeds)):
        yield from _ask_case(instance, tallies)
    for size in sizes:
        for recipe in _recipes(size):
            progress(f"{size} ranks, {recipe.fault} on {recipe.backend}")
            yield from _ask_simulated(recipe, tallies)


def _ask_case(instance: Instance, tallies: _Tallies) -> Iterator[_Asked]:
    case = instance.build()
    cases_of = HELD_OUT if instance.is_held_out else TUNED
    report = diagnose_files(case.files)
    said = read_report(report, case.truth, is_right=not objections_to_case(report, case))
    _count(tallies, OURS, cases_of, case.truth, said)
    if any(map(_is_dump, case.files)):
        yield cases_of, case.truth, case.files


def _recipes(size: int) -> Iterator[Recipe]:
    for number, (name, fault) in enumerate(SCENARIOS.items()):
        yield Recipe(fault=name, ranks=size, backend=fault.backends[number % len(fault.backends)], entries=_ENTRIES)


def _ask_simulated(recipe: Recipe, tallies: _Tallies) -> Iterator[_Asked]:
    cases_of = f"simulated, {recipe.ranks} ranks"
    if recipe.ranks > LARGEST_FILES:
        report, truth = scan_simulated(recipe)
        _count(tallies, OURS, cases_of, truth, read_report(report, truth, is_right=not objections(report, truth)))
        return
    job = simulate(recipe)
    files = encode_files(job)
    report = diagnose_files(files)
    said = read_report(report, job.truth, is_right=not objections(report, job.truth))
    _count(tallies, OURS, cases_of, job.truth, said)
    yield cases_of, job.truth, files


def _ask_peer(batch: list[_Asked]) -> list[Said]:
    with tempfile.TemporaryDirectory(prefix="pardbg-accuracy-") as root:
        folders = []
        for number, (_, _, files) in enumerate(batch):
            folder = Path(root) / str(number)
            folder.mkdir()
            folders.append(folder)
            for name, content in files.items():
                if _is_dump(name):
                    (folder / PurePath(name).name).write_bytes(content)
        return run_peer(folders)


def _is_dump(name: str) -> bool:
    return "_rank_" in name


def _batches(asked: Iterable[_Asked]) -> Iterator[list[_Asked]]:
    batch: list[_Asked] = []
    for item in asked:
        batch.append(item)
        if len(batch) == _BATCH:
            yield batch
            batch = []
    yield batch


def _count(tallies: _Tallies, tool: str, cases_of: str, truth: Truth, said: Said) -> None:
    tallies.setdefault((tool, cases_of, class_of(truth)), Tally()).add(said, truth)


def _score(tool: str, cases_of: str, kind: str, tally: Tally) -> Score:
    return Score(
        tool=tool,
        cases_of=cases_of,
        kind=kind,
        cases=tally.cases,
        right=tally.right,
        precision=_round(tally.precision),
        recall=_round(tally.recall),
        cause_accuracy=_round(tally.cause_accuracy),
        controls=tally.controls,
        false_alarms=tally.alarms,
        untold=tally.untold,
        elected=tally.elected,
        crashed=tally.crashed,
    )


def _round(rate: float | None) -> float | None:
    return None if rate is None else round(rate, 3)
