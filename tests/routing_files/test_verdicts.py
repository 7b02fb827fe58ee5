"""Verdicts on files of routing counts (casebook C88, C89, C91, C94, C95), each with a control that is well."""

from collections.abc import Iterable

from pardbg.collectors.parsing.routing_lines import parse_routing_lines
from pardbg.watchdog.judge.judge import Circumstances, judge
from pardbg.watchdog.model.evidence import Evidence, JobDescription
from pardbg.watchdog.model.names import CollectorName, Confidence, Kind, Status
from pardbg.watchdog.model.report import Report
from pardbg.watchdog.outputs.exit_code import exit_code
from pardbg.watchdog.store.view import EvidenceView
from tests.diagnosis.diagnosing import WHEN
from tests.routing_files.making import EXPERTS, Row, collapse, lines, pour, rows

STEPS, ONSET = 500, 300


def report_of(found: Iterable[Row], *more: Evidence) -> Report:
    """Diagnoses one file, which may be of several ranks."""
    series = parse_routing_lines(lines(list(found))).series
    source, origin = CollectorName.ROUTING, "routing.jsonl"
    evidence = [Evidence(source=source, rank=rank, observation=one, origin=origin) for rank, one in series.items()]
    return judge(EvidenceView.of([*evidence, *more]), Circumstances(decided_at=WHEN))


def told(report: Report) -> tuple[Status, int, list[tuple[Kind, int | None]]]:
    return report.status, exit_code(report), [(finding.kind, finding.layer) for finding in report.findings]


def test_model_that_routes_evenly_and_learns_is_healthy_and_the_report_says_how_much_was_counted() -> None:
    report = report_of(rows(STEPS, 2, router_grad_norm=0.01))

    assert told(report) == (Status.HEALTHY, 0, [])
    assert report.notes == ("routing of 2 layers over 500 steps: it is well",)
    assert report.unknowns == ()


def test_even_load_alone_is_no_all_clear_for_the_router() -> None:
    """C88, from loads only."""
    report = report_of(rows(STEPS))

    assert told(report) == (Status.HEALTHY, 0, [])
    assert report.notes[-1].endswith("whether routers learn, counts without router_grad_norm do not say")


def test_router_without_gradient_is_found_though_its_load_is_even() -> None:
    """C88: 7e-10 reaches the gate."""
    report = report_of(rows(STEPS, router_grad_norm=7e-10))

    assert told(report) == (Status.DEGRADED, 3, [(Kind.ROUTER_NO_GRADIENT, 0)])
    assert report.verdict is not None
    assert "no gradient" in report.verdict.claim


def test_counts_that_are_never_cleared_are_a_doubt_and_no_drop_rate_is_derived() -> None:
    """C89: layer 1 adds up what it was given before."""
    sums = [0] * EXPERTS
    found = []
    for row in rows(STEPS, 2):
        if row["layer"] == 1:
            sums = [total + count for total, count in zip(sums, row["counts"], strict=True)]
            found.append(row | {"counts": sums, "dropped": None})
        else:
            found.append(row)
    report = report_of(found)

    assert Kind.DROP_SPIKE not in {finding.kind for finding in report.findings}
    assert (report.status, exit_code(report)) == (Status.UNDETERMINED, 4)
    assert any("layer 1" in note for note in report.notes)


def test_collapse_of_one_layer_is_told_with_its_share_and_explains_drops_and_dead_experts() -> None:
    report = report_of(collapse(row, ONSET) if row["layer"] == 1 and row["step"] >= ONSET else row for row in rows(STEPS, 2))

    assert told(report) == (Status.DEGRADED, 3, [(Kind.ROUTER_COLLAPSE, 1)])
    assert report.verdict is not None
    assert report.verdict.since_step is not None
    assert ONSET - 5 <= report.verdict.since_step <= ONSET + 40
    assert "of its tokens to 2 of 16 experts since step" in report.verdict.claim
    assert report.verdict.confidence is Confidence.SUPPORTED
    assert {finding.kind for finding in report.set_aside} <= {Kind.DROP_SPIKE, Kind.DEAD_EXPERTS, Kind.EP_IMBALANCE}
    assert report.verdict.advice


def test_two_skewed_steps_are_nothing() -> None:
    found = [pour(row, [8.0] * 2 + [1.0] * (EXPERTS - 2)) if row["step"] in {ONSET, ONSET + 1} else row for row in rows(STEPS)]
    assert told(report_of(found)) == (Status.HEALTHY, 0, [])


def test_experts_that_lose_all_tokens_are_named() -> None:
    found = []
    for row in rows(STEPS, 2):
        dies = row["layer"] == 0 and row["step"] >= ONSET
        found.append(pour(row, [0.0 if expert in {3, 9} else 1.0 for expert in range(EXPERTS)]) if dies else row)
    report = report_of(found)

    assert told(report) == (Status.DEGRADED, 3, [(Kind.DEAD_EXPERTS, 0)])
    assert report.verdict is not None
    assert report.verdict.claim == f"layer 0 gives 2 of its 16 experts no token (experts 3,9) since step {ONSET}"


