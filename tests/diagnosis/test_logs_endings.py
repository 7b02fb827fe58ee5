"""Ends that launchers, shells and Slurm tell, waits at the store, and kernel logs alone: who is named, and who is not."""

from pardbg.watchdog.model.names import Cause, Confidence, Kind, Scope, Status
from pardbg.watchdog.model.report import Finding, Report
from tests.diagnosis.log_files import PEER_GONE, TRACEBACK, blamed, report_of, should_dump, timed_out, told, torchrun_report

LOCAL = "E0611 10:00:00.1 7 elastic/multiprocessing/api.py:882] failed (exitcode: {}) local_rank: 3 (pid: 801) of binary: /py\n"
OOM = "slurmstepd: error: Detected 1 oom_kill event in StepId=51.0. Some of the step tasks have been OOM Killed.\n"
WAITING = (
    "INFO:root:Waiting in store based barrier to initialize process group for rank: {}, key: {} "
    "(world_size={}, worker_count={}, timeout=0:30:00)\n"
)
KEY = "store_based_barrier_key:1"
OUT_OF_MEMORY = "[2059991.491542] Out of memory: Killed process {} ({}) total-vm:53312244kB, anon-rss:31451456kB\n"


def _verdict(report: Report) -> Finding:
    assert report.verdict is not None
    return report.verdict


def test_a_kill_that_the_launcher_noticed_first_is_told_without_a_global_rank() -> None:
    report = report_of({"train.log": LOCAL.format(-9) + PEER_GONE})
    verdict = _verdict(report)
    assert told(report) == (Kind.DEAD_RANK, Cause.SIGNAL, set())
    assert verdict.claim.startswith("the process of local rank 3 (pid 801) was ended by SIGKILL")
    assert (report.status, verdict.confidence) == (Status.FAILED, Confidence.SUPPORTED)


def test_a_description_of_the_job_tells_which_rank_a_local_rank_is() -> None:
    ranks = ", ".join(f'{{"rank": {rank}, "host": "n{rank // 4}", "local_rank": {rank % 4}}}' for rank in range(8))
    two_hosts = f'{{"job": "j", "world_size": 8, "ranks": [{ranks}]}}'
    one_host = '{"job": "j", "world_size": 4, "ranks": [{"rank": 3, "host": "n0", "local_rank": 3}]}'
    assert told(report_of({"train.log": LOCAL.format(-9), "job.json": one_host})) == (Kind.DEAD_RANK, Cause.SIGNAL, {3})
    assert told(report_of({"train.log": LOCAL.format(-9), "job.json": two_hosts})) == (Kind.DEAD_RANK, Cause.SIGNAL, set())


def test_the_kernel_log_tells_that_the_launchers_process_was_killed_for_memory() -> None:
    killed = report_of({"train.log": LOCAL.format(-9), "dmesg_n07.txt": OUT_OF_MEMORY.format(801, "python3")})
    other = report_of({"train.log": LOCAL.format(-9), "dmesg_n07.txt": OUT_OF_MEMORY.format(977, "python3")})
    assert (_verdict(killed).cause, _verdict(killed).culprits[0].host) == (Cause.OOM_KILLED, "n07")
    assert (_verdict(other).cause, _verdict(other).culprits) == (Cause.SIGNAL, ())


def test_what_the_parent_of_spawned_ranks_raises_is_not_its_own() -> None:
    raised = TRACEBACK.format(exception="Exception: process 3 terminated with signal SIGKILL")
    verdict = _verdict(report_of({"rank_0.log": raised}))
    assert (verdict.cause, verdict.culprits) == (Cause.SIGNAL, ())
    assert verdict.claim.startswith("process 3 of torch.multiprocessing.spawn was ended by SIGKILL")


def test_ends_that_may_be_consequences_name_nobody() -> None:
    for text in (
        LOCAL.format(1),
        LOCAL.format(-6),
        LOCAL.format(-9) + LOCAL.format(-9).replace("801", "802"),
        "srun: error: n07: tasks 2-5: Killed\n",
        "".join(f"=   RANK {rank} PID 5{rank} RUNNING AT n07\n=   KILLED BY SIGNAL: 9 (Killed)\n" for rank in (6, 7)),
    ):
        report = report_of({"train.log": text})
        assert (told(report), report.status) == ((Kind.INSUFFICIENT_EVIDENCE, None, set()), Status.UNDETERMINED)


def test_a_kill_after_ranks_gave_up_a_wait_may_have_ended_a_job_that_hung() -> None:
    report = report_of({"train.log": timed_out(1, 57) + timed_out(0, 57) + LOCAL.format(-9)})
    assert told(report) == (Kind.INSUFFICIENT_EVIDENCE, None, set())


def test_an_exception_of_a_rank_of_its_own_counts_more_than_a_local_end() -> None:
    signed = "".join(f"[rank2]: {line}\n" for line in TRACEBACK.format(exception="KeyError: 'tokens'").splitlines())
    assert told(report_of({"train.log": signed + LOCAL.format(1)})) == (Kind.DEAD_RANK, Cause.EXCEPTION, {2})


def test_slurm_names_the_host_on_which_memory_ran_out() -> None:
    report = report_of({"train.log": OOM + "srun: error: n07: task 3: Out Of Memory\nsrun: Terminating StepId=51.0\n"})
    assert told(report) == (Kind.DEAD_RANK, Cause.OOM_KILLED, {None})
    assert [(subject.scope, subject.host) for subject in _verdict(report).culprits] == [(Scope.HOST, "n07")]
    alone = report_of({"train.log": OOM})
    assert told(alone) == (Kind.INSUFFICIENT_EVIDENCE, Cause.OOM_KILLED, set())  # perhaps a loader's worker


