"""Lines of logs in the shapes that PyTorch, NCCL, launchers and kernels write (evidence-shapes.md, S2 to S6)."""

from collections.abc import Mapping

_SECONDS_A_DAY = 86_400


def clock(second: float) -> str:
    """``HH:MM:SS.micros`` on the day of the report, ``second`` seconds after 14:00."""
    total = 14 * 3600 + second
    whole = int(total)
    return f"{whole // 3600 % 24:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}.{int(total % 1 * 10**6):06d}"


def glog(rank: int, second: float, text: str, *, file: str = "ProcessGroupNCCL.cpp:685", level: str = "E") -> str:
    """One line of PyTorch's own log, signed by the global rank."""
    return f"[rank{rank}]:[{level}1129 {clock(second)} {file}] {text}\n"


def timeout(  # noqa: PLR0913 - the line has as many fields
    rank: int,
    second: float,
    seq: int,
    op: str,
    *,
    numel: int,
    group: str = "0",
    group_rank: int | None = None,
    limit_s: int = 600,
) -> str:
    """What the watchdog says of an operation that took too long. ``group_rank`` is the rank within the group."""
    who = f"[PG ID {group} PG GUID {group} Rank {rank if group_rank is None else group_rank}]"
    work = f"WorkNCCL(SeqNum={seq}, OpType={op}, NumelIn={numel}, NumelOut={numel}, Timeout(ms)={limit_s * 1000})"
    caught = "Watchdog caught collective operation timeout"
    return glog(rank, second, f"{who} {caught}: {work} ran for {limit_s * 1000 + 12} milliseconds before timing out.")


def progress(  # noqa: PLR0913 - the line has as many fields
    rank: int, second: float, work: int, enqueued: int, completed: int, *, group: str = "0"
) -> str:
    """What the watchdog says of how far the group is."""
    who = f"[PG ID {group} PG GUID {group} Rank {rank}]"
    status = f"PG status: last enqueued work: {enqueued}, last completed work: {completed}"
    return glog(rank, second, f"{who}  failure detected by watchdog at work sequence id: {work} {status}", file="Utils.cpp:97")


def heartbeat(rank: int, second: float, pending: int) -> str:
    """The heartbeat monitor gives up on the watchdog."""
    who = f"[PG ID 0 PG GUID 0(default_pg) Rank {rank}]"
    stuck = "ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress in monitoring enqueued collectives."
    return glog(rank, second, f"{who} {stuck} workMetaList_.size()={pending}", file="ProcessGroupNCCL.cpp:1684") + glog(
        rank, second, f"{who} Heartbeat monitor timed out! Process will be terminated after dumping debug info.", level="F"
    )


def broken_pipe(rank: int, second: float) -> str:
    """What ranks write once the store's process is gone."""
    text = 'Failed to check the "should dump" flag on TCPStore, (maybe TCPStore server has shut down too early), with error: '
    return glog(rank, second, f"[PG ID 0 PG GUID 0 Rank {rank}] {text}Broken pipe", file="ProcessGroupNCCL.cpp:1682", level="W")


def fingerprints(ranks: tuple[int, int], seq: int, op: str, shapes: tuple[int, int]) -> str:
    """TORCH_DISTRIBUTED_DEBUG=DETAIL finds that two ranks differ."""
    (rank, other), (shape, other_shape) = ranks, shapes
    here, there = (
        f"CollectiveFingerPrint(SequenceNumber={seq}, OpType={op}, TensorShape=[{size}], TensorDtypes=BFloat16, "
        "TensorDeviceTypes=TensorOptions(dtype=float (default), device=cuda, layout=Strided (default), requires_grad=false))"
        for size in shapes
    )
    return (
        f"[rank{rank}]: RuntimeError: Detected mismatch between collectives on ranks. Rank {rank} is running collective: "
        f"{here}, "
        f"but Rank {other} is running collective: {there}.Collectives differ in the following aspects: \t Tensor Tensor "
        "shapes: "
        f"{shape}vs {other_shape}\n"
    )


def traceback(rank: int, error: str, *frames: tuple[str, int, str]) -> str:
    """A Python traceback of a rank; ``frames`` are file, line and function, outermost first."""
    lines = ["Traceback (most recent call last):"]
    for file, number, name in frames:
        lines += [f'  File "{file}", line {number}, in {name}', "    step()"]
    return "".join(f"[rank{rank}]: {line}\n" for line in (*lines, error))


def local_end(local_rank: int, code: int, pid: int) -> str:
    """The one line in which torchrun tells of the failure that it noticed first; the report behind it was not kept."""
    return (
        f"E1129 14:23:03.101000 {pid - 9} site-packages/torch/distributed/elastic/multiprocessing/api.py:1002] "
        f"failed (exitcode: {code}) local_rank: {local_rank} (pid: {pid}) of binary: /usr/bin/python3\n"
    )


