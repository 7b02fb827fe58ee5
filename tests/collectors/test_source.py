"""Lines of programs: loops, handlers, calls and groups around them."""

import ast
import contextlib
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pardbg.collectors.parsing.source import read_contexts
from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.evidence import Handler, SourceContext

PROGRAM = """\
def train(self, loader):
    for epoch in range(3):
        try:
            for batch in load(
                loader,
            ):
                with self.lock, open("hunter2") as log:
                    dist.all_reduce(batch.sum(), op, self.groups["tp"])
                work.wait()
            else:
                dist.barrier()
        except (OSError, errors.Bad):
            while True:
                queue.get()
        finally:
            dist.broadcast(
                x,
                group=dist.group.WORLD,
                src=max(1, 0),
            )
    after()
    async def inner():
        async for x in y: here(x)
"""


def at(line: int, program: str = PROGRAM) -> SourceContext:
    return read_contexts(program, [line])[line]


def only(statement: str) -> SourceContext:
    return at(1, statement)


@pytest.mark.parametrize(
    ("line", "loops"),
    [
        (2, ((2, 20),)),
        (4, ((2, 20), (4, 9))),
        (5, ((2, 20), (4, 9))),
        (8, ((2, 20), (4, 9))),
        (11, ((2, 20),)),
        (14, ((2, 20), (13, 14))),
        (21, ()),
        (23, ((23, 23),)),
    ],
)
def test_loops_hold_their_header_and_body_and_not_their_else(line: int, loops: tuple[tuple[int, int], ...]) -> None:
    assert at(line).loops == loops


@pytest.mark.parametrize(
    ("line", "clauses"),
    [(9, []), (11, []), (12, ["except OSError, errors.Bad"]), (14, ["except OSError, errors.Bad"]), (17, ["finally"])],
)
def test_handlers_name_their_clause_and_the_body_they_guard(line: int, clauses: list[str]) -> None:
    assert at(line).handlers == tuple(Handler(clause=clause, body=(4, 11)) for clause in clauses)


@pytest.mark.parametrize(
    ("line", "calls"),
    [
        (1, ()),
        (2, ("range",)),
        (4, ("load",)),
        (7, ("with self.lock", "with open", "open")),
        (8, ("dist.all_reduce", "batch.sum")),
        (9, ("work.wait",)),
        (17, ("dist.broadcast",)),
        (19, ("dist.broadcast", "max")),
        (23, ("here",)),
    ],
)
def test_calls_count_on_each_line_they_span_innermost_last(line: int, calls: tuple[str, ...]) -> None:
    assert at(line).calls == calls


@pytest.mark.parametrize(
    ("call", "group"),
    [
        ("dist.all_reduce(x, dist.ReduceOp.SUM, self.groups['tp'])", "self.groups['tp']"),
        ("dist.all_reduce(x, group=tp)", "tp"),
        ("dist.all_reduce(x, op)", ""),
        ("dist.broadcast(x, 0, pg)", "pg"),
        ("dist.reduce(x, 0, op, pg)", "pg"),
        ("dist.all_gather(xs, x, pg)", "pg"),
        ("torch.distributed.all_gather_into_tensor(out, x, mesh['dp'].get_group())", "mesh['dp'].get_group()"),
        ("dist.reduce_scatter_tensor(out, x, op, pg)", "pg"),
        ("dist.all_to_all_single(out, x, None, None, pg)", "pg"),
        ("funcol.all_to_all_single(x, None, None, pg)", "pg"),
        ("barrier(pg)", "pg"),
        ("dist.barrier(mpu.get_data_parallel_group())", "mpu.get_data_parallel_group()"),
        ("dist.send(x, 1, pg)", "pg"),
        ("dist.recv(x, 1, pg)", "pg"),
        ("dist.P2POp(dist.isend, x, 1, pg)", "pg"),
        ("DDP(model, process_group=self.dp)", "self.dp"),
        ("dist.all_reduce(*args, pg)", ""),
        ("dist.all_reduce(x, op, None)", ""),
        ("dist.all_reduce(x, group=make('hunter2'))", ""),
        ("dist.all_reduce(x, group=f'{x}')", ""),
        ("dist.all_reduce(x, group=" + "g" * 61 + ")", ""),
        ("plot(x, group=columns)", ""),
        ("frame.groupby(a, b, c).all(x, y, z)", ""),
        ("dist.barrier(größe)", "größe"),
    ],
)
def test_group_is_what_a_collective_is_given_if_it_is_named(call: str, group: str) -> None:
    assert only(call).group == group


