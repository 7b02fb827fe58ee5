"""The probe's first step: nothing but a watch for the import of torch's distributed package."""

import os

from .import_watch import when_imported
from .rank_probe import RankProbe

SWITCH = "PARDBG_PROBE"
_armed: list[RankProbe] = []


def arm() -> None:
    """Makes the probe begin when torch's distributed package has been imported, which may be the case already.

    Does nothing where ``PARDBG_PROBE=0`` forbids it, or where it was called before.
    """
    if os.environ.get(SWITCH) == "0" or _armed:
        return
    probe = RankProbe()
    _armed.append(probe)
    when_imported(
        {
            "torch.distributed.distributed_c10d": probe.see_torch,
            "torch._dynamo.callback": probe.see_compiler,
            "torch.distributed.checkpoint.state_dict_saver": probe.see_checkpoints,
        }
    )
