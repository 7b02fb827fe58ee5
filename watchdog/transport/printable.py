"""Text from elsewhere, made fit for a line of ours."""

LONGEST_TEXT = 300


def printable(text: str | bytes, longest: int = LONGEST_TEXT) -> str:
    """One line without control characters (a terminal would obey them), at most ``longest`` characters."""
    words = text if isinstance(text, str) else text[: 4 * longest].decode("utf-8", "replace")
    line = "".join(character if character.isprintable() else " " for character in words[: 4 * longest])
    line = " ".join(line.split())
    return line if len(line) <= longest else line[: longest - 3] + "..."
