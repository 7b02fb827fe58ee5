"""torchfrtrace (PyTorch's own analyser) on folders of dumps: one process for many, since importing torch takes seconds."""

import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from pardbg.watchdog.bench.tally import Said

MODULE = "torch.distributed.flight_recorder.fr_trace"
DUMP_PREFIX = "nccl_trace_rank_"
MISSING_RANKS = re.compile(r"missing ranks: \{([^}]*)\}")
CULPRIT = re.compile(r"Culprit rank (\d+)")
_DEADLINE_S = 1800
_SCRIPT = """
import io, json, sys
said, answers = io.StringIO(), sys.stdout
sys.stdout = sys.stderr = said
from torch.distributed.flight_recorder.fr_trace import main
for folder in sys.stdin.read().splitlines():
    for more in ([], ["--allow-incomplete-ranks"]):
        said.seek(0), said.truncate()
        try:
            main([folder, "-p", sys.argv[1], *more])
            crash = ""
        except BaseException as error:
            crash = type(error).__name__
        if not crash:
            break
    print(json.dumps([said.getvalue(), crash]), file=answers, flush=True)
"""


def is_installed() -> bool:
    """Whether there is a torch."""
    return importlib.util.find_spec("torch") is not None


def run_peer(folders: Sequence[Path]) -> list[Said]:
    """What it says of each folder: once as it is, and where that crashes as if some ranks were not there."""
    command = [sys.executable, "-c", _SCRIPT, DUMP_PREFIX]
    run = subprocess.run(  # noqa: S603 - ourselves
        command, input="\n".join(map(str, folders)), capture_output=True, text=True, check=False, timeout=_DEADLINE_S
    )
    answers = [json.loads(line) for line in run.stdout.splitlines()]
    lost = [("", "killed")] * (len(folders) - len(answers))
    return [read_answer(text, crash) for text, crash in (*answers, *lost)]


def read_answer(text: str, crash: str = "") -> Said:
    """Whom it names, from its own words; ``crash`` is the name of the exception it ended with."""
    groups: Iterable[str] = MISSING_RANKS.findall(text)
    ranks = {int(rank) for group in groups for rank in group.split(", ") if rank}
    named = frozenset(ranks | set(map(int, CULPRIT.findall(text))))
    is_alarm = bool(named) or "has errors" in text or "mismatch in the collective" in text
    return Said(ranks=named, is_alarm=is_alarm, has_crashed=bool(crash))
