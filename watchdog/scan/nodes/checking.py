"""Whether an answer that has the right form also makes sense: a node may be ill, or speak another version."""

from collections.abc import Iterable, Iterator

from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.evidence import Evidence, FlightRecording
from pardbg.watchdog.model.members import MAX_WORLD_SIZE, Run
from pardbg.watchdog.model.recording import NO_SITE, Recording
from pardbg.watchdog.scan.nodes.messages import Entries, Found, Reply, Seen


def check_reply(reply: Reply) -> None:
    """Linear in the size of the reply.

    Raises:
        ParseError: if it speaks of ranks no job has, or of entries that are not in its own tables.
    """
    if isinstance(reply, Found) and reply.chosen is not None:
        world = reply.chosen.world
        _check_ranks(rank.rank for rank in world.ranks)
        _check_ranks([world.world_size or 0])
    elif isinstance(reply, Seen):
        _check_ranks(item.rank for item in reply.evidence if item.rank is not None)
    for recording in _recordings(reply):
        _check_recording(recording)


def _recordings(reply: Reply) -> Iterator[Recording]:
    if isinstance(reply, Seen):
        seen: Iterable[Evidence] = reply.evidence
        yield from (item.observation.recording for item in seen if isinstance(item.observation, FlightRecording))
    elif isinstance(reply, Entries):
        yield from (cut.recording for cut in reply.cuts)


def _check_ranks(ranks: Iterable[int]) -> None:
    if any(not 0 <= rank <= MAX_WORLD_SIZE for rank in ranks):
        raise ParseError("it speaks of ranks that no job has")


def _check_recording(recording: Recording) -> None:
    groups, signatures, sites = len(recording.groups), len(recording.signatures), len(recording.sites)
    for operation in recording.operations:
        if not (0 <= operation.group < groups and 0 <= operation.signature < signatures and NO_SITE <= operation.site < sites):
            raise ParseError("its recording points outside its own tables")
    if any(not 0 <= block.group < groups for block in (recording.summary.blocks if recording.summary is not None else ())):
        raise ParseError("its recording points outside its own tables")
    for config in recording.configs:
        _check_runs(config.runs)


def _check_runs(runs: tuple[Run, ...]) -> None:
    _check_ranks(first for first, _, _ in runs)
    _check_ranks(first + step * (count - 1) for first, step, count in runs)
    _check_ranks([sum(count for _, _, count in runs), *(count for _, _, count in runs)])
