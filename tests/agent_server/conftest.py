"""Certificates for all tests of the agent's server, and folders short enough for a socket."""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from pardbg.watchdog.bench.certificates import Pair, make_authority, sign


@dataclass(frozen=True)
class Site:
    """A site's authority, and what it has signed; and one that nobody trusts."""

    authority: Pair
    agent: Pair
    user: Pair
    admin: Pair
    stranger: Pair
    peer: Pair
    forger: Pair
    forged: Pair


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    folder = tmp_path_factory.mktemp("site")
    authority, forger = make_authority(folder), make_authority(folder, "forger")
    return Site(
        authority=authority,
        agent=sign(authority, folder, "n1", ["127.0.0.1", "n1"]),
        user=sign(authority, folder, "nobody"),
        admin=sign(authority, folder, "root"),
        stranger=sign(authority, folder, "who-is-that"),
        peer=sign(authority, folder, "n2", ["n2"]),
        forger=forger,
        forged=sign(forger, folder, "root", ["127.0.0.1"], file="forged"),
    )


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder that everybody may enter."""
    with tempfile.TemporaryDirectory(prefix="pa-", dir="/tmp") as name:
        Path(name).chmod(0o755)
        yield Path(name)
