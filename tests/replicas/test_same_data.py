"""Who is said to read the same data, and who is not."""

from pardbg.watchdog.model.names import Cause, Confidence, Kind
from tests.replicas.replicas import EQUAL, STEPS, find, named, replica

DATA = tuple(range(100, 109))
OTHER = tuple(range(200, 209))
THIRD = tuple(range(300, 309))


def test_all_that_read_the_same_are_candidates() -> None:
    (found,) = find(dict.fromkeys(range(4), replica(data=DATA)))
    assert (found.kind, found.cause, found.confidence) == (Kind.REPLICA_DIVERGENCE, Cause.SAME_DATA, Confidence.SUPPORTED)
    assert (named(found), found.since_step) == ((set(), {0, 1, 2, 3}), 0)
    assert found.claim == (
        "all 4 replicas are fed the same data, all along, in each of the 9 steps that were looked at: they train as one would"
    )
    assert found.evidence[1].text == (
        "hashes of the batches of rank 1: 0000006a after step 32, 0000006b after step 64, 0000006c after step 128"
    )
    assert "DistributedSampler" in found.advice[0]


def test_each_with_its_own_data_is_well() -> None:
    assert find({rank: replica(data=[value + 1000 * rank for value in DATA]) for rank in range(4)}) == []


def test_the_same_batch_in_every_step_is_a_benchmark_or_none_at_all() -> None:
    assert find(dict.fromkeys(range(4), replica(data=[5] * 9))) == []


def test_data_that_was_not_understood_says_nothing() -> None:
    assert find({0: replica(data=DATA), 1: replica(data=DATA), 2: replica(), 3: replica()}) == []


def test_few_batches_in_turn_may_be_alike_by_chance() -> None:
    two = [7, 8, 7, 7, 8, 8, 7, 8, 7]
    assert find(dict.fromkeys(range(4), replica(data=two))) == []
    six = DATA[:6]
    assert find(dict.fromkeys(range(4), replica(EQUAL[:6], data=six))) == []
    assert len(find(dict.fromkeys(range(4), replica(EQUAL[:7], data=DATA[:7])))) == 1


def test_since_a_moment_means_that_it_was_otherwise_before() -> None:
    later = [*OTHER[:1], *DATA[1:]]
    (found,) = find({rank: replica(data=DATA if rank else later) for rank in range(4)})
    assert (named(found)[1], found.since_step) == ({0, 1, 2, 3}, STEPS[1])
    assert "since step 1, in each of the 8 steps" in found.claim


def test_some_that_share_are_candidates_and_the_others_are_well() -> None:
    own = {2: OTHER, 3: THIRD}
    (found,) = find({rank: replica(data=own.get(rank, DATA)) for rank in range(4)}, groups=[])
    assert named(found) == (set(), {0, 1})
    assert found.group is not None
    assert found.group.ranks == (0, 1, 2, 3)
    assert found.claim.startswith("the replicas of ranks 0-1 are fed the same data, all along")
    assert found.claim.endswith("so 2 of 4 replicas do the work of one")


def test_two_pairs_are_two_findings() -> None:
    found = find({rank: replica(data=OTHER if rank > 1 else DATA) for rank in range(4)}, groups=[])
    assert [named(pair)[1] for pair in found] == [{0, 1}, {2, 3}]


def test_what_has_ended_is_not_told() -> None:
    ended = [*DATA[:8], 5]
    ranks = {0: replica(data=DATA), 1: replica(data=ended), 2: replica(data=OTHER), 3: replica(data=THIRD)}
    assert find(ranks, groups=[]) == []


def test_members_of_a_smaller_group_may_share_a_batch() -> None:
    ranks = {rank: replica(data=OTHER if rank > 1 else DATA) for rank in range(4)}
    assert find(ranks, groups=[[0, 1], [2, 3]]) == []
    assert [named(pair)[1] for pair in find(ranks, groups=[[0, 2], [2, 3]])] == [{0, 1}]


def test_where_recorders_were_not_seen_nobody_knows_of_smaller_groups() -> None:
    own = {2: OTHER, 3: THIRD}
    assert find({rank: replica(data=own.get(rank, DATA)) for rank in range(4)}) == []
