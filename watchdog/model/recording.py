"""What one rank's flight recorder says, back-end quirks removed: groups, operations, progress.

The compact form matters: a job has millions of entries. An operation holds indices into the recording's tables, so that equal
signatures and call sites are stored once.
"""

import re
from collections.abc import Sequence

from msgspec import Struct

from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.members import Run, fold_members, unfold_members
from pardbg.watchdog.model.short_names import is_of_library, is_short
from pardbg.watchdog.model.summary import Function, Summary

NO_SITE = -1
_LIBRARY = re.compile(r"/(?:site-packages|dist-packages|lib/python3[.\d]*)/|/collectors/probe/\w+\.py$|^<")  # our probe, too
_NATIVE_SOURCES = (".c", ".cc", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".rs")  # of native frames with debug information


class Frame(Noun, frozen=True, kw_only=True):
    """One stack frame; ``line`` is 0 where the tool does not know it."""

    name: str
    filename: str
    line: int

    @property
    def is_library(self) -> bool:
        """Whether it is of an installed library or of Python itself."""
        return is_of_library(self.filename) if is_short(self.filename) else _LIBRARY.search(self.filename) is not None

    @property
    def is_own(self) -> bool:
        """Whether it is of the training code: of no library, and not native."""
        return bool(self.line) and not self.is_library and not self.filename.endswith(_NATIVE_SOURCES)

    @property
    def bare_name(self) -> str:
        """``wrapper`` of ``_exception_logger.<locals>.wrapper``: recorders write the bare one, py-spy the qualified."""
        return self.name.rsplit(".", 1)[-1]

    @property
    def function(self) -> Function:
        """The function by file and bare name: recorders write ``step``, py-spy ``Trainer.step``."""
        return self.filename, self.bare_name

    @property
    def where(self) -> str:
        """``file:line function``, the form of every call site in a report."""
        return f"{self.filename}:{self.line} {self.name}"

    @property
    def short(self) -> str:
        """``function (last/two:line)``, for chains of frames."""
        return f"{self.name} ({'/'.join(self.filename.split('/')[-2:])}:{self.line})"


class Signature(Noun, frozen=True, kw_only=True, omit_defaults=True):
    """What an operation is, without when: two ranks match if these agree as far as the operation demands.

    Sizes are the shapes of the tensors, in elements. ``src`` and ``dst`` are group ranks, for send and recv only.
    """

    backend: str
    op: str
    input_sizes: tuple[tuple[int, ...], ...] = ()
    output_sizes: tuple[tuple[int, ...], ...] = ()
    input_dtypes: tuple[str, ...] = ()
    output_dtypes: tuple[str, ...] = ()
    src: int | None = None
    dst: int | None = None


class Operation(Struct, frozen=True, array_like=True, gc=False):
    """One entry of the ring. ``group``, ``signature`` and ``site`` are indices into the recording's tables.

    ``seq`` is the collective sequence number, the key that aligns ranks. ``batch`` tells apart the coalesced groups of P2P
    operations (0: not coalesced): all operations of a batch are launched together. ``created_ns`` is wall time, epoch ns;
    ``completed_ns`` when it was noticed to be finished, up to a tenth of a second late; 0 where the back end does not tell.
    """

    record_id: int
    group: int
    seq: int
    p2p_seq: int
    signature: int
    site: int
    created_ns: int
    is_done: bool
    is_p2p: bool
    batch: int = 0
    completed_ns: int = 0


class GroupName(Noun, frozen=True, kw_only=True):
    """How an entry names its process group."""

    name: str
    desc: str


class GroupConfig(Noun, frozen=True, kw_only=True):
    """A process group of this rank with its members (global ranks, by group rank) as the recorder knows them."""

    name: str
    desc: str
    runs: tuple[Run, ...]

    @classmethod
    def of(cls, name: str, desc: str, ranks: Sequence[int]) -> "GroupConfig":
        """Builds it from a list of members."""
        return cls(name=name, desc=desc, runs=fold_members(ranks))

    @property
    def ranks(self) -> tuple[int, ...]:
        """The members."""
        return unfold_members(self.runs)


class GroupProgress(Noun, frozen=True, kw_only=True):
    """The counters that survive a wrapped ring, -1 for none, keyed by a number that only this process understands."""

    local_id: str
    last_enqueued: int
    last_completed: int


class Recording(Noun, frozen=True, kw_only=True, omit_defaults=True):
    """One dump of one rank's flight recorder, oldest operation first.

    ``local_ids`` maps the process's own group numbers to group names, as far as the ring's entries show it.
    ``unrecorded_p2p`` names the groups that also carry point-to-point operations the recorder does not show (gloo): a rank
    with nothing outstanding may be waiting in one. ``damage`` says what of the file was lost, or is empty.
    A *digest* has a ``summary`` of the operations that it leaves out: they are finished, or queued far behind.
    """

    version: str
    library_version: str
    groups: tuple[GroupName, ...]
    signatures: tuple[Signature, ...]
    sites: tuple[tuple[Frame, ...], ...]
    operations: tuple[Operation, ...]
    configs: tuple[GroupConfig, ...]
    progress: tuple[GroupProgress, ...]
    local_ids: dict[str, str]
    unrecorded_p2p: tuple[str, ...] = ()
    damage: str = ""
    summary: Summary | None = None

    @property
    def first_record_id(self) -> int:
        """Of the oldest operation in the ring, be it left out here or not; 0: nothing has been overwritten yet."""
        if self.summary is not None:
            return self.summary.first_record_id
        return self.operations[0].record_id if self.operations else 0

    @property
    def is_switched_on(self) -> bool:
        """An idle recorder still has progress counters; one that is off has neither counters nor entries."""
        return bool(self.operations or self.progress)
