"""`pardbg demo`: what it refuses, what it lists, and when it says that the verdict is right."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from pardbg.watchdog.commands.demo import demo
from pardbg.watchdog.demo.faults import FAULTS, fault_named
from pardbg.watchdog.errors import InputError
from pardbg.watchdog.model.names import Confidence, JobSource, Kind, Scope, Status
from pardbg.watchdog.model.report import Coverage, Finding, Job, Report, Subject

pytestmark = pytest.mark.live


def test_list_names_every_fault() -> None:
    result = CliRunner().invoke(demo, ["--list"])

    assert result.exit_code == 0
    assert [line.split()[0] for line in result.output.splitlines()] == [fault.name for fault in FAULTS]


def test_unknown_fault_is_refused_with_the_names_there_are() -> None:
    result = CliRunner().invoke(demo, ["--fault", "unheard-of"])

    assert isinstance(result.exception, InputError)
    assert "there is no planted fault 'unheard-of'; there are stops-joining, " in str(result.exception)


def test_folder_that_holds_something_is_refused(tmp_path: Path) -> None:
    (tmp_path / "report.json").touch()

    result = CliRunner().invoke(demo, ["--out", str(tmp_path)])

    assert isinstance(result.exception, InputError)
    assert str(result.exception) == f"{tmp_path} is not an empty folder"


@pytest.mark.parametrize(
    ("kind", "ranks", "is_right"),
    [
        (Kind.MISSING_PARTICIPANT, (2,), True),
        (Kind.MISSING_PARTICIPANT, (1,), False),
        (Kind.MISSING_PARTICIPANT, (2, 3), False),
        (Kind.MISSING_PARTICIPANT, (), False),
        (Kind.DESYNC, (2,), False),
    ],
)
def test_verdict_is_right_with_the_planted_kind_and_exactly_its_culprits(
    kind: Kind, ranks: tuple[int, ...], *, is_right: bool
) -> None:
    culprits = tuple(Subject(scope=Scope.RANK, rank=rank) for rank in ranks)
    verdict = Finding(kind=kind, confidence=Confidence.SUPPORTED, culprits=culprits, claim="")

    assert fault_named("stops-joining").is_named_by(report_of(Status.HUNG, verdict)) is is_right


def test_control_is_named_by_a_healthy_report_alone() -> None:
    healthy = fault_named("healthy")

    assert healthy.is_named_by(report_of(Status.HEALTHY, None))
    assert not healthy.is_named_by(report_of(Status.UNDETERMINED, None))
    assert not fault_named("p2p").is_named_by(report_of(Status.HEALTHY, None))


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
