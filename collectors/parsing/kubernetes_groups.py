"""The API groups that a cluster serves, as ``/apis`` lists them. Pure."""

import msgspec

from pardbg.watchdog.errors import ParseError


class _Group(msgspec.Struct):
    name: str


class _Groups(msgspec.Struct):
    groups: list[_Group]


def parse_groups(data: bytes) -> frozenset[str]:
    """Their names: ``batch``, ``jobset.x-k8s.io``.

    Raises:
        ParseError: if it is no such list.
    """
    try:
        return frozenset(group.name for group in msgspec.json.decode(data, type=_Groups).groups)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ParseError(f"not what /apis answers: {error}") from None
