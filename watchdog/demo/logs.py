"""Where torchrun and its ranks write, and what they said last."""

from pathlib import Path

LOG_NAME = "torchrun.log"
LOG_FOLDER = "logs"


def stderr_by_rank(scratch: Path) -> dict[int, str]:
    """What the ranks wrote, without those that wrote nothing. One host: the folder's name, the local rank, is the rank."""
    paths = sorted((scratch / LOG_FOLDER).glob("*/attempt_0/*/stderr.log"))
    texts = {int(path.parent.name): path.read_text(errors="replace") for path in paths}
    return {rank: text for rank, text in texts.items() if text.strip()}


def last_words(scratch: Path) -> str:
    """The last line that a rank, or else torchrun, wrote."""
    texts = [*stderr_by_rank(scratch).values(), (scratch / LOG_NAME).read_text(errors="replace")]
    lines = [line for text in texts for line in text.splitlines()[-1:]]
    return lines[0].partition("]: ")[2] or lines[0] if lines else "no output"
