"""What a right report says of simulated evidence, by the contract's rules of blame."""

from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.names import Cause, Edit, Kind, Mismatch, Status

FAULT_EXIT, UNDETERMINED_EXIT = 3, 4


class Answer(Noun, frozen=True, kw_only=True):
    """A verdict in short. ``kind`` is null for none."""

    kind: Kind | None
    cause: Cause | None = None
    culprits: tuple[int, ...] = ()


class Truth(Noun, frozen=True, kw_only=True):
    """The right verdict, and what else may honestly be said.

    ``culprits`` are all ranks to blame for ``kind``; ``also`` has the culprits of further findings of other kinds, which may
    stand next to the verdict or be set aside, but nobody else may be blamed. A null ``cause`` means that the evidence does not
    show one. ``hosts`` are blamed as hosts or as ends of a link; ``waiting_for`` are busy and not guilty. ``victims_exclude``
    must not be called victims. ``acceptable`` lists answers that are less sharp, yet not wrong.
    """

    kind: Kind | None
    cause: Cause | None = None
    culprits: tuple[int, ...] = ()
    candidates: tuple[int, ...] = ()
    hosts: tuple[str, ...] = ()
    waiting_for: tuple[int, ...] = ()
    victims_exclude: tuple[int, ...] = ()
    mismatch: Mismatch | None = None
    edit: Edit | None = None
    status: Status = Status.HUNG
    exit_code: int = FAULT_EXIT
    also: tuple[tuple[int, ...], ...] = ()
    missing_files: tuple[int, ...] = ()
    acceptable: tuple[Answer, ...] = ()
    note: str = ""


NOT_SURE = Answer(kind=Kind.INSUFFICIENT_EVIDENCE)
HEALTHY = Truth(kind=None, status=Status.HEALTHY, exit_code=0, note="nothing is outstanding")


def unknown_because(note: str, *, acceptable: tuple[Answer, ...] = ()) -> Truth:
    """Something is wrong, and what is left of the evidence cannot say what."""
    return Truth(kind=Kind.INSUFFICIENT_EVIDENCE, exit_code=UNDETERMINED_EXIT, acceptable=acceptable, note=note)
