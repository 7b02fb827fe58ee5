"""Adds to the frames of stacks what their process groups are: size, group rank, description.

Read from the processes' memory by `group_memory.py`, in the child of `asking.py`; the processes are not stopped. Cost: one
child process, some 0.1 ms a group. Deadline: `asking.DEADLINE_S` a process. What cannot be read or believed is left out.
"""

import re
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from pardbg.collectors.live.asking import DEADLINE_S, Asker
from pardbg.collectors.live.asking_protocol import GroupsRead, GroupsRequest
from pardbg.collectors.live.group_memory import GroupInfo
from pardbg.watchdog.model.evidence import Evidence, Stack, StackFrame, Thread
from pardbg.watchdog.model.world import RankProcess

DEFAULT_DESCRIPTION = "default_pg"
_GROUP = re.compile(r"<torch\._C\._distributed_c10d\.ProcessGroup at 0x([0-9a-f]{1,16})>$")
_MOST_GROUPS = 16


def describe_groups(
    evidence: Iterable[Evidence], ranks: Sequence[RankProcess], world_size: int | None, *, deadline_s: float = DEADLINE_S
) -> list[Evidence]:
    """The same evidence; main-thread frames of ranks' own stacks with a group get what it is.

    New locals: ``group_size``, ``group_rank``, ``group_desc``, and ``is_default_group`` ("True" or "False").
    """
    started = {rank.pid: rank.started_ticks for rank in ranks}
    described: list[Evidence] = []
    with Asker(deadline_s=deadline_s) as asker:
        for item in evidence:
            stack = item.observation
            if isinstance(stack, Stack) and not stack.child and stack.pid in started:
                stack = _describe(asker, stack, started[stack.pid], world_size)
            described.append(replace(item, observation=stack))
    return described


def _describe(asker: Asker, stack: Stack, started_ticks: int, world_size: int | None) -> Stack:
    main = stack.main_thread
    found = {address for frame in main.frames if (address := _find_address(frame)) is not None} if main else set()
    addresses = tuple(sorted(found))[:_MOST_GROUPS]
    if main is None or stack.pid is None or not addresses:
        return stack
    answer = asker.ask(GroupsRequest(pid=stack.pid, started_ticks=started_ticks, addresses=addresses, world_size=world_size))
    if not isinstance(answer, GroupsRead):
        return stack
    groups = {address: group for address, group in zip(addresses, answer.groups, strict=True) if group is not None}
    return replace(stack, threads=tuple(_extend(thread, groups) if thread is main else thread for thread in stack.threads))


def _find_address(frame: StackFrame) -> int | None:
    group = _GROUP.match(frame.locals.get("group", ""))
    return int(group[1], 16) if group else None


def _extend(thread: Thread, groups: dict[int, GroupInfo]) -> Thread:
    return replace(thread, frames=tuple(_extend_frame(frame, groups) for frame in thread.frames))


def _extend_frame(frame: StackFrame, groups: dict[int, GroupInfo]) -> StackFrame:
    address = _find_address(frame)
    group = groups.get(address) if address is not None else None
    if group is None:
        return frame
    more = {
        "group_size": str(group.size),
        "group_rank": str(group.rank),
        "group_desc": group.description,
        "is_default_group": str(group.description == DEFAULT_DESCRIPTION),
    }
    return replace(frame, locals={**frame.locals, **more})
