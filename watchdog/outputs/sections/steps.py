"""What to do next: the verdict's actions with their command lines, then its advice."""

from pardbg.watchdog.model.report import Action, Report
from pardbg.watchdog.outputs.blocks import Depth, Section, Step, Steps, Verbatim


def next_steps(report: Report, _depth: Depth) -> Section | None:
    """List every action and all advice: they are few, and each is there to be used."""
    if report.verdict is None:
        return None
    actions = tuple(_step(action) for action in report.verdict.actions)
    advice = tuple(Step(text=text) for text in report.verdict.advice)
    steps = actions + advice
    return Section(title="What to do next", blocks=(Steps(steps=steps),)) if steps else None


def _step(action: Action) -> Step:
    command = Verbatim(text=action.command) if action.command else None
    return Step(text=action.text, command=command, effect=action.effect)
