"""Options of `pardbg agent` in files of other programs: each must be one that the command has."""

import re

from pardbg.watchdog.commands.agent import agent

_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")


def known_options() -> set[str]:
    """All that the command takes."""
    return {name for parameter in agent.params for name in (*parameter.opts, *parameter.secondary_opts)} | {"--help"}


def unknown_options(text: str) -> set[str]:
    """Those in a text that it does not take."""
    return set(_OPTION.findall(text)) - known_options()
