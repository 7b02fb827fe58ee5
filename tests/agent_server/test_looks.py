"""Looks: whose, how many, how often, and that nothing of them stays."""

import os
import signal
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from pardbg.watchdog.agent.server.options import ServerOptions
from pardbg.watchdog.agent.server.refused import RefusedError
from pardbg.watchdog.agent.server.requester import Requester
from pardbg.watchdog.agent.server.server import AgentServer
from pardbg.watchdog.agent.server.session import Session
from pardbg.watchdog.agent.server.sessions import APART_S, IDLE_S, MOST, Sessions
from pardbg.watchdog.model.evidence import Absence
from pardbg.watchdog.scan.nodes.messages import AttachTo, Find, Found, Request, Seen, TakeSample, decode_reply, encode
from pardbg.watchdog.transport.local import through_local
from pardbg.watchdog.transport.way import Way
from tests.agent_server.asking import Answer, ask
from tests.agent_server.look_program import DIES, SLEEPS
from tests.agent_server.shelf import OURS, THEIRS, Shelf, job
from tests.agent_server.test_who import line, write

PROGRAM = Path(__file__).parent / "look_program.py"
NUMBERS = iter(range(1, 1000))


def way(uid: int | None) -> Way:
    words = (sys.executable, str(PROGRAM), *(("--uid", str(uid)) if uid is not None else ()))
    return through_local(("n1",), words)


def start(uid: int | None) -> Session:
    return Session(way(uid))


@dataclass
class Scan:
    """A scan as one person."""

    port: int
    token: str
    number: str = ""

    def put(self, request: Request) -> Answer:
        """Asks once."""
        self.number = self.number or str(uuid.UUID(int=next(NUMBERS)))
        path = f"/v1/look?scan={self.number}"
        return ask(self.port, path, method="POST", body=encode(request), shown=f"Bearer {self.token}")

    def find(self, name: str) -> str:
        """What the look has to say of a job."""
        reply = decode_reply(self.put(Find(within_s=9.0, job=name)).body)
        assert isinstance(reply, Found)
        return reply.problem


@dataclass
class Served:
    """A server, and what it holds: other tests' jobs may not be looked at again at once."""

    port: int
    shelf: Shelf

    def new_job(self, *uids: int) -> str:
        """Its name."""
        name = f"job{next(NUMBERS)}"
        self.shelf.jobs = (*self.shelf.jobs, job(name, *uids, pid=1000 * next(NUMBERS)))
        return name


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    lines = line("mine", f"uid={OURS} look"), line("theirs", f"uid={THEIRS} look"), line("admins", "admin look")
    options = ServerOptions(listen="127.0.0.1:0", tokens=write(tmp_path_factory.mktemp("looks") / "tokens", *lines))
    shelf = Shelf()
    with AgentServer(shelf, options, start_session=start) as server:
        yield Served(server.ports[0], shelf)


@pytest.fixture
def mine(served: Served) -> Iterator[Scan]:
    scan = Scan(served.port, "mine")
    yield scan
    ask(served.port, f"/v1/look?scan={scan.number}", method="DELETE", shown="Bearer mine")


def is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def wait_for_end(pid: int) -> None:
    until_s = time.monotonic() + 10
    while is_alive(pid):
        assert time.monotonic() < until_s, "it lives on"
        time.sleep(0.05)


