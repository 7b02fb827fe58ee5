"""Files of a process in another mount namespace are read below its root; nothing that it puts there leads out, or is opened."""

import contextlib
import errno
import json
import os
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pardbg.collectors.inside import RankRoot, name_inside
from pardbg.collectors.live.probe.probes import read_probes
from pardbg.collectors.live.recorders.http_exchange import NoAnswerError, exchange
from pardbg.collectors.live.recorders.listening import UnixAddress
from pardbg.collectors.live.recorders.rank_root import opened_root
from pardbg.collectors.live.recorders.trusted_file import RefusedError, looked_up, read_file
from pardbg.collectors.probe.page_format import StepRecord
from pardbg.collectors.procfs.id_map import find_inner_id
from pardbg.collectors.reading import Reader, Task
from pardbg.collectors.reading_job import SourceRead, SourceRequest
from pardbg.collectors.reading_protocol import FileRead
from pardbg.collectors.vitals.page_file import open_page
from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.heartbeat import Heartbeat
from pardbg.watchdog.model.names import AbsenceReason
from pardbg.watchdog.model.world import RankProcess
from tests.collectors.contained import Contained, needs_root, running_contained
from tests.collectors.probe_pages import page_of

pytestmark = needs_root

UID = os.getuid()
NOBODY = 65534
SECRET = b"a secret of the host"
BOOT_ID = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
STEP = StepRecord(12, 10**18, 5 * 10**8, 10**9, 1, 1)

# Forbids openat2 to itself, as an old kernel or a container's filter does, and looks at a root.
WITHOUT_OPENAT2 = """
import ctypes, struct, sys
from pardbg.collectors.inside import RankRoot
from pardbg.collectors.live.recorders.rank_root import opened_root
from pardbg.collectors.live.recorders.trusted_file import RefusedError
libc = ctypes.CDLL(None, use_errno=True)
answer = 0x00050000 | int(sys.argv[1])
lines = b"".join(struct.pack("HBBI", *line) for line in
                 ((0x20, 0, 0, 0), (0x15, 0, 1, 437), (0x06, 0, 0, answer), (0x06, 0, 0, 0x7FFF0000)))
buffer = ctypes.create_string_buffer(lines)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, struct.pack("HxxxxxxP", 4, ctypes.addressof(buffer)), 0, 0) == 0
try:
    with opened_root(RankRoot(pid=int(sys.argv[2]), started_ticks=int(sys.argv[3]))):
        print("opened")
except RefusedError as error:
    print(error.refusal.reason.value, error.refusal.detail)
"""


@pytest.fixture(scope="module")
def box() -> Iterator[Contained]:
    with running_contained() as contained:
        (contained.outside / "file").write_bytes(SECRET)
        yield contained


@pytest.fixture
def root(box: Contained) -> Iterator[int]:
    with opened_root(box.whose) as handle:
        assert handle is not None
        yield handle


@pytest.fixture
def work(box: Contained, request: pytest.FixtureRequest) -> Path:
    """A new folder of the process, seen from outside."""
    folder = box.root / "work" / f"{abs(hash(request.node.name)):x}"
    folder.mkdir()
    return folder


@pytest.fixture(scope="module")
def reader() -> Iterator[Reader]:
    with Reader() as pool:
        yield pool


def inside(box: Contained, path: Path) -> bytes:
    return b"/" + bytes(path.relative_to(box.root))


def source(reader: Reader, box: Contained, name: bytes, uid: int = UID) -> str:
    """Why a source below its root is not read; empty if it is."""
    request = SourceRequest(path=name, lines=(1,), inside=box.whose, uid=uid, whose=box.whose)
    answer = reader.ask([Task(request=request, path="it")], within_s=20)["it"]
    assert isinstance(answer, SourceRead | FileRead)
    return answer.problem.detail if isinstance(answer, FileRead) and answer.problem else ""


def test_a_file_below_its_root_is_read_also_across_its_mounts_and_by_links_that_are_absolute_there(
    box: Contained, root: int, work: Path
) -> None:
    (box.root / "dev/shm/f").write_text("own")
    (work / "link").symlink_to("/dev/shm")  # noqa: S108 - in there
    assert read_file(b"/dev/shm/f", UID, root=root)[0] == b"own"
    assert read_file(inside(box, work / "link/f"), UID, root=root)[0] == b"own"
    assert read_file(b"/../../dev/shm/f", UID, root=root)[0] == b"own"
    seen_here = os.fsencode((box.root / "work").resolve())
    assert name_inside(box.pid, seen_here) == b"/work"


