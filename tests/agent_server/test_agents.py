"""Scans that ask agents: true reasons, partial answers, and nothing that a hostile agent could cost."""

import json
import resource
import socket
import time
from pathlib import Path

import pytest

from pardbg.collectors.jobs.slurm.job import SlurmJob
from pardbg.collectors.parsing.slurm_record import SlurmState
from pardbg.watchdog.bench.certificates import Pair
from pardbg.watchdog.errors import InputError, ParseError
from pardbg.watchdog.model.evidence import Absence
from pardbg.watchdog.model.names import AbsenceReason, JobSource
from pardbg.watchdog.outputs.sections.headline import claim
from pardbg.watchdog.scan.nodes.reaching import Route
from pardbg.watchdog.scan.nodes.refused import words_of
from pardbg.watchdog.scan.nodes.through_agents import AgentChoice, AgentsRoute, choose_agents
from pardbg.watchdog.scan.scan import Settings
from pardbg.watchdog.scan.unseen import tell_unseen
from pardbg.watchdog.transport.agent_access import AgentAccess, Badge
from pardbg.watchdog.transport.agent_addresses import AgentAddress, read_addresses
from pardbg.watchdog.transport.agents import Agents
from pardbg.watchdog.transport.answer import Answer
from tests.agent_server.conftest import Site
from tests.agent_server.hostile import BEHAVIOURS, GOOD, all_listening, listening, ok, say, server_tls
from tests.transport.playing import data_of, why

NO_MUNGE = AgentAccess(has_munge=False)


def at(ports: dict[str, int], host: str = "127.0.0.1") -> list[AgentAddress]:
    return [AgentAddress(node=node, host=host, port=port) for node, port in ports.items()]


def ask(agents: Agents, within_s: float, data: bytes = GOOD) -> dict[str, Answer]:
    return {answer.node: answer for answer in agents.ask(data, time.monotonic() + within_s)}


def test_whatever_agents_do_each_gets_its_true_reason_in_time_and_the_others_are_heard() -> None:
    with all_listening() as ports:
        before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with Agents(at(ports), NO_MUNGE) as agents:
            began_s = time.monotonic()
            answers = ask(agents, 1.5)
            took_s = time.monotonic() - began_s
    assert took_s < 3.5
    assert data_of(answers) == {"good": GOOD, "packed": GOOD}
    told = {node: why(answers, node) for node in ports if BEHAVIOURS[node][1]}
    assert {node: words for node, words in told.items() if not words.startswith(BEHAVIOURS[node][1])} == {}
    grown_mib = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib) / 1024
    assert grown_mib < 150, "hostile answers are bounded"


def test_where_nobody_listens_or_nothing_has_an_address_is_unreachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    addresses = [
        AgentAddress(node="closed", host="127.0.0.1", port=port),
        AgentAddress(node="unknown", host="no-such-host.invalid"),
        AgentAddress(node="socket", socket="/nowhere/agent.sock"),
    ]
    with Agents(addresses, NO_MUNGE) as agents:
        answers = ask(agents, 8.0)
    assert why(answers, "closed") == f"unreachable: no agent at 127.0.0.1:{port}: Connect call failed ('127.0.0.1', {port})"
    assert why(answers, "unknown").startswith("unreachable: no-such-host.invalid:9475 has no address here: ")
    assert why(answers, "socket") == "unreachable: no agent at /nowhere/agent.sock: No such file or directory"


def test_certificates_that_do_not_fit_are_told_from_each_other(site: Site) -> None:
    def access(pair: Pair | None) -> AgentAccess:
        user = (pair.certificate, pair.key) if pair is not None else (None, None)
        return AgentAccess(tls_ca=site.authority.certificate, tls_cert=user[0], tls_key=user[1], has_munge=False)

    good = server_tls(site.agent, site.authority)
    with (
        listening(say(ok(GOOD)), good) as fine,
        listening(say(ok(GOOD)), server_tls(site.forged)) as forged,
        listening(say(ok(GOOD)), server_tls(site.peer)) as other,
        listening(say(ok(GOOD))) as plain,
    ):
        ports = {"fine": fine, "forged": forged, "other": other, "plain": plain}
        with Agents(at(ports), access(site.user)) as agents:
            answers = ask(agents, 5.0)
        assert data_of(answers) == {"fine": GOOD}
        untrusted = "denied: the certificate of 127.0.0.1:{} is not to be trusted: {}"
        assert why(answers, "forged").startswith(untrusted.format(forged, "unable to get local issuer certificate"))
        assert why(answers, "other").startswith(untrusted.format(other, "IP address mismatch"))
        assert why(answers, "plain").startswith(f"unreadable: what answers at 127.0.0.1:{plain} does not speak TLS")
        for stranger in (None, site.forged):
            with Agents(at({"fine": fine}), access(stranger)) as agents:
                assert why(ask(agents, 5.0), "fine").startswith(
                    f"denied: the agent at 127.0.0.1:{fine} refuses our certificate"
                )
        named = AgentAccess(tls_ca=site.authority.certificate, tls_name="n2", has_munge=False)
        with Agents(at({"other": other}), named) as agents:
            assert data_of(ask(agents, 5.0)) == {"other": GOOD}


