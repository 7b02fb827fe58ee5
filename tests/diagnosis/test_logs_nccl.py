"""What NCCL's own lines show: set-up that never ends, networks that fail, ways that could be better."""

import pytest

from pardbg.watchdog.model.names import Cause, Confidence, Kind, Scope
from pardbg.watchdog.model.report import Report
from tests.collectors.dumps import make_entry, outstanding
from tests.diagnosis.log_files import TRACEBACK, candidates, job, nccl, report_of, setting_up, told
from tests.diagnosis.test_hand_made import evidence_from

PORT = "NET/IB : Got async event : port error"
RETRIES = "NET/IB : Got completion from peer 10.0.0.3<4000> with error 12, opcode 1, len 0, vendor err 129"
RETRIES_NOW = (
    "NET/IB: Got completion from peer 10.0.0.3<4000> with status=12 opcode=129 len=1048576 vendor err 129 (Recv) hca mlx5_1"
)
SHM_FULL = "Error: failed to extend /dev/shm/nccl-AbCdEf to 9637892 bytes, error: No space left on device (28)"
FIRST_OPERATION = {rank: [outstanding(0)] for rank in range(4)}


def hosts_named(report: Report) -> list[tuple[Scope, tuple[str, ...]]]:
    assert report.verdict is not None
    return [(subject.scope, subject.hosts) for subject in report.verdict.culprits]


def test_no_rank_completes_the_set_up() -> None:
    """C61: seven and eight ranks."""
    text = "".join(setting_up("a" if rank < 7 else "b", rank, 15) for rank in range(15))
    report = report_of({"nccl.log": text})
    assert told(report) == (Kind.INIT_STUCK, Cause.BOOTSTRAP, set())
    assert report.verdict is not None
    assert "different numbers of ranks" in report.verdict.claim


def test_half_of_the_ranks_complete_the_set_up() -> None:
    """C62."""
    text = "".join(setting_up("a", rank, 8, done=rank % 2 == 0) for rank in range(8))
    report = report_of({"nccl.log": text})
    assert told(report) == (Kind.INIT_STUCK, None, set())
    assert candidates(report) == {1, 3, 5, 7}


@pytest.mark.parametrize("later", ["", "restarted"])
def test_a_set_up_that_was_completed_in_the_end_is_no_fault(later: str) -> None:
    begun = "".join(setting_up("a", rank, 2) for rank in range(2)) if later else ""
    done = "".join(setting_up("a", rank, 2, done=True) for rank in range(2))
    assert report_of({"nccl.log": begun + done}).verdict is None


def test_the_rank_without_memory_in_the_set_up_is_to_blame() -> None:
    """C41; the bracket is a device and not a rank (T9)."""
    text = "".join(setting_up("a", rank, 16, device=15 - rank) for rank in range(16))
    text += nccl("a", 110, 5, "init.cc:300 NCCL WARN Cuda failure 2 'out of memory'", "INFO")
    text += nccl("a", 110, 5, "Cuda failure 2 'out of memory'", "WARN")
    report = report_of({"nccl.log": text})
    assert told(report) == (Kind.DEAD_RANK, Cause.EXCEPTION, {10})


def test_a_rank_in_a_smaller_communicator_is_no_global_rank() -> None:
    """T9: two siblings number their members alike."""
    text = "".join(setting_up("a", rank, 2, pid=100 + rank) + setting_up("b", rank, 2, pid=200 + rank) for rank in range(2))
    text += nccl("b", 201, 0, "Cuda failure 2 'out of memory'", "WARN")
    assert told(report_of({"nccl.log": text}))[2] == set()
    assert told(report_of({"nccl.log": text} | job(4)))[2] == set()


def test_shared_memory_that_is_full_names_its_ranks() -> None:
    """C67: the socket errors of others are secondary."""
    files = {f"rank{rank}.log": nccl("a", 100 + rank, rank, SHM_FULL, "WARN") for rank in (0, 1)}
    files["rank2.log"] = nccl("a", 102, 2, "socket.cc:9 Socket recv failed", "WARN")
    report = report_of(files | job(3))
    assert told(report) == (Kind.INIT_STUCK, Cause.SHM, {0, 1})
    assert report.verdict is not None
    assert report.verdict.victims == (2,)


def test_multicast_that_one_node_refuses_is_a_matter_of_the_node() -> None:
    """C73."""
    refused = "transport/nvls.cc:200 NCCL WARN"
    text = "".join(
        nccl("b", 200 + device, device, f"Failed to bind NVLS multicast memory: error 401 {refused}", "WARN")
        for device in range(4)
    )
    report = report_of({"nccl.log": setting_up("a", 0, 8) + text} | job(8))
    assert told(report)[:2] == (Kind.INIT_STUCK, None)
    assert hosts_named(report) == [(Scope.HOST, ("b",))]

    assert hosts_named(report_of({"nccl.log": text} | job(8))) == []  # everywhere alike


def test_hosts_whose_ports_err_are_named_and_not_the_peer_of_a_completion() -> None:
    """C64."""
    text = "".join(nccl(host, 100, 0, PORT, "WARN") + nccl(host, 100, 0, RETRIES, "WARN") for host in ("n1", "n2"))
    report = report_of({"nccl.log": text} | job(4))
    assert told(report)[:2] == (Kind.COMM_STUCK, Cause.NETWORK)
    assert hosts_named(report) == [(Scope.HOST, ("n1",)), (Scope.HOST, ("n2",))]


