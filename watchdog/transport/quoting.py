"""Words -> one line that any login shell takes apart into the same words: sh, bash, zsh, csh, tcsh, fish. Pure.

No quotes, since shells differ in what they expand between them (csh: ``!``; fish: backslashes). A backslash before every
character that is not certainly plain means that character in all of them.
"""

from collections.abc import Iterable

from pardbg.watchdog.errors import InputError

_PLAIN = frozenset("_-./:@%+,")


def quote_for_any_shell(words: Iterable[str]) -> str:
    """The line.

    Raises:
        InputError: for an empty word or one with a control character: these cannot be written the same way for all shells.
    """
    return " ".join(_quote(word) for word in words)


def _quote(word: str) -> str:
    if not word or not word.isprintable():
        raise InputError(
            f"{word!r} cannot be given to a remote shell: it is empty, or has characters that cannot be printed",
            remedy="give another command with --remote-command, e.g. a script on the nodes",
        )
    return "".join(character if character.isalnum() or character in _PLAIN else f"\\{character}" for character in word)