def hot_rank(row: Row) -> Row:
    """C91: two ranks a node, both nodes alike, one rank of the first has twice the tokens of its neighbour."""
    return pour(row, [1.6, 1.5, 1.7, 1.6, *[0.75] * 4, *[1.1] * 8])


def test_hot_ep_rank_is_named_though_nodes_are_balanced() -> None:
    """C91. Without the process groups, the EP rank is all that is known."""
    report = report_of(hot_rank(row) if row["step"] >= ONSET - 150 else row for row in rows(STEPS, ep_size=4))

    assert told(report) == (Status.DEGRADED, 3, [(Kind.EP_IMBALANCE, 0)])
    assert report.verdict is not None
    assert [(subject.rank, subject.ranks, subject.coords) for subject in report.verdict.culprits] == [(None, (), {"ep": 0})]


def test_hot_ep_rank_is_a_global_rank_where_the_world_is_one_ep_group() -> None:
    job = JobDescription(job="moe", world_size=4)
    described = Evidence(source=CollectorName.HOST, rank=None, observation=job, origin="job.json")
    report = report_of((hot_rank(row) if row["step"] >= ONSET - 150 else row for row in rows(STEPS, ep_size=4)), described)

    assert report.verdict is not None
    assert [(subject.rank, subject.coords) for subject in report.verdict.culprits] == [(0, {"ep": 0})]


