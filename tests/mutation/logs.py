"""Rules of logs: whose a line is, what comes first, who waits in what."""

from tests.mutation.edit import Edit

LOGGED_ABSENCE = "watchdog/correlators/logged_absence.py"
LOGGED_DESYNC = "watchdog/correlators/logged_desync.py"
LOGGED_FAILURE = "watchdog/correlators/logged_failure.py"
LOGGED_INIT = "watchdog/correlators/logged_init.py"
LOGGED_NETWORK = "watchdog/correlators/logged_network.py"
LOGGED_UNKNOWN = "watchdog/correlators/logged_unknown.py"
LOGGED_WAIT = "watchdog/correlators/logged_wait.py"
LOGGED_WAYS = "watchdog/correlators/logged_ways.py"
LOG_FACTS = "watchdog/graph/log_facts.py"
LOG_GROUPS = "watchdog/graph/log_groups.py"
LOG_NETWORK = "watchdog/graph/log_network.py"
LOG_PLACES = "watchdog/graph/log_places.py"
LOG_WAITS = "watchdog/graph/log_waits.py"
SEEN_RANKS = "watchdog/store/seen_ranks.py"
TEST_LOGS_FAILURES = "tests/diagnosis/test_logs_failures.py::"
TEST_LOGS_LIMITS = "tests/diagnosis/test_logs_limits.py::"
TEST_LOGS_NCCL = "tests/diagnosis/test_logs_nccl.py::"
TEST_LOGS_PLACES = "tests/diagnosis/test_logs_places.py::"
TEST_LOGS_WAITS = "tests/diagnosis/test_logs_waits.py::"
LOGGED_LOSS = "watchdog/correlators/logged_loss.py"
TEST_LOGS_LOSSES = "tests/diagnosis/test_logs_losses.py::"
FATES = "watchdog/correlators/fates.py"
REPORTED = "watchdog/correlators/reported.py"
TEST_LOGS_HEARSAY = "tests/diagnosis/test_logs_hearsay.py::"

TEST_LOGS_UNSIGNED = "tests/diagnosis/test_logs_unsigned.py::"
TEST_RANK_LOG = "tests/collectors/test_rank_log.py::"
UNSIGNED_TRACEBACKS = "collectors/parsing/unsigned_tracebacks.py"

