"""Where ranks waited by their watchdogs' lines: groups that only a second line names, who is behind, and what nobody read."""

from pardbg.watchdog.model.names import Cause, Kind, Mismatch
from pardbg.watchdog.model.report import Report
from tests.diagnosis.log_files import candidates, job, nccl, report_of, setting_up, timed_out, told

NOTHING: tuple[Kind, None, set[int]] = (Kind.INSUFFICIENT_EVIDENCE, None, set())
WORLD = "PG ID 0 PG GUID 0(default_pg)"


def claim(report: Report) -> str:
    assert report.verdict is not None
    return report.verdict.claim


def named(rank: int, number: int, at_work: int, group: str = WORLD) -> str:
    """The second line of an old watchdog, which alone names the group."""
    return (
        f"[rank{rank}]:[E1129 14:23:02.0 x.cpp:1785] [{group} Rank {number}] Exception (either an error or timeout) detected "
        f"by watchdog at work: {at_work}, last enqueued NCCL work: {at_work + 2}, last completed NCCL work: {at_work - 1}.\n"
    )


def old(rank: int, number: int, seq: int, op: str = "ALLREDUCE", numel: int = 64) -> str:
    """Its first line, which does not."""
    return timed_out(rank, seq, op, numel, group="", group_rank=number)


def idle(rank: int, completed: int, because: str) -> str:
    return (
        f"[rank{rank}]:[E1129 14:23:02.0 x.cpp:1890] [{WORLD} Rank {rank}] Received a dump signal due to a collective timeout "
        f"from {because} and we. Last enqueued NCCL work: {completed}, last completed NCCL work: {completed}.\n"
    )


def fingerprint(rank: int, seq: int, op: str, shape: str) -> str:
    return f"Rank {rank} is running collective: CollectiveFingerPrint(SequenceNumber={seq}, OpType={op}, TensorShape=[{shape}])"


def test_groups_that_the_next_line_names_are_not_taken_for_one() -> None:
    text = old(13, 1, 216, "ALLTOALL_BASE") + named(13, 1, 216, "PG ID 11 PG GUID 119")
    text += old(15, 0, 57) + named(15, 0, 57, "PG ID 11 PG GUID 112")
    report = report_of({"job.log": text})
    assert told(report) == NOTHING
    assert claim(report).startswith(
        "rank 15 waits in all_reduce 57 of group 112; rank 13 waits in all_to_all 216 of group 119,"
    )


def test_a_group_that_some_of_its_ranks_name_is_that_of_all_which_count_as_the_world_does() -> None:
    text = "".join(old(rank, rank, 808) for rank in range(3)) + named(1, 1, 808)
    assert claim(report_of({"job.log": text})).startswith("3 ranks wait in all_reduce 808 of the default_pg group,")

    split = old(3, 3, 9, "BROADCAST") + old(7, 7, 9) + named(7, 7, 9)
    assert told(report_of({"job.log": split}))[0] is Kind.DESYNC

    sibling = old(3, 1, 9, "BROADCAST") + old(7, 7, 9) + named(7, 7, 9)  # rank 1 of a group is not rank 3 of the world
    assert told(report_of({"job.log": sibling})) == NOTHING
    assert "rank 3 waits in broadcast 9 of a group that the log does not name" in claim(report_of({"job.log": sibling}))
    other = old(3, 3, 9, "BROADCAST") + old(7, 7, 9) + named(7, 7, 8)  # of another operation
    assert "a group that the log does not name" in claim(report_of({"job.log": other}))


def test_who_has_not_finished_what_most_others_have_is_a_candidate() -> None:
    ahead = "".join(named(rank, rank, 705) for rank in (6, 7))
    report = report_of({"job.log": ahead + timed_out(2, 702)})
    assert (told(report), candidates(report)) == (NOTHING, {2})
    assert "rank 2 had not finished what others had" in claim(report)

    root = report_of({"job.log": ahead + timed_out(2, 702, "BROADCAST")})  # which its root may finish alone
    assert candidates(root) == set()
    alone = report_of({"job.log": named(6, 6, 705) + timed_out(2, 702)})  # of two, either may be the odd one
    assert candidates(alone) == set()