@pytest.mark.parametrize("line", [RETRIES, RETRIES_NOW])
def test_one_pair_that_cannot_talk_is_a_link(line: str) -> None:
    """C65."""
    report = report_of({"nccl.log": nccl("n1", 100, 0, line, "WARN")} | job(4))
    assert told(report)[:2] == (Kind.COMM_STUCK, Cause.NETWORK)
    assert hosts_named(report) == [(Scope.LINK, ("n1", "10.0.0.3"))]

    more = nccl("n1", 100, 0, line.replace("10.0.0.3", "10.0.0.4"), "WARN")
    assert hosts_named(report_of({"nccl.log": nccl("n1", 100, 0, line, "WARN") + more} | job(4))) == []


def test_errors_of_the_network_explain_an_operation_that_all_have_entered() -> None:
    rings = {rank: [make_entry(0), outstanding(1)] for rank in range(4)}
    report = report_of({"nccl.log": nccl("n1", 100, 0, PORT, "WARN")} | job(4), *evidence_from(rings))
    assert told(report)[:2] == (Kind.COMM_STUCK, Cause.NETWORK)
    assert hosts_named(report) == [(Scope.HOST, ("n1",))]

    missing = rings | {3: [make_entry(0)]}
    report = report_of({"nccl.log": nccl("n1", 100, 0, PORT, "WARN")} | job(4), *evidence_from(missing))
    assert told(report)[0::2] == (Kind.MISSING_PARTICIPANT, {3})


def test_a_first_operation_between_gpus_that_copy_directly_is_a_matter_of_access() -> None:
    """C68; over a network, or after a completed operation, it is not."""
    local = "".join(setting_up("a", rank, 4, done=True) for rank in range(4))
    local += nccl("a", 100, 0, "Channel 00/0 : 0[0] -> 1[1] via P2P/IPC")
    report = report_of({"nccl.log": local} | job(4), *evidence_from(FIRST_OPERATION))
    assert told(report) == (Kind.COMM_STUCK, Cause.P2P_ACCESS, set())
    assert report.verdict is not None
    assert report.verdict.confidence is Confidence.SUGGESTED

    later = {rank: [make_entry(0), outstanding(1)] for rank in range(4)}
    assert told(report_of({"nccl.log": local} | job(4), *evidence_from(later)))[:2] == (Kind.COMM_STUCK, None)
    assert told(report_of(job(4), *evidence_from(FIRST_OPERATION)))[:2] == (Kind.INIT_STUCK, None)
    two_hosts = local + nccl("b", 900, 0, "Channel 00/0 : 2[0] -> 3[1] via P2P/IPC")
    assert told(report_of({"nccl.log": two_hosts} | job(4), *evidence_from(FIRST_OPERATION)))[:2] == (Kind.INIT_STUCK, None)


def test_one_host_that_goes_over_sockets_where_others_use_infiniband() -> None:
    good = "".join(
        nccl(host, 100, 0, "NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.2<0>") for host in ("n1", "n2", "n3")
    )
    bad = nccl("n4", 100, 0, "NET/IB : No device found.") + nccl("n4", 100, 0, "NET/Socket : Using [0]eth0:10.0.0.5<0>")
    report = report_of({"nccl.log": good + bad} | job(4))
    assert told(report)[:2] == (Kind.CONFIG_MISMATCH, None)
    assert hosts_named(report) == [(Scope.HOST, ("n4",))]
    assert report.verdict is not None
    assert "ibv_devinfo" in report.verdict.advice[0]

    assert report_of({"nccl.log": bad} | job(4)).verdict is None  # nothing shows that any host has InfiniBand
    assert hosts_named(report_of({"nccl.log": good[: len(good) // 3] + bad} | job(4))) == []  # two hosts: no majority


def test_settings_that_forbid_the_better_way_are_a_note() -> None:
    text = nccl("n1", 100, 0, "NCCL_P2P_DISABLE set by environment to 1.")
    text += nccl("n1", 100, 0, "NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0' (distance 7 > 5)")
    report = report_of({"nccl.log": text} | job(2))
    assert report.verdict is None
    assert [note.split(" on n1")[0] for note in report.notes if "NCCL" in note][:1] == [
        "NCCL may not copy between GPUs directly (NCCL_P2P_DISABLE is set)"
    ]
    assert any("GPU Direct RDMA is off" in note for note in report.notes)


def test_a_host_that_has_infiniband_and_sockets_is_not_odd() -> None:
    lines = [
        nccl(host, 100, 0, "NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.2<0>") for host in ("n1", "n2", "n3", "n4")
    ]
    text = "".join(lines) + nccl("n4", 100, 0, "NET/Socket : Using [0]eth0:10.0.0.5<0>")
    assert report_of({"nccl.log": text} | job(4)).verdict is None


def test_errors_of_the_network_beside_an_error_of_a_ranks_own_are_not_what_came_first() -> None:
    raised = {"rank2.log": "[rank2]: " + TRACEBACK.format(exception="ValueError: x").replace("\n", "\n[rank2]: ")}
    report = report_of({"nccl.log": nccl("n1", 100, 0, PORT, "WARN")} | raised | job(4))
    assert [finding.kind for finding in report.findings if finding.kind is Kind.COMM_STUCK] == []


def test_errors_of_the_network_are_not_told_of_a_job_whose_recorders_show_nobody_waiting() -> None:
    rings = {rank: [make_entry(0), make_entry(1)] for rank in range(4)}
    report = report_of({"nccl.log": nccl("n1", 100, 0, PORT, "WARN")} | job(4), *evidence_from(rings))
    assert [finding.kind for finding in report.findings if finding.kind is Kind.COMM_STUCK] == []
