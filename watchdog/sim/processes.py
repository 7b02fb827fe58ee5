"""What `job.json` says of a simulated job: hosts, devices, and the states of the processes."""

import random
from typing import Any

from pardbg.watchdog.sim.scene import ProcessState, Scene
from pardbg.watchdog.sim.stacks import FIRST_PID

RANKS_PER_HOST = 8


def describe_job(scene: Scene) -> dict[str, Any]:
    """The content of `job.json`, as in the contract."""
    serials = random.Random(f"devices/{scene.recipe.seed}")
    ranks = [_describe(scene, rank, serials) for rank in scene.ranks]
    return {"job": f"sim-{scene.recipe.fault}", "world_size": scene.layout.world_size, "ranks": ranks}


def _describe(scene: Scene, rank: int, serials: random.Random) -> dict[str, Any]:
    host, local_rank = divmod(rank, RANKS_PER_HOST)
    process = scene.processes.get(rank, ProcessState())
    digits = f"{serials.getrandbits(128):032x}"
    uuid = f"GPU-{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
    return {
        "rank": rank,
        "host": f"node{host:03d}",
        "pid": FIRST_PID + rank,
        "local_rank": local_rank,
        "gpu_uuid": None if scene.is_gloo else uuid,
        "pci_bus_id": None if scene.is_gloo else f"00000000:{0x1B + 0x20 * local_rank:02X}:00.0",
        "process": {"state": process.state, "exit_code": process.exit_code},
    }