def make_of_nobody(path: Path) -> None:
    path.write_text("x")
    path.chmod(0o600)
    os.chown(path, NOBODY, NOBODY)


Trap = Callable[[Path, Contained], object]

NO_FILES: dict[str, Trap] = {
    "a link": lambda path, box: path.symlink_to(box.outside / "file"),
    "a link of the kernel": lambda path, _: path.symlink_to("/proc/1/fd/0"),
    "a FIFO": lambda path, _: os.mkfifo(path),
    "a device": lambda path, _: os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 3)),
    "a socket": lambda path, _: socket.socket(socket.AF_UNIX).bind(str(path)),
    "a folder": lambda path, _: path.mkdir(),
    "of another user": lambda path, _: make_of_nobody(path),
}
NO_WAYS: dict[str, tuple[str, Callable[[Contained], str]]] = {
    "absolute": ("/", lambda box: f"{box.outside}/file"),
    "dots in a link": ("../" * 20, lambda box: f"{box.outside}/file"),
    "dots": ("", lambda box: "../" * 20 + f"{box.outside}/file"),
    "magic root": ("/proc/1/root", lambda _: "dev/shm/f"),
    "magic folder": ("/proc/1/cwd", lambda _: "file"),
    "magic descriptor": ("/proc/1/fd", lambda _: "0/x"),
}


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # a socket that is bound stays where it is
@pytest.mark.parametrize("trap", NO_FILES)
def test_only_a_file_of_its_user_is_opened(trap: str, box: Contained, root: int, reader: Reader, work: Path) -> None:
    path = work / "file"
    NO_FILES[trap](path, box)
    with pytest.raises(RefusedError):
        read_file(inside(box, path), UID, root=root)
    assert source(reader, box, inside(box, path))
    if trap == "a FIFO":  # nobody has opened it
        with pytest.raises(OSError, match="No such device or address"):
            os.open(path, os.O_WRONLY | os.O_NONBLOCK)


@pytest.mark.parametrize("name", [b"/proc/1/status", b"/sys/kernel/mm/transparent_hugepage/enabled"])
def test_no_file_of_the_kernel_is_opened(name: bytes, box: Contained, root: int, reader: Reader) -> None:
    with pytest.raises(RefusedError, match="kernel's own"):
        read_file(name, UID, root=root)
    assert "of the kernel" in source(reader, box, name)


@pytest.mark.parametrize("way", NO_WAYS)
def test_nothing_leads_out(way: str, box: Contained, root: int, reader: Reader, work: Path) -> None:
    target, rest = NO_WAYS[way]
    (work / "out").symlink_to(target or ".")
    name = inside(box, work / "out") + b"/" + rest(box).lstrip("/").encode()
    (box.root / "dev/shm/f").write_text("own")
    with pytest.raises(OSError, match="No such file" if "magic" not in way else "symbolic links") as caught:
        read_file(name, UID, root=root)
    assert not isinstance(caught.value, RefusedError)
    assert source(reader, box, name) == caught.value.strerror


def test_a_source_that_its_user_may_not_read_is_not_read_for_him(box: Contained, reader: Reader, work: Path) -> None:
    path = work / "train.py"
    path.write_text("x = 1")
    assert source(reader, box, inside(box, path), NOBODY) == ""
    path.chmod(0o640)
    assert source(reader, box, inside(box, path), NOBODY)
    assert source(reader, box, inside(box, path)) == ""


def test_what_is_put_in_its_place_during_the_look_is_not_read(box: Contained, root: int, work: Path) -> None:
    path = work / "file"
    path.write_text("own")
    with looked_up(inside(box, path), UID, stat.S_IFREG, root=root) as (handle, _):
        path.unlink()
        path.symlink_to("/proc/1/environ")
        assert Path(f"/proc/self/fd/{handle}").read_text() == "own"


