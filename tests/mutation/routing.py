"""Rules of the detectors of experts, and of how series are merged."""

from tests.mutation.edit import Edit

ALARM = "watchdog/routing/alarm.py"
COLLAPSE = "watchdog/routing/collapse.py"
DEAD_EXPERTS = "watchdog/routing/dead_experts.py"
DROP_SPIKE = "watchdog/routing/drop_spike.py"
EP_IMBALANCE = "watchdog/routing/ep_imbalance.py"
MERGING = "watchdog/routing/merging.py"
NO_GRADIENT = "watchdog/routing/no_gradient.py"
TEST_DETECTORS = "tests/routing/test_detectors.py::"
TEST_MERGING = "tests/routing/test_merging.py::"
TEST_RULES_OF_COLLAPSE = "tests/routing/test_rules_of_collapse.py::"
TEST_RULES_OF_LOADS = "tests/routing/test_rules_of_loads.py::"
TEST_SCENARIOS = "tests/routing/test_scenarios.py::"

ROUTING = (
    Edit(
        "certain rows must come on end",
        ALARM,
        "self._certain = self._certain + 1 if sign.certain else 0",
        "self._certain += sign.certain",
        (f"{TEST_SCENARIOS}test_what_only_looks_ill_is_not_told",),
    ),
    Edit(
        "a load that moves once and stays is no collapse",
        COLLAPSE,
        " and self._trend.grows():",
        ":",
        (f"{TEST_RULES_OF_COLLAPSE}test_load_that_does_not_get_worse_is_no_collapse",),
    ),
    Edit(
        "a load that gets better is no collapse",
        COLLAPSE,
        "return not self._trend.improves(LEAST_ROWS)",
        "return True",
        (f"{TEST_RULES_OF_COLLAPSE}test_load_that_does_not_get_worse_is_no_collapse",),
    ),
    Edit(
        "a layer that has always been uneven is not ill",
        COLLAPSE,
        " and degree > min(self._best_limit, self._baseline.limit):",
        ":",
        (f"{TEST_DETECTORS}test_a_layer_that_has_always_been_uneven_is_a_doubt",),
    ),
    Edit(
        "a collapse from before the first row dates from it",
        COLLAPSE,
        "since=self._first_step if self._doubtful_from_first else None",
        "since=None",
        (f"{TEST_SCENARIOS}test_a_job_that_was_collapsed_before_its_first_row",),
    ),
    Edit(
        "experts are dead after twenty rows",
        DEAD_EXPERTS,
        "SILENT_ROWS = 20",
        "SILENT_ROWS = 5",
        (f"{TEST_DETECTORS}test_experts_that_get_nothing_are_named_with_the_step_since_when",),
    ),
    Edit(
        "chance may pass an expert over",
        DEAD_EXPERTS,
        "SILENT_FAIR = 40.0",
        "SILENT_FAIR = 1.0",
        (f"{TEST_RULES_OF_LOADS}test_expert_with_next_to_nothing_is_dead_and_one_that_few_tokens_miss_is_not",),
    ),
    Edit(
        "an expert with next to nothing is dead",
        DEAD_EXPERTS,
        "NEARLY_NONE = 1e-3",
        "NEARLY_NONE = 0.0",
        (f"{TEST_RULES_OF_LOADS}test_expert_with_next_to_nothing_is_dead_and_one_that_few_tokens_miss_is_not",),
    ),
    Edit(
        "a restart is a new beginning of silence",
        DEAD_EXPERTS,
        "        self._silent = {}\n\n    def feed",
        "        pass\n\n    def feed",
        (f"{TEST_RULES_OF_LOADS}test_silence_from_before_a_restart_does_not_count",),
    ),
    Edit(
        "a skewed batch of two steps is no spike",
        DROP_SPIKE,
        "CERTAIN_ROWS, WELL_ROWS = 3, 8",
        "CERTAIN_ROWS, WELL_ROWS = 2, 8",
        (f"{TEST_DETECTORS}test_a_drop_rate_that_jumps_is_told_at_its_third_step",),
    ),
    Edit(
        "drops of some per cent do not matter",
        DROP_SPIKE,
        "LEAST = 0.05",
        "LEAST = 0.01",
        (f"{TEST_RULES_OF_LOADS}test_drops_that_need_not_matter_are_not_told",),
    ),
    Edit(
        "a beginning that drops much is no spike",
        DROP_SPIKE,
        "certain=suspected and self._lasts()",
        "certain=suspected",
        (f"{TEST_DETECTORS}test_drops_that_are_no_spike_are_not_told",),
    ),
    Edit(
        "drops that get fewer are no spike",
        DROP_SPIKE,
        " and not self._trend.improves(HIGH_ROWS))",
        ")",
        (f"{TEST_RULES_OF_LOADS}test_drops_that_need_not_matter_are_not_told",),
    ),
    Edit(
        "nine steps are no past",
        DROP_SPIKE,
        "self._rows > HIGH_ROWS - CERTAIN_ROWS and",
        "True and",
        (f"{TEST_DETECTORS}test_drops_that_are_no_spike_are_not_told",),
    ),
    Edit(
        "what always dropped enormously is told",
        DROP_SPIKE,
        "self._level = HIGH + chance if always else max",
        "self._level = max",
        (f"{TEST_DETECTORS}test_a_drop_rate_that_is_enormous_from_the_first_row_on_is_told",),
    ),
    Edit(
        "a capacity that was always small is no spike",
        DROP_SPIKE,
        "max(LEAST + chance, self._baseline.limit)",
        "LEAST + chance",
        (f"{TEST_DETECTORS}test_drops_that_are_no_spike_are_not_told",),
    ),
    Edit(
        "a burst makes no hot rank",
        EP_IMBALANCE,
        "STEADY = 0.5",
        "STEADY = 0.0",
        (f"{TEST_RULES_OF_LOADS}test_rank_is_hot_that_is_so_in_every_row_for_long_enough",),
    ),
    Edit(
        "a rank is hot only while it is in every row",
        EP_IMBALANCE,
        "if hottest != self._hottest or ratio < ROW_HOT:",
        "if hottest != self._hottest:",
        (f"{TEST_RULES_OF_LOADS}test_rank_is_hot_that_is_so_in_every_row_for_long_enough",),
    ),
    Edit(
        "what no placement helps is the router's doing",
        EP_IMBALANCE,
        "return best_placement(sums, ep_size) - 1 <= HELPED * (ratio - 1)",
        "return True",
        (f"{TEST_RULES_OF_LOADS}test_expert_that_is_hot_on_any_rank_is_no_matter_of_the_placement",),
    ),
    Edit(
        "a collapse makes some rank hot as well",
        EP_IMBALANCE,
        "return ratio - 1 > OUT_OF_PROPORTION * variation / sqrt(len(sums) / ep_size)",
        "return True",
        (f"{TEST_SCENARIOS}test_workloads_that_are_ill_get_their_verdict",),
    ),
    Edit(
        "an untrained router gets better",
        EP_IMBALANCE,
        " and not self._trend.improves()\n",
        "\n",
        (f"{TEST_RULES_OF_LOADS}test_rank_is_hot_that_is_so_in_every_row_for_long_enough",),
    ),
    Edit(
        "a rank that is some steps behind is waited for",
        MERGING,
        "MOST_BEHIND = 16",
        "MOST_BEHIND = 0",
        (f"{TEST_MERGING}test_a_step_that_one_rank_has_not_reached_waits",),
    ),
    Edit(
        "a step that one rank has not reached waits",
        MERGING,
        "        if row.step <= reached[row.layer]:",
        "        if True:",
        (f"{TEST_MERGING}test_a_step_that_one_rank_has_not_reached_waits",),
    ),
    Edit(
        "a sum of which a part is not known is not known",
        MERGING,
        "return sum(parts) if len(parts) == len(rows) else None",
        "return sum(parts) if parts else None",
        (f"{TEST_MERGING}test_a_sum_of_which_a_part_is_not_known_is_not_known",),
    ),
    Edit(
        "means are weighted by assignments",
        MERGING,
        "weights = [sum(row.counts) for row in rows]",
        "weights = [1 for row in rows]",
        (f"{TEST_MERGING}test_counts_are_summed_and_means_are_weighted_by_assignments",),
    ),
    Edit(
        "seven skipped steps are no lost gradient",
        NO_GRADIENT,
        "CERTAIN_ROWS, ALONE_ROWS, WELL_ROWS = 8, 20, 4",
        "CERTAIN_ROWS, ALONE_ROWS, WELL_ROWS = 7, 20, 4",
        (f"{TEST_DETECTORS}test_a_router_without_gradient_is_told_beside_layers_that_have_one",),
    ),
    Edit(
        "a router is compared with the other layers",
        NO_GRADIENT,
        "(self._baseline.median, others) if",
        "(self._baseline.median,) if",
        (f"{TEST_DETECTORS}test_a_router_without_gradient_is_told_beside_layers_that_have_one",),
    ),
    Edit(
        "a router is compared with its own past",
        NO_GRADIENT,
        "(self._baseline.median, others) if",
        "(others,) if",
        (f"{TEST_DETECTORS}test_a_router_that_loses_its_gradient_is_told_alone",),
    ),
    Edit(
        "experts that come back are not dead",
        DEAD_EXPERTS,
        "certain=bool(dead) and not self._reviving(len(dead)),",
        "certain=bool(dead),",
        (f"{TEST_RULES_OF_LOADS}test_experts_that_balancing_brings_back_are_not_told_as_dead",),
    ),
    Edit(
        "who came back long ago excuses no dead expert",
        DEAD_EXPERTS,
        "row > self._row - SILENT_ROWS for row",
        "True for row",
        (f"{TEST_RULES_OF_LOADS}test_experts_that_came_back_long_ago_excuse_no_dead_one",),
    ),
    Edit(
        "a restart is a new beginning of drops",
        DROP_SPIKE,
        "        self._been_well = False\n        self._trend = Trend()\n",
        "        self._trend = Trend()\n",
        (f"{TEST_RULES_OF_LOADS}test_drops_after_a_restart_are_a_new_beginning",),
    ),
    Edit(
        "rows from before a restart are no past of drops",
        DROP_SPIKE,
        'beginning of the same layer."""\n        self._rows = self._high_rows = 0\n',
        'beginning of the same layer."""\n',
        (f"{TEST_RULES_OF_LOADS}test_drops_after_a_restart_are_a_new_beginning",),
    ),
    Edit(
        "a long illness does not become usual",
        DROP_SPIKE,
        (
            "        if self.alarm.illness is not None or not learn:\n            "
            "self._baseline.hold()\n        else:\n            self._baseline.learn(ratio)"
        ),
        "        self._baseline.learn(ratio)",
        (f"{TEST_RULES_OF_LOADS}test_a_long_illness_does_not_become_what_is_usual",),
    ),
    Edit(
        "a rank that has ended is not waited for",
        MERGING,
        "MOST_BEHIND = 16",
        "MOST_BEHIND = 17",
        (f"{TEST_MERGING}test_a_rank_that_has_ended_is_not_waited_for_and_one_that_is_sixteen_steps_behind_is",),
    ),
    Edit(
        "the number of experts that most have holds",
        MERGING,
        "    rows = _of_one_size(rows)\n",
        "",
        (f"{TEST_MERGING}test_the_number_of_experts_that_most_ranks_have_holds",),
    ),
    Edit(
        "a loss is known without any assignment",
        MERGING,
        "return sum(value for value, _ in known) / len(known) if known else None",
        "return None",
        (f"{TEST_MERGING}test_a_loss_without_any_assignment_is_a_mean_of_all_alike",),
    ),
    Edit(
        "a router alone must be still for long",
        NO_GRADIENT,
        "return self._still >= ALONE_ROWS",
        "return True",
        (f"{TEST_DETECTORS}test_router_with_nothing_to_compare_is_without_gradient_after_long_only",),
    ),
    Edit(
        "a router alone is told at last",
        NO_GRADIENT,
        "return self._still >= ALONE_ROWS",
        "return False",
        (f"{TEST_DETECTORS}test_router_with_nothing_to_compare_is_without_gradient_after_long_only",),
    ),
    Edit(
        "a router as small as the others is well",
        NO_GRADIENT,
        "return norm <= OF_OTHERS * max(measures)",
        "return True",
        (f"{TEST_DETECTORS}test_router_that_is_as_small_as_the_others_is_not_without_gradient",),
    ),
    Edit(
        "a small gradient is not none",
        NO_GRADIENT,
        "NOTHING = 1e-7",
        "NOTHING = 1e-5",
        (f"{TEST_DETECTORS}test_router_that_is_as_small_as_the_others_is_not_without_gradient",),
    ),
)
