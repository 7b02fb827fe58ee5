"""What holds a GPU's clocks down: NVML's bits and their names. Pure."""

_NAMES = {
    0x1: "idle",
    0x2: "clocks set by a user",
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "thermal slowdown by software",
    0x40: "thermal slowdown by hardware",
    0x80: "power brake",
    0x100: "display clocks",
    0x200: "board limit",
    0x400: "reliability",
}
SLOWED = 0x8 | 0x20 | 0x40 | 0x80
"""Heat, or power that fails. The power cap (0x4) alone is normal: a GPU that works hard is at it."""


def name_reasons(bits: int) -> tuple[str, ...]:
    """The names of the bits; one that NVML has added since as its number."""
    known = tuple(name for bit, name in _NAMES.items() if bits & bit)
    rest = bits & ~sum(_NAMES)
    return (*known, f"0x{rest:x}") if rest else known
