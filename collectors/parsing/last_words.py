"""Secondary lines that are few and a log's last ones: HCCL's timeouts, and what Lightning raises when it is told to end.

EI0002 and EI0006 are HCCL's codes of a wait for another rank that took too long (Ascend CANN, fault codes).
"""

import re
from collections.abc import Iterator
from itertools import islice

from pardbg.collectors.parsing.log_lines import line_at
from pardbg.watchdog.model.log_event import LostSign, PeerLost

MOST_LINES = 4096
_FORMS = (
    ("EI000", LostSign.HCCL_REMOTE, re.compile(r"\bEI000[26]: [^\n]{0,400}?(?:times? out|[Rr]emote [Rr]ank)")),
    ("SIGTERMException", LostSign.TERMINATED, re.compile(r"\.SIGTERMException\b")),
)


def parse_last_words(text: str) -> Iterator[tuple[int, PeerLost]]:
    """Each such line with where it ends in the text. Costs a search a form."""
    for stem, sign, pattern in _FORMS:
        if stem in text:
            for match in islice(pattern.finditer(text), MOST_LINES):
                read = line_at(text, match.start())
                yield match.end(), PeerLost(rank=read.rank, sign=sign, at_ns=read.at_ns, text=read.text)
