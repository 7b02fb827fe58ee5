"""What went wrong with a rank's GPU, as its driver reports it, and how bad each thing is. Pure.

That nothing is reported says nothing: a GPU may stop without a word.
"""

from collections.abc import Callable

from pardbg.watchdog.model.device import DeviceJoin, DeviceSeen, DeviceShape, XidSeen
from pardbg.watchdog.model.names import Cause

SEVERITY = (Cause.GPU_LOST, Cause.ECC, Cause.NVLINK, Cause.XID)
"""The worst first: the GPUs beside one that is lost report broken links, and those beside a broken link report more."""

_CAUSES = {
    Cause.GPU_LOST: frozenset({79}),
    Cause.ECC: frozenset({48, 64, 94, 95, 140}),
    Cause.NVLINK: frozenset({74, *range(144, 151)}),
}
LINK_ORIGINS = frozenset({149})
"""The error of the GPU where a link's trouble began; its peers report 144 to 148."""
PROGRAM_XIDS = frozenset({13, 31, 43, 69})
"""Mostly a kernel's own errors: a fault of the program as likely as one of the GPU."""
HARMLESS_XIDS = frozenset({45, 63, 92, 154})  # clean-up after another error; rows replaced; many corrected errors; advice

_NAMES = {
    13: "a kernel's own error",
    31: "a kernel touched memory that is not its own",
    43: "a kernel was ended for its own error",
    48: "memory error that could not be corrected",
    64: "a row of memory could not be replaced",
    74: "NVLink error",
    79: "fallen off the bus",
    94: "memory error, contained",
    95: "memory error, not contained",
    119: "its own processor (GSP) does not answer",
    140: "memory error that could not be corrected",
}


def cause_of_xid(code: int) -> Cause | None:
    """What a code means in the contract's words; None for those that stop nothing."""
    if code in HARMLESS_XIDS:
        return None
    return next((cause for cause, codes in _CAUSES.items() if code in codes), Cause.XID)


def name_xid(code: int) -> str:
    """``Xid 79 (fallen off the bus)``."""
    name = _NAMES.get(code, "NVLink error" if cause_of_xid(code) is Cause.NVLINK else "")
    return f"Xid {code}" + (f" ({name})" if name else "")


def is_of_program(device: DeviceSeen) -> bool:
    """Whether all errors of a GPU that stop anything are those that programs mostly bring about themselves."""
    codes = {xid.code for xid in device.xids if cause_of_xid(xid.code) is not None}
    return bool(codes) and codes <= PROGRAM_XIDS


def fault_of(device: DeviceSeen, is_recent: Callable[[XidSeen], bool] = lambda _: True) -> Cause | None:
    """The worst of what went wrong with it; None if nothing did, or if it is only guessed whose GPU it is.

    Args:
        device: as it was seen. Of a GPU in MIG instances the errors may be another instance's.
        is_recent: whether an error is young enough to matter.
    """
    if device.joined_by is DeviceJoin.LOCAL_RANK:
        return None
    if device.shape is DeviceShape.LOST:
        return Cause.GPU_LOST
    if device.is_shared:
        return None
    found = {cause_of_xid(xid.code) for xid in device.xids if is_recent(xid)}
    if device.new_ecc_uncorrected:
        found.add(Cause.ECC)
    if device.down_links:
        found.add(Cause.NVLINK)
    return next((cause for cause in SEVERITY if cause in found), None)
