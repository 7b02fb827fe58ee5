"""A healthy job: 8 of 8 ranks seen, nothing found."""

from pardbg.watchdog.model.names import JobSource, Status
from pardbg.watchdog.model.report import Axis, Coverage, Job, LayoutRef, Report, Software

SAMPLED_AT = ("2026-03-14T02:17:40Z", "2026-03-14T02:17:45Z")


def healthy() -> Report:
    return Report(
        pardbg_version="0.1.0",
        job=Job(id="finetune-7b", source=JobSource.RUN, world_size=8, attempt=0),
        status=Status.HEALTHY,
        verdict=None,
        findings=(),
        set_aside=(),
        unknowns=(),
        coverage=Coverage(ranks_expected=8, ranks_seen=8, by_collector={"flight-recorder": 8, "stacks": 8, "host": 8}),
        layout=LayoutRef(axes={"dp": Axis(size=8, stride=1)}, source="process groups of the flight recorder"),
        software=(Software(hosts=("gpu-n01",), torch="2.8.0", nccl="2.27.3", driver="570.86.15", python="3.11.9"),),
        decided_at="2026-03-14T02:17:46Z",
        sampled_at=SAMPLED_AT,
        took_s=5.8,
        notes=(),
    )
