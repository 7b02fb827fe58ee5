"""Rules of lateness: who makes the others wait, and who only looks so."""

from tests.mutation.edit import Edit

LATENESS = "watchdog/graph/lateness.py"
ROUNDS = "watchdog/graph/rounds.py"
TEST_STRAGGLERS = "tests/diagnosis/test_stragglers.py::"
TEST_STRAGGLERS_LIMITS = "tests/diagnosis/test_stragglers_limits.py::"
STRAGGLER = "watchdog/correlators/straggler.py"
TEST_STRAGGLERS_NAMED = "tests/diagnosis/test_stragglers_named.py::"

STRAGGLERS = (
    Edit(
        "a pause is no habit",
        LATENESS,
        "if len(weighty) < fewest or not _is_spread(rounds, [one for one, _ in weighty]):",
        "if len(weighty) < fewest:",
        (f"{TEST_STRAGGLERS_LIMITS}test_who_is_late_by_rounds_alone",),
    ),
    Edit(
        "a loss of some per cent is not told",
        LATENESS,
        "LATE_SHARE = 0.05",
        "LATE_SHARE = 0.0",
        (f"{TEST_STRAGGLERS_LIMITS}test_who_is_late_by_rounds_alone",),
    ),
    Edit(
        "where half are late nobody is a straggler",
        LATENESS,
        "if always and len(always) <= max(1, len(rounds.group.ranks) // 3):",
        "if always:",
        (f"{TEST_STRAGGLERS_LIMITS}test_who_is_late_by_rounds_alone",),
    ),
    Edit(
        "who is late sometimes is no straggler",
        LATENESS,
        "ALWAYS = 0.8",
        "ALWAYS = 0.3",
        (f"{TEST_STRAGGLERS_LIMITS}test_who_is_late_by_rounds_alone",),
    ),
    Edit(
        "who is late in turn is no straggler",
        LATENESS,
        "ALWAYS = 0.8",
        "ALWAYS = 0.1",
        (f"{TEST_STRAGGLERS_LIMITS}test_who_is_late_by_rounds_alone",),
    ),
    Edit(
        "lateness goes round only where it is shared",
        LATENESS,
        "is_shared = most <= OFTEN * len(weighty) and len({one.last for one in weighty}) >= _THIRDS",
        "is_shared = True",
        (f"{TEST_STRAGGLERS_LIMITS}test_who_is_late_by_rounds_alone",),
    ),
    Edit(
        "lateness that goes round must cost a tenth",
        LATENESS,
        "total < ROTATING_SHARE * rounds.window_ns or ",
        "",
        (f"{TEST_STRAGGLERS_LIMITS}test_who_is_late_by_rounds_alone",),
    ),
    Edit(
        "a few rounds make no straggler",
        LATENESS,
        "FEWEST_ROUNDS = 8",
        "FEWEST_ROUNDS = 1",
        (f"{TEST_STRAGGLERS_LIMITS}test_who_is_late_by_rounds_alone",),
    ),
    Edit(
        "who is a little late is not among the late",
        LATENESS,
        "if late > half)",
        "if late > 0)",
        (f"{TEST_STRAGGLERS_LIMITS}test_who_is_late_by_rounds_alone",),
    ),
    Edit(
        "who waited for another meanwhile is a victim",
        ROUNDS,
        " - call.owed_ns - floor)",
        " - floor)",
        (f"{TEST_STRAGGLERS}test_peer_that_came_late_because_it_had_to_wait_for_the_late_one_is_a_victim",),
    ),
    Edit(
        "what polling cannot tell is no lateness",
        ROUNDS,
        "floor = POLL_NS if any(call.is_polled for call in calls.values()) else 0",
        "floor = 0",
        (f"{TEST_STRAGGLERS}test_rank_that_is_always_late_is_named_whatever_clocks_say",),
    ),
    Edit(
        "a root may leave early",
        ROUNDS,
        "call.is_rooted or call.wait_ns is None",
        "call.wait_ns is None",
        (f"{TEST_STRAGGLERS_LIMITS}test_root_that_need_not_wait_is_no_straggler",),
    ),
    Edit(
        "clocks of two hosts are not compared",
        ROUNDS,
        "return len(hosts) == 1 and None not in hosts",
        "return None not in hosts",
        (f"{TEST_STRAGGLERS_LIMITS}test_clocks_of_two_hosts_are_not_compared",),
    ),
    Edit(
        "in a hang nobody is called late",
        STRAGGLER,
        "    if situation.is_stuck:\n        return\n",
        "",
        (f"{TEST_STRAGGLERS_NAMED}test_in_a_hang_nobody_is_called_late",),
    ),
    Edit(
        "who is named comes before lateness that goes round",
        STRAGGLER,
        "    elif late:\n",
        "    if late:\n",
        (
            f"{TEST_STRAGGLERS_NAMED}test_a_stack_with_a_definite_reason_counts_more_than_a_sign_and_a_sign_more_than_other_stacks",
        ),
    ),
    Edit(
        "a rank that is alone on its host is a rank",
        STRAGGLER,
        "if len(whole) > 1 and whole <= left:",
        "if whole <= left:",
        (f"{TEST_STRAGGLERS_NAMED}test_only_all_of_several_ranks_of_a_host_are_the_host",),
    ),
    Edit(
        "one of a host's ranks is not the host",
        STRAGGLER,
        "if len(whole) > 1 and whole <= left:",
        "if len(whole) > 1 and whole & left:",
        (f"{TEST_STRAGGLERS_NAMED}test_only_all_of_several_ranks_of_a_host_are_the_host",),
    ),
    Edit(
        "ranks of a late host are not named once more",
        STRAGGLER,
        "                left -= whole\n",
        "                pass\n",
        (f"{TEST_STRAGGLERS_NAMED}test_a_stage_that_is_a_host_is_told_as_the_host",),
    ),
    Edit(
        "a stage that is a host is told as the host",
        STRAGGLER,
        "((Scope.HOST, situation.ranks_by_host), (Scope.STAGE, situation.ranks_by_stage))",
        "((Scope.STAGE, situation.ranks_by_stage), (Scope.HOST, situation.ranks_by_host))",
        (f"{TEST_STRAGGLERS_NAMED}test_a_stage_that_is_a_host_is_told_as_the_host",),
    ),
    Edit(
        "a stage that is late has more to do",
        STRAGGLER,
        "Cause.PIPELINE_STAGE if scope is Scope.STAGE else sign.cause if",
        "sign.cause if",
        (f"{TEST_STRAGGLERS}test_stage_that_has_more_to_do_is_named_and_not_its_ranks",),
    ),
    Edit(
        "a loader counts more than a hot GPU",
        STRAGGLER,
        (
            "    if position is not None and position.is_definite and _cause(position) in "
            "{Cause.DATA_LOADING, Cause.GC}:\n        return None\n"
        ),
        "",
        (
            f"{TEST_STRAGGLERS_NAMED}test_a_stack_with_a_definite_reason_counts_more_than_a_sign_and_a_sign_more_than_other_stacks",
        ),
    ),
    Edit(
        "a hot GPU counts more than a checkpoint",
        STRAGGLER,
        " and _cause(position) in {Cause.DATA_LOADING, Cause.GC}:",
        ":",
        (
            f"{TEST_STRAGGLERS_NAMED}test_a_stack_with_a_definite_reason_counts_more_than_a_sign_and_a_sign_more_than_other_stacks",
        ),
    ),
    Edit(
        "a hot GPU is no established reason",
        STRAGGLER,
        "if position is not None and cause and not sign else",
        "if position is not None and cause else",
        (
            f"{TEST_STRAGGLERS_NAMED}test_a_stack_with_a_definite_reason_counts_more_than_a_sign_and_a_sign_more_than_other_stacks",
        ),
    ),
    Edit(
        "without a cause nothing is established",
        STRAGGLER,
        "if position is not None and cause and not sign else",
        "if position is not None and not sign else",
        (
            f"{TEST_STRAGGLERS_NAMED}test_a_stack_with_a_definite_reason_counts_more_than_a_sign_and_a_sign_more_than_other_stacks",
        ),
    ),
    Edit(
        "what one rank of a host shows is not the host's reason",
        STRAGGLER,
        "if first is not None and all(sign is not None and sign.cause is first.cause for sign in signs) else None",
        "",
        (f"{TEST_STRAGGLERS_NAMED}test_what_only_one_rank_of_a_late_host_shows_is_not_why_the_host_is_late",),
    ),
    Edit(
        "a quota is no matter of the GPU",
        STRAGGLER,
        "if sign is not None and sign.cause in ON_DEVICE else one",
        "if sign is not None else one",
        (
            f"{TEST_STRAGGLERS_NAMED}test_a_stack_with_a_definite_reason_counts_more_than_a_sign_and_a_sign_more_than_other_stacks",
        ),
    ),
    Edit(
        "a loader that was seen once counts more than user code",
        STRAGGLER,
        "return max(definite or seen,",
        "return max(seen,",
        (
            f"{TEST_STRAGGLERS_NAMED}test_a_stack_with_a_definite_reason_counts_more_than_a_sign_and_a_sign_more_than_other_stacks",
        ),
    ),
    Edit(
        "what was seen most often counts",
        STRAGGLER,
        ("return max(definite or seen, key=lambda position: sum(other.spot == position.spot for other in seen), default=None)"),
        "return next(iter(definite or seen), None)",
        (
            f"{TEST_STRAGGLERS_NAMED}test_a_stack_with_a_definite_reason_counts_more_than_a_sign_and_a_sign_more_than_other_stacks",
        ),
    ),
    Edit(
        "who waits in a collective is not late by it",
        STRAGGLER,
        "if position.place is Place.HOST and (",
        "if (",
        (
            f"{TEST_STRAGGLERS_NAMED}test_a_stack_with_a_definite_reason_counts_more_than_a_sign_and_a_sign_more_than_other_stacks",
        ),
    ),
    Edit(
        "whose reason is known is not looked at again",
        STRAGGLER,
        "for found in correlate(situation) for subject in found.culprits if found.cause is None]",
        "for found in correlate(situation) for subject in found.culprits]",
        (f"{TEST_STRAGGLERS_NAMED}test_only_of_whom_nothing_is_known_a_closer_look_is_worth_it",),
    ),
    Edit(
        "where nothing moves nobody is looked at for lateness",
        STRAGGLER,
        "    if not situation.motion:\n        return ()\n",
        "",
        (f"{TEST_STRAGGLERS_NAMED}test_only_of_whom_nothing_is_known_a_closer_look_is_worth_it",),
    ),
    Edit(
        "a damaged recorder tells of no lateness",
        ROUNDS,
        " or recording.damage:",
        ":",
        (f"{TEST_STRAGGLERS_NAMED}test_what_is_damaged_tells_of_nobody_that_it_is_late",),
    ),
    Edit(
        "who waits for a transfer is a victim",
        ROUNDS,
        "            waited_ns += call.wait_ns\n",
        "            waited_ns += call.wait_ns if call.seq >= 0 else 0\n",
        (f"{TEST_STRAGGLERS_NAMED}test_who_waits_for_a_transfer_is_not_late_by_its_own_doing",),
    ),
    Edit(
        "a transfer is no round of its group",
        ROUNDS,
        "        if call.seq >= 0:  # a transfer",
        "        if True:  # a transfer",
        (f"{TEST_STRAGGLERS_NAMED}test_who_waits_for_a_transfer_is_not_late_by_its_own_doing",),
    ),
    Edit(
        "without one member nobody knows when all had come",
        ROUNDS,
        " if len(times) == len(groups.groups[key[0]].ranks)}",
        "}",
        (f"{TEST_STRAGGLERS_NAMED}test_without_one_members_recorder_nobody_knows_when_a_collective_of_one_host_ended",),
    ),
    Edit(
        "one who comes early makes nobody late",
        ROUNDS,
        "[(len(self.late_ns) - 1) // 2]",
        "[0]",
        (f"{TEST_STRAGGLERS_LIMITS}test_who_is_late_by_rounds_alone",),
    ),
    Edit(
        "ranks of no known host share no clock",
        ROUNDS,
        "return len(hosts) == 1 and None not in hosts",
        "return len(hosts) == 1",
        (f"{TEST_STRAGGLERS_LIMITS}test_clocks_of_two_hosts_are_not_compared",),
    ),
    Edit(
        "who is as late as another each time costs nothing",
        LATENESS,
        "if lost >= LATE_SHARE * rounds.window_ns:",
        "if True:",
        (f"{TEST_STRAGGLERS_LIMITS}test_who_is_late_by_rounds_alone",),
    ),
    Edit(
        "rounds that cost next to nothing do not count",
        LATENESS,
        "WEIGHTY = 0.2",
        "WEIGHTY = 0.0",
        (f"{TEST_STRAGGLERS_LIMITS}test_who_is_late_by_rounds_alone",),
    ),
    Edit(
        "lateness that goes round must do so all along",
        LATENESS,
        " or len(weighty) < FEWEST_ROUNDS or not _is_spread(rounds, weighty):",
        " or len(weighty) < FEWEST_ROUNDS:",
        (f"{TEST_STRAGGLERS_LIMITS}test_who_is_late_by_rounds_alone",),
    ),
    Edit(
        "where three are always late it does not go round",
        LATENESS,
        "return None if always else _find_rotating(rounds)",
        "return _find_rotating(rounds)",
        (f"{TEST_STRAGGLERS_LIMITS}test_who_is_late_by_rounds_alone",),
    ),
    Edit(
        "a few rounds are no lateness that goes round",
        LATENESS,
        " or len(weighty) < FEWEST_ROUNDS or not _is_spread(rounds, weighty):",
        " or not _is_spread(rounds, weighty):",
        (f"{TEST_STRAGGLERS_LIMITS}test_who_is_late_by_rounds_alone",),
    ),
)
