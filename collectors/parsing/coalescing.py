"""Coalesced groups: several entries that were launched as one, and the closing entry that alone carries their state.

Three shapes occur (pytorch/pytorch#151238, #134833):

* batched P2P: entries with one ``p2p_seq_id``, then ``coalesced`` with that number;
* collectives coalesced one by one: entries with one ``collective_seq_id``, then ``<OP>_coalesced`` or ``coalesced``;
* the fast path: a single entry such as ``allreduce_coalesced`` with all sizes. Nothing to do there.
"""

from msgspec import Struct

from pardbg.collectors.parsing.completion import split_name
from pardbg.collectors.parsing.dump_format import RawEntry


class Launch(Struct):
    """What was launched at once, in the order of the ring. ``closing`` is None for plain entries and for groups still open."""

    entries: list[RawEntry]
    closing: RawEntry | None = None

    @property
    def is_p2p_batch(self) -> bool:
        """Whether the members are P2P operations, each with a peer of its own."""
        return self.entries[0].is_p2p and (self.closing is not None or len(self.entries) > 1)


def group_launches(entries: list[RawEntry]) -> list[Launch]:
    """Puts the entries of a ring together as they were launched, in the order of their first entries."""
    launches: list[Launch] = []
    newest: dict[int | str, Launch] = {}
    for entry in entries:
        launch = newest.get(entry.pg_id)
        if launch is not None and launch.closing is None:
            if _closes(entry, launch):
                launch.closing = entry
                continue
            if _joins(entry, launch):
                launch.entries.append(entry)
                continue
        # A closing entry without members: they were overwritten, or not recorded (before 2.7).
        launch = newest[entry.pg_id] = Launch([entry], entry if _is_bare_closing(entry) else None)
        launches.append(launch)
    return launches


def _joins(entry: RawEntry, launch: Launch) -> bool:
    first = launch.entries[0]
    if first.is_p2p:
        return entry.is_p2p and entry.p2p_seq_id == first.p2p_seq_id != 0
    return not entry.is_p2p and entry.seq == first.seq != 0 and entry.p2p_seq_id == first.p2p_seq_id


def _closes(entry: RawEntry, launch: Launch) -> bool:
    if not _is_bare_closing(entry):
        return False
    first = launch.entries[0]
    if first.is_p2p:
        return entry.p2p_seq_id == first.p2p_seq_id
    # The number of P2P tells the end of a batch without members in the ring from the end of this collective.
    return entry.seq == first.seq and entry.p2p_seq_id == first.p2p_seq_id


def _is_bare_closing(entry: RawEntry) -> bool:
    if entry.is_p2p or entry.input_sizes or entry.output_sizes:
        return False
    op = split_name(entry.profiling_name)[1]
    return op == "coalesced" or op.endswith("_coalesced")
