"""`pardbg demo`: what it refuses and lists, when it says that the verdict is right, and that nothing of its job stays."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.live.running import start_ticks

from pardbg.watchdog.commands.analysis import analyze_paths
from pardbg.watchdog.commands.demo import demo
from pardbg.watchdog.demo import train
from pardbg.watchdog.demo.faults import DEFAULT_FAULT, FAULTS, PlantedFault, fault_named
from pardbg.watchdog.demo.launch import DemoError, hung_job
from pardbg.watchdog.errors import InputError
from pardbg.watchdog.model.names import Cause, Confidence, JobSource, Kind, Scope, Status
from pardbg.watchdog.model.report import Coverage, Finding, Job, Report, Subject
from pardbg.watchdog.outputs.validation import validate_report

pytestmark = pytest.mark.live

STARTED_S, ENDED_S, DONE_S = 60.0, 10.0, 120.0
POLL_S = 0.05
EVERYDAY = {DEFAULT_FAULT, "healthy"}
IO, LOCK = Cause.CHECKPOINT_IO, Cause.LOCK


def test_list_names_every_fault() -> None:
    result = CliRunner().invoke(demo, ["--list"])

    assert result.exit_code == 0
    assert [line.split()[0] for line in result.output.splitlines()] == [fault.name for fault in FAULTS]


def test_every_fault_has_its_program() -> None:
    assert set(train.PROGRAMS) == {fault.name for fault in FAULTS}


def test_program_of_the_ranks_knows_nothing_of_pardbg() -> None:
    code = f"import runpy, sys; runpy.run_path({train.__file__!r}); print(*(name for name in sys.modules if 'pardbg' in name))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)

    assert shown.stdout.split() == []


def test_unknown_fault_is_refused_with_the_names_there_are() -> None:
    result = CliRunner().invoke(demo, ["--fault", "unheard-of"])

    assert isinstance(result.exception, InputError)
    assert "there is no planted fault 'unheard-of'; there are stops-joining, " in str(result.exception)


def test_folder_that_holds_something_is_refused(tmp_path: Path) -> None:
    (tmp_path / "report.json").touch()

    result = CliRunner().invoke(demo, ["--out", str(tmp_path)])

    assert isinstance(result.exception, InputError)
    assert str(result.exception) == f"{tmp_path} is not an empty folder"


def test_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    result = CliRunner().invoke(demo, ["--out", str(tmp_path / "file" / "folder")])

    assert isinstance(result.exception, InputError)
    assert str(result.exception) == f"cannot make {tmp_path}/file/folder: Not a directory"


@pytest.mark.parametrize(
    ("kind", "cause", "ranks", "is_right"),
    [
        (Kind.MISSING_PARTICIPANT, IO, (2,), True),
        (Kind.MISSING_PARTICIPANT, IO, (1,), False),
        (Kind.MISSING_PARTICIPANT, IO, (2, 3), False),
        (Kind.MISSING_PARTICIPANT, IO, (), False),
        (Kind.MISSING_PARTICIPANT, LOCK, (2,), False),
        (Kind.MISSING_PARTICIPANT, None, (2,), False),
        (Kind.DESYNC, None, (2,), False),
    ],
)
def test_verdict_is_right_with_the_planted_kind_cause_and_exactly_its_culprits(
    kind: Kind, cause: Cause | None, ranks: tuple[int, ...], *, is_right: bool
) -> None:
    culprits = tuple(Subject(scope=Scope.RANK, rank=rank) for rank in ranks)
    verdict = Finding(kind=kind, cause=cause, confidence=Confidence.SUPPORTED, culprits=culprits, claim="")

    assert fault_named("stops-joining").is_named_by(report_of(Status.HUNG, verdict)) is is_right


def test_control_is_named_by_a_healthy_report_alone() -> None:
    healthy = fault_named("healthy")

    assert healthy.is_named_by(report_of(Status.HEALTHY, None))
    assert not healthy.is_named_by(report_of(Status.UNDETERMINED, None))
    assert not fault_named("p2p").is_named_by(report_of(Status.HEALTHY, None))


@dataclass
class Demo:
    """`pardbg demo`, started.

    Attributes:
        temporary: its folder for temporary files, and its alone.
        seen: everything that it has started, by number, with the start time.
    """

    process: "subprocess.Popen[str]"
    temporary: Path
    seen: dict[int, int] = field(default_factory=dict)

    def watch_until(self, is_over: Callable[[], bool], deadline_s: float) -> None:
        """Remembers what runs below the demo until something is so."""
        deadline = time.monotonic() + deadline_s
        while not is_over():
            assert time.monotonic() < deadline, f"{len(self.seen)} processes seen"
            self.seen |= {pid: ticks for pid in descendants(self.process.pid) if (ticks := start_ticks(pid)) is not None}
            time.sleep(POLL_S)

    def living(self) -> set[int]:
        """What still runs of all that was seen, the demo itself apart."""
        return {pid for pid, ticks in self.seen.items() if start_ticks(pid) == ticks}


@pytest.fixture
def start_demo(tmp_path: Path) -> Iterator[Callable[..., Demo]]:
    """Starts the real command with its files in ``tmp_path / "out"``."""
    with tempfile.TemporaryDirectory() as temporary:  # a short path: sockets of loader workers go there
        started: list[subprocess.Popen[str]] = []

        def start(*arguments: str) -> Demo:
            command = [sys.executable, "-m", "pardbg", "demo", "--out", str(tmp_path / "out"), *arguments]
            env = {**os.environ, "TMPDIR": temporary}
            started.append(subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
            return Demo(started[-1], Path(temporary))

        yield start
        for process in started:
            process.kill()
            process.communicate()


@pytest.mark.parametrize(
    "fault", [pytest.param(fault, id=fault.name, marks=[] if fault.name in EVERYDAY else pytest.mark.slow) for fault in FAULTS]
)
def test_verdict_names_the_fault_and_nothing_of_the_job_stays(
    fault: PlantedFault, start_demo: Callable[..., Demo], tmp_path: Path
) -> None:
    run = start_demo("--fault", fault.name, "--json")
    run.watch_until(lambda: run.process.poll() is not None, DONE_S)
    output, errors = run.process.communicate()

    assert run.process.returncode == 0, output + errors
    assert f"planted: {fault.sentence}\nthe verdict names it; see {tmp_path}/out\n" in errors
    report: dict[str, Any] = json.loads(output)
    validate_report(report)
    assert (report["job"]["id"], report["job"]["source"], report["job"]["world_size"]) == ("demo", "torchrun", 4)
    assert len(run.seen) >= 6, "the warden, torchrun and its ranks"
    assert run.living() == set()
    assert json.loads((tmp_path / "out" / "report.json").read_text()) == report
    assert (tmp_path / "out" / "report.html").read_text().startswith("<!DOCTYPE html>")
    assert (tmp_path / "out" / "evidence.json").is_file()
    assert [path.name for path in (tmp_path / "out").iterdir() if not path.is_file()] == ["job"]
    assert list(run.temporary.iterdir()) == []
    assert fault.is_named_by(analyze_paths([tmp_path / "out"])), "the kept evidence gives the verdict again"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)])
def test_demo_that_is_ended_takes_its_job_with_it(number: int, code: int, start_demo: Callable[..., Demo]) -> None:
    """Torchrun, four ranks and their loader workers, one of the ranks stopped."""
    run = start_demo("--fault", "loader")
    run.watch_until(lambda: len(workers(run)) == 4, STARTED_S)
    os.kill(workers(run)[0], signal.SIGSTOP)
    run.process.send_signal(number)
    run.watch_until(lambda: run.process.poll() is not None, ENDED_S)

    assert run.process.returncode == code
    deadline = time.monotonic() + ENDED_S
    while (run.living() or any(run.temporary.iterdir())) and time.monotonic() < deadline:
        time.sleep(POLL_S)
    assert run.living() == set()
    assert list(run.temporary.iterdir()) == []


def test_job_that_ends_before_its_fault_is_explained_in_its_own_words(tmp_path: Path) -> None:
    fault = PlantedFault(name="unknown", sentence="no program has this name", kind=None, culprits=())

    with (
        pytest.raises(DemoError, match=r"ended before its fault came: train\.py: error: .*invalid choice: 'unknown'"),
        hung_job(fault, tmp_path, lambda _line: None),
    ):
        pytest.fail("there is no such job")


def workers(run: Demo) -> list[int]:
    """The loader workers among what runs below the demo: children of ranks."""
    return [pid for pid in descendants(run.process.pid) if command_name(pid) == "pt_data_worker"]


def command_name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def descendants(pid: int) -> Iterator[int]:
    """Parents before children."""
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found = [int(child) for child in path.read_text().split()]
        except OSError:
            continue
        for child in found:
            yield child
            yield from descendants(child)


def report_of(status: Status, verdict: Finding | None) -> Report:
    return Report(
        pardbg_version="0",
        job=Job(id=None, source=JobSource.FILES, world_size=4),
        status=status,
        verdict=verdict,
        findings=(verdict,) if verdict else (),
        set_aside=(),
        unknowns=(),
        coverage=Coverage(ranks_expected=4, ranks_seen=4, by_collector={}),
        layout=None,
        software=(),
        decided_at="2026-01-01T00:00:00Z",
        sampled_at=(),
        took_s=0.0,
        notes=(),
    )


@pytest.mark.slow
@pytest.mark.parametrize("fault", [DEFAULT_FAULT, "order", "p2p"])
def test_prepared_demo_is_right_where_nobody_may_trace_a_process(fault: str, tmp_path: Path) -> None:
    """Neither the job nor the scan of it may use ptrace, nor read another process's memory by its call."""
    filtered = [sys.executable, str(Path(__file__).with_name("refuse_ptrace.py")), "-m", "pardbg"]
    command = [*filtered, "demo", "--prepared", "--fault", fault, "--out", str(tmp_path / "out"), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=DONE_S)

    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)["coverage"]["by_collector"]
    assert seen["flight-recorder"] == 4
