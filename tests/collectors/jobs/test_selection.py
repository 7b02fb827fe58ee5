"""Which world the user means, and what is said where that is none or several."""

import shlex

import pytest
from tests.collectors.jobs.processes import (
    TORCHRUN,
    make_census,
    make_process,
    make_silent,
    make_zombie,
    rank_environment,
    torchrun_world,
)

from pardbg.collectors.jobs.process import Census, JobProcess
from pardbg.collectors.jobs.query import ChosenJob, JobQuery
from pardbg.collectors.jobs.selection import select_world
from pardbg.watchdog.errors import AmbiguousJobError, InputError
from pardbg.watchdog.model.evidence import Absence, Evidence
from pardbg.watchdog.model.names import AbsenceReason, CollectorName


def one_rank(pid: int, **names: str) -> JobProcess:
    """A world of one, with a master of its own."""
    return make_process(pid, 1, rank_environment(0, 1, port=10_000 + pid, **names), maps_torch=True)


def chosen(census: Census, job: str | None = None, *pids: int, size: int | None = None) -> ChosenJob:
    return select_world(census, JobQuery(job=job, pids=pids, world_size=size))


def lowest_pid(census: Census, job: str | None = None, *pids: int, size: int | None = None) -> int:
    return chosen(census, job, *pids, size=size).world.ranks[0].pid


def refusal(census: Census, job: str | None = None, *pids: int, size: int | None = None) -> str:
    with pytest.raises(InputError) as caught:
        chosen(census, job, *pids, size=size)
    assert not isinstance(caught.value, AmbiguousJobError)
    text = f"{caught.value}; {caught.value.remedy}"
    assert "\n" not in text
    return text


def choices(census: Census, job: str | None = None, *pids: int, size: int | None = None) -> tuple[str, ...]:
    with pytest.raises(AmbiguousJobError) as caught:
        chosen(census, job, *pids, size=size)
    return caught.value.choices


MANY = make_census(
    one_rank(10, PARDBG_JOB="night"),
    one_rank(20, SLURM_JOB_ID="1234"),
    one_rank(30, SLURM_JOB_ID="1300", SLURM_ARRAY_JOB_ID="1298", SLURM_ARRAY_TASK_ID="7"),
    one_rank(40, SLURM_JOB_ID="1401", SLURM_HET_JOB_ID="1400", SLURM_HET_JOB_OFFSET="1"),
    one_rank(50, KUBERNETES_SERVICE_HOST="x", POD_NAME="llm-worker-0", POD_NAMESPACE="ml"),
    one_rank(60, TORCHELASTIC_RUN_ID="exp"),
    one_rank(70, TORCHELASTIC_RUN_ID="777"),
    one_rank(80, TORCHELASTIC_RUN_ID="team/exp"),
    one_rank(90, PARDBG_JOB="888", SLURM_JOB_ID="889"),
    one_rank(95, SLURM_JOB_ID="888"),
)


@pytest.mark.parametrize(
    ("job", "pid", "source", "job_id"),
    [
        ("night", 10, "run", "night"),
        ("run:night", 10, "run", "night"),
        ("1234", 20, "slurm", "1234"),
        ("1234.0", 20, "slurm", "1234.0"),
        ("slurm:1234", 20, "slurm", "1234"),
        ("1298_7", 30, "slurm", "1298_7"),
        ("1298", 30, "slurm", "1298"),
        ("1300", 30, "slurm", "1300"),
        ("1400+1", 40, "slurm", "1400+1"),
        ("1400+1.0", 40, "slurm", "1400+1.0"),
        ("ml/llm", 50, "kubernetes", "ml/llm"),
        ("k8s:ml/llm", 50, "kubernetes", "ml/llm"),
        ("exp", 60, "torchrun", "exp"),
        ("torchrun:exp", 60, "torchrun", "exp"),
        ("torchrun:777", 70, "torchrun", "777"),
        ("torchrun:team/exp", 80, "torchrun", "team/exp"),
        ("888", 90, "run", "888"),
        ("slurm:888", 95, "slurm", "888"),
    ],
)
def test_name_means_the_world_that_the_contract_says(job: str, pid: int, source: str, job_id: str) -> None:
    job_found = chosen(MANY, job)
    assert (job_found.world.ranks[0].pid, job_found.source.value, job_found.job_id) == (pid, source, job_id)