def test_folders_that_change_places_all_the_time_never_lead_out(box: Contained, root: int, work: Path) -> None:
    """A folder and a link to the outside by way of the kernel's links and of dots take turns under one name."""
    (work / "good/deep").mkdir(parents=True)
    (work / "good/deep/file").write_text("own")
    (work / "bad").symlink_to("../" * 9 + str(box.outside).lstrip("/"))
    (work / "bad2").symlink_to(f"/proc/1/root{box.outside}")
    is_over = threading.Event()

    def juggle() -> None:
        while not is_over.is_set():
            for name in ("good", "bad", "bad2"):
                (work / name).rename(work / "now")
                (work / "now").rename(work / name)

    thread = threading.Thread(target=juggle)
    thread.start()
    seen: set[bytes] = set()
    until_s = time.monotonic() + 0.5
    while time.monotonic() < until_s:
        for name in ("now/deep/file", "now/deep/../deep/file", "now/file"):
            with contextlib.suppress(RefusedError, OSError):
                seen.add(read_file(inside(box, work / name), UID, root=root)[0])
    is_over.set()
    thread.join()
    assert seen == {b"own"}


def test_its_own_socket_is_asked_and_that_of_another_gets_no_byte(box: Contained, root: int) -> None:
    own = UnixAddress(path=b"/dev/shm/own.sock", root=root)
    assert exchange(own, "GET /", pid=box.pid, until_s=time.monotonic() + 5) == b"own!"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(bytes(box.root / "dev/shm/other.sock"))
        listener.listen()
        with pytest.raises(NoAnswerError, match="belongs to process"):
            exchange(UnixAddress(path=b"/dev/shm/other.sock", root=root), "GET /", pid=box.pid, until_s=time.monotonic() + 5)
        with listener.accept()[0] as connection:
            assert connection.recv(100) == b""
    for name in (b"/dev/shm/none.sock", b"/proc/1/status", b"/proc/1/root/dev/shm/own.sock"):
        with pytest.raises(NoAnswerError):
            exchange(UnixAddress(path=name, root=root), "GET /", pid=box.pid, until_s=time.monotonic() + 5)


def make_probe(box: Contained, above: Path) -> Path:
    folder = above / f"{box.inner_pid}-{box.started_ticks}"
    folder.mkdir(parents=True, mode=0o700)
    own = {"schema": "pardbg.rank/1", "pid": box.inner_pid, "started_ticks": box.started_ticks, "boot_id": BOOT_ID}
    (folder / "rank.json").write_text(json.dumps(own))
    (folder / "page").write_bytes(page_of(STEP, pid=box.inner_pid))
    (folder / "groups.jsonl").write_text('{"name": "0", "desc": "default_pg", "runs": [[0, 1, 4]]}\n')
    return folder


def steps(rank: RankProcess) -> list[int | None]:
    seen = (item.observation for item in read_probes([rank], 0, within_s=10).evidence)
    return [item.step for item in seen if isinstance(item, Heartbeat)]


def test_its_probe_is_read_by_the_numbers_that_it_has_itself_and_the_page_held_only_in_memory(box: Contained) -> None:
    folder = make_probe(box, box.root / f"dev/shm/pardbg-{UID}")
    rank = box.as_rank()
    assert steps(rank) == [12]
    page = open_page(rank)
    assert page is not None
    (folder / "page").unlink()
    heartbeat = page.read()
    page.close()
    assert heartbeat is not None
    assert heartbeat.step == 12
    assert open_page(rank) is None
    make_probe(box, box.root / "work/disk")
    assert steps(box.as_rank(PARDBG_DIR="/work/disk")) == [12]
    assert open_page(box.as_rank(PARDBG_DIR="/work/disk")) is None
    (folder.parent).chmod(0o755)
    folder.chmod(0o755)
    assert steps(rank) == []


def test_a_process_that_has_ended_or_whose_number_lives_on_has_no_root() -> None:
    gone = RankRoot(pid=os.getpid(), started_ticks=1)
    with pytest.raises(RefusedError) as caught, opened_root(gone):
        pass
    assert caught.value.refusal.reason is AbsenceReason.GONE


@pytest.mark.parametrize("answer", [errno.ENOSYS, errno.EPERM])
def test_without_openat2_the_reason_says_so(answer: int, box: Contained) -> None:
    command = [sys.executable, "-c", WITHOUT_OPENAT2, str(answer), str(box.pid), str(box.started_ticks)]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout
    assert said.startswith("unsupported ")
    assert "openat2" in said


def test_ids_are_looked_up_in_the_map_of_a_user_namespace() -> None:
    text = "         0       1000          1\n         1     100000      65536\n"
    assert [find_inner_id(text, outer) for outer in (1000, 100009, 5)] == [0, 10, None]
    with pytest.raises(ParseError):
        find_inner_id("0 x 1", 0)
