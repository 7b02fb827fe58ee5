"""Whether NVML says what the GPUs do. Pure."""

from collections.abc import Iterator

from pardbg.collectors.gpu.evidence import name_card
from pardbg.collectors.node.devices import DevicesTrial
from pardbg.collectors.node.surroundings import Surroundings
from pardbg.watchdog.doctor.check import Check, State

_COST = "what the GPUs do: which one idles or is lost while the others wait for it, and the errors of their driver"
_REMEDIES = {
    "denied": "run pardbg as root, or give its container the devices",
    "not-installed": "install nvidia-ml-py and the driver's library; for a container set NVIDIA_DRIVER_CAPABILITIES=utility",
    "timed-out": "look for NVRM messages in the kernel log; a driver that hangs needs a reboot",
}


def check_gpus(surroundings: Surroundings) -> Iterator[Check]:
    """None here is no hindrance; one that cannot be seen is."""
    trial = surroundings.devices
    if not trial.has_node:
        yield Check(name="gpu", state=State.OK, seen="no NVIDIA GPU here")
    elif trial.absence is not None:
        remedy = _REMEDIES.get(trial.absence.reason.value, "try nvidia-smi")
        yield Check(name="gpu", state=State.LIMITS, seen=trial.absence.detail, cost=_COST, remedy=remedy, command="nvidia-smi")
    else:
        yield _describe(trial)


def _describe(trial: DevicesTrial) -> Check:
    count = f"{len(trial.cards)} GPU{'s' if len(trial.cards) != 1 else ''}"
    answer = "answer" if len(trial.cards) != 1 else "answers"
    ill = [f"{name_card(card)}: {card.problem}" for card in trial.cards if card.problem]
    denied = sorted({name for card in trial.cards for name in card.condition.denied})
    if ill:
        seen, remedy = f"of {count} {'; '.join(ill)}", "reset the GPU or drain the node"
        return Check(name="gpu", state=State.LIMITS, seen=seen, cost=_COST, remedy=remedy, command="nvidia-smi -q")
    if denied:
        seen = f"{count} {answer}, but the driver refuses {', '.join(denied)}"
        cost = "which GPU is which rank's, or a part of what went wrong with it"
        return Check(name="gpu", state=State.LIMITS, seen=seen, cost=cost, remedy=_REMEDIES["denied"])
    return Check(name="gpu", state=State.OK, seen=f"{count} {answer} through NVML")
