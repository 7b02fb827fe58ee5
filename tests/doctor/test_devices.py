"""What the doctor says of GPUs: none is no hindrance, one that cannot be seen is."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from pardbg.collectors.gpu.cards import CardSample
from pardbg.collectors.gpu.messages import NO_PERMISSION, Condition, Refused, explain_refusal
from pardbg.collectors.node.devices import DevicesTrial, try_devices
from pardbg.watchdog.doctor.check import Check, State
from pardbg.watchdog.doctor.devices import check_gpus
from tests.doctor.machines import machine, only

CARDS = tuple(CardSample(index=index, pci_bus_id=f"00000000:{27 + index:02X}:00.0") for index in range(8))


def checked(trial: DevicesTrial) -> Check:
    return only(check_gpus(replace(machine(), devices=trial)))


@pytest.mark.parametrize(
    ("trial", "state", "seen"),
    [
        (DevicesTrial(), State.OK, "no NVIDIA GPU here"),
        (DevicesTrial(has_node=True, cards=CARDS), State.OK, "8 GPUs answer through NVML"),
        (
            DevicesTrial(has_node=True, absence=explain_refusal(Refused(code=NO_PERMISSION, words=""))),
            State.LIMITS,
            "NVML refuses us: /dev/nvidiactl may not be opened; let pardbg use the devices",
        ),
        (
            DevicesTrial(has_node=True, cards=(replace(CARDS[0], is_lost=True, problem="GPU is lost"), *CARDS[1:])),
            State.LIMITS,
            "of 8 GPUs GPU 0 (00000000:1B:00.0): GPU is lost",
        ),
        (
            DevicesTrial(has_node=True, cards=(replace(CARDS[0], condition=Condition(denied=("nvmlX",))),)),
            State.LIMITS,
            "1 GPU answers, but the driver refuses nvmlX",
        ),
    ],
)
def test_what_is_said_of_gpus(trial: DevicesTrial, state: State, seen: str) -> None:
    check = checked(trial)
    assert (check.name, check.state, check.seen) == ("gpu", state, seen)
    assert (check.cost is None) is (state is State.OK)


def test_without_the_device_node_no_process_is_started(tmp_path: Path) -> None:
    assert try_devices(tmp_path / "nvidiactl") == DevicesTrial()