def test_a_look_is_one_child_that_sees_one_user_and_ends_with_the_scan(
    served: Served, mine: Scan, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    name = served.new_job(OURS)
    told = mine.find(name)
    pid = int(told.split()[0])
    assert told.endswith(f"--uid {OURS} --node n1 {name} ()")
    assert mine.find(name) == told  # the same child
    assert decode_reply(mine.put(TakeSample(within_s=5.0, number=0)).body) == Seen(taken_at="now")
    theirs = Scan(served.port, "theirs", mine.number).put(TakeSample(within_s=5.0, number=0))
    assert (theirs.status, theirs.error) == (403, "this look is somebody else's")
    assert ask(served.port, f"/v1/look?scan={mine.number}", method="DELETE", shown="Bearer theirs").status == 200
    assert is_alive(pid)
    assert ask(served.port, f"/v1/look?scan={mine.number}", method="DELETE", shown="Bearer mine").status == 200
    wait_for_end(pid)
    gone = mine.put(TakeSample(within_s=5.0, number=0))
    assert (gone.status, gone.error) == (404, "no look of this scan is open here")
    (rank,) = served.shelf.jobs[-1].ranks
    assert f"look: uid {OURS} (token " in caplog.text
    assert f", job {name}, pids {rank.pid}: TakeSample" in caplog.text
    assert served.shelf.counts["looks"] == 3


def test_a_job_of_others_is_not_looked_at_nor_one_that_is_not_here(served: Served, mine: Scan) -> None:
    refused = mine.put(Find(within_s=5.0, job="theirs"))
    assert (refused.status, refused.error) == (403, "job theirs is not yours to look at")
    assert mine.put(Find(within_s=5.0, pids=(200,))).status == 403
    assert mine.find("nobody's") == "the agent on n1 sees no rank of job nobody's"
    assert Scan(served.port, "admins").find("theirs").endswith("--node n1 theirs ()")  # restricted to nobody


def test_a_job_is_looked_at_anew_only_after_a_while(served: Served, mine: Scan) -> None:
    name = served.new_job(OURS)
    mine.find(name)
    again = Scan(served.port, "admins").put(Find(within_s=5.0, job=name))
    assert (again.status, again.error) == (429, "this job is looked at once in 10 s at most")
    assert 1 <= int(again.headers["Retry-After"]) <= APART_S


def test_a_look_that_fails_or_lasts_says_so_and_does_not_stay(served: Served, mine: Scan) -> None:
    pid = int(mine.find(served.new_job(OURS)).split()[0])
    threads = [threading.Thread(target=mine.put, args=(TakeSample(within_s=0.3, number=SLEEPS),))]
    threads[0].start()
    time.sleep(0.3)
    busy = mine.put(TakeSample(within_s=5.0, number=0))
    assert (busy.status, busy.error) == (409, "this look is still at work")
    threads[0].join()
    late = mine.put(TakeSample(within_s=0.1, number=0))
    assert (late.status, late.json["reason"]) == (504, "timed-out")
    other = Scan(served.port, "mine")
    other.find(served.new_job(OURS))
    dead = other.put(TakeSample(within_s=5.0, number=DIES))
    assert dead.status == 502
    third = Scan(served.port, "mine")
    third.find(served.new_job(OURS))  # one person has two at most: the oldest gives way, though it is at work
    wait_for_end(pid)


def test_an_agent_attaches_only_if_its_site_says_so(served: Served, mine: Scan) -> None:
    mine.find(served.new_job(OURS, OURS))
    seen = decode_reply(mine.put(AttachTo(within_s=5.0, ranks=(1, 7), sample=0)).body)
    assert isinstance(seen, Seen)
    (item,) = seen.evidence
    assert isinstance(item.observation, Absence)
    assert (item.rank, item.observation.reason.value) == (1, "switched-off")
    assert "this node's agent may not" in item.observation.detail


def test_when_the_agent_ends_its_looks_do_also_those_at_work(tmp_path: Path) -> None:
    options = ServerOptions(listen="127.0.0.1:0", tokens=write(tmp_path / "t", line("admins", "admin look")))
    server = AgentServer(Shelf(), options, start_session=start)
    server.start()
    scans = [Scan(server.ports[0], "admins") for _ in range(2)]
    pids = [int(scan.find(name).split()[0]) for scan, name in zip(scans, ("ours", "theirs"), strict=True)]
    answers: list[Answer] = []
    sleep = TakeSample(within_s=50.0, number=SLEEPS)
    busy = [threading.Thread(target=lambda scan=scan: answers.append(scan.put(sleep))) for scan in scans]
    for thread in busy:
        thread.start()
    time.sleep(0.3)
    os.kill(pids[0], signal.SIGTERM)  # as a service manager does, to all processes at once
    began_s = time.monotonic()
    server.stop()
    assert time.monotonic() - began_s < 8
    for pid in pids:
        wait_for_end(pid)
    for thread in busy:
        thread.join(5)
    assert [(answer.status, answer.error) for answer in answers] == [(502, "the agent is ending")] * 2


class Clock:
    """Tells what it is told."""

    now_s = 1000.0

    def __call__(self) -> float:
        """Seconds."""
        return self.now_s


class Silent:
    """A session that starts nothing."""

    def __init__(self) -> None:
        self.began_s = self.used_s = 1000.0
        self.is_busy = self.has_ended = False

    def end(self) -> None:
        """Remembers it."""
        self.has_ended = True


def test_there_are_few_sessions_and_idle_ones_end() -> None:
    made: list[Silent] = []

    def make(_: int | None) -> Session:
        made.append(Silent())
        return made[-1]  # type: ignore[return-value]

    clock = Clock()
    sessions = Sessions(make, clock=clock)
    for number in range(MOST):
        sessions.open(str(number), Requester(name=f"uid {number}"), (job(f"j{number}", number),), number)
    with pytest.raises(RefusedError, match="4 looks are open on this node") as error:
        sessions.open("x", Requester(name="uid 9"), (job("j9", 9),), 9)
    assert error.value.status == 429
    clock.now_s += IDLE_S + 1
    made[1].used_s = clock.now_s
    made[2].is_busy = True
    sessions.tidy()
    assert [one.has_ended for one in made] == [True, False, False, True]
