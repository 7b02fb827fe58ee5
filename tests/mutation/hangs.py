"""Rules of standstills: links, take-down, exceptions that something handles."""

from tests.mutation.edit import Edit

COMM_STUCK = "watchdog/correlators/comm_stuck.py"
HANDLED_EXCEPTION = "watchdog/correlators/handled_exception.py"
TEARDOWN_STUCK = "watchdog/correlators/teardown_stuck.py"
TEST_LEAVING = "tests/casebook/test_leaving.py::"
TEST_RULES = "tests/casebook/test_rules.py::"
TEST_RULES_OF_CASES = "tests/casebook/test_rules_of_cases.py::"
TEST_KERNEL_LINKS = "tests/diagnosis/test_kernel_links.py::"
FOREIGN_WAIT = "watchdog/correlators/foreign_wait.py"
ISSUING = "watchdog/model/issuing.py"
SHORT_NAMES = "watchdog/model/short_names.py"
STANDING = "watchdog/graph/standing.py"
TEST_LEAVING_BY_RECORDER = "tests/diagnosis/test_leaving_by_recorder.py::"
TEST_SHORT_NAMES = "tests/diagnosis/test_short_names.py::"
PROOF = "watchdog/graph/proof.py"
TEST_OLD_PICTURES = "tests/diagnosis/test_old_pictures.py::"

