"""A part of a recording, with the tables it needs. Pure."""

from collections.abc import Iterable

from msgspec.structs import replace

from pardbg.watchdog.model.recording import NO_SITE, Operation, Recording
from pardbg.watchdog.model.wanted import Wanted


def keep_operations(recording: Recording, operations: Iterable[Operation]) -> Recording:
    """The same recording with these of its operations, in their order; signatures and call sites that none uses are gone."""
    signatures: dict[int, int] = {}
    sites: dict[int, int] = {NO_SITE: NO_SITE}
    kept = tuple(
        Operation(
            operation.record_id,
            operation.group,
            operation.seq,
            operation.p2p_seq,
            signatures.setdefault(operation.signature, len(signatures)),
            sites.setdefault(operation.site, len(sites) - 1),
            operation.created_ns,
            is_done=operation.is_done,
            is_p2p=operation.is_p2p,
            batch=operation.batch,
        )
        for operation in operations
    )
    return replace(
        recording,
        operations=kept,
        signatures=tuple(recording.signatures[index] for index in signatures),
        sites=tuple(recording.sites[index] for index in sites if index != NO_SITE),
    )


def cut(recording: Recording, wanted: Wanted) -> Recording:
    """What is wanted of a whole recording."""
    if not wanted.group:
        return recording
    named = {index for index, group in enumerate(recording.groups) if group.name == wanted.group}
    chosen = (
        operation
        for operation in recording.operations
        if operation.group in named and not operation.is_p2p and wanted.first_seq <= operation.seq <= wanted.last_seq
    )
    return replace(keep_operations(recording, chosen), configs=(), progress=())
