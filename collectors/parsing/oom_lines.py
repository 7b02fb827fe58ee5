"""Processes that the kernel killed for memory: two lines tell of one death, and older kernels write only the second. Pure."""

import re

from msgspec.structs import replace

from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.kernel import Moment, OomKill
from pardbg.watchdog.model.text import printable_text

_KILLED = re.compile(
    r"(?P<how>Memory cgroup out of memory|Out of memory|Out of memory and no killable processes)?[^:]{0,60}?:? ?"
    r"\bKilled process (?P<pid>\d{1,9})(?:, UID \d{1,10},)?,? ?\((?P<name>.{0,64}?)\)"
)
_SUMMARY = re.compile(r"oom-kill:constraint=(?P<constraint>\w{1,40}),")
_FIELD = re.compile(r"\b(task_memcg|task|pid)=([^,]{0,1024})(?=,|$)")
_MEMORY_GROUP = "CONSTRAINT_MEMCG"


class OomSummary(Noun, frozen=True, kw_only=True):
    """The line of newer kernels that comes before the death itself."""

    pid: int
    name: str
    memory_group: str
    is_global: bool


def parse_oom_summary(message: str) -> OomSummary | None:
    """``oom-kill:constraint=...``; None if the message is none."""
    match = _SUMMARY.match(message)
    if match is None:
        return None
    fields = dict(_FIELD.findall(message))
    if not fields.get("pid", "").isdecimal() or len(fields["pid"]) > 9:
        return None
    return OomSummary(
        pid=int(fields["pid"]),
        name=printable_text(fields.get("task", "")),
        memory_group=printable_text(fields.get("task_memcg", "")),
        is_global=match["constraint"] != _MEMORY_GROUP,
    )


def parse_oom_kill(message: str, when: Moment) -> OomKill | None:
    """``Killed process 4321 (python3) ...``; None if the message is none."""
    match = _KILLED.match(message)
    if match is None:
        return None
    return OomKill(
        pid=int(match["pid"]),
        name=printable_text(match["name"]),
        when=when,
        is_global=(match["how"] or "").startswith("Out of memory"),
    )


def complete(kill: OomKill, summary: OomSummary | None) -> OomKill:
    """A death with what the line before it told, if that was of the same process."""
    if summary is None or summary.pid != kill.pid:
        return kill
    return replace(kill, memory_group=summary.memory_group, is_global=summary.is_global)


def as_kill(summary: OomSummary, when: Moment) -> OomKill:
    """A death of which only the line before it is left."""
    return OomKill(
        pid=summary.pid, name=summary.name, when=when, memory_group=summary.memory_group, is_global=summary.is_global
    )
