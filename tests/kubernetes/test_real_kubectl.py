"""The real kubectl asks a server that behaves: which questions, and what its refusals and failures become."""

import time
from pathlib import Path

import pytest
from tests.kubernetes.api_server import Api
from tests.kubernetes.pods import SECRET, pod
from tests.own_children import are_soon_gone, living_children

from pardbg.collectors.jobs.kubernetes.find import find_kubernetes_job
from pardbg.collectors.jobs.kubernetes.job import KubernetesJob
from pardbg.watchdog.errors import InputError
from pardbg.watchdog.model.evidence import Absence
from pardbg.watchdog.model.names import AbsenceReason
from pardbg.watchdog.scan.nodes.reaching import Via, choose_route

ENOUGH_S = 20.0


def find(name: str = "train/exp7", within_s: float = ENOUGH_S) -> KubernetesJob | Absence:
    return find_kubernetes_job(name, time.monotonic() + within_s)


def found(name: str = "train/exp7") -> KubernetesJob:
    job = find(name)
    assert isinstance(job, KubernetesJob), job
    return job


def names(job: KubernetesJob) -> list[str]:
    return [fate.pod.name for fate in job.fates]


def test_job_costs_one_list_of_pods(api: Api) -> None:
    api.pods = [pod("exp7-0-abcde"), pod("exp7-1-fghij"), pod("other-0", labels={"job-name": "other"})]
    job = found()
    assert names(job) == ["exp7-0-abcde", "exp7-1-fghij"]
    assert job.kind == "Job"
    assert api.selectors == ["job-name=exp7"]
    assert job.told_by == ("kubectl get pods --namespace=train --selector=job-name=exp7 --output=json",)


@pytest.mark.parametrize(
    ("label", "kind"),
    [
        ("training.kubeflow.org/job-name", "Kubeflow job"),
        ("jobset.sigs.k8s.io/jobset-name", "JobSet"),
        ("volcano.sh/job-name", "Volcano job"),
        ("ray.io/cluster", "RayCluster"),
        ("pytorch-job-name", "old PyTorchJob"),
    ],
)
def test_each_kind_of_job_is_found_by_its_label(api: Api, label: str, kind: str) -> None:
    api.pods = [pod("w-0", labels={label: "exp7"}), pod("w-1", labels={label: "exp8"})]
    job = found()
    assert (names(job), job.kind) == (["w-0"], kind)


def test_kinds_that_the_cluster_does_not_have_are_not_asked_for(api: Api) -> None:
    api.groups = ("batch/v1", "jobset.x-k8s.io/v1alpha2")
    api.pods = [pod("w-0", labels={"volcano.sh/job-name": "exp7"})]
    answer = find()
    assert isinstance(answer, Absence)
    assert answer.reason is AbsenceReason.GONE
    assert "job-name, jobset.sigs.k8s.io/jobset-name" in answer.detail
    assert api.selectors == ["job-name=exp7", "jobset.sigs.k8s.io/jobset-name=exp7"]


def test_pods_of_a_ray_job_are_those_of_its_cluster_and_not_the_one_that_submits_it(api: Api) -> None:
    labels = {"ray.io/originated-from-cr-name": "exp7"}
    api.ray_clusters = [
        {
            "kind": "RayCluster",
            "apiVersion": "ray.io/v1",
            "metadata": {"name": "exp7-x2vq4", "namespace": "train", "labels": labels},
        }
    ]
    api.pods = [pod("exp7-qqqqq"), pod("exp7-x2vq4-worker-0", labels={"ray.io/cluster": "exp7-x2vq4"})]
    job = found()
    assert (names(job), job.kind) == (["exp7-x2vq4-worker-0"], "RayJob")


def test_single_pod_is_found_by_its_name(api: Api) -> None:
    api.pods = [pod("debug", labels={})]
    assert names(found("train/debug")) == ["debug"]


def test_pages_are_put_together(api: Api) -> None:
    api.pods = [pod(f"exp7-{number:04}") for number in range(1203)]
    assert len(found().running) == 1203
    assert sum("continue=" in path for path in api.asked) == 2


def test_page_that_has_expired_is_a_reason(api: Api) -> None:
    api.pods = [pod(f"exp7-{number:04}") for number in range(600)]
    api.page_trouble = 410
    answer = find()
    assert isinstance(answer, Absence)
    assert "too old" in answer.detail


