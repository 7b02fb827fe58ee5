"""What makes a layout invalid, each with its near miss: the layout next to it that works."""

import pytest
from msgspec.structs import replace

from pardbg.watchdog.errors import InputError
from pardbg.watchdog.layout.contradictions import refuse_contradictions
from pardbg.watchdog.layout.plan import Framework, Plan, Schedule
from pardbg.watchdog.layout.rules import broken_rules, is_valid
from pardbg.watchdog.model.layout_report import LayoutRule
from pardbg.watchdog.model.names import Kind

P16 = Plan(world_size=16, tp=2, pp=2)
TITAN = Plan(world_size=16, framework=Framework.TORCHTITAN)
INTERLEAVED = Plan(world_size=8, pp=4, layers=16, virtual_stages=2, global_batch=16, micro_batch=1)

BROKEN = [
    (Plan(world_size=40, tp=3, pp=4), LayoutRule.WORLD, "tp 3 x pp 4 = 12 does not divide the world of 40 ranks", "36 or 48"),
    (Plan(world_size=40, tp=3), LayoutRule.WORLD, "tp 3 does not divide the world of 40 ranks", "39 or 42"),
    (Plan(world_size=2, tp=4), LayoutRule.WORLD, "tp 4 does not divide the world of 2 ranks", "a world of 4 ranks"),
    (replace(P16, dp=8), LayoutRule.WORLD, "tp 2 x pp 2 x dp 8 = 32 ranks, but the world has 16", "--dp 4, or leave it out"),
    (replace(P16, tp=3, dp=2), LayoutRule.WORLD, "tp 3 x pp 2 x dp 2 = 12 ranks, but the world has 16", "12 or 18"),
    (replace(TITAN, dp_replicate=3), LayoutRule.REPLICAS, "--dp-replicate 3 does not divide the 16", "1, 2, 4 or 8"),
    (replace(P16, order="tp-cp-ep-dp"), LayoutRule.ORDER, "does not place pp, and pp 2 needs a place", "name pp in --order"),
    (replace(P16, ep=4, etp=1, order="tp-dp-pp"), LayoutRule.ORDER, "does not place ep, and ep 4", "name ep in --order"),
    (replace(P16, ep=8), LayoutRule.EXPERT_GRID, "etp 2 x ep 8 = 16 does not divide the 8 ranks of a pipeline", "1, 2 or 4"),
    (replace(P16, ep=2, etp=3), LayoutRule.EXPERT_GRID, "etp 3 x ep 2 = 6 does not divide the 8", "--etp 1, 2, 4 or 8"),
    (
        replace(TITAN, ep=3),
        LayoutRule.EXPERT_GRID,
        "ep 3 does not divide the 16 ranks of a pipeline stage",
        "--ep 1, 2, 4 or 8",
    ),
    (replace(TITAN, ep=16, dp_replicate=2), LayoutRule.EXPERT_GRID, "ep 16 does not divide the 8 ranks", "--ep 1, 2, 4 or 8"),
    (
        replace(P16, cp=2, order="tp-cp-ep-pp-dp"),
        LayoutRule.PIPELINE_GROUPS,
        "stages of the dense part would be 4 ranks apart and those of the experts 2",
        "put pp last",
    ),
    (  # the stages coincide here, and Megatron refuses it all the same
        replace(P16, ep=2, order="tp-pp-ep-dp-cp"),
        LayoutRule.PIPELINE_GROUPS,
        "Megatron wants as many ranks in dp (4) as in edp (2)",
        "put pp last",
    ),
    (replace(P16, ep=4, etp=1, experts=6), LayoutRule.EXPERTS, "6 experts do not share out evenly over ep 4", "2, 3 or 6"),
    (Plan(world_size=16, tp=8, heads=20), LayoutRule.HEADS, "tp 8 does not divide 20 attention heads", "--tp 4, 5, 10 or 20"),
    (Plan(world_size=16, tp=8, heads=32, kv_heads=4), LayoutRule.HEADS, "tp 8 does not divide 4 heads of keys", "1, 2 or 4"),
    (Plan(world_size=16, pp=4, layers=30), LayoutRule.LAYERS, "30 layers do not share out evenly over pp 4", "2, 3, 5 or 6"),
    (replace(INTERLEAVED, layers=20), LayoutRule.LAYERS, "20 layers do not share out evenly over 8 stages (pp 4 x 2)", "10"),
    (replace(TITAN, pp=4, layers=3), LayoutRule.LAYERS, "3 layers are too few for pp 4", "a smaller --pp"),
    (
        replace(P16, global_batch=30, micro_batch=2),
        LayoutRule.BATCH,
        "a global batch of 30 is no multiple of 8 (dp 4, micro-batches of 2)",
        "--global-batch 24 or 32",
    ),
    (replace(P16, global_batch=30), LayoutRule.BATCH, "30 is no multiple of 4 (dp 4)", "28 or 32"),
    (
        replace(P16, global_batch=32, micro_batch=1, micro_batches=4),
        LayoutRule.BATCH,
        "a global batch of 32 is not 4 micro-batches of 1 on dp 4",
        "leave out --micro-batches: they are 8",
    ),
    (replace(INTERLEAVED, global_batch=12), LayoutRule.INTERLEAVING, "rounds of pp 4, and 6 are no multiple", "4 or 8 micro"),
    (
        Plan(world_size=16, pp=2, zero=2, framework=Framework.DEEPSPEED),
        LayoutRule.ZERO,
        "DeepSpeed has no pipeline (pp 2) with ZeRO 2",
        "--zero 1, or no --pp",
    ),
    (replace(INTERLEAVED, pp=1), LayoutRule.INTERLEAVING, "where there is no pipeline", "leave out --virtual-stages"),
]