def test_who_has_finished_all_it_issued_does_not_wait_and_whom_a_line_names_does() -> None:
    report = report_of({"job.log": idle(1, 41, "this local rank") + idle(0, 41, " rank 1") + idle(2, 41, " rank 5")})
    assert told(report) == NOTHING
    assert report.verdict is not None
    assert report.verdict.victims == (1, 5)
    assert candidates(report) == {0, 2}
    assert claim(report) == "2 ranks wait, and logs alone do not say for whom; nothing was read of ranks 3-4"


def test_the_largest_rank_that_a_log_names_does_not_tell_how_many_there_are() -> None:
    files = {"job.log": timed_out(4, 41) + timed_out(6, 41)}
    report = report_of(files)
    assert (report.job.world_size, report.coverage.ranks_expected, candidates(report)) == (None, None, set())
    assert "nothing was read of ranks 0-3,5" in claim(report)

    known = report_of(files | {"nccl.log": setting_up("n1", 4, 8, done=True)})
    assert known.job.world_size == 8
    assert candidates(report_of({"job.log": timed_out(0, 41)} | job(2))) == {1}  # there are no more


def test_of_ranks_that_nobody_counts_none_is_a_minority() -> None:
    files = {f"rank{rank}.log": timed_out(rank, 12, numel=16 if rank == 3 else 8) for rank in range(8)}
    assert told(report_of(files | job(8))) == (Kind.DESYNC, None, {3})
    assert told(report_of(files)) == (Kind.DESYNC, None, set())


def test_a_watchdog_that_numbers_nothing_tells_where_and_no_divergence() -> None:
    line = "[E x.cpp:566] [Rank {}] Watchdog caught collective operation timeout: WorkNCCL(OpType={}, Timeout(ms)=1800000) "
    line += "ran for 1801060 milliseconds before timing out.\n"
    ops = {0: "ALLREDUCE", 1: "BROADCAST", 2: "BROADCAST"}
    report = report_of({"job.log": "".join(line.format(rank, op) for rank, op in ops.items())})
    assert told(report) == NOTHING
    assert claim(report).startswith("ranks 1-2 of a group that the log does not name wait in broadcast; rank 0 of a group")


def test_detail_mode_is_a_divergence_also_where_nobody_signs_it() -> None:
    start = "RuntimeError: Detected mismatch between collectives on ranks. "
    text = f"{start}{fingerprint(1, 5, 'ALLGATHER', '3, 4')}, but {fingerprint(2, 5, 'ALLGATHER', '3, 5')}.Collectives differ\n"
    report = report_of({"train.log": text})
    assert (told(report), candidates(report)) == ((Kind.DESYNC, None, set()), {1, 2})
    assert report.verdict is not None
    assert report.verdict.mismatch is Mismatch.SIZE

    apart = (
        start + "Rank 1 is running collective: CollectiveFingerPrint(SequenceNumber=1OpType=BARRIER), but Rank 2 is running "
    )
    apart += "collective: CollectiveFingerPrint(SequenceNumber=0OpType=BARRIER).Collectives differ\n"
    assert "rank 1 in barrier 1, rank 2 in barrier 0" in claim(report_of({"train.log": apart}))

    oldest = start + "Rank 0 is running inconsistent collective: CollectiveFingerPrint(OpType=BROADCAST, TensorShape=[3])\n"
    report = report_of({"train.log": oldest})
    assert (told(report), candidates(report)) == ((Kind.DESYNC, None, set()), set())
    calm = (
        "[I x.cpp:562] [Rank 0] Running collective: CollectiveFingerPrint(SequenceNumber=7, OpType=ALLREDUCE, TensorShape=[])\n"
    )
    assert report_of({"train.log": calm}).verdict is None


