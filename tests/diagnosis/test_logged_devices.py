"""A GPU that is lost, by the kernel log, where only logs show that ranks waited. Near misses beside."""

import pytest

from pardbg.watchdog.model.names import Cause, Confidence, Kind
from tests.diagnosis.log_files import report_of, timed_out, told
from tests.diagnosis.test_kernel_xids import job, log

AT = "1129 14:23:02.000000"  # 600 s before it the waits began


def xid(code: int = 79, gpu: int = 1, at: str = "2026-11-29T14:13:00+00:00") -> str:
    return f"{at} h1 kernel: NVRM: Xid (PCI:0000:{gpu:02x}:00): {code}, pid=9, name=python3\n"


def files(*ranks: int) -> dict[str, str]:
    return {f"rank{rank}.log": timed_out(rank, 41, at=AT) for rank in ranks}


def test_the_one_gpu_that_is_lost_explains_why_all_ranks_gave_up() -> None:
    report = report_of(files(0, 1, 2, 3), job(), log(xid()))

    assert told(report) == (Kind.DEVICE_STUCK, Cause.GPU_LOST, {1})
    assert report.verdict is not None
    assert (report.verdict.confidence, report.verdict.victims) == (Confidence.SUPPORTED, (0, 2, 3))
    assert report.verdict.evidence[0].text.startswith("Xid 79 (fallen off the bus) of its GPU")


@pytest.mark.parametrize(
    ("ranks", "text"),
    [
        ((0, 1, 2, 3), xid(at="2026-11-27T14:13:00+00:00")),  # days before
        ((0, 1, 2, 3), xid() + xid(gpu=2)),  # two at once: the fabric, or the host
        ((0, 1, 2, 3), xid(31)),  # mostly a program's own
        ((0, 1, 2), xid()),  # rank 3 may be missing for a reason of its own
        ((0, 1, 2, 3), ""),
    ],
)
def test_what_does_not_single_out_one_gpu_accuses_none(ranks: tuple[int, ...], text: str) -> None:
    kind, _, culprits = told(report_of(files(*ranks), job(), log(text)))

    assert kind is not Kind.DEVICE_STUCK
    assert culprits == set()
