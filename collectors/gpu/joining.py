"""Which GPU is which rank's. Pure.

By the process list of the GPU. The driver tells pids in our pid namespace, drivers before about 470 in the machine's: from a
container with a pid namespace of its own, either none of them is a rank's, or none is told. Then the last GPU belongs to the
last rank, and else, as a guess that accuses nobody, the local rank is the number of the GPU as torchrun's users have it.
"""

from collections.abc import Sequence

from pardbg.collectors.gpu.cards import CardSample
from pardbg.watchdog.model.device import DeviceJoin
from pardbg.watchdog.model.world import RankProcess

Joined = dict[int, tuple[CardSample, DeviceJoin]]


def join(ranks: Sequence[RankProcess], cards: Sequence[CardSample]) -> Joined:
    """The GPU of each rank of this machine for which one is known, and how. Of a rank with several, the first."""
    by_pid = {pid: card for card in reversed(cards) for pid in card.condition.pids or ()}
    joined: Joined = {rank.rank: (by_pid[rank.pid], DeviceJoin.PID) for rank in ranks if rank.pid in by_pid}
    open_ranks = [rank for rank in ranks if rank.rank not in joined]
    taken = {card.index for card, _ in joined.values()}
    open_cards = [card for card in cards if card.index not in taken and not card.condition.pids]
    if joined and len(open_ranks) == len(open_cards) == 1:
        joined[open_ranks[0].rank] = open_cards[0], DeviceJoin.ELIMINATION
    elif not joined and _may_be_guessed(ranks, cards):
        by_index = {card.index: card for card in cards}
        joined = {rank.rank: (by_index[rank.local_rank or 0], DeviceJoin.LOCAL_RANK) for rank in ranks}
    return joined


def _may_be_guessed(ranks: Sequence[RankProcess], cards: Sequence[CardSample]) -> bool:
    """Where every rank has a local rank that is the number of a GPU, no two the same, and no GPU is somebody else's."""
    local = [rank.local_rank for rank in ranks if rank.local_rank is not None]
    is_clear = len(set(local)) == len(ranks) and {*local} <= {card.index for card in cards}
    return is_clear and not any(card.condition.pids for card in cards)
