"""What a command line says of a process's part, and what is kept of it."""

import msgspec
import pytest
from tests.collectors.jobs.processes import command_bytes

from pardbg.collectors.jobs.command_line import read_command


@pytest.mark.parametrize(
    ("line", "launcher"),
    [
        ("/usr/bin/python3 /opt/venv/bin/torchrun --nproc-per-node 4 train.py", "torchrun"),
        ("torchrun train.py", "torchrun"),
        ("python -m torch.distributed.run train.py", "torchrun"),
        ("python3.11 -u -m torch.distributed.launch train.py", "torch.distributed.launch"),
        ("python -um torch.distributed.run train.py", "torchrun"),
        ("python -X dev -Wignore -m torch.distributed.run train.py", "torchrun"),
        ("python /lib/site-packages/torch/distributed/run.py train.py", "torchrun"),
        ("python /opt/bin/accelerate launch train.py", "accelerate launch"),
        ("python -m accelerate.commands.launch train.py", "accelerate launch"),
        ("python /opt/bin/deepspeed train.py", "deepspeed"),
        ("python -u -m deepspeed.launcher.launch --world_info=e30= train.py", "deepspeed"),
        ("python /opt/bin/accelerate env", ""),
        ("python train.py torchrun", ""),
        ("python -c torchrun", ""),
        ("python my/run.py", ""),
        ("bash -c torchrun", ""),
        ("python", ""),
        ("", ""),
    ],
)
def test_launchers_are_told_from_everything_else(line: str, launcher: str) -> None:
    assert read_command(command_bytes(tuple(line.split(" ")))).launcher == launcher


@pytest.mark.parametrize("flag", ["--rdzv-id demo", "--rdzv_id demo", "--rdzv-id=demo", "--rdzv_id=demo"])
def test_rendezvous_id_of_a_launcher_is_what_the_user_typed(flag: str) -> None:
    line = f"python /bin/torchrun {flag} train.py"
    assert read_command(command_bytes(tuple(line.split(" ")))).rendezvous_id == "demo"


def test_rendezvous_id_of_something_else_is_not_kept() -> None:
    assert read_command(command_bytes(("python", "train.py", "--rdzv-id", "demo"))).rendezvous_id == ""


@pytest.mark.parametrize(
    ("line", "rank", "local_rank", "size"),
    [
        ("python train.py --rank 3 --world-size=8", 3, None, 8),
        ("python train.py --rank=3 --local_rank=1", 3, 1, None),
        ("python train.py --local-rank 2", None, 2, None),
        ("python train.py --rank", None, None, None),
        ("python train.py --rank three", None, None, None),
        ("python train.py --lora-rank 16", None, None, None),
        ("python /bin/torchrun train.py --rank 3", None, None, None),
    ],
)
def test_rank_on_the_command_line(line: str, rank: int | None, local_rank: int | None, size: int | None) -> None:
    command = read_command(command_bytes(tuple(line.split(" "))))
    assert (command.rank, command.local_rank, command.world_size) == (rank, local_rank, size)


@pytest.mark.parametrize(
    ("line", "program"),
    [
        ("python -u /data/train.py --x", "train.py"),
        ("python -m pkg.train", "pkg.train"),
        ("python -c print(1)", ""),
        ("/bin/bash -c x", "bash"),
    ],
)
def test_program_is_the_name_of_script_or_module(line: str, program: str) -> None:
    assert read_command(command_bytes(tuple(line.split(" ")))).program == program


@pytest.mark.parametrize(
    "arguments",
    [
        ("python", "train.py", "--token", "hunter2"),
        ("python", "-c", "login('hunter2')", "hunter2"),
        ("python", "/data/hunter2/train.py", "--rank=hunter2"),
        ("python", "/bin/torchrun", "train.py", "--password=hunter2"),
        ("env hunter2", "hunter2"),
        ("python", "hun\x1bhunter2.py"),
    ],
)
def test_nothing_else_of_a_command_line_is_kept(arguments: tuple[str, ...]) -> None:
    assert b"hunter2" not in msgspec.json.encode(read_command(command_bytes(arguments)))


@pytest.mark.parametrize(
    "data", [b"\xff\xfe\0\xff", b"\0\0\0", b"python\0-m", b"python\0-W", b"python\0--check-hash-based-pycs"]
)
def test_odd_command_lines_are_read_without_error(data: bytes) -> None:
    assert read_command(data).launcher == ""
