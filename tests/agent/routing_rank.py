"""A process that is a rank whose routers are counted: a probe's folder, a page, and `routing` by the probe's own writer.

Twenty steps a second with four MoE layers of 16 experts, which drop one assignment in a hundred. Once the file ``spike`` is in
the folder that its argument names, layer 2 drops a third; ``held`` there gets the time of the third such step.
"""

import os
import random
import sys
import time
from pathlib import Path

import torch

from pardbg.collectors.probe import identity, places
from pardbg.collectors.probe.folder import make_private, make_root, write_json
from pardbg.collectors.probe.page import Page
from pardbg.collectors.probe.page_format import StepRecord
from pardbg.collectors.probe.routing.writing import RoutingWriter
from pardbg.collectors.probe.routing_format import FIGURES, LayerLine

STEP_S = 0.05
LAYERS, EXPERTS, TOP_K, EP_SIZE, ILL = 4, 16, 2, 4, 2
TOKENS = 4096
ASSIGNMENTS = TOKENS * TOP_K
HELD_STEPS = 3


def figures_of(share: float) -> dict[str, float]:
    """Of one layer in one step."""
    dropped = ASSIGNMENTS * share * random.uniform(0.9, 1.1)
    known = {"tokens": TOKENS, "dropped": dropped, "predicted_dropped": dropped, "capacity": 640, "entropy": 1.9, "z": 8.1}
    return known | {"aux_loss": 1.01, "router_grad_norm": 0.3}


def count() -> list[int]:
    """Assignments to each expert, even but for chance."""
    counts = [0] * EXPERTS
    for expert in random.choices(range(EXPERTS), k=ASSIGNMENTS):
        counts[expert] += 1
    return counts


def open_folder() -> str:
    """The probe's folder of this process, with what it says of itself."""
    root = places.memory_root(os.geteuid(), os.environ)
    folder = places.rank_folder(root, os.getpid(), identity.started_ticks())
    make_root(root)
    make_private(folder)
    rest = {"created_ns": time.time_ns(), "is_member": True, "torch": "2.13.0", "problems": []}
    write_json(f"{folder}/{places.RANK_FILE}", {**identity.describe(), **rest})
    return folder


def main(work: Path) -> None:
    """Trains for ever, as far as anybody can see."""
    folder = open_folder()
    page = Page(f"{folder}/{places.PAGE_FILE}")
    lines = [
        LayerLine(number, EXPERTS, TOP_K, EP_SIZE, is_frozen=False, name=f"layers.{number}.router".encode())
        for number in range(LAYERS)
    ]
    writer = RoutingWriter(f"{folder}/{places.ROUTING_FILE}", lines, EXPERTS)
    step, spiked, step_ns = 0, 0, int(STEP_S * 1e9)
    while True:
        step += 1
        is_ill = (work / "spike").exists()
        told = [figures_of(0.33 if is_ill and number == ILL else 0.01) for number in range(LAYERS)]
        figures = [[one[name] for name in FIGURES] for one in told]
        writer.write_step((step, time.time_ns(), 2.0), figures, torch.tensor([count()] * LAYERS, dtype=torch.int32))
        page.write(StepRecord, step, time.time_ns(), step_ns, step_ns, step, 0)
        spiked += is_ill
        if is_ill and spiked == HELD_STEPS:
            (work / "held").write_text(str(time.time()))
        time.sleep(STEP_S)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
