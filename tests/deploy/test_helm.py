"""The Helm chart: linted and rendered by Helm itself, checked against the schemas of Kubernetes and of the operator."""

import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]  # ships no types
from jsonschema import Draft7Validator  # type: ignore[import-untyped]  # ships no types

import pardbg
from tests.deploy.agent_options import unknown_options

helm: Any = pytest.importorskip("helm_python", reason="no Helm: pip install helm-python-sdk (x86_64)")
kubernetes: Any = pytest.importorskip("kubernetes_validate", reason="no schemas: pip install kubernetes-validate")

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "deploy/helm/pardbg"
OPERATOR = Path(__file__).parent / "operator_schemas.yaml"
KUBERNETES = ("1.25.0", "1.37.0")
EVERYTHING = {
    "tokens": {"secretName": "pardbg-tokens"},
    "openMetrics": True,
    "webhooks": ['https://hooks.example.org/a?b="c"'],
    "alertmanagers": ["http://alertmanager-operated.monitoring:9093"],
    "extraArgs": ["--silent-after=60", "--keep-days=7"],
    "gpu": {"runtimeClassName": "nvidia"},
    "nodeSelector": {"nvidia.com/gpu.present": "true"},
    "priorityClassName": "system-node-critical",
    "imagePullSecrets": [{"name": "registry"}],
    "affinity": {"nodeAffinity": {}},
    "podLabels": {"team": "ml"},
    "podAnnotations": {"example.org/a": "b"},
    "seLinuxOptions": {"type": "spc_t"},
    "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
    "prometheusRule": {"enabled": True, "labels": {"release": "prometheus"}},
    "dashboards": {"enabled": True},
    "networkPolicy": {"enabled": True, "from": [{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}]},
}
PARTS = ("serviceMonitor", "prometheusRule", "dashboards", "networkPolicy")


def render(values: dict[str, Any], release: str = "pardbg") -> dict[str, Any]:
    """Objects by kind."""
    with helm.Chart.load(str(CHART)) as chart:
        texts = chart.render(values, name=release, namespace="gpu")
    found = [item for name, text in texts.items() if name.endswith(".yaml") for item in yaml.safe_load_all(text) if item]
    kinds = {item["kind"]: item for item in found}
    assert len(kinds) == len(found)
    return kinds


def options_of(objects: dict[str, Any]) -> list[str]:
    arguments: list[str] = objects["DaemonSet"]["spec"]["template"]["spec"]["containers"][0]["args"]
    return arguments


def operator_schemas() -> dict[str, Any]:
    schemas: dict[str, Any] = yaml.safe_load(OPERATOR.read_text())
    return schemas


def test_helm_finds_nothing_to_say() -> None:
    found = helm.lint(str(CHART), EVERYTHING, strict=True)
    assert found["errors"] == []
    assert [message for message in found["messages"] if message["error"] != "icon is recommended"] == []


@pytest.mark.parametrize(
    ("values", "version"), [({}, KUBERNETES[0]), (EVERYTHING, KUBERNETES[1])], ids=["defaults", "everything"]
)
def test_kubernetes_knows_every_field(values: dict[str, Any], version: str) -> None:
    for kind, item in render(values).items():
        if kind in operator_schemas():
            errors = [error.message for error in Draft7Validator(operator_schemas()[kind]).iter_errors(item)]
            assert errors == []
        else:
            kubernetes.validate(item, version, strict=True)


def test_a_misspelt_field_would_be_found() -> None:
    item = render({})["DaemonSet"]
    item["spec"]["template"]["spec"]["hostPid"] = True
    with pytest.raises(kubernetes.ValidationError, match="hostPid"):
        kubernetes.validate(item, KUBERNETES[-1], strict=True)


@pytest.mark.parametrize(
    "values",
    [
        {"tls": {"secretName": ""}},
        {"serviceMonitor": {"enable": True}},
        {"webhooks": ["hooks.example.org"]},
        {"port": "9475"},
        {"statePath": "var/lib"},
    ],
)
def test_values_that_make_no_sense_are_refused(values: dict[str, Any]) -> None:
    with helm.Chart.load(str(CHART)) as chart, pytest.raises(helm.HelmValuesError):
        chart.validate_schema(values)


