"""Stacks from C go to files of the rank; what the program does with signals itself stays as it is, in its children too."""

from pathlib import Path

import pytest

from pardbg.collectors.probe.places import ASKED_STACKS, ENDED_STACKS, FATAL_STACKS
from tests.probe.children import run_child
from tests.probe.ranks import Outcome

LISTEN = "signals = Signals(); number = signals.listen(folder)\n"
KILL = "os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)\n"
CRASH = "ctypes.string_at(0)\n"
FORK = """
child = os.fork()
if child == 0:
    signals.lead_nowhere()
    {body}
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def sizes(folder: Path) -> list[bool]:
    return [
        (folder / name).exists() and (folder / name).stat().st_size > 0 for name in (ENDED_STACKS, FATAL_STACKS, ASKED_STACKS)
    ]


@pytest.mark.parametrize(
    ("body", "written"),
    [
        ("pass\n", [False, False, False]),
        (KILL, [True, False, False]),
        (CRASH, [False, True, False]),
        ("os.kill(os.getpid(), number)\n", [False, False, True]),
        ("os.abort()\n", [False, True, False]),
    ],
)
def test_stacks_are_written_and_the_end_is_the_same(tmp_path: Path, body: str, written: list[bool]) -> None:
    probed = run_child(body, tmp_path, LISTEN)
    assert probed == run_child(body, tmp_path, "number = 0")
    assert sizes(tmp_path) == written
    if written[0]:
        assert "most recent call first" in (tmp_path / ENDED_STACKS).read_text()


@pytest.mark.parametrize(
    "handler",
    [
        "signal.signal(signal.SIGTERM, lambda *_: os._exit(5))\n",
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(6))\n",
        "signal.signal(signal.SIGTERM, signal.SIG_IGN); threading.Timer(0.2, os._exit, [8]).start()\n",
        "faulthandler.register(signal.SIGTERM, chain=True)\n",
        "signal.signal(signal.SIGTERM, signal.SIG_DFL)\n",
    ],
)
def test_what_the_program_does_with_sigterm_wins_before_or_after(tmp_path: Path, handler: str) -> None:
    plain = run_child(handler + KILL, tmp_path)
    assert run_child(handler + LISTEN + KILL, tmp_path).code == plain.code
    assert run_child(handler + KILL, tmp_path, LISTEN) == plain


def test_the_programs_own_fault_handler_writes_where_it_did(tmp_path: Path) -> None:
    plain = run_child("faulthandler.enable()\n" + CRASH, tmp_path)
    assert "Segmentation fault" in plain.err
    assert run_child("\n" + CRASH, tmp_path, "faulthandler.enable()\n" + LISTEN) == plain
    assert run_child("faulthandler.enable()\n" + CRASH, tmp_path, LISTEN) == plain


@pytest.mark.parametrize(
    ("before", "body"),
    [
        ("", KILL),
        ("", CRASH),
        ("", "sys.exit(4)"),
        ("faulthandler.enable()\n", CRASH),
        ("signal.signal(signal.SIGTERM, lambda *_: os._exit(9))\n", KILL),
        ("faulthandler.register(signal.SIGTERM, chain=True)\n", KILL),
    ],
)
def test_forked_children_write_nothing_and_keep_what_the_program_has_set(tmp_path: Path, before: str, body: str) -> None:
    fork = FORK.format(body=body)
    plain = run_child(before + fork.replace("signals.lead_nowhere()", "pass"), tmp_path)
    assert run_child(before + fork, tmp_path, LISTEN) == plain
    assert sizes(tmp_path) == [False, False, False]


def test_a_forked_child_that_becomes_a_rank_has_files_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "child").mkdir()
    body = f"signals.listen({str(tmp_path / 'child')!r}); {KILL}"
    assert run_child(LISTEN + FORK.format(body=body), tmp_path) == Outcome(0, "-15\n", "")
    assert sizes(tmp_path) == [False, False, False]
    assert sizes(tmp_path / "child") == [True, False, False]


def test_a_program_that_closes_all_files_gets_no_stacks_in_its_own(tmp_path: Path) -> None:
    body = "os.closerange(3, 512)\nkept = [open(f'own{n}', 'w') for n in range(40)]\n"
    assert run_child(LISTEN + body + KILL, tmp_path).code == -15
    assert {path.stat().st_size for path in tmp_path.glob("own*")} == {0}


def test_signals_that_others_handle_in_c_are_left_to_them(tmp_path: Path) -> None:
    """A Java machine lives on SIGSEGV: what comes in its place ends the process."""
    own = "libc = ctypes.CDLL(None)\nhandler = ctypes.CFUNCTYPE(None, ctypes.c_int)(lambda number: os._exit(40 + number))\n"
    for number in (11, 15):
        body = f"{own}libc.signal({number}, handler)\n{LISTEN}signal.raise_signal({number})\n"
        assert run_child(body, tmp_path).code == 40 + number
        assert sizes(tmp_path) == [False, False, False]


def test_the_signal_to_ask_by_is_one_that_nobody_uses(tmp_path: Path) -> None:
    top = "signal.signal(signal.SIGRTMAX, lambda *_: None)\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMAX - 1])\n"
    assert run_child(top + LISTEN + "print(signal.SIGRTMAX - number)\n", tmp_path).out == "2\n"


def test_a_folder_that_is_not_there_registers_nothing(tmp_path: Path) -> None:
    body = "signals = Signals()\ntry:\n    signals.listen(folder + '/absent')\nexcept OSError:\n    print('no')\n"
    assert run_child(body + KILL, tmp_path) == Outcome(-15, "no\n", "")
