"""A process that is a rank whose routers were counted for 120 steps: a probe's folder with `routing`, by its own writer.

Layer 1 drops a third since step 81. Then it says "ready" and sleeps.
"""

import random
import sys
import time

import torch

from pardbg.collectors.probe import places
from pardbg.collectors.probe.routing.writing import RoutingWriter
from pardbg.collectors.probe.routing_format import FIGURES, LayerLine
from tests.agent.routing_rank import EP_SIZE, EXPERTS, TOP_K, count, figures_of, open_folder

LAYERS, STEPS, ONSET = 2, 120, 81


def main() -> None:
    """Writes, and waits to be killed."""
    random.seed(1)
    names = [f"layers.{number}.router".encode() for number in range(LAYERS)]
    lines = [LayerLine(number, EXPERTS, TOP_K, EP_SIZE, is_frozen=False, name=name) for number, name in enumerate(names)]
    writer = RoutingWriter(f"{open_folder()}/{places.ROUTING_FILE}", lines, EXPERTS)
    for step in range(1, STEPS + 1):
        told = [figures_of(0.33 if step >= ONSET and number == 1 else 0.01) for number in range(LAYERS)]
        figures = [[one[name] for name in FIGURES] for one in told]
        counts = torch.tensor([count() for _ in range(LAYERS)], dtype=torch.int32)
        writer.write_step((step, time.time_ns(), 2.0), figures, counts)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    time.sleep(600)


if __name__ == "__main__":
    main()
