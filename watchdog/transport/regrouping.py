"""When one process serves many nodes, and some of them keep the others from hearing: start anew without them.

srun hands its input to nobody until every node's daemon has answered the launch, and after 20 s without that it kills the
tasks that do run (measured with Slurm 22.05). Slow starts on a busy file system are another thing: then those that have come
up hear us.
"""

import time

from pardbg.watchdog.transport.channel import Channel

SILENCE_S = 4.0
"""Since the last node has come up."""
LATEST_S = 14.0
"""Since the start."""


def to_regroup(channel: Channel) -> tuple[str, ...]:
    """The nodes to start anew with: those that have come up. Empty: leave it as it is."""
    if channel.is_heard or not channel.greeted or len(channel.greeted) == len(channel.nodes):
        return ()
    now_s = time.monotonic()
    if now_s - channel.greeted_s < SILENCE_S and now_s - channel.started_s < LATEST_S:
        return ()
    return tuple(node for node in channel.launch.nodes if node in channel.greeted)
