"""What an agent refuses at its start, and not when the first hang should be told."""

from pathlib import Path

import pytest

from pardbg.watchdog.agent.request import Request, receivers_of, server_options_of
from pardbg.watchdog.agent.running import _only_agent_of
from pardbg.watchdog.errors import InputError


def written(path: Path, text: str = "t", mode: int = 0o600) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


def test_token_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    bad = {
        tmp_path / "none": "cannot read the token of",
        written(tmp_path / "open", mode=0o644): r"may be used by others \(mode 0644\)",
        written(tmp_path / "two", "a\nb\n"): "holds more than one line",
        written(tmp_path / "empty", ""): "holds no token",
    }
    for path, words in bad.items():
        with pytest.raises(InputError, match=words):
            receivers_of(Request(webhook_token_file=path))
        with pytest.raises(InputError, match=words):
            server_options_of(Request(peer_token_file=path))


@pytest.mark.parametrize("text", [None, "", "no certificate"])
def test_authorities_that_cannot_be_read_are_refused(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "ca" if text is None else written(tmp_path / "ca", text)
    with pytest.raises(InputError, match=f"cannot use --peer-ca, {path}: "):
        server_options_of(Request(peer_ca=path))


def test_several_webhooks_of_one_host_are_told_apart(tmp_path: Path) -> None:
    token = written(tmp_path / "token")
    urls = ("https://hooks.example.org/a", "https://hooks.example.org/b")
    made = receivers_of(Request(webhooks=urls, webhook_token_file=token, alertmanagers=("http://am:9093",)))
    assert [one.place for one in made] == [
        "webhook 1 https://hooks.example.org",
        "webhook 2 https://hooks.example.org",
        "Alertmanager http://am:9093",
    ]
    with pytest.raises(InputError, match="the address of webhook 2 must begin"):
        receivers_of(Request(webhooks=("https://example.org", "example.org")))


def test_state_folder_that_others_may_write_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(InputError, match="may be written by others"), _only_agent_of(tmp_path):
        pass
    tmp_path.chmod(0o755)
    with _only_agent_of(tmp_path), pytest.raises(InputError, match="another agent"), _only_agent_of(tmp_path):
        pass
