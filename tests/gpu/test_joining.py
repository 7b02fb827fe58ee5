"""Which GPU is which rank's, and what a short look of a scan gives."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from pardbg.collectors.gpu.cards import CardSample
from pardbg.collectors.gpu.evidence import describe_devices
from pardbg.collectors.gpu.joining import join
from pardbg.collectors.gpu.looking import looking_at_devices, users_of_devices
from pardbg.collectors.gpu.messages import Condition
from pardbg.collectors.node.devices import try_devices
from pardbg.watchdog.model.device import DeviceJoin, DeviceSeen, DeviceShape
from pardbg.watchdog.model.evidence import Absence, Evidence, Observation
from pardbg.watchdog.model.names import AbsenceReason, CollectorName
from pardbg.watchdog.model.process import ProcessSample
from pardbg.watchdog.model.world import RankProcess
from tests.gpu.driver import HANG_S, Driver, reading, wait_for

RANKS = tuple(RankProcess(rank=8 + n, pid=100 + n, started_ticks=1, host="h1", local_rank=n) for n in range(3))


def cards(*pids: tuple[int, ...] | None) -> list[CardSample]:
    return [CardSample(index=index, condition=Condition(pids=found)) for index, found in enumerate(pids)]


def joined(ranks: tuple[RankProcess, ...], seen: list[CardSample]) -> dict[int, tuple[int, DeviceJoin]]:
    return {rank: (card.index, how) for rank, (card, how) in join(ranks, seen).items()}


def test_the_process_list_tells_whose_gpu_it_is() -> None:
    pid = DeviceJoin.PID
    assert joined(RANKS, cards((102,), (101, 7), (100,))) == {8: (2, pid), 9: (1, pid), 10: (0, pid)}


def test_the_last_gpu_belongs_to_the_last_rank() -> None:
    assert joined(RANKS, cards((100,), None, (102,)))[9] == (1, DeviceJoin.ELIMINATION)
    assert 9 not in joined(RANKS, cards((100,), (55,), (102,)))  # somebody else's
    assert 9 not in joined(RANKS, cards((100,), None, (102,), ()))  # two are free


def test_the_local_rank_is_a_guess_where_nobody_is_named_and_nobody_else_is_there() -> None:
    guess = DeviceJoin.LOCAL_RANK
    assert joined(RANKS, cards(None, None, None, None)) == {8: (0, guess), 9: (1, guess), 10: (2, guess)}
    assert joined(RANKS, cards((9001,), (9002,), (9003,))) == {}  # pids of another namespace
    assert joined(RANKS, cards(None, None)) == {}
    assert joined((RANKS[0], replace(RANKS[1], local_rank=0)), cards(None, None)) == {}


def looked(rank: int, observation: Observation) -> Evidence:
    return Evidence(source=CollectorName.HOST, rank=rank, host="h1", observation=observation, origin="/proc")


def using(rank: int, *, uses_device: bool = True) -> Evidence:
    return looked(rank, ProcessSample(pid=rank, started_ticks=1, state="S", uses_device=uses_device))


def test_gpus_are_looked_at_only_where_a_rank_has_one_open(tmp_path: Path) -> None:
    denied = Absence(reason=AbsenceReason.DENIED, detail="")
    node = tmp_path / "nvidiactl"
    on_cpus = [using(rank.rank, uses_device=False) for rank in RANKS]

    assert users_of_devices(RANKS, on_cpus, node) == []
    assert users_of_devices(RANKS, [*on_cpus, looked(9, denied)], node) == []
    node.touch()
    assert users_of_devices(RANKS, on_cpus, node) == []
    assert users_of_devices(RANKS, [*on_cpus, looked(9, denied)], node) == [RANKS[1]]
    assert users_of_devices(RANKS, [using(8), using(10, uses_device=False)], node) == [RANKS[0], RANKS[1]]  # 9: no answer


def test_a_scan_of_a_job_on_processors_asks_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", "/nowhere")
    with looking_at_devices(RANKS, [using(rank.rank, uses_device=False) for rank in RANKS], 0) as finish:
        assert finish() == ()


def test_a_scan_sees_what_the_gpus_of_ranks_do(driver: Driver) -> None:
    driver.say({"cards": 3, "0.pids": 100, "1.pids": 101, "2.pids": 102, "0.util": 100, "1.error": 15, "1.error.uuid": 15})
    with looking_at_devices(RANKS, [using(rank.rank) for rank in RANKS], 1) as finish:
        found = {item.rank: item for item in finish()}

    seen = {rank: item.observation for rank, item in found.items() if isinstance(item.observation, DeviceSeen)}
    assert {item.source for item in found.values()} == {CollectorName.GPU}
    assert (seen[8].shape, seen[8].uuid, seen[8].sample) == (
        DeviceShape.SPINNING,
        "GPU-00000000-1111-2222-3333-444444444444",
        1,
    )
    assert (seen[9].shape, seen[9].problem, seen[9].joined_by) == (DeviceShape.LOST, "GPU is lost", DeviceJoin.ELIMINATION)
    assert (seen[10].shape, seen[10].pci_bus_id) == (DeviceShape.IDLE, "00000000:1D:00.0")


def test_whoever_reads_gpus_all_the_time_is_asked_instead_of_a_child(driver: Driver) -> None:
    driver.say({"0.pids": 100, "0.util": 100})
    with reading() as held:
        wait_for(lambda: held.absence() is None and all(card.at_ns for card in held.latest()))
        driver.say({"init": 9})  # another child would be refused
        with looking_at_devices(RANKS[:1], [using(8)], 0, held) as finish:
            (item,) = finish()
    assert isinstance(item.observation, DeviceSeen)


def test_a_scan_says_why_gpus_were_not_seen(driver: Driver) -> None:
    driver.say({"init": 9})
    with looking_at_devices(RANKS, [using(rank.rank) for rank in RANKS], 0) as finish:
        (item,) = finish()
    assert (item.rank, item.host) == (None, "h1")
    assert item.observation == Absence(reason=AbsenceReason.NOT_INSTALLED, detail="no NVIDIA driver is loaded")


def test_ranks_without_a_gpu_a_silent_gpu_and_refused_calls_are_absences(driver: Driver) -> None:
    driver.say({"cards": 2, "0.pids": 100, "1.pids": 101, "0.error.ecc": 4})
    with reading(silence_s=HANG_S) as gpus:
        wait_for(lambda: gpus.absence() is None and all(card.at_ns for card in gpus.latest()))
        driver.say({"1.hang": "power"})
        wait_for(lambda: any(card.is_silent for card in gpus.latest()))
        found = [(item.rank, item.observation) for item in describe_devices(gpus, RANKS, 0)]

    absences = {rank: (seen.reason, seen.detail) for rank, seen in found if isinstance(seen, Absence) and rank is not None}
    others = [(seen.reason, seen.detail) for rank, seen in found if isinstance(seen, Absence) and rank is None]
    assert absences == {
        9: (
            AbsenceReason.TIMED_OUT,
            "GPU 1 (00000000:1C:00.0) does not answer: no answer within 1 s: the driver hangs",
        )
    }
    assert [reason for reason, _ in others] == [AbsenceReason.DENIED, AbsenceReason.UNSUPPORTED]
    assert "nvmlDeviceGetTotalEccErrors" in others[0][1]
    assert "no GPU names a process of rank 10" in others[1][1]


def test_the_doctor_sees_the_gpus(driver: Driver, tmp_path: Path) -> None:
    driver.say({"cards": 2, "1.error.handle": 15})
    (tmp_path / "nvidiactl").touch()
    trial = try_devices(tmp_path / "nvidiactl", within_s=8.0)
    assert (trial.has_node, trial.driver, trial.absence) == (True, "550.54.15", None)
    assert [card.problem for card in trial.cards] == ["", "GPU is lost"]
