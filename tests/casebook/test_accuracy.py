"""The scorer: what it counts, and the table it writes."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from pardbg.watchdog.bench.accuracy import ALL, HELD_OUT, OURS, PEER, TUNED, Score, measure_accuracy
from pardbg.watchdog.bench.accuracy_table import BEGIN, END, HEADS, into_readme, write_summary, write_table
from pardbg.watchdog.bench.peer import is_installed, read_answer
from pardbg.watchdog.bench.tally import Said, Tally
from pardbg.watchdog.commands.main import pardbg
from pardbg.watchdog.errors import InputError
from pardbg.watchdog.model.names import Kind
from pardbg.watchdog.sim.truth import HEALTHY, Truth, unknown_because

ROOT = Path(__file__).resolve().parents[2]
GUILTY = Truth(kind=Kind.MISSING_PARTICIPANT, culprits=(2, 3))
SCORE = Score(
    tool=OURS,
    cases_of=TUNED,
    kind=ALL,
    cases=10,
    right=9,
    precision=1.0,
    recall=0.5,
    cause_accuracy=None,
    controls=3,
    false_alarms=1,
    untold=0,
    elected=0,
    crashed=0,
)
RATE = re.compile(r"-|[01]\.\d{3}|[\d,]+|\d+ of \d+")


def test_accused_found_and_missed_ranks_are_counted() -> None:
    tally = Tally()
    tally.add(Said(ranks=frozenset({2, 3}), has_cause=True, is_right=True), GUILTY)
    tally.add(Said(ranks=frozenset({2, 7}), has_cause=False), GUILTY)
    assert (tally.precision, tally.recall, tally.cause_accuracy, tally.right) == (0.75, 0.5, 0.5, 1)


def test_accusing_where_nobody_can_be_accused_is_an_election_and_calling_a_control_ill_an_alarm() -> None:
    tally = Tally()
    tally.add(Said(ranks=frozenset({1}), is_alarm=True), unknown_because("not seen"))
    tally.add(Said(ranks=frozenset(), is_alarm=True), HEALTHY)
    tally.add(Said(), HEALTHY)
    assert (tally.untold, tally.elected, tally.controls, tally.alarms, tally.precision) == (1, 1, 2, 1, 0.0)


def test_peer_is_read_by_its_own_words() -> None:
    missing = read_answer("collective: nccl:all_reduce\nmissing ranks: {3, 5}\n")
    differing = read_answer("error msg: Culprit rank 4; Error type: SIZE_OR_SYNTAX_MISMATCH, Culprit rank 6; ...")
    assert (missing.ranks, differing.ranks) == (frozenset({3, 5}), frozenset({4, 6}))
    assert read_answer("", "KeyError").has_crashed


def test_table_has_a_row_for_each_class_with_the_peer_beside_it() -> None:
    peer = replace(SCORE, tool=PEER, precision=0.25, crashed=2)
    _, _, row = write_table([SCORE, peer])
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells == [
        *(TUNED, ALL, "10", "0.900", "1.000", "0.500", "-", "1 of 3", "-"),
        *("0.250", "0.500", "1 of 3", "-", "2 of 10"),
    ]


def test_readme_takes_the_table_between_its_markers_and_nowhere_else() -> None:
    text = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    assert into_readme(text, ["| new |"]) == f"before\n{BEGIN}\n| new |\n{END}\nafter\n"
    with pytest.raises(InputError):
        into_readme("no place", [])


def test_table_of_the_readme_has_the_form_that_is_written_now() -> None:
    block = (ROOT / "README.md").read_text(encoding="utf-8").split(BEGIN)[1].split(END)[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines() if line.startswith("|")]
    assert rows[0] == list(HEADS)
    assert {HELD_OUT, TUNED} <= {row[0] for row in rows}
    figures = [cell for row in rows if row[0] in {HELD_OUT, TUNED} for cell in row[2:]]
    assert [cell for cell in figures if RATE.fullmatch(cell) is None] == []


@pytest.mark.slow
def test_nobody_innocent_is_accused_in_either_half_of_the_casebook() -> None:
    scores = {
        score.cases_of: score
        for score in measure_accuracy(lambda _: None, seeds=2, sizes=(), has_peer=False)
        if score.kind == ALL
    }
    for half in (TUNED, HELD_OUT):
        assert (scores[half].precision, scores[half].false_alarms, scores[half].elected) == (1.0, 0, 0)
        assert (scores[half].recall or 0) >= 0.95
        assert (scores[half].cause_accuracy or 0) >= 0.9
    assert next(write_summary(list(scores.values()))).startswith("| cases of |")


@pytest.mark.slow
@pytest.mark.skipif(not is_installed(), reason="torch is not installed: there is no peer")
def test_command_writes_the_table_with_the_peers_figures() -> None:
    run = CliRunner().invoke(pardbg, ["bench", "accuracy", "--jobs", "2"])
    assert run.exit_code == 0, run.output
    assert f"| {TUNED} | {ALL} |" in run.output
