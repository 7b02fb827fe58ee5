"""What a command line says of a process's part in a job. Of its values only a few flags' are kept, and the program's name.

Pure: bytes of ``/proc/PID/cmdline`` in, a `Command` out.
"""

import re
from collections.abc import Sequence

from pardbg.collectors.jobs.environment import read_number
from pardbg.watchdog.model.base import Noun

_LAUNCHER_MODULES = {
    "torch.distributed.run": "torchrun",
    "torch.distributed.launch": "torch.distributed.launch",
    "torch.distributed.launcher": "torchrun",
    "accelerate.commands.launch": "accelerate launch",
    "deepspeed.launcher.launch": "deepspeed",
    "deepspeed.launcher.runner": "deepspeed",
}
_LAUNCHER_PROGRAMS = {"torchrun": "torchrun", "deepspeed": "deepspeed", "accelerate-launch": "accelerate launch"}
_PYTHON = re.compile(r"^(?:python|pypy)[\d.]*t?d?$")
_PLAIN_NAME = re.compile(r"^[\w.+-]{1,64}$", re.ASCII)
_WORKER_SIGNS = ("--multiprocessing-fork", "torch/_inductor/compile_worker", "torch._inductor.compile_worker")
_LONGEST_ID = 256


class Command(Noun, frozen=True, kw_only=True):
    """The closed list of what is kept of a command line.

    Attributes:
        program: name of the script or module, e.g. ``train.py``; empty if there is none or it is no plain name.
        is_python: whether it starts an interpreter.
        launcher: the launcher it is, e.g. ``torchrun``; empty if it is none.
        rendezvous_id: ``--rdzv-id`` of a launcher.
        rank: ``--rank``; ``local_rank`` and ``world_size`` alike.
        is_worker: whether it is a helper process that a rank's libraries start.
    """

    program: str = ""
    is_python: bool = False
    launcher: str = ""
    rendezvous_id: str = ""
    rank: int | None = None
    local_rank: int | None = None
    world_size: int | None = None
    is_worker: bool = False


def read_command(data: bytes) -> Command:
    """Reads the arguments, which are separated by NULs."""
    arguments = data.decode(errors="replace").rstrip("\0").split("\0")
    is_python = is_interpreter(arguments[0])
    module, program, rest = _find_program(arguments) if is_python else ("", arguments[0], arguments[1:])
    launcher = _launcher(module, program, rest)
    name = module or _base(program)
    return Command(
        program=name if _PLAIN_NAME.match(name) else "",
        is_python=is_python,
        launcher=launcher,
        rendezvous_id=_rendezvous_id(rest) if launcher else "",
        rank=None if launcher else read_number(_flag(rest, "rank")),
        local_rank=None if launcher else read_number(_flag(rest, "local-rank")),
        world_size=None if launcher else read_number(_flag(rest, "world-size")),
        is_worker=any(sign in argument for argument in arguments for sign in _WORKER_SIGNS),
    )


def is_interpreter(path: str) -> bool:
    """Whether a program is Python, by its name."""
    return _PYTHON.match(_base(path).removesuffix(" (deleted)")) is not None


def _base(path: str) -> str:
    return path.rpartition("/")[2]


def _find_program(arguments: Sequence[str]) -> tuple[str, str, Sequence[str]]:
    """Skips the interpreter's own flags: module, script, and the arguments of either. ``-c`` has neither."""
    position = 1
    while position < len(arguments):
        argument = arguments[position]
        position += 1
        if argument == "--check-hash-based-pycs":
            position += 1
        if argument.startswith("--"):
            continue
        if not argument.startswith("-") or argument == "-":
            return "", argument, arguments[position:]
        letter, attached = _valued_flag(argument[1:])
        value = attached or (arguments[position] if letter and position < len(arguments) else "")
        position += bool(letter and not attached)
        if letter == "m":
            return value, "", arguments[position:]
        if letter == "c":
            return "", "", arguments[position:]
    return "", "", ()


def _valued_flag(letters: str) -> tuple[str, str]:
    """The first of the joined flags that takes a value, with what is attached to it: ``um`` -> m, ``Xdev`` -> X, dev."""
    for index, letter in enumerate(letters):
        if letter in "cmWX":
            return letter, letters[index + 1 :]
    return "", ""


def _launcher(module: str, program: str, rest: Sequence[str]) -> str:
    if program.endswith(".py"):
        dotted = program[: -len(".py")].replace("/", ".")
        return next((name for path, name in _LAUNCHER_MODULES.items() if dotted.endswith("." + path)), "")
    name = module or _base(program)
    if name in {"accelerate", "accelerate.commands.accelerate_cli"}:
        return "accelerate launch" if "launch" in rest[:1] else ""
    return _LAUNCHER_MODULES.get(name, "") if module else _LAUNCHER_PROGRAMS.get(name, "")


def _rendezvous_id(arguments: Sequence[str]) -> str:
    value = (_flag(arguments, "rdzv-id") or "")[:_LONGEST_ID]
    return value if value.isprintable() and "\N{REPLACEMENT CHARACTER}" not in value else ""


def _flag(arguments: Sequence[str], name: str) -> str | None:
    """The value of ``--name V`` or ``--name=V``, with either of the two dashes inside."""
    spellings = {f"--{name}", f"--{name.replace('-', '_')}"}
    for index, argument in enumerate(arguments):
        flag, has_value, value = argument.partition("=")
        if flag in spellings:
            return value if has_value else next(iter(arguments[index + 1 : index + 2]), None)
    return None
