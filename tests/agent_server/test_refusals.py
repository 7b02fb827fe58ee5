"""What is refused, with a clear error and a line in the log, and never at the cost of others."""

import logging
import socket
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from pardbg.watchdog.agent.server.diary import ALIKE_S, MOST_ALIKE, Diary
from pardbg.watchdog.agent.server.options import ServerOptions
from pardbg.watchdog.agent.server.server import AgentServer
from pardbg.watchdog.errors import InputError
from pardbg.watchdog.transport.agent_access import AgentAccess
from pardbg.watchdog.transport.agent_addresses import AgentAddress
from pardbg.watchdog.transport.agent_words import MOST_REQUEST_BYTES
from pardbg.watchdog.transport.agents import Agents
from tests.agent_server.asking import ask, send
from tests.agent_server.conftest import Site
from tests.agent_server.shelf import Shelf
from tests.agent_server.test_who import line, write

SCAN = "/v1/look?scan=0b6a3d55-2f4e-4d53-9d0a-6a4de0c7a111"
ADMIN = "Bearer admins"
NAMED = b"POST " + SCAN.encode() + b" HTTP/1.1\r\nHost: n1\r\nAuthorization: Bearer admins\r\n"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Shelf]]:
    tokens = write(tmp_path_factory.mktemp("refusals") / "tokens", line("admins", "admin look"), line("reader", "admin"))
    shelf = Shelf()
    options = ServerOptions(listen="127.0.0.1:0", tokens=tokens, most_connections=8, most_from_one=6, patience_s=0.4)
    with AgentServer(shelf, options) as server:
        yield server.ports[0], shelf


@pytest.mark.parametrize(
    "path",
    [
        "/v1/jobs/..%2f..%2fetc%2fpasswd",
        "/v1/jobs/..%2f..%2fetc%2fpasswd/digest",
        "/v1/jobs/%2e%2e%2f%2e%2e/series",
        "/v1/jobs/../../etc/passwd",
        "/v1/jobs/ours%00/digest",
        "/../etc/passwd",
        "/static/../../etc/passwd",
    ],
)
def test_no_path_leads_out(served: tuple[int, Shelf], path: str, caplog: pytest.LogCaptureFixture) -> None:
    answer = ask(served[0], path, shown=ADMIN)
    assert answer.status in {400, 404}, answer.body
    assert answer.error
    assert "refused: " not in caplog.text or answer.status == 400


@pytest.mark.parametrize(
    ("body", "status", "told"),
    [
        (b"", 400, "no request that pardbg knows"),
        (b"\x93\x01rubbish", 400, "no request that pardbg knows"),
        (b"\x81" * 1000, 400, "no request that pardbg knows"),
        (b"\x81\xa4type\xa7nothing", 400, "no request that pardbg knows"),
        (b"x" * (MOST_REQUEST_BYTES + 1), 413, "larger than 1048576 bytes"),
    ],
)
def test_a_body_that_is_no_request_is_refused(served: tuple[int, Shelf], body: bytes, status: int, told: str) -> None:
    answer = ask(served[0], SCAN, method="POST", body=body, shown=ADMIN)
    assert answer.status == status
    assert told in answer.error


