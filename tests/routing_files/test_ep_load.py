"""EP ranks that are hot, by the sizes in flight recorders alone."""

import random
from collections.abc import Callable

from pardbg.watchdog.judge.judge import Circumstances, judge
from pardbg.watchdog.model.names import Confidence, Kind, Status
from pardbg.watchdog.model.report import Report
from pardbg.watchdog.outputs.exit_code import exit_code
from pardbg.watchdog.store.view import EvidenceView
from tests.collectors.dumps import Entry, make_entry, outstanding
from tests.diagnosis.diagnosing import WHEN
from tests.diagnosis.test_hand_made import evidence_from

RANKS, GIVEN, WIDTH = 4, 1000, 64
EP = {
    "0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2, 3]"},
    "1": {"name": "1", "desc": "ep", "ranks": "[0, 1, 2, 3]"},
}
Weigh = Callable[[int], list[float]]


def exchange(number: int, given: int, taken: int, *, done: bool = True) -> Entry:
    make = make_entry if done else outstanding
    return make(
        number,
        profiling_name="nccl:all_to_all",
        pg_id=1,
        process_group=("1", "ep"),
        input_sizes=[[given, WIDTH]],
        output_sizes=[[taken, WIDTH]],
    )


def dispatches(weigh: Weigh, count: int = 240) -> dict[int, list[Entry]]:
    """Dispatch and combine in turn, with chance in who takes how much; every row that is given is taken."""
    chance = random.Random(1)
    rings: dict[int, list[Entry]] = {rank: [] for rank in range(RANKS)}
    for number in range(0, 2 * count, 2):
        weights = [weight * chance.uniform(0.95, 1.05) for weight in weigh(number // 2)]
        taken = [int(RANKS * GIVEN * weight / sum(weights)) for weight in weights]
        taken[0] += RANKS * GIVEN - sum(taken)
        for rank, ring in rings.items():
            ring += [exchange(number, GIVEN, taken[rank]), exchange(number + 1, taken[rank], GIVEN)]
    return rings


def report_of(rings: dict[int, list[Entry]]) -> Report:
    return judge(EvidenceView.of(evidence_from(rings, pg_config=EP)), Circumstances(decided_at=WHEN))


def test_rank_that_takes_more_in_every_dispatch_is_hot() -> None:
    report = report_of(dispatches(lambda _: [0.8, 0.8, 1.6, 0.8]))

    assert (report.status, exit_code(report)) == (Status.DEGRADED, 3)
    assert report.verdict is not None
    assert (report.verdict.kind, report.verdict.confidence) == (Kind.EP_IMBALANCE, Confidence.SUPPORTED)
    assert [subject.rank for subject in report.verdict.culprits] == [2]
    assert report.verdict.claim == (
        "the experts of rank 2 are sent 1.6 times as many tokens as the mean of the ep group [0-3], in nearly each of the last "
        "240 dispatches"
    )


def test_few_dispatches_suggest_it_only_and_fewer_say_nothing() -> None:
    some, few = (report_of(dispatches(lambda _: [0.8, 0.8, 1.6, 0.8], count)) for count in (80, 20))

    assert some.verdict is not None
    assert some.verdict.confidence is Confidence.SUGGESTED
    assert few.verdict is None


def test_rank_that_is_hot_in_turn_with_the_others_is_not() -> None:
    report = report_of(dispatches(lambda step: [1.9 if rank == step % RANKS else 0.7 for rank in range(RANKS)]))
    assert (report.status, report.verdict) == (Status.HEALTHY, None)


def test_fixed_split_and_sizes_that_differ_on_both_sides_are_no_routing() -> None:
    fixed = {rank: [exchange(number, GIVEN, 1600 if rank == 2 else 800) for number in range(200)] for rank in range(RANKS)}
    both = {
        rank: [exchange(number, 700 + 200 * rank, 1600 + number % 2 if rank == 2 else 800) for number in range(200)]
        for rank in range(RANKS)
    }
    assert report_of(fixed).verdict is None
    assert report_of(both).verdict is None


def test_hang_of_a_job_with_a_hot_rank_is_told_as_the_hang_alone() -> None:
    rings = dispatches(lambda _: [0.8, 0.8, 1.6, 0.8])
    for rank in (0, 1, 2):
        rings[rank].append(exchange(480, GIVEN, 900, done=False))
    report = report_of(rings)

    assert report.status is Status.HUNG
    assert report.verdict is not None
    assert report.verdict.kind is Kind.MISSING_PARTICIPANT
    assert [subject.rank for finding in report.findings for subject in finding.culprits] == [3]
    assert report.verdict.victims == (0, 1, 2)
