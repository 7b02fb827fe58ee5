"""What torchrun starts on every rank: `torchrun ... program.py FAULT DUMPS SCRATCH`."""

import os
import sys
from pathlib import Path

import torch.distributed as dist

sys.path.append(str(Path(__file__).resolve().parents[3]))  # the tests are not installed

from tests.live.recorded.black_box import BlackBox, block_sigterm
from tests.live.recorded.planted import PROGRAMS
from tests.live.recorded.training import TIMEOUT


def main(fault_name: str, dumps: Path, scratch: Path) -> None:
    """Trains with a planted fault; the flight recorder goes to ``dumps``, everything else to ``scratch``."""
    block_sigterm()
    dist.init_process_group("gloo", timeout=TIMEOUT)
    training = PROGRAMS[fault_name](scratch)
    with BlackBox(dumps, scratch, dist.get_rank()).recording():
        training.run()
    os._exit(0)  # an orderly end takes half a second: enough for a peer to fail of it and for torchrun to end this rank


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
