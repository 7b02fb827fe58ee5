"""Who asks, and what he gets: his own, and no more."""

import hashlib
import os
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pardbg.watchdog.agent.server.listening import places_of
from pardbg.watchdog.agent.server.options import ServerOptions
from pardbg.watchdog.agent.server.server import AgentServer
from pardbg.watchdog.errors import InputError
from tests.agent_server.asking import ask, ask_as
from tests.agent_server.conftest import Site
from tests.agent_server.shelf import OURS, THEIRS, Shelf

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")


def context(site: Site, pair: object = None) -> ssl.SSLContext:
    made = ssl.create_default_context(cafile=site.authority.certificate)
    if pair is not None:
        made.load_cert_chain(pair.certificate, pair.key)  # type: ignore[attr-defined]
    return made


def line(token: str, rest: str) -> str:
    return f"sha256:{hashlib.sha256(token.encode()).hexdigest()} {rest}\n"


def write(path: Path, *lines: str) -> Path:
    path.write_text("".join(lines))
    path.chmod(0o600)
    return path


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    return write(tmp_path / "tokens", line("mine", f"uid={OURS}"), line("admins", "admin look  # of the site"))


@pytest.fixture
def port(tokens: Path) -> Iterator[int]:
    with AgentServer(Shelf(), ServerOptions(listen="127.0.0.1:0", tokens=tokens)) as server:
        yield server.ports[0]


def jobs_of(answer: object) -> list[str]:
    return [one["job_id"] for one in answer.json["jobs"]]  # type: ignore[attr-defined]


def test_on_this_machine_pages_are_for_everybody_and_jobs_are_not(port: int) -> None:
    assert ask(port, "/metrics").body.endswith(b"pardbg_up 1\n")
    assert ask(port, "/healthz").json == {"status": "ok"}
    (group,) = ask(port, "/sd").json
    assert group["targets"][0].endswith(":0")
    refused = ask(port, "/v1/jobs")
    assert (refused.status, refused.error) == (401, "nobody knows who asks")
    assert "Bearer" in refused.headers["WWW-Authenticate"]


@as_root
def test_the_kernel_says_who_is_at_the_socket(short: Path) -> None:
    shelf, path = Shelf(), short / "a.sock"
    with AgentServer(shelf, ServerOptions(listen="", socket=path)):
        assert path.stat().st_mode & 0o777 == 0o666
        assert jobs_of(ask_as(0, path, "/v1/jobs")) == ["ours", "theirs", "mixed"]
        assert jobs_of(ask_as(OURS, path, "/v1/jobs")) == ["ours", "mixed"]
        refused = ask_as(OURS, path, "/v1/jobs/theirs/digest")
        assert (refused.status, refused.error) == (403, "job 'theirs' is not yours")
        assert ask_as(OURS, path, "/v1/jobs/ours/series").status == 200
    assert shelf.counts["refusals"] == 1
    assert not path.exists()


def test_of_a_job_that_others_have_joined_one_sees_ones_own_ranks(port: int) -> None:
    mine = "Bearer mine"
    mixed = ask(port, "/v1/jobs/mixed", shown=mine).json
    assert ([rank["rank"] for rank in mixed["ranks"]], mixed["uids"], mixed["incident"]) == ([0], [OURS], None)
    assert (mixed["layers"], ask(port, "/v1/jobs/ours", shown=mine).json["layers"][0]["step"]) == ([], 7)
    assert ask(port, "/v1/jobs", shown=mine).json["jobs"][0]["layers"] == []  # a list is short
    assert [item["rank"] for item in ask(port, "/v1/jobs/mixed/digest", shown=mine).json] == [0]
    assert [item["rank"] for item in ask(port, "/v1/jobs/mixed/series", shown=mine).json] == [0]
    assert ask(port, "/v1/jobs/mixed/entries", method="POST", body=b'[{"rank": 1}]', shown=mine).json == []


@pytest.mark.parametrize(
    ("has_socket", "has_tokens", "remedy"),
    [
        (True, False, "ask by its socket (--agents {0}/a.sock)"),
        (True, True, "ask by its socket (--agents {0}/a.sock), or show a token (--token-file)"),
        (False, False, "start the agent with --socket or --tokens: it knows nobody so far"),
    ],
)
def test_a_stranger_is_told_what_this_agent_offers(
    short: Path, tokens: Path, *, has_socket: bool, has_tokens: bool, remedy: str
) -> None:
    options = ServerOptions(
        listen="127.0.0.1:0", socket=short / "a.sock" if has_socket else None, tokens=tokens if has_tokens else None
    )
    with AgentServer(Shelf(), options) as server:
        assert ask(server.ports[0], "/v1/jobs").json["remedy"] == remedy.format(short)


