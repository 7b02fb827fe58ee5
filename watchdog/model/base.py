"""The common form of every noun: frozen, keyword-only, and cheap to build, encode and compare."""

from msgspec import Struct


class Noun(Struct, frozen=True, kw_only=True):
    """An immutable value. Equality is by value; unknown keys are ignored when decoding."""
