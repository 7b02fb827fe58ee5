"""Words for a node that has not answered: how far it came, what its process has said, what to try."""

from pardbg.watchdog.model.names import AbsenceReason
from pardbg.watchdog.transport.channel import Channel
from pardbg.watchdog.transport.way import Way


def describe_silence(way: Way, channel: Channel | None, node: str, parts: str, lasting: str) -> tuple[AbsenceReason, str]:
    """Why a node has not answered in time.

    Args:
        way: which leads to it.
        channel: None if its process was never started.
        node: its name.
        parts: how much of its answer has come, in words.
        lasting: for how long it was waited for, in words.
    """
    if channel is None:
        return AbsenceReason.TIMED_OUT, f"not reached: {way.most_starting} others at a time were being connected to"
    output = channel.describe_output()
    if node in channel.greeted:
        return AbsenceReason.TIMED_OUT, _join(f"it came up, and gave no answer {lasting}", parts, output)
    if meaning := way.explain(channel.complaints):
        return meaning
    return AbsenceReason.TIMED_OUT, _join(f"no word from it through {way.name} {lasting}", parts, output)


def describe_end(way: Way, channel: Channel, node: str, exit_code: int | None, parts: str) -> tuple[AbsenceReason, str]:
    """Why a node is lost whose process has ended, or has closed its output and goes on (None)."""
    how = "closed its output" if exit_code is None else _exit_words(exit_code)
    if node in channel.greeted:
        return AbsenceReason.LOST, _join(f"its connection ended ({way.name} {how})", parts, channel.describe_output())
    if meaning := way.explain(channel.complaints):
        return meaning
    return AbsenceReason.UNREACHABLE, _join(f"{way.name} {how} before the node came up", parts, channel.describe_output())


def describe_loss(way: Way, channel: Channel, node: str, detail: str) -> tuple[AbsenceReason, str]:
    """Why a node is lost that the starting program reports as gone while others go on."""
    if node in channel.greeted:
        return AbsenceReason.LOST, detail
    return way.explain(channel.complaints) or (AbsenceReason.UNREACHABLE, detail)


def _exit_words(exit_code: int) -> str:
    return f"was ended by signal {-exit_code}" if exit_code < 0 else f"exited with {exit_code}"


def _join(*words: str) -> str:
    return "; ".join(part for part in words if part)