def test_what_nccl_warns_of_is_the_networks_the_hosts_or_two_ranks_on_one_gpu() -> None:
    def warned(text: str) -> tuple[Kind | None, Cause | None, list[tuple[str, ...]]]:
        report = report_of({"train.log": text})
        culprits = report.verdict.culprits if report.verdict else ()
        return (*told(report)[:2], [subject.hosts for subject in culprits])

    def line(text: str) -> str:
        return nccl("n07", 100, 0, text, "WARN")

    got = "NET/IB : Got completion from peer 10.0.0.8<38081> with status={} opcode=0 len=0 vendor err 83 (Send) hca mlx5_0"
    assert warned(line(got.format(4))) == (Kind.COMM_STUCK, Cause.NCCL, [])
    assert warned(line(got.format(5)))[0] is None  # flushed after another one had failed
    assert warned(line("NET/IB : Got async event : local catastrophic error")) == (Kind.COMM_STUCK, Cause.NETWORK, [("n07",)])
    assert warned(line("NET/IB : mlx5_0:1 async fatal event on QP (0x7f): local access violation work queue error"))[1:] == (
        Cause.NCCL,
        [],
    )
    unmet = "socketStartConnect: Connect to 10.0.0.8<45763> failed : {}"
    assert warned(line(unmet.format("No route to host"))) == (Kind.COMM_STUCK, Cause.NETWORK, [("n07", "10.0.0.8")])
    assert warned(line(unmet.format("Connection refused")))[1] is None  # its process is not there
    assert warned(line("Error: failed to extend /dev/shm/nccl-x to 5967876 bytes"))[:2] == (Kind.INIT_STUCK, Cause.SHM)
    assert warned(line("Error: failed to extend /dev/shm/nccl-x to 596 bytes, error: Permission denied (13)"))[0] is None
    assert warned("[3] shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left on device\n")[1] is Cause.SHM
    quoted = (
        "NCCL error in: x.cpp:1, usage, NCCL version 2.20.5\nLast error:\nDuplicate GPU detected : rank 1 and rank 0 both on\n"
    )
    assert warned(quoted)[0] is Kind.INIT_STUCK
    assert warned("init.cc:12 NCCL WARN Mismatched collective detected, please check\n")[0] is Kind.DESYNC


def test_counts_that_differ_by_ras_are_told_and_accuse_nobody() -> None:
    table = (
        "NCCL version 2.26.2 compiled with CUDA 12.6\n\nJob summary\n===========\n\nCommunicators... (0.00s)\n=============\n\n"
        "    0         1         4         8        32        32   RUNNING  {}\n\n{}"
    )
    odd = (
        "#0-0 (fa93daea854b060b) MISMATCH\n  Communicator ranks have different AllGather operation counts\n"
        "  30 ranks have launched up to operation 640\n  2 ranks have launched up to operation 641\n"
        "  Rank 12 -- GPU 4 managed by process 9 on node 10.0.0.8\n  Rank 13 -- GPU 5 managed by process 8 on node 10.0.0.8\n"
    )
    report = report_of({"ras.txt": table.format("MISMATCH", odd)})
    assert report.verdict is None
    assert "AllGather (2 members up to 641: 12, 13 and 30 members up to 640)" in report.notes[0]
    assert "tells nothing amiss" in report_of({"ras.txt": table.format("OK", "")}).notes[0]

    beside = (
        "[rank1]: Traceback (most recent call last):\n[rank1]:   File \"/a.py\", line 4, in f\n[rank1]: KeyError: 'tokens'\n"
    )
    assert told(report_of({"train.log": table.format("OK", "") + beside})) == (Kind.DEAD_RANK, Cause.EXCEPTION, {1})
    assert told(report_of({"train.log": beside + table.format("OK", "")})) == (Kind.DEAD_RANK, Cause.EXCEPTION, {1})
