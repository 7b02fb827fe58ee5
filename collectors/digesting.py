"""A ring in small: what a scan of many nodes needs of it at first. Pure, linear in the number of operations.

Kept are the operations that say where a rank stands: those that are unfinished, and the newest that are finished. Of the rest
a `Summary` holds hashes. Nothing of it is "missing": see `watchdog/graph/progress.py`.
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec
from msgspec.structs import replace

from pardbg.collectors.cutting import keep_operations
from pardbg.watchdog.model.calls import MOST_PACKED, pack_calls, recorded_calls
from pardbg.watchdog.model.issuing import issuing_functions, loop_function
from pardbg.watchdog.model.matching import Token, call_frame, chain, tokenize
from pardbg.watchdog.model.operations import ROOTED_OPS
from pardbg.watchdog.model.pauses import longest_gap_ns, usual_gap_ns
from pardbg.watchdog.model.recording import Frame, Recording
from pardbg.watchdog.model.summary import BLOCK_SIZE, KEPT_OPEN, KEPT_P2P, Block, Function, Summary

MOST_BYTES = 8 * 1024
_KEPT_FINISHED = 2
_KEPT_BLOCKS = 4
"""Whole ones, besides the open one."""
_FEWER = 4

_encoder = msgspec.msgpack.Encoder()


def digest(recording: Recording, most_bytes: int = MOST_BYTES) -> Recording:
    """The digest of a whole recording, at most so large; where something had to be cut for that, its summary says so."""
    if recording.summary is not None:
        return recording
    lanes = _lanes(recording)
    summary = Summary(
        first_record_id=recording.first_record_id,
        longest_gap_ns=longest_gap_ns(recording),
        usual_gap_ns=usual_gap_ns(recording),
        functions=_by_file(issuing_functions(recording)),
        loop_function=loop_function(recording),
        blocks=() if recording.damage else tuple(_blocks(recording, lanes)),
        calls=pack_calls(recorded_calls(recording, MOST_PACKED)),
    )
    small = _keep(recording, lanes, KEPT_OPEN, KEPT_P2P, summary)
    if _size(small) <= most_bytes:
        return small
    return _cut_down(recording, lanes, summary, most_bytes)


def _cut_down(recording: Recording, lanes: "_Lanes", summary: Summary, most_bytes: int) -> Recording:
    """Leaves out more and more, what is least needed first."""
    summary = replace(summary, calls=b"")  # not told: who hangs is found without
    small = _keep(recording, lanes, KEPT_OPEN, KEPT_P2P, summary)
    if _size(small) <= most_bytes:
        return small
    few = replace(summary, cut="most of the unfinished operations and of the transfers")
    small = _keep(recording, lanes, _FEWER, _FEWER, few)
    if _size(small) > most_bytes:
        without_blocks = replace(few, blocks=(), cut=f"{few.cut}, and what was issued before")
        small = _keep(recording, lanes, 1, 1, without_blocks)
    if _size(small) > most_bytes:
        told = replace(small.summary or summary, functions=(), cut="call sites, sizes, and most of the operations")
        bare = tuple(replace(signature, input_sizes=(), output_sizes=()) for signature in small.signatures)
        small = replace(small, sites=tuple(() for _ in small.sites), signatures=bare, summary=told)
    longest = sorted(small.configs, key=lambda config: -len(config.runs))
    while longest and _size(small) > most_bytes:
        gone = longest.pop(0)
        told = replace(small.summary or summary, cut="the members of large groups, and most of the operations")
        small = replace(small, configs=tuple(config for config in small.configs if config is not gone), summary=told)
    return small if _size(small) <= most_bytes else _nothing(recording, most_bytes)


def _nothing(recording: Recording, most_bytes: int) -> Recording:
    """Of a rank with hundreds of groups: half of the truth would make it look as if it had issued nothing."""
    told = f"its digest would be larger than {most_bytes} bytes: too many groups"
    empty = Recording(
        version=recording.version,
        library_version=recording.library_version,
        groups=(),
        signatures=(),
        sites=(),
        operations=(),
        configs=(),
        progress=(),
        local_ids={},
        damage=told,
    )
    return replace(empty, summary=Summary(cut="everything"))


def _by_file(functions: Iterable[Function]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    files: dict[str, list[str]] = {}
    for path, name in sorted(functions):
        files.setdefault(path, []).append(name)
    return tuple((path, tuple(names)) for path, names in files.items())


def _size(recording: Recording) -> int:
    return len(_encoder.encode(recording))


class _Lane:
    """The places, in the recording, of one group's operations."""

    def __init__(self) -> None:
        self.collectives: list[int] = []
        self.p2p: list[int] = []


_Lanes = dict[str, _Lane]


def _lanes(recording: Recording) -> _Lanes:
    """By the name of the group: that is how the ranks of a job know it."""
    lanes: _Lanes = {group.name: _Lane() for group in recording.groups}
    by_index = [lanes[group.name] for group in recording.groups]
    for place, operation in enumerate(recording.operations):
        lane = by_index[operation.group]
        (lane.p2p if operation.is_p2p else lane.collectives).append(place)
    return lanes


def _keep(recording: Recording, lanes: _Lanes, open_count: int, p2p_count: int, summary: Summary) -> Recording:
    places = sorted({place for lane in lanes.values() for place in _choose(recording, lane, open_count, p2p_count)})
    kept = keep_operations(recording, [recording.operations[place] for place in places])
    return replace(kept, sites=tuple(map(_innermost, kept.sites)), summary=summary)


def _innermost(frames: tuple[Frame, ...]) -> tuple[Frame, ...]:
    frame = call_frame(frames)
    return () if frame is None else (frame,)


def _choose(recording: Recording, lane: _Lane, open_count: int, p2p_count: int) -> Iterator[int]:
    operations = recording.operations
    for places in (lane.collectives, lane.p2p):
        unfinished = [place for place in places if not operations[place].is_done]
        yield from unfinished[:open_count]
        yield from unfinished[-1:]
    yield from lane.collectives[-1:]
    yield from lane.p2p[-p2p_count:]
    finished = [place for place in lane.collectives if operations[place].is_done]
    yield from finished[-_KEPT_FINISHED:]
    # That all members of a group are known is proven by what needed all of them (`Progress.is_whole`).
    is_rooted = [signature.op in ROOTED_OPS for signature in recording.signatures]
    yield from [place for place in finished if not is_rooted[operations[place].signature]][-1:]


def _blocks(recording: Recording, lanes: _Lanes) -> Iterator[Block]:
    cache: dict[tuple[int, int], Token] = {}
    numbers: dict[str, int] = {}
    for number, group in enumerate(recording.groups):
        numbers.setdefault(group.name, number)
    for name, lane in lanes.items():
        by_seq = {recording.operations[place].seq: recording.operations[place] for place in lane.collectives}
        for run in _newest_runs(sorted(by_seq)):
            hard = full = 0
            for seq in run:
                token = tokenize(recording, by_seq[seq], cache)
                hard, full = chain(hard, token.hard), chain(full, token)
            yield Block(numbers[name], run[0], len(run), hard, full)


def _newest_runs(seqs: Sequence[int]) -> list[range]:
    """The newest aligned blocks of the numbers, oldest first; where numbers are missing a block is in pieces."""
    runs: list[range] = []
    end = len(seqs)
    while end and len(runs) <= _KEPT_BLOCKS:
        start = end - 1
        while start and seqs[start - 1] == seqs[start] - 1 and seqs[start] % BLOCK_SIZE:
            start -= 1
        runs.append(range(seqs[start], seqs[end - 1] + 1))
        end = start
    return runs[::-1]