@pytest.mark.parametrize(
    ("job", "words"),
    [
        ("777", "no rank of Slurm job 777"),
        ("team/exp", "no rank of Kubernetes job team/exp"),
        ("run:exp", "no rank of a job that `pardbg run` named exp"),
        ("nothing", "run id nothing"),
        ("1298_8", "Slurm job 1298_8"),
        ("slurm:night", "Slurm job night"),
        ("k8s:other/llm", "Kubernetes job other/llm"),
    ],
)
def test_name_that_nobody_answers_to_is_refused_with_what_runs_here(job: str, words: str) -> None:
    text = refusal(MANY, job)
    assert words in text
    assert "--job night, --job 1234, --job 1298_7, --job 1400+1, --job ml/llm and 5 more" in text


def test_step_is_compared_where_the_world_knows_its_own() -> None:
    census = make_census(one_rank(10, SLURM_JOB_ID="5", SLURM_STEP_ID="0"), one_rank(11, SLURM_JOB_ID="5", SLURM_STEP_ID="1"))
    assert lowest_pid(census, "5.1") == 11
    assert len(choices(census, "5")) == 2


def test_pod_that_does_not_know_its_namespace_answers_to_any() -> None:
    assert lowest_pid(make_census(one_rank(10, KUBERNETES_SERVICE_HOST="x", HOSTNAME="llm-worker-0")), "ml/llm") == 10


def test_without_a_name_the_only_world_is_meant() -> None:
    job = chosen(make_census(*torchrun_world()))
    assert (job.world.ranks[0].pid, job.source.value, job.job_id) == (101, "local", "pid 101")
    assert chosen(make_census(one_rank(60, TORCHELASTIC_RUN_ID="exp"))).job_id == "exp"


def test_every_choice_is_a_command_that_selects_one_world() -> None:
    lines = choices(MANY)
    assert len(lines) == 10
    selected = []
    for line in lines:
        option, value = shlex.split(line, comments=True)[2:]
        selected.append(lowest_pid(MANY, value) if option == "--job" else lowest_pid(MANY, None, int(value)))
    assert selected == [10, 20, 30, 40, 50, 60, 70, 80, 90, 95]


def test_choice_tells_ranks_start_and_program() -> None:
    census = make_census(
        *torchrun_world(100, size=2), make_process(200, 1, rank_environment(4, 8, LOCAL_RANK="0", LOCAL_WORLD_SIZE="1"))
    )
    assert choices(census) == (
        "pardbg scan --pid 101  # 2 ranks, started 17 min ago, train.py",
        "pardbg scan --pid 200  # 1 of 8 ranks here, started 17 min ago, train.py",
    )


def test_two_attempts_under_one_name_are_chosen_by_pid() -> None:
    first = torchrun_world(100, TORCHELASTIC_RUN_ID="exp")
    second = torchrun_world(200, TORCHELASTIC_RUN_ID="exp", TORCHELASTIC_RESTART_COUNT="1")
    lines = choices(make_census(*first, *second), "exp")
    assert [line.split("#")[0].strip() for line in lines] == ["pardbg scan --pid 101", "pardbg scan --pid 201"]
    assert "attempt 1" in lines[1]


def test_name_with_spaces_is_quoted_for_the_shell() -> None:
    lines = choices(make_census(one_rank(10, PARDBG_JOB="my job; rm -rf"), one_rank(11, PARDBG_JOB="b")))
    assert lines[0].startswith("pardbg scan --job 'my job; rm -rf'")