@pytest.mark.parametrize(
    ("trouble", "reason", "words"),
    [
        (401, AbsenceReason.DENIED, "must be logged in"),
        (403, AbsenceReason.DENIED, "cannot list resource"),
        (500, AbsenceReason.UNREADABLE, "no leader"),
        (503, AbsenceReason.UNREACHABLE, "unable to handle"),
        ("garbage", AbsenceReason.UNREADABLE, ""),
        ("cut", AbsenceReason.UNREACHABLE, "EOF"),
    ],
)
def test_trouble_is_a_reason_and_ends_the_questions(api: Api, trouble: int | str, reason: AbsenceReason, words: str) -> None:
    api.groups = ("batch/v1", "kubeflow.org/v1")
    api.trouble = trouble
    answer = find()
    assert isinstance(answer, Absence)
    assert (answer.reason, words in answer.detail) == (reason, True), answer
    assert set(api.selectors) == {"job-name=exp7"}
    assert "\n" not in answer.detail


@pytest.mark.parametrize("trouble", ["slow", 429])
def test_server_that_is_slow_or_busy_costs_no_more_than_the_deadline(api: Api, trouble: int | str) -> None:
    api.trouble = trouble
    before, began_s = living_children(), time.monotonic()
    answer = find(within_s=2.5)
    assert time.monotonic() - began_s < 4.0
    assert isinstance(answer, Absence)
    assert answer.reason is AbsenceReason.TIMED_OUT, answer
    assert are_soon_gone(before)


def test_server_that_is_not_there_is_unreachable(api: Api, tmp_path: Path) -> None:
    api.url = "http://127.0.0.1:1"
    api.write_config(tmp_path)
    answer = find()
    assert isinstance(answer, Absence)
    assert answer.reason is AbsenceReason.UNREACHABLE, answer


def test_kubectl_without_a_cluster_leaves_the_scan_to_this_machine(api: Api, tmp_path: Path) -> None:  # noqa: ARG001 - its kubectl
    (tmp_path / "kubeconfig").unlink()
    answer = find()
    assert isinstance(answer, Absence)
    assert answer.reason is AbsenceReason.SWITCHED_OFF, answer
    assert choose_route(Via.AUTO, "k8s:train/exp7", None, None).way is None
    with pytest.raises(InputError, match="kubectl"):
        choose_route(Via.KUBECTL, "k8s:train/exp7", None, None)


def test_no_secret_of_a_pod_is_kept(api: Api) -> None:
    api.pods = [pod("exp7-0"), pod("exp7-1", phase="Failed")]
    assert SECRET not in repr(found())


def test_route_leads_into_the_pods_that_run(api: Api) -> None:
    api.pods = [pod("exp7-0"), pod("exp7-1", phase="Failed", reason="Evicted", message="low on memory")]
    route = choose_route(Via.AUTO, "train/exp7", None, None)
    assert route.way is not None
    assert route.way.nodes == ("exp7-0",)
    command = " ".join(route.way.launches[0].command)
    assert command == "kubectl exec --stdin --namespace train exp7-0 --container main -- pardbg collect --node exp7-0"
    assert route.unreached["exp7-1"].reason is AbsenceReason.GONE
    assert "low on memory" in route.unreached["exp7-1"].detail


def test_route_stays_here_where_here_is_a_pod_of_the_job(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    api.pods = [pod("exp7-0")]
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("POD_NAME", "exp7-0")
    assert choose_route(Via.AUTO, "train/exp7", None, None).way is None
    assert choose_route(Via.KUBECTL, "train/exp7", None, None).way is not None


@pytest.mark.parametrize("job", [None, "1234", "slurm:7", "torchrun:x"])
def test_way_of_kubectl_needs_a_name_of_kubernetes(job: str | None) -> None:
    with pytest.raises(InputError, match="name of a job of Kubernetes"):
        choose_route(Via.KUBECTL, job, None, None)


@pytest.mark.parametrize("name", ["train/--all", "train/a=b", "train/a,b", "-A/x", "train/X", "a/b/c", "train/"])
def test_what_is_no_name_of_kubernetes_is_never_put_to_kubectl(api: Api, name: str) -> None:
    answer = find(name)
    assert isinstance(answer, Absence)
    assert answer.reason is AbsenceReason.UNSUPPORTED
    assert api.asked == []
