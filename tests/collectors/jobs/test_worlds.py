"""Which processes are ranks: told from launchers, wrappers, children and leftovers."""

import pytest
from tests.collectors.jobs.processes import (
    FORKED,
    TORCHRUN,
    absences,
    make_census,
    make_process,
    make_silent,
    rank_environment,
    torchrun_world,
)

from pardbg.collectors.jobs.process import JobProcess
from pardbg.collectors.jobs.worlds import find_worlds
from pardbg.watchdog.model.names import JobSource
from pardbg.watchdog.model.world import World

SHELL = ("bash", "-c", "python train.py")


def only_world(*processes: JobProcess) -> World:
    (world,) = find_worlds(make_census(*processes))
    return world


def pids(world: World) -> dict[int, int]:
    return {rank.rank: rank.pid for rank in world.ranks}


def test_ranks_of_a_launcher_form_one_world() -> None:
    world = only_world(*torchrun_world())
    assert pids(world) == {0: 101, 1: 102, 2: 103, 3: 104}
    assert (world.store, world.world_size, world.attempt) == ("10.0.0.1:29500", 4, 0)
    assert (world.ended, world.evidence) == ((), ())
    assert [rank.local_rank for rank in world.ranks] == [0, 1, 2, 3]
    assert world.ranks[0].is_at_home


def test_launcher_with_a_rank_in_its_environment_is_no_rank() -> None:
    """Kubernetes' PyTorchJob numbers the nodes with RANK and WORLD_SIZE."""
    launcher = make_process(100, 1, rank_environment(0, 2, LOCAL_WORLD_SIZE="x"), TORCHRUN)
    shell = make_process(99, 1, rank_environment(0, 2), ("sh", "-c", "torchrun train.py"))
    assert pids(only_world(shell, launcher, *torchrun_world()[1:])) == {0: 101, 1: 102, 2: 103, 3: 104}


def test_fork_of_a_launcher_that_has_not_started_its_program_yet_is_no_rank() -> None:
    fork = make_process(105, 100, rank_environment(1), TORCHRUN, name="pt_elastic", flags=FORKED, maps_torch=True)
    assert 105 not in pids(only_world(*torchrun_world(), fork)).values()


def test_shell_above_a_rank_is_not_the_rank() -> None:
    environment = rank_environment(0, 1)
    assert pids(only_world(make_process(10, 1, environment, SHELL), make_process(11, 10, environment))) == {0: 11}


def test_shell_alone_is_no_world() -> None:
    assert find_worlds(make_census(make_process(10, 1, rank_environment(0, 1), SHELL))) == ()


def test_python_wrapper_that_does_not_use_torch_is_not_the_rank() -> None:
    environment = rank_environment(0, 1)
    wrapper = make_process(10, 1, environment, ("python", "/bin/conda", "run"))
    assert pids(only_world(wrapper, make_process(11, 10, environment, maps_torch=True))) == {0: 11}


def test_children_of_a_rank_are_not_the_rank() -> None:
    environment = rank_environment(0, 1)
    rank = make_process(10, 1, environment, maps_torch=True)
    worker = make_process(11, 10, environment, maps_torch=None, flags=FORKED)
    shell = make_process(12, 10, environment, SHELL)
    helper = make_process(13, 12, environment, ("python", "compile.py"), maps_torch=True)
    assert pids(only_world(helper, shell, worker, rank)) == {0: 10}


def test_without_torch_the_topmost_python_is_the_rank() -> None:
    environment = rank_environment(0, 1)
    assert pids(only_world(make_process(10, 1, environment), make_process(11, 10, environment))) == {0: 10}


def test_worker_that_outlives_its_rank_is_not_taken_for_it() -> None:
    launcher, *ranks = torchrun_world()
    forked = make_process(200, 1, rank_environment(2), maps_torch=True, flags=FORKED)
    named = make_process(201, 1, rank_environment(2), maps_torch=True, name="pt_data_worker")
    helper = make_process(202, 1, rank_environment(2), ("python", "-c", "x", "--multiprocessing-fork"), maps_torch=True)
    world = only_world(launcher, *(rank for rank in ranks if rank.pid != 103), forked, named, helper)
    assert pids(world) == {0: 101, 1: 102, 3: 104}
    assert [(ended.rank, ended.pid, ended.exit_code) for ended in world.ended] == [(2, None, None)]


def test_ranks_that_are_all_forks_are_ranks() -> None:
    forks = [make_process(10 + rank, 1, rank_environment(rank, 2), flags=FORKED) for rank in range(2)]
    assert pids(only_world(*forks)) == {0: 10, 1: 11}


def test_of_two_unrelated_processes_with_one_rank_the_younger_is_the_rank() -> None:
    old = make_process(300, 1, rank_environment(1), maps_torch=True, started=1)
    world = only_world(*torchrun_world(), old)
    assert pids(world)[1] == 102
    assert absences(world.evidence) == [(1, "duplicate-rank")]
    assert "300" in str(world.evidence[0].observation)
    assert world.evidence[0].origin == "/proc/300"


