"""Simulated dumps have the form of real ones: NCCL's from NVRx's recordings, gloo's from a job started here."""

import json
import pickle
import pickletools
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pardbg.watchdog.sim.dump import encode_json, encode_pickle
from pardbg.watchdog.sim.recipe import Recipe
from pardbg.watchdog.sim.scenario import simulate

REAL_NCCL = Path(__file__).parents[3] / "shared" / "cases" / "nvrx"
# What Python's pickler writes for large memos and for lists and dicts of one item; readers of real dumps must expect them too.
PYTHONS_OWN = {"LONG_BINPUT", "LONG_BINGET", "APPEND", "SETITEM"}
GLOO_JOB = """
import sys, time, torch, torch.distributed as dist
from pathlib import Path
from torch._C._distributed_c10d import _dump_fr_trace, _dump_fr_trace_json
rank, folder = int(sys.argv[1]), Path(sys.argv[2])
dist.init_process_group("gloo", rank=rank, world_size=2, init_method=f"file://{folder}/store")
half = dist.new_group([0, 1], group_desc="half")
for group in (None, half):
    dist.all_reduce(torch.ones(4), group=group)
    dist.all_to_all_single(torch.ones(4), torch.ones(4), group=group)
dist.send(torch.ones(1), 1) if rank == 0 else dist.recv(torch.ones(1), 0)
dist.barrier()
time.sleep(0.5)  # until the worker threads have noted the last completion
(folder / f"dump{rank}").write_bytes(_dump_fr_trace(True, True, False))
(folder / f"dump{rank}.json").write_bytes(_dump_fr_trace_json(True, False))
dist.destroy_process_group()
"""

Shape = Any


def shape(value: Any) -> Shape:
    """Types all the way down; of a list only the kinds of items, sorted."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    if isinstance(value, list):
        return ["list", *sorted({str(shape(item)) for item in value})]
    if isinstance(value, tuple):
        return tuple(shape(item) for item in value)
    return type(value).__name__


def opcodes(data: bytes) -> set[str]:
    return {opcode.name for opcode, _, _ in pickletools.genops(data)}


def read(path: Path) -> dict[str, Any]:
    dump: dict[str, Any] = pickle.loads(path.read_bytes())
    return dump


def simulated(**options: Any) -> dict[str, Any]:
    fault = options.pop("fault", "missing-participant")
    return simulate(Recipe(fault=fault, **options)).dumps[0]


def entry_shapes(dump: dict[str, Any]) -> set[str]:
    return {str(shape(entry)) for entry in dump["entries"]}


@pytest.fixture(scope="module")
def real_nccl() -> list[dict[str, Any]]:
    dumps = [read(path) for path in sorted(REAL_NCCL.glob("*/_dump_*"))]
    assert len(dumps) == 32
    return dumps


def test_nccl_entries_have_the_keys_in_the_order_and_of_the_types_of_real_ones(real_nccl: list[dict[str, Any]]) -> None:
    real = set().union(*(entry_shapes(dump) for dump in real_nccl))

    ours = entry_shapes(simulated(is_active_only=True, has_frames=False))

    assert ours <= real


def test_nccl_dumps_have_the_top_level_of_real_ones(real_nccl: list[dict[str, Any]]) -> None:
    ours = simulated(is_active_only=True, has_frames=False)

    assert list(ours) == list(real_nccl[0])
    assert ours["version"] == real_nccl[0]["version"]
    for key in ("pg_config", "pg_status"):
        assert {str(shape(value)) for value in ours[key].values()} == {
            str(shape(value)) for value in real_nccl[0][key].values()
        }
    assert all(re.fullmatch(r"\[\d+(, \d+)*\]", config["ranks"]) for config in ours["pg_config"].values())


def test_nccl_names_are_spelled_as_in_real_dumps(real_nccl: list[dict[str, Any]]) -> None:
    real = {re.sub(r"\d+", "N", entry["profiling_name"]) for dump in real_nccl for entry in dump["entries"]}
    job = simulate(Recipe(fault="missing-participant"))

    ours = {re.sub(r"\d+", "N", entry["profiling_name"]) for dump in job.dumps.values() for entry in dump["entries"]}

    assert ours - real == {"nccl:all_reduce_barrier"}


def test_a_process_numbers_its_groups_by_itself() -> None:
    dump = simulated()

    numbers = {(entry["pg_id"], entry["process_group"][0]) for entry in dump["entries"]}

    assert any(str(local_id) != name for local_id, name in numbers)
    assert {str(local_id) for local_id, _ in numbers} == set(dump["pg_status"])


def test_pickles_use_no_opcode_that_real_ones_lack() -> None:
    real = opcodes((REAL_NCCL / "gpu_error_2nd" / "_dump_9").read_bytes())

    assert opcodes(encode_pickle(simulated(entries=500))) - real <= PYTHONS_OWN


def test_equal_frames_are_stored_once() -> None:
    dump = pickle.loads(encode_pickle(simulated(entries=500)))

    frames = [frame for entry in dump["entries"] for frame in entry["frames"]]

    assert len({id(frame) for frame in frames}) == len({tuple(frame.values()) for frame in frames})


@pytest.mark.live
def test_gloo_dumps_have_the_shape_of_real_ones(tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text(GLOO_JOB)
    ranks = [subprocess.Popen([sys.executable, str(script), str(rank), str(tmp_path)]) for rank in range(2)]
    assert [rank.wait(timeout=60) for rank in ranks] == [0, 0]
    real = read(tmp_path / "dump0")
    real_json = json.loads((tmp_path / "dump0.json").read_bytes())

    ours = simulated(fault="healthy", ranks=4, backend="gloo")

    assert list(ours) == list(real)
    assert [ours[key] for key in ("version", "pg_config", "comm_lib_version")] == ["2.10", real["pg_config"], ""]
    assert {str(shape(value)) for value in ours["pg_status"].values()} == {
        str(shape(value)) for value in real["pg_status"].values()
    }
    assert entry_shapes(ours) <= entry_shapes(real)
    assert opcodes(encode_pickle(ours)) - opcodes((tmp_path / "dump0").read_bytes()) <= PYTHONS_OWN
    ours_json = json.loads(encode_json(ours))
    assert list(ours_json) == sorted(real_json)
    assert entry_shapes(ours_json) <= entry_shapes(real_json)
    assert {str(shape(value)) for value in ours_json["pg_status"].values()} == {
        str(shape(value)) for value in real_json["pg_status"].values()
    }
