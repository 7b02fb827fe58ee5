"""Folders of probes, whole and hostile, and what a look at them gives."""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pardbg.collectors.live.probe.members import name_members
from pardbg.collectors.live.probe.probes import Probes, read_probes
from pardbg.collectors.parsing.saved_evidence import encode_evidence, parse_evidence
from pardbg.collectors.probe.page_format import StepRecord
from pardbg.collectors.probe.places import GROUPS_FILE, PAGE_FILE, RANK_FILE
from pardbg.watchdog.graph.groups import find_groups
from pardbg.watchdog.model.evidence import Absence, Evidence, FlightRecording
from pardbg.watchdog.model.heartbeat import Heartbeat
from pardbg.watchdog.model.names import AbsenceReason, CollectorName
from pardbg.watchdog.model.recording import GroupConfig, GroupName, GroupProgress, Recording
from pardbg.watchdog.model.world import RankProcess
from pardbg.watchdog.store.view import EvidenceView
from tests.collectors.probe_pages import page_of

NOBODY = 65534
PID, TICKS = 77, 123
STEP = StepRecord(12, 10**18, 5 * 10**8, 10**9, 1, 1)
BOOT_ID = Path("/proc/sys/kernel/random/boot_id").read_text().strip()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / f"{PID}-{TICKS}"
    made.mkdir(mode=0o700)
    (made / PAGE_FILE).write_bytes(page_of(STEP, pid=PID))
    (made / GROUPS_FILE).write_text('{"name": "0", "desc": "default_pg", "runs": [[0, 1, 4]]}\n{"name": "cut')
    write_rank(made)
    return made


def write_rank(folder: Path, **changes: object) -> None:
    own = {"schema": "pardbg.rank/1", "pid": PID, "started_ticks": TICKS, "boot_id": BOOT_ID, "oom_kills": 2}
    (folder / RANK_FILE).write_text(json.dumps(own | changes))


def look(folder: Path, *, uid: int | None = None, is_at_home: bool = True, within_s: float = 20.0) -> Probes:
    rank = RankProcess(
        rank=3,
        pid=PID,
        started_ticks=TICKS,
        host="node1",
        uid=os.getuid() if uid is None else uid,
        recorder={"PARDBG_DIR": str(folder.parent)},
        is_at_home=is_at_home,
    )
    return read_probes([rank], 1, within_s=within_s)


def absences(probes: Probes) -> list[tuple[AbsenceReason, str]]:
    seen = [item.observation for item in probes.evidence]
    return [(item.reason, item.detail) for item in seen if isinstance(item, Absence)]


def test_probe_gives_a_heartbeat_its_groups_and_its_own_words(folder: Path) -> None:
    probes = look(folder)

    (item,) = probes.evidence
    assert isinstance(item.observation, Heartbeat)
    assert (item.source, item.rank, item.host, item.origin) == (CollectorName.HOST, 3, "node1", f"{folder}/page")
    assert (item.observation.sample, item.observation.step, item.observation.oom_kills) == (1, 12, 2)
    assert [group.ranks for group in probes.groups[3]] == [(0, 1, 2, 3)]
    assert probes.own[3].pid == PID
    assert parse_evidence(encode_evidence(probes.evidence)) == probes.evidence


def test_rank_without_a_probe_is_no_absence(tmp_path: Path) -> None:
    assert look(tmp_path / "none") == Probes()


def test_rank_that_has_ended_in_another_mount_namespace_is_gone(folder: Path) -> None:
    assert [reason for reason, _ in absences(look(folder, is_at_home=False))] == [AbsenceReason.GONE]


def test_folder_of_an_earlier_boot_is_none(folder: Path) -> None:
    write_rank(folder, boot_id="another")
    assert look(folder) == Probes()


def test_rank_that_has_no_groups_yet_has_a_heartbeat(folder: Path) -> None:
    (folder / GROUPS_FILE).unlink()
    probes = look(folder)

    assert len(probes.evidence) == 1
    assert probes.groups == {}


def test_probe_that_has_not_said_who_it_is_is_an_absence(folder: Path) -> None:
    (folder / RANK_FILE).unlink()
    ((reason, detail),) = absences(look(folder))

    assert reason is AbsenceReason.EMPTY
    assert "who it is" in detail


def test_words_of_another_process_are_not_believed(folder: Path) -> None:
    write_rank(folder, pid=PID + 1)
    probes = look(folder)

    assert [reason for reason, _ in absences(probes)] == [AbsenceReason.UNREADABLE]
    assert probes.own == {}


