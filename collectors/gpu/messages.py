"""What NVML's child says, one JSON object a line, and what follows from a refusal. Pure."""

import msgspec

from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.evidence import Absence
from pardbg.watchdog.model.names import AbsenceReason

NO_PERMISSION, NO_DRIVER, NO_LIBRARY, OTHER_DRIVER = 4, 9, 12, 18


class CardFound(Noun, frozen=True, kw_only=True):
    """A GPU that NVML counts. ``problem`` is why it could not be opened, in NVML's words, ``code`` its number for that."""

    index: int
    uuid: str | None = None
    pci_bus_id: str | None = None
    name: str | None = None
    problem: str = ""
    code: int = 0
    is_lost: bool = False


class Opened(Noun, frozen=True, kw_only=True, tag_field="kind", tag="opened"):
    """NVML answers: the driver's version and all GPUs."""

    driver: str | None = None
    cards: tuple[CardFound, ...] = ()


class Condition(Noun, frozen=True, kw_only=True):
    """What changes slowly of a GPU. None: not known; see `Card.condition` for the units."""

    power_limit_mw: int | None = None
    memory_clock_mhz: int | None = None
    memory_temperature_c: int | None = None
    used_bytes: int | None = None
    total_bytes: int | None = None
    pcie_replays: int | None = None
    ecc_corrected: int | None = None
    ecc_uncorrected: int | None = None
    is_remap_pending: bool = False
    is_remap_failed: bool = False
    is_shared: bool = False
    up_links: tuple[int, ...] = ()
    nvlink_errors: int | None = None
    pids: tuple[int, ...] | None = None
    denied: tuple[str, ...] = ()


class Reading(Noun, frozen=True, kw_only=True, tag_field="kind", tag="reading"):
    """One sample of one GPU, ``at_ns`` on the monotonic clock."""

    index: int
    at_ns: int
    util: int | None = None
    mem_util: int | None = None
    power_mw: int | None = None
    sm_clock_mhz: int | None = None
    clock_reasons: int | None = None
    temperature_c: int | None = None
    condition: Condition | None = None


class CardLost(Noun, frozen=True, kw_only=True, tag_field="kind", tag="lost"):
    """A GPU that was there is lost, or needs a reset, in NVML's words."""

    index: int
    at_ns: int
    words: str


class Xid(Noun, frozen=True, kw_only=True, tag_field="kind", tag="xid"):
    """An error that the driver reports of a GPU, epoch ns."""

    index: int
    code: int
    at_ns: int


class Refused(Noun, frozen=True, kw_only=True, tag_field="kind", tag="refused"):
    """NVML could not be opened at all."""

    code: int
    words: str


Message = Opened | Reading | CardLost | Xid | Refused

_DECODER = msgspec.json.Decoder(Message)


def parse_message(line: bytes) -> Message:
    """Reads one line.

    Raises:
        ParseError: if it is none.
    """
    try:
        return _DECODER.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ParseError(f"not a line of NVML's child: {error}") from error


def explain_refusal(refused: Refused) -> Absence:
    """Why there is nothing to see, and what to try."""
    reason, detail = _REFUSALS.get(refused.code, (AbsenceReason.UNREADABLE, f"NVML cannot be opened: {refused.words}"))
    return Absence(reason=reason, detail=detail)


NOT_INSTALLED = Absence(
    reason=AbsenceReason.NOT_INSTALLED, detail="the Python package nvidia-ml-py is not there: pip install nvidia-ml-py"
)
_REFUSALS = {
    NO_LIBRARY: (
        AbsenceReason.NOT_INSTALLED,
        "there is no libnvidia-ml.so.1: no NVIDIA driver, or a container without NVIDIA_DRIVER_CAPABILITIES=utility",
    ),
    NO_DRIVER: (AbsenceReason.NOT_INSTALLED, "no NVIDIA driver is loaded"),
    NO_PERMISSION: (AbsenceReason.DENIED, "NVML refuses us: /dev/nvidiactl may not be opened; let pardbg use the devices"),
    OTHER_DRIVER: (
        AbsenceReason.UNSUPPORTED,
        "the NVIDIA driver was updated and the old one is still loaded (library and kernel module differ): reboot the node",
    ),
}