def test_two_masters_are_two_worlds() -> None:
    worlds = find_worlds(make_census(*torchrun_world(100), *torchrun_world(200, port=29501)))
    assert [pids(world)[0] for world in worlds] == [101, 201]


def test_two_attempts_are_two_worlds() -> None:
    worlds = find_worlds(make_census(*torchrun_world(100), *torchrun_world(200, TORCHELASTIC_RESTART_COUNT="1")))
    assert [world.attempt for world in worlds] == [0, 1]


def test_loopback_addresses_of_two_network_namespaces_are_two_worlds() -> None:
    environment = rank_environment(0, 1, MASTER_ADDR="127.0.0.1")
    processes = (make_process(10, 1, environment, network="net:[1]"), make_process(11, 1, environment, network="net:[2]"))
    assert len(find_worlds(make_census(*processes))) == 2


def test_six_form_address_is_written_in_brackets() -> None:
    assert only_world(make_process(10, 1, rank_environment(0, 1, MASTER_ADDR="::1"))).store == "[::1]:29500"


@pytest.mark.parametrize("rank", ["-1", "x", "", "4", "99999999999"])
def test_rank_that_cannot_be_is_none(rank: str) -> None:
    assert find_worlds(make_census(make_process(10, 1, rank_environment(0) | {"RANK": rank}))) == ()


def test_world_size_that_cannot_be_is_refused() -> None:
    assert find_worlds(make_census(make_process(10, 1, rank_environment(0, 999_999_999, MASTER_ADDR="localhost")))) == ()


def test_ranks_on_the_command_line_of_one_parent_form_a_world() -> None:
    ranks = [make_process(10 + rank, 5, {}, ("python", "train.py", f"--rank={rank}")) for rank in range(3)]
    assert pids(only_world(*ranks)) == {0: 10, 1: 11, 2: 12}


def test_environment_outweighs_the_command_line() -> None:
    assert pids(only_world(make_process(10, 1, rank_environment(0, 1), ("python", "t.py", "--rank", "16")))) == {0: 10}


def test_lone_rank_on_a_command_line_is_believed_only_with_a_world_size() -> None:
    assert find_worlds(make_census(make_process(10, 1, {}, ("python", "lora.py", "--rank", "16")))) == ()
    sized = make_process(10, 1, {}, ("python", "train.py", "--rank", "1", "--world-size", "2"))
    assert pids(only_world(sized)) == {1: 10}


def test_tasks_of_slurm_that_use_torch_are_ranks() -> None:
    tasks = [
        make_process(10 + i, 5, {"SLURM_PROCID": str(i), "SLURM_NTASKS": "2", "SLURM_JOB_ID": "77"}, maps_torch=True)
        for i in range(2)
    ]
    world = only_world(*tasks)
    assert (pids(world), world.world_size, world.job_ids) == ({0: 10, 1: 11}, 2, ((JobSource.SLURM, "77"),))


def test_task_of_slurm_that_neither_uses_torch_nor_has_a_master_is_no_rank() -> None:
    assert find_worlds(make_census(make_process(10, 5, {"SLURM_PROCID": "0", "SLURM_NTASKS": "1"}))) == ()


