"""The normal end of a job of DeepSpeed's launcher, which no single line tells. Pure.

Its form is of deepspeed/launcher/launch.py: at the start the ranks of every host, and one line for each process that has
returned 0. Of a job of several hosts the log of one holds its own processes only, and then nothing is known of the others.
"""

import re

from pardbg.collectors.parsing.log_lines import line_at
from pardbg.watchdog.model.log_event import TrainingDone

_RETURNED = "exits successfully."
_PROCESS = re.compile(r" Process (\d{1,10}) exits successfully\.")
_WORLD = re.compile(r"\bWORLD INFO DICT: \{([^}\n]{1,100000})\}")
_DEVICES = re.compile(r"\[([\d, ]{1,10000})\]")


def find_deepspeed_end(text: str) -> TrainingDone | None:
    """The end of training where as many processes have returned 0 as the job has ranks. Linear."""
    if _RETURNED not in text:
        return None
    worlds = _WORLD.findall(text)
    returned = {match[1]: match for match in _PROCESS.finditer(text)}
    devices = [number for host in _DEVICES.findall(worlds[-1]) for number in host.split(",")] if worlds else []
    if not devices or len(returned) != len(devices):
        return None
    said = line_at(text, max(match.start() for match in returned.values()))
    return TrainingDone(at_ns=said.at_ns, text=said.text)
