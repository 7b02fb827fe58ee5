"""Groups are noticed in torch's own dictionary, and written with their members folded."""

import json
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pardbg.collectors.probe.groups import NoticedGroups, fold, notice_groups, write_group


def unfold(runs: list[list[int]]) -> list[int]:
    return [start + stride * index for start, stride, count in runs for index in range(count)]


@given(st.lists(st.integers(0, 100), max_size=50))
def test_folded_ranks_are_the_same_ranks(ranks: list[int]) -> None:
    runs = fold(ranks)
    assert unfold(runs) == ranks
    assert all(count >= 1 for _, _, count in runs)


def test_regular_groups_are_one_run() -> None:
    assert fold(range(30_000)) == [[0, 1, 30_000]]
    assert fold(range(3, 4096, 8)) == [[3, 8, 512]]
    assert fold([7]) == [[7, 1, 1]]
    assert fold([]) == []


def fake_torch() -> Any:
    """As much of `torch.distributed.distributed_c10d` as is looked at."""
    module: Any = ModuleType("c10d")
    module._pg_group_ranks = {"world": {0: 0}}
    module._world = World(module)
    return module


class World:
    """Its object that knows of all groups."""

    def __init__(self, module: Any) -> None:
        self._module = module
        self.pg_names = {"tp": "1"}
        self.pg_map = {"tp": ("gloo", None)}

    @property
    def pg_group_ranks(self) -> object:
        """As torch has it: whatever lies in the module."""
        return self._module._pg_group_ranks


def test_present_and_new_groups_are_told_and_a_failing_listener_harms_nobody() -> None:
    torch = fake_torch()
    heard: list[object] = []

    def listen(group: object, _members: object) -> None:
        heard.append(group)
        raise ValueError

    notice_groups(torch, listen)
    torch._pg_group_ranks["tp"] = {4: 1, 0: 0}
    assert heard == ["world", "tp"]
    assert torch._world.pg_group_ranks == {"world": {0: 0}, "tp": {4: 1, 0: 0}}
    assert isinstance(torch._pg_group_ranks, NoticedGroups)
    torch._pg_group_ranks.clear()


def test_a_torch_that_keeps_its_groups_elsewhere_is_left_as_it_is() -> None:
    torch = fake_torch()
    present = torch._pg_group_ranks
    torch._world = SimpleNamespace(pg_group_ranks=present)
    with pytest.raises(AttributeError):
        notice_groups(torch, lambda _group, _members: None)
    assert torch._pg_group_ranks is present


def test_a_group_is_a_line_in_the_order_of_its_group_ranks(tmp_path: Path) -> None:
    path = tmp_path / "groups.jsonl"
    write_group(str(path), fake_torch(), "tp", {4: 1, 0: 0, 8: 2, 2: 3})
    written = json.loads(path.read_text())
    assert written.pop("created_ns") > 0
    assert written == {"name": "1", "desc": "", "backend": "gloo", "runs": [[0, 4, 3], [2, 1, 1]]}
