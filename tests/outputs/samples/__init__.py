"""Whole reports to render: one for each shape that a person may have to read at three in the morning."""

from tests.outputs.samples.checkpoint_io import checkpoint_io
from tests.outputs.samples.dead_rank import dead_rank
from tests.outputs.samples.desync import desync
from tests.outputs.samples.device_stuck import device_stuck
from tests.outputs.samples.healthy import healthy
from tests.outputs.samples.hostile import hostile
from tests.outputs.samples.skipped_operation import skipped_operation
from tests.outputs.samples.slow_phase import slow_phase
from tests.outputs.samples.straggler import straggler
from tests.outputs.samples.undetermined import undetermined

SAMPLES = {
    "healthy": healthy(),
    "checkpoint_io": checkpoint_io(),
    "desync": desync(),
    "device_stuck": device_stuck(),
    "undetermined": undetermined(),
    "dead_rank": dead_rank(),
    "straggler": straggler(),
    "slow_phase": slow_phase(),
    "skipped_operation": skipped_operation(),
    "hostile": hostile(),
}