@pytest.mark.parametrize(
    ("data", "status", "told"),
    [
        (NAMED + b"Content-Length: 99999999999\r\n\r\n", b"413", b"larger than"),
        (NAMED + b"Transfer-Encoding: chunked\r\n\r\n" + b"20000\r\n%b\r\n" % (b"x" * 0x20000) * 9, b"413", b"larger than"),
        (NAMED + b"Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc", b"415", b"not unpacked"),
        (NAMED + b"Content-Length: 100\r\n\r\nslowly", b"408", b"has not come within 0.4 s"),
        (
            b"GET /v1/jobs HTTP/1.1\r\nHost: n1\r\nAuthorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n",
            b"401",
            b"not one",
        ),
        (b"GET /v1/jobs HTTP/1.1\r\nHost: n1\r\nX: %b\r\n\r\n" % (b"x" * 20000), b"400", b"no request"),
        (b"GET /v1/jobs HTTP/1.1\r\nHost: n1\r\n%b\r\n" % (b"X: y\r\n" * 500), b"400", b"no request"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"400", b"no request"),
        (b"GET / HTTP/1.1\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\n", b"400", b"no request"),
    ],
)
def test_bytes_that_are_no_decent_request_get_an_error_in_json(
    served: tuple[int, Shelf], data: bytes, status: bytes, told: bytes
) -> None:
    answer = send(served[0], data.replace(b"HTTP/1.1\r\n", b"HTTP/1.1\r\nConnection: close\r\n", 1))
    assert answer.split()[1] == status, answer[:200]
    assert b"\r\nServer: pardbg\r\n" in answer
    assert b'{"error":"' in answer
    assert told in answer
    assert b"Traceback" not in answer


def test_a_connection_that_says_nothing_or_never_ends_its_request_is_closed(served: tuple[int, Shelf]) -> None:
    began_s = time.monotonic()
    assert send(served[0], b"") == b""
    assert send(served[0], b"GET /v1/jobs HTTP/1.1\r\nHost: n1\r\nX-A: ") == b""
    assert time.monotonic() - began_s < 5


def test_one_address_does_not_use_up_all_connections(served: tuple[int, Shelf]) -> None:
    port, shelf = served
    before = shelf.counts["refusals"]
    held = [socket.create_connection(("127.0.0.1", port), timeout=5) for _ in range(7)]
    try:
        answer = held[-1].recv(65536)
        assert answer.startswith(b"HTTP/1.1 429 ")
        assert b'"too many connections"' in answer
    finally:
        for connection in held:
            connection.close()
    assert shelf.counts["refusals"] > before
    time.sleep(0.1)
    assert ask(port, "/healthz").status == 200


@pytest.mark.parametrize("scan", ["", "?scan=", "?scan=../../etc", "?scan=" + "a" * 5000])
def test_a_look_without_a_scan_is_refused(served: tuple[int, Shelf], scan: str) -> None:
    answer = ask(served[0], f"/v1/look{scan}", method="POST", body=b"", shown=ADMIN)
    assert (answer.status, answer.error) == (400, "the look names no scan")


def test_who_only_reads_may_not_look_and_nobody_writes(served: tuple[int, Shelf]) -> None:
    body = b"\x83\xa4type\xa4find\xa8within_s\xcb@\x14\x00\x00\x00\x00\x00\x00\xa3job\xa4ours"
    answer = ask(served[0], SCAN, method="POST", body=body, shown="Bearer reader")
    assert (answer.status, answer.error) == (403, "your token may only read: it lacks `look`")
    assert ask(served[0], "/v1/jobs/ours", method="PUT", body=b"{}", shown=ADMIN).status == 405


def test_refusals_without_end_fill_no_log(served: tuple[int, Shelf], caplog: pytest.LogCaptureFixture) -> None:
    before = served[1].counts["refusals"]
    with caplog.at_level(logging.WARNING):
        for _ in range(60):
            ask(served[0], "/v1/jobs")
    assert served[1].counts["refusals"] - before == 60
    assert len(caplog.records) <= 5  # of one address for one reason


def test_what_is_alike_is_folded_and_told_in_the_end(caplog: pytest.LogCaptureFixture) -> None:
    now_s = 0.0
    counts: Counter[str] = Counter()
    diary = Diary(lambda name: counts.update([name]), clock=lambda: now_s)
    for _ in range(9):
        diary.note_refusal("10.0.0.9", "GET /v1/jobs", "nobody knows who asks")
    diary.note_refusal("10.0.0.8", "GET /v1/jobs", "nobody knows who asks")
    assert len(caplog.messages) == MOST_ALIKE + 1
    now_s = ALIKE_S + 1
    diary.note_refusal("10.0.0.8", "GET /sd", "nobody knows who asks")
    assert caplog.messages[-2:] == [
        "refused: 10.0.0.9: nobody knows who asks: ... and 4 more",
        "refused: 10.0.0.8: GET /sd: nobody knows who asks",
    ]
    assert counts["refusals"] == 11