LOGS = (
    Edit(
        "an unsigned exception is a reported rank's only where no other rank failed",
        UNSIGNED_TRACEBACKS,
        "len(own) == 1 and own[0].code > 0",
        "own and own[0].code > 0",
        (f"{TEST_LOGS_UNSIGNED}test_where_more_than_one_may_have_raised_it_nobody_is_accused",),
    ),
    Edit(
        "of several unsigned exceptions none is given to a rank",
        UNSIGNED_TRACEBACKS,
        " or seen.others)",
        ")",
        (f"{TEST_LOGS_UNSIGNED}test_where_more_than_one_may_have_raised_it_nobody_is_accused",),
    ),
    Edit(
        "a crash after which its rank trains on was a child's",
        "collectors/parsing/log_events.py",
        "(is_survivable(read.line) or event.signal)",
        "is_survivable(read.line)",
        (f"{TEST_LOGS_UNSIGNED}test_a_crash_after_which_its_rank_trains_on_was_a_childs",),
    ),
    Edit(
        "an abort is no crash of its own",
        "collectors/parsing/crash_lines.py",
        "(?!Aborted)",
        "",
        (f"{TEST_LOGS_UNSIGNED}test_an_abort_may_be_a_watchdogs",),
    ),
    Edit(
        "only what torch signs is known by its end alone",
        "collectors/parsing/rank_log.py",
        "elif self._is_hooked and self._above",
        "elif self._rank is not None and self._above",
        (f"{TEST_RANK_LOG}test_a_traceback_that_torch_signs_is_known_by_its_end_alone",),
    ),
    Edit(
        "who waits elsewhere is not accused of missing a barrier",
        LOGGED_ABSENCE,
        "is_doubtful = any(rank in waited for rank in absent)",
        "is_doubtful = False",
        (f"{TEST_LOGS_WAITS}test_whoever_waits_elsewhere_is_not_accused_of_missing_a_barrier",),
    ),
    Edit(
        "what others say of a barrier accuses nobody",
        LOGGED_ABSENCE,
        "[claim for claim in claims if not claim[1].is_hearsay]",
        "claims",
        (f"{TEST_LOGS_WAITS}test_a_monitored_barrier_names_who_did_not_come",),
    ),
    Edit(
        "ranks of a barrier are global only where the signer says so",
        LOGGED_ABSENCE,
        "return signed is None or event.group_rank is None or signed == event.group_rank",
        "return True",
        (f"{TEST_LOGS_LIMITS}test_ranks_that_a_barrier_of_a_smaller_group_misses_are_no_global_ones",),
    ),
    Edit(
        "an error of its own comes before a divergence in logs",
        LOGGED_DESYNC,
        " or situation.own_failures:",
        ":",
        (f"{TEST_LOGS_LIMITS}test_first_error_of_its_own_is_all_that_is_told",),
    ),
    Edit(
        "recorders come before divergences in logs",
        LOGGED_DESYNC,
        "not are_logs_alone(situation) or ",
        "",
        (f"{TEST_LOGS_WAITS}test_recorders_outdo_timeouts",),
    ),
    Edit(
        "fingerprints name global ranks only where the signer says so",
        LOGGED_DESYNC,
        "not claims or any(fact.rank not in {None, event.own.group_rank} for fact, event in claims)",
        "not claims",
        (f"{TEST_LOGS_WAITS}test_fingerprints_of_a_smaller_group_name_no_global_ranks",),
    ),
    Edit(
        "without a clear majority nobody in a log is accused",
        LOGGED_DESYNC,
        "culprits=_chosen(subjects, minority),",
        "culprits=_chosen(subjects, minority or sorted(heard)),",
        (f"{TEST_LOGS_WAITS}test_differing_sizes_under_one_number_are_a_divergence_without_a_culprit",),
    ),
    Edit(
        "of two that failed together none is accused",
        LOGGED_FAILURE,
        "is_certain = alike or (len(first) == 1 and is_clear)",
        "is_certain = alike or is_clear",
        (f"{TEST_LOGS_FAILURES}test_errors_are_ordered_by_their_times_with_an_allowance_for_clocks",),
    ),
    Edit(
        "an error that nobody suffered from accuses nobody",
        LOGGED_FAILURE,
        "(bool(bereaved) and not first[0].is_passed)",
        "(not first[0].is_passed)",
        (f"{TEST_LOGS_FAILURES}test_an_exception_that_nobody_waits_for_may_have_been_caught",),
    ),
    Edit(
        "what a launcher calls the root cause is not believed",
        LOGGED_FAILURE,
        "        candidates=subjects,\n        victims",
        "        culprits=subjects,\n        victims",
        (f"{TEST_LOGS_FAILURES}test_what_torchrun_calls_the_root_cause_is_not_believed",),
    ),
    Edit(
        "the largest rank that a log names is not the number of ranks",
        SEEN_RANKS,
        "if is_told or max(_sizes(view)) >= (view.world_size or 1) else None",
        "if True else None",
        (f"{TEST_LOGS_PLACES}test_the_largest_rank_that_a_log_names_does_not_tell_how_many_there_are",),
    ),
    Edit(
        "a group that one rank names is another's only where both count as in it",
        LOG_GROUPS,
        "if len(groups) == 1 and is_numbered else None",
        "if len(groups) == 1 else None",
        (f"{TEST_LOGS_PLACES}test_a_group_that_some_of_its_ranks_name_is_that_of_all_which_count_as_the_world_does",),
    ),
    Edit(
        "who is behind in an operation that its root may finish alone is no candidate",
        LOG_PLACES,
        "if last.op in _OF_ALL and ",
        "if ",
        (f"{TEST_LOGS_PLACES}test_who_has_not_finished_what_most_others_have_is_a_candidate",),
    ),
    Edit(
        "set-up that some have completed is no matter of the bootstrap",
        LOGGED_INIT,
        "Cause.BOOTSTRAP if is_everyone else None",
        "Cause.BOOTSTRAP",
        (f"{TEST_LOGS_NCCL}test_half_of_the_ranks_complete_the_set_up",),
    ),
    Edit(
        "who has not completed a set-up is not accused",
        LOGGED_INIT,
        "candidates=unfinished if done else (),",
        "culprits=unfinished if done else (),",
        (f"{TEST_LOGS_NCCL}test_half_of_the_ranks_complete_the_set_up",),
    ),
    Edit(
        "multicast that fails everywhere names no host",
        LOGGED_INIT,
        "for host in hosts] if others else []",
        "for host in hosts]",
        (f"{TEST_LOGS_NCCL}test_multicast_that_one_node_refuses_is_a_matter_of_the_node",),
    ),
    Edit(
        "direct copies are suspected only at the first operation",
        LOGGED_NETWORK,
        "finding.cause is None and finding.kind is Kind.INIT_STUCK and goes",
        "goes",
        (f"{TEST_LOGS_NCCL}test_a_first_operation_between_gpus_that_copy_directly_is_a_matter_of_access",),
    ),
    Edit(
        "a job that returned in peace is not accused",
        LOGGED_WAIT,
        " or _has_returned(situation)",
        "",
        (f"{TEST_LOGS_WAITS}test_a_job_that_returned_in_peace_is_not_accused_for_what_its_logs_grumble",),
    ),
    Edit(
        "a status line suggests who is missing and accuses nobody",
        LOGGED_WAIT,
        "culprits=subjects if is_clear else (),",
        "culprits=subjects,",
        (f"{TEST_LOGS_WAITS}test_a_rank_that_had_issued_nothing_more_while_all_others_waited_may_be_missing",),
    ),
    Edit(
        "a log that says nothing of a wait is a candidate",
        LOGGED_UNKNOWN,
        "silent = (rank for rank in situation.standings if rank not in waiting)",
        "silent = iter(())",
        (f"{TEST_LOGS_WAITS}test_timeouts_alone_name_nobody_and_say_which_logs_are_silent",),
    ),
    Edit(
        "that a host lacks InfiniBand is known only from another that has it",
        LOGGED_WAYS,
        "if odd and good:",
        "if odd:",
        (f"{TEST_LOGS_NCCL}test_one_host_that_goes_over_sockets_where_others_use_infiniband",),
    ),
    Edit(
        "of two hosts neither is the odd one",
        LOGGED_WAYS,
        "is_clear = len(odd) + len(good) >= LEAST_HOSTS and len(good) >= CLEAR_RATIO * len(odd)",
        "is_clear = True",
        (f"{TEST_LOGS_NCCL}test_one_host_that_goes_over_sockets_where_others_use_infiniband",),
    ),
    Edit(
        "an exception before a wait was survived",
        LOG_FACTS,
        "        if rank not in logs.gave_up\n",
        "",
        (f"{TEST_LOGS_FAILURES}test_a_rank_that_waited_like_all_others_has_survived_what_its_log_holds",),
    ),
    Edit(
        "errors of one host that are close together have no order",
        LOG_FACTS,
        "ONE_HOST_S, SEVERAL_HOSTS_S = 1.0, 5.0",
        "ONE_HOST_S, SEVERAL_HOSTS_S = 0.0, 5.0",
        (f"{TEST_LOGS_FAILURES}test_errors_are_ordered_by_their_times_with_an_allowance_for_clocks",),
    ),
    Edit(
        "errors of two hosts that their clocks may confuse have no order",
        LOG_FACTS,
        "ONE_HOST_S, SEVERAL_HOSTS_S = 1.0, 5.0",
        "ONE_HOST_S, SEVERAL_HOSTS_S = 1.0, 0.0",
        (f"{TEST_LOGS_FAILURES}test_errors_are_ordered_by_their_times_with_an_allowance_for_clocks",),
    ),
    Edit(
        "errors of one host are ordered by its one clock",
        LOG_FACTS,
        "(ONE_HOST_S if is_near else SEVERAL_HOSTS_S)",
        "SEVERAL_HOSTS_S",
        (f"{TEST_LOGS_FAILURES}test_errors_are_ordered_by_their_times_with_an_allowance_for_clocks",),
    ),
    Edit(
        "logs without years keep their order around New Year",
        LOG_FACTS,
        "2 * HALF_A_YEAR_NS if max",
        "0 if max",
        (f"{TEST_LOGS_FAILURES}test_errors_around_new_year_keep_their_order",),
    ),
    Edit(
        "a place in a part of the world is no global rank",
        LOG_FACTS,
        "        if event.size == world:",
        "        if event.size:",
        (f"{TEST_LOGS_LIMITS}test_place_in_a_communicator_that_is_not_the_world_is_no_global_rank_even_if_only_one_has_it",),
    ),
    Edit(
        "a place that two processes claim is nobody's",
        LOG_FACTS,
        "for process in processes if len(processes) == 1}",
        "for process in processes}",
        (f"{TEST_LOGS_NCCL}test_a_rank_in_a_smaller_communicator_is_no_global_rank",),
    ),
    Edit(
        "a batch that was skipped for want of memory is no death",
        LOG_FACTS,
        " and not event.is_survived",
        "",
        (f"{TEST_LOGS_FAILURES}test_a_batch_skipped_for_want_of_memory_is_no_death",),
    ),
    Edit(
        "an error of the device after a wait that was given up may come of the abort",
        LOG_FACTS,
        "rank is None or rank in gave_up or",
        "rank is None or",
        (f"{TEST_LOGS_FAILURES}test_a_rank_that_waited_like_all_others_has_survived_what_its_log_holds",),
    ),
    Edit(
        "what a cut log does not complete may be completed",
        LOG_FACTS,
        "if rank is not None and not self.is_cut)",
        "if rank is not None)",
        (f"{TEST_LOGS_LIMITS}test_set_up_is_open_only_where_it_was_not_completed_and_no_line_was_cut_off",),
    ),
    Edit(
        "memory that runs out after the set-up is no failure of it",
        LOG_FACTS,
        " and rank not in completed",
        "",
        (f"{TEST_LOGS_LIMITS}test_memory_that_runs_out_after_the_set_up_is_no_failure_of_it",),
    ),
    Edit(
        "what was completed later is not open",
        LOG_FACTS,
        "if event.step == SET_UP_BEGAN)",
        "if True)",
        (f"{TEST_LOGS_LIMITS}test_set_up_is_open_only_where_it_was_not_completed_and_no_line_was_cut_off",),
    ),
    Edit(
        "a failed completion is the network's only where retries ran out",
        LOG_NETWORK,
        "event.status == RETRIES_RAN_OUT for",
        "True for",
        (f"{TEST_LOGS_LIMITS}test_failed_completion_is_the_networks_only_where_retries_ran_out",),
    ),
    Edit(
        "two pairs that cannot talk are no link",
        LOG_NETWORK,
        "if len(pairs) == 1 else frozenset()",
        "if pairs else frozenset()",
        (f"{TEST_LOGS_NCCL}test_one_pair_that_cannot_talk_is_a_link",),
    ),
    Edit(
        "hosts whose ports err are named and no peer",
        LOG_NETWORK,
        "    if hosts:\n",
        "    if False:\n",
        (
            f"{TEST_LOGS_NCCL}test_errors_of_the_network_explain_an_operation_that_all_have_entered",
            f"{TEST_LOGS_NCCL}test_hosts_whose_ports_err_are_named_and_not_the_peer_of_a_completion",
        ),
    ),
    Edit(
        "GPUs of two hosts do not copy directly",
        LOG_NETWORK,
        "and len(hosts) == 1 and",
        "and",
        (f"{TEST_LOGS_NCCL}test_a_first_operation_between_gpus_that_copy_directly_is_a_matter_of_access",),
    ),
    Edit(
        "who has not finished what it issued is not behind",
        LOG_WAITS,
        "status.enqueued == status.completed < first_seq",
        "status.completed < first_seq",
        (f"{TEST_LOGS_WAITS}test_a_rank_that_had_issued_nothing_more_while_all_others_waited_may_be_missing",),
    ),
    Edit(
        "who waits elsewhere is not behind",
        LOG_WAITS,
        "                and fact.rank not in busy\n",
        "",
        (f"{TEST_LOGS_WAITS}test_a_rank_that_had_issued_nothing_more_while_all_others_waited_may_be_missing",),
    ),
    Edit(
        "who spoke before the others waited may have come since",
        LOG_WAITS,
        "                and status.at_ns >= all_wait_ns\n",
        "",
        (f"{TEST_LOGS_WAITS}test_a_rank_that_had_issued_nothing_more_while_all_others_waited_may_be_missing",),
    ),
    Edit(
        "nobody is behind where a wait has no time",
        LOG_WAITS,
        "not starts or len(starts) < len(waits)",
        "not starts",
        (f"{TEST_LOGS_LIMITS}test_nobody_is_behind_where_a_wait_has_no_time",),
    ),
    Edit(
        "a size that is not told is no difference",
        LOG_WAITS,
        "if by_size and any(size is None for _, size in found):",
        "if False:",
        (f"{TEST_LOGS_LIMITS}test_size_that_is_not_told_is_no_difference",),
    ),
    Edit(
        "sizes may differ lawfully in some operations",
        LOG_WAITS,
        "if by_size and wait.op in _ALIKE else",
        "if by_size else",
        (f"{TEST_LOGS_WAITS}test_what_cannot_be_compared_is_no_divergence",),
    ),
    Edit(
        "sibling groups of one name are not compared",
        LOG_WAITS,
        "if len(set(numbers)) < len(numbers):",
        "if False:",
        (f"{TEST_LOGS_LIMITS}test_siblings_of_one_name_are_not_compared",),
    ),
    Edit(
        "old watchdogs that name no group are compared only if their ranks are global",
        LOG_WAITS,
        "return is_global if group.is_world or not group.name else True",
        "return True",
        (f"{TEST_LOGS_WAITS}test_what_cannot_be_compared_is_no_divergence",),
    ),
    Edit(
        "silent ranks may stand on any side of a split in logs",
        LOG_WAITS,
        "against = world_size - largest",
        "against = sum(len(side.ranks) for side in self.sides[1:])",
        (f"{TEST_LOGS_WAITS}test_a_clear_majority_is_needed_for_a_culprit_and_silent_ranks_may_be_on_any_side",),
    ),
    Edit(
        "two against one are no majority in logs",
        LOG_WAITS,
        "largest >= MIN_MAJORITY and ",
        "",
        (f"{TEST_LOGS_LIMITS}test_two_against_one_are_no_majority",),
    ),
    Edit(
        "only of the world are all members known",
        LOG_WAITS,
        "if is_clear and self._is_of_all(world_size) else",
        "if is_clear else",
        (f"{TEST_LOGS_LIMITS}test_of_a_group_that_is_not_the_world_nobody_is_accused",),
    ),
    Edit(
        "numbers of transfers are those of pairs",
        LOG_WAITS,
        " and event.op not in _PAIRWISE:",
        ":",
        (f"{TEST_LOGS_LIMITS}test_numbers_of_transfers_are_not_compared",),
    ),
    Edit(
        "the earliest number at which watchdogs differ counts",
        LOG_WAITS,
        "for seq, there in sorted(by_seq.items()):",
        "for seq, there in sorted(by_seq.items(), reverse=True):",
        (f"{TEST_LOGS_LIMITS}test_the_earliest_number_that_differs_counts",),
    ),
    Edit(
        "a loss of a rank that lives is history",
        LOGGED_LOSS,
        " and all(situation.stance(rank) in _OUT_OF_SIGHT for rank in ranks):",
        ":",
        (f"{TEST_LOGS_LOSSES}test_a_loss_of_a_rank_that_lives_elsewhere_is_history",),
    ),
    Edit(
        "connections close once all have returned",
        LOGGED_LOSS,
        "return has_returned or tells_more",
        "return tells_more",
        (f"{TEST_LOGS_LOSSES}test_connections_that_close_once_all_have_returned_are_no_loss",),
    ),
    Edit(
        "connections close after the training",
        LOGGED_LOSS,
        "(*WAITS, TrainingDone)",
        "WAITS",
        (f"{TEST_LOGS_LOSSES}test_connections_that_close_after_the_training_are_no_finding",),
    ),
    Edit(
        "a launcher that ends all ranks is no loss",
        LOGGED_LOSS,
        " if event.sign is not LostSign.TERMINATED]",
        "]",
        (f"{TEST_LOGS_LOSSES}test_a_launchers_own_end_of_all_ranks_is_no_loss",),
    ),
    Edit(
        "who says nothing of a loss may have gone first",
        LOGGED_LOSS,
        "silent = [rank for rank in situation.standings if rank not in ranks]",
        "silent: list[int] = []",
        (f"{TEST_LOGS_LOSSES}test_where_all_but_one_lost_the_store_that_one_may_have_gone_first",),
    ),
    Edit(
        "a wait from before the end is no matter of leaving",
        LOGGED_WAIT,
        "return late if len(late) == len(waits) else []",
        "return late",
        (f"{TEST_LOGS_WAITS}test_a_wait_from_before_the_end_of_the_training_is_no_matter_of_leaving",),
    ),
    Edit(
        "of two with the fewest to look after neither is behind",
        LOGGED_UNKNOWN,
        "if len(known) > 2 and len(fewest) == 1 else",
        "if len(known) > 2 else",
        (f"{TEST_LOGS_WAITS}test_who_has_fewest_to_look_after_is_known_only_among_three_and_alone",),
    ),
    Edit(
        "of two ranks none is known to be behind",
        LOGGED_UNKNOWN,
        "if len(known) > 2 and len(fewest) == 1 else",
        "if len(fewest) == 1 else",
        (f"{TEST_LOGS_WAITS}test_who_has_fewest_to_look_after_is_known_only_among_three_and_alone",),
    ),
    Edit(
        "where waits differ a stack elsewhere accuses nobody",
        LOGGED_WAIT,
        "if group.is_world and elsewhere and len(seqs) == 1:",
        "if group.is_world and elsewhere:",
        (f"{TEST_LOGS_WAITS}test_a_stack_elsewhere_accuses_only_where_all_others_wait_in_one_operation_of_all",),
    ),
    Edit(
        "a stack elsewhere is not missing from a part of the ranks",
        LOGGED_WAIT,
        "if group.is_world and elsewhere and len(seqs) == 1:",
        "if elsewhere and len(seqs) == 1:",
        (f"{TEST_LOGS_WAITS}test_a_stack_elsewhere_accuses_only_where_all_others_wait_in_one_operation_of_all",),
    ),
    Edit(
        "a host that has both ways is not odd",
        LOGGED_WAYS,
        "odd = sorted(by_way.get(worse, set()) - good)",
        "odd = sorted(by_way.get(worse, set()))",
        (f"{TEST_LOGS_NCCL}test_a_host_that_has_infiniband_and_sockets_is_not_odd",),
    ),
    Edit(
        "an error of a rank's own comes before the network",
        LOGGED_NETWORK,
        " or situation.own_failures:",
        ":",
        (f"{TEST_LOGS_NCCL}test_errors_of_the_network_beside_an_error_of_a_ranks_own_are_not_what_came_first",),
    ),
    Edit(
        "recorders come before errors of the network",
        LOGGED_NETWORK,
        " or not are_logs_alone(situation) or",
        " or",
        (f"{TEST_LOGS_NCCL}test_errors_of_the_network_are_not_told_of_a_job_whose_recorders_show_nobody_waiting",),
    ),
    Edit(
        "an exception that may be anybody's is not taken for its rank's own",
        LOG_FACTS,
        " if not view.tracebacks[rank].is_doubtful}",
        "}",
        (f"{TEST_LOGS_HEARSAY}test_an_exception_that_may_be_anybodys_accuses_nobody",),
    ),
    Edit(
        "whoever ended with an exception that may be anybody's is not the first for that",
        FATES,
        "if rank in situation.view.tracebacks and not is_doubtful(situation, rank):",
        "if rank in situation.view.tracebacks:",
        (f"{TEST_LOGS_HEARSAY}test_ended_with_an_unsure_exception_beside_others_is_not_the_first",),
    ),
    Edit(
        "who was aborted after its watchdog gave up is a victim",
        REPORTED,
        " - situation.logs.gave_up ",
        " ",
        (f"{TEST_LOGS_HEARSAY}test_who_was_aborted_after_its_own_watchdog_gave_up_is_no_candidate",),
    ),
    Edit(
        "only GPUs that copy directly are suspected of it",
        LOGGED_NETWORK,
        " and goes_peer_to_peer(situation.logs):",
        ":",
        (f"{TEST_LOGS_NCCL}test_a_first_operation_between_gpus_that_copy_directly_is_a_matter_of_access",),
    ),
)