@pytest.mark.parametrize(
    ("call", "name"),
    [
        ("a().b(1).c()", "a().b().c"),
        ("self.layers[hunter2].forward()", "self.layers[].forward"),
        ("super().forward()", "super().forward"),
        ("'hunter2'.join(x)", "?.join"),
        ("(await f)()", "?"),
        ("x" * 300 + "()", "x" * 200),
    ],
)
def test_names_of_calls_hold_neither_arguments_nor_literals(call: str, name: str) -> None:
    program = f"async def f():\n    {call}"
    assert at(2, program).calls[0] == name


def test_no_literal_of_the_program_comes_out() -> None:
    program = (
        "for token in ['hunter2']:\n"
        "    login('hunter2', key=f'hunter2{x}', **{'hunter2': 1}); client['hunter2'].go(b'hunter2')\n"
        "    dist.all_reduce(x, group=find('hunter2'))\n"
        "    with vault('hunter2'): pass\n"
    )
    assert "hunter2" not in repr(read_contexts(program, range(9)))


def test_what_surrounds_a_definition_does_not_surround_its_body() -> None:
    program = (
        "while a():\n"
        "    try: pass\n"
        "    finally:\n"
        "        @deco(b())\n"
        "        def f(x=c()): return d()\n"
        "        class K:\n"
        "            e()\n"
    )
    assert at(4, program).loops == ((1, 7),)
    assert at(4, program).handlers == (Handler(clause="finally", body=(2, 2)),)
    assert at(4, program).calls == ("deco", "b")
    assert at(5, program) == SourceContext(calls=("d",))
    assert at(7, program) == SourceContext(calls=("e",))


def test_statements_of_one_line_and_of_matches_are_all_seen() -> None:
    program = "a(); b()\nmatch c():\n    case 1 if d(): e()\nif f(): g()\nelif h(): i()\nelse: j()\n"
    calls = {line: context.calls for line, context in read_contexts(program, range(1, 7)).items()}
    assert calls == {1: ("a", "b"), 2: ("c",), 3: ("d", "e"), 4: ("f", "g"), 5: ("h", "i"), 6: ("j",)}


def test_lines_without_a_statement_are_left_out() -> None:
    assert read_contexts("a()\n\n# b()\n", [0, 1, 2, 3, 99, -1]).keys() == {1}


def test_other_newlines_count_like_python_counts_them() -> None:
    assert at(2, "x = 1\r\na()\rb()\n").calls == ("a",)
    assert at(3, "x = 1\r\na()\rb()\n").calls == ("b",)


@pytest.mark.parametrize(
    "text",
    ["def f(:\n", "x = '\0'", "(" * 5000, "a" + ".b" * 200_000, "-" * 100_000 + "1", "if 1:\n" * 200, "\x7fELF\x02", "\ud800"],
)
def test_hostile_text_gives_nothing_but_a_parse_error(text: str) -> None:
    with contextlib.suppress(ParseError):
        assert read_contexts(text, [1]).keys() <= {1}


def test_error_does_not_quote_the_program() -> None:
    with pytest.raises(ParseError) as caught:
        read_contexts("hunter2 = = 'hunter2'", [1])
    assert "hunter2" not in repr(caught.value)
    assert caught.value.__suppress_context__


def test_deep_nesting_and_a_million_calls_are_bounded() -> None:
    deep = "f(" * 80 + ")" * 80
    assert len(at(1, deep).calls) == 32
    assert len(at(1, "; ".join(["g()"] * 20_000)).calls) == 32


def test_odd_escapes_do_not_warn() -> None:
    assert at(1, r"f('\d')").calls == ("f",)


@settings(max_examples=100, deadline=None)
@given(text=st.text(alphabet="ab().:=,'\"\n \\#[]{}@*forwithtry", max_size=80), line=st.integers(-2, 9))
def test_any_text_is_read_or_refused(text: str, line: int) -> None:
    try:
        found = read_contexts(text, [line])
    except ParseError:
        return
    assert found.keys() <= {line}


def test_every_line_of_a_large_real_file_is_read() -> None:
    text = Path(ast.__file__).read_text(encoding="utf-8")
    start_s = time.monotonic()
    found = read_contexts(text, range(1, len(text.splitlines()) + 1))
    assert time.monotonic() - start_s < 10
    assert len(found) > 1000


def test_short_loop_that_asks_whether_work_is_completed_is_a_poll() -> None:
    text = (
        "def step():\n"
        "    while not work.is_completed():\n"
        "        time.sleep(0.01)\n"
        "    for batch in loader:\n"
        "        train(batch)\n"
    )
    contexts = read_contexts(text, [2, 3, 5])
    assert [contexts[line].is_polling for line in (2, 3, 5)] == [True, True, False]
