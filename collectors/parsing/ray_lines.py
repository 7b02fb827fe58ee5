"""How Ray says that a worker ended: killed for memory by its node's raylet, or an actor that is dead.

What it lists as "potential root causes" is boilerplate and tells nothing. Terminals wrap these lines. Shapes: Ray 2.x, the
reports of `raylet` (node_manager) and `ActorDiedError`.
"""

import re
from collections.abc import Iterator
from itertools import islice

from pardbg.collectors.parsing.log_lines import line_at
from pardbg.watchdog.model.log_event import ActorDied, KilledForMemory

MOST_TOLD = 500
_FOR_MEMORY = re.compile(r"\b[1-9]\d{0,5}\s+Workers\s+\(tasks\s*/\s*actors\)\s+killed\s+due\s+to\s+memory\s+pressure\s+\(OOM\)")
_HOST = re.compile(r"\bIP:\s+([\w.:-]{3,60})")
_SOON = 400  # characters in which the report names its node
_ACTOR = re.compile(
    r"\b(?:ActorDiedError|RayActorError): The actor died unexpectedly before finishing this task\.[^\n]{0,100}\n"
    r"(?P<fields>(?:[^\n]{0,40}?\b(?:class_name|actor_id|pid|name|namespace|ip): [^\n]{1,200}(?:\n|$)){1,8})"
)
_FIELD = re.compile(r"\b(class_name|pid|ip): (\S{1,200})")


def parse_ray_ends(text: str) -> Iterator[tuple[int, KilledForMemory | ActorDied]]:
    """What Ray tells, each with where it ends in the text. Costs a search a form where there is none."""
    if "killed due to memory" in text or "tasks / actors" in text:
        for match in islice(_FOR_MEMORY.finditer(text), MOST_TOLD):
            host, told = _HOST.search(text, match.end(), match.end() + _SOON), line_at(text, match.start())
            address = host[1].rstrip(".,:") if host else None
            yield match.end(), KilledForMemory(host=address, is_of_task=True, teller="Ray", at_ns=told.at_ns, text=told.text)
    if "The actor died unexpectedly" in text:
        for match in islice(_ACTOR.finditer(text), MOST_TOLD):
            fields = dict(_FIELD.findall(match["fields"]))
            pid, told = fields.get("pid", ""), line_at(text, match.start())
            yield (
                match.end(),
                ActorDied(
                    host=fields.get("ip"),
                    pid=int(pid) if pid.isdecimal() and len(pid) < 11 else None,
                    actor=fields.get("class_name", "").rpartition(".")[2],
                    at_ns=told.at_ns,
                    text=told.text,
                ),
            )
