"""Who is said to differ, and who is not: replicas whose weights part, and the near misses."""

import msgspec
import pytest

from pardbg.watchdog.judge.judge import Circumstances, judge
from pardbg.watchdog.model.names import Confidence, Kind, Status
from pardbg.watchdog.outputs.exit_code import exit_code
from pardbg.watchdog.store.view import EvidenceView
from tests.replicas.replicas import EQUAL, STEPS, apart, evidence, find, named, replica


def test_the_one_that_differs_from_a_clear_majority_is_the_culprit() -> None:
    (found,) = find({0: replica(), 1: replica(), 2: replica(apart(5), parts=(1, 2, 4)), 3: replica()})
    assert (found.kind, found.cause, found.confidence) == (Kind.REPLICA_DIVERGENCE, None, Confidence.SUPPORTED)
    assert named(found) == ({2}, set())
    assert (found.since_step, found.group) == (16, None)
    assert found.claim == (
        "the replica of rank 2 is not equal to those of ranks 0-1,3, since a step after 8 and not after 16: "
        "1 of 3 parameters that are compared differs (number 4 of those that train)"
    )
    texts = [line.text for line in found.evidence]
    assert texts[:4] == [
        "after step 128 the weights of ranks 0-1,3 have the fingerprint 00000012",
        "after step 128 the weights of rank 2 have the fingerprint 00000075",
        "after step 8 the weights of ranks 0-3 had one and the same fingerprint",
        "compared: 3 of 6 parameters, 50.00% of their numbers, at 9 steps",
    ]
    assert found.advice[0].startswith("Stop, and resume all ranks from a checkpoint of step 8 or before")
    assert "test the memory of the host of rank 2" in found.advice[2]


def test_equal_replicas_are_well() -> None:
    assert find(dict.fromkeys(range(4), replica())) == []
    assert find({0: replica(), 1: None}) == find({0: replica()}) == []


def test_of_two_nobody_can_tell_which_one_is_wrong() -> None:
    (found,) = find({0: replica(size=2), 1: replica(apart(4), size=2)})
    assert named(found) == (set(), {0, 1})
    assert "all" not in found.claim


def test_half_against_half_and_all_against_all_have_no_culprit() -> None:
    (halves,) = find({0: replica(), 1: replica(), 2: replica(apart(4)), 3: replica(apart(4))})
    assert named(halves) == (set(), {0, 1, 2, 3})
    (all_differ,) = find({rank: replica(apart(4, 99 + rank), parts=(rank, rank, rank)) for rank in range(4)})
    assert named(all_differ) == (set(), {0, 1, 2, 3})
    assert all_differ.claim.endswith("all 3 parameters that are compared differ")


def test_a_majority_counts_only_if_it_would_against_all_that_were_not_seen() -> None:
    (found,) = find({0: replica(size=8), 1: replica(size=8), 2: replica(apart(4), size=8)})
    assert named(found) == (set(), {0, 1, 2})
    assert found.evidence[3].text.endswith("5 more replicas were not seen")


def test_what_differed_for_one_moment_only_or_is_equal_again_is_not_told() -> None:
    last = (*EQUAL[:-1], 99)
    assert find({0: replica(), 1: replica(), 2: replica(last), 3: replica()}) == []
    healed = (*EQUAL[:3], 97, 98, 99, *EQUAL[6:])
    assert find({0: replica(), 1: replica(), 2: replica(healed), 3: replica()}) == []


def test_another_minority_in_each_moment_is_no_culprit() -> None:
    swapped = {1: (*EQUAL[:7], 98, EQUAL[8]), 2: (*EQUAL[:8], 99)}
    (found,) = find({rank: replica(swapped.get(rank, EQUAL)) for rank in range(4)})
    assert named(found) == (set(), {0, 1, 2, 3})


def test_unequal_from_the_first_step_on_but_not_before_is_rounding() -> None:
    assert find({0: replica(), 1: replica(), 2: replica(apart(1)), 3: replica()}) == []
    assert find({0: replica(), 1: replica(), 2: replica(apart(2)), 3: replica()}) == []


def test_unequal_before_the_first_step_was_loaded_otherwise() -> None:
    (found,) = find({0: replica(), 1: replica(), 2: replica(apart(0)), 3: replica()}, {2: "b"})
    assert (named(found), found.since_step, found.confidence) == (({2}, set()), 0, Confidence.SUPPORTED)
    assert "since before their first step" in found.claim
    assert "load the same checkpoint" in found.advice[0]


def test_where_the_first_pass_was_not_seen_nothing_is_known_of_before() -> None:
    late = {rank: replica(apart(0) if rank == 2 else EQUAL, more_passes=5) for rank in range(4)}
    assert find(late) == []


def test_sides_on_hosts_of_their_own_are_weaker_evidence() -> None:
    ranks = {0: replica(), 1: replica(), 2: replica(apart(5)), 3: replica()}
    (found,) = find(ranks, {2: "b"})
    assert (named(found), found.confidence) == (({2}, set()), Confidence.SUGGESTED)
    assert find(ranks, {2: "b", 3: "b"})[0].confidence is Confidence.SUPPORTED


def test_ranks_that_count_otherwise_are_not_compared() -> None:
    other = replica(apart(3), more_passes=1)
    assert find({0: replica(), 1: replica(), 2: other, 3: replica()}) == []
    assert find({0: replica(), 1: replica(), 2: replica(apart(3), ordinal=2), 3: replica()}) == []


def test_one_that_is_behind_is_compared_where_both_have_been() -> None:
    (found,) = find({0: replica(), 1: replica(), 2: replica(apart(4)[:7]), 3: replica()})
    assert named(found) == ({2}, set())
    assert found.claim.endswith("their weights differ")


@pytest.mark.parametrize("change", [{"parts": 0}, {"whole": 0}, {"seen": 0}, {"parts": 9}, {"seen": 200}, {"newest": ()}])
def test_a_file_that_says_what_cannot_be_is_not_believed(change: dict[str, object]) -> None:
    odd = msgspec.structs.replace(replica(apart(5)), **change)
    assert len(find({0: odd, 1: replica(), 2: odd, 3: replica()})) == int("newest" in change)


def test_a_job_of_which_nothing_else_is_known_is_degraded() -> None:
    ranks = {0: replica(), 1: replica(), 2: replica(apart(5)), 3: replica()}
    report = judge(EvidenceView.of(list(evidence(ranks))), Circumstances(decided_at="2026-11-30T00:00:00Z"))
    assert report.verdict is not None
    assert (report.status, report.verdict.kind, report.verdict.since_step) == (
        Status.DEGRADED,
        Kind.REPLICA_DIVERGENCE,
        STEPS[5],
    )
    assert exit_code(report) == 3