HANGS = (
    Edit(
        "gloo's recorder proves no entry",
        PROOF,
        " and signature.backend in DEVICE_BACKENDS",
        "",
        (f"{TEST_OLD_PICTURES}test_gloo_retires_what_failed_too_and_proves_nothing",),
    ),
    Edit(
        "what has a root proves no entry of others",
        PROOF,
        "_PROVING = EQUAL_SIZE_OPS - ROOTED_OPS",
        "_PROVING = EQUAL_SIZE_OPS",
        (f"{TEST_OLD_PICTURES}test_what_a_member_can_finish_alone_proves_nothing_of_the_others",),
    ),
    Edit(
        "a time before a dump's own is of another clock",
        "watchdog/store/dump_times.py",
        "if taken_ns is not None and taken_ns >= _newest_moment_ns(seen.recording):",
        "if taken_ns is not None:",
        (f"{TEST_OLD_PICTURES}test_dumps_that_are_older_copied_or_of_another_clock_count_as_hung",),
    ),
    Edit(
        "those that ended in peace are not dead",
        "watchdog/correlators/dead_rank.py",
        "(code is None or not all_left_in_peace(situation))",
        "True",
        (f"{TEST_OLD_PICTURES}test_ranks_that_ended_with_code_0_after_training_are_not_dead_and_who_is_left_does_not_leave",),
    ),
    Edit(
        "a short name begins with its package",
        SHORT_NAMES,
        "return short == inside or any(",
        "return True or any(",
        (f"{TEST_SHORT_NAMES}test_short_name_may_be_any_longer_one_that_ends_with_it",),
    ),
    Edit(
        "a step is not the loop",
        ISSUING,
        "return bool(words & _LOOPS) and not words & _PARTS",
        "return bool(words & _LOOPS)",
        (f"{TEST_LEAVING_BY_RECORDER}test_loop_is_left_when_the_function_that_holds_it_is_gone",),
    ),
    Edit(
        "who waits for the device may wait for others, unless it times kernels",
        STANDING,
        "if position.is_timing and is_whole and not is_hiding",
        "if is_whole and not is_hiding",
        (f"{TEST_LEAVING_BY_RECORDER}test_rank_that_times_kernels_with_nothing_outstanding_waits_for_nobody",),
    ),
    Edit(
        "of two hosts with faults neither is named",
        COMM_STUCK,
        "if len(faults) == 1 else ()),",
        "if faults else ()),",
        (f"{TEST_KERNEL_LINKS}test_a_port_that_went_down_explains_an_operation_across_hosts",),
    ),
    Edit(
        "a doubtful fault only suggests",
        COMM_STUCK,
        "is_weak = first.key.is_gathering or any(fault.is_doubtful for fault in faults)",
        "is_weak = first.key.is_gathering",
        (f"{TEST_KERNEL_LINKS}test_a_port_that_need_not_be_the_ranks_is_a_weak_sign",),
    ),
    Edit(
        "only NCCL's own queue accuses NCCL",
        COMM_STUCK,
        "return any(_OWN_QUEUE.match(frame.name) for thread",
        "return any(True for thread",
        (f"{TEST_RULES}test_only_native_stacks_tell_the_librarys_own_fault_where_pythons_are_alike",),
    ),
    Edit(
        "what handles exceptions is known by its name",
        HANDLED_EXCEPTION,
        "return departure in _HANDLED or any(map(_HANDLER.search, names))",
        "return departure in _HANDLED",
        (f"{TEST_RULES_OF_CASES}test_exception_of_its_own_that_leads_a_rank_elsewhere_comes_first",),
    ),
    Edit(
        "ranks that leave while another trains are not stuck",
        TEARDOWN_STUCK,
        "if not all(_has_trained(situation, rank) for rank in rest):",
        "if False:",
        (f"{TEST_RULES_OF_CASES}test_ranks_that_leave_while_another_trains_are_no_stuck_teardown",),
    ),
    Edit(
        "one look at ranks that leave is no hang",
        TEARDOWN_STUCK,
        "if ranks and (is_still or (words and not rest)):",
        "if ranks:",
        (f"{TEST_RULES_OF_CASES}test_one_look_at_ranks_that_leave_is_no_hang",),
    ),
    Edit(
        "ranks that leave after an exception are no stuck teardown",
        TEARDOWN_STUCK,
        " or any(rank in situation.view.tracebacks for rank in situation.standings):",
        ":",
        (f"{TEST_LEAVING}test_ranks_that_leave_after_an_exception_are_no_stuck_teardown",),
    ),
    Edit(
        "ranks that have left do not hold the others",
        TEARDOWN_STUCK,
        " - situation.view.ended_ranks\n",
        "\n",
        (f"{TEST_LEAVING}test_ranks_that_have_left_do_not_keep_the_others_from_being_stuck",),
    ),
    Edit(
        "of those who went elsewhere all must have raised",
        HANDLED_EXCEPTION,
        "any(here and here != ranks for here, ranks in zip(handling, places, strict=True))",
        "False",
        (
            f"{TEST_RULES_OF_CASES}test_exception_that_nothing_handles_or_that_not_all_who_went_elsewhere_have_is_not_what_came_first",
        ),
    ),
    Edit(
        "an exception that nothing handles led nobody elsewhere",
        HANDLED_EXCEPTION,
        "return departure in _HANDLED or any(map(_HANDLER.search, names))",
        "return True",
        (
            f"{TEST_RULES_OF_CASES}test_exception_that_nothing_handles_or_that_not_all_who_went_elsewhere_have_is_not_what_came_first",
        ),
    ),
    Edit(
        "a rank that is idle may be waited for in another library",
        FOREIGN_WAIT,
        "if set(ranks) <= set(inside) and all(situation.stance(rank) is Stance.WAITING for rank in others):",
        "if set(ranks) <= set(inside):",
        (f"{TEST_RULES_OF_CASES}test_a_wait_inside_another_library_may_be_for_a_rank_that_is_idle_or_was_not_seen",),
    ),
    Edit(
        "one look at another library suggests",
        FOREIGN_WAIT,
        "Confidence.SUPPORTED if is_still else Confidence.SUGGESTED",
        "Confidence.SUPPORTED",
        (f"{TEST_RULES_OF_CASES}test_where_all_others_wait_for_a_rank_inside_another_library_it_is_a_matter_of_both",),
    ),
    Edit(
        "a wait for a device is no wait in another library",
        FOREIGN_WAIT,
        " and standing.is_foreign",
        " and True",
        (f"{TEST_RULES_OF_CASES}test_a_rank_that_waits_for_a_device_that_nobody_saw_is_a_candidate_and_not_accused",),
    ),
    Edit(
        "who waits in another library is a victim, too",
        FOREIGN_WAIT,
        "victims=tuple(sorted({*victims, *inside})),",
        "victims=tuple(sorted(victims)),",
        (f"{TEST_RULES_OF_CASES}test_where_all_others_wait_for_a_rank_inside_another_library_it_is_a_matter_of_both",),
    ),
)
