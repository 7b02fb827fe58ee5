"""What a receiver's answer means, against real servers."""

import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from pardbg.watchdog.errors import InputError
from pardbg.watchdog.incidents.posting import Outcome, post
from pardbg.watchdog.incidents.receivers import Receiver, ReceiverKind, check_receiver
from tests.incidents.making import Hook, hook

SECRET = "s3cr3t-t0k3n"  # noqa: S105 - of this test


@pytest.fixture
def receiver() -> Iterator[Hook]:
    with hook() as made:
        yield made


def webhook(url: str, token_file: Path | None = None) -> Receiver:
    return Receiver(kind=ReceiverKind.WEBHOOK, url=url, token_file=str(token_file) if token_file else None)


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (200, Outcome.TAKEN),
        (204, Outcome.TAKEN),
        (302, Outcome.REFUSED),
        (400, Outcome.REFUSED),
        (401, Outcome.REFUSED),
        (413, Outcome.REFUSED),
        (408, Outcome.LATER),
        (429, Outcome.LATER),
        (500, Outcome.LATER),
        (503, Outcome.LATER),
    ],
)
def test_status_says_whether_it_is_worth_trying_again(receiver: Hook, status: int, outcome: Outcome) -> None:
    receiver.status = status
    receiver.headers = {"Retry-After": "17", "Location": "http://127.0.0.1:9/"}
    answer = post(webhook(receiver.url), '{"a": 1}', "k1")
    assert answer.outcome is outcome
    assert (str(status) in answer.words) is (outcome is not Outcome.TAKEN)
    assert answer.wait_s == (17 if outcome is Outcome.LATER else 0)
    assert len(receiver.seen_headers) == 1
    assert receiver.seen_headers[0]["Idempotency-Key"] == "k1"


