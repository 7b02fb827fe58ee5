"""A simulated job as its nodes would tell of it: digests, node by node, and entries of the rings when asked."""

import json
from collections.abc import Iterator, Sequence

from pardbg.collectors.cutting import cut
from pardbg.collectors.digesting import digest
from pardbg.collectors.parsing.flight_recorder import parse_flight_recorder
from pardbg.collectors.parsing.job_file import parse_job
from pardbg.collectors.parsing.rank_log import parse_rank_log
from pardbg.collectors.parsing.stacks import parse_stacks
from pardbg.watchdog.model.evidence import Evidence, FlightRecording
from pardbg.watchdog.model.names import CollectorName
from pardbg.watchdog.model.recording import Recording
from pardbg.watchdog.model.wanted import Cut, Wanted
from pardbg.watchdog.sim.dump import Dump, encode_json, encode_pickle
from pardbg.watchdog.sim.processes import RANKS_PER_HOST, describe_job
from pardbg.watchdog.sim.recipe import Recipe
from pardbg.watchdog.sim.scenario import play_job
from pardbg.watchdog.sim.truth import Truth

Node = tuple[str, tuple[Evidence, ...]]


class SimulatedNodes:
    """The nodes of one simulated job. Rings are made anew when they are needed: all of a large job do not fit in memory."""

    def __init__(self, recipe: Recipe) -> None:
        """Plays the job.

        Raises:
            InputError: if it cannot be simulated.
        """
        self._played = play_job(recipe)
        description = parse_job(json.dumps(describe_job(self._played.scene)).encode())
        self.job = Evidence(source=CollectorName.HOST, rank=None, observation=description, origin="job.json")
        self._hosts = {rank.rank: rank.host or "" for rank in description.ranks}

    @property
    def truth(self) -> Truth:
        """What a right report says."""
        return self._played.truth

    def nodes(self) -> Iterator[Node]:
        """What each node sends, in the order of the nodes."""
        stacks, dumps = self._played.stacks(), self._played.dumps()
        rank, dump = next(dumps, (None, None))
        ranks = list(self._hosts)
        for first in range(0, len(ranks), RANKS_PER_HOST):
            here = ranks[first : first + RANKS_PER_HOST]
            found: list[Evidence] = []
            while rank is not None and dump is not None and rank <= here[-1]:
                found.append(self._recorded(rank, dump))
                rank, dump = next(dumps, (None, None))
            found += [item for one in here for item in self._told(one, stacks.get(one))]
            yield self._hosts[here[0]], tuple(found)

    def entries(self, wanted: Sequence[Wanted]) -> tuple[Cut, ...]:
        """What the nodes answer when they are asked for entries."""
        rings = {rank: self._read(dump) for rank, dump in self._played.dumps({one.rank for one in wanted})}
        return tuple(Cut(wanted=one, recording=cut(rings[one.rank], one)) for one in wanted if one.rank in rings)

    def _recorded(self, rank: int, dump: Dump) -> Evidence:
        return Evidence(
            source=CollectorName.FLIGHT_RECORDER,
            rank=rank,
            host=self._hosts[rank],
            observation=FlightRecording(recording=digest(self._read(dump))),
            origin=f"trace_rank_{rank}",
        )

    def _told(self, rank: int, stack: object) -> Iterator[Evidence]:
        host = self._hosts[rank]
        if stack is not None:
            taken = parse_stacks(json.dumps(stack).encode())
            yield Evidence(
                source=CollectorName.STACKS, rank=rank, host=host, observation=taken, origin=f"stack_rank{rank}.json"
            )
        for found in parse_rank_log(self._played.scene.logs.get(rank, "")):
            yield Evidence(
                source=CollectorName.RANK_LOG, rank=rank, host=host, observation=found.traceback, origin=f"rank{rank}.log"
            )

    def _read(self, dump: Dump) -> Recording:
        encode = encode_json if self._played.recipe.is_json else encode_pickle
        return parse_flight_recorder(encode(dump))
