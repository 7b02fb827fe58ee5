"""When do two ranks' operations at one sequence number belong together?

They must agree in operation, data type and size - except where the operation itself allows otherwise: the sizes of
all-to-all, gather and scatter differ legally, and so do the types of the tensors that non-root ranks hand to rooted operations
(pytorch/pytorch#163839). Sizes are compared in elements: one rank may view its tensor in another shape. A coalesced group is
one operation with the tensors of all its members; where the ring has lost these, only its name can be compared.
"""

from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from math import prod
from zlib import crc32

from pardbg.watchdog.model.names import Mismatch
from pardbg.watchdog.model.operations import EQUAL_SIZE_OPS, ROOTED_OPS
from pardbg.watchdog.model.recording import NO_SITE, Frame, Operation, Recording, Signature


@dataclass(frozen=True)
class Token:
    """What one rank issued, reduced to what the members of a group must agree on. ``where`` is None if not recorded."""

    op: str
    dtypes: tuple[str, ...] | None
    elements: tuple[int, ...] | None
    where: str | None

    def differs(self, other: "Token") -> Mismatch | None:
        """The first thing in which two tokens differ, in the order of the contract."""
        if self.op != other.op:
            return Mismatch.OP
        if not (self.is_partial or other.is_partial):
            if self.types != other.types:
                return Mismatch.DTYPE
            if self.elements != other.elements or self.dtypes != other.dtypes:
                return Mismatch.SIZE
        if self.where != other.where and self.where and other.where:
            return Mismatch.CALL_SITE
        return None

    @property
    def types(self) -> tuple[str, ...] | None:
        """The types, once where all are the same: a tensor more is another size, not another type."""
        return self.dtypes if self.dtypes is None or len({*self.dtypes}) > 1 else self.dtypes[:1]

    @property
    def is_partial(self) -> bool:
        """Whether the arguments that it should have are lost: all that is known is the operation."""
        return self.elements is None and self.op in EQUAL_SIZE_OPS

    @cached_property
    def hard(self) -> "Token":
        """The token without its call site, which may differ legally."""
        return self if self.where is None else Token(self.op, self.dtypes, self.elements, None)

    @cached_property
    def digest(self) -> bytes:
        """Eight bytes that are the same for equal tokens, on every machine."""
        told = repr((self.op, self.dtypes, self.elements, self.where))
        return blake2b(told.encode(errors="backslashreplace"), digest_size=8).digest()


def tokenize(recording: Recording, operation: Operation, cache: dict[tuple[int, int], Token]) -> Token:
    """Reduces an operation to its token; ``cache`` belongs to the recording."""
    key = (operation.signature, operation.site)
    token = cache.get(key)
    if token is None:
        signature = recording.signatures[operation.signature]
        where = None if operation.site == NO_SITE else call_site(recording.sites[operation.site])
        token = cache[key] = Token(signature.op, _dtypes(signature), _elements(signature), where)
    return token


def chain(before: int, token: Token) -> int:
    """Continues a chain of hashes (`Block`), which starts with 0, by one operation."""
    return crc32(token.digest, before)


def call_frame(frames: tuple[Frame, ...]) -> Frame | None:
    """The innermost frame outside of torch: where the training code issued the operation."""
    own = (frame for frame in frames if "/torch/" not in frame.filename)
    return next(own, frames[0] if frames else None)


def call_site(frames: tuple[Frame, ...]) -> str | None:
    """The same as reports write it."""
    frame = call_frame(frames)
    return frame.where if frame else None


def total_elements(sizes: tuple[tuple[int, ...], ...]) -> int:
    """The number of elements of all tensors together."""
    return sum(prod(size) for size in sizes)


def _dtypes(signature: Signature) -> tuple[str, ...] | None:
    if signature.op in ROOTED_OPS or signature.op not in EQUAL_SIZE_OPS or not signature.input_sizes:
        return None
    return signature.input_dtypes


def _elements(signature: Signature) -> tuple[int, ...] | None:
    if signature.op not in EQUAL_SIZE_OPS or not signature.input_sizes:
        return None
    return tuple(prod(size) for size in signature.input_sizes)
