"""What is read of GPUs, and what becomes of drivers that refuse, hang or lose a GPU."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pardbg.collectors.gpu.cards import CardSample
from pardbg.collectors.gpu.child import find_nvml_binding
from pardbg.collectors.gpu.gpus import MOST_LOST, Gpus
from pardbg.watchdog.model.names import AbsenceReason
from tests.gpu.driver import HANG_S, Driver, is_alive, library_path, reading, wait_for

WORKING = {
    "0.util": 97,
    "0.mem_util": 41,
    "0.power_mw": 612_500,
    "0.sm": 1755,
    "0.temp": 71,
    "0.mem_temp": 88,
    "0.reasons": 0x24,
    "0.used": 70 << 30,
    "0.replays": 5,
    "0.ecc": 2,
    "0.links": 4,
    "0.link_errors": 3,
    "0.pids": "4242,17",
}


def read(gpus: Gpus, index: int = 0) -> CardSample:
    """A GPU once it has been read."""
    wait_for(lambda: gpus.absence() is None and all(card.at_ns or card.problem for card in gpus.latest()))
    return gpus.latest()[index]


def seen_by(gpus: Gpus, uuid: str) -> int:
    return len(gpus.series(uuid))


def test_everything_that_nvml_tells_is_read(driver: Driver) -> None:
    driver.say(WORKING)
    with reading() as gpus:
        card = read(gpus)
        assert gpus.driver == "550.54.15"

    assert (card.uuid, card.pci_bus_id) == ("GPU-00000000-1111-2222-3333-444444444444", "00000000:1B:00.0")
    assert (card.util, card.mem_util, card.power_w, card.power_limit_w) == (97, 41, 612.5, 700.0)
    assert (card.sm_clock_mhz, card.clock_reasons, card.temperature_c) == (1755, 0x24, 71)
    condition = card.condition
    assert (condition.memory_temperature_c, condition.used_bytes, condition.total_bytes) == (88, 70 << 30, 80 << 30)
    assert (condition.pcie_replays, condition.ecc_uncorrected, condition.nvlink_errors) == (5, 2, 3)
    assert (condition.up_links, condition.pids, condition.denied) == ((0, 1, 2, 3), (17, 4242), ())


def test_what_a_gpu_does_not_support_is_unknown_and_no_error(driver: Driver) -> None:
    unsupported = ("power", "util", "ecc", "fields", "pids", "replays", "rows", "reasons", "migmode")
    driver.say(WORKING | {f"0.error.{call}": 3 for call in unsupported})
    with reading() as gpus:
        card = read(gpus)

    assert (card.util, card.power_w, card.clock_reasons) == (None, None, None)
    assert (card.condition.ecc_uncorrected, card.condition.pids, card.condition.nvlink_errors) == (None, None, None)
    assert (card.sm_clock_mhz, card.temperature_c, card.problem) == (1755, 71, "")


def test_a_driver_of_some_years_ago_is_read_by_its_older_calls(
    driver: Driver, libraries: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", library_path(libraries / "old"))
    driver.say(WORKING)
    with reading() as gpus:
        card = read(gpus)

    assert (card.clock_reasons, card.temperature_c, card.condition.used_bytes) == (0x24, 71, 70 << 30)
    assert card.condition.pids == (17, 4242)


def test_refused_calls_are_named_and_the_rest_is_read(driver: Driver) -> None:
    driver.say({**WORKING, "0.error.pids": 4, "1.error.handle": 4})
    with reading() as gpus:
        card, other = read(gpus), read(gpus, 1)

    assert (card.util, card.condition.pids) == (97, None)
    assert card.condition.denied == ("nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2")
    assert other.problem == "Insufficient Permissions"


@pytest.mark.parametrize(
    ("code", "reason", "words"),
    [
        (9, AbsenceReason.NOT_INSTALLED, "no NVIDIA driver is loaded"),
        (4, AbsenceReason.DENIED, "NVML refuses us"),
        (18, AbsenceReason.UNSUPPORTED, "reboot the node"),
        (999, AbsenceReason.UNREADABLE, "Unknown Error"),
    ],
)
def test_a_driver_that_refuses_is_an_absence(driver: Driver, code: int, reason: AbsenceReason, words: str) -> None:
    driver.say({"init": code})
    with reading() as gpus:
        wait_for(lambda: not gpus.is_opening)
        absence = gpus.absence()

    assert absence is not None
    assert absence.reason is reason
    assert words in absence.detail


def test_without_a_driver_there_is_an_absence_and_without_gpus_another(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    driver.say({"cards": 0})
    with reading() as gpus:
        wait_for(lambda: not gpus.is_opening)
        absence = gpus.absence()
    assert absence is not None
    assert absence.reason is AbsenceReason.EMPTY

    monkeypatch.setenv("LD_LIBRARY_PATH", "/nowhere")
    with reading() as gpus:
        wait_for(lambda: not gpus.is_opening)
        absence = gpus.absence()
    assert absence is not None
    assert absence.reason is AbsenceReason.NOT_INSTALLED


def test_a_gpu_that_is_lost_says_so_keeps_its_name_and_stops_nobody(driver: Driver) -> None:
    driver.say(WORKING)
    with reading() as gpus:
        uuid = read(gpus).uuid or ""
        driver.say({"0.error": 15})
        lost = wait_for(lambda: next((card for card in gpus.latest() if card.is_lost), None))
        before = seen_by(gpus, gpus.latest()[1].key)
        wait_for(lambda: seen_by(gpus, gpus.latest()[1].key) > before)
        assert seen_by(gpus, uuid) > 0

        assert (lost.index, lost.uuid, lost.problem, lost.util) == (0, uuid, "GPU is lost", None)
        assert lost.condition.pids == (17, 4242)

        driver.say({"0.error": None})
        wait_for(lambda: not gpus.latest()[0].is_lost)


def test_xid_errors_are_heard_also_after_a_gpu_is_lost(driver: Driver) -> None:
    driver.say({"1.xid": "31 1"})
    with reading() as gpus:
        read(gpus)
        driver.say({"1.xid": "94 2"})
        wait_for(gpus.events)
        ((key, xid),) = gpus.events()

    assert (key, xid.code) == ("GPU-00000001-1111-2222-3333-444444444444", 94)  # not the one before we looked


def test_the_gpu_that_hangs_the_driver_is_named_and_the_others_are_read_on(driver: Driver) -> None:
    driver.say({"cards": 3})
    with reading(silence_s=HANG_S) as gpus:
        read(gpus)
        first_child = gpus.pid
        driver.say({"1.hang": "power"})
        silent = wait_for(lambda: next((card for card in gpus.latest() if card.is_silent), None))
        others = [card.key for card in gpus.latest() if card.index != 1]
        before = [seen_by(gpus, key) for key in others]
        wait_for(lambda: all(seen_by(gpus, key) > count for key, count in zip(others, before, strict=True)))

        assert (silent.index, silent.uuid is not None) == (1, True)
        assert silent.problem == "no answer within 1 s: the driver hangs"
        assert gpus.absence() is None
        assert gpus.pid != first_child
        assert not is_alive(first_child or 0)


def test_a_driver_that_hangs_at_once_is_left_alone_after_some_children(driver: Driver) -> None:
    driver.say({"hang": "init"})
    pids = set()
    with Gpus(period_s=0.02, silence_s=0.2, opening_s=0.2) as gpus:

        def is_left_alone() -> bool:
            pids.add(gpus.pid)
            absence = gpus.absence()
            return absence is not None and "not asked any more" in absence.detail

        wait_for(is_left_alone)
        absence = gpus.absence()

    assert absence is not None
    assert absence.reason is AbsenceReason.TIMED_OUT
    assert len(pids - {None}) <= MOST_LOST
    assert not any(is_alive(pid) for pid in pids if pid)


def test_a_slow_driver_is_no_hang(driver: Driver) -> None:
    driver.say({"0.slow_ms": 5})
    with reading() as gpus:
        child = wait_for(lambda: gpus.pid)
        card = read(gpus)
        wait_for(lambda: seen_by(gpus, card.key) >= 3)
        assert gpus.pid == child


def test_gpus_in_mig_instances_tell_their_processes(driver: Driver) -> None:
    driver.say({"0.mig": 1, "0.error.util": 3, "0.pids": "77"})
    with reading() as gpus:
        card = read(gpus)

    assert (card.util, card.condition.is_shared, card.condition.pids) == (None, True, (77,))


def test_links_that_go_down_are_told_from_links_that_never_were(driver: Driver) -> None:
    driver.say({"0.links": 4, "0.down": 3})
    with reading(period_s=0.02) as gpus:
        assert read(gpus).down_links == ()
        driver.say({"0.down": 1})
        down = wait_for(lambda: gpus.latest()[0].down_links)

    assert down == (1,)


def test_the_child_ends_with_its_parent_also_where_the_driver_hangs(driver: Driver) -> None:
    driver.say({"0.hang": "power"})
    program = (
        "from pardbg.collectors.gpu.gpus import Gpus; import time; gpus = Gpus(); gpus.start()\n"
        "while gpus.pid is None: time.sleep(0.01)\n"
        "print(gpus.pid, flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, env=dict(os.environ)) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert is_alive(child)
        parent.send_signal(signal.SIGKILL)
    wait_for(lambda: not is_alive(child))


def test_nothing_of_ours_is_imported_that_costs_memory_and_pynvml_is_only_found(driver: Driver) -> None:
    del driver
    binding = find_nvml_binding()
    assert binding is not None
    code = (
        f"import sys; sys.path += {[str(Path(__file__).parents[2] / 'src'), binding]!r}\n"
        "import pardbg.collectors.gpu.nvml_child, pynvml; print('msgspec' in sys.modules)"
    )
    shown = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout == "False\n"
