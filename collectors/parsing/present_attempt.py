"""The part of a log that the present processes wrote: what an earlier attempt left there must accuse nobody now.

torchrun restarts ranks into the same files, and shells append to the logs of yesterday. When an attempt ends, torchrun names
the process ids of its ranks; as soon as it names one that lives, the present attempt is the one that ends.
"""

import re
from collections.abc import Collection

_NAMED = re.compile(
    r"Sending process (\d{1,10}) closing signal"
    r"|\(exitcode: -?\d{1,5}\) local_rank: \d{1,7} \(pid: (\d{1,10})\) of binary"
    r"|exitcode +: -?\d{1,5} \(pid: (\d{1,10})\)"
)
_WORDS = ("closing signal", "exitcode")  # a hundred times faster to look for, and most logs hold neither
_RULE = re.compile(r"^=+\s*$", re.MULTILINE)


def present_attempt(text: str, live_pids: Collection[int]) -> str:
    """Cuts off what precedes the last sign that an attempt without any of the living ranks has ended."""
    if not any(word in text for word in _WORDS):
        return text
    cut = 0
    for found in _NAMED.finditer(text):
        if int(found[1] or found[2] or found[3]) in live_pids:
            break
        cut = found.end()
        if found[3]:  # torchrun's report: it goes on with tracebacks, to a line of `=`
            end = _RULE.search(text, cut)
            cut = end.end() if end else cut
    newline = text.find("\n", cut)
    return text if cut == 0 else text[newline + 1 :] if newline >= 0 else ""
