"""How a process ends is on its page, and the end is the same as without us."""

from pathlib import Path

import pytest

from pardbg.collectors.probe.page_format import END_AT_ONCE, END_EXCEPTION, END_RETURNED
from tests.probe.children import run_child
from tests.probe.ranks import last_word

LISTEN = """
pid = os.getpid()
words = LastWords(Page(folder + '/page'), lambda: os.getpid() == pid, lambda kind, _stack: {keep}, lambda: 7)
words.listen()
"""
KEEP = "open(folder + '/kept', 'a').write(f'{kind} ')"


def ends(body: str, folder: Path, keep: str = KEEP) -> tuple[int, int] | None:
    """The word of a program, whose outcome must be the same as without us."""
    (folder / "plain").mkdir()
    plain = run_child(body, folder / "plain")
    assert run_child(body, folder, LISTEN.format(keep=keep)) == plain
    word = last_word(folder)
    return (word.kind, word.code) if word is not None else None


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ("print(1)", (END_RETURNED, 0)),
        ("sys.exit()", (END_RETURNED, 0)),
        ("sys.exit(3)", (END_RETURNED, 3)),
        ("sys.exit(259)", (END_RETURNED, 3)),
        ("sys.exit(-1)", (END_RETURNED, 255)),
        ("sys.exit(True)", (END_RETURNED, 1)),
        ("sys.exit('words')", (END_RETURNED, 1)),
        ("t = threading.Thread(target=sys.exit, args=(3,)); t.start(); t.join()", (END_RETURNED, 0)),
        ("try: sys.exit(5)\nexcept SystemExit as error: print(type(error), error.code)", (END_RETURNED, 0)),
        ("def main():\n try: sys.exit(5)\n except SystemExit: return 2\nsys.exit(main())", (END_RETURNED, 2)),
        ("try: sys.exit(9)\nfinally: print('clean')", (END_RETURNED, 9)),
        ("sys.exit((1, 2))", (END_RETURNED, 0)),
        ("try: 1 / 0\nexcept ZeroDivisionError: sys.exit(3)", (END_EXCEPTION, 3)),
        ("try: 1 / 0\nexcept ZeroDivisionError: sys.exit(0)", (END_RETURNED, 0)),
        ("try: 1 / 0\nexcept ZeroDivisionError: os._exit(7)", (END_EXCEPTION, 7)),
        ("os._exit(7)", (END_AT_ONCE, 7)),
        ("os._exit(status=7)", (END_AT_ONCE, 7)),
        ("threading.Thread(target=os._exit, args=(7,)).start(); time.sleep(60)", (END_AT_ONCE, 7)),
        ("1 / 0", (END_EXCEPTION, 1)),
        ("sys.excepthook = lambda *_: print('mine'); 1 / 0", (END_EXCEPTION, 1)),
        ("sys.excepthook = lambda *_: os._exit(9); 1 / 0", (END_AT_ONCE, 9)),
        ("raise KeyboardInterrupt", (END_EXCEPTION, -1)),
        ("import atexit; atexit.register(lambda: 1 / 0)", (END_RETURNED, 0)),
        ("threading.Thread(target=lambda: 1 / 0).start()", (END_RETURNED, 0)),
        ("os.kill(pid := os.getpid(), 9)", None),
        ("c = os.fork()\nif c == 0: sys.exit(4)\nprint(os.waitpid(c, 0)[1])", (END_RETURNED, 0)),
        ("c = os.fork()\nif c == 0: os._exit(4)\nprint(os.waitpid(c, 0)[1])", (END_RETURNED, 0)),
        ("c = os.fork()\nif c == 0: 1 / 0\nprint(os.waitpid(c, 0)[1])", (END_RETURNED, 0)),
    ],
)
def test_each_end_has_its_word(tmp_path: Path, body: str, word: tuple[int, int] | None) -> None:
    assert ends(body, tmp_path) == word
    kept = tmp_path / "kept"
    assert (kept.read_text() if kept.exists() else None) == (f"{word[0]} " if word else None)


@pytest.mark.parametrize(
    "body",
    [
        "try: 1 / 0\nexcept Exception as error: raise RuntimeError('training failed') from error",
        "try: 1 / 0\nexcept Exception: raise RuntimeError('training failed')",
        "try: 1 / 0\nexcept Exception: sys.exit(1)",
    ],
)
def test_the_first_exception_of_a_chain_is_the_one_that_is_told(tmp_path: Path, body: str) -> None:
    ends(body, tmp_path)
    word = last_word(tmp_path)
    assert word is not None
    assert word.text == b"ZeroDivisionError: division by zero"


def test_secrets_in_an_exception_do_not_reach_the_page(tmp_path: Path) -> None:
    ends("raise ValueError('connect failed: password=hunter2')", tmp_path)
    assert b"hunter2" not in (tmp_path / "page").read_bytes()


def test_the_place_and_the_words_of_an_exception_are_kept(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import json\ndef step():\n    json.loads('{')\n")
    run_child(LISTEN.format(keep="None") + "sys.path.insert(0, folder)\nimport train\ntrain.step()\n", tmp_path)
    word = last_word(tmp_path)
    assert word is not None
    assert (word.kind, word.oom_kills) == (END_EXCEPTION, 7)
    assert word.where == f"{tmp_path / 'train.py'}:3 step".encode()
    assert word.text.startswith(b"json.decoder.JSONDecodeError: Expecting property name")


@pytest.mark.parametrize("body", ["1 / 0", "os._exit(7)", "sys.exit(3)"])
def test_what_cannot_be_kept_does_not_matter(tmp_path: Path, body: str) -> None:
    assert ends(body, tmp_path, keep="1 / 0") is not None


def test_an_exception_whose_words_fail_ends_as_ever(tmp_path: Path) -> None:
    body = "class E(Exception):\n    def __str__(self): raise ValueError\nraise E"
    assert ends(body, tmp_path) == (END_EXCEPTION, 1)


def test_the_functions_look_and_pickle_as_before(tmp_path: Path) -> None:
    body = """
import inspect, pickle
for function in (sys.exit, os._exit):
    print(pickle.loads(pickle.dumps(function)) is function, function.__name__, function.__doc__, inspect.signature(function))
"""
    assert ends(body, tmp_path) == (END_RETURNED, 0)
