"""How subjects, operations and times are spoken of."""

import pytest

from pardbg.watchdog.model.names import JobSource, Scope
from pardbg.watchdog.model.report import CollectiveRef, Device, GroupRef, Job, Subject
from pardbg.watchdog.outputs.phrases import (
    explain_stride,
    identify_device,
    list_names,
    name_collective,
    name_group,
    name_job,
    name_subject,
    name_subjects,
    spell_duration,
    spell_sizes,
)


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        (Subject(scope=Scope.RANK, rank=37), "rank 37"),
        (Subject(scope=Scope.RANK, ranks=(1, 2)), "ranks 1-2"),
        (Subject(scope=Scope.HOST, host="gpu-n05"), "host gpu-n05"),
        (Subject(scope=Scope.HOST, hosts=("a", "b")), "host a, b"),
        (Subject(scope=Scope.DEVICE, rank=3, device=Device(index=4)), "device 4 of rank 3"),
        (Subject(scope=Scope.DEVICE), "device"),
        (Subject(scope=Scope.LINK, hosts=("a", "b")), "link between a and b"),
        (Subject(scope=Scope.LINK, ranks=(3, 4)), "link between rank 3 and rank 4"),
        (Subject(scope=Scope.LINK), "link between unknown ends"),
        (Subject(scope=Scope.STAGE, ranks=(4, 5), coords={"pp": 1}), "pipeline stage 1, ranks 4-5"),
        (Subject(scope=Scope.GROUP, ranks=(0, 1, 2)), "group of ranks 0-2"),
    ],
)
def test_subject_is_named_by_its_scope(subject: Subject, expected: str) -> None:
    assert name_subject(subject) == expected


def test_ranks_among_several_subjects_are_folded() -> None:
    ranks = [Subject(scope=Scope.RANK, rank=rank) for rank in (3, 1, 2)]
    assert name_subjects([*ranks, Subject(scope=Scope.HOST, host="a")], limit=4) == "ranks 1-3, host a"


def test_device_is_identified_by_uuid_and_address() -> None:
    assert identify_device(Device(index=0, uuid="GPU-1", pci_bus_id="0000:9B:00.0")) == "GPU-1, 0000:9B:00.0"


@pytest.mark.parametrize(
    ("collective", "expected"),
    [
        (CollectiveRef(op="all_reduce", seq=7, sizes=(), dtype=None, src=None, dst=None), "all_reduce seq 7"),
        (CollectiveRef(op="send", seq=None, sizes=(), dtype=None, src=3, dst=0), "send from rank 3 to rank 0"),
    ],
)
def test_operation_is_named_with_sequence_number_or_peers(collective: CollectiveRef, expected: str) -> None:
    assert name_collective(collective) == expected


def test_group_is_named_once_where_name_and_description_agree() -> None:
    assert name_group(GroupRef(name="default_pg", desc="default_pg", axis=None, ranks=())) == "default_pg"


def test_job_names_everything_that_tells_it_apart() -> None:
    job = Job(id="7", source=JobSource.SLURM, world="h:29500", world_size=None, attempt=2)
    assert name_job(job) == "7 (slurm), world h:29500, world size unknown, attempt 2"


@pytest.mark.parametrize(
    ("duration_s", "expected"),
    [
        (0.25, "0.2 s"),
        (9.99, "10.0 s"),
        (48, "48 s"),
        (119.4, "119 s"),
        (312, "5 min 12 s"),
        (7199, "119 min 59 s"),
        (11100, "3 h 5 min"),
    ],
)
def test_duration_is_spelled_in_two_units(duration_s: float, expected: str) -> None:
    assert spell_duration(duration_s) == expected


def test_sizes_are_spelled_with_their_lengths() -> None:
    assert spell_sizes(((512, 512), (512,), ())) == "512x512, 512, scalar"


def test_long_list_says_how_many_are_left_out() -> None:
    assert list_names(["a", "b", "c", "d"], limit=2) == "a, b and 2 more"


def test_stride_is_explained() -> None:
    assert explain_stride("0,4-292:8") == "4-292:8 is every rank from 4 to 292 in steps of 8."
    assert explain_stride("0-3") == ""
