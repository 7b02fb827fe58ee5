"""The contract's rule for the rank of a file."""

import pytest

from pardbg.collectors.parsing.file_names import FileName, is_kernel_log, read_name

NAMES = {
    "nccl_trace_rank_7": FileName(rank=7),
    "comm_lib_trace_rank_12": FileName(rank=12),
    "fr_rank_7": FileName(rank=7),
    "nccl_trace_rank_hostA_7": FileName(rank=7, host="hostA"),
    "nccl_trace_rank_node12_7": FileName(rank=7, host="node12"),
    "nccl_trace_rank_10.0.0.3_7": FileName(rank=7, host="10.0.0.3"),
    "hostA.pci3_rank_7": FileName(rank=7, host="hostA"),
    "_dump_14": FileName(rank=14, is_guess=True),
    "rank_7.json": FileName(rank=7),
    "rank7.pkl": FileName(rank=7),
    "rank_7_pid_123.json": FileName(rank=7),
    "global_rank_9.txt": FileName(rank=9),
    "7.json": FileName(rank=7, is_guess=True),
    "3/rank_9.log": FileName(rank=9),
    "stack_rank_3_s1.json": FileName(rank=3, sample=1),
    "stacks_3_s0.json": FileName(rank=3, is_guess=True, sample=0),
    "s1/rank_3.json": FileName(rank=3, sample=1),
    "logs/attempt_0/3/stderr.log": FileName(local_rank=3),
    "local_rank_3.log": FileName(),
    "slurm-12345.out": FileName(),
    "slurm-12345_3.out": FileName(),
    "train.o12345": FileName(),
    "log-12345-3.out": FileName(rank=3, is_guess=True),  # Slurm's %j-%t
    "kernel_node7.log": FileName(host="node7"),
    "dmesg_host.a.b": FileName(host="host.a.b"),
    "job.json": FileName(),
    "rank_99999999999999999999": FileName(),
}


@pytest.mark.parametrize("path", sorted(NAMES))
def test_rank_of_a_file(path: str) -> None:
    assert read_name(path) == NAMES[path]


def test_kernel_logs_are_called_so() -> None:
    assert is_kernel_log("kernel_a.log")
    assert is_kernel_log("dmesg_a.txt")
    assert not is_kernel_log("rank_3.log")
