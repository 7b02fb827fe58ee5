"""`pardbg moe` on files: text, JSON, exit codes, errors of one line."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pardbg.watchdog.commands.main import pardbg
from pardbg.watchdog.errors import InputError
from pardbg.watchdog.outputs.validation import validate_report
from tests.routing_files.making import EXPERTS, collapse, lines, rows

ONSET = 250


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(pardbg, ["moe", *map(str, arguments)])


@pytest.fixture(scope="module")
def collapsed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Layer 2 of 3 collapses; two ranks have a file each."""
    folder = tmp_path_factory.mktemp("moe")
    for rank in range(2):
        well = rows(400, 3, seed=rank, ep_size=4)
        found = [collapse(row, ONSET) if row["layer"] == 2 and row["step"] >= ONSET else row for row in well]
        (folder / f"routing_rank{rank}.jsonl").write_bytes(lines(found))
    return folder


@pytest.fixture(scope="module")
def shown(collapsed: Path) -> Sequence[str]:
    result = run(collapsed)
    assert result.exit_code == 3
    return result.stdout.splitlines()


def test_ill_layer_comes_first_in_a_table_of_one_line_a_layer(shown: Sequence[str]) -> None:
    begin = shown.index("LAYERS")
    assert re.fullmatch(r"  layer   steps 0-399        load   dropped   dead   EP    state", shown[begin + 1])
    table = [re.split(r"\s{2,}", line.strip()) for line in shown[begin + 2 : begin + 5]]
    assert [(cells[0], cells[-1].split(" +")[0]) for cells in table] == [("2", "router-collapse"), ("0", "well"), ("1", "well")]
    assert re.fullmatch("▁+[▂▃▄▅▆▇]*█+", table[0][1])
    assert all(set(cells[1]) <= set("▁▂") for cells in table[1:])


def test_text_begins_with_the_claim_and_no_line_is_wider_than_80_but_those_with_a_path(shown: Sequence[str]) -> None:
    assert shown[0].startswith("DEGRADED  layer 2 sends ")
    assert [line for line in shown if len(line) > 80 and "/" not in line] == []


def test_json_is_a_report_with_all_layers(collapsed: Path) -> None:
    result = run(collapsed, "--json", "--layers", "1")
    whole = json.loads(result.stdout)
    validate_report(whole)

    assert result.exit_code == 3
    assert (whole["status"], whole["verdict"]["kind"], whole["verdict"]["layer"]) == ("degraded", "router-collapse", 2)
    assert [layer["layer"] for layer in whole["layers"]] == [2, 0, 1]
    worst = whole["layers"][0]
    assert (worst["steps"], worst["experts"], worst["top_k"], worst["ep_size"]) == (400, EXPERTS, 2, 4)
    assert worst["illnesses"][0]["kind"] == "router-collapse"
    assert sorted(expert["expert"] for expert in worst["worst_experts"][:2]) == [0, 1]
    assert len(worst["worst_experts"]) == 8
    assert worst["figures"]["router_grad_norm"] is None
    assert len(worst["trend"]["means"]) == 50


def test_layers_option_leaves_out_the_best_ones_and_says_so(collapsed: Path) -> None:
    text = run(collapsed, "--layers", "1").stdout
    assert "... and 2 more; --layers 3 shows all." in text
    assert "well" not in text


def test_healthy_and_too_short_files_have_their_exit_codes(tmp_path: Path) -> None:
    (tmp_path / "long.jsonl").write_bytes(lines(rows(120)))
    (tmp_path / "short.jsonl").write_bytes(lines(rows(9)))
    assert run(tmp_path / "long.jsonl").exit_code == 0
    assert run(tmp_path / "short.jsonl").exit_code == 4


def test_damaged_lines_are_unknowns(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(lines(rows(120)) + b'{"step": 120, "layer": 0, "counts": [1, ')
    whole = json.loads(run(tmp_path, "--json").stdout)
    assert [(one["collector"], one["reason"]) for one in whole["unknowns"]] == [("routing", "unreadable")]


def test_file_whose_newest_lines_cannot_be_used_is_undetermined_and_names_the_field(tmp_path: Path) -> None:
    well = [json.dumps(row) for row in rows(200)]
    bad = [line.replace('"layer": 0', '"layer": null') for line in well[150:]]
    (tmp_path / "a.jsonl").write_text("\n".join(well[:150] + bad))
    result = run(tmp_path, "--json")

    assert result.exit_code == 4
    assert "line 151: layer is null" in json.loads(result.stdout)["notes"][-1]


def test_collapse_in_lines_whose_loss_is_nan_is_found(tmp_path: Path) -> None:
    found = [collapse(row, 60) | {"loss": float("nan")} if row["step"] >= 60 else row for row in rows(200)]
    (tmp_path / "a.jsonl").write_bytes(lines(found))
    result = run(tmp_path, "--json")

    assert (result.exit_code, json.loads(result.stdout)["verdict"]["kind"]) == (3, "router-collapse")


@pytest.mark.parametrize(
    ("head", "words"),
    [(b"\x1f\x8b\x08", "is compressed (gzip)"), (b'[{"step": 1}]', "is one JSON array"), (b" ", "is empty")],
)
def test_file_that_holds_no_lines_of_counts_is_told_what_it_is(tmp_path: Path, head: bytes, words: str) -> None:
    (tmp_path / "a").write_bytes(head)
    assert words in str(run(tmp_path / "a").exception)


def test_page_and_markdown_hold_the_layers(collapsed: Path, tmp_path: Path) -> None:
    for command in ("moe", "analyze"):
        html, markdown = tmp_path / f"{command}.html", tmp_path / f"{command}.md"
        CliRunner().invoke(pardbg, [command, str(collapsed), "--html", str(html), "--md", str(markdown)])

        assert "<h2>Layers</h2>" in html.read_text()
        assert html.read_text().count("<td>router-collapse") == 1
        assert re.search(r"^\| `    2` \| `▁+.*router-collapse", markdown.read_text(), re.MULTILINE)


def test_layer_with_the_figures_of_one_that_is_ill_is_not_called_well(tmp_path: Path) -> None:
    """A third of the steps too few for layer 1 to be told."""
    found = [row | {"dropped": 2048} if row["step"] >= (60 if row["layer"] == 0 else 118) else row for row in rows(120, 2)]
    (tmp_path / "a.jsonl").write_bytes(
        lines([row | {"dropped": 8000} if row["layer"] and row["step"] > 117 else row for row in found])
    )
    layers = json.loads(run(tmp_path, "--json").stdout)["layers"]
    assert [(layer["layer"], [one["alarm_step"] for one in layer["illnesses"]]) for layer in layers] == [(0, [62]), (1, [])]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"job": "x", "world_size": 1, "ranks": [{"rank": 0}]}', "counts routing"),
        (b'{"step": 1, "layer": 0, "counts": [-1, 2]}', "no line of it counts what experts were assigned"),
    ],
)
def test_files_without_counts_are_wrong_usage(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "job.json").write_bytes(content)
    result = run(tmp_path)
    assert isinstance(result.exception, InputError)
    assert words in str(result.exception)


@pytest.mark.parametrize("arguments", [(), ("x.jsonl", "--job", "a"), ("--job", "a", "--pid", "1")])
def test_exactly_one_thing_is_looked_at(arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert "exactly one of PATH, --job ID and --pid PID" in result.stderr
