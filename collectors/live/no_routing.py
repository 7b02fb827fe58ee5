"""Why ranks have counted nothing of routing: in words, with what to try. For `pardbg moe`, which cannot go on without.

Cost: one child process, deadline `routing.WITHIN_S`. Leaves nothing behind.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pardbg.collectors.live.routing import ask_for_routing
from pardbg.collectors.probe.routing_watch import SWITCH
from pardbg.collectors.reading_job import RoutingRead
from pardbg.collectors.reading_protocol import FileRead, Reply
from pardbg.watchdog.model.world import RankProcess

_MOST_ASKED = 8


@dataclass(frozen=True)
class NoRouting:
    """The reason, and what to try."""

    why: str
    remedy: str


_NO_PROBE = NoRouting("no probe runs in it", "start it with `pardbg run -- CMD`, or import pardbg.probe in it")
_OFF = NoRouting(f"{SWITCH}=0 in its environment switches it off", f"start it without {SWITCH}=0")
_NO_ROUTER = NoRouting(
    "its probe runs, and has seen no router train so far",
    "wait for its first steps, or report routers that the probe does not know with pardbg.probe.report_routing",
)
_SILENT = NoRouting("its probe's folder gave no answer in time", "see whether the disk of its PARDBG_DIR answers")


def explain_no_routing(ranks: Sequence[RankProcess]) -> NoRouting:
    """Of several reasons of the first ranks the one that says most: what could not be read, then what is switched off."""
    asked = ranks[:_MOST_ASKED]
    replies = ask_for_routing(asked)
    found = [_explain(replies.get(rank.rank)) for rank in asked]
    plain = (_OFF, _NO_ROUTER, _NO_PROBE)
    telling = [each for each in found if each not in plain]
    return next((each for each in (*telling, *plain) if each in found), _NO_PROBE)


def _explain(reply: Reply | None) -> NoRouting:
    if isinstance(reply, RoutingRead):
        return _OFF if reply.is_switched_off else _NO_ROUTER if reply.has_probe else _NO_PROBE
    if isinstance(reply, FileRead) and reply.problem is not None:
        why = f"what its probe has counted cannot be read: {reply.problem.detail}"
        return NoRouting(why, "look into the folder of its probe, or try again")
    return _SILENT
