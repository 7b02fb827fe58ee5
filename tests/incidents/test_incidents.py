"""The whole of it, as an agent uses it: with files, threads and a receiver that comes and goes."""

import shutil
import threading
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from pardbg.watchdog.incidents.clock import Clock
from pardbg.watchdog.incidents.incidents import Incidents
from pardbg.watchdog.incidents.reading import opened
from pardbg.watchdog.incidents.receivers import Receiver, ReceiverKind
from pardbg.watchdog.incidents.worker import Worker
from pardbg.watchdog.model.incident import Incident, IncidentState
from tests.incidents.making import hook, report

WORLD = "10.0.0.1:29500|40|0"
DAY_S = 86400.0


def scanned(folder: Path | None) -> Path:
    assert folder is not None
    folder.mkdir(mode=0o700)
    (folder / "report.json").write_text("{}\n")
    return folder


def kept(folder: Path) -> list[Incident]:
    with opened(folder) as reading:
        return list(reading.all())


def test_one_incident_a_hang_from_its_scan_to_its_end(tmp_path: Path) -> None:
    agent = Incidents(tmp_path, "n1")
    first = agent.keep(WORLD, report(), scanned(agent.new_folder(WORLD)))
    again = agent.keep(WORLD, report("desync"), scanned(agent.new_folder(WORLD)))
    unnamed = replace(report("healthy"), job=replace(report("healthy").job, id=None))
    other = agent.keep("w2", unnamed, job="pid-17")
    assert agent.wait(5)
    assert (first.id, first.opened_at) == (again.id, again.opened_at)
    assert other.job == "pid-17"
    assert [one.report.status.value for one in kept(tmp_path)] == ["hung", "healthy"]
    assert agent.evidence_of(first.id) == tmp_path / "evidence" / first.id
    assert agent.evidence_of(other.id) is None
    assert agent.adopt(WORLD) == again
    agent.close()

    later = Incidents(tmp_path, "n1")
    assert later.adopt(WORLD) == again
    assert {one.id for one in later.open_ones()} == {first.id, other.id}
    assert later.keep(WORLD, report()).id == first.id
    later.end(WORLD)
    assert later.recover("w2") is not None
    assert later.recover("w2") is None
    assert later.adopt(WORLD) is None
    second = later.keep(WORLD, report())
    assert later.wait(5)
    assert {one.id: one.state for one in kept(tmp_path)} == {
        first.id: IncidentState.ENDED,
        other.id: IncidentState.RECOVERED,
        second.id: IncidentState.OPEN,
    }
    told = later.adopt(WORLD)
    assert told is not None
    assert told.report.notes[-1] == f"a culprit was on host gpu-n05 in 1 earlier incident: {first.id} (checkpoint-io)"
    later.close()


def test_scan_that_found_nothing_or_could_not_save_leaves_nothing(tmp_path: Path) -> None:
    agent = Incidents(tmp_path, "n1")
    agent.drop(scanned(agent.new_folder(WORLD)))
    agent.drop(None)
    folder = scanned(agent.new_folder(WORLD))
    (folder / "report.json").write_text("{")
    one = agent.keep(WORLD, report(), folder)
    assert agent.wait(5)
    assert "could not save all" in agent.problems["evidence"]
    assert list(tmp_path.glob("evidence/*")) == []
    assert [incident.id for incident in kept(tmp_path)] == [one.id]
    agent.close()


def test_hang_that_is_found_when_the_last_one_is_just_over_is_another(tmp_path: Path) -> None:
    agent = Incidents(tmp_path, "n1")
    first = agent.keep(WORLD, report())
    folder = scanned(agent.new_folder(WORLD))
    agent.recover(WORLD)  # while the second scan runs
    second = agent.keep(WORLD, report(), folder)
    assert agent.wait(5)
    assert first.id != second.id
    assert [one.state.value for one in kept(tmp_path)].count("open") == 1
    assert agent.evidence_of(first.id) is None
    assert agent.evidence_of(second.id) is not None
    agent.close()


