"""Replicas that have parted, or are fed alike, in words."""

from collections.abc import Iterator

from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.correlators.wording import name_ranks
from pardbg.watchdog.graph.replicas import Alike, Parting, Replicas
from pardbg.watchdog.model.report import EvidenceLine

MOST_SIDES, MOST_PLACES = 4, 5
FEW_PARTS = 0.25
"""Share of the parameters that were compared; where fewer differ, most were trained alike."""


def claim_parted(replicas: Replicas, parting: Parting) -> str:
    """Whose replica differs from whose, since when, in what."""
    when = _since(parting)
    what = _name_parts(replicas)
    if parting.minority:
        rest = name_ranks(sorted(set(replicas.ranks) - set(parting.minority)))
        verb = ("replica", "is") if len(parting.minority) == 1 else ("replicas", "are")
        return f"the {verb[0]} of {name_ranks(parting.minority)} {verb[1]} not equal to those of {rest}, {when}: {what}"
    return f"the replicas of {name_ranks(replicas.ranks)} are not equal, {when}: {what}"


def claim_alike(replicas: Replicas, alike: Alike) -> str:
    """Who reads the same, and what that is worth."""
    size = replicas.any_seen.size
    is_all = len(alike.ranks) == size
    whose = f"all {size} replicas" if is_all else f"the replicas of {name_ranks(alike.ranks)}"
    worth = "they train as one would" if is_all else f"so {len(alike.ranks)} of {size} replicas do the work of one"
    since = "all along" if alike.is_all_along else f"since step {alike.since_step}"
    return f"{whose} are fed the same data, {since}, in each of the {alike.moment_count} steps that were looked at: {worth}"


def why_parted(ranks: tuple[int, ...], parting: Parting, replicas: Replicas) -> str:
    """What points at a rank of this side."""
    if len(ranks) == 1:
        return f"its weights are equal to those of no other of the {len(replicas.ranks)} replicas that were seen"
    if ranks[0] in parting.minority:
        return f"its weights are equal to those of {len(ranks) - 1} more, and differ from those of {len(parting.sides[0])}"
    return f"its weights are equal to those of {len(ranks) - 1} more"


def parted_lines(situation: Situation, replicas: Replicas, parting: Parting) -> Iterator[EvidenceLine]:
    """What each side has, when they were equal last, and how much was compared."""
    last = replicas.moments[-1]
    for ranks in parting.sides[:MOST_SIDES]:
        weights = next(moment.weights for moment in reversed(replicas.seen[ranks[0]].moments) if moment.step == last.step)
        yield situation.view.heartbeat_line(
            ranks[0], f"after step {last.step} the weights of {name_ranks(ranks)} have the fingerprint {weights:08x}"
        )
    first = replicas.ranks[0]
    if parting.equal_step is not None:
        equal = f"after step {parting.equal_step} the weights of {name_ranks(replicas.ranks)} had one and the same fingerprint"
        yield situation.view.heartbeat_line(first, equal)
    yield situation.view.heartbeat_line(first, _tell_coverage(replicas))
    if replicas.unequal_parts():
        listing = "[name for name, p in model.module.named_parameters() if p.requires_grad][NUMBER]"
        yield situation.view.heartbeat_line(first, f"numbers of parameters count from 0: {listing} names one")


def alike_lines(situation: Situation, replicas: Replicas, alike: Alike) -> Iterator[EvidenceLine]:
    """The last batches of the first two."""
    for rank in alike.ranks[:2]:
        last = [moment for moment in replicas.seen[rank].moments if moment.data and moment.step <= alike.last_step][-3:]
        told = ", ".join(f"{moment.data:08x} after step {moment.step}" for moment in last)
        yield situation.view.heartbeat_line(rank, f"hashes of the batches of rank {rank}: {told}")


def advise_parted(situation: Situation, replicas: Replicas, parting: Parting) -> Iterator[str]:
    """In the order in which to try it."""
    whose = name_ranks(parting.minority) if parting.minority else "one rank"
    if parting.equal_step is not None and not parting.is_from_start:
        yield (
            f"Stop, and resume all ranks from a checkpoint of step {parting.equal_step} or before: since then gradients of"
            " unequal weights are averaged."
        )
        yield (
            f"See what only {whose} may have done between steps {parting.equal_step} and {parting.since_step}: weights written"
            " or loaded, an optimizer step left out or made twice, another learning rate, gradients changed after their"
            " all-reduce, noise that each rank adds by itself."
        )
    else:
        yield (
            "See that all ranks load the same checkpoint before the model is wrapped, or let rank 0 broadcast it: after that"
            " nothing makes replicas equal again."
        )
    if parting.minority and _is_small(replicas):
        on = f"the GPU of {whose}" if situation.is_on_accelerator else f"the memory of the host of {whose}"
        test = " (dcgmi diag -r 3; nvidia-smi -q -d ECC)" if situation.is_on_accelerator else ""
        yield f"Few of its parameters differ, as when bits flip: test {on} before it trains on{test}."
    yield "torch.use_deterministic_algorithms(True) tells an operation that computes otherwise each time, if it is one."


def advise_alike(replicas: Replicas) -> Iterator[str]:
    """In the order in which to try it."""
    yield (
        "Give each rank its own share: DistributedSampler(dataset, num_replicas, rank) with the rank of the process, or split"
        " an IterableDataset by rank and by worker."
    )
    yield "Where data is made or shuffled by random numbers, make the seed differ by rank, in the workers of loaders, too."
    yield (
        f"If it is meant, as in a benchmark on made-up data, there is nothing to do: the {replicas.any_seen.size} replicas then"
        " learn what fewer would."
    )


def _since(parting: Parting) -> str:
    if parting.is_from_start:
        return "since before their first step"
    if parting.equal_step is None:
        return f"as far back as is known, since step {parting.since_step}"
    return f"since a step after {parting.equal_step} and not after {parting.since_step}"


def _name_parts(replicas: Replicas) -> str:
    """``1 of 64 parameters that are compared differs (number 17 ...)``. Numbers, since the page has no room for names."""
    seen, places = replicas.any_seen, replicas.unequal_parts()
    if places is None:
        return "their weights differ"
    if len(places) == seen.parts:
        return f"all {seen.parts} parameters that are compared differ"
    numbers = ", ".join(str(place * seen.tensors // seen.parts) for place in places[:MOST_PLACES])
    more = ", ..." if len(places) > MOST_PLACES else ""
    verb = "differs" if len(places) == 1 else "differ"
    return f"{len(places)} of {seen.parts} parameters that are compared {verb} (number {numbers}{more} of those that train)"


def _tell_coverage(replicas: Replicas) -> str:
    seen = replicas.any_seen
    unseen = f"; {replicas.unseen_count} more replicas were not seen" if replicas.unseen_count else ""
    return (
        f"compared: {seen.parts} of {seen.tensors} parameters, {seen.seen / seen.whole:.2%} of their numbers, at"
        f" {len(replicas.moments)} steps{unseen}"
    )


def _is_small(replicas: Replicas) -> bool:
    places = replicas.unequal_parts()
    return places is not None and 0 < len(places) <= max(1, FEW_PARTS * replicas.any_seen.parts)
