"""Whom the lateness of rounds must not accuse where a rule is missing. Each comes of a mutant that lived."""

import pytest
from msgspec.structs import replace

from pardbg.watchdog.graph.groups import Group
from pardbg.watchdog.graph.lateness import find_late
from pardbg.watchdog.graph.rounds import Round, Rounds
from pardbg.watchdog.model.recording import Operation, Recording
from tests.diagnosis.test_stragglers import ONE_HOST, STEP_S, TWO_HOSTS, WORLD, always, play, report_on

LATE_NS = 400_000_000
STEP_NS = 900_000_000
GROUP = Group(0, "0", "default_pg", tuple(range(8)))


def later(operation: Operation) -> Operation:
    return replace(operation, created_ns=operation.created_ns + LATE_NS)


def test_clocks_of_two_hosts_are_not_compared() -> None:
    """Recorders of gloo have no ends: on one host the last to come ends a collective, across hosts nobody knows."""
    recordings = play(WORLD, ["0"], lambda *_: 0.0, backend="gloo")
    recordings[5] = replace(recordings[5], operations=tuple(map(later, recordings[5].operations)))
    assert [subject.rank for found in report_on(recordings, ONE_HOST).findings for subject in found.culprits] == [5]
    assert report_on(recordings, TWO_HOSTS).findings == ()
    assert report_on(recordings, [None] * 8).findings == ()


def broadcast(one: Recording) -> Recording:
    return replace(one, signatures=tuple(replace(signature, op="broadcast") for signature in one.signatures))


def test_root_that_need_not_wait_is_no_straggler() -> None:
    assert report_on(list(map(broadcast, play(WORLD, ["0"], always(5)))), TWO_HOSTS).findings == ()


def rounds_of(*late_s: dict[int, float], others_s: float = 0.0) -> Rounds:
    """Rounds in which these ranks come so late, and all others so much."""
    return Rounds(
        GROUP,
        tuple(
            Round(GROUP, seq, {rank: round(late.get(rank, others_s) * 1e9) for rank in GROUP.ranks})
            for seq, late in enumerate(late_s)
        ),
        len(late_s) * STEP_NS,
    )


@pytest.mark.parametrize(
    ("rounds", "ranks"),
    [
        pytest.param(rounds_of(*[{3: 0.4}] * 30), (3,), id="always"),
        pytest.param(rounds_of(*[{3: 0.4}] * 7), None, id="too few rounds"),
        pytest.param(rounds_of(*[{3: 0.03}] * 30), None, id="not worth a word"),
        pytest.param(rounds_of(*[{3: 0.4, 4: 0.37}] * 30), (3, 4), id="two are late"),
        pytest.param(rounds_of(*[{3: 0.4, 4: 0.1}] * 30), (3,), id="one is a little late"),
        pytest.param(rounds_of(*[dict.fromkeys(range(3), 0.4)] * 30), None, id="three of eight are late"),
        pytest.param(rounds_of(*([{3: 0.4}, {4: 0.4}] * 15)), None, id="two in turn"),
        pytest.param(rounds_of(*([{3: 0.4}] * 6 + [{rank: 0.4} for rank in (0, 1, 2, 4)]) * 3), None, id="mostly one"),
        pytest.param(rounds_of(*[{rank % 8: 0.4} for rank in range(32)]), (), id="all in turn"),
        pytest.param(rounds_of(*[{rank % 8: 0.08} for rank in range(32)]), None, id="all in turn, for little"),
        pytest.param(rounds_of(*([{}] * 20 + [{rank % 8: 0.9} for rank in range(16)])), None, id="all in turn, of late"),
        pytest.param(rounds_of(*([{3: 0.4}] * 3 + [{3: 0.02}] * 3) * 6), (3,), id="every other time"),
        pytest.param(rounds_of(*([{3: 0.4}] * 10 + [{}] * 20)), None, id="over since long"),
        pytest.param(rounds_of(*[{0: 0.0, 3: 0.8}] * 30, others_s=0.5), (3,), id="one is early"),
        pytest.param(rounds_of(*([{3: 0.4}] * 3 + [{5: 0.02}] * 3) * 6), (3,), id="another is a little late in between"),
        pytest.param(
            rounds_of(*[{3: 0.4, (4, 5, 6)[step % 3]: 0.39} for step in range(30)]), None, id="another as late each time"
        ),
        pytest.param(
            rounds_of(*[dict.fromkeys(range(3), 0.5) | {step % 3: 0.8} for step in range(30)]), None, id="three, and one more"
        ),
        pytest.param(
            rounds_of(*([{0: 0.9, 4: 0.9}, {1: 0.9, 5: 0.9}] * 10 + [{rank % 8: 0.9} for rank in range(16)])),
            None,
            id="pairs in turn, then all in turn",
        ),
        pytest.param(
            rounds_of(*[{step % 8: 0.9} if step % 5 == 0 else {step % 8: 0.9, (step + 4) % 8: 0.9} for step in range(30)]),
            None,
            id="mostly pairs",
        ),
    ],
)
def test_who_is_late_by_rounds_alone(rounds: Rounds, ranks: tuple[int, ...] | None) -> None:
    found = find_late(rounds)
    assert (found.ranks if found is not None else None) == ranks


@pytest.mark.parametrize(("late_s", "count"), [(0.04, 0), (0.06, 1)])
def test_turns_of_a_busy_machine_are_no_lateness_that_goes_round(late_s: float, count: int) -> None:
    step_s = 0.05 - STEP_S

    def in_turn(rank: int, step: int) -> float:
        return step_s + (late_s if step % 8 == rank else 0.0)

    assert len(report_on(play(WORLD, ["0"], in_turn, backend="gloo"), ONE_HOST).findings) == count
