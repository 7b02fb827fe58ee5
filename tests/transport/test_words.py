"""Words for other programs: what is started, and how it is quoted; what their complaints mean."""

import shutil
import subprocess
import sys

import pytest

from pardbg.watchdog.errors import InputError
from pardbg.watchdog.model.names import AbsenceReason
from pardbg.watchdog.transport.folded_names import unfold
from pardbg.watchdog.transport.kubectl import Pod, through_kubectl
from pardbg.watchdog.transport.quoting import quote_for_any_shell
from pardbg.watchdog.transport.remote import collect_command
from pardbg.watchdog.transport.srun import hear_loss, through_srun
from pardbg.watchdog.transport.ssh import through_ssh

HARD_WORDS = [
    "plain",
    "two words",
    "it's",
    '"quoted"',
    "$HOME ${PATH} `id` $(id)",
    "a!b!!",
    "back\\slash\\",
    "*?[a-z]{x,y}",
    "~root",
    "a;b&c|d<e>f",
    "#no comment",
    "=ls",
    "^x^y",
    "(sub)",
    "Größe/naïve",
    "a%b,c@d+e:f",
    "--option=value",
]


@pytest.mark.parametrize("shell", ["sh", "bash", "dash", "tcsh", "csh", "zsh", "fish", "ksh"])
def test_a_login_shell_takes_a_line_apart_into_the_same_words(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    line = quote_for_any_shell(["exec", sys.executable, "-c", "import sys; print(sys.argv[1:])", *HARD_WORDS])
    done = subprocess.run([shell, "-c", line], capture_output=True, text=True, check=True, timeout=30)
    assert done.stdout == f"{HARD_WORDS}\n"


@pytest.mark.parametrize("word", ["", "two\nlines", "\x1b[31m", "tab\t"])
def test_words_that_shells_do_not_agree_on_are_refused(word: str) -> None:
    with pytest.raises(InputError, match="remote shell"):
        quote_for_any_shell(["echo", word])


def test_the_remote_command_is_what_the_user_says_else_the_variable_else_this_pardbg(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARDBG_REMOTE", "/opt/py/bin/pardbg")
    assert collect_command("ssh-wrapper '/my tools/pardbg'") == ("ssh-wrapper", "/my tools/pardbg", "collect")
    assert collect_command() == ("/opt/py/bin/pardbg", "collect")
    monkeypatch.delenv("PARDBG_REMOTE")
    assert collect_command()[0] == sys.executable
    with pytest.raises(InputError, match="cannot be read"):
        collect_command("open 'quote")


def test_the_default_command_starts_this_pardbg_wherever_it_is_started() -> None:
    command = [word if word != "collect" else "collect" for word in collect_command()]
    done = subprocess.run([*command, "--help"], capture_output=True, text=True, cwd="/", env={}, check=False, timeout=60)
    assert "No module named" not in done.stderr
    assert "Usage" in done.stdout + done.stderr


@pytest.mark.parametrize("host", ["-oProxyCommand=id", "a b", "a;b", "", "n1\n", "$(id)"])
def test_a_host_that_ssh_could_misunderstand_is_refused(host: str) -> None:
    with pytest.raises(InputError, match="no host"):
        through_ssh([host])


@pytest.mark.parametrize(("job", "node"), [("1;id", "n1"), ("--help", "n1"), ("1", "-x"), ("1", "n[1-3]"), ("", "n1")])
def test_a_job_or_node_that_srun_could_misunderstand_is_refused(job: str, node: str) -> None:
    with pytest.raises(InputError, match="srun"):
        through_srun(job, [node])


def test_a_pod_that_kubernetes_would_not_allow_is_refused() -> None:
    with pytest.raises(InputError, match="no name"):
        through_kubectl([Pod(name="--all")])


def test_srun_is_started_as_if_outside_of_any_job() -> None:
    (launch,) = through_srun(
        "7", ["n1", "n2"], environment={"SLURM_CONF": "c", "SLURM_NTASKS": "9", "SRUN_X": "1", "A": "b"}
    ).launches
    assert launch.environment == {"SLURM_CONF": "c", "A": "b"}
    assert "--ntasks=2" in launch.command
    assert launch.nodes == ("n1", "n2")


@pytest.mark.parametrize(
    ("line", "nodes"),
    [
        ("srun: error: n2: task 1: Killed", ("n2",)),
        ("srun: error: gpu-[017,041-042],m3: tasks 1,3-5: Exited with exit code 1", ("gpu-017", "gpu-041", "gpu-042", "m3")),
        ("srun: error: Node failure on n2", ("n2",)),
        ("srun: error: Task launch for StepId=1.57 failed on node n2: Socket timed out on send/recv operation", ("n2",)),
    ],
)
def test_srun_names_the_nodes_that_are_gone(line: str, nodes: tuple[str, ...]) -> None:
    loss = hear_loss(line)
    assert loss is not None
    assert loss.nodes == nodes


def test_other_lines_of_srun_lose_nobody() -> None:
    assert hear_loss("srun: Job 7 step creation temporarily disabled, retrying (Requested nodes are busy)") is None
    assert hear_loss("srun: error: Application launch failed: Socket timed out on send/recv operation") is None


@pytest.mark.parametrize("text", ["n[1-", "n[a]", "[1-999999999]", "n[1-2]]"])
def test_folded_names_that_are_none_are_bounded(text: str) -> None:
    assert len(unfold(text)) <= 70_000


@pytest.mark.parametrize(
    ("complaint", "reason"),
    [
        ("alice@n7: Permission denied (publickey).", AbsenceReason.DENIED),
        ("Host key verification failed.", AbsenceReason.DENIED),
        ("ssh: connect to host n7 port 22: No route to host", AbsenceReason.UNREACHABLE),
        ("ssh: connect to host n7 port 22: Connection timed out", AbsenceReason.UNREACHABLE),
        ("ssh: Could not resolve hostname n7: Name or service not known", AbsenceReason.UNREACHABLE),
        ("bash: line 1: exec: /opt/py: not found", AbsenceReason.NOT_INSTALLED),
        ("/opt/py: Command not found.", AbsenceReason.NOT_INSTALLED),
        ("ModuleNotFoundError: No module named 'pardbg'", AbsenceReason.NOT_INSTALLED),
    ],
)
def test_complaints_of_ssh_mean_something(complaint: str, reason: AbsenceReason) -> None:
    meaning = through_ssh(["n7"]).explain(f"motd\n{complaint}\nmore")
    assert meaning is not None
    assert meaning[0] is reason
    assert complaint[:20] in meaning[1]
    assert "motd" not in meaning[1]


@pytest.mark.parametrize(
    ("complaint", "reason"),
    [
        ('Error from server (NotFound): pods "w-0" not found', AbsenceReason.GONE),
        ("Error from server (Forbidden): pods is forbidden", AbsenceReason.DENIED),
        ('exec: "pardbg": executable file not found in $PATH: unknown', AbsenceReason.NOT_INSTALLED),
        ("Unable to connect to the server: dial tcp: i/o timeout", AbsenceReason.UNREACHABLE),
    ],
)
def test_complaints_of_kubectl_mean_something(complaint: str, reason: AbsenceReason) -> None:
    meaning = through_kubectl([Pod(name="w-0")]).explain(complaint)
    assert meaning is not None
    assert meaning[0] is reason


def test_complaints_of_srun_mean_something() -> None:
    meaning = through_srun("7", ["n1"]).explain("srun: error: Unable to create step for job 7: Access/permission denied")
    assert meaning is not None
    assert meaning[0] is AbsenceReason.DENIED
