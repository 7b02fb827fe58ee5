"""What one rank of a Megatron-like MoE job issues in one training step, in order."""

import random
from dataclasses import dataclass

from pardbg.watchdog.sim.callsites import call_site, host_site
from pardbg.watchdog.sim.instruction import Instruction, Join, Launch, Mark, Op, Operation, Program, Style, Synchronize
from pardbg.watchdog.sim.layout import WORLD, Group, ParallelLayout

MICRO_BATCHES = 2
HIDDEN_SIZE = 5120
TOKENS = 2048
GRAD_BUCKETS = (40_960_000, 31_457_280, 20_971_520)
START = "start"
HALF_WAY = "half-way"  # after the forward passes: everything so far of the step is done or queued


def collective(group: Group, op: Op, place: str, sizes: tuple[int, ...] = (), dtype: str = "Float") -> Operation:
    """A collective whose result is as large as its input."""
    shapes = (sizes,) if sizes else ()
    return Operation(group, op, call_site(place, op), shapes, shapes, dtype)


def transfer(group: Group, op: Op, peer: int, place: str = "pipe") -> Operation:
    """One end of a P2P transfer with the group rank ``peer``."""
    shape = ((TOKENS, 1, HIDDEN_SIZE),)
    return Operation(group, op, call_site(place, op), shape, shape, peer=peer)


def alone(operation: Operation, label: str, *, is_async: bool = False) -> Launch:
    """A launch of one operation."""
    return Launch((operation,), is_async=is_async, label=label)


def training_step(layout: ParallelLayout, rank: int, style: Style, seed: int) -> Program:
    """The whole step: forward and backward passes, gradients, loss, and a barrier."""
    step = _Step(layout.groups_by_axis(rank), rank, style, seed)
    program: Program = [Mark(START)]
    for batch in range(MICRO_BATCHES):
        program += step.forward(batch)
    program += step.flush_pipe(backward=False)
    program.append(Mark(HALF_WAY))
    for batch in range(MICRO_BATCHES):
        program += step.backward(batch)
    program += step.flush_pipe(backward=True)
    return program + step.finish()


@dataclass(frozen=True)
class _Step:
    groups: dict[str, Group]
    rank: int
    style: Style
    seed: int

    def forward(self, batch: int) -> Program:
        tag = f"forward.{batch}"
        return [*self._data(tag), *self._pipe_in(tag, batch, -1), *self._layer(tag), *self._pipe_out(tag, +1)]

    def backward(self, batch: int) -> Program:
        tag = f"backward.{batch}"
        return [*self._pipe_in(tag, batch, +1), *self._layer(tag), *self._pipe_out(tag, -1)]

    def flush_pipe(self, *, backward: bool) -> Program:
        """Coalesced transfers carry the last micro batch's output in a group of its own."""
        tag, towards = ("backward.end", -1) if backward else ("forward.end", +1)
        return self._coalesced(tag, None, self._neighbour(towards))

    def finish(self) -> Program:
        program: Program = []
        data = self.groups.get("dp")
        for bucket, size in enumerate(GRAD_BUCKETS if data else ()):
            assert data is not None  # noqa: S101 - for mypy
            share = size // len(data.ranks)
            site = call_site("grads", Op.REDUCE_SCATTER)
            operation = Operation(data, Op.REDUCE_SCATTER, site, ((share * len(data.ranks),),), ((share,),), "Float")
            program.append(alone(operation, f"grads.{bucket}", is_async=True))
        world = self.groups[WORLD]
        return [
            *program,
            Join(),
            alone(collective(world, Op.ALL_REDUCE, "loss", (2,)), "loss"),
            Synchronize(host_site("synchronize")),
            alone(collective(world, Op.BARRIER, "end"), "end"),
        ]

    def _data(self, tag: str) -> Program:
        """The first tensor-parallel rank reads the tokens; in some programs the root calls from a line of its own."""
        tensor = self.groups.get("tp")
        if tensor is None:
            return []
        is_root = tensor.group_rank(self.rank) == 0
        place = "data.root" if self.style.root_has_own_call_site and is_root else "data"
        shape = ((1, TOKENS),)
        operation = Operation(tensor, Op.BROADCAST, call_site(place, Op.BROADCAST), shape, shape, "Long", root=0)
        return [alone(operation, f"{tag}.data")]

    def _layer(self, tag: str) -> Program:
        program: Program = []
        tensor, expert = self.groups.get("tp"), self.groups.get("ep")
        whole = ((TOKENS, 1, HIDDEN_SIZE),)
        if tensor is not None:
            part = ((TOKENS // len(tensor.ranks), 1, HIDDEN_SIZE),)
            gather = Operation(tensor, Op.ALL_GATHER, call_site("gather", Op.ALL_GATHER), part, whole)
            program.append(alone(gather, f"{tag}.gather"))
        if expert is not None:
            sent, received = (TOKENS, HIDDEN_SIZE), (self._tokens_received(expert, tag), HIDDEN_SIZE)
            dispatch = Operation(expert, Op.ALL_TO_ALL, call_site("dispatch", Op.ALL_TO_ALL), (sent,), (received,))
            combine = Operation(expert, Op.ALL_TO_ALL, call_site("combine", Op.ALL_TO_ALL), (received,), (sent,))
            program += [alone(dispatch, f"{tag}.dispatch"), alone(combine, f"{tag}.combine")]
        if tensor is not None:
            scatter = Operation(tensor, Op.REDUCE_SCATTER, call_site("scatter", Op.REDUCE_SCATTER), whole, part)
            program.append(alone(scatter, f"{tag}.scatter"))
        return program

    def _tokens_received(self, expert: Group, tag: str) -> int:
        """The router sends each rank another number of tokens; over the group they add up to what was sent."""
        router = random.Random(f"{self.seed}/{expert.name}/{tag}")
        weights = [router.uniform(0.5, 1.5) for _ in expert.ranks]
        received = [int(TOKENS * len(weights) * weight / sum(weights)) for weight in weights]
        received[0] += TOKENS * len(weights) - sum(received)
        return received[expert.group_rank(self.rank)]

    def _neighbour(self, direction: int) -> int | None:
        pipe = self.groups.get("pp")
        if pipe is None:
            return None
        peer = pipe.group_rank(self.rank) + direction
        return peer if 0 <= peer < len(pipe.ranks) else None

    def _pipe_in(self, tag: str, batch: int, source: int) -> Program:
        peer = self._neighbour(source)
        if self.style.p2p_is_coalesced:
            previous_output = self._neighbour(-source) if batch else None
            return self._coalesced(tag, peer, previous_output)
        return [alone(transfer(self.groups["pp"], Op.RECV, peer), f"{tag}.recv")] if peer is not None else []

    def _pipe_out(self, tag: str, target: int) -> Program:
        peer = self._neighbour(target)
        if peer is None or self.style.p2p_is_coalesced:
            return []
        return [alone(transfer(self.groups["pp"], Op.SEND, peer), f"{tag}.send")]

    def _coalesced(self, tag: str, source: int | None, target: int | None) -> Program:
        if not self.style.p2p_is_coalesced:
            return []
        ends = [
            transfer(self.groups["pp"], op, peer) for op, peer in ((Op.SEND, target), (Op.RECV, source)) if peer is not None
        ]
        launch: list[Instruction] = [Launch(tuple(ends), is_coalesced=True, label=f"{tag}.exchange")] if ends else []
        return launch
