r"""One text made safe to show: characters that steer a terminal or reorder text become visible, e.g. ``\x1b``."""

import unicodedata

_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories that steer a terminal, reorder text, cannot be encoded, or break a line."""


def printable_text(text: str) -> str:
    """Show characters that would act instead of being read. A tab becomes a space; white space at the ends goes."""
    text = text.strip()
    if text.isascii() and text.isprintable():
        return text
    return "".join(_show(character) for character in text.replace("\t", " "))


def shorten(text: str, most: int) -> str:
    """At most about so many characters; what is cut off is cut between words, and shown by dots."""
    if len(text) <= most:
        return text
    head, gap, _ = text[:most].rpartition(" ")
    return f"{head if gap and len(head) > most // 2 else text[:most]} ..."


def _show(character: str) -> str:
    return ascii(character)[1:-1] if unicodedata.category(character) in _INVISIBLE else character
