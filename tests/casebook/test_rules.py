"""Every rule of the casebook has tests, and edits of the source that they notice (`tests/mutation`)."""

import pytest

from pardbg.watchdog.bench.reading_files import diagnose_files
from pardbg.watchdog.model.names import Cause, Kind
from pardbg.watchdog.sim.casebook.draw import Draw
from pardbg.watchdog.sim.casebook.job import Job
from pardbg.watchdog.sim.casebook.places import NCCL_LIBRARY, native
from pardbg.watchdog.sim.instruction import Op
from tests.casebook.rules import RULES
from tests.collectors.dumps import make_entry, outstanding
from tests.diagnosis.test_hand_made import blamed, report_of


def test_each_of_the_twelve_rules_has_tests_and_can_be_broken() -> None:
    assert [rule.number for rule in RULES] == list(range(1, 13))
    assert [rule.number for rule in RULES if not rule.tests or not rule.broken_by] == []


@pytest.mark.parametrize(("ops", "culprits"), [(("broadcast", "all_reduce"), set()), (("broadcast", *["all_reduce"] * 3), {0})])
def test_of_two_ranks_that_differ_none_is_accused(ops: tuple[str, ...], culprits: set[int]) -> None:
    """T3 and C05."""
    world = {"0": {"name": "0", "desc": "default_pg", "ranks": str(list(range(len(ops))))}}
    rings = {rank: [make_entry(0), outstanding(1, profiling_name=f"nccl:{op}")] for rank, op in enumerate(ops)}
    report = report_of(rings, pg_config=world)
    assert report.verdict is not None
    assert (report.verdict.kind, blamed(report)) == (Kind.DESYNC, culprits)


def test_first_divergence_counts_and_not_the_later_ones_that_it_causes() -> None:
    """T2: rank 3 goes astray at its second operation, and everything after it differs as well."""
    sizes = [[[200]], [[300]], [[400]], [[500]]]
    rings = {rank: [outstanding(number, input_sizes=size) for number, size in enumerate(sizes)] for rank in range(4)}
    rings[3][1:] = [outstanding(number, input_sizes=[[7 * number]]) for number in (1, 2, 3)]
    verdict = report_of(rings).verdict
    assert verdict is not None
    assert verdict.first_divergence is not None
    assert verdict.first_divergence.seq == rings[3][1]["collective_seq_id"]


@pytest.mark.parametrize(("inside", "cause"), [("ncclLocalOpAppend", Cause.NCCL), ("ncclGroupEnd", None), (None, None)])
def test_only_native_stacks_tell_the_librarys_own_fault_where_pythons_are_alike(
    inside: str | None, cause: Cause | None
) -> None:
    """T7 and C58."""
    job = Job(Draw("rules", 0), 4)
    job.step(3)
    at = job.at(Op.ALL_REDUCE)
    job.issue(Op.ALL_REDUCE, 1024, at=at, is_done=False)
    for rank in job.ranks if inside else ():
        job.stand(rank, native(inside or "", NCCL_LIBRARY), *at, is_native=True)
    verdict = diagnose_files(job.files).verdict
    assert verdict is not None
    assert (verdict.kind, verdict.cause, verdict.culprits) == (Kind.COMM_STUCK, cause, ())
