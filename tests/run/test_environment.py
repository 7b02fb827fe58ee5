"""What is set for a job, exactly, and where the user's own values stay."""

import pytest

from pardbg.watchdog.run.environment import Plan, Request, plan_environment

ROOT = "/scratch/pardbg"
TOKEN = "0123456789abcdef"  # noqa: S105 - digits of a file name
REQUEST = Request(uid=1000, job="train-7b", token=TOKEN, startup_folder="/lib/startup", disk_root=ROOT)
DUMPS = f"{ROOT}/job-train-7b/dump_rank_"
EVERYTHING = {
    "PARDBG_JOB": "train-7b",
    "PYTHONPATH": "/lib/startup",
    "TORCH_FR_BUFFER_SIZE": "20000",
    "TORCH_NCCL_TRACE_BUFFER_SIZE": "20000",
    "TORCH_NCCL_DUMP_ON_TIMEOUT": "1",
    "TORCH_FR_DUMP_TEMP_FILE": DUMPS,
    "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": DUMPS,
    "TORCH_NCCL_DEBUG_INFO_PIPE_FILE": f"/tmp/pardbg-1000-{TOKEN}-",  # noqa: S108 - the form that is agreed on
}
BUFFERS = {"TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE"}
DUMP_FILES = {"TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"}
ON_TIMEOUT = {"TORCH_NCCL_DUMP_ON_TIMEOUT"}
PIPE = {"TORCH_NCCL_DEBUG_INFO_PIPE_FILE"}


def plan(present: dict[str, str]) -> Plan:
    return plan_environment(present, REQUEST)


def test_an_empty_environment_gets_exactly_this() -> None:
    assert plan({}) == Plan(job="train-7b", added=EVERYTHING, kept={})


def test_what_has_nothing_to_do_with_it_changes_nothing() -> None:
    own = {"HOME": "/root", "TORCH_NCCL_ENABLE_TIMING": "1", "PARDBG_DIR": "/scratch", "PARDBG_PROBE": "0"}
    assert plan(own) == plan({})


@pytest.mark.parametrize(
    ("name", "left_out"),
    [
        ("TORCH_FR_BUFFER_SIZE", BUFFERS),
        ("TORCH_NCCL_TRACE_BUFFER_SIZE", BUFFERS),
        ("TORCH_TRACE_BUFFER_SIZE", BUFFERS),
        ("TORCH_FR_DUMP_TEMP_FILE", DUMP_FILES),
        ("TORCH_NCCL_DEBUG_INFO_TEMP_FILE", DUMP_FILES),
        ("TORCH_FR_DUMP_DYNAMIC_FILE_NAME", DUMP_FILES),
        ("TORCH_NCCL_DUMP_ON_TIMEOUT", ON_TIMEOUT),
        ("TORCH_FR_DUMP_ON_TIMEOUT", ON_TIMEOUT),
        ("TORCH_NCCL_DEBUG_INFO_PIPE_FILE", PIPE),
        ("TORCH_FR_DEBUG_INFO_PIPE_FILE", PIPE),
    ],
)
@pytest.mark.parametrize("value", ["0", "", "/mine/\udcff"])
def test_a_value_of_the_user_stays_and_so_does_what_else_means_the_same(name: str, left_out: set[str], value: str) -> None:
    decided = plan({name: value})
    assert decided.kept == {name: value}
    assert decided.added == {added: text for added, text in EVERYTHING.items() if added not in left_out}


def test_two_values_of_the_user_for_one_setting_both_stay() -> None:
    own = {"TORCH_FR_BUFFER_SIZE": "5", "TORCH_NCCL_TRACE_BUFFER_SIZE": "6"}
    assert plan(own).kept == own


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ("", "/lib/startup"),
        ("/a", "/lib/startup:/a"),
        ("/a:", "/lib/startup:/a:"),
        (":/a", "/lib/startup::/a"),
        ("/lib/startup2", "/lib/startup:/lib/startup2"),
    ],
)
def test_the_search_path_of_the_user_follows_unchanged(own: str, expected: str) -> None:
    decided = plan({"PYTHONPATH": own})
    assert (decided.added["PYTHONPATH"], decided.kept) == (expected, {})


def test_a_search_path_that_has_the_folder_already_stays() -> None:
    decided = plan({"PYTHONPATH": "/a:/lib/startup"})
    assert "PYTHONPATH" not in decided.added
    assert decided.kept == {"PYTHONPATH": "/a:/lib/startup"}


def test_a_job_started_inside_a_job_changes_nothing() -> None:
    again = plan(plan({}).added)
    assert (again.added, again.kept) == ({}, EVERYTHING)


def test_another_name_of_the_job_is_replaced() -> None:
    assert plan({"PARDBG_JOB": "old"}) == plan({})


def test_without_folders_to_trust_nothing_points_to_them() -> None:
    decided = plan_environment({}, Request(uid=1, job="j", token=TOKEN, startup_folder="", disk_root=""))
    assert set(decided.added) == {"PARDBG_JOB", *BUFFERS, *ON_TIMEOUT, *PIPE}
    assert decided.kept == {}


def test_a_job_whose_name_is_no_file_name_gets_a_folder_of_its_own() -> None:
    requests = [
        Request(uid=1, job=job, token=TOKEN, startup_folder="", disk_root="/d") for job in ("a/b", "a b", "../../etc", "a-b")
    ]
    folders = {plan_environment({}, request).added["TORCH_FR_DUMP_TEMP_FILE"] for request in requests}
    assert len(folders) == 4
    assert all(folder.startswith("/d/job-") and folder.count("/") == 3 for folder in folders)
