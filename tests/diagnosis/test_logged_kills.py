"""A kernel log tells of the death of a rank's own process, and only logs show what came of it. Near misses beside."""

from pardbg.watchdog.model.names import Cause, Kind, Status
from tests.diagnosis.log_files import PEER_GONE, TRACEBACK, report_of, told

KILLED = "2026-11-29T14:00:00+00:00 h1 kernel: Out of memory: Killed process 102 ({}) total-vm:9kB, anon-rss:8kB\n"
LOST = {f"rank_{rank}.log": TRACEBACK.format(exception=PEER_GONE.strip()) for rank in (0, 1, 3)}
SILENT = {"rank_2.log": "step 7\n"}
DONE = "Training finished.\n"


def _job(process: str = "", host: str = "h1") -> dict[str, str]:
    ranks = ", ".join(f'{{"rank": {rank}, "host": "{host}", "pid": {100 + rank}{process}}}' for rank in range(4))
    return {"job.json": f'{{"job": "j", "world_size": 4, "ranks": [{ranks}]}}'}


def _kernel(name: str = "python3") -> dict[str, str]:
    return {"kernel_h1.log": KILLED.format(name)}


def test_the_rank_whose_process_the_kernel_killed_is_dead_whatever_was_seen_of_it_before() -> None:
    for process in ("", ', "process": {"state": "R", "exit_code": null}'):
        assert told(report_of(LOST | SILENT | _job(process) | _kernel())) == (Kind.DEAD_RANK, Cause.OOM_KILLED, {2})


def test_a_death_that_hurt_nobody_or_that_its_rank_survived_accuses_nobody() -> None:
    lost_too = LOST | {"rank_2.log": LOST["rank_0.log"]}
    for files in (lost_too | _job(), LOST | {"rank_2.log": DONE} | _job(), LOST | SILENT | _job(host="h2"), SILENT | _job()):
        kind, _, culprits = told(report_of(files | _kernel()))
        assert (kind is not Kind.DEAD_RANK, culprits) == (True, set())


def test_a_kernel_log_with_nothing_of_the_ranks_changes_nothing() -> None:
    done = {f"rank_{rank}.log": DONE for rank in range(4)}
    usb = {"kernel_h1.log": "[ 12.000001] usb 1-1: new high-speed USB device number 2\n"}
    assert report_of(done | usb).status is Status.HEALTHY
    assert report_of(done | _job() | _kernel("java") | {"rank_2.log": "step 7\n"}).status is Status.UNDETERMINED
