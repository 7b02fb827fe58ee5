"""Network namespaces as hosts: each with an address, an sshd and a host key of its own, behind a cable that can be cut.

Nothing outside a folder and the namespaces is written; what runs in a namespace is ended by its number.
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

PROGRAMS = ("ip", "ssh", "ssh-keygen", "sshd", "unshare", "mount")
READY_S = 15.0
END_S = 5.0
_NET = os.getpid() % 250  # others may run these tests at the same time

_INSIDE = ("ip", "netns", "exec")
_WITH_OWN_MOUNTS = ("unshare", "-m", "setpriv", "--pdeathsig", "KILL", "sh", "-c")

_CONF = """\
{more}
Port 22
HostKey {folder}/{name}.key
AuthorizedKeysFile {folder}/authorized_keys
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin prohibit-password
PidFile none
PrintMotd yes
LogLevel ERROR
"""


def why_not() -> str:
    """Why there can be no such hosts here; empty if there can."""
    missing = [program for program in PROGRAMS if shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is None]
    if missing:
        return f"{', '.join(missing)} not installed: apt-get install -y --no-install-recommends openssh-server iproute2"
    if os.geteuid():
        return "only root may make network namespaces"
    name = f"pardbg-try-{os.getpid()}"
    try:
        _run("ip", "netns", "add", name)
    except subprocess.CalledProcessError as error:
        return f"no network namespace can be made: {error.stderr.strip()}"
    _run("ip", "netns", "del", name)
    return ""


@dataclass(frozen=True, kw_only=True)
class Host:
    """A host with its address. ``cable`` is our end of the only way there."""

    name: str
    address: str
    cable: str

    def cut(self) -> None:
        """From now on nothing gets there, and nothing says so."""
        _run("ip", "link", "set", self.cable, "down")

    def pids(self) -> set[int]:
        """Everything that runs there."""
        return {int(pid) for pid in _run("ip", "netns", "pids", self.name).split()}


@dataclass(frozen=True, kw_only=True)
class Network:
    """Hosts, and the folder with keys and the configuration of ssh (``-F``)."""

    folder: Path
    hosts: list[Host] = field(default_factory=list)
    _servers: "list[subprocess.Popen[bytes]]" = field(default_factory=list, repr=False)

    @property
    def options(self) -> tuple[str, ...]:
        """For ssh: as if the folder were the user's own .ssh."""
        return ("-F", str(self.folder / "config"))

    def add(self, more: str = "", *, is_known: bool = True, has_sshd: bool = True) -> Host:
        """A host more; ``more`` is for its sshd's configuration."""
        number = len(self.hosts)
        name = f"pardbg-{os.getpid()}-{number}"
        host = Host(name=name, address=f"10.213.{_NET}.{4 * number + 2}", cable=f"pdb{os.getpid() % 100000}-{number}")
        self.hosts.append(host)
        _run("ip", "netns", "add", name)
        _run("ip", "link", "add", host.cable, "type", "veth", "peer", "name", "eth0", "netns", name)
        _run("ip", "addr", "add", f"10.213.{_NET}.{4 * number + 1}/30", "dev", host.cable)
        _run("ip", "link", "set", host.cable, "up")
        for words in (
            ["addr", "add", f"{host.address}/30", "dev", "eth0"],
            ["link", "set", "eth0", "up"],
            ["link", "set", "lo", "up"],
        ):
            _run("ip", "-n", name, *words)
        if has_sshd:
            self._start_sshd(host, more)
        if is_known:
            key = (self.folder / f"{name}.key.pub").read_text() if has_sshd else ""
            with (self.folder / "known_hosts").open("a") as known:
                known.write(f"{host.address} {key}" if key else "")
        return host

    def _start_sshd(self, host: Host, more: str) -> None:
        _make_key(self.folder / f"{host.name}.key")
        conf = self.folder / f"{host.name}.conf"
        conf.write_text(_CONF.format(folder=self.folder, name=host.name, more=more))
        run = "mount -t tmpfs tmpfs /run && mkdir /run/sshd && exec $(command -v sshd || echo /usr/sbin/sshd) -D -e -f"
        with (self.folder / f"{host.name}.log").open("wb") as log:
            server = subprocess.Popen(
                [*_INSIDE, host.name, *_WITH_OWN_MOUNTS, f"{run} {conf}"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._servers.append(server)
        until_s = time.monotonic() + READY_S
        while True:
            with contextlib.suppress(OSError), socket.create_connection((host.address, 22), timeout=1.0):
                return
            if time.monotonic() > until_s:
                raise TimeoutError(f"no sshd on {host.address}: {(self.folder / f'{host.name}.log').read_text()}")
            time.sleep(0.05)

    def end(self) -> None:
        """Ends what runs on the hosts, and takes them away."""
        for host in self.hosts:
            until_s = time.monotonic() + END_S
            while (pids := host.pids()) and time.monotonic() < until_s:
                for pid in pids:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                for server in self._servers:
                    server.poll()
                time.sleep(0.05)
            _run("ip", "link", "del", host.cable)  # a connection that was cut would keep it for minutes
            _run("ip", "netns", "del", host.name)
        for server in self._servers:
            server.wait(timeout=END_S)


@contextlib.contextmanager
def running_network(folder: Path) -> Iterator[Network]:
    """A network without hosts so far."""
    network = Network(folder=folder)
    _make_key(folder / "id")
    shutil.copy(folder / "id.pub", folder / "authorized_keys")
    (folder / "known_hosts").touch()
    (folder / "config").write_text(
        f"IdentityFile {folder}/id\nIdentitiesOnly yes\nUserKnownHostsFile {folder}/known_hosts\n"
        "GlobalKnownHostsFile /dev/null\nIdentityAgent none\n"
    )
    try:
        yield network
    finally:
        network.end()


def _make_key(path: Path) -> None:
    _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path))


def _run(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout
