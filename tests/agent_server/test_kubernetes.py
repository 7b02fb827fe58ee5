"""Users of Kubernetes: who they are and what they may do is what the API server says, and silence is a refusal."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from pardbg.watchdog.agent.server.options import KubernetesOptions, ServerOptions
from pardbg.watchdog.agent.server.server import AgentServer
from pardbg.watchdog.model.names import JobSource
from pardbg.watchdog.scan.nodes.messages import Find
from tests.agent_server.asking import ask
from tests.agent_server.review_server import AUDIENCE, OWN_TOKEN, Cluster, serving
from tests.agent_server.shelf import Shelf, job
from tests.agent_server.test_looks import Scan, start

TRAIN = job("train/exp7", 0, 0, names=((JobSource.RUN, "exp"), (JobSource.KUBERNETES, "train/exp7")), pid=100)
OTHER = job("infer/exp7", 0, names=((JobSource.KUBERNETES, "infer/exp7"),), pid=200)
NOWHERE = job("*/exp7", 0, names=((JobSource.KUBERNETES, "*/exp7"),), pid=300)
TORN = job("torn", 0, names=((JobSource.KUBERNETES, "train/a"), (JobSource.KUBERNETES, "infer/a")), pid=400)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with serving() as found:
        found.users = {"ada's": "ada", "bob's": "bob"}
        found.rules = {"ada get train/pods/exec", "ada create train/pods/exec", "bob get train/pods/exec", "bob get /metrics"}
        yield found


@pytest.fixture
def options(cluster: Cluster, tmp_path: Path) -> ServerOptions:
    token = tmp_path / "token"
    token.write_text(OWN_TOKEN + "\n")
    asked = KubernetesOptions(api=cluster.url, token_file=token, ca_file=None, audiences=(AUDIENCE,), within_s=0.5)
    return ServerOptions(listen="127.0.0.1:0", kubernetes=asked)


@pytest.fixture
def port(options: ServerOptions) -> Iterator[int]:
    with AgentServer(Shelf((TRAIN, OTHER, NOWHERE, TORN)), options, start_session=start) as server:
        yield server.ports[0]


def names(port: int, token: str) -> list[str]:
    return [one["job_id"] for one in ask(port, "/v1/jobs", shown=f"Bearer {token}").json["jobs"]]


def test_one_sees_the_jobs_of_namespaces_in_which_one_may(port: int, cluster: Cluster) -> None:
    assert names(port, "ada's") == names(port, "bob's") == ["train/exp7"]
    assert ask(port, "/v1/jobs/infer%2Fexp7", shown="Bearer ada's").status == 403
    assert ask(port, "/v1/jobs", shown="Bearer guessed").status == 401
    count = len(cluster.asked)
    assert names(port, "ada's") == ["train/exp7"]
    assert len(cluster.asked) == count  # it is remembered for a while


def test_looking_is_a_right_of_its_own_and_is_at_these_processes(port: int) -> None:
    refused = Scan(port, "bob's").put(Find(within_s=5.0, job="k8s:train/exp7"))
    assert (refused.status, refused.error) == (403, "job k8s:train/exp7 is not yours to look at")
    told = Scan(port, "ada's").find("k8s:train/exp7")
    assert told.endswith("--uid 0 --node n1 None (100, 101)")  # a pod without a namespace has the same name


@pytest.mark.parametrize(
    ("trouble", "told"),
    [
        (401, "Kubernetes lets this agent ask nobody (status 401): see its ClusterRole"),
        (403, "Kubernetes lets this agent ask nobody (status 403): see its ClusterRole"),
        (500, "Kubernetes answers with status 500"),
        ("slow", "Kubernetes has not answered within 0.5 s"),
        ("garbage", "Kubernetes cannot be asked: ValidationError"),
    ],
)
def test_where_kubernetes_does_not_say_nobody_is_let_in(
    port: int, cluster: Cluster, trouble: int | str, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.trouble = trouble
    refused = ask(port, "/v1/jobs", shown="Bearer ada's")
    assert (refused.status, refused.error) == (503, told)
    assert f"kubernetes: {told}" in caplog.text
    cluster.trouble = ""
    assert names(port, "ada's") == ["train/exp7"]


def test_a_token_for_another_audience_is_nobodys_and_the_agents_own_is_read_anew(
    options: ServerOptions,
) -> None:
    assert options.kubernetes is not None
    elsewhere = dataclasses.replace(options.kubernetes, audiences=("vault",))
    with AgentServer(Shelf((TRAIN,)), dataclasses.replace(options, kubernetes=elsewhere)) as server:
        assert ask(server.ports[0], "/v1/jobs", shown="Bearer ada's").status == 401
    options.kubernetes.token_file.write_text("has expired")
    with AgentServer(Shelf((TRAIN,)), options) as server:
        assert ask(server.ports[0], "/v1/jobs", shown="Bearer ada's").status == 503
        options.kubernetes.token_file.write_text(OWN_TOKEN)
        assert ask(server.ports[0], "/v1/jobs", shown="Bearer ada's").status == 200
