"""Rules of layouts: who is in which group, what cannot work, what comes near, what it costs."""

from tests.mutation.edit import Edit

GRID = "watchdog/layout/grid.py"
FRAMEWORKS = "watchdog/layout/frameworks.py"
GRID_RULES = "watchdog/layout/grid_rules.py"
MODEL_RULES = "watchdog/layout/model_rules.py"
NEAREST = "watchdog/layout/nearest.py"
PLAN = "watchdog/layout/plan.py"
MEMORY = "watchdog/layout/memory.py"
BUBBLE = "watchdog/layout/bubble.py"
COSTS = "watchdog/layout/costs.py"
TEST_GRID = "tests/layout/test_grid.py::"
TEST_RULES = "tests/layout/test_rules.py::"
TEST_COSTS = "tests/layout/test_costs.py::"
TEST_NEAREST = "tests/layout/test_nearest.py::"
CANNOT_WORK = (f"{TEST_RULES}test_layout_that_cannot_work_is_told_with_why_and_what_to_change",)
WORKS = (f"{TEST_RULES}test_layout_next_to_it_works",)

LAYOUTS = (
    Edit(
        "a node is reached also by a group that begins near its end",
        GRID,
        "latest = max(min(start + self.stride, ranks_per_node) - 1 for start in starts)",
        "latest = max(start for start in starts)",
        (f"{TEST_GRID}test_nodes_that_an_axis_reaches_are_those_of_its_widest_group",),
    ),
    Edit(
        "the expert grid keeps the order of the ranks",
        FRAMEWORKS,
        'sizes = {"tp": plan.expert_tensor_size, "ep": plan.expert_size, "dp": edp, "pp": plan.pp}',
        'sizes = {"tp": plan.expert_tensor_size, "dp": edp, "ep": plan.expert_size, "pp": plan.pp}\n'
        "    return Grid.of({{'tp': 'etp', 'dp': 'edp'}.get(axis, axis): size for axis, size in sizes.items()})",
        (f"{TEST_GRID}test_groups_of_experts_are_those_of_the_framework",),
    ),
    Edit(
        "torchtitan takes ep from the fastest axes",
        FRAMEWORKS,
        'return Grid.of({"ep": plan.expert_size, "efsdp": edp,',
        'return Grid.of({"efsdp": edp, "ep": plan.expert_size,',
        (f"{TEST_GRID}test_groups_of_experts_are_those_of_the_framework",),
    ),
    Edit(
        "a size that is given must multiply to the world, too",
        PLAN,
        "return None if rest or (self.dp is not None and self.dp != size) else size",
        "return None if rest else size",
        CANNOT_WORK,
    ),
    Edit(
        "stages of both parts are the same ranks",
        GRID_RULES,
        "if stride != expert_stride:",
        "if False:",
        CANNOT_WORK,
    ),
    Edit(
        "Megatron wants equal dp where pp is not last",
        GRID_RULES,
        'elif dp != edp and plan.order is not None and not plan.order.endswith("pp"):',
        "elif False:",
        CANNOT_WORK,
    ),
    Edit(
        "where pp is last dp and edp may differ",
        GRID_RULES,
        'elif dp != edp and plan.order is not None and not plan.order.endswith("pp"):',
        "elif dp != edp:",
        WORKS,
    ),
    Edit(
        "stages that are interleaved count as stages",
        MODEL_RULES,
        "stages = plan.pp * plan.virtual_stages\n    if plan.layers is None:",
        "stages = plan.pp\n    if plan.layers is None:",
        CANNOT_WORK,
    ),
    Edit(
        "others than Megatron may have unequal stages",
        MODEL_RULES,
        "elif plan.layers % stages and plan.framework is Framework.MEGATRON:",
        "elif plan.layers % stages:",
        WORKS,
    ),
    Edit(
        "a step of torchtitan may be several passes",
        MODEL_RULES,
        "return plan.framework is not Framework.TORCHTITAN and plan.micro_batches is not None",
        "return plan.micro_batches is not None",
        WORKS,
    ),
    Edit(
        "fewer warnings come before a smaller factor",
        NEAREST,
        "(len(list(find_costs(item[1]))), _factor(plan, item[0]))",
        "_factor(plan, item[0])",
        (f"{TEST_NEAREST}test_what_costs_nothing_new_comes_before_what_is_nearer",),
    ),
    Edit(
        "the batch is fitted to the other changes",
        NEAREST,
        "changed = replace(plan, **changes)\n        if changed.data_size is not None:",
        "changed = plan\n        if changed.data_size is not None:",
        (f"{TEST_NEAREST}test_batch_is_fitted_to_the_other_changes",),
    ),
    Edit(
        "optimizers of experts are shared out among those who hold the same experts",
        MEMORY,
        "split, sharers = _tensor_split_of_experts(plan), plan.expert_data_size",
        "split, sharers = _tensor_split_of_experts(plan), plan.shard_size",
        (f"{TEST_COSTS}test_a_sharded_optimizer_takes_the_same_whatever_ep_is",),
    ),
    Edit(
        "replicas share nothing out among each other",
        PLAN,
        "self.data_size // self.dp_replicate * self.cp",
        "self.data_size * self.cp",
        (f"{TEST_COSTS}test_bytes_of_a_rank_are_those_of_the_formulas",),
    ),
    Edit(
        "the bubble is a part of the whole step",
        BUBBLE,
        "return (plan.pp - 1) / (_shortening(plan) * count + plan.pp - 1)",
        "return (plan.pp - 1) / (_shortening(plan) * count)",
        (f"{TEST_COSTS}test_bubble_is_idle_time_over_all_time",),
    ),
    Edit(
        "etp that follows tp is told once",
        COSTS,
        '(name == "etp" and plan.etp is None)',
        "False",
        (f"{TEST_COSTS}test_axes_of_every_layer_that_leave_a_node_are_warned_of",),
    ),
)
