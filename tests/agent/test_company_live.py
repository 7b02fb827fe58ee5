"""Two agents, one job over both of their nodes: one of them leads, and the other takes over when it is gone."""

import hashlib
import signal
import socket
from pathlib import Path

import pytest
from tests.agent.running import RunningAgent, get, running_agents, wait_for
from tests.live.running import running_job

pytestmark = pytest.mark.live

ON_NODES = 'export SLURMD_NODENAME=n$((RANK / 2 + 1)) LOCAL_RANK=$((RANK % 2)) LOCAL_WORLD_SIZE=2 MASTER_ADDR={}; exec "$@"'
TOKEN = "for-agents-only"  # noqa: S105 - of this test


def own_address() -> str:
    """An address of this machine that is not loopback's, which would mean that all ranks are here."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        try:
            asked.connect(("192.0.2.1", 9))  # sends nothing
        except OSError:
            pytest.skip("this machine has loopback alone")
        return str(asked.getsockname()[0])


def state_of(agent: RunningAgent, job: str) -> str:
    """What an agent shows of a job."""
    found = get(f"http://127.0.0.1:{agent.port}/v1/jobs", TOKEN) or {"jobs": []}
    return next((one["state"] for one in found["jobs"] if one["job_id"] == job), "")


@pytest.mark.parametrize("is_killed", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["leads", "is-killed"])
def test_one_agent_leads_and_the_next_takes_over(tmp_path: Path, is_killed: bool) -> None:  # noqa: FBT001
    tokens, token = tmp_path / "tokens", tmp_path / "token"
    for path, text in ((tokens, f"sha256:{hashlib.sha256(TOKEN.encode()).hexdigest()} admin look\n"), (token, TOKEN)):
        path.touch(mode=0o600)
        path.write_text(text)
    options = ("--silent-after", "4", "--silent-at-most", "6", "--tokens", str(tokens), "--peer-token-file", str(token))
    with running_agents("n1", "n2", options=options) as (first, second):
        prefix = ["sh", "-c", ON_NODES.format(own_address()), "-"]
        job = running_job(
            "train", "--fault", "lock", folder=tmp_path, launcher="plain", prefix=prefix, env={"PARDBG_JOB": "both"}
        )
        with job as running:
            running.wait_until_hung()
            opened = wait_for(lambda: first.incidents("both"), 60.0, first.tell)
            wait_for(lambda: state_of(second, "both") == "hung", 30.0, second.tell)
            assert second.incidents("both") == [], f"{first.tell()}\n{second.tell()}"
            if is_killed:
                first.end(signal.SIGKILL)
                wait_for(lambda: second.incidents("both"), 90.0, second.tell)

    verdict = opened[0]["report"]["verdict"]
    assert [(culprit["rank"], culprit["host"]) for culprit in verdict["culprits"]] == [(2, "n2")], verdict
    assert verdict["victims"] == [0, 1, 3]
