"""Rules of what is told of replicas."""

from tests.mutation.edit import Edit

CORRELATOR = "watchdog/correlators/replica_divergence.py"
GRAPH = "watchdog/graph/replicas.py"
TEST_DATA = "tests/replicas/test_same_data.py::"
TEST_WEIGHTS = "tests/replicas/test_divergence.py::"

REPLICAS = (
    Edit(
        "replicas must differ at two moments on end",
        GRAPH,
        "LEAST_UNEQUAL = 2",
        "LEAST_UNEQUAL = 1",
        (f"{TEST_WEIGHTS}test_what_differed_for_one_moment_only_or_is_equal_again_is_not_told",),
    ),
    Edit(
        "only what was equal in training can part",
        GRAPH,
        "if not tail[0].is_first and not _have_trained(before):",
        "if not tail:",
        (f"{TEST_WEIGHTS}test_unequal_from_the_first_step_on_but_not_before_is_rounding",),
    ),
    Edit(
        "weights before the first step have trained nothing",
        GRAPH,
        "if len(moment.weights) == 1 and not moment.is_first}",
        "if len(moment.weights) == 1}",
        (f"{TEST_WEIGHTS}test_unequal_from_the_first_step_on_but_not_before_is_rounding",),
    ),
    Edit(
        "replicas that were not seen may stand against a majority",
        GRAPH,
        "largest < CLEAR_RATIO * (against + self.unseen_count)",
        "largest < CLEAR_RATIO * against",
        (f"{TEST_WEIGHTS}test_a_majority_counts_only_if_it_would_against_all_that_were_not_seen",),
    ),
    Edit(
        "a minority of replicas must be the same twice",
        GRAPH,
        "minorities.pop() if len(minorities) == 1 else ()",
        "minorities.pop()",
        (f"{TEST_WEIGHTS}test_another_minority_in_each_moment_is_no_culprit",),
    ),
    Edit(
        "replicas are compared after as many passes",
        GRAPH,
        "{(moment.step, moment.forward): moment for moment in seen.moments}",
        "{(moment.step, 1): moment for moment in seen.moments}",
        (f"{TEST_WEIGHTS}test_ranks_that_count_otherwise_are_not_compared",),
    ),
    Edit(
        "few batches may be alike by chance",
        GRAPH,
        "LIKELY_CHANCE = 1e-5",
        "LIKELY_CHANCE = 1e-2",
        (f"{TEST_DATA}test_few_batches_in_turn_may_be_alike_by_chance",),
    ),
    Edit(
        "members of a smaller group may share data",
        CORRELATOR,
        "any(ranks <= {*group.ranks} for group in smaller)",
        "False",
        (f"{TEST_DATA}test_members_of_a_smaller_group_may_share_a_batch",),
    ),
    Edit(
        "without recorders nobody knows of smaller groups",
        CORRELATOR,
        "return not ranks <= situation.view.recordings.keys() or any(",
        "return any(",
        (f"{TEST_DATA}test_where_recorders_were_not_seen_nobody_knows_of_smaller_groups",),
    ),
    Edit(
        "sides without a common host may compute otherwise",
        CORRELATOR,
        "parting.is_from_start or _meet_on_a_host(situation, parting.sides)",
        "True",
        (f"{TEST_WEIGHTS}test_sides_on_hosts_of_their_own_are_weaker_evidence",),
    ),
)