def test_balancing_loss_that_does_not_follow_the_load_is_a_doubt() -> None:
    """C94: the load changes, the loss does not."""
    found = [
        pour(row | {"aux_loss": 1.0}, [1.6 if (expert + row["step"] // 50) % 3 else 0.5 for expert in range(EXPERTS)])
        for row in rows(STEPS)
    ]
    report = report_of(found)

    assert any("aux" in note or "balancing loss" in note for note in report.notes)
    assert exit_code(report) != 0


def test_drops_are_told_against_what_was_usual() -> None:
    """C95: the capacity is cut, the load stays."""
    cut = [
        pour(row | {"capacity": 430}, [1.0] * EXPERTS) if row["step"] >= ONSET and row["layer"] == 1 else row
        for row in rows(STEPS, 2)
    ]
    report = report_of(cut)

    assert told(report) == (Status.DEGRADED, 3, [(Kind.DROP_SPIKE, 1)])
    assert report.verdict is not None
    assert report.verdict.since_step == ONSET
    assert report.verdict.claim == f"layer 1 drops 16% of what its tokens were assigned since step {ONSET}; before, 0"
    assert "from 768 to 430 at step 300" in report.verdict.advice[0]


def test_drops_that_lasted_are_told_after_they_have_ended_and_those_of_two_steps_are_not() -> None:
    def cut(until: int) -> Report:
        return report_of(
            pour(row | {"capacity": 430}, [1.0] * EXPERTS) if ONSET <= row["step"] < until else row for row in rows(STEPS)
        )

    long, short = cut(ONSET + 60), cut(ONSET + 2)
    assert told(long) == (Status.DEGRADED, 3, [(Kind.DROP_SPIKE, 0)])
    assert long.verdict is not None
    assert f"from step {ONSET} until step" in long.verdict.claim
    assert told(short) == (Status.HEALTHY, 0, [])


def test_model_that_never_drops_has_no_drop_rate() -> None:
    """C95: capacity unset."""
    assert told(report_of(rows(STEPS, capacity=None))) == (Status.HEALTHY, 0, [])


def test_capacity_that_never_holds_is_a_remark() -> None:
    """C95: a factor of 16384."""
    report = report_of(rows(STEPS, router_grad_norm=0.01, capacity=16384 * 512))
    assert told(report) == (Status.HEALTHY, 0, [])
    assert report.notes == (
        "layer 0: The capacity is more than 100 times the mean load: it never holds, and a drop rate of 0 says nothing",
        "routing of 1 layer over 500 steps: it is well",
    )


def test_few_steps_tell_nothing() -> None:
    report = report_of(rows(20))

    assert (report.status, exit_code(report)) == (Status.UNDETERMINED, 4)
    assert report.notes == ("routing of 1 layer over 20 steps: too few steps to tell, at least 50 are needed",)


def test_ranks_of_one_file_are_one_model() -> None:
    """Each rank sends its tokens to its own half; together they are even."""
    found = []
    for row in rows(STEPS, router_grad_norm=0.01):
        halves = [1.0] * (EXPERTS // 2), [0.05] * (EXPERTS // 2)
        found += [pour(row | {"capacity": None}, [*halves[0], *halves[1]]) | {"rank": 0, "dropped": 0}]
        found += [pour(row | {"capacity": None}, [*halves[1], *halves[0]]) | {"rank": 1, "dropped": 0}]
    report = report_of(found)

    assert told(report) == (Status.HEALTHY, 0, [])
    assert report.coverage.by_collector == {"routing": 2}


def _warm(row: Row, to_first: float) -> Row:
    """The first of four EP ranks has this load over the mean; no single expert is to blame."""
    other = (4 - to_first) / 3
    return pour(row, [to_first * (0.8 if expert % 2 else 1.2) if expert < 4 else other for expert in range(EXPERTS)])


def test_ep_rank_that_is_hot_all_along_is_told_so_and_a_rise_in_it_is_where_it_is_told_to_begin() -> None:
    always = report_of(_warm(row, 1.65) for row in rows(STEPS, ep_size=4))
    risen = report_of(_warm(row, 1.4 if row["step"] < ONSET else 1.8) for row in rows(STEPS, ep_size=4))

    assert always.verdict is not None
    assert always.verdict.since_step == 0
    assert always.verdict.claim == "layer 0 loads EP rank 0 with 1.6 times the mean of its 4 EP ranks all along, since step 0"
    assert risen.verdict is not None
    assert risen.verdict.claim == (
        f"layer 0 loads EP rank 0 with 1.8 times the mean of its 4 EP ranks since step {ONSET}; before, 1.4"
    )


def test_fault_that_began_outranks_what_was_there_all_along() -> None:
    """Layer 0 is without two experts from the first step on; the capacity of layer 1 is cut, and that of layer 2 always was."""
    found = []
    for row in rows(STEPS, 3):
        if row["layer"] == 0:
            found.append(pour(row, [0.0 if expert in {3, 9} else 1.0 for expert in range(EXPERTS)]))
        elif row["layer"] == 1 and row["step"] >= ONSET:
            found.append(pour(row, [1.0] * 4 + [0.0] + [1.0] * 11))
        else:
            found.append(pour(row | {"capacity": 350}, [1.0] * EXPERTS) if row["layer"] == 2 else row)
    report = report_of(found)

    assert [(finding.kind, finding.layer, finding.since_step) for finding in report.findings] == [
        (Kind.DEAD_EXPERTS, 1, ONSET),
        (Kind.DEAD_EXPERTS, 0, 0),
        (Kind.DROP_SPIKE, 2, 0),
    ]


def test_advice_goes_back_before_all_that_is_ill_and_says_none_where_nothing_was_counted_before() -> None:
    def collapsing(onset: int) -> Report:
        return report_of(collapse(row, onset) if row["step"] >= onset else row for row in rows(STEPS))

    late, at_once = collapsing(ONSET).verdict, collapsing(0).verdict
    assert late is not None
    assert late.advice[0] == "Resume from a checkpoint before about step 285: a router seldom recovers by itself."  # drops: 301
    assert at_once is not None
    assert at_once.advice[0].startswith("No step that was counted lies well before it")


def test_drops_that_begin_are_told_without_a_capacity_since_no_drop_is_a_measurement() -> None:
    dropping = report_of(row | {"capacity": None, "dropped": 0 if row["step"] < ONSET else 2048} for row in rows(STEPS))

    assert told(dropping) == (Status.DEGRADED, 3, [(Kind.DROP_SPIKE, 0)])
    assert dropping.verdict is not None
    assert dropping.verdict.claim == f"layer 0 drops 25% of what its tokens were assigned since step {ONSET}; before, 0"


def test_counts_that_cannot_be_are_no_all_clear() -> None:
    nothing = report_of(row | {"counts": [0] * EXPERTS, "dropped": 0} for row in rows(100))
    beyond = report_of(row | {"dropped": 9000} for row in rows(100))
    odd = report_of(row | {"ep_size": 5} for row in rows(100))

    assert (exit_code(nothing), exit_code(beyond), exit_code(odd)) == (4, 4, 0)
    assert nothing.notes[0].startswith("layer 0: No token was counted")
    assert beyond.notes[0].startswith("layer 0: More is dropped than the counts hold")
    assert odd.notes[0].startswith("layer 0: The EP ranks do not divide the experts evenly")


def test_load_that_nothing_can_hold_gets_no_advice_of_a_capacity() -> None:
    """One expert takes half: it would need eight times the mean."""
    found = [
        pour(row | {"top_k": 1, "tokens": 8192}, [15.0, *[1.0] * 15]) if row["step"] >= ONSET else row for row in rows(STEPS)
    ]
    drops = [one for one in (*report_of(found).findings, *report_of(found).set_aside) if one.kind is Kind.DROP_SPIKE]
    assert [one.advice[0].partition("(")[0] for one in drops] == ["The load is concentrated "]


def test_layer_that_is_given_other_experts_is_watched_anew_and_a_note_says_so() -> None:
    report = report_of(row | ({"counts": row["counts"] * 2} if row["step"] >= 100 else {}) for row in rows(200, tokens=None))
    assert (report.status, exit_code(report)) == (Status.HEALTHY, 0)
    assert report.notes[0] == (
        "layer 0: The number of experts changed, and what was before is not compared: it is watched anew from step 100"
    )
