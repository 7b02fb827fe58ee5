"""`pardbg layout` as a command."""

import json
import time
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # ships no types
import pytest
from click.testing import CliRunner, Result

from pardbg.watchdog.commands.layout import layout
from pardbg.watchdog.commands.main import main
from pardbg.watchdog.model.layout_report import LayoutReport
from pardbg.watchdog.outputs.schema import LAYOUT_SCHEMA_FILE, schema_text
from pardbg.watchdog.outputs.validation import validate_layout_report

INVALID = "--world 40 --tp 3 --pp 4"
WHOLE = "--world 64 --tp 8 --pp 2 --ep 4 --etp 2 --experts 32 --global-batch 64 --micro-batch 4"

VALID_TEXT = """\
VALID  64 ranks as tp 8 x dp 4 x pp 2, experts as etp 2 x ep 4 x edp 4 x pp 2

AXES
  axis   size  stride  groups  members
  tp        8       1       8  [0-7] [8-15] [16-23] [24-31] [32-39] .. [56-63]
  dp        4       8      16  [0,8,16,24] [1,9,17,25] .. [39,47,55,63]
  pp        2      32      32  [0,32] [1,33] [2,34] [3,35] [4,36] .. [31,63]

AXES OF EXPERTS
  axis   size  stride  groups  members
  etp       2       1      32  [0-1] [2-3] [4-5] [6-7] [8-9] [10-11] .. [62-63]
  ep        4       2      16  [0,2,4,6] [1,3,5,7] [8,10,12,14] .. [57,59,61,63]
  edp       4       8      16  [0,8,16,24] [1,9,17,25] .. [39,47,55,63]
  pp        2      32      32  [0,32] [1,33] [2,34] [3,35] [4,36] .. [31,63]

RANK 37
  node 4, local rank 5
  tp 5 of 8: in [32-39]
  dp 0 of 4: in [37,45,53,61]
  pp 1 of 2: in [5,37]
  etp 1 of 2: in [36-37]
  ep 2 of 4: in [33,35,37,39]
  edp 0 of 4: in [37,45,53,61]
  experts: 16-23 of every layer

COSTS
  bubble: 20.0% of a step with 4 micro-batches
  memory: 24.6 GiB a rank (weights 5.5, gradients 10.9, optimizer 8.2)

NOTES
  - the bubble is that of 2 equal stages; schedule: 1f1b
  - bytes are the mean over stages, with the optimizer shared out (ZeRO 1);
    activations come on top
"""
INVALID_TEXT = """\
INVALID  1 thing keeps 40 ranks from working as asked

WHAT CANNOT WORK
  - tp 3 x pp 4 = 12 does not divide the world of 40 ranks
    try: a world of 36 or 48 ranks

NEAREST THAT CAN
  --tp 2
      tp 2 x dp 5 x pp 4
  --tp 1
      dp 10 x pp 4
  --tp 5
      tp 5 x dp 2 x pp 4

NOTES
  - the bubble is not known: give --global-batch and --micro-batch
  - bytes per rank are not known: give --params
"""


def run(arguments: str) -> Result:
    return CliRunner().invoke(layout, arguments.split())


def reported(arguments: str) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(run(f"{arguments} --json").stdout)
    validate_layout_report(report)
    return report


def test_valid_layout_is_told_with_its_groups_and_costs_in_80_columns() -> None:
    shown = run(f"{WHOLE} --rank 37 --params 47B --expert-params 45e9")
    assert shown.exit_code == 0
    assert shown.stdout == VALID_TEXT


def test_invalid_layout_is_told_with_why_and_what_would_do() -> None:
    shown = run(INVALID)
    assert shown.exit_code == 3
    assert shown.stdout == INVALID_TEXT


@pytest.mark.parametrize(
    "arguments", [WHOLE, INVALID, "--world 1", "--world 24 --framework torchtitan --tp 3 --ep 12 --rank 7"]
)
def test_json_obeys_its_schema(arguments: str) -> None:
    report = reported(arguments)
    with pytest.raises(jsonschema.ValidationError, match="is a required property"):
        validate_layout_report({key: value for key, value in report.items() if key != "nearest"})


