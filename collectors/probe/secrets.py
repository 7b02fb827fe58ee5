"""Takes out of a line of a log what looks like a secret, before the line is stored anywhere.

A line of an exception is evidence, and sometimes it quotes a password. What is told by its name, its form or its place in an
address becomes `***`. A limit: a secret that looks like a word is not recognised.
"""

import re

HIDDEN = "***"
_NAMED = re.compile(
    r"(?i)((?:[\w-]*(?:secret|token|passw(?:or)?d|passphrase|passwd|pwd|credential(?!s)|api[_-]?key|access[_-]?key|private[_-]?key|authorization)"
    r"[\w-]*)[\"']?\s*(?:[:=]|\bis\b)\s*[\"']?)(?:bearer\s+|basic\s+)?[^\s\"',;)}\]]+"
)
_NAMED_PARTS = ("secret", "token", "passw", "passphrase", "pwd", "credent", "key", "author")  # else the slow search is in vain
_BEARER = re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{8,}")
_IN_ADDRESS = re.compile(r"(://)[^/\s@]+@")
_FORM = re.compile(
    r"\b(?:AKIA|ASIA)[A-Z0-9]{12,}\b|\b(?:hf|sk|pk|rk|ghp|gho|ghs|github_pat|glpat|xox[abprs])[-_][\w-]{8,}|\beyJ[\w-]+\.[\w-]+\.[\w-]*"
)
_LONG = re.compile(r"(?<![\w/.-])(?=[\w+/=-]*\d)(?=[\w+/=-]*[A-Za-z])[A-Za-z0-9+_=-]{32,}(?![\w/.-])")


def hide_secrets(text: str) -> str:
    """The text with `***` for what looks like a secret."""
    text = _IN_ADDRESS.sub(rf"\1{HIDDEN}@", text)
    text = _BEARER.sub(rf"\1 {HIDDEN}", text)
    folded = text.casefold()
    if any(part in folded for part in _NAMED_PARTS):
        text = _NAMED.sub(rf"\1{HIDDEN}", text)
    return _LONG.sub(HIDDEN, _FORM.sub(HIDDEN, text))
