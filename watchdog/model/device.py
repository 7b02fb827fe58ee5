"""What was seen of a rank's GPU over a stretch of time: what it does, what it could do, and what went wrong with it."""

from enum import Enum

from pardbg.watchdog.model.base import Noun


class DeviceShape(str, Enum):
    """What a GPU does, by its series. ``SPINNING``: a kernel is resident and does next to nothing, like NCCL's that wait."""

    IDLE = "idle"
    SPINNING = "spinning"
    BUSY = "busy"
    THROTTLED = "throttled"
    VARYING = "varying"
    LOST = "lost"
    UNKNOWN = "unknown"


class DeviceJoin(str, Enum):
    """How it is known that a GPU is this rank's, the surest first. By the local rank is a guess: nobody is accused on it."""

    PID = "pid"
    FILE = "file"
    ELIMINATION = "elimination"
    LOCAL_RANK = "local-rank"


class XidSeen(Noun, frozen=True, kw_only=True):
    """An error that the driver reported (NVIDIA's Xid codes), at a moment (epoch ns), None where that is not known.

    ``is_implied``: only a later error names it as its cause; its own line was not found.
    """

    code: int
    at_ns: int | None
    is_implied: bool = False


class DeviceSeen(Noun, frozen=True, kw_only=True, tag="device", omit_defaults=True):
    """One rank's GPU; ``sample`` numbers the samples of one scan. None: not known.

    Attributes:
        index: NVML's number on its host; ``uuid`` and ``pci_bus_id`` as NVML writes them.
        is_shared: whether it is cut into MIG instances, of which the rank has one.
        shape: what it does now, and ``shape_s`` for how many seconds it has, as far as the series reaches.
        util: median percentage of time in which any kernel was resident; ``mem_util``: in which its memory was used.
        power_w: median. ``busy_w`` is what this GPU draws when it works, ``idle_w`` the least that was seen of it.
        sm_clock_mhz: median; ``top_sm_clock_mhz`` the highest that was seen of it.
        temperature_c: the highest of late; ``memory_temperature_c`` that of its memory.
        reasons: what holds its clocks down, in NVML's terms; ``slowed_share`` how much of the series heat or power did.
        tensor_active: median share of time (0-1) the tensor cores worked; ``dram_active`` the memory.
        used_bytes: of its memory, of ``total_bytes``.
        window_s: how far back the series reaches. What is ``gained`` or ``new`` came within it.
        ecc_uncorrected: memory errors that could not be corrected, since the driver was loaded.
        is_remap_failed: whether a broken row of memory could not be replaced.
        down_links: NVLinks that were up, or should be, and are not.
        xids: what the driver reported within the window, oldest first.
        problem: why a part of it could not be seen.
    """

    sample: int = 0
    index: int | None = None
    uuid: str | None = None
    pci_bus_id: str | None = None
    joined_by: DeviceJoin = DeviceJoin.PID
    is_shared: bool = False
    shape: DeviceShape = DeviceShape.UNKNOWN
    shape_s: float | None = None
    util: float | None = None
    mem_util: float | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    idle_w: float | None = None
    busy_w: float | None = None
    sm_clock_mhz: float | None = None
    top_sm_clock_mhz: float | None = None
    temperature_c: float | None = None
    memory_temperature_c: float | None = None
    reasons: tuple[str, ...] = ()
    slowed_share: float | None = None
    tensor_active: float | None = None
    dram_active: float | None = None
    used_bytes: int | None = None
    total_bytes: int | None = None
    window_s: float | None = None
    ecc_uncorrected: int | None = None
    new_ecc_uncorrected: int | None = None
    is_remap_failed: bool = False
    down_links: tuple[int, ...] = ()
    new_nvlink_errors: int | None = None
    new_pcie_replays: int | None = None
    xids: tuple[XidSeen, ...] = ()
    problem: str = ""