def test_committed_schema_is_the_models() -> None:
    from importlib.resources import files  # noqa: PLC0415

    committed = files("pardbg.watchdog.outputs").joinpath(LAYOUT_SCHEMA_FILE).read_text(encoding="utf-8")
    assert committed == schema_text(LayoutReport)


def test_json_has_what_the_contract_names() -> None:
    report = reported("--world 16 --tp 2 --pp 2 --ep 2 --global-batch 8 --micro-batch 1")
    assert report["schema"] == "pardbg.layout/1"
    assert report["valid"] is True
    assert report["axes"]["pp"] == {"size": 2, "stride": 8, "groups": [[first, first + 8] for first in range(8)]}
    assert report["expert_axes"]["edp"]["groups"][:2] == [[0, 4], [1, 5]]
    assert report["bubble_ratio"] == pytest.approx(1 / 3)
    assert report["bytes_per_rank"] == {"weights": None, "gradients": None, "optimizer": None}
    assert report["nearest"] == []
    assert [violation["kind"] for violation in report["violations"]] == ["layout-warning"]  # the bubble


def test_what_cannot_be_placed_is_null() -> None:
    report = reported(f"{INVALID} --rank 3")
    assert (report["valid"], report["axes"], report["expert_axes"], report["rank"]) == (False, None, None, None)
    assert [violation["kind"] for violation in report["violations"]] == ["layout-invalid"]
    assert [nearby["changes"] for nearby in report["nearest"]] == [{"tp": 2}, {"tp": 1}, {"tp": 5}]


def test_model_without_experts_has_no_expert_axes() -> None:
    assert reported("--world 16 --tp 2")["expert_axes"] is None


@pytest.mark.parametrize(
    "arguments",
    [
        "--world 32768 --tp 8 --pp 16 --cp 2 --ep 64 --etp 1 --rank 32767 --gpus-per-node 72",
        "--world 32768 --framework torchtitan --tp 8 --pp 16 --ep 64 --dp-replicate 4",
        "--world 65536 --dp 65536",
        "--world 720 --tp 720 --gpus-per-node 1",
        "--world 77 --tp 6 --pp 8 --ep 9 --heads 10 --layers 11 --experts 12 --global-batch 13 --micro-batch 2",
    ],
)
def test_text_of_any_layout_fits_80_columns(arguments: str) -> None:
    assert [line for line in run(arguments).stdout.splitlines() if len(line) > 80] == []


def test_32768_ranks_take_less_than_a_second() -> None:
    """The best of several: the machine is shared."""
    times = []
    for _ in range(3):
        began = time.process_time()
        assert run("--world 32768 --tp 8 --pp 16 --cp 2 --ep 64 --etp 1 --layers 90 --heads 64 --json").exit_code == 3
        times.append(time.process_time() - began)
    assert min(times) < 1.0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("", "Missing option '--world'"),
        ("--world 0", "not in the range"),
        ("--world 16 --tp 0", "not in the range"),
        ("--world 16 --rank 16", "the ranks are 0 to 15"),
        ("--world 16 --order tp-xp", "write it like tp-cp-ep-dp-pp"),
        ("--world 16 --params many", "write 70e9 or 70B"),
        ("--world 16 --params nan", "write 70e9 or 70B"),
        ("--world 16 --params 1e999", "write 70e9 or 70B"),
        ("--world 16 --layers 1000000000000000000", "is more than anybody has"),
        ("--world 16 --framework fsdp", "'fsdp' is not one of"),
    ],
)
def test_wrong_usage_exits_2_and_says_what_is_wrong(arguments: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exited:
        main(["layout", *arguments.split()])
    shown = capsys.readouterr()
    assert exited.value.code == 2
    assert shown.out == ""
    assert words in shown.err
