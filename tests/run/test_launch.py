"""The command as users call it: the job is what it would be without pardbg, but for what is set."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

PARDBG = str(Path(sys.executable).with_name("pardbg"))
PATH = "/usr/local/bin:/usr/bin:/bin"
FACTS = r"""
grep -E '^(Umask|NoNewPrivs|Seccomp|CapEff)' /proc/self/status
awk '{print $5, $6, $7, $18, $19}' /proc/self/stat
for fd in /proc/$$/fd/*; do echo "$fd" | sed 's/.*fd/fd/'; readlink "$fd"; done
cat /proc/$$/oom_score_adj; pwd; ulimit -a; printf '%s|' "$0" "$@"
"""


def start(*words: str, folder: Path, variables: dict[bytes, bytes] | None = None) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [PARDBG, "run", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(folder, variables)
    )


def run(*words: str, folder: Path, variables: dict[bytes, bytes] | None = None) -> subprocess.CompletedProcess[bytes]:
    process = start(*words, folder=folder, variables=variables)
    out, err = process.communicate(timeout=30)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def environment(folder: Path, variables: dict[bytes, bytes] | None = None) -> dict[bytes, bytes]:
    return {b"PATH": PATH.encode(), b"PARDBG_DIR": os.fsencode(folder / "pardbg"), **(variables or {})}


def seen_by_the_job(folder: Path, variables: dict[bytes, bytes] | None = None) -> dict[bytes, bytes]:
    done = run("--", "cat", "/proc/self/environ", folder=folder, variables=variables)
    assert done.returncode == 0, done.stderr
    return dict(entry.split(b"=", 1) for entry in done.stdout.split(b"\0") if entry)


@pytest.mark.parametrize(
    "command", [["sh", "-c", FACTS, "zero", "a b", "", "--", "-h"], ["grep", "-E", "^Sig(Blk|Ign|Cgt)", "/proc/self/status"]]
)
def test_nothing_but_the_environment_differs(tmp_path: Path, command: list[str]) -> None:
    """Signals, mask, umask, session, priority, limits, descriptors, folder: the same program with and without pardbg."""
    reader, writer = os.pipe()
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    try:
        plain, *wrapped = [
            subprocess.run(
                [*before, *command],
                stdout=subprocess.PIPE,
                check=True,
                timeout=30,
                env=environment(tmp_path),
                cwd=tmp_path,
                pass_fds=[reader],
                umask=0o137,
                stdin=subprocess.DEVNULL,
            ).stdout
            for before in ([], [PARDBG, "run", "--"], [PARDBG, "run"])
        ]
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR1])
        own_pipe = os.readlink(f"/proc/self/fd/{reader}").encode()  # noqa: PTH115
        os.close(reader)
        os.close(writer)
    assert (own_pipe in plain and b"zero|a b||--|-h|" in plain) or b"SigBlk:\t0000000000000200" in plain
    assert [without_pipes(text, own_pipe) for text in wrapped] == [without_pipes(plain, own_pipe)] * 2


def without_pipes(text: bytes, kept: bytes) -> bytes:
    """The pipe of the program's output is another in each run."""
    return re.sub(rb"pipe:\[\d+\]", lambda match: match[0] if match[0] == kept else b"pipe", text)


def test_signals_that_python_ignores_are_default_again(tmp_path: Path) -> None:
    shown = run("--", "grep", "SigIgn", "/proc/self/status", folder=tmp_path).stdout
    ignored = int(shown.split()[1], 16)
    assert [number for number in (signal.SIGPIPE, signal.SIGXFSZ) if ignored >> (number - 1) & 1] == []


def test_the_process_stays_the_same(tmp_path: Path) -> None:
    process = start("--", "sh", "-c", "echo $$", folder=tmp_path)
    assert int(process.communicate(timeout=30)[0]) == process.pid


@pytest.mark.parametrize(
    ("script", "code"), [("exit 0", 0), ("exit 3", 3), ("exit 137", 137), ("kill -9 $$", -9), ("kill -PIPE $$", -13)]
)
def test_the_exit_code_is_the_jobs(tmp_path: Path, script: str, code: int) -> None:
    assert run("--", "sh", "-c", script, folder=tmp_path).returncode == code


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_reaches_the_job_itself(tmp_path: Path, number: signal.Signals) -> None:
    script = f"trap 'echo got; exit 5' {number.name.removeprefix('SIG')}; echo ready; while :; do sleep 0.02; done"
    process = start("--", "sh", "-c", script, folder=tmp_path)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(number)
    out, _ = process.communicate(timeout=30)
    assert (out, process.returncode) == (b"got\n", 5)


def test_the_name_of_the_program_is_as_typed(tmp_path: Path) -> None:
    assert run("--", "cat", "/proc/self/cmdline", folder=tmp_path).stdout == b"cat\0/proc/self/cmdline\0"


def test_the_environment_is_what_was_there_and_what_was_planned(tmp_path: Path) -> None:
    own = {b"BYTES": b"\xff\xfe=\x80", b"N\xffAME": b"", b"TORCH_FR_BUFFER_SIZE": b"9", b"PYTHONPATH": b"/a\xff"}
    planned = json.loads(run("--job", "j", "--print-env", "--json", folder=tmp_path, variables=own).stdout)
    seen = seen_by_the_job(tmp_path, {**own, b"PARDBG_JOB": b"j"})
    pipe = b"TORCH_NCCL_DEBUG_INFO_PIPE_FILE"
    assert re.fullmatch(rb"/tmp/pardbg-%d-[0-9a-f]{16}-" % os.getuid(), seen.pop(pipe))
    planned["set"].pop(pipe.decode())
    added = {name.encode(): value.encode(errors="surrogateescape") for name, value in planned["set"].items()}
    assert seen == {**environment(tmp_path), **own, **added}
    assert added[b"PYTHONPATH"].endswith(b"/collectors/probe/startup:/a\xff")
    assert added[b"PYTHONPATH"].startswith(b"/")


@pytest.mark.parametrize(
    "own", [{}, {b"LC_ALL": b"C"}, {b"LC_CTYPE": b"C"}, {b"LC_CTYPE": b"POSIX"}, {b"LC_CTYPE": b"C.UTF-8"}, {b"LANG": b"C"}]
)
def test_the_locale_is_the_users(tmp_path: Path, own: dict[bytes, bytes]) -> None:
    seen = seen_by_the_job(tmp_path, own)
    assert {name: value for name, value in seen.items() if name.startswith((b"LC_", b"LANG"))} == own


def test_entries_that_python_cannot_name_survive(tmp_path: Path) -> None:
    """Entries without a sign, without a name, and twice: only the system call itself can pass them on."""
    odd = [b"PATH=" + PATH.encode(), b"PARDBG_DIR=" + os.fsencode(tmp_path / "pardbg"), b"NO_SIGN", b"=no name", b"A=1", b"A=2"]
    words = [os.fsencode(PARDBG), b"run", b"--", b"cat", b"/proc/self/environ"]
    program = (
        "import ctypes\n"
        f"words, entries = {words!r}, {odd!r}\n"
        "row = lambda items: (ctypes.c_char_p * (len(items) + 1))(*items, None)\n"
        "ctypes.CDLL(None).execve(words[0], row(words), row(entries))\n"
    )
    done = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, check=True, timeout=30)
    assert done.stdout.split(b"\0")[: len(odd)] == odd


def test_one_line_says_how_to_find_the_job(tmp_path: Path) -> None:
    lines = run("--", "true", folder=tmp_path).stderr.decode().splitlines()
    assert len(lines) == 1
    match = re.fullmatch(
        r"pardbg: job (true-\d{4}-\d{4}-[0-9a-f]{4}); from another terminal: pardbg scan --job (\S+)", lines[0]
    )
    assert match is not None
    assert match[1] == match[2]


def test_a_name_with_spaces_is_quoted_in_the_command(tmp_path: Path) -> None:
    line = run("--job", "it's 7b", "true", folder=tmp_path).stderr.decode()
    assert shlex.split(line.partition("terminal: ")[2]) == ["pardbg", "scan", "--job", "it's 7b"]


def test_the_name_of_the_option_wins_over_the_environments(tmp_path: Path) -> None:
    own = {b"PARDBG_JOB": b"outer"}
    script = ["sh", "-c", "printf %s $PARDBG_JOB"]
    assert run("--", *script, folder=tmp_path, variables=own).stdout == b"outer"
    assert run("--job", "inner", *script, folder=tmp_path, variables=own).stdout == b"inner"
    assert run("--", *script, folder=tmp_path, variables={b"PARDBG_JOB": b""}).stdout.startswith(b"sh-")


def test_the_jobs_folder_is_the_users_alone(tmp_path: Path) -> None:
    seen = dict(seen_by_the_job(tmp_path, {b"PARDBG_JOB": b"j"}))
    folder = Path(os.fsdecode(seen[b"TORCH_FR_DUMP_TEMP_FILE"])).parent
    assert folder == tmp_path / "pardbg" / "job-j"
    assert (folder.stat().st_mode & 0o777, folder.parent.stat().st_mode & 0o777) == (0o700, 0o700)


def test_a_root_that_is_a_link_is_told_and_the_job_runs_without_its_dumps(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    (tmp_path / "pardbg").symlink_to(tmp_path / "target")
    done = run("--", "env", folder=tmp_path)
    assert done.returncode == 0
    assert b"warning: " in done.stderr
    assert b"is a link" in done.stderr
    assert len(done.stderr.splitlines()) == 2
    assert b"TEMP_FILE" not in done.stdout
    assert b"PARDBG_JOB" in done.stdout
    assert list((tmp_path / "target").iterdir()) == []


def test_what_is_old_goes_when_a_job_starts(tmp_path: Path) -> None:
    old = tmp_path / "pardbg" / f"{2**22 + 1}-5"
    old.mkdir(parents=True)
    os.utime(old, (0, 0))
    run("--print-env", folder=tmp_path)
    assert old.exists()
    run("--", "true", folder=tmp_path)
    assert not old.exists()


@pytest.mark.parametrize("is_closed", [False, True])
def test_a_terminal_that_is_gone_keeps_no_job_from_starting(tmp_path: Path, *, is_closed: bool) -> None:
    redirect = "2>&-" if is_closed else "2>/dev/full"
    command = f"exec {shlex.quote(PARDBG)} run -- sh -c 'echo started' {redirect}"
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, check=False, timeout=30, env=environment(tmp_path))
    assert (done.stdout, done.returncode) == (b"started\n", 0)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "for example: pardbg run -- torchrun"),
        (["--job", "j"], "for example: pardbg run -- torchrun"),
        (["--", "no-such-program"], "no-such-program"),
        (["--", "/etc/passwd"], "/etc/passwd is not executable"),
        (["--", "/etc"], "/etc is a folder"),
        (["--job", "", "true"], "--job ''"),
        (["--job", "--", "true"], "--job '--'"),
        (["--job", "slurm:1", "true"], "--job 'slurm:1'"),
        (["--job", "a\x1bb", "true"], "--job 'a\\x1bb'"),
        (["--json", "true"], "--print-env"),
    ],
)
def test_wrong_usage_is_one_line_and_starts_nothing(tmp_path: Path, words: list[str], told: str) -> None:
    done = run(*words, folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, b"")
    assert told in done.stderr.decode()
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "pardbg").exists()


def test_options_of_pardbg_that_are_none_are_wrong_usage(tmp_path: Path) -> None:
    assert run("--jbo", "x", "true", folder=tmp_path).returncode == 2


@pytest.mark.parametrize("name", [b"a\nb", b"slurm:4", b"\xff"])
def test_a_bad_name_in_the_environment_is_told_with_its_variable(tmp_path: Path, name: bytes) -> None:
    done = run("--", "true", folder=tmp_path, variables={b"PARDBG_JOB": name})
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert done.stderr.startswith(b"pardbg: PARDBG_JOB")


def test_a_relative_folder_is_refused_since_ranks_may_run_elsewhere(tmp_path: Path) -> None:
    done = run("--", "true", folder=tmp_path, variables={b"PARDBG_DIR": b"here"})
    assert done.returncode == 2
    assert b"PARDBG_DIR=here" in done.stderr


@pytest.mark.parametrize(
    ("first", "told"), [("echo hi", "name its interpreter"), ("#!/no/such/sh", "interpreter that is not there")]
)
def test_a_script_that_the_system_cannot_start_is_told(tmp_path: Path, first: str, told: str) -> None:
    script = tmp_path / "train"
    script.write_text(f"{first}\n")
    script.chmod(0o755)
    done = run("--", str(script), folder=tmp_path)
    assert done.returncode == 2
    assert told in done.stderr.decode().splitlines()[-1]


def test_printing_starts_and_makes_nothing(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    own = {b"TORCH_NCCL_TRACE_BUFFER_SIZE": b"9"}
    done = run("--job", "j", "--print-env", "--", "touch", str(marker), folder=tmp_path, variables=own)
    assert (done.returncode, done.stderr) == (0, b"")
    lines = done.stdout.decode().splitlines()
    assert "PARDBG_JOB=j" in lines
    assert f"TORCH_FR_DUMP_TEMP_FILE={tmp_path}/pardbg/job-j/dump_rank_" in lines
    assert lines[-1] == "# TORCH_NCCL_TRACE_BUFFER_SIZE=9  (yours)"
    assert list(tmp_path.iterdir()) == []
