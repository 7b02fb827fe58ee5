"""Nodes over a real ssh, with network namespaces as hosts: answers, refusals, and a cable that is cut in mid-conversation."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.own_children import are_soon_gone, living_children
from tests.transport.playing import ask, data_of, open_descriptors, play, why
from tests.transport.ssh_hosts import Network, running_network, why_not

from pardbg.watchdog.transport.conversation import Conversation
from pardbg.watchdog.transport.ssh import ALIVE_COUNT, ALIVE_S, through_ssh

pytestmark = pytest.mark.live


@pytest.fixture
def network(tmp_path: Path) -> Iterator[Network]:
    """No hosts so far. What ran on them is gone before they are."""
    if reason := why_not():
        pytest.skip(reason)
    with running_network(tmp_path) as started:
        yield started


@contextlib.contextmanager
def leaving_nothing(network: Network) -> Iterator[None]:
    """Neither here nor on a host that can be reached."""
    before, descriptors = living_children(), open_descriptors()
    servers = {host.name: host.pids() for host in network.hosts}
    yield
    assert are_soon_gone(before)
    assert open_descriptors() == descriptors
    until_s = time.monotonic() + 5.0
    while any(host.pids() - servers[host.name] for host in network.hosts):
        assert time.monotonic() < until_s, [host.pids() - servers[host.name] for host in network.hosts]
        time.sleep(0.05)


def test_hosts_answer_whatever_their_login_shell_and_their_banners(network: Network) -> None:
    (network.folder / "banner").write_text("Authorised use only!\n")
    hosts = [
        network.add(),
        network.add(f"Banner {network.folder}/banner"),
        network.add('ForceCommand printf "Welcome!\\nmodules 100%%"; exec sh -c "$SSH_ORIGINAL_COMMAND"'),
        network.add('ForceCommand exec tcsh -c "$SSH_ORIGINAL_COMMAND"'),
    ]
    addresses = [host.address for host in hosts]
    with leaving_nothing(network), Conversation(through_ssh(addresses, play("good"), network.options)) as conversation:
        for number in range(5):
            answers = data_of(ask(conversation, f"question {number}".encode(), 20.0))
            assert answers == {address: f"{address}:question {number}".encode() for address in addresses}


def test_a_host_that_is_cut_off_in_mid_conversation_costs_only_its_own_answer(network: Network) -> None:
    kept, cut = network.add(), network.add()
    with Conversation(through_ssh([kept.address, cut.address], play("good"), network.options)) as conversation:
        assert set(data_of(ask(conversation, b"hello", 20.0))) == {kept.address, cut.address}
        cut.cut()
        started_s = time.monotonic()
        answers = ask(conversation, b"and now", 2.0)
        assert time.monotonic() - started_s < 3.0
        assert data_of(answers) == {kept.address: f"{kept.address}:and now".encode()}
        assert why(answers, cut.address).startswith("timed-out: ")
        answers = ask(conversation, b"quick", 30.0)
        assert set(data_of(answers)) == {kept.address}
        assert time.monotonic() - started_s < 5.0
        time.sleep(ALIVE_S * (ALIVE_COUNT + 1) + 1.0)
        answers = ask(conversation, b"later", 30.0)
        assert set(data_of(answers)) == {kept.address}
        assert why(answers, cut.address).startswith("lost: its connection ended (ssh exited with 255)")
        assert f"server {cut.address} not responding" in why(answers, cut.address)
        closing_s = time.monotonic()
    assert time.monotonic() - closing_s < 5.0


def test_hosts_that_cannot_be_reached_each_have_their_reason_and_nothing_asks_or_remembers(network: Network) -> None:
    good, unknown = network.add(), network.add(is_known=False)
    locked = network.add("AuthorizedKeysFile none")
    nobody, cut = network.add(has_sshd=False), network.add()
    cut.cut()
    known = (network.folder / "known_hosts").read_text()
    addresses = [host.address for host in (good, unknown, locked, nobody, cut)]
    with leaving_nothing(network), Conversation(through_ssh(addresses, play("good"), network.options)) as conversation:
        answers = ask(conversation, b"hello", 6.0)
    assert set(data_of(answers)) == {good.address}
    assert why(answers, unknown.address).startswith("denied: ssh: Host key verification failed.; its host key is not")
    assert why(answers, locked.address).startswith("denied: ")
    assert "ssh-copy-id" in why(answers, locked.address)
    assert why(answers, nobody.address).startswith("unreachable: ")
    assert "refused" in why(answers, nobody.address)
    assert why(answers, cut.address).startswith(("timed-out: no word from it through ssh", "unreachable: ssh: "))
    assert (network.folder / "known_hosts").read_text() == known


def test_a_host_without_pardbg_says_what_to_give(network: Network) -> None:
    host = network.add()
    with (
        leaving_nothing(network),
        Conversation(through_ssh([host.address], ("/nowhere/python", "collect"), network.options)) as conversation,
    ):
        answers = ask(conversation, b"hello", 20.0)
    assert why(answers, host.address).startswith("not-installed: ssh: ")
    assert "PARDBG_REMOTE" in why(answers, host.address)


def test_closing_ends_a_busy_node_on_its_host(network: Network) -> None:
    host = network.add()
    with leaving_nothing(network), Conversation(through_ssh([host.address], play("good"), network.options)) as conversation:
        ask(conversation, b"hello", 20.0)
        conversation.ask(b"spin", time.monotonic() + 60.0)
        time.sleep(0.3)