def test_every_option_is_one_of_the_agent() -> None:
    options = options_of(render(EVERYTHING))
    assert options[0] == "agent"
    assert unknown_options(" ".join(options)) == set()


def test_optional_objects_are_there_only_when_asked_for() -> None:
    plain = {"DaemonSet", "Service", "ServiceAccount", "ClusterRole", "ClusterRoleBinding"}
    assert set(render({})) == plain
    optional = {part: set(render({part: EVERYTHING[part]})) - plain for part in PARTS}
    assert optional == {
        "serviceMonitor": {"ServiceMonitor"},
        "prometheusRule": {"PrometheusRule"},
        "dashboards": {"ConfigMap"},
        "networkPolicy": {"NetworkPolicy"},
    }


def test_pod_has_no_more_rights_than_told() -> None:
    pod = render(EVERYTHING)["DaemonSet"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    rights = container["securityContext"]
    assert rights["capabilities"] == {"drop": ["ALL"], "add": ["SYS_PTRACE", "DAC_READ_SEARCH"]}
    assert (rights["privileged"], rights["allowPrivilegeEscalation"], rights["readOnlyRootFilesystem"]) == (False, False, True)
    assert (pod["hostPID"], pod.get("hostNetwork"), pod.get("hostIPC")) == (True, None, None)
    assert [volume["name"] for volume in pod["volumes"] if "hostPath" in volume] == ["state"]
    assert {volume["secret"]["defaultMode"] for volume in pod["volumes"] if "secret" in volume} == {0o400}
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
    assert "nvidia.com/gpu" not in container["resources"]["limits"]
    verbs = {(rule["resources"][0], *rule["verbs"]) for rule in render({})["ClusterRole"]["rules"]}
    assert verbs == {("tokenreviews", "create"), ("subjectaccessreviews", "create")}


@pytest.mark.parametrize("release", ["pardbg", "watch"])
def test_parts_find_each_other(release: str) -> None:
    objects = render(EVERYTHING, release)
    labels = objects["DaemonSet"]["spec"]["template"]["metadata"]["labels"]
    selectors = [
        objects["DaemonSet"]["spec"]["selector"]["matchLabels"],
        objects["Service"]["spec"]["selector"],
        objects["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"],
    ]
    assert all(selector.items() <= labels.items() for selector in selectors)
    monitor = objects["ServiceMonitor"]["spec"]
    assert monitor["selector"]["matchLabels"].items() <= objects["Service"]["metadata"]["labels"].items()
    assert monitor["endpoints"][0]["tlsConfig"]["serverName"] == f"{objects['Service']['metadata']['name']}.gpu.svc"
    assert objects["Service"]["metadata"]["labels"][monitor["jobLabel"]] == "pardbg"  # what the alerts look for
    account = objects["DaemonSet"]["spec"]["template"]["spec"]["serviceAccountName"]
    assert objects["ServiceAccount"]["metadata"]["name"] == account == objects["ClusterRoleBinding"]["subjects"][0]["name"]
    assert objects["ClusterRoleBinding"]["roleRef"]["name"] == objects["ClusterRole"]["metadata"]["name"]


def test_rules_and_dashboards_are_those_of_the_project_also_in_the_package(tmp_path: Path) -> None:
    objects = render(EVERYTHING)
    assert objects["PrometheusRule"]["spec"] == yaml.safe_load((ROOT / "dashboards/rules/pardbg-alerts.yaml").read_text())
    assert objects["ConfigMap"]["data"] == {path.name: path.read_text() for path in (ROOT / "dashboards/json").glob("*.json")}
    assert sum(map(len, objects["ConfigMap"]["data"].values())) < 900_000  # Kubernetes takes 1 MiB
    with helm.Chart.load(str(CHART)) as chart:
        package = chart.save(str(tmp_path))
    with tarfile.open(package) as archive:
        names = archive.getnames()
    assert "pardbg/files/rules/pardbg-alerts.yaml" in names
    assert "pardbg/files/dashboards/pardbg-job.json" in names


def test_version_is_that_of_the_project() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == pardbg.__version__
