"""Kernel logs and answers of RAS among the files of a job: whose they are, and that a saved scan keeps them."""

from pathlib import Path

from pardbg.collectors.files import collect_files
from pardbg.collectors.parsing.saved_evidence import encode_evidence
from pardbg.watchdog.model.kernel import KernelLog
from pardbg.watchdog.model.names import CollectorName
from pardbg.watchdog.model.ras import RasSeen
from tests.collectors.test_ras import TEXT, answer, member

LOST = "[12345.6] NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n"


def test_host_and_sample_come_from_the_name_and_never_a_rank(tmp_path: Path) -> None:
    files = {
        "kernel_node-7.log": LOST,
        "dmesg_node-8.txt": "[1.0] usb 1-1: new device\n",
        "logs/3/dump.7": LOST,
        "ras_s1.json": answer(member(0)).decode(),
        "ras_rank3.txt": TEXT,
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    collected = collect_files([tmp_path])

    assert collected.unrecognised == ()
    assert {item.rank for item in collected.evidence} == {None}
    found = {Path(item.origin).name: item for item in collected.evidence}
    assert {name: (item.source, item.host) for name, item in found.items()} == {
        "kernel_node-7.log": (CollectorName.KERNEL_LOG, "node-7"),
        "dmesg_node-8.txt": (CollectorName.KERNEL_LOG, "node-8"),
        "dump.7": (CollectorName.KERNEL_LOG, None),
        "ras_s1.json": (CollectorName.RAS, None),
        "ras_rank3.txt": (CollectorName.RAS, None),
    }
    assert found["dmesg_node-8.txt"].observation == KernelLog()  # read, and it says nothing
    polls = [found[name].observation for name in ("ras_s1.json", "ras_rank3.txt")]
    assert [poll.sample for poll in polls if isinstance(poll, RasSeen)] == [1, 0]

    saved = tmp_path / "saved"
    saved.mkdir()
    (saved / "evidence.json").write_bytes(encode_evidence(collected.evidence))
    assert collect_files([saved]).evidence == collected.evidence
