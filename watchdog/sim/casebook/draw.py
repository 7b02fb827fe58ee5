"""Chance for one case: which rank, how many, what names. The same seed and family give the same bytes."""

import random
from collections.abc import Collection, Sequence

from pardbg.watchdog.model.recording import Frame

_WORLDS = (4, 8, 16, 32, 64)
_FILES = ("train.py", "trainer.py", "engine/loop.py", "runner/core.py", "main_train.py")
_LONGEST_FILE = 900


class Draw:
    """Draws what may be different from instance to instance, and must not change the verdict."""

    def __init__(self, name: str, seed: int) -> None:
        self._chance = random.Random(f"{name}/{seed}")
        self.seed = seed
        self.app = self._chance.choice(("/app", "/workspace/src", "/home/ml/project", "/opt/job/code"))
        self.backend = self._chance.choice(("nccl", "gloo"))
        self.entry_file = self._chance.choice(_FILES)

    def world(self, least: int = 4, most: int = 64) -> int:
        """A world size of common ones."""
        return self._chance.choice([size for size in _WORLDS if least <= size <= most])

    def number(self, least: int, most: int) -> int:
        """Any of these, both ends included."""
        return self._chance.randint(least, most)

    def size(self) -> int:
        """Elements of a tensor."""
        return self._chance.choice((1, 64, 593_920, 1024, 24_084_544, 4096 * 4096))

    def sizes(self, count: int) -> list[int]:
        """Different sizes."""
        return self._chance.sample((64, 256, 1025, 2048, 7168, 262_144, 593_920, 4_194_304), count)

    def rank(self, among: Collection[int] | range, *, but: Collection[int] = ()) -> int:
        """One of these ranks."""
        return self._chance.choice([rank for rank in among if rank not in but])

    def ranks(self, count: int, among: Collection[int] | range) -> tuple[int, ...]:
        """Some of these ranks, sorted."""
        return tuple(sorted(self._chance.sample(list(among), count)))

    def several(self, lines: Sequence[str]) -> list[str]:
        """Some of these, in their order."""
        return [line for line in lines if self._chance.random() < 0.5]

    def minority(self, world: int) -> tuple[int, ...]:
        """So few ranks that the others are a clear majority."""
        return self.ranks(self._chance.randint(1, max(1, world // 5)), range(world))

    def line(self) -> int:
        """A line of a source file."""
        return self._chance.randint(12, _LONGEST_FILE)

    def own(self, name: str, file: str = "") -> Frame:
        """A function of the training code, somewhere in ``file``."""
        return Frame(name=name, filename=f"{self.app}/{file or self.entry_file}", line=self.line())
