"""GPU series as files: recognised by content, of which rank each line speaks, and damage."""

import json
from pathlib import Path

import pytest

from pardbg.collectors.files import collect_files
from pardbg.collectors.gpu.points import GpuPoint
from pardbg.collectors.parsing.gpu_series import encode_gpu_series, parse_gpu_series
from pardbg.collectors.parsing.recognise import Content, recognise
from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.device import DeviceJoin, DeviceSeen, DeviceShape
from pardbg.watchdog.model.names import CollectorName

T_S = 1796000000.0
LINE = {
    "t": T_S,
    "rank": 3,
    "util": 100,
    "mem_util": 0,
    "power_w": 130.5,
    "power_limit_w": 700,
    "sm_clock_mhz": 1980,
    "temperature_c": 41,
    "clock_reasons": 4,
}


def lines(count: int, **changes: object) -> bytes:
    rows = [{**LINE, "t": T_S + number, **changes} for number in range(count)]
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


@pytest.mark.parametrize("name", ["whatever.txt", "gpu_rank3.jsonl", "rank3.log", "nccl_trace_rank_3"])
@pytest.mark.parametrize("data", [lines(1), lines(50), b'{"damaged\n' + lines(5), lines(5)[:-20]])
def test_a_series_is_recognised_by_its_content(name: str, data: bytes) -> None:
    assert recognise(name, data) is Content.GPU_SERIES


@pytest.mark.parametrize(
    "data",
    [
        b'{"step": 1, "layer": 2, "counts": [1, 2]}\n{"step": 2, "layer": 2, "counts": [3, 4]}\n',
        b'{"t": 1.0, "event": "start"}\n{"t": 2.0, "event": "stop"}\n',
        b'{"util": 5, "power_w": 7}\n{"util": 5}\n',
    ],
)
def test_other_json_lines_are_no_series(data: bytes) -> None:
    assert recognise("whatever.jsonl", data) is not Content.GPU_SERIES


def test_several_ranks_share_a_file_in_any_order_and_damaged_lines_are_left_out() -> None:
    mixed = lines(5, rank=1, util=0, power_w=70) + lines(5)[::1] + b"{cut\n" + lines(1, rank=-4) + lines(1, clock_reasons=-1)
    found = dict(parse_gpu_series(b"\n".join(reversed(mixed.split(b"\n")))))
    assert set(found) == {1, 3}
    assert (found[1].shape, found[3].shape, found[3].window_s) == (DeviceShape.IDLE, DeviceShape.SPINNING, 4.0)
    assert found[3].joined_by is DeviceJoin.FILE
    with pytest.raises(ParseError, match="no line of it is a sample"):
        parse_gpu_series(b'{"t": "noon"}\n')


def test_what_is_written_is_read_again() -> None:
    points = [GpuPoint(t=1000.0 + number, util=100.0, mem_util=0.0, power_w=130.0, power_limit_w=700.0) for number in range(20)]
    ((rank, seen),) = parse_gpu_series(encode_gpu_series(7, points))
    assert (rank, seen.shape, seen.shape_s, seen.power_w) == (7, DeviceShape.SPINNING, 19.0, 130.0)


def test_the_rank_is_told_by_the_lines_else_by_the_name(tmp_path: Path) -> None:
    (tmp_path / "all.jsonl").write_bytes(lines(3) + lines(3, rank=4))
    own = [{key: value for key, value in LINE.items() if key != "rank"}] * 3
    (tmp_path / "gpu_rank5.jsonl").write_text("\n".join(map(json.dumps, own)))
    (tmp_path / "gpu_rank6.jsonl").write_text("")
    found = collect_files([tmp_path]).evidence
    assert {item.rank for item in found if isinstance(item.observation, DeviceSeen)} == {3, 4, 5}
    assert {item.source for item in found} == {CollectorName.GPU}
    assert [item.rank for item in found if not isinstance(item.observation, DeviceSeen)] == [6]
