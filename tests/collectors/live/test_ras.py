"""Asking NCCL's RAS: a rank's own service, seldom, and nobody else's. The service here is a thread that speaks its protocol."""

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pardbg.collectors.live.ras import read_ras
from pardbg.collectors.procfs.stat import parse_stat
from pardbg.watchdog.model.evidence import Absence, Observation
from pardbg.watchdog.model.names import AbsenceReason
from pardbg.watchdog.model.ras import RasSeen
from pardbg.watchdog.model.world import RankProcess
from tests.collectors.test_ras import TEXT, answer, member

JSON_ANSWER = b"SERVER PROTOCOL 2\nOK\nOK\n" + answer(member(0), member(1, 4))
TEXT_ANSWER = b"SERVER PROTOCOL 2\nOK\nERROR: Unknown command set format json\n" + TEXT.encode()


@contextmanager
def service(reply: bytes | None, heard: list[bytes] | None = None) -> Iterator[int]:
    """Its port. Without a reply it takes the question and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                question = connection.recv(4096)
                if heard is not None:
                    heard.append(question)
                if reply is not None:
                    connection.sendall(reply)
                else:
                    connection.recv(1)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1]


def rank(port: int | str, number: int = 0, pid: int | None = None) -> RankProcess:
    started = parse_stat(Path(f"/proc/{pid or os.getpid()}/stat").read_text()).started_ticks
    place = port if isinstance(port, str) else f"localhost:{port}"
    return RankProcess(rank=number, pid=pid or os.getpid(), started_ticks=started, host="h1", recorder={"NCCL_RAS_ADDR": place})


def ask(folder: Path, rank: RankProcess, within_s: float = 3.0) -> Observation | None:
    found = read_ras([rank], folder=str(folder), within_s=within_s)
    return found[0].observation if found else None


def test_the_service_of_a_rank_is_asked_and_not_again_at_once(tmp_path: Path) -> None:
    heard: list[bytes] = []
    with service(JSON_ANSWER, heard) as port:
        seen = ask(tmp_path, rank(port))
        again = ask(tmp_path, rank(port))
    assert isinstance(seen, RasSeen)
    assert [count.launched for count in seen.communicators[0].counts] == [5, 4]
    assert heard == [b"CLIENT PROTOCOL 2\nTIMEOUT 1.5\nSET FORMAT json\nVERBOSE STATUS\n"]
    assert isinstance(again, Absence)
    assert again.reason is AbsenceReason.SKIPPED


def test_a_service_that_knows_no_json_is_understood(tmp_path: Path) -> None:
    with service(TEXT_ANSWER) as port:
        seen = ask(tmp_path, rank(port))
    assert isinstance(seen, RasSeen)
    assert (seen.nccl, seen.communicators[0].size) == ("2.27.3", 8)


def test_nobody_is_asked_who_is_no_rank_or_elsewhere(tmp_path: Path) -> None:
    with service(JSON_ANSWER) as port:
        assert ask(tmp_path, rank(port, pid=os.getppid())) is None  # another process than the one that listens
        assert ask(tmp_path, rank(port, number=1)) is None  # the first rank is on another node, which asks
        assert ask(tmp_path, rank(f"10.0.0.1:{port}")) is None
        assert list(tmp_path.iterdir()) == []
    assert ask(tmp_path, rank(port)) is None  # nobody listens


def test_a_service_that_does_not_answer_is_unknown(tmp_path: Path) -> None:
    with service(None) as port:
        seen = ask(tmp_path, rank(port), within_s=1.5)
    assert isinstance(seen, Absence)
    assert seen.reason in {AbsenceReason.TIMED_OUT, AbsenceReason.UNREADABLE}
