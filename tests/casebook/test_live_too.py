"""The cases that also run live, on real processes: which test of `tests/live` is which case."""

import pytest

from tests.live import test_late, test_scan, test_scan_conditions

SCANNED = {
    "C01": "train-left-loop-break-recorder-off",
    "C07": "train-exception-sleep",
    "C16": "orders-adds",
    "C25": "orders-opposite-order",
    "C28": "orders-other-op",
    "C35": "train-killed-store",
    "C44": "train-checkpoint",
    "C47": "train-loader",
    "C50": "train-gil-recorder-off",
    "C107": "train-stopped",
}
"""By the names of the cases of `test_scan.py`."""
OTHERS = {
    "C37": (test_scan_conditions, "test_rank_that_ends_between_the_samples_is_dead_or_unknown"),
    "C43": (test_scan_conditions, "test_rank_that_reads_and_goes_on_is_a_slow_phase"),
    "C76": (test_late, "test_rank_that_is_late_every_step_is_named_with_its_reason"),
    "C77": (test_late, "test_lateness_that_goes_round_names_nobody"),
    "C82": (test_late, "test_nobody_is_named_where_ranks_are_late_by_chance_or_all_alike"),
    "C108": (test_scan_conditions, "test_without_ptrace_the_answer_is_right_or_a_clear_unknown"),
}


@pytest.mark.parametrize("number", sorted(SCANNED))
def test_case_is_scanned_live(number: str) -> None:
    assert SCANNED[number] in {case.name for case in (*test_scan.EVERYDAY, *test_scan.REST)}


@pytest.mark.parametrize("number", sorted(OTHERS))
def test_case_has_a_live_test_of_its_own(number: str) -> None:
    module, name = OTHERS[number]
    assert callable(getattr(module, name))
