"""What launchers, schedulers and terminals put before a line, and the rank that signs it. Pure.

Torch signs what nobody caught with ``[rankN]:``; whatever stands before that is of others: times, line numbers, hosts, pods,
streams, a progress bar. torchrun's ``--role rank`` makes it stand there twice, the local rank first. Other signers are mpirun
(``[1,3]<stderr>:``, job and rank), Determined AI (``[rank=3] ||``) and actors of Ray that carry their rank in their name
(``(Worker[rank=3] pid=7)``). ``[3]:`` is a local rank, and no rank of the job.
"""

import re

LONGEST_LINE = 2000
_HEAD = 300  # characters in which a rank may sign

_ANSI = re.compile(
    r"(?:\x1b|\^\[|#033)\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07]*\x07"  # as written, as ``cat -v`` and as rsyslog write it
)
_PREFIX = re.compile(
    r"(?P<stamp>\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]?[ ]?)"
    r"|(?P<stream>\[[\w.:-]*(?:\d|:[\w.-]+)\]: ?|\[\d{1,6},\d{1,7}\]<std\w{2,5}>: ?"
    r"|\(\w+(?:\[rank=\d{1,7}\])? pid=\d+(?:, ip=[\w.:]+)?\) ?|\d{1,6}: (?=[^ ]| {2}))"
)
_OPENING = frozenset("[(0123456789")
_BARRED = re.compile(r"(?:[0-9a-f]{8,64} \|\| )?(\[rank=\d{1,7}\] \|\|) ?")
_SIGNED = re.compile(r"\[rank(\d{1,7})\]: ?(?:\[rank(\d{1,7})\]: ?)*")  # the last one is torch's own
_RELABELLED = re.compile(r"\[rank(\d{1,7})\]: ?\[rank(?!\1\])\d{1,7}\]:")
_OTHERS = re.compile(r"\[rank=(\d{1,7})\](?: \|\|| pid=)|\[\d{1,6},(\d{1,7})\]<std\w{2,5}>:")
_PROSE = re.compile(r"[\"']|(?:Error|Exception|Warning|Exit|Interrupt)\b|\b[A-Za-z]{2,} +[A-Za-z]{2,}\b")
_REPEATED = " across cluster]"
_REPEATS = re.compile(r" \[repeated \d{1,9}x across cluster\]$")


def split_prefix(raw: str) -> tuple[str, str]:
    """What names the writer of a line (``[rank3]:``; times and numbers do not), and the line itself, without colours."""
    line = without_colours(raw[:LONGEST_LINE])
    if line[-1:] == "]" and line.endswith(_REPEATED):  # what several workers of Ray wrote is shown once
        line = _REPEATS.sub("", line)
    names = ""
    while line[:1] in _OPENING and (match := _PREFIX.match(line)) is not None:
        names += (match["stream"] or "").strip()
        line = line[match.end() :]
    if "[rank" not in line or "[rank" in names:
        return names, line
    signed = find_signature(line) or _BARRED.match(line)
    return (names, line) if signed is None else (signed[0].strip(), line[signed.end() :])


def without_colours(line: str) -> str:
    """A line without the codes of terminals, also where a program has made them readable."""
    return _ANSI.sub("", line) if "\x1b" in line or "^[[" in line or "#033[" in line else line


def find_signature(line: str) -> re.Match[str] | None:
    """Torch's ``[rankN]:``, where nothing but a prefix stands before it: text of a program may quote it."""
    at = line.find("[rank", 0, _HEAD)
    if at < 0:
        return None
    signed = _SIGNED.match(line, at)
    return None if signed is None or _PROSE.search(line, 0, at) else signed


def signer_of(names: str) -> int | None:
    """The global rank in what names a writer, whoever signs."""
    match = _SIGNED.search(names) or _OTHERS.search(names)
    return None if match is None else int(match[2] or match[1])


def other_signer(line: str) -> int | None:
    """The global rank that another than torch signs with. That it signs says nothing of whether an exception was caught."""
    head = line[:_HEAD]
    return signer_of(split_prefix(head)[0]) if "rank=" in head or "]<std" in head else None


def signers(text: str) -> frozenset[int]:
    """The ranks that sign lines of a text. Linear."""
    found: set[int] = set()
    is_doubled = is_relabelled(text)
    for match in _SIGNED.finditer(text):
        if is_doubled and match[0].count("[") < 2:
            continue
        if (rank := int(match[2] or match[1])) not in found and _begins(text, match.start()):
            found.add(rank)
    if "rank=" in text or "]<std" in text:
        found |= {other for line in text.splitlines() if (other := other_signer(line)) is not None}
    return frozenset(found)


def is_relabelled(text: str) -> bool:
    """Whether a launcher writes local ranks in the form of a signature, so that one that stands alone says no global rank."""
    return _RELABELLED.search(text) is not None


def is_signed(text: str) -> bool:
    """Whether torch's hook has signed any line of a text."""
    return any(_begins(text, match.start()) for match in _SIGNED.finditer(text))


def _begins(text: str, at: int) -> bool:
    """Whether nothing but a prefix stands before ``at`` in its line."""
    first = max(0, at - _HEAD)
    start = max(text.rfind("\n", first, at), text.rfind("\r", first, at)) + 1
    return (start > 0 or first == 0) and _PROSE.search(without_colours(text[start:at])) is None
