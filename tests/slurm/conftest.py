"""One real cluster for all tests that want one; they are skipped, with the reason, where none can be started."""

from collections.abc import Iterator

import pytest
from tests.slurm.cluster import Cluster, running_cluster, why_not

NODE_TIMEOUT_S = 10  # Slurm marks a node down 20 to 30 s after its daemon has gone; shorter, and a busy machine loses nodes


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Two idle nodes; each test waits until they are so again, or says in its name that it breaks one."""
    reason = why_not()
    if reason:
        pytest.skip(reason)
    with running_cluster(node_timeout_s=NODE_TIMEOUT_S) as started:
        yield started
