"""Logs as files, and the answer to them: lines as their writers form them, made up for these tests."""

from collections.abc import Iterable, Mapping

from pardbg.collectors.attribution import ReadFile, attribute
from pardbg.collectors.parsing.file_names import read_name
from pardbg.collectors.parsing.recognise import parse_file
from pardbg.collectors.reading_protocol import FileRead
from pardbg.watchdog.judge.judge import Circumstances, judge
from pardbg.watchdog.model.evidence import Evidence, Stack, StackFrame, Thread
from pardbg.watchdog.model.names import Cause, CollectorName, Kind
from pardbg.watchdog.model.report import Report
from pardbg.watchdog.store.view import EvidenceView
from tests.diagnosis.diagnosing import WHEN

TRACEBACK = 'Traceback (most recent call last):\n  File "/app/train.py", line 12, in step\n    f()\n{exception}\n'
PEER_GONE = "RuntimeError: [/gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:1148.\n"


def timed_out(
    rank: int | None,
    seq: int,
    op: str = "ALLREDUCE",
    numel: int = 1024,
    *,
    at: str = "1129 14:23:01.755000",
    group: str = "PG ID 0 PG GUID 0(default_pg) ",
    group_rank: int | None = None,
    ran_ms: int = 600012,
) -> str:
    """A watchdog that gave up."""
    signed = "" if rank is None else f"[rank{rank}]:"
    number = rank if group_rank is None else group_rank
    return (
        f"{signed}[E{at} ProcessGroupNCCL.cpp:632] [{group}Rank {number}] Watchdog caught collective operation timeout: "
        f"WorkNCCL(SeqNum={seq}, OpType={op}, NumelIn={numel}, NumelOut={numel}, Timeout(ms)=600000) ran for {ran_ms} "
        "milliseconds before timing out.\n"
    )


def status(rank: int, enqueued: int, completed: int, *, at: str = "1129 14:23:02.000000") -> str:
    """What a watchdog says of how far its rank had come."""
    return (
        f"[rank{rank}]:[E{at} ProcessGroupNCCL.cpp:684] [PG ID 0 PG GUID 0(default_pg) Rank {rank}]  failure detected by "
        f"watchdog at work sequence id: {completed} PG status: last enqueued work: {enqueued}, "
        f"last completed work: {completed}\n"
    )


def should_dump(rank: int, at: str = "1129 14:23:05.000000") -> str:
    """A store that has gone."""
    return (
        f"[rank{rank}]:[W{at} ProcessGroupNCCL.cpp:1662] [PG ID 0 PG GUID 0(default_pg) Rank {rank}] Failed to check the "
        '"should dump" flag on TCPStore, (maybe TCPStore server has shut down too early), with error: Broken pipe\n'
    )


def illegal_access(rank: int, at: str) -> str:
    """An error of a rank's own device."""
    return (
        f"[rank{rank}]:[E{at} ProcessGroupNCCL.cpp:1895] [PG ID 0 PG GUID 0(default_pg) Rank {rank}] Process group watchdog "
        "thread terminated with exception: CUDA error: an illegal memory access was encountered\n"
    )


def nccl(host: str, pid: int, device: int, text: str, level: str = "INFO") -> str:
    """A line of NCCL."""
    return f"{host}:{pid}:{pid + 9000} [{device}] NCCL {level} {text}\n"


def setting_up(host: str, rank: int, size: int, *, pid: int | None = None, device: int = 0, done: bool = False) -> str:
    """The set-up of a communicator, begun and perhaps completed."""
    comm = f"comm 0x55d{rank:04x} rank {rank} nranks {size} cudaDev {device} nvmlDev {device} busId 1b000 commId 0xabc123"
    number = 100 + rank if pid is None else pid
    lines = [nccl(host, number, device, f"{comm} - Init {word}") for word in ("START", "COMPLETE")]
    return "".join(lines if done else lines[:1])


def torchrun_report(ends: Mapping[int, int], root: int, host: str = "n1") -> str:
    """A report as torchrun prints it: exit codes by rank, one called the root cause."""
    blocks = {
        rank: (
            f"[{number}]:\n  time      : 2026-11-29_14:23:01\n  host      : {host}\n  rank      : {rank} (local_rank: {rank})\n"
            f"  exitcode  : {code} (pid: {10_000 + rank})\n  error_file: <N/A>\n"
            "  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html\n"
        )
        for number, (rank, code) in enumerate(ends.items())
    }
    others = "".join(block for rank, block in blocks.items() if rank != root) or "  <NO_OTHER_FAILURES>\n"
    rule = "-" * 60 + "\n"
    return (
        f"{'=' * 60}\ntrain.py FAILED\n{rule}Failures:\n{others}{rule}Root Cause (first observed failure):\n"
        f"{blocks[root]}{'=' * 60}\n"
    )


def job(size: int, hosts: Mapping[int, str] | None = None, **states: str) -> dict[str, str]:
    """A `job.json` of a world; ``rank1="gone"`` says what state a process is in."""
    ranks = ", ".join(
        f'{{"rank": {rank}, "host": "{(hosts or {}).get(rank, "n1")}", "pid": {200 + rank}'
        + (f', "process": {{"state": "{states[f"rank{rank}"]}"}}' if f"rank{rank}" in states else "")
        + "}"
        for rank in range(size)
    )
    return {"job.json": f'{{"job": "j", "world_size": {size}, "ranks": [{ranks}]}}'}


def evidence_of(files: Mapping[str, str]) -> list[Evidence]:
    """As `analyze` reads them."""
    read = [
        ReadFile(path=name, name=read_name(name), read=FileRead(parsed=parse_file(name, text.encode())))
        for name, text in files.items()
    ]
    return list(attribute(read))


def stack(rank: int, *frames: StackFrame) -> Evidence:
    """One rank's stack, as a file has it."""
    main = Thread(name="MainThread", is_active=True, owns_gil=False, frames=frames)
    return Evidence(source=CollectorName.STACKS, rank=rank, observation=Stack(pid=200 + rank, threads=(main,)), origin="stack")


def report_of(files: Mapping[str, str], *more: Evidence) -> Report:
    """The judge's answer."""
    return judge(EvidenceView.of([*evidence_of(files), *more]), Circumstances(decided_at=WHEN))


def told(report: Report) -> tuple[Kind | None, Cause | None, set[int | None]]:
    """Kind, cause and culprits of the verdict."""
    verdict = report.verdict
    return (verdict.kind, verdict.cause, {subject.rank for subject in verdict.culprits}) if verdict else (None, None, set())


def candidates(report: Report) -> set[int | None]:
    """Who cannot be told apart."""
    return {subject.rank for subject in report.verdict.candidates} if report.verdict else set()


def blamed(reports: Iterable[Report]) -> set[int | None]:
    """Whoever any finding of any report blames."""
    return {s.rank for report in reports for finding in (*report.findings, *report.set_aside) for s in finding.culprits}
