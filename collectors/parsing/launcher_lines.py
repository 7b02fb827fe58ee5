"""How a process ended, in the one line that its launcher or its shell writes of it. Pure.

None of these names a global rank: a local rank is one of a host. What is printed is the end that was noticed first; the others
are ended by the launcher then. DeepSpeed's launcher, and torch's old one, print the command of the last process they started,
whichever ended.
"""

import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass

from pardbg.collectors.parsing.line_prefix import LONGEST_LINE
from pardbg.collectors.parsing.log_lines import read_line
from pardbg.watchdog.model.log_event import LauncherFailure

_LONGEST_COMMAND = 16 * 1024  # characters of a line that quotes the command of a process
_SHOWN = 150
_HOW = r"(?P<how>Killed|Segmentation fault|Bus error|Illegal instruction|Floating point exception|Aborted)"
SIGNALS = {
    "Killed": signal.SIGKILL,
    "Segmentation fault": signal.SIGSEGV,
    "Bus error": signal.SIGBUS,
    "Illegal instruction": signal.SIGILL,
    "Floating point exception": signal.SIGFPE,
    "Aborted": signal.SIGABRT,
}
"""As the C library words them: shells and srun print its words."""


@dataclass(frozen=True)
class _Form:
    """``stem`` and one of ``also`` stand in every such line; ``called`` says which process it is, as far as the line tells."""

    stem: str
    pattern: re.Pattern[str]
    called: str
    also: tuple[str, ...] = ("",)


_FORMS = (
    _Form(  # torch/distributed/elastic/multiprocessing/api.py
        "failed (exitcode: ",
        re.compile(r"failed \(exitcode: (?P<code>-?\d{1,5})\) local_rank: (?P<local>\d{1,5}) \(pid: (?P<pid>\d{1,10})\)"),
        "the process of local rank {local}",
    ),
    _Form(  # deepspeed/launcher/launch.py
        ":sigkill_handler] ",
        re.compile(r" exits with return code = (?P<code>-?\d{1,5})"),
        "a process of DeepSpeed's launcher",
    ),
    _Form(  # torch/distributed/launch.py before torch 1.9
        "CalledProcessError: Command '[",
        re.compile(
            r"\]' (?:died with <Signals\.\w{3,12}: (?P<signal>\d{1,2})>|returned non-zero exit status (?P<code>\d{1,5}))"
        ),
        "a process of torch.distributed.launch",
        also=("--local_rank=", "--local-rank="),
    ),
    _Form(  # torch/multiprocessing/spawn.py
        "Exception: process ",
        re.compile(
            r"Exception: process (?P<local>\d{1,5}) terminated with "
            r"(?:signal (?P<name>SIG[A-Z]{2,8})|exit code (?P<code>\d{1,5}))"
        ),
        "process {local} of torch.multiprocessing.spawn",
    ),
    _Form(  # lightning/fabric/strategies/launchers/subprocess_script.py: the number counts the children of this host
        "Child process with PID ",
        re.compile(
            r"(?:\[rank: (?P<local>\d{1,5})\] )?Child process with PID (?P<pid>\d{1,10}) terminated with code "
            r"(?P<code>-?\d{1,5})\. Forcefully"
        ),
        "the process of local rank {local}",
    ),
    _Form(  # a shell's script
        ": line ",
        re.compile(rf"^[^\s:]{{1,400}}: line \d{{1,7}}: {{1,4}}(?P<pid>\d{{1,10}}) {_HOW}(?: |$)"),
        "the process that the batch script ran",
    ),
    _Form(  # a shell before its prompt, perhaps behind a progress bar
        "Killed",
        re.compile(r"(?:^|\r|\d(?:it/s|s/it)\])(?P<how>Killed)\s*$"),
        "the process that the shell ran",
    ),
)


def parse_launcher_ends(text: str) -> Iterator[tuple[int, LauncherFailure]]:
    """Each end that is told, one a line, with the place in the text at which it is. Linear."""
    for form in _FORMS:
        at = text.find(form.stem)
        while at >= 0:
            start, end = text.rfind("\n", 0, at) + 1, text.find("\n", at)
            line = text[start : end if end >= 0 else len(text)]
            match = form.pattern.search(line, 0, _LONGEST_COMMAND) if any(word in line for word in form.also) else None
            code = _code(match.groupdict()) if match is not None else None
            if match is not None and code is not None:
                yield start + match.end(), _failure(form, match, code)
            at = text.find(form.stem, start + len(line))


def _failure(form: _Form, match: re.Match[str], code: int) -> LauncherFailure:
    found = match.groupdict()
    local, pid = found.get("local"), found.get("pid")
    read = read_line(match.string[:LONGEST_LINE])
    text = read.text
    return LauncherFailure(
        code=code,
        pid=int(pid) if pid else None,
        local_rank=int(local) if local else None,
        called=form.called.format(local=local) if local or "{" not in form.called else "a process",
        at_ns=read.at_ns,
        text=text if match[0].strip() in text else f"{text[:_SHOWN]} ... {match[0].strip()}",
    )


def _code(found: dict[str, str | None]) -> int | None:
    """As Python writes it; None for a signal without a number here."""
    code, number, name, how = (found.get(key) for key in ("code", "signal", "name", "how"))
    if code:
        return int(code)
    if number:
        return -int(number)
    if name:
        return -signal.Signals[name] if name in signal.Signals.__members__ else None
    return -SIGNALS[how] if how else None
