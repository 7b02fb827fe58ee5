"""A replica of a model, as its rank's probe has looked at it: fingerprints of weights and data, not the numbers themselves."""

from pardbg.watchdog.model.base import Noun


class ReplicaMoment(Noun, frozen=True, kw_only=False, array_like=True):
    """What it was at the begin of a pass. Two replicas may be compared only where ``step`` and ``forward`` are the same.

    Attributes:
        step: optimizer steps that the rank had finished.
        forward: passes that DistributedDataParallel has synchronised, this one among them.
        weights: a fingerprint of the parameters that were looked at.
        data: one of the batch; 0 where it was not understood.
    """

    step: int
    forward: int
    weights: int
    data: int


class ReplicaParts(Noun, frozen=True, kw_only=False, array_like=True):
    """A fingerprint of each parameter that was looked at, at a step."""

    step: int
    sums: tuple[int, ...]


class ReplicaSeen(Noun, frozen=True, kw_only=True):
    """The replica that a rank holds in a DistributedDataParallel.

    Attributes:
        ordinal: the how-manieth module of its process that was looked at.
        group: a digest of the global ranks that hold its replicas: they have the same.
        size: how many these are.
        tensors: its trainable parameters. Of each of ``parts`` of them some numbers are looked at.
        seen: numbers that are looked at, of ``whole`` in all its trainable parameters.
        moments: oldest first; what is old is kept sparsely.
        newest: the last two, parameter by parameter.
    """

    ordinal: int
    group: int
    size: int
    tensors: int
    parts: int
    seen: int
    whole: int
    moments: tuple[ReplicaMoment, ...] = ()
    newest: tuple[ReplicaParts, ...] = ()
