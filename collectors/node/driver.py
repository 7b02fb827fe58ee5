"""Which NVIDIA driver is loaded. Cost: one small file of the kernel's."""

import re
from pathlib import Path

UNKNOWN = "unknown"
_VERSION = re.compile(r"NVRM version:.*?\s(\d+\.\d+(?:\.\d+)*)\s")
_FILE = Path("/proc/driver/nvidia/version")


def read_driver() -> str:
    """Its version; empty if none is loaded, `UNKNOWN` if the file does not say."""
    try:
        found = _VERSION.search(_FILE.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return ""
    return found[1] if found else UNKNOWN
