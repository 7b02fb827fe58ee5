"""Rules of kernel logs and of NCCL's RAS: whose an error is, and when a count says anything."""

from tests.mutation.edit import Edit

BY_RAS = "watchdog/correlators/by_ras.py"
HOST_FAULTS = "watchdog/correlators/host_faults.py"
KERNEL_EVENTS = "watchdog/store/kernel_events.py"
RAS_POLLS = "watchdog/store/ras_polls.py"
TEST_KERNEL_KILLS = "tests/diagnosis/test_kernel_kills.py::"
TEST_KERNEL_LINKS = "tests/diagnosis/test_kernel_links.py::"
TEST_KERNEL_XIDS = "tests/diagnosis/test_kernel_xids.py::"
TEST_RAS = "tests/diagnosis/test_ras.py::"
TEST_RAS_LIMITS = "tests/diagnosis/test_ras_limits.py::"

HARDWARE = (
    Edit(
        "RAS does not bury whom recorders show",
        BY_RAS,
        "if _is_unseen(situation, rank) and rank not in situation.view.looks)",
        "if rank not in situation.view.looks)",
        (f"{TEST_RAS_LIMITS}test_who_was_seen_is_not_dead_because_ras_cannot_reach_it",),
    ),
    Edit(
        "RAS does not accuse whom recorders show",
        BY_RAS,
        "if all(_is_unseen(situation, rank) for rank in lag.ranks)]",
        "]",
        (f"{TEST_RAS_LIMITS}test_counts_that_leave_something_open_accuse_nobody",),
    ),
    Edit(
        "two that lag in different operations of RAS are not told",
        BY_RAS,
        " and len({lag.ranks for lag in lags}) == 1:",
        ":",
        (f"{TEST_RAS_LIMITS}test_counts_that_leave_something_open_accuse_nobody",),
    ),
    Edit(
        "a lag of somebody who was seen makes RAS doubtful",
        BY_RAS,
        " and len(lags) == len(polls.lags)",
        "",
        (f"{TEST_RAS_LIMITS}test_counts_that_leave_something_open_accuse_nobody",),
    ),
    Edit(
        "one answer of RAS may be on its way",
        BY_RAS,
        "if lags and is_still and",
        "if lags and",
        (f"{TEST_RAS}test_a_clear_minority_that_stays_behind_is_missing",),
    ),
    Edit(
        "whatever else names somebody comes before RAS",
        BY_RAS,
        "return not named and not any",
        "return not any",
        (f"{TEST_RAS}test_a_process_that_is_known_to_have_ended_counts_more",),
    ),
    Edit(
        "an error that names another job's process is doubtful",
        HOST_FAULTS,
        "is_doubtful=_is_strange(situation, host, worst)",
        "is_doubtful=False",
        (
            f"{TEST_KERNEL_XIDS}test_a_gpu_that_is_only_guessed_to_be_a_ranks_accuses_nobody",
            f"{TEST_KERNEL_XIDS}test_where_no_ranks_gpu_is_known_the_host_is_named_and_no_rank",
        ),
    ),
    Edit(
        "errors of links end with a reset",
        HOST_FAULTS,
        " and not event.is_cleared",
        "",
        (f"{TEST_KERNEL_XIDS}test_a_fatal_link_error_of_an_earlier_job_that_nobody_cleared_is_told",),
    ),
    Edit(
        "ranks of one host do not need its ports",
        HOST_FAULTS,
        "if len(hosts) < 2:",
        "if False:",
        (f"{TEST_KERNEL_LINKS}test_ranks_of_one_host_do_not_need_its_ports",),
    ),
    Edit(
        "a management port is no fabric",
        HOST_FAULTS,
        "if not event.is_up and _is_fabric(event)",
        "if not event.is_up",
        (f"{TEST_KERNEL_LINKS}test_a_port_that_went_down_explains_an_operation_across_hosts",),
    ),
    Edit(
        "an Ethernet port may not be the ranks'",
        HOST_FAULTS,
        "is_doubtful = not any(event.kind is LinkKind.INFINIBAND for event in downs)",
        "is_doubtful = False",
        (f"{TEST_KERNEL_LINKS}test_a_port_that_need_not_be_the_ranks_is_a_weak_sign",),
    ),
    Edit(
        "a port that came up again without a date is no fault",
        HOST_FAULTS,
        "else not last[event.device, event.port].is_up)",
        "else True)",
        (f"{TEST_KERNEL_LINKS}test_a_port_that_went_down_explains_an_operation_across_hosts",),
    ),
    Edit(
        "a port that went down long before is no fault",
        HOST_FAULTS,
        "(situation, meeting, event.when) if event.when.at_ns else",
        "(situation, meeting, event.when) if False else",
        (f"{TEST_KERNEL_LINKS}test_a_port_that_went_down_explains_an_operation_across_hosts",),
    ),
    Edit(
        "an address is surer than a process number",
        KERNEL_EVENTS,
        "by_pci.get(event.pci) if by_pci else by_pid.get(event.pid)",
        "by_pid.get(event.pid)",
        (
            f"{TEST_KERNEL_XIDS}test_a_gpu_that_is_only_guessed_to_be_a_ranks_accuses_nobody",
            f"{TEST_KERNEL_XIDS}test_a_log_belongs_to_the_host_that_its_name_tells",
        ),
    ),
    Edit(
        "a warning of a GPU is no error of its rank",
        KERNEL_EVENTS,
        "if rank is not None and event.is_fatal:",
        "if rank is not None:",
        (
            f"{TEST_KERNEL_XIDS}test_the_device_that_has_not_finished_what_others_have_is_explained_by_the_log",
            f"{TEST_KERNEL_XIDS}test_without_an_error_that_matters_nobody_is_to_blame",
        ),
    ),
    Edit(
        "a GPU that is guessed to be a rank's leads nowhere",
        KERNEL_EVENTS,
        "for device in devices if device.joined_by is not DeviceJoin.LOCAL_RANK]",
        "for device in devices]",
        (f"{TEST_KERNEL_XIDS}test_a_gpu_that_is_only_guessed_to_be_a_ranks_accuses_nobody",),
    ),
    Edit(
        "an address of no rank is another job's where all are known",
        KERNEL_EVENTS,
        "and rest and any(rank.pci is None for rank in here):",
        "and rest:",
        (f"{TEST_KERNEL_XIDS}test_the_device_that_has_not_finished_what_others_have_is_explained_by_the_log",),
    ),
    Edit(
        "the death of a child is not the rank's own",
        KERNEL_EVENTS,
        "return kill.pid in self.pids or",
        "return kill.pid in self.children or kill.pid in self.pids or",
        (f"{TEST_KERNEL_KILLS}test_the_dead_child_of_a_rank_that_lives_is_told_beside_where_it_stands",),
    ),
    Edit(
        "RAS without some members says nothing",
        RAS_POLLS,
        "and not item.missing and _is_complete(item)]",
        "and _is_complete(item)]",
        (f"{TEST_RAS_LIMITS}test_counts_that_leave_something_open_accuse_nobody",),
    ),
    Edit(
        "RAS without some members' counts says nothing",
        RAS_POLLS,
        "and not item.missing and _is_complete(item)]",
        "and not item.missing]",
        (f"{TEST_RAS_LIMITS}test_counts_that_leave_something_open_accuse_nobody",),
    ),
    Edit(
        "RAS names a minority only",
        RAS_POLLS,
        " and 2 * most.number > size and",
        " and",
        (f"{TEST_RAS}test_a_clear_minority_that_stays_behind_is_missing",),
    ),
    Edit(
        "a count of 0 in RAS proves nothing",
        RAS_POLLS,
        "len(count.members) == count.number and count.launched > 0",
        "len(count.members) == count.number",
        (f"{TEST_RAS}test_a_clear_minority_that_stays_behind_is_missing",),
    ),
    Edit(
        "RAS names only whom it lists",
        RAS_POLLS,
        "len(count.members) == count.number and count.launched > 0",
        "count.launched > 0",
        (f"{TEST_RAS_LIMITS}test_counts_that_leave_something_open_accuse_nobody",),
    ),
    Edit(
        "one that is ahead in RAS leaves nobody behind",
        RAS_POLLS,
        "key=lambda count: count.launched)",
        "key=lambda count: count.number)",
        (f"{TEST_RAS}test_a_clear_minority_that_stays_behind_is_missing",),
    ),
    Edit(
        "members of a part are no ranks of the job in RAS",
        RAS_POLLS,
        "item.size is not None and item.size == self.world_size",
        "item.size is not None",
        (f"{TEST_RAS}test_a_clear_minority_that_stays_behind_is_missing",),
    ),
    Edit(
        "one answer of RAS does not show that all stand still",
        RAS_POLLS,
        "if len(self.answers) < MIN_POLLS:\n            return False",
        "if not self.answers:\n            return False",
        (f"{TEST_RAS}test_a_clear_minority_that_stays_behind_is_missing",),
    ),
    Edit(
        "counts of RAS that change show motion",
        RAS_POLLS,
        "return bool(last) and first == last",
        "return bool(last)",
        (f"{TEST_RAS}test_a_clear_minority_that_stays_behind_is_missing",),
    ),
)