def test_environment_s_proxy_is_not_used(receiver: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert post(webhook(receiver.url), "{}", "k").outcome is Outcome.TAKEN


def test_token_is_sent_and_never_told(receiver: Hook, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{SECRET}\n")
    file.chmod(0o600)
    receiver.status, receiver.said = 403, f"no: Bearer {SECRET}\x1b[2J is not known".encode()
    answer = post(webhook(receiver.url, file), "{}", "k")
    assert receiver.seen_headers[0]["Authorization"] == f"Bearer {SECRET}"
    assert SECRET not in answer.words
    assert "\x1b" not in answer.words
    assert "403" in answer.words
    assert "/hook" not in answer.words


def test_path_of_an_address_is_not_told_by_a_receiver_that_repeats_it(receiver: Hook) -> None:
    receiver.status, receiver.said = 404, b"x" * 190 + f" Cannot POST /services/{SECRET}".encode()
    assert SECRET[:6] not in post(webhook(f"{receiver.url}/services/{SECRET}"), "{}", "k").words
    receiver.said = f"Cannot POST /services/{SECRET}".encode()
    assert post(webhook(f"{receiver.url}/services/{SECRET}"), "{}", "k").words.endswith("404: Cannot POST /***/***")


@pytest.mark.parametrize(
    ("content", "mode", "words"),
    [
        ("t", 0o644, "chmod 600"),
        ("", 0o600, "holds no token"),
        ("a b", 0o600, "holds no token"),
        ("a\r\nHost: b", 0o600, "holds more than one line"),
    ],
)
def test_token_of_a_bad_file_is_not_sent(receiver: Hook, tmp_path: Path, content: str, mode: int, words: str) -> None:
    file = tmp_path / "token"
    file.write_bytes(content.encode())
    file.chmod(mode)
    answer = post(webhook(receiver.url, file), "{}", "k")
    assert (answer.outcome, receiver.seen_headers) == (Outcome.LATER, [])
    assert words in answer.words
    assert "cannot be read" in post(webhook(receiver.url, tmp_path / "none"), "{}", "k").words


@pytest.mark.parametrize("talk", [b"", b"HTTP/1.1 200 OK\r\nX: ", b"SSH-2.0\r\n", b"HTTP/1.1 2000000 x\r\n\r\n"])
def test_receiver_that_answers_nonsense_or_byte_by_byte_is_left_in_time(talk: bytes) -> None:
    server = socket.create_server(("127.0.0.1", 0))

    def drip() -> None:
        connection = server.accept()[0]
        with connection:
            connection.sendall(talk)
            try:
                while connection.recv(1 << 16):
                    connection.sendall(b"x")
            except OSError:
                return

    thread = threading.Thread(target=drip)
    thread.start()
    answer = post(webhook(f"http://127.0.0.1:{server.getsockname()[1]}/"), "{}", "k", longest_s=0.2)
    assert answer.outcome is Outcome.LATER
    assert answer.words
    thread.join(5)
    server.close()
    assert not thread.is_alive()


def test_nobody_there_and_no_such_host() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert "refused" in post(webhook(f"http://127.0.0.1:{port}/secret"), "{}", "k").words
    assert "secret" not in post(webhook(f"http://127.0.0.1:{port}/secret"), "{}", "k").words
    assert post(webhook("http://no-such-host.invalid/"), "{}", "k").outcome is Outcome.LATER


def test_certificate_must_be_trusted(receiver: Hook, certificate: tuple[Path, Path]) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    receiver.server.socket = context.wrap_socket(receiver.server.socket, server_side=True)
    url = f"https://127.0.0.1:{receiver.port}/hook"
    answer = post(webhook(url), "{}", "k")
    assert answer.outcome is Outcome.LATER
    assert "not trusted" in answer.words
    trusting = Receiver(kind=ReceiverKind.WEBHOOK, url=url, ca_file=str(certificate[0]))
    assert post(trusting, "{}", "k").outcome is Outcome.TAKEN
    other = Receiver(kind=ReceiverKind.WEBHOOK, url=url.replace("127.0.0.1", "localhost"), ca_file=str(certificate[0]))
    assert "not trusted" in post(other, "{}", "k").words


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    import subprocess  # noqa: PLC0415 - only here

    folder = tmp_path_factory.mktemp("tls")
    names = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    command = ["/usr/bin/openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    files = ["-keyout", str(folder / "key"), "-out", str(folder / "cert"), "-days", "2"]
    subprocess.run([*command, *names, *files], check=True, capture_output=True)
    return folder / "cert", folder / "key"


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("ftp://host/", "must begin with http"),
        ("alertmanager:9093", "must begin with http"),
        ("https://", "name a host"),
        ("https://user:pw@host/", "holds a password"),
        ("https://host:99999/", "is none"),
        ("https://host/a b", "character"),
        ("http://elsewhere/hook", "everybody on the way"),
    ],
)
def test_address_that_cannot_be_used_is_refused_at_once(url: str, words: str) -> None:
    with pytest.raises(InputError, match=words) as refused:
        check_receiver(Receiver(kind=ReceiverKind.WEBHOOK, url=url, token_file="/etc/token"))  # noqa: S106 - a path
    assert "pw" not in str(refused.value)


def test_name_and_place_of_a_receiver_tell_no_secret() -> None:
    one = check_receiver(webhook("https://hooks.example.org:8443/services/T0/SECRET"))
    assert one.place == "webhook https://hooks.example.org:8443"
    assert "SECRET" not in one.name
    manager = Receiver(kind=ReceiverKind.ALERTMANAGER, url="http://am:9093/prefix/")
    assert manager.place == "Alertmanager http://am:9093"
    with pytest.raises(InputError, match="the address of an Alertmanager must begin"):
        check_receiver(Receiver(kind=ReceiverKind.ALERTMANAGER, url="am:9093"))
    assert manager.address == "http://am:9093/prefix/api/v2/alerts"
    assert manager.name != one.name