@as_root
def test_what_an_agent_suffers_from_is_told_to_those_near_it(short: Path, site: Site) -> None:
    shelf, problems = Shelf(problems={"store": "the disk is full"}), {"store": "the disk is full"}
    with AgentServer(shelf, ServerOptions(listen="127.0.0.1:0", socket=short / "a.sock")) as server:
        assert ask(server.ports[0], "/healthz").json == {"status": "degraded", "problems": problems}
        assert ask_as(0, short / "a.sock", "/healthz").json == {"status": "degraded", "problems": problems}
        assert ask_as(OURS, short / "a.sock", "/healthz").json == {"status": "degraded"}
    pair, authority = site.agent, site.authority.certificate
    wide = ServerOptions(listen="0.0.0.0:0", tls_cert=pair.certificate, tls_key=pair.key, client_ca=authority)
    with AgentServer(shelf, wide) as server:
        assert ask(server.ports[0], "/healthz", tls=context(site)).json == {"status": "degraded"}


def test_a_place_is_told_with_its_port() -> None:
    assert places_of(ServerOptions(listen="127.0.0.1", socket=Path("/a.sock")), (9475,)) == "127.0.0.1:9475 and /a.sock"
    assert places_of(ServerOptions(listen="[::1]"), (9475,)) == "[::1]:9475"
    assert places_of(ServerOptions(listen="", socket=Path("/a.sock")), ()) == "/a.sock"


def test_tokens_count_for_what_the_file_says_as_soon_as_it_says_it(port: int, tokens: Path) -> None:
    mine = "Bearer mine"
    assert jobs_of(ask(port, "/v1/jobs", shown=mine)) == ["ours", "mixed"]
    assert jobs_of(ask(port, "/v1/jobs", shown="Bearer admins")) == ["ours", "theirs", "mixed"]
    assert ask(port, "/v1/jobs", shown="Bearer nobody's").status == 401
    assert ask(port, "/v1/jobs", shown="Basic bWluZTptaW5l").status == 401
    write(tokens, line("mine", f"uid={THEIRS}"))
    assert jobs_of(ask(port, "/v1/jobs", shown=mine)) == ["theirs", "mixed"]
    tokens.write_text("sha256:12 uid=0\n")  # while it is not right, nobody's counts
    assert ask(port, "/v1/jobs", shown=mine).status == 401
    write(tokens, line("mine", f"uid={OURS}"))
    tokens.chmod(0o644)
    assert ask(port, "/v1/jobs", shown=mine).status == 401
    tokens.unlink()
    assert ask(port, "/v1/jobs", shown=mine).status == 401


@pytest.mark.parametrize(
    ("text", "mode", "told"),
    [
        (line("a", "uid=1"), 0o640, "may be used by others"),
        ("sha256:00 uid=1\n", 0o600, "line 1 of the tokens is not understood"),
        (line("a", "uid=1") + line("b", "everything"), 0o600, "line 2 of the tokens"),
    ],
)
def test_tokens_that_others_may_read_or_nobody_understands_are_refused_at_the_start(
    tmp_path: Path, text: str, mode: int, told: str
) -> None:
    path = write(tmp_path / "t", text)
    path.chmod(mode)
    server = AgentServer(Shelf(), ServerOptions(listen="127.0.0.1:0", tokens=path))
    with pytest.raises(InputError, match=told):
        server.start()


def test_certificates_say_who_asks_and_wrong_ones_do_not(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    options = ServerOptions(
        listen="127.0.0.1:0",
        tls_cert=site.agent.certificate,
        tls_key=site.agent.key,
        client_ca=site.authority.certificate,
        peers=("n2:9475",),
    )
    shelf = Shelf()
    with AgentServer(shelf, options) as server:
        (port,) = server.ports
        assert jobs_of(ask(port, "/v1/jobs", tls=context(site, site.user))) == ["ours", "mixed"]
        assert jobs_of(ask(port, "/v1/jobs", tls=context(site, site.admin))) == ["ours", "theirs", "mixed"]
        assert jobs_of(ask(port, "/v1/jobs", tls=context(site, site.peer))) == ["ours", "theirs", "mixed"]
        assert ask(port, "/v1/jobs", tls=context(site)).error == "nobody knows who asks"
        stranger = ask(port, "/v1/jobs", tls=context(site, site.stranger))
        assert stranger.error == "the certificate is of 'who-is-that', who is no user of this machine"
        with pytest.raises((ssl.SSLError, ConnectionError), match=r"(?i)unknown ca"):
            ask(port, "/v1/jobs", tls=context(site, site.forged))
        time.sleep(0.1)
    assert shelf.counts["refusals"] == 3
    assert "refused: 127.0.0.1: a TLS handshake: unable to get local issuer certificate" in caplog.text


def test_beyond_this_machine_pages_are_for_admins(site: Site) -> None:
    """0.0.0.0 is not this machine alone, whoever asks."""
    options = ServerOptions(
        listen="0.0.0.0:0",
        tls_cert=site.agent.certificate,
        tls_key=site.agent.key,
        client_ca=site.authority.certificate,
    )
    with AgentServer(Shelf(), options) as server:
        (port,) = server.ports
        assert ask(port, "/metrics", tls=context(site)).status == 401
        assert "for admins" in ask(port, "/metrics", tls=context(site, site.user)).error
        assert ask(port, "/metrics", tls=context(site, site.admin)).status == 200
        (group,) = ask(port, "/sd", tls=context(site, site.admin)).json
        assert group["labels"] == {"__scheme__": "https"}
        assert ask(port, "/healthz", tls=context(site)).json == {"status": "ok"}
