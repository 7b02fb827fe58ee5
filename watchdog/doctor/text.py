"""An examination as text and as JSON: what hinders first, what is well in a line each. Commands are never broken."""

import json
from collections.abc import Iterator

import msgspec

from pardbg.watchdog.doctor.check import Check, Examination, State
from pardbg.watchdog.model.text import printable_text
from pardbg.watchdog.outputs.wrapping import hang

_SECTIONS = {
    State.BLOCKS: "BLOCKS A VERDICT",
    State.LIMITS: "LIMITS WHAT IS SEEN",
    State.UNKNOWN: "CANNOT BE TOLD FROM HERE",
    State.OK: "IN ORDER",
}
_INDENT = "  "


def render_text(examination: Examination, *, width: int = 80) -> str:
    """Lines of at most ``width``, commands apart."""
    lines = hang(*_headline(examination), width)
    names = max(len(check.name) for check in examination.checks)
    for state, title in _SECTIONS.items():
        checks = [check for check in examination.checks if check.state is state]
        lines += ["", title] if checks else []
        for check in checks:
            lines += _describe(check, names, width)
    return "\n".join(lines) + "\n"


def render_json(examination: Examination) -> str:
    """One object; keys are never left out, what is not there is null. ASCII only."""
    return json.dumps(msgspec.to_builtins(examination), indent=2) + "\n"


def _headline(examination: Examination) -> tuple[str, str]:
    """The state of all, and the words for it."""
    host = printable_text(examination.host)
    counts = {state: sum(check.state is state for check in examination.checks) for state in State}
    blocks, limits = counts[State.BLOCKS], counts[State.LIMITS]
    if not blocks + limits:
        return "CLEAR  ", f"nothing found on {host} that keeps pardbg from seeing"
    parts = [
        f"{count} {word}" for count, word in ((blocks, _agree(blocks, "block")), (limits, _agree(limits, "limit"))) if count
    ]
    return f"{'BLOCKED' if blocks else 'LIMITED'}  ", f"on {host} {' and '.join(parts)} what pardbg sees of jobs"


def _agree(count: int, verb: str) -> str:
    return f"{'thing' if count == 1 else 'things'} {verb}{'s' if count == 1 else ''}"


def _describe(check: Check, names: int, width: int) -> Iterator[str]:
    label = f"{_INDENT}{check.name:{names}}{_INDENT}"
    yield from hang(label, printable_text(check.seen), width)
    for title, text in (("costs", check.cost), ("remedy", check.remedy)):
        if text:
            yield from hang(f"{_INDENT * 2}{title:{names - len(_INDENT)}}{_INDENT}", printable_text(text), width)
    if check.command:
        yield f"{' ' * len(label)}$ {printable_text(check.command)}"
