"""Pushing dashboards with the real grafana-client, to an HTTP API that behaves like Grafana's. No real Grafana was at hand."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pardbg.watchdog.commands.dashboards import dashboards
from pardbg.watchdog.errors import InputError, PardbgError
from tests.dashboards.fake_grafana import TOKEN, FakeGrafana, fake_grafana

CLIENT = Path(sys.prefix) / "grafana"


@pytest.fixture
def grafana(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGrafana]:
    """grafana-client lies apart: installed, it replaces urllib3. So it is on the path here only."""
    if not (CLIENT / "grafana_client").is_dir():
        pytest.skip(f"no grafana-client in {CLIENT}: pip install --target {CLIENT} grafana-client")
    monkeypatch.syspath_prepend(str(CLIENT))
    monkeypatch.setenv("GRAFANA_TOKEN", TOKEN)
    with fake_grafana() as fake:
        monkeypatch.setenv("GRAFANA_URL", fake.url)
        yield fake


def push(*options: str) -> Result:
    return CliRunner().invoke(dashboards, ["push", *options], catch_exceptions=True)


def refusal(*options: str) -> PardbgError:
    error = push(*options).exception
    assert isinstance(error, PardbgError), error
    assert "\n" not in str(error)
    assert TOKEN not in f"{error} {error.remedy}"
    return error


def words(result: Result) -> list[str]:
    assert result.exit_code == 0, result.exception
    return [line.split(" http")[0] for line in result.stdout.splitlines()]


def test_first_push_makes_everything_and_the_second_nothing(grafana: FakeGrafana) -> None:
    assert words(push("--folder", "Training")) == [
        "created: folder Training",
        "created: dashboard 'pardbg: one job'",
        "created: dashboard 'pardbg: MoE routing'",
        "created: dashboard 'pardbg: all agents'",
    ]
    assert grafana.folders == {"pardbg": "Training"}
    assert {found["meta"]["folderUid"] for found in grafana.dashboards.values()} == {"pardbg"}
    assert words(push()) == [
        "unchanged: dashboard 'pardbg: one job'",
        "unchanged: dashboard 'pardbg: MoE routing'",
        "unchanged: dashboard 'pardbg: all agents'",
    ]
    assert len(grafana.saved) == 3


def test_what_was_changed_by_hand_is_put_back(grafana: FakeGrafana) -> None:
    push()
    grafana.dashboards["pardbg-job"]["dashboard"]["panels"][1]["title"] = "mine"
    assert words(push())[0] == "updated: dashboard 'pardbg: one job'"
    assert grafana.dashboards["pardbg-job"]["dashboard"]["panels"][1]["title"] != "mine"
    assert grafana.dashboards["pardbg-job"]["dashboard"]["version"] == 2


def test_dashboard_in_another_folder_is_moved(grafana: FakeGrafana) -> None:
    push()
    grafana.dashboards["pardbg-agents"]["meta"]["folderUid"] = ""
    assert words(push())[2] == "updated: dashboard 'pardbg: all agents'"


def test_dry_run_changes_nothing(grafana: FakeGrafana) -> None:
    assert words(push("--dry-run")) == [
        "would be created: folder pardbg",
        "would be created: dashboard 'pardbg: one job'",
        "would be created: dashboard 'pardbg: MoE routing'",
        "would be created: dashboard 'pardbg: all agents'",
    ]
    assert (grafana.folders, grafana.dashboards) == ({}, {})


def test_token_comes_from_a_file_and_a_wrong_one_is_a_clear_error(
    grafana: FakeGrafana, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GRAFANA_TOKEN")
    token = tmp_path / "token"
    assert "no token" in str(refusal())
    assert str(token) in str(refusal("--token-file", str(token)))
    token.write_text("glsa_wrong\n")
    error = refusal("--token-file", str(token))
    assert "401" in str(error)
    assert "--token-file" in error.remedy
    token.write_text(f"{TOKEN}\n")
    assert len(words(push("--token-file", str(token)))) == 4
    assert len(grafana.saved) == 3


@pytest.mark.parametrize(
    ("status", "answer", "said", "remedy"),
    [
        (403, {"message": "You'll need additional permissions"}, "403: You'll need additional permissions", "Editor"),
        (
            412,
            {"status": "version-mismatch", "message": "changed by someone else"},
            "412: changed by someone else",
            "push again",
        ),
        (500, {"message": "database is locked"}, "500: database is locked", "its log"),
        (502, "<html>Bad Gateway</html>", "refused the folder with 502", "its log"),
        (200, "<html>Log in</html>", "answers something else than Grafana", "login page"),
    ],
)
def test_refusal_says_what_where_why_and_what_to_try(
    grafana: FakeGrafana, status: int, answer: object, said: str, remedy: str
) -> None:
    grafana.answers.append((status, answer))
    error = refusal()
    assert said in str(error)
    assert grafana.url in str(error)
    assert remedy in error.remedy


def test_dashboard_that_somebody_changes_meanwhile_is_not_run_over(grafana: FakeGrafana) -> None:
    push()
    theirs = grafana.dashboards["pardbg-job"]
    stale = {**theirs, "dashboard": {**theirs["dashboard"], "title": "old", "version": 0}}
    grafana.answers += [(200, {"uid": "pardbg"}), (200, stale)]
    assert "412" in str(refusal())
    assert grafana.dashboards["pardbg-job"] is theirs


def test_slow_grafana_is_given_up(grafana: FakeGrafana) -> None:
    grafana.delay_s = 1.0
    error = refusal("--timeout", "0.2")
    assert "did not answer in time" in str(error)
    assert "--timeout" in error.remedy


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "grafana.example.org", "http://admin:secret@127.0.0.1:1"])
def test_address_that_is_none_is_a_clear_error(grafana: FakeGrafana, url: str) -> None:
    del grafana
    error = refusal("--url", url)
    assert "secret" not in f"{error} {error.remedy}"


def test_without_the_client_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "grafana_client", None)
    monkeypatch.setenv("GRAFANA_TOKEN", TOKEN)
    error = refusal("--url", "http://127.0.0.1:1")
    assert isinstance(error, InputError)
    assert "pardbg[grafana]" in error.remedy
