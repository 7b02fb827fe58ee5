"""The rules that the cases impose on the verdict, each with the tests that hold it and what breaks it."""

from typing import NamedTuple

from tests.mutation.edit import Edit

FAILURES = "tests/diagnosis/test_logs_failures.py::"
WAITS = "tests/diagnosis/test_logs_waits.py::"
LIMITS = "tests/diagnosis/test_logs_limits.py::"
HERE = "tests/casebook/test_rules.py::"
LIVE = "tests/diagnosis/test_live.py::"
SAMPLES = "tests/diagnosis/test_samples.py::"
XIDS = "tests/diagnosis/test_kernel_xids.py::"
NCCL = "tests/diagnosis/test_logs_nccl.py::"
OF_CASES = "tests/casebook/test_rules_of_cases.py::"
STACKS = "tests/collectors/live/test_stacks.py::"


class Rule(NamedTuple):
    """One rule: its number, what it says, the tests that hold it, and edits of the source without it."""

    number: int
    says: str
    tests: tuple[str, ...]
    broken_by: tuple[Edit, ...]


def rule(number: int, says: str, tests: tuple[str, ...], *edits: tuple[str, str, str]) -> Rule:
    """A rule, and each place of the source that it stands in: file, what is written there, what would break it."""
    names = [f"T{number}{chr(ord('a') + place) if len(edits) > 1 else ''}: {says}" for place in range(len(edits))]
    return Rule(number, says, tests, tuple(Edit(name, *edit, tests) for name, edit in zip(names, edits, strict=True)))