def test_tasks_of_mpi_with_a_master_are_ranks() -> None:
    common = {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_SIZE": "2", "MASTER_ADDR": "a", "MASTER_PORT": "1"}
    tasks = [
        make_process(10 + i, 5, common | {"OMPI_COMM_WORLD_RANK": str(i), "OMPI_COMM_WORLD_LOCAL_RANK": str(i)})
        for i in range(2)
    ]
    assert [rank.local_rank for rank in only_world(*tasks).ranks] == [0, 1]


def test_slurm_task_that_starts_ranks_or_is_started_beside_them_is_no_rank() -> None:
    task = {"SLURM_PROCID": "0", "SLURM_NTASKS": "4"}
    launcher, *ranks = torchrun_world()
    own_launcher = make_process(99, 1, task, ("python", "my_launcher.py"), maps_torch=True)
    tracker = make_process(98, 100, task, ("python", "-c", "tracker"), maps_torch=True)
    child = make_process(120, 101, task, ("python", "evaluate.py"), maps_torch=True)
    under = [make_process(100, 99, task, TORCHRUN, name="pt_elastic"), *ranks]
    del launcher
    assert pids(only_world(own_launcher, tracker, *under, child)) == {0: 101, 1: 102, 2: 103, 3: 104}


def test_slurm_task_below_a_rank_without_a_launcher_is_no_rank() -> None:
    child = make_process(11, 10, {"SLURM_PROCID": "0", "SLURM_NTASKS": "4"}, ("python", "evaluate.py"), maps_torch=True)
    assert pids(only_world(make_process(10, 1, rank_environment(0, 1), maps_torch=True), child)) == {0: 10}


def test_denied_process_is_no_rank_whatever_its_command_line_says() -> None:
    hidden = make_process(10, 1, {}, ("python", "t.py", "--rank=0", "--world-size=1"), is_denied=True)
    assert find_worlds(make_census(hidden)) == ()


def test_silent_rank_below_its_shell_is_known_by_the_shell() -> None:
    ranks = [make_process(20, 1, rank_environment(0, 2), SHELL), make_silent(21, 20)]
    world = only_world(*ranks, make_process(30, 1, rank_environment(1, 2), maps_torch=True))
    assert pids(world) == {0: 21, 1: 30}


def test_silent_rank_keeps_its_number_beside_its_workers() -> None:
    launcher, *ranks = torchrun_world()
    silent = make_silent(103, 100)
    worker = make_process(300, 103, rank_environment(2), maps_torch=True, flags=FORKED)
    world = only_world(launcher, *(rank for rank in ranks if rank.pid != 103), silent, worker)
    assert pids(world) == {0: 101, 1: 102, 2: 103, 3: 104}
    assert absences(world.evidence) == [(2, "timed-out")]


@pytest.mark.parametrize("parent_pid", [1, 20])
def test_silent_rank_is_known_by_the_helpers_that_it_has_started(parent_pid: int) -> None:
    shell = make_process(20, 1, rank_environment(0, 2), SHELL)
    helper = make_process(22, 21, rank_environment(0, 2), ("python", "compile.py"), maps_torch=True)
    other = make_process(30, 1, rank_environment(1, 2), maps_torch=True)
    world = only_world(shell, make_silent(21, parent_pid), helper, other)
    assert (pids(world), absences(world.evidence)) == ({0: 21, 1: 30}, [(0, "timed-out")])


def test_silent_process_that_has_started_several_ranks_is_none_of_them() -> None:
    ranks = [make_process(30 + rank, 21, rank_environment(rank, 2), maps_torch=True) for rank in range(2)]
    assert pids(only_world(make_silent(21, 1), *ranks)) == {0: 30, 1: 31}


@pytest.mark.parametrize(
    ("environment", "ids"),
    [
        ({"PARDBG_JOB": "night"}, [("run", "night")]),
        ({"SLURM_JOB_ID": "12", "SLURM_STEP_ID": "0"}, [("slurm", "12"), ("slurm", "12.0")]),
        (
            {"SLURM_JOB_ID": "12", "SLURM_ARRAY_JOB_ID": "10", "SLURM_ARRAY_TASK_ID": "2"},
            [("slurm", "10_2"), ("slurm", "12"), ("slurm", "10")],
        ),
        (
            {"SLURM_JOB_ID": "13", "SLURM_HET_JOB_ID": "12", "SLURM_HET_JOB_OFFSET": "1"},
            [("slurm", "12+1"), ("slurm", "13"), ("slurm", "12")],
        ),
        (
            {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "POD_NAME": "llm-worker-0", "POD_NAMESPACE": "ml"},
            [("kubernetes", "ml/llm")],
        ),
        ({"KUBERNETES_SERVICE_HOST": "x", "HOSTNAME": "llm-7-node-0-1-x9abc"}, [("kubernetes", "*/llm-7")]),
        ({"HOSTNAME": "llm-worker-0"}, []),
        ({"TORCHELASTIC_RUN_ID": "exp"}, [("torchrun", "exp")]),
        ({"TORCHELASTIC_RUN_ID": "none"}, []),
        (
            {"TORCHELASTIC_RUN_ID": "exp", "SLURM_JOB_ID": "12", "PARDBG_JOB": "night"},
            [("run", "night"), ("slurm", "12"), ("torchrun", "exp")],
        ),
    ],
)
def test_names_of_a_world_the_most_telling_first(environment: dict[str, str], ids: list[tuple[str, str]]) -> None:
    world = only_world(make_process(10, 1, rank_environment(0, 1) | environment))
    assert [(source.value, name) for source, name in world.job_ids] == ids


def test_both_the_typed_id_and_the_one_torchrun_made_up_are_names() -> None:
    command = (*TORCHRUN[:2], "--rdzv-id", "demo", "train.py")
    world = only_world(*torchrun_world(command=command, TORCHELASTIC_RUN_ID="4f1c"))
    assert world.job_ids == ((JobSource.TORCHRUN, "demo"), (JobSource.TORCHRUN, "4f1c"))


def test_recorder_settings_of_a_rank_and_nothing_else_are_kept() -> None:
    environment = rank_environment(0, 1, TORCH_FR_BUFFER_SIZE="0", PARDBG_ATTACH="never", PASSWORD="hunter2")  # noqa: S106
    assert only_world(make_process(10, 1, environment)).ranks[0].recorder == {
        "TORCH_FR_BUFFER_SIZE": "0",
        "PARDBG_ATTACH": "never",
    }
