"""The probe's first step: nothing but a watch for the import of torch's distributed package.

All else is imported when that comes: a Python with RANK but without torch pays for this file only.
"""

from __future__ import annotations

import os
import sys

from .harmless import harmless
from .import_watch import when_imported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

SWITCH = "PARDBG_PROBE"
_armed: list[bool] = []


def arm() -> None:
    """Makes the probe begin when torch's distributed package has been imported, which may be the case already.

    Does nothing where ``PARDBG_PROBE=0`` forbids it, or where it was called before.
    """
    if os.environ.get(SWITCH) == "0" or _armed:
        return
    _armed.append(True)
    harmless(when_imported)({"torch.distributed.distributed_c10d": _begin})


def _begin(c10d: ModuleType) -> None:
    from .rank_probe import RankProbe  # noqa: PLC0415 - see above

    probe = RankProbe()
    later = {
        # not of `torch.nn.modules.module`, whose import brings this one about and is not over yet; of what needs it whole
        "torch.nn.modules.linear": lambda linear: probe.see_modules(sys.modules[linear.Module.__module__]),
        "torch._dynamo.callback": probe.see_compiler,
        "torch.distributed.checkpoint.state_dict_saver": probe.see_checkpoints,
    }
    harmless(when_imported)(later)
    probe.see_torch(c10d)