RULES = (
    rule(
        1,
        "who times out, logs or aborts first, or is torchrun's root cause, is no culprit for that",
        (
            f"{FAILURES}test_whoever_logs_first_is_a_victim_where_another_has_an_error_of_its_own",
            f"{FAILURES}test_what_torchrun_calls_the_root_cause_is_not_believed",
            f"{FAILURES}test_a_rank_that_waited_like_all_others_has_survived_what_its_log_holds",
        ),
        (
            "watchdog/correlators/logged_failure.py",
            "        candidates=subjects,\n        victims=tuple(sorted(situation.view.ended_ranks",
            "        culprits=subjects,\n        victims=tuple(sorted(situation.view.ended_ranks",
        ),
        (
            "watchdog/graph/log_facts.py",
            "        if rank not in logs.gave_up\n",
            "",
        ),
    ),
    rule(
        2,
        "the earliest divergence counts, not the place where ranks block",
        (
            f"{HERE}test_first_divergence_counts_and_not_the_later_ones_that_it_causes",
            f"{LIMITS}test_the_earliest_number_that_differs_counts",
        ),
        (
            "watchdog/graph/divergence.py",
            "    hard = next((seq for seq in sequences if table.is_open",
            "    hard = next((seq for seq in reversed(sequences) if table.is_open",
        ),
        (
            "watchdog/graph/log_waits.py",
            "for seq, there in sorted(by_seq.items()):",
            "for seq, there in sorted(by_seq.items(), reverse=True):",
        ),
    ),
    rule(
        3,
        "a majority needs three ranks and a clear split, against silent ones as well",
        (
            f"{WAITS}test_a_clear_majority_is_needed_for_a_culprit_and_silent_ranks_may_be_on_any_side",
            f"{LIMITS}test_two_against_one_are_no_majority",
            f"{HERE}test_of_two_ranks_that_differ_none_is_accused",
        ),
        (
            "watchdog/graph/divergence.py",
            "if largest + against < MIN_MAJORITY or largest < CLEAR_RATIO * (against + len(self.silent)):",
            "if False:",
        ),
        ("watchdog/graph/log_waits.py", "against = world_size - largest", "against = 0"),
    ),
    rule(
        4,
        "who says nothing is a finding, and bounds the verdict",
        (f"{WAITS}test_timeouts_alone_name_nobody_and_say_which_logs_are_silent",),
        (
            "watchdog/correlators/logged_unknown.py",
            "silent = (rank for rank in situation.standings if rank not in waiting)",
            "silent = iter(())",
        ),
    ),
    rule(
        5,
        "hung takes two looks, and what moved between them is slow",
        (
            f"{SAMPLES}test_operation_that_completes_between_two_samples_is_no_hang",
            f"{OF_CASES}test_one_look_at_ranks_that_leave_is_no_hang",
        ),
        ("watchdog/graph/motion.py", "return bool(gone)", "return False"),
        ("watchdog/correlators/teardown_stuck.py", "    if ranks and (is_still or (words and not rest)):\n", "    if ranks:\n"),
    ),
    rule(
        6,
        "equal counts that stand still are a matter of devices and links, others of a rank",
        (
            f"{XIDS}test_without_an_error_that_matters_nobody_is_to_blame",
            f"{LIVE}test_everybody_in_one_operation_is_a_matter_of_the_links",
        ),
        (
            "watchdog/correlators/comm_stuck.py",
            "    stuck = [meeting for meeting in situation.graph.dead_ends if is_stuck(situation, meeting)]\n",
            "    stuck: list[Meeting] = []\n",
        ),
    ),
    rule(
        7,
        "where Python's stacks are alike native ones tell",
        (f"{HERE}test_only_native_stacks_tell_the_librarys_own_fault_where_pythons_are_alike",),
        (
            "watchdog/correlators/comm_stuck.py",
            "any(_OWN_QUEUE.match(frame.name) for thread",
            "any(frame.name for thread",
        ),
        (
            "watchdog/correlators/comm_stuck.py",
            "return any(_OWN_QUEUE.match(frame.name) for thread in threads if thread is not None for frame in thread.frames)",
            "return False",
        ),
    ),
    rule(
        8,
        "lines are primary or secondary, and in order only beyond what clocks differ",
        (f"{FAILURES}test_errors_are_ordered_by_their_times_with_an_allowance_for_clocks",),
        ("watchdog/graph/log_facts.py", "ONE_HOST_S, SEVERAL_HOSTS_S = 1.0, 5.0", "ONE_HOST_S, SEVERAL_HOSTS_S = 1.0, 0.0"),
    ),
    rule(
        9,
        "a rank in a group, a process number or a device is no global rank",
        (
            f"{LIMITS}test_place_in_a_communicator_that_is_not_the_world_is_no_global_rank_even_if_only_one_has_it",
            f"{NCCL}test_a_rank_in_a_smaller_communicator_is_no_global_rank",
            f"{XIDS}test_a_process_that_the_driver_names_is_a_rank_only_by_the_hosts_numbers",
        ),
        ("watchdog/graph/log_facts.py", "        if event.size == world:\n", "        if event.size:\n"),
        (
            "watchdog/store/kernel_events.py",
            "rank = by_pci.get(event.pci) if by_pci else by_pid.get(event.pid)",
            "rank = by_pid.get(event.pid)",
        ),
    ),
    rule(
        10,
        "that the cause cannot be told is an answer",
        (
            f"{FAILURES}test_exceptions_without_times_are_not_ordered",
            f"{WAITS}test_a_rank_that_had_issued_nothing_more_while_all_others_waited_may_be_missing",
        ),
        (
            "watchdog/correlators/logged_failure.py",
            "is_certain = alike or (len(first) == 1 and is_clear)",
            "is_certain = alike or is_clear",
        ),
        ("watchdog/correlators/logged_wait.py", "culprits=subjects if is_clear else (),", "culprits=subjects,"),
    ),
    rule(
        11,
        "looking does no harm: it stops nobody, and has a deadline",
        (
            f"{STACKS}test_looking_causes_no_switch_of_a_sleeper",
            f"{STACKS}test_no_stack_before_the_deadline_is_timed_out_and_leaves_no_py_spy",
        ),
        (
            "collectors/live/stacks.py",
            'run = PySpyRun(program, target.pid, "--nonblocking")',
            "run = PySpyRun(program, target.pid)",
        ),
    ),
    rule(
        12,
        "what is lawful or only a warning accuses nobody",
        (
            f"{WAITS}test_what_cannot_be_compared_is_no_divergence",
            f"{XIDS}test_without_an_error_that_matters_nobody_is_to_blame",
            f"{WAITS}test_one_rank_ahead_in_a_broadcast_is_no_divergence",
        ),
        ("watchdog/graph/log_waits.py", "if by_size and wait.op in _ALIKE else", "if by_size else"),
        ("watchdog/store/kernel_events.py", "if rank is not None and event.is_fatal:", "if rank is not None:"),
    ),
)
