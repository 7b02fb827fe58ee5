"""Accounting for a test cluster: a database and `slurmdbd` in its folder, on loopback. Adds 2 to 3 s to its start.

Needs `PACKAGES` besides the cluster's own. They start no service and add 8 s to an installation.
"""

import contextlib
import shutil
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.slurm.cluster import Cluster

PACKAGES = ("slurmdbd", "mariadb-server-core", "mariadb-client-core")
PROGRAMS = ("slurmdbd", "mariadbd", "mariadb-install-db")
READY_S = 60.0
POLL_S = 0.05

_CONF = """\
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
DbdHost={host}
DbdAddr=127.0.0.1
DbdPort={port}
SlurmUser=root
LogFile={folder}/log/slurmdbd.log
PidFile={folder}/run/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={database_port}
StorageUser=root
StorageLoc=slurm
"""


def why_no_accounting() -> str:
    """What is missing; empty if nothing is."""
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    return (
        f"{', '.join(missing)} not installed: apt-get install -y --no-install-recommends {' '.join(PACKAGES)}"
        if missing
        else ""
    )


def accounting_lines(folder: Path, port: int) -> str:
    """For ``slurm.conf``."""
    return (
        "AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageHost=127.0.0.1\n"
        f"AccountingStoragePort={port}\nAccountingStoragePass={folder}/munge/socket"
    )


def start_accounting(cluster: "Cluster", host: str, port: int, database_port: int) -> None:
    """Starts the database, then its daemon, and waits until each answers. Munge must run.

    Raises:
        TimeoutError: if one of them does not come up.
    """
    folder = cluster.folder
    where = ["--no-defaults", f"--datadir={folder}/database", "--user=root"]
    install = ["mariadb-install-db", *where, "--auth-root-authentication-method=normal", "--skip-test-db"]
    subprocess.run(install, stdin=subprocess.DEVNULL, capture_output=True, check=True, timeout=READY_S)
    network = [f"--socket={folder}/database/socket", "--bind-address=127.0.0.1", f"--port={database_port}"]
    cluster.launch("mariadbd", "mariadbd", *where, *network, "--innodb-buffer-pool-size=16M", "--innodb-log-file-size=8M")
    _wait_until((folder / "database" / "socket").exists, "mariadbd")
    conf = folder / "slurmdbd.conf"
    conf.touch(mode=0o600)
    conf.write_text(_CONF.format(folder=folder, host=host, port=port, database_port=database_port))
    cluster.launch("slurmdbd", "slurmdbd", "-D")
    _wait_until(lambda: _listens(port), "slurmdbd")


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def _wait_until(is_ready: Callable[[], bool], name: str) -> None:
    until_s = time.monotonic() + READY_S
    while not is_ready():
        if time.monotonic() > until_s:
            raise TimeoutError(f"{name} does not answer")
        time.sleep(POLL_S)
