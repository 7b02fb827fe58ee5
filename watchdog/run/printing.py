"""A plan of the environment as lines that a shell reads, and as JSON. Pure."""

import json
import shlex

from pardbg.watchdog.model.text import printable_text
from pardbg.watchdog.run.environment import Plan


def render_lines(plan: Plan) -> str:
    """``NAME=value`` a line, quoted for a shell; the user's own values as comments, no part of which becomes a line."""
    added = [f"{name}={shlex.quote(value)}" for name, value in plan.added.items()]
    kept = [f"# {printable_text(f'{name}={value}')}  (yours)" for name, value in plan.kept.items()]
    return "".join(f"{line}\n" for line in (*added, *kept))


def render_json(plan: Plan) -> str:
    """One object. ASCII only; bytes that are no UTF-8 are lone surrogates."""
    return json.dumps({"job": plan.job, "set": plan.added, "yours": plan.kept}, indent=2) + "\n"