def test_page_of_another_process_is_not_believed_and_the_groups_stay(folder: Path) -> None:
    (folder / PAGE_FILE).write_bytes(page_of(STEP, pid=PID + 1))
    probes = look(folder)

    assert [reason for reason, _ in absences(probes)] == [AbsenceReason.UNREADABLE]
    assert list(probes.groups) == [3]


@pytest.mark.parametrize("name", [RANK_FILE, PAGE_FILE, GROUPS_FILE])
@pytest.mark.parametrize("trap", ["fifo", "link", "folder", "owner", "large"])
def test_traps_are_absences_and_never_opened(folder: Path, name: str, trap: str) -> None:
    path = folder / name
    kept = path.read_bytes()
    if trap != "owner":
        path.unlink()
    match trap:
        case "fifo":
            os.mkfifo(path)
        case "link":
            (folder / "elsewhere").write_bytes(kept)
            path.symlink_to(folder / "elsewhere")
        case "folder":
            path.mkdir()
        case "owner":
            os.chown(path, NOBODY, NOBODY)
        case "large":
            path.touch()
            os.truncate(path, 10**9)
    began_s = time.monotonic()
    found = absences(look(folder))

    assert len(found) == 1, found
    assert name in found[0][1]
    assert time.monotonic() - began_s < 5


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o707])
def test_folder_that_others_may_use_is_not_believed(folder: Path, mode: int) -> None:
    folder.chmod(mode)
    probes = look(folder)

    assert [reason for reason, _ in absences(probes)] == [AbsenceReason.SKIPPED]
    assert (probes.own, probes.groups) == ({}, {})


def test_folder_of_another_user_or_a_link_to_one_is_not_believed(folder: Path) -> None:
    assert [reason for reason, _ in absences(look(folder, uid=NOBODY))] == [AbsenceReason.SKIPPED]
    moved = folder.rename(folder.parent / "moved")
    folder.symlink_to(moved)
    assert [reason for reason, _ in absences(look(folder))] == [AbsenceReason.SKIPPED]


def recording(*configs: GroupConfig) -> Recording:
    return Recording(
        version="2.10",
        library_version="",
        groups=(GroupName(name="0", desc="default_pg"), GroupName(name="1", desc="dp")),
        signatures=(),
        sites=(),
        operations=(),
        configs=configs,
        progress=(GroupProgress(local_id="0", last_enqueued=1, last_completed=1),),
        local_ids={},
    )


def recorded(rank: int, *configs: GroupConfig) -> Evidence:
    seen = FlightRecording(recording=recording(*configs))
    return Evidence(source=CollectorName.FLIGHT_RECORDER, rank=rank, observation=seen, origin="socket")


def made(*lines: tuple[str, str, list[int]]) -> tuple[GroupConfig, ...]:
    return tuple(GroupConfig.of(name, desc, ranks) for name, desc, ranks in lines)


def configs_of(items: list[Evidence]) -> Iterator[list[tuple[str, tuple[int, ...]]]]:
    for item in items:
        assert isinstance(item.observation, FlightRecording)
        yield [(config.name, config.ranks) for config in item.observation.recording.configs]


def test_members_that_probes_name_make_a_group_known() -> None:
    groups = made(("0", "default_pg", [0, 1, 2, 3]), ("1", "dp", [0, 2]), ("1", "dp", [1, 3]))
    items = name_members([recorded(rank) for rank in range(4)], dict.fromkeys(range(4), groups))
    found = find_groups(EvidenceView.of(items))

    assert [(group.name, group.ranks, group.is_inferred, group.claims) for group in found.groups] == [
        ("0", (0, 1, 2, 3), False, {}),
        ("1", (0, 2), False, {}),
        ("1", (1, 3), False, {}),
    ]
    without = find_groups(EvidenceView.of([recorded(rank) for rank in range(4)]))
    assert [group.is_inferred for group in without.groups if group.name == "1"] == [True]


def test_of_two_groups_with_one_name_the_later_counts_and_of_two_tellers_the_recorder() -> None:
    twice = made(("1", "dp", [0, 1]), ("1", "dp", [0, 2]))
    (later,) = configs_of(name_members([recorded(0)], {0: twice}))
    assert later == [("1", (0, 2))]

    (own,) = configs_of(name_members([recorded(0, GroupConfig.of("1", "dp", [0, 3]))], {0: twice}))
    assert own == [("1", (0, 3))]

    (empty,) = configs_of(name_members([recorded(0, GroupConfig.of("1", "dp", []))], {0: twice}))
    assert empty == [("1", (0, 2))]
