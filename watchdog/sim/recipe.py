"""What to simulate: the fault, the job, and how its evidence is recorded and written."""

from pardbg.watchdog.errors import InputError
from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.sim.layout import ParallelLayout, default_layout, parse_layout

BACKENDS = ("nccl", "gloo")
_NEWEST_FORMAT = "2.10"


class Recipe(Noun, frozen=True, kw_only=True):
    """All that decides the bytes: equal recipes give equal files.

    ``entries`` is the size of the rings, and so the length of the history. ``missing`` are ranks whose dumps are not written.
    With ``has_skew`` the rings have wrapped at different places and the hosts' clocks are apart. ``dump_version`` is the
    format: 2.9 as NCCL builds of 2025 write it, or 2.10.
    """

    fault: str
    ranks: int = 16
    layout: str | None = None
    backend: str = "nccl"
    seed: int = 0
    entries: int = 200
    missing: tuple[int, ...] = ()
    has_skew: bool = False
    is_json: bool = False
    is_active_only: bool = False
    has_frames: bool = True
    dump_version: str | None = None

    @property
    def parallel_layout(self) -> ParallelLayout:
        """The layout asked for, or one that suits the job. gloo records no P2P, so a pipeline would hide who waits."""
        if self.layout:
            return parse_layout(self.layout, self.ranks)
        return default_layout(self.ranks, has_pipeline=self.backend != "gloo")

    @property
    def records_frames(self) -> bool:
        """JSON dumps never have frames."""
        return self.has_frames and not self.is_json

    @property
    def shows_call_sites(self) -> bool:
        """Whether the call sites of finished operations can be compared."""
        return self.records_frames and (self.backend == "gloo" or not self.is_active_only)

    @property
    def version(self) -> str:
        """The format written; gloo and JSON dumps came with 2.10."""
        return self.dump_version or (_NEWEST_FORMAT if self.backend == "gloo" or self.is_json else "2.9")

    def check(self) -> None:
        """Raises `InputError` for what cannot be simulated."""
        if self.backend not in BACKENDS:
            raise InputError(f"back end {self.backend!r} is not simulated: use nccl or gloo")
        if self.version not in ("2.9", _NEWEST_FORMAT):
            raise InputError(f"dump version {self.version!r} is not simulated: use 2.9 or 2.10")
        if self.entries < 1:
            raise InputError(f"a ring of {self.entries} entries records nothing: ask for at least 1")
        strangers = sorted(rank for rank in self.missing if not 0 <= rank < self.ranks)
        if strangers:
            raise InputError(f"--missing {strangers[0]}: the job has the ranks 0 to {self.ranks - 1}")
