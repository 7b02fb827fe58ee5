"""Fingerprints change with what they stand for, wait for no device, and say nothing where they know nothing."""

from typing import Any

import pytest
import torch
from torch import nn

from pardbg.collectors.probe.replicas.tasting import digest, taste
from pardbg.collectors.probe.replicas.weighing import MOST_ON, find_cut, find_fitting, spread, take, weigh
from tests.probe.routing.test_waiting import NoWaiting


def tell(*arguments: Any, **named: Any) -> int:
    """The fingerprint of a batch, 0 if there is none."""
    tasted = taste(arguments, named)
    if tasted is None:
        return 0
    summed, changes = tasted.told.tolist()
    return digest((summed, changes), tasted.form)


@pytest.mark.parametrize("kind", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_every_bit_of_a_weight_counts(kind: torch.dtype) -> None:
    torch.manual_seed(1)
    parameter = torch.randn(7, 5).to(kind)
    (before,) = weigh([parameter], [()]).tolist()
    bits = parameter.view({2: torch.int16, 4: torch.int32, 8: torch.int64}[parameter.element_size()])
    for bit in range(8 * parameter.element_size() - 1):
        bits[3, 2] ^= 1 << bit
        assert weigh([parameter], [()]).tolist() != [before], bit
        bits[3, 2] ^= 1 << bit
    assert weigh([parameter], [()]).tolist() == [before]


def test_how_a_weight_lies_in_memory_does_not_count() -> None:
    weight = torch.randn(4, 3, 5, 5)
    assert weigh([weight], [()]).tolist() == weigh([weight.contiguous(memory_format=torch.channels_last)], [()]).tolist()


def test_of_a_large_weight_a_part_is_read_without_a_copy() -> None:
    most = MOST_ON["cpu"]
    shapes = ((most,), (most + 1,), (2 * most, 2), (3, most, 2), (2, 2 * most), (2 * most, 1), (1, 3 * most))
    assert {take(tensor, find_cut(tensor)).numel() for tensor in map(torch.empty, shapes)} == {most}
    assert find_cut(torch.empty(most)) == ()
    weight = torch.zeros(2 * most, 2)
    weight[most:] = 1
    assert weigh([weight], [find_cut(weight)]).tolist() == [0]


def test_parameters_that_train_and_lie_together_are_looked_at() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2, device="meta"), nn.Linear(2, 2))
    model[0].bias.requires_grad_(False)  # noqa: FBT003 - so torch has it
    assert find_fitting(list(model.parameters())) == [0, 4, 5]
    assert find_fitting(list(nn.Linear(2, 2, device="meta").parameters())) == find_fitting([]) == []
    assert spread([5, 6, 7, 8, 9, 10], 3) == [5, 7, 9]
    assert spread([5, 6], 3) == [5, 6]


def test_a_batch_is_told_from_another_wherever_its_contents_lie() -> None:
    images = torch.zeros(64, 1, 28, 28)
    images[:, :, 8:20, 8:20] = torch.rand(64, 1, 12, 12)
    others = images.roll(1, 0)
    assert 0 != tell(images) != tell(others) != 0
    assert tell(images) == tell(images.clone())
    rows = torch.randint(50_000, (8, 513))
    assert 0 != tell(rows[:, :-1]) != tell(rows[:, 1:]) != 0
    batch = {"input_ids": rows, "attention_mask": torch.ones(8, 513, dtype=torch.bool), "labels": None}
    assert tell(**batch) == tell(**batch) != 0
    assert tell(**batch) != tell(**{**batch, "input_ids": rows + 1})


def test_the_largest_tensors_count() -> None:
    small = [torch.rand(16) for _ in range(9)]
    batch = torch.rand(8, 8)
    assert tell(small, batch) != tell(small, batch + 1)
    assert tell(torch.empty(8, device="meta"), batch) == tell(torch.empty(8, device="meta"), batch) != 0


class Batch:
    """What nobody knows."""

    def __init__(self) -> None:
        self.rows = torch.rand(9, 9)


@pytest.mark.parametrize(
    "arguments",
    [
        (torch.ones(8, 64),),
        (torch.ones(8, 64), torch.rand(4)),
        (torch.rand(4, 4),),
        (torch.arange(64.0), Batch()),
        ([[[[[torch.rand(64)]]]]],),
        (torch.rand(8, 8).to_sparse(),),
        ("text", 3),
        (),
    ],
)
def test_what_says_little_or_is_not_understood_has_no_fingerprint(arguments: tuple[Any, ...]) -> None:
    assert tell(*arguments) == 0


def test_no_operation_waits_for_the_device() -> None:
    parameters = [nn.Parameter(torch.rand(9, 7)), nn.Parameter(torch.rand(3).bfloat16())]
    with NoWaiting() as seen, torch.no_grad():
        assert weigh(parameters, [(), (slice(2),)]).shape == (2,)
        assert taste((torch.rand(8, 8), [torch.randint(9, (64,))]), {"mask": torch.rand(9, 9) > 0.5, "z": torch.rand(4) * 1j})
    assert {"sum", "stack", "cat"} <= seen.names
