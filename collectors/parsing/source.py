"""What a source file says of single lines of it: the loops and handlers around each, and the calls on it.

Only names come out: no literal of the file but a key in the name of a process group, since a program's text may hold secrets.
"""

import ast
import warnings
from collections.abc import Iterable, Iterator, Sequence

from pardbg.collectors.parsing.source_calls import dotted_name, read_calls
from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.evidence import Handler, SourceContext

_Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_Loop = ast.For | ast.AsyncFor | ast.While
_POLLED = frozenset({"is_completed", "is_success"})
_LONGEST_POLL = 8  # lines of a loop that only asks


def read_contexts(text: str, lines: Iterable[int]) -> dict[int, SourceContext]:
    """Reads what surrounds each of the lines, within the innermost function, class body or module that holds it.

    A loop is given from its header to the end of its body: the header counts as inside, since the iterator runs there, and the
    ``else`` does not. A handler's clause is ``except``, ``except ValueError`` or ``finally``. ``with lock`` stands among the
    calls of its line; a call that spans lines is on each of them.

    Args:
        text: the whole file.
        lines: numbers from 1 on. Those that hold no statement are left out of the answer.

    Raises:
        ParseError: if it is not Python, as the version that runs pardbg knows it, or nested too deep to be read.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    tree = _parse(text)
    rows = text.split("\n")
    found = ((line, _Place(line)) for line in dict.fromkeys(lines))
    return {line: place.context(rows) for line, place in found if place.seek(tree)}


def _parse(text: str) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the program's odd escapes are not ours to tell
            return ast.parse(text)
    except SyntaxError as error:  # its words may quote the program
        raise ParseError(f"not Python as this interpreter knows it: line {error.lineno}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise ParseError(f"Python that cannot be read: {type(error).__name__}") from None


class _Place:
    """The way from the module down to one line."""

    def __init__(self, line: int) -> None:
        self._line = line
        self._forget()

    def _forget(self) -> None:
        self._loops: list[tuple[int, int]] = []
        self._handlers: list[Handler] = []
        self._expressions: list[ast.AST] = []
        self._innermost: ast.stmt | None = None

    def seek(self, tree: ast.Module) -> bool:
        """Goes down as far as statements hold the line; returns whether any does."""
        is_found = False
        level: Sequence[ast.stmt] = tree.body
        while level:
            here = [statement for statement in level if _holds([statement], self._line)]
            is_found = is_found or bool(here)
            level = [inner for statement in here for inner in self._enter(statement)]
        return is_found

    def context(self, rows: Sequence[str]) -> SourceContext:
        """What was met on the way; ``rows`` are the lines of the file."""
        calls, group = read_calls(self._expressions, self._line, rows)
        return SourceContext(
            loops=tuple(self._loops),
            handlers=tuple(self._handlers),
            calls=calls,
            group=group,
            is_polling=self._innermost is not None and _is_poll(self._innermost),
        )

    def _enter(self, statement: ast.stmt) -> Sequence[ast.stmt]:
        """Notes what a statement means for the line; the statements of its block that holds the line come next."""
        if isinstance(statement, _Scope) and _holds(statement.body, self._line):
            self._forget()  # what is around the definition is not around the call
            return statement.body
        self._expressions.extend(_own_expressions(statement))
        if isinstance(statement, _Loop):
            first, last = statement.lineno, _last_line(statement.body)
            if first <= self._line <= last:
                self._loops.append((first, last))
                self._innermost = statement
        return self._enter_handler(statement) or self._block(statement)

    def _enter_handler(self, statement: ast.stmt) -> Sequence[ast.stmt]:
        """The clause of a ``try`` that holds the line, if one does. ``except*`` is a class of its own, from 3.11 on."""
        handlers: Sequence[ast.ExceptHandler] = getattr(statement, "handlers", ())
        finals: Sequence[ast.stmt] = getattr(statement, "finalbody", ())
        clauses: list[tuple[str, int, Sequence[ast.stmt]]] = [
            (_clause(handler), handler.lineno, handler.body) for handler in handlers
        ]
        clauses += [("finally", _first_line(finals[0]), finals)] if finals else []
        for clause, first, block in clauses:
            if first <= self._line <= _last_line(block):
                body: Sequence[ast.stmt] = getattr(statement, "body", ())
                self._handlers.append(Handler(clause=clause, body=(_first_line(body[0]), _last_line(body))))
                return block
        return ()

    def _block(self, statement: ast.stmt) -> Sequence[ast.stmt]:
        blocks = [getattr(statement, name, ()) for name in ("body", "orelse")]
        blocks += [case.body for case in getattr(statement, "cases", ())]
        return next((block for block in blocks if _holds(block, self._line)), ())


def _own_expressions(statement: ast.stmt) -> Iterator[ast.AST]:
    """What a statement evaluates itself, its blocks apart."""
    for child in ast.iter_child_nodes(statement):
        if isinstance(child, ast.ExceptHandler):
            yield from filter(None, [child.type])
        elif isinstance(child, ast.match_case):
            yield from filter(None, [child.guard])
        elif not isinstance(child, ast.stmt):
            yield child


def _is_poll(loop: ast.stmt) -> bool:
    """Whether a loop is short and asks work whether it is completed."""
    if (loop.end_lineno or loop.lineno) - loop.lineno >= _LONGEST_POLL:
        return False
    return any(isinstance(node, ast.Attribute) and node.attr in _POLLED for node in ast.walk(loop))


def _clause(handler: ast.ExceptHandler) -> str:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else filter(None, [handler.type])
    return f"except {', '.join(map(dotted_name, kinds))}".rstrip()


def _holds(block: Sequence[ast.stmt], line: int) -> bool:
    return bool(block) and _first_line(block[0]) <= line <= _last_line(block)


def _first_line(statement: ast.stmt) -> int:
    """A definition begins at its first decorator."""
    decorators: Sequence[ast.expr] = getattr(statement, "decorator_list", ())
    return min([statement.lineno, *(decorator.lineno for decorator in decorators)])


def _last_line(block: Sequence[ast.stmt]) -> int:
    return block[-1].end_lineno or block[-1].lineno
