"""A job of many nodes, scanned by its agents over mutual TLS: simulated nodes, real sockets, certificates and handshakes."""

import pytest

from pardbg.watchdog.bench.agents import measure_agents


@pytest.mark.slow
def test_a_thousand_agents_are_scanned_in_fifteen_seconds_and_six_hundred_megabytes() -> None:
    """On an idle machine: the scanner shares two processors with all agents."""
    (row,) = measure_agents(lambda _: None, (1000,))
    assert row.answered == 1000
    assert "rank 6851 issued an operation" in row.verdict
    assert row.peak_mb < 600
    assert row.wall_s < 15


def test_a_dozen_agents_are_scanned_by_the_same_way() -> None:
    (row,) = measure_agents(lambda _: None, (12,), options=("--interval=0.3",))
    assert row.answered == 12
    assert "issued an operation that the others did not" in row.verdict
