"""What is known of the GPUs of a job's ranks, as evidence: one `DeviceSeen` a rank, or the absence that says why not."""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from pardbg.collectors.gpu.cards import CardSample
from pardbg.collectors.gpu.gpus import Gpus
from pardbg.collectors.gpu.joining import join
from pardbg.collectors.gpu.points import KEPT_S
from pardbg.collectors.gpu.shape import summarise
from pardbg.collectors.live.moment import now_rfc3339
from pardbg.watchdog.model.device import DeviceJoin, DeviceSeen, DeviceShape, XidSeen
from pardbg.watchdog.model.evidence import Absence, Evidence, Observation
from pardbg.watchdog.model.names import AbsenceReason, CollectorName
from pardbg.watchdog.model.ranks import fold_ranks
from pardbg.watchdog.model.world import RankProcess

ORIGIN = "NVML"


def describe_devices(gpus: Gpus, ranks: Sequence[RankProcess], sample: int, since_s: float = KEPT_S) -> tuple[Evidence, ...]:
    """The GPUs of ranks of this machine; asks nobody; 11 ms a GPU with 15 minutes of samples.

    Args:
        gpus: that read on in the background.
        ranks: those of the job that use a GPU.
        sample: number of the look.
        since_s: how far back to go.
    """
    if not ranks:
        return ()
    host, absence = ranks[0].host, gpus.absence()
    if absence is not None:
        return (_evidence(None, host, absence),)
    cards = gpus.latest()
    joined = join(ranks, cards)
    found = [_evidence(rank, host, _observe(gpus, card, how, sample, since_s)) for rank, (card, how) in sorted(joined.items())]
    absences = _absences(cards, [rank.rank for rank in ranks if rank.rank not in joined])
    return (*found, *(_evidence(None, host, absence) for absence in absences))


def _observe(gpus: Gpus, card: CardSample, how: DeviceJoin, sample: int, since_s: float) -> Observation:
    if card.is_silent:
        return Absence(reason=AbsenceReason.TIMED_OUT, detail=f"{name_card(card)} does not answer: {card.problem}")
    if card.problem and not card.is_lost:
        return Absence(reason=AbsenceReason.UNREADABLE, detail=f"{name_card(card)} cannot be read: {card.problem}")
    seen = summarise(gpus.series(card.key, since_s))
    xids = tuple(xid for key, xid in gpus.events() if key == card.key)
    if card.is_lost:
        seen = replace(seen, shape=DeviceShape.LOST, shape_s=None)
    return _complete(seen, card, how, sample, xids)


def _complete(seen: DeviceSeen, card: CardSample, how: DeviceJoin, sample: int, xids: tuple[XidSeen, ...]) -> DeviceSeen:
    condition = card.condition
    return replace(
        seen,
        sample=sample,
        index=card.index,
        uuid=card.uuid,
        pci_bus_id=card.pci_bus_id,
        joined_by=how,
        is_shared=condition.is_shared,
        used_bytes=condition.used_bytes,
        total_bytes=condition.total_bytes,
        is_remap_failed=condition.is_remap_failed,
        down_links=card.down_links,
        xids=xids,
        problem=card.problem,
    )


def _absences(cards: Sequence[CardSample], strangers: Sequence[int]) -> Iterator[Absence]:
    denied = sorted({name for card in cards for name in card.condition.denied})
    if denied:
        detail = f"the driver refuses {', '.join(denied)}: run as root, or let the container use the devices"
        yield Absence(reason=AbsenceReason.DENIED, detail=detail)
    if strangers:
        detail = (
            f"no GPU names a process of rank{'s' if len(strangers) > 1 else ''} {fold_ranks(strangers)}: "
            "run pardbg in the machine's pid namespace (hostPID)"
        )
        yield Absence(reason=AbsenceReason.UNSUPPORTED, detail=detail)


def name_card(card: CardSample) -> str:
    """``GPU 3 (00000000:3B:00.0)``."""
    return f"GPU {card.index}" + (f" ({card.pci_bus_id})" if card.pci_bus_id else "")


def _evidence(rank: int | None, host: str, observation: Observation) -> Evidence:
    return Evidence(
        source=CollectorName.GPU,
        rank=rank,
        host=host,
        observed_at=now_rfc3339(),
        observation=observation,
        origin=ORIGIN,
    )
