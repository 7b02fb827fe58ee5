"""Every error pardbg raises on purpose.

PardbgError
+-- InputError    what the user gave cannot be used (exit 2)
|   +-- AmbiguousJobError  it means more than one job (exit 2, and a line each with the command that means one)
+-- ParseError    one piece of evidence is not what it claims to be (becomes an unknown, never ends an analysis)
"""


class PardbgError(Exception):
    """What happened, to which object, with which value. ``remedy`` says what to try; the command line joins the two."""

    remedy = "run the command again with --help"

    def __init__(self, message: str, *, remedy: str | None = None) -> None:
        super().__init__(message)
        if remedy is not None:
            self.remedy = remedy


class InputError(PardbgError):
    """The command cannot start with what the user gave."""


class AmbiguousJobError(InputError):
    """What the user gave means several jobs. ``choices`` are command lines, each of which means one of them."""

    remedy = "choose one of"

    def __init__(self, message: str, choices: tuple[str, ...]) -> None:
        super().__init__(message)
        self.choices = choices


class ParseError(PardbgError):
    """Bytes that are not what their content claims. Parsers raise nothing else."""

    remedy = "collect the file again; the other files are still used"