def test_what_is_not_here_is_no_refusal(served: tuple[int, Shelf], caplog: pytest.LogCaptureFixture) -> None:
    before = served[1].counts["refusals"]
    assert ask(served[0], "/favicon.ico").status == ask(served[0], "/v1/jobs/none", shown=ADMIN).status == 404
    assert (served[1].counts["refusals"], caplog.text) == (before, "")


def test_plain_http_to_a_port_of_tls_is_closed_at_once_and_both_sides_say_why(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    options = ServerOptions(listen="127.0.0.1:0", tls_cert=site.agent.certificate, tls_key=site.agent.key)
    with AgentServer(Shelf(), options) as server:
        (port,) = server.ports
        assert server.places == f"127.0.0.1:{port}"
        began_s = time.monotonic()
        with Agents([AgentAddress(node="n1", host="127.0.0.1", port=port)], AgentAccess(has_munge=False)) as agents:
            (answer,) = agents.get("/v1/jobs", time.monotonic() + 8)
        assert time.monotonic() - began_s < 3
    assert answer.absence is not None
    assert answer.absence.detail.endswith("closed the connection without an answer; if the agent speaks TLS: --tls-ca")
    assert "refused: 127.0.0.1: a TLS handshake: no TLS: http request" in caplog.text


@pytest.mark.parametrize(
    ("listen", "has", "told"),
    [
        ("0.0.0.0:9475", (), "beyond this machine, without TLS"),
        ("192.0.2.1:9475", ("tokens",), "beyond this machine, without TLS"),
        ("[::]:9475", ("tls",), "without a way to tell who asks"),
        ("n1:9475", ("tls",), "without a way to tell who asks"),
        ("127.0.0.1:9475", ("client_ca",), "--client-ca without --tls-cert"),
        ("127.0.0.1:99999", (), "cannot listen on"),
        (":9475", (), "cannot listen on"),
    ],
)
def test_it_listens_beyond_this_machine_only_if_it_is_safe(
    site: Site, tmp_path: Path, listen: str, has: tuple[str, ...], told: str
) -> None:
    options = ServerOptions(
        listen=listen,
        tls_cert=site.agent.certificate if "tls" in has else None,
        tls_key=site.agent.key if "tls" in has else None,
        client_ca=site.authority.certificate if "client_ca" in has else None,
        tokens=write(tmp_path / "t", line("a", "admin")) if "tokens" in has else None,
    )
    with pytest.raises(InputError, match=told):
        AgentServer(Shelf(), options)


def test_a_key_that_others_may_read_and_a_port_that_is_taken_are_clear_errors(site: Site, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_bytes(site.agent.key.read_bytes())
    key.chmod(0o644)
    options = ServerOptions(listen="127.0.0.1:0", tls_cert=site.agent.certificate, tls_key=key)
    with pytest.raises(InputError, match=r"the key of --tls-key, .* may be used by others"):
        AgentServer(Shelf(), options).start()
    with AgentServer(Shelf(), ServerOptions(listen="127.0.0.1:0")) as server:
        taken = ServerOptions(listen=f"127.0.0.1:{server.ports[0]}")
        with pytest.raises(InputError, match="Address already in use"):
            AgentServer(Shelf(), taken).start()


def test_a_socket_is_taken_over_from_the_dead_and_from_nobody_else(short: Path) -> None:
    path = short / "run" / "a.sock"
    options = ServerOptions(listen="", socket=path)
    with AgentServer(Shelf(), options), pytest.raises(InputError, match="another agent listens there"):
        AgentServer(Shelf(), options).start()
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    with AgentServer(Shelf(), options):
        pass
    path.write_text("a file")
    with pytest.raises(InputError, match="something that is no socket is there"):
        AgentServer(Shelf(), options).start()
    assert path.read_text() == "a file"
