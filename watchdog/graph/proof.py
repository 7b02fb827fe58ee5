"""What a finished collective proves of those who were not seen to enter it.

No member of an all-reduce or a barrier can finish before all members have entered, and a communicator's work runs in the order
in which it was issued. So where one member has finished collective n, every other has entered n and has finished what came
before: a dump that does not show that it has entered n was written earlier, and is an old picture of its rank. Where it shows
n, and n or something before it is not finished, the device of that rank does not finish: a finding, and no old dump.

This holds on devices only: gloo's recorder ends an operation that failed like one that succeeded. And not for operations with a
root, whose root may be done alone, nor for an all-to-all, which sends nothing to ranks that get nothing, nor without elements.
"""

from collections.abc import Iterable, Mapping
from itertools import islice
from math import prod

from pardbg.watchdog.graph.groups import Group
from pardbg.watchdog.model.operations import DEVICE_BACKENDS, EQUAL_SIZE_OPS, ROOTED_OPS
from pardbg.watchdog.model.recording import Operation, Recording, Signature

_PROVING = EQUAL_SIZE_OPS - ROOTED_OPS
_NEWEST = 256  # collectives of a rank in a group that are looked at: in some groups none proves anything


def proven_entries(
    recordings: Mapping[int, Recording], groups: Iterable[Group], issued: Mapping[tuple[int, int], dict[int, Operation]]
) -> dict[int, int]:
    """Per group the newest collective that all its members have entered, since one of them has finished it.

    Groups whose members contradict each other prove nothing. Cost: few of each rank's newest operations.

    Args:
        recordings: by rank.
        groups: all of the job.
        issued: the collectives of each rank in each group, by their sequence number, oldest first.
    """
    contested = {group.index for group in groups if group.claims}
    proving: dict[int, frozenset[int]] = {}  # by identity: most ranks share their tables
    proven: dict[int, int] = {}
    for (rank, group), collectives in issued.items():
        signatures, known = recordings[rank].signatures, proven.get(group, 0)
        if id(signatures) not in proving:
            proving[id(signatures)] = frozenset(index for index, signature in enumerate(signatures) if _proves(signature))
        able = proving[id(signatures)] if group not in contested else frozenset()
        for operation in islice(reversed(collectives.values()), _NEWEST if able else 0):
            if operation.seq <= known:
                break
            if operation.is_done and operation.signature in able:
                proven[group] = operation.seq
                break
    return proven


def _proves(signature: Signature) -> bool:
    sizes = (*signature.input_sizes, *signature.output_sizes)
    is_empty = bool(sizes) and not any(map(prod, sizes))
    return signature.op in _PROVING and signature.backend in DEVICE_BACKENDS and not is_empty
