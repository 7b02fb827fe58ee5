"""Ranks of a small job as plain processes, with and without `pardbg run`, and all that can be seen of them from outside."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pardbg.collectors.probe import page_format, places

JOBS = Path(__file__).with_name("jobs")
PARDBG = str(Path(sys.executable).with_name("pardbg"))
DEADLINE_S = 400.0  # the compiler of torch takes minutes where others use the machine
_FOREIGN = ("TORCH", "NCCL", "PARDBG", "PYTEST", "PYTHON", "COV", "RANK", "LOCAL_", "GROUP_", "WORLD_", "MASTER_")
_OWN_LINE = re.compile(r"^pardbg: (?:job|warning:) .*\n", re.MULTILINE)
_CHANGING = re.compile(r"0x[0-9a-f]+|\b[EWI]\d{4} [\d:.]+(?: +\d+)?|\bpid[ =]\d+|\[\d+\]")


@dataclass(frozen=True, kw_only=True)
class Rank:
    """How one rank is started: in which surroundings, with which variables, and with which argument.

    Attributes:
        prefix: a command that everything is wrapped in, `pardbg run` too.
        env: added to the environment, last.
        python: the interpreter.
        words: program and arguments.
    """

    prefix: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    python: str = sys.executable
    words: Sequence[str] = (str(JOBS / "train_digest.py"),)


@dataclass(frozen=True)
class Outcome:
    """What a rank has left: two runs that are the same are equal. Addresses, times and process numbers are taken out."""

    code: int
    out: str
    err: str


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def start_ranks(ranks: Sequence[Rank], folder: Path, *, probed: bool) -> list["subprocess.Popen[str]"]:
    """Starts a job of these ranks. The probe's folder is ``folder/pardbg`` where a rank's variables do not say otherwise."""
    port = str(free_port())
    own = {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)}
    own |= {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    if probed:
        own[places.ROOT_VARIABLE] = str(folder / "pardbg")
    before = [PARDBG, "run", "--job", "j", "--"] if probed else []
    return [
        subprocess.Popen(
            [*rank.prefix, *before, rank.python, *rank.words],
            env={**own, "RANK": str(number), "LOCAL_RANK": str(number), "WORLD_SIZE": str(len(ranks)), **rank.env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=folder,
            start_new_session=True,
        )
        for number, rank in enumerate(ranks)
    ]


def outcome(process: "subprocess.Popen[str]") -> Outcome:
    """Waits for its end."""
    try:
        out, err = process.communicate(timeout=DEADLINE_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # with workers of compilers and loaders
        out, err = process.communicate()
        return Outcome(-1000, out, f"did not end in {DEADLINE_S} s: {err}")
    return Outcome(process.returncode, _CHANGING.sub("#", out), _CHANGING.sub("#", _OWN_LINE.sub("", err)))


def run_ranks(ranks: Sequence[Rank], folder: Path, *, probed: bool) -> list[Outcome]:
    """Starts a job and waits for its end."""
    processes = start_ranks(ranks, folder, probed=probed)
    return [outcome(process) for process in processes]


def last_step(folder: Path) -> int:
    """The step on the page of a rank's folder."""
    record = page_format.decode_record(page_format.StepRecord, (folder / places.PAGE_FILE).read_bytes())
    assert isinstance(record, page_format.StepRecord)
    return record.step


def last_word(folder: Path) -> page_format.EndingRecord | None:
    """What a rank said at its end."""
    record = page_format.decode_record(page_format.EndingRecord, (folder / places.PAGE_FILE).read_bytes())
    assert record is None or isinstance(record, page_format.EndingRecord)
    return record


def rank_folders(root: Path) -> list[Path]:
    """The folders of processes that the probe has made."""
    return sorted(path for path in root.glob("*-*") if re.fullmatch(r"\d+-\d+", path.name))
