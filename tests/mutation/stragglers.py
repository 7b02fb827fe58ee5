"""Rules of lateness: who makes the others wait, and who only looks so."""

from tests.mutation.edit import Edit

LATENESS = "watchdog/graph/lateness.py"
ROUNDS = "watchdog/graph/rounds.py"
TEST_STRAGGLERS = "tests/diagnosis/test_stragglers.py::"
TEST_STRAGGLERS_LIMITS = "tests/diagnosis/test_stragglers_limits.py::"

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
)