def test_slurm_tells_why_the_one_rank_was_killed() -> None:
    one = report_of({"train.log": torchrun_report({0: -15, 1: -9, 2: -15}, root=1) + OOM})
    assert told(one) == (Kind.DEAD_RANK, Cause.OOM_KILLED, {1})
    two = report_of({"train.log": torchrun_report({0: -9, 1: -9, 2: -15}, root=1) + OOM})
    assert _verdict(two).cause is Cause.SIGNAL


def test_where_all_were_killed_nobody_went_first_and_the_kernel_log_is_asked_for() -> None:
    report = report_of({"train.log": torchrun_report({0: -9, 1: -9}, root=1)})
    assert (report.verdict, report.status) == (None, Status.FAILED)
    assert "SIGKILL" in report.notes[0]
    assert "dmesg" in report.notes[0]


def test_what_was_ended_from_outside_is_nobodys_fault() -> None:
    hangup = report_of({"train.log": "W0101 api.py:719] Received 1 death signal, shutting down workers\n"})
    requeued = report_of(
        {"train.log": "slurmstepd: error: *** JOB 8 ON n07 CANCELLED AT 2025-08-12T02:06:12 DUE TO JOB REQUEUE ***\n"}
    )
    cancelled = report_of({"train.log": "slurmstepd: error: *** STEP 8.0 ON n07 CANCELLED AT 2025-08-12T02:06:12 ***\n"})
    assert [report.verdict for report in (hangup, requeued, cancelled)] == [None, None, None]
    assert "terminal" in hangup.notes[0]
    assert "back into the queue" in requeued.notes[0]
    assert "cancelled" in cancelled.notes[0]


def test_who_has_not_come_to_the_stores_barrier_follows_from_who_says_that_he_waits() -> None:
    report = report_of({"train.log": "".join(WAITING.format(rank, KEY, 4, 3) for rank in (3, 0, 1))})
    assert told(report) == (Kind.INIT_STUCK, Cause.STORE_WAIT, {2})
    assert (_verdict(report).victims, report.status) == ((0, 1, 3), Status.HUNG)


def test_a_count_that_the_lines_do_not_explain_names_nobody() -> None:
    unheard = report_of({"train.log": "".join(WAITING.format(rank, KEY, 8, 4) for rank in (7, 5))})
    stale = report_of({"train.log": "".join(WAITING.format(rank, KEY, 4, 8) for rank in range(4))})
    earlier = report_of({"train.log": WAITING.format(0, KEY, 3, 1) + WAITING.format(1, KEY, 3, 2)})
    later_group = report_of({"train.log": "".join(WAITING.format(rank, "store_based_barrier_key:9", 3, 2) for rank in (0, 1))})
    for report in (unheard, stale, earlier, later_group):
        assert told(report) == (Kind.INIT_STUCK, Cause.STORE_WAIT, set())
    assert "nobody is missing" in _verdict(stale).claim
    assert {subject.rank for subject in _verdict(later_group).candidates} == {2}


def test_waits_at_the_store_before_a_job_that_trained_tell_nothing() -> None:
    waits = "".join(WAITING.format(rank, KEY, 4, 3) for rank in (0, 1, 3))
    trained = report_of({"train.log": waits + "".join(f"step {step} loss 0.5\n" for step in range(20))})
    lost = report_of({"train.log": waits + timed_out(1, 57)})
    assert trained.verdict is None
    assert _verdict(lost).kind is not Kind.INIT_STUCK
    assert blamed([trained, lost]) == set()


def test_a_store_out_of_reach_is_a_start_that_failed_unless_groups_had_worked() -> None:
    late = "The client socket has timed out after 60000ms while trying to connect to (n1, 1234).\n"
    assert told(report_of({"train.log": late})) == (Kind.INIT_STUCK, Cause.STORE_WAIT, set())
    assert _verdict(report_of({"train.log": timed_out(0, 9) + should_dump(1) + late})).kind is not Kind.INIT_STUCK


def test_a_kernel_log_alone_names_the_device_and_no_rank() -> None:
    lost = (
        "[ 18.3] NVRM: The NVIDIA GPU 0000:b3:00.0\n   NVRM: (PCI ID: 10de:26b5) installed in this system has\n"
        "   NVRM: fallen off the bus and is not responding to commands.\n"
    )
    banner = "[ 18.4] NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  570.158.01\n"
    report = report_of({"dmesg_n07.txt": lost + banner})
    (subject,) = _verdict(report).candidates
    assert (told(report), report.status) == ((Kind.INSUFFICIENT_EVIDENCE, Cause.GPU_LOST, set()), Status.UNDETERMINED)
    assert (subject.scope, subject.host, subject.device and subject.device.pci_bus_id) == (Scope.DEVICE, "n07", "0000:b3:00")
    assert report_of({"dmesg_n07.txt": lost + banner + banner}).verdict is None  # found when it was loaded again
    follows = "kernel: NVRM: Xid (PCI:0000:dc:00): 45, pid=181, name=python3, Ch 00000001 caused by previous Xid 149\n"
    assert _verdict(report_of({"dmesg_n07.txt": follows})).cause is Cause.NVLINK
    assert report_of({"dmesg_n07.txt": follows.replace(" caused by previous Xid 149", "")}).verdict is None


def test_a_kernel_log_alone_tells_what_was_killed_for_memory() -> None:
    report = report_of({"dmesg_n07.txt": OUT_OF_MEMORY.format(801, "python3")})
    assert told(report) == (Kind.INSUFFICIENT_EVIDENCE, Cause.OOM_KILLED, set())
    assert [(subject.host, subject.pid) for subject in _verdict(report).candidates] == [("n07", 801)]
    assert report_of({"dmesg_n07.txt": OUT_OF_MEMORY.format(801, "java")}).verdict is None
