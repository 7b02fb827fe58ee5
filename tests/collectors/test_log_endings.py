"""How processes ended, and what they waited for at last, by the words of launchers, shells, Slurm and the store."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pardbg.collectors.parsing.log_endings import parse_endings
from pardbg.collectors.parsing.torchrun_report import parse_torchrun_report
from pardbg.watchdog.model.log_event import (
    CancelledByScheduler,
    KilledForMemory,
    LauncherFailure,
    RendezvousFailed,
    StoreBarrier,
)

ELASTIC = "failed (exitcode: -9) local_rank: 3 (pid: 801) of binary: /opt/py/bin/python\n"
CHILD = "Child process with PID 512 terminated with code -9. Forcefully terminating all other processes to avoid zombies\n"
HYDRA = (
    "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   RANK {rank} PID 24{rank} RUNNING AT n07\n"
    "=   KILLED BY SIGNAL: 9 (Killed)\n"
)
MPICH = (
    "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   PID 96 RUNNING AT n07\n=   EXIT CODE: 9\n"
    "=   CLEANING UP REMAINING PROCESSES\n=====\nYOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)\n"
)


@pytest.mark.parametrize(
    ("text", "end"),
    [
        (
            f"E0611 10:00:00.100000 771 site-packages/torch/distributed/elastic/multiprocessing/api.py:882] {ELASTIC}",
            (-9, 3, 801),
        ),
        (f"ERROR:torch.distributed.elastic.multiprocessing.api:{ELASTIC}", (-9, 3, 801)),
        (
            " ERROR    failed (exitcode: -11) local_rank: 5 (pid: 22) of  api.py:673\n binary: /opt/py/bin/python\n",
            (-11, 5, 22),
        ),
        (
            f"[ERROR] [launch.py:321:sigkill_handler] ['py', '--local_rank=1'{', 42' * 900}] exits with return code = -9\n",
            (-9, None, None),  # the command is that of the last process it started
        ),
        (
            "subprocess.CalledProcessError: Command '['py', '--local_rank=7']' died with <Signals.SIGSEGV: 11>.\n",
            (-11, None, None),
        ),
        ("torch.multiprocessing.spawn.ProcessExitedException: process 1 terminated with signal SIGKILL\n", (-9, 1, None)),
        ("Exception: process 3 terminated with exit code 7\n", (7, 3, None)),
        (f"[rank: 1] {CHILD}", (-9, 1, 512)),
        ("/var/spool/slurmd/job191/slurm_script: line 28:  8156 Killed                  python3 main.py\n", (-9, None, 8156)),
        ("  6%|#     | 37/62 [04:47<1:10:53, 13.82it/s]Killed\n", (-9, None, None)),
        ("mpirun noticed that process rank 1 with PID 0 on node n07 exited on signal 9 (Killed).\n", (-9, None, None)),
        (MPICH, (-9, None, 96)),
        ("srun: error: n07: task 5: Segmentation fault (core dumped)\n", (-11, None, None)),
        ("srun: error: n07: task 5: Exited with exit code 3\n", (3, None, None)),
    ],
)
def test_a_launcher_tells_how_a_process_ended(text: str, end: tuple[int, int | None, int | None]) -> None:
    (found,) = parse_endings(text)
    assert isinstance(found, LauncherFailure)
    assert (found.code, found.local_rank, found.pid) == end
    assert any(str(abs(found.code)) in found.text or word in found.text for word in ("Killed", "SIGKILL", "Segmentation"))


@pytest.mark.parametrize(
    "text",
    [
        "failed (exitcode: unknown) local_rank: 3\n",
        "subprocess.CalledProcessError: Command '['ninja', '-v']' returned non-zero exit status 1.\n",  # a program's own child
        "RuntimeError: DataLoader worker (pid 88) is killed by signal: Killed\n",
        "Killed 3 stale workers\n",
        "train.py: line 28 of the config: Killed\n",
        "Process 3 terminated with the following error:\n",
        "srun: error: n07: task 3: Terminated\n",
        "srun: Terminating StepId=51.0\nsrun: error: n07: task 3: Killed\n",  # by whom has ended the others
        "slurmstepd: error: *** JOB 8 ON n07 CANCELLED AT 2025-08-12T02:06:12 DUE TO TIME LIMIT ***\n",  # `slurm_notices` tells
        ELASTIC + "".join(f"step {step} loss 0.5\n" for step in range(20)),  # an earlier attempt's
        ELASTIC + "[default] Starting worker group\n",
    ],
)
def test_what_is_said_of_other_things_is_no_end(text: str) -> None:
    assert parse_endings(text) == ()


def test_of_ranks_that_hydra_killed_none_is_known_to_be_the_first() -> None:
    alone, several = parse_endings(HYDRA.format(rank=6)), parse_endings("".join(HYDRA.format(rank=rank) for rank in (6, 7)))
    assert [(end.rank, end.host) for end in alone if isinstance(end, LauncherFailure)] == [(6, "n07")]
    assert [end.rank for end in several] == [None, None]


def test_mpirun_names_the_global_rank() -> None:
    (end,) = parse_endings(
        "prterun noticed that process rank 2 with PID 51 on node n07 exited on signal 11 (Segmentation fault).\n"
    )
    assert isinstance(end, LauncherFailure)
    assert (end.rank, end.host, end.pid, end.code) == (2, "n07", 51, -11)


def test_slurm_tells_where_memory_ran_out_and_that_it_was_cancelled() -> None:
    found = parse_endings(
        "slurmstepd-n07: error: Detected 1 oom_kill event in StepId=51.0. Some of the step tasks have been OOM Killed.\n"
        "srun: error: n07: task 3: Out Of Memory\n"
        "slurmstepd: error: *** STEP 51.0 ON n07 CANCELLED AT 2025-08-12T02:06:12 ***\n"
        "slurmstepd: error: *** JOB 51 ON n07 CANCELLED AT 2025-08-12T02:06:14 DUE TO JOB REQUEUE ***\n"
    )
    assert [(end.host, end.is_of_task) for end in found if isinstance(end, KilledForMemory)] == [("n07", False), ("n07", True)]
    assert [end.is_requeued for end in found if isinstance(end, CancelledByScheduler)] == [False, True]


WAIT = (
    "INFO:root:Waiting in store based barrier to initialize process group for rank: {}, key: store_based_barrier_key:1 "
    "(world_size=8, worker_count={}, timeout=0:30:00)\n"
)


def test_the_newest_wait_of_each_rank_at_the_last_barrier_is_kept() -> None:
    text = WAIT.format(3, 6) + WAIT.format(3, 7) + WAIT.format(5, 7)
    text += (
        "[rank1]: torch.distributed.DistStoreError: Timed out initializing process group in store based barrier on rank 1, "
        "for key: store_based_barrier_key:1 (world_size=8, num_workers_joined=7, timeout=0:00:30 error=x)\n"
    )
    found = [event for event in parse_endings(text) if isinstance(event, StoreBarrier)]
    assert [(event.rank, event.joined, event.has_given_up) for event in found] == [(3, 7, False), (5, 7, False), (1, 7, True)]
    done = "Rank 3: Completed store-based barrier for key:store_based_barrier_key:1 with 8 nodes.\n"
    assert parse_endings(text + done) == ()


def test_a_store_that_not_all_came_to_or_that_is_out_of_reach_is_told() -> None:
    found = parse_endings(
        "torch.distributed.DistStoreError: Timed out after 901 seconds waiting for clients. 3/4 clients joined.\n"
        "[E socket.cpp:860] [c10d] The client socket has timed out after 60s while trying to connect to 10.0.0.8:1234.\n"
        "[W socket.cpp:663] [c10d] The client socket has failed to connect to [localhost]:29500 (errno: 99)\n"
        "The client socket has timed out after 60000ms while trying to connect to (n1, 1234).\n"
    )
    told = [(event.joined, event.expected, event.address) for event in found if isinstance(event, RendezvousFailed)]
    assert told == [(3, 4, ""), (None, None, "10.0.0.8:1234"), (None, None, "n1:1234")]


def test_a_report_whose_lines_were_joined_is_read() -> None:
    (found,) = parse_torchrun_report(
        "  | Root Cause (first observed failure): [0]: time : 2025-01-01_00:00:01 host : n0 rank : 4 (local_rank: 4) "
        "exitcode : -9 (pid: 187) error_file: <N/A> traceback : Signal 9 (SIGKILL) received by PID 187\n"
    )
    assert (found.rank, found.host, found.code, found.pid, found.is_called_cause) == (4, "n0", -9, 187, True)


@settings(max_examples=40)
@given(
    st.lists(
        st.sampled_from([ELASTIC, CHILD, HYDRA, MPICH, WAIT, "Killed", "srun: error: a: task ", ": line 1: 2 ", "\n", "\0é"])
    )
)
def test_no_text_is_an_error(pieces: list[str]) -> None:
    assert isinstance(parse_endings("".join(pieces)), tuple)


@pytest.mark.parametrize(
    "piece", ["CalledProcessError: Command '[--local_rank=", ":sigkill_handler] ", "x in store based barrier "]
)
def test_long_lines_cost_no_more_than_their_length(piece: str) -> None:
    began = time.process_time()
    parse_endings(piece * (200_000 // len(piece)))
    assert time.process_time() - began < 2.0
