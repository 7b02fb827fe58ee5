"""What `/proc` says of a rank's process cites the files that say it, whatever else was read of that process."""

from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.correlators.wording import process_lines
from pardbg.watchdog.model.evidence import Evidence, JobDescription, Observation, SoftwareSeen
from pardbg.watchdog.model.names import CollectorName
from pardbg.watchdog.model.process import ProcessSample
from pardbg.watchdog.store.view import EvidenceView


def _of(observation: Observation, origin: str, rank: int | None = 0) -> Evidence:
    return Evidence(source=CollectorName.HOST, rank=rank, observation=observation, origin=origin)


def test_the_line_of_a_process_in_a_system_call_cites_where_that_is_read() -> None:
    look = ProcessSample(pid=7, started_ticks=1, state="S", system_call="write", blocked_on="pipe")
    described = _of(JobDescription(job="j", world_size=1), "j", None)
    evidence = (described, _of(look, "/proc/7"), _of(SoftwareSeen(python="3.11"), "/proc/7/maps"))
    (line,) = process_lines(Situation.of(EvidenceView.of(evidence)), 0)
    assert "in write of pipe" in line.text
    assert line.origin == "/proc/7/status, syscall, fd"