WORKS = [
    P16,
    replace(P16, dp=4),
    Plan(world_size=1),
    replace(TITAN, dp_replicate=4),
    replace(TITAN, ep=8, dp_replicate=2),
    replace(P16, tp=1, pp=1, order="dp"),
    replace(P16, ep=4),
    replace(P16, ep=8, etp=1),
    replace(P16, cp=2),
    replace(P16, ep=1, order="tp-cp-ep-pp-dp"),
    replace(P16, pp=1, ep=2, cp=2, order="pp-tp-cp-ep-dp"),
    Plan(world_size=16, tp=8, heads=32, kv_heads=8),
    Plan(world_size=16, tp=8, heads=20, kv_heads=4, framework=Framework.DEEPSPEED),
    replace(TITAN, pp=4, layers=30),
    replace(P16, global_batch=32, micro_batch=2),
    replace(P16, global_batch=32, micro_batch=1, micro_batches=8),
    replace(TITAN, global_batch=64, micro_batch=1, micro_batches=2),  # two passes through the pipeline
    INTERLEAVED,
    Plan(world_size=16, pp=2, zero=1, framework=Framework.DEEPSPEED),
    Plan(world_size=16, zero=3, framework=Framework.DEEPSPEED),
]


@pytest.mark.parametrize(
    ("plan", "rule", "claim", "advice"), BROKEN, ids=[f"{case[1].value}-{case[2][:24]}" for case in BROKEN]
)
def test_layout_that_cannot_work_is_told_with_why_and_what_to_change(
    plan: Plan, rule: LayoutRule, claim: str, advice: str
) -> None:
    (violation,) = broken_rules(plan)
    assert (violation.kind, violation.rule) == (Kind.LAYOUT_INVALID, rule)
    assert claim in violation.claim
    assert advice in violation.advice


@pytest.mark.parametrize("plan", WORKS)
def test_layout_next_to_it_works(plan: Plan) -> None:
    assert list(broken_rules(plan)) == []


def test_every_rule_that_is_broken_is_told() -> None:
    plan = Plan(world_size=40, tp=3, heads=64, layers=30, pp=4, experts=6, ep=4)
    assert [violation.rule for violation in broken_rules(plan)] == [
        LayoutRule.WORLD,
        LayoutRule.EXPERTS,
        LayoutRule.HEADS,
        LayoutRule.LAYERS,
    ]
    assert not is_valid(plan)


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (replace(P16, order="tp-tp-dp-pp"), "each at most once"),
        (replace(P16, order="tp-xp"), "--order tp-xp is not made of"),
        (replace(P16, order=""), "is not made of"),
        (replace(TITAN, order="tp-dp-pp"), "--order is an option of megatron"),
        (replace(TITAN, etp=2), "--etp is an option of megatron"),
        (replace(P16, dp_replicate=2), "--dp-replicate is an option of torchtitan"),
        (Plan(world_size=16, cp=2, tp=2, framework=Framework.DEEPSPEED), "does not know how DeepSpeed"),
        (replace(P16, zero=3), "--zero 3: megatron is 0 or 1"),
        (replace(P16, schedule=Schedule.INTERLEAVED), "several stages on a rank"),
        (replace(INTERLEAVED, schedule=Schedule.GPIPE), "is for an interleaved schedule"),
        (replace(P16, params=5, expert_params=6), "more than all of them"),
    ],
)
def test_contradictions_are_wrong_usage(plan: Plan, words: str) -> None:
    with pytest.raises(InputError, match=words):
        refuse_contradictions(plan)