def test_who_we_are_is_shown_beyond_this_machine_by_tls_alone(tmp_path: Path) -> None:
    there = AgentAddress(node="n1", host="192.0.2.1")
    assert NO_MUNGE.is_encrypted(there)
    assert not NO_MUNGE.is_encrypted(AgentAddress(node="n1", host="127.0.0.1"))
    token = tmp_path / "token"
    token.write_text("secret\n")
    token.chmod(0o640)
    with pytest.raises(InputError, match=r"the token of --token-file, .* may be used by others"):
        Badge(AgentAccess(token_file=token))
    token.chmod(0o600)
    assert Badge(AgentAccess(token_file=token)).show("GET", "/", b"") == {"Authorization": "Bearer secret"}
    token.write_text("two words\r\nX-Evil: 1")
    with pytest.raises(InputError, match="holds no token"):
        Badge(AgentAccess(token_file=token))


def test_lists_of_agents_are_read_in_all_their_forms() -> None:
    def told(text: str) -> list[tuple[str, str]]:
        return [(address.node, address.netloc) for address in read_addresses(text)]

    assert told("n[1-2],m3:80") == [("n1", "n1:9475"), ("n2", "n2:9475"), ("m3", "m3:80")]
    assert told("n[01-02]:81\n# of the new rack\nm1  # alone\n\n") == [("n01", "n01:81"), ("n02", "n02:81"), ("m1", "m1:9475")]
    assert told("[2001:db8::1]:7\n[::1]") == [("2001:db8::1", "[2001:db8::1]:7"), ("::1", "[::1]:9475")]
    discovered = [{"targets": ["n1:9475", "n1:9476"], "labels": {"a": "b"}}, {"targets": ["n2"]}]
    assert told(json.dumps(discovered)) == [("n1:9475", "n1:9475"), ("n1:9476", "n1:9476"), ("n2", "n2:9475")]
    assert told("[]") == []
    for wrong in ("n1:99999", "n1/../x", "n[1-", "a b", '[{"targets": 3}]', "n[0-9999999]", "http://n1"):
        with pytest.raises(ParseError):
            read_addresses(wrong)


def test_of_a_slurm_job_the_agents_of_its_nodes_are_asked_and_the_others_are_known_to_be_missing(tmp_path: Path) -> None:
    job = SlurmJob(spelled="7", job_id=7, state=SlurmState.RUNNING, nodes=("n1", "n2", "n3"))
    assert [one.netloc for one in choose_agents(AgentChoice(), job).addresses] == ["n1:9475", "n2:9475", "n3:9475"]
    path = tmp_path / "agents.txt"
    path.write_text("n[1-2].example.org:80\nm1\n")
    route = choose_agents(AgentChoice(str(path)), job)
    assert [(one.node, one.netloc) for one in route.addresses] == [("n1", "n1.example.org:80"), ("n2", "n2.example.org:80")]
    assert {node: absence.reason for node, absence in route.unreached.items()} == {"n3": AbsenceReason.UNREACHABLE}
    for named, words in (("nowhere/x", "cannot read"), ("/dev/null", "no regular file"), (" ", "names no agent")):
        with pytest.raises(InputError, match=words):
            choose_agents(AgentChoice(named), None)
    with pytest.raises(InputError, match="needs to know the agents"):
        choose_agents(AgentChoice(), None)


def test_a_socket_is_named_by_any_path_of_it(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(short)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("a.sock")
    for named in ("a.sock", "./a.sock", f"{short}/a.sock"):
        assert [one.socket for one in choose_agents(AgentChoice(named), None).addresses] == [named]
    assert len(choose_agents(AgentChoice(",".join(f"node{number}" for number in range(99))), None).addresses) == 99


def test_where_no_agent_answers_that_is_all_that_is_said() -> None:
    addresses = (AgentAddress(node="n1", host="n1"), AgentAddress(node="n2", host="n2"))
    route = Route(agents=AgentsRoute(addresses, NO_MUNGE))
    silent = Absence(reason=AbsenceReason.TIMED_OUT, detail="silent")
    assert words_of(route, "0 of 2 nodes", [silent, silent]) == "none of the 2 agents answered: silent"
    assert words_of(route, "1 of 2 nodes", [silent]) == "1 of 2 nodes"
    told = tell_unseen("7", JobSource.RUN, "none of the 2 agents answered: silent", {"n1": silent}, Settings()).report
    assert claim(told) == "none of the 2 agents answered: silent."


def test_a_served_list_is_fetched_and_bounded() -> None:
    body = json.dumps([{"targets": ["n1:1", "n2:2"]}]).encode()
    with listening(say(ok(body, kind="application/json"))) as port, listening(say(ok(b"x" * 10, length=10**9))) as endless:
        route = choose_agents(AgentChoice(f"http://127.0.0.1:{port}/sd", NO_MUNGE), None)
        assert [one.netloc for one in route.addresses] == ["n1:1", "n2:2"]
        with pytest.raises(InputError, match="cannot read the list of agents"):
            choose_agents(AgentChoice(f"http://127.0.0.1:{endless}/sd", NO_MUNGE), None)
