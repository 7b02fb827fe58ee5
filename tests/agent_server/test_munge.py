"""A real munge: who has made a credential, and that it is good for one request, once."""

import os
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pardbg.watchdog.agent.server.options import ServerOptions
from pardbg.watchdog.agent.server.server import AgentServer
from pardbg.watchdog.transport.agent_access import AgentAccess
from pardbg.watchdog.transport.agent_addresses import AgentAddress
from pardbg.watchdog.transport.agents import Agents
from pardbg.watchdog.transport.munge import make_credential, words_of
from tests.agent_server.asking import Answer, ask
from tests.agent_server.shelf import OURS, Shelf

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not all(map(shutil.which, ("munged", "munge", "setpriv"))), reason="needs munge, and root"
)


@pytest.fixture(scope="module")
def munged() -> Iterator[str]:
    """The socket of a munged of our own."""
    folder = Path(tempfile.mkdtemp(prefix="pm-", dir="/tmp"))
    try:
        folder.chmod(0o711)
        place = folder / "m"
        place.mkdir(mode=0o755)
        key = place / "key"
        key.write_bytes(secrets.token_bytes(1024))
        key.chmod(0o400)
        for path in (place, key):
            shutil.chown(path, "munge", "munge")
        options = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
        words = ["setpriv", "--reuid=munge", "--regid=munge", "--init-groups", "munged", "--foreground"]
        words += [f"--{option}={place}/{name}" for option, name in options.items()]
        with subprocess.Popen(words, stderr=subprocess.DEVNULL) as daemon:
            until_s = time.monotonic() + 10
            while not (place / "socket").exists():
                assert daemon.poll() is None
                assert time.monotonic() < until_s
                time.sleep(0.02)
            yield str(place / "socket")
            daemon.terminate()
    finally:
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def port(munged: str) -> Iterator[int]:
    with AgentServer(Shelf(), ServerOptions(listen="127.0.0.1:0", has_munge=True, munge_socket=munged)) as server:
        yield server.ports[0]


def made_by(uid: int, socket: str, words: str) -> str:
    command = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "munge", f"--socket={socket}"]
    return subprocess.run(command, input=words.encode(), capture_output=True, check=True).stdout.decode().strip()


def show(port: int, credential: str, path: str = "/v1/jobs") -> Answer:
    return ask(port, path, shown=f"Munge {credential}")


def test_a_credential_says_who_asks_for_one_request_and_once(port: int, munged: str) -> None:
    credential = made_by(OURS, munged, words_of("GET", "/v1/jobs", b""))
    assert [one["job_id"] for one in show(port, credential).json["jobs"]] == ["ours", "mixed"]
    again = show(port, credential)
    assert (again.status, again.error) == (401, "the munge credential does not count: it has been used")
    others = make_credential(words_of("GET", "/v1/jobs/theirs", b""), munged)
    assert show(port, others).error == "the munge credential was made for another request"
    posted = make_credential(words_of("POST", "/v1/jobs/ours/entries", b"[]"), munged)
    changed = ask(port, "/v1/jobs/ours/entries", method="POST", body=b'[{"rank": 0}]', shown=f"Munge {posted}")
    assert changed.error == "the munge credential was made for another request"


@pytest.mark.parametrize("text", ["", "MUNGE:", "MUNGE:AAAA:", "MUNGE:AAAA: --help", "x" * 7000])
def test_what_is_no_credential_is_refused(port: int, text: str) -> None:
    assert show(port, text).status == 401


def test_an_agent_without_munge_says_that_it_cannot_tell(munged: str) -> None:
    gone = ServerOptions(listen="127.0.0.1:0", has_munge=True, munge_socket="/nowhere/socket")
    with AgentServer(Shelf(), gone) as server:
        answer = show(server.ports[0], make_credential("x", munged))
        assert answer.status == 401
        assert "No such file or directory" in answer.error


def test_a_scan_makes_one_credential_for_all_agents(port: int, munged: str) -> None:
    access = AgentAccess(has_munge=True, munge_socket=munged)
    with Agents([AgentAddress(node="n1", host="127.0.0.1", port=port)], access) as agents:
        for _ in range(2):
            (answer,) = agents.get("/v1/jobs", time.monotonic() + 5)
            assert answer.data is not None
            assert b'"theirs"' in answer.data
