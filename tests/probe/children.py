"""Small Python processes that use the probe's modules, without torch."""

import subprocess
import sys
from pathlib import Path

from tests.probe.ranks import Outcome, outcome

HEAD = """
import ctypes, faulthandler, os, resource, signal, sys, threading, time
sys.path.insert(0, {source!r})
from pardbg.collectors.probe.page import Page
from pardbg.collectors.probe.last_words import LastWords
from pardbg.collectors.probe.signals import Signals
folder = {folder!r}
exec({before!r})
"""


def run_child(body: str, folder: Path, before: str = "") -> Outcome:
    """Runs the text as a program of its own, which knows ``folder``; what comes before it does not shift its lines."""
    source = str(Path(__file__).parents[2] / "src")
    text = HEAD.format(source=source, folder=str(folder), before=before) + body
    process = subprocess.Popen(
        [sys.executable, "-c", text],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        start_new_session=True,
    )
    return outcome(process)