def test_what_is_old_goes_and_what_is_open_stays(tmp_path: Path) -> None:
    agent = Incidents(tmp_path, "n1", clock=Clock(speed=DAY_S))  # a day a second
    old = agent.keep("old", report(), scanned(agent.new_folder("old")))
    lasting = agent.keep("lasting", report(), scanned(agent.new_folder("lasting")))
    agent.end("old")
    assert agent.wait(5)
    agent._clock._began_wall_s += 40 * DAY_S
    agent._tidy_at_s = 0
    agent.tick()
    assert agent.wait(5)
    assert [one.id for one in kept(tmp_path)] == [lasting.id]
    assert agent.evidence_of(old.id) is None
    assert agent.evidence_of(lasting.id) is not None
    agent.close()


def test_receiver_that_is_away_for_an_hour_is_told_all_in_order_when_it_is_back(tmp_path: Path) -> None:
    with hook() as away:
        port, url = away.port, away.url
    receiver = Receiver(kind=ReceiverKind.WEBHOOK, url=url)
    clock = Clock(speed=3000.0)
    agent = Incidents(tmp_path, "n1", [receiver, receiver], clock)
    worlds = [f"world {number}" for number in range(5)]
    began_s = clock.steady_s()
    for world in worlds:
        agent.keep(world, report())
        agent.keep(world, report())  # says the same: nobody is told twice
        agent.keep(world, report("desync"))
    for world in worlds[:3]:
        agent.end(world)
    assert agent.wait(5)
    while clock.steady_s() - began_s < 3600:
        time.sleep(0.05)
    assert agent.unsent == 13
    assert "refused" in agent.problems["notifications"]
    agent.close()

    with hook(port) as back:  # and another agent
        agent = Incidents(tmp_path, "n1", [receiver], clock)
        told = back.wait_for(13)
        deadline_s = time.monotonic() + 5
        while agent.unsent and time.monotonic() < deadline_s:
            time.sleep(0.01)
        assert (agent.unsent, agent.counts["notifications"], agent.problems) == (0, 13, {})
        agent.close()
    by_incident: dict[str, list[str]] = {}
    for body in told:
        by_incident.setdefault(body["id"], []).append(body["event"])
    assert sorted(by_incident.values()) == [["opened", "updated"]] * 2 + [["opened", "updated", "ended"]] * 3
    assert told[0]["report"]["verdict"]["claim"]


def test_work_that_hangs_is_told_and_a_mistake_does_not_end_it() -> None:
    worker = Worker("test")
    gate = threading.Event()

    def mistake() -> None:
        raise IndexError

    def hang() -> None:
        gate.wait(10)

    worker.do(mistake)
    worker.do(hang)
    assert not worker.wait(0.05)
    assert "IndexError" in worker.fault
    assert worker.slow_s == 0
    assert not worker.close(0.05)
    gate.set()
    assert worker.close(5)


def test_folder_of_evidence_that_was_removed_is_made_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    agent = Incidents(tmp_path / "state", "n1")
    agent.keep("old", report())
    assert agent.wait(5)
    gone = agent.new_folder(WORLD)
    shutil.rmtree(tmp_path / "state")
    for _ in range(2):  # as a scan that could not save anything
        agent.keep(WORLD, report(), gone)
    assert agent.wait(5)
    assert [record.message for record in caplog.records if "could not save" in record.message] == [agent.problems["evidence"]]
    assert "agent.lock is gone, too" in agent.problems["store_before"]
    agent._settle_at_s = 0
    agent.tick()
    assert agent.wait(5)
    agent.keep(WORLD, report(), scanned(agent.new_folder(WORLD)))
    assert agent.wait(5)
    assert len(list((tmp_path / "state" / "evidence").iterdir())) == 1
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700
    agent.close()