def test_world_size_keeps_the_worlds_of_that_size() -> None:
    census = make_census(*torchrun_world(100, size=2), *torchrun_world(200, size=4, port=1))
    assert lowest_pid(census, size=4) == 201
    assert "of 2, 4" in refusal(census, size=3)


@pytest.mark.parametrize("pid", [100, 101, 103, 50, 300, 104, 400])
def test_pid_means_the_world_of_the_rank_it_is_or_starts_or_is_a_child_of(pid: int) -> None:
    census = make_census(
        make_process(50, 1, {}, ("bash", "-c", "x")),
        *(make_process(100, 50, {}, TORCHRUN), *torchrun_world()[1:4], make_zombie(104, 100, 9)),
        make_process(300, 102, rank_environment(1), maps_torch=None),
        make_process(400, 1, rank_environment(0), maps_torch=True, started=1),
        *torchrun_world(500, port=1),
    )
    assert lowest_pid(census, None, pid) == 101


def test_pid_above_two_worlds_means_both() -> None:
    shell = make_process(50, 1, {}, ("bash", "-c", "x"))
    launchers = [make_process(pid, 50, {}, TORCHRUN) for pid in (100, 200)]
    census = make_census(shell, *launchers, *torchrun_world(100)[1:], *torchrun_world(200, port=1)[1:])
    assert len(choices(census, None, 50)) == 2
    assert lowest_pid(census, None, 50, 202) == 201


def test_pids_of_two_worlds_mean_both() -> None:
    assert len(choices(make_census(*torchrun_world(100), *torchrun_world(200, port=1)), None, 101, 202)) == 2


def test_pids_that_say_nothing_of_a_rank_form_a_world_in_the_given_order() -> None:
    census = make_census(*(make_process(pid, 5, {}, ("python", "-c", "spawn")) for pid in (10, 11, 12)))
    world = chosen(census, None, 12, 10, 12).world
    assert [(rank.rank, rank.pid) for rank in world.ranks] == [(0, 12), (1, 10)]
    assert (world.world_size, world.job_ids) == (2, ())
    assert chosen(census, None, 12, 10, size=8).world.world_size == 8


def test_silent_process_can_be_named() -> None:
    assert lowest_pid(make_census(make_silent(10, 1)), None, 10) == 10


@pytest.mark.parametrize(
    ("pids", "size", "words"),
    [
        ((999,), None, "no process 999 runs here"),
        ((7,), None, "inside a container it is the number of 4321"),
        ((20,), None, "process 20 (bash) belongs to no world and runs no Python"),
        ((30,), None, "process 30 may not be looked into: it runs as uid 1234"),
        ((40,), None, "process 40 is a launcher that has started no rank here"),
        ((50,), None, "process 50 (python) belongs to no world and has ended"),
        ((101, 60), None, "--pid 60 says of no world that it is its rank"),
        ((60, 61), 1, "2 processes for a world of 1"),
        ((101,), 8, "no world of 8 ranks"),
    ],
)
def test_pids_that_cannot_be_used_are_refused(pids: tuple[int, ...], size: int | None, words: str) -> None:
    census = make_census(
        make_process(20, 1, {}, ("bash",)),
        make_process(30, 1, {}, uid=1234, is_denied=True),
        make_process(40, 1, {}, TORCHRUN),
        make_zombie(50, 1, 0),
        make_process(60),
        make_process(61),
        *torchrun_world(),
        make_process(4321, 1, {}, namespace_pids=(4321, 7)),
    )
    assert words in refusal(census, None, *pids, size=size)


def test_where_nothing_runs_it_is_said_what_could_not_be_seen_and_what_to_try() -> None:
    denied = Evidence(
        source=CollectorName.HOST,
        rank=None,
        observation=Absence(reason=AbsenceReason.DENIED, detail="3 Python processes may not be looked into: run as root"),
        origin="/proc",
    )
    text = refusal(make_census(evidence=(denied,)))
    assert "run as root" in text
    assert "--pid for each rank" in text
