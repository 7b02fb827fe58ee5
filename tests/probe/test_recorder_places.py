"""torch's dumps and its pipe are moved where `pardbg run` has put them; the user's own stay."""

from pathlib import Path

import pytest

from pardbg.collectors.probe import places
from pardbg.collectors.probe.recorder_places import (
    DUMP_VARIABLES,
    PIPE_VARIABLE,
    drop_old_names,
    make_attempt_folder,
    move_dumps,
    move_pipe,
)
from pardbg.watchdog.run.environment import BUFFER_NAMES, DUMP_NAMES, PIPE_NAME, Request, plan_environment


def planned(root: Path) -> dict[str, str]:
    request = Request(uid=0, job="j", token="f" * 16, startup_folder="/startup", disk_root=str(root))
    return {**plan_environment({}, request).added, places.ROOT_VARIABLE: str(root)}


def test_the_names_are_those_that_run_sets() -> None:
    assert (DUMP_VARIABLES, PIPE_VARIABLE) == (DUMP_NAMES, PIPE_NAME)


def test_dumps_go_to_their_attempt_and_the_pipe_to_the_rank(tmp_path: Path) -> None:
    environment = planned(tmp_path)
    folder = make_attempt_folder(environment, 2)
    assert folder == str(tmp_path / "job-j" / "attempt2")
    move_dumps(environment, folder)
    move_pipe(environment, "/rank")
    assert {environment[name] for name in DUMP_VARIABLES} == {f"{folder}/dump_rank_"}
    assert environment[PIPE_VARIABLE] == "/rank/pipe_rank_"
    assert [path.stat().st_mode & 0o777 for path in (tmp_path / "job-j", tmp_path / "job-j" / "attempt2")] == [0o700] * 2


def test_what_the_user_has_set_stays(tmp_path: Path) -> None:
    own = dict.fromkeys((*DUMP_VARIABLES, PIPE_VARIABLE, *BUFFER_NAMES), "/mine")
    environment = {**own, places.ROOT_VARIABLE: str(tmp_path)}
    move_dumps(environment, make_attempt_folder(environment, 0))
    move_pipe(environment, "/rank")
    drop_old_names(environment, "2.9.1")
    assert environment == {**own, places.ROOT_VARIABLE: str(tmp_path)}


@pytest.mark.parametrize(
    ("version", "is_new"), [("2.4.1+cu121", False), ("2.9.0", False), ("2.10.0a0", True), ("3.0", True), ("", False)]
)
def test_old_names_go_where_torch_complains_of_them(tmp_path: Path, version: str, is_new: bool) -> None:  # noqa: FBT001 - a case
    environment = planned(tmp_path)
    before = dict(environment)
    drop_old_names(environment, version)
    gone = {BUFFER_NAMES[1], DUMP_NAMES[1]} if is_new else set()
    assert environment == {name: value for name, value in before.items() if name not in gone}


def test_an_old_name_with_a_value_of_its_own_stays() -> None:
    environment = {BUFFER_NAMES[0]: "20000", BUFFER_NAMES[1]: "7"}
    drop_old_names(environment, "2.13.0")
    assert environment == {BUFFER_NAMES[0]: "20000", BUFFER_NAMES[1]: "7"}