def store_wait(rank: int, world_size: int, joined: int) -> str:
    """A rank waits at the store until all have joined."""
    return (
        "INFO:torch.distributed.distributed_c10d:Waiting in store based barrier to initialize process group for rank: "
        f"{rank}, key: store_based_barrier_key:1 (world_size={world_size}, worker_count={joined}, timeout=0:30:00)\n"
    )


def torchrun_report(host: str, exit_codes: Mapping[int, int], first: int, pids: Mapping[int, int]) -> str:
    """What torchrun prints at the end: who was seen to fail first, and the others."""
    names = {-9: "SIGKILL", -15: "SIGTERM", -11: "SIGSEGV", -6: "SIGABRT"}

    def block(number: int, rank: int) -> str:
        code = exit_codes[rank]
        name = f" ({names[code]})" if code in names else ""
        trace = (
            f"Signal {-code} ({names[code]}) received by PID {pids[rank]}"
            if code in names
            else ("To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html")
        )
        return (
            f"[{number}]:\n  time      : 2026-11-29_14:23:03\n  host      : {host}\n  rank      : {rank} (local_rank: "
            f"{rank % 8})\n"
            f"  exitcode  : {code} (pid: {pids[rank]}){name}\n  error_file: <N/A>\n  traceback : {trace}\n"
        )

    rest = [rank for rank in exit_codes if rank != first]
    failures = "".join(block(number + 1, rank) for number, rank in enumerate(rest)) or "  <NO_OTHER_FAILURES>\n"
    closing = "".join(
        f"W1129 14:23:01.755000 {pids[first] - 9} site-packages/torch/distributed/elastic/multiprocessing/api.py:1028] "
        f"Sending process {pids[rank]} closing signal SIGTERM\n"
        for rank in rest
    )
    return (
        f"{closing}E1129 14:23:03.101000 {pids[first] - 9} "
        "site-packages/torch/distributed/elastic/multiprocessing/api.py:1002] "
        f"failed (exitcode: {exit_codes[first]}) local_rank: {first % 8} (pid: {pids[first]}) of binary: /usr/bin/python3\n"
        f'Traceback (most recent call last):\n  File "/opt/venv/bin/torchrun", line 8, in <module>\n    sys.exit(main())\n'
        f"torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n{'=' * 60}\ntrain.py "
        f"FAILED\n{'-' * 60}\nFailures:\n"
        f"{failures}{'-' * 60}\nRoot Cause (first observed failure):\n{block(0, first)}{'=' * 60}\n"
    )


def nccl(host: str, pid: int, device: int, text: str, *, level: str = "INFO") -> str:
    """One line of NCCL. The bracket is the CUDA device, not a rank."""
    return f"{host}:{pid}:{pid + 71} [{device}] NCCL {level} {text}\n"


def nccl_comm(host: str, pid: int, rank: int, ranks: int, what: str) -> str:
    """NCCL says of a communicator that something starts or is complete."""
    device = rank % 8
    place = f"cudaDev {device} nvmlDev {device} busId {0x1B + 0x20 * device:x}000"
    comm = f"comm 0x55d0c0{device:02x}0 rank {rank} nranks {ranks} {place}"
    return nccl(host, pid, device, f"ncclCommInitRankConfig {comm} commId 0x8e3f1a2b4c5d6e7f - {what}")


def oom_kill(pid: int, second: float, *, name: str = "python3", group: str = "/kubepods/pod7f3/ctr9") -> str:
    """The kernel kills a process of a cgroup for memory."""
    at = f"[{120_000 + second:.6f}]"
    return (
        f"{at} {name} invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=985\n"
        f"{at} oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=ctr9,mems_allowed=0-1,oom_memcg={group},"
        f"task_memcg={group},task={name},pid={pid},uid=0\n"
        f"{at} Memory cgroup out of memory: Killed process {pid} ({name}) total-vm:91000000kB, anon-rss:62000000kB, "
        f"file-rss:1200kB, shmem-rss:800kB, UID:0 pgtables:130000kB oom_score_adj:985\n"
    )


def xid(pci: str, code: int, text: str, second: float, *, pid: int | None = None) -> str:
    """The NVIDIA driver reports an error. ``pci`` as nvidia-smi prints it."""
    short = pci.lower()[4:].rsplit(".", 1)[0]
    who = "" if pid is None else f"pid={pid}, name=python3, "
    return f"[{120_000 + second:.6f}] NVRM: Xid (PCI:{short}): {code}, {who}{text}\n"
