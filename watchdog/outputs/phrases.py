"""How ranks, subjects, groups, operations and times are spoken of: the same way on every page."""

import re
from collections.abc import Sequence

from pardbg.watchdog.model.names import Scope
from pardbg.watchdog.model.ranks import fold_briefly
from pardbg.watchdog.model.report import CollectiveRef, Device, GroupRef, Job, Subject

_STRIDED_RUN = re.compile(r"(\d+)-(\d+):(\d+)")
_MINUTE_S = 60
_HOUR_S = 3600


def name_ranks(ranks: Sequence[int]) -> str:
    """Name ranks: ``rank 37``, ``ranks 0-3``; of very many ranges the first."""
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {fold_briefly(ranks)}"


def name_subjects(subjects: Sequence[Subject], limit: int) -> str:
    """Name several subjects, the ranks among them folded: ``ranks 32-39, host gpu-n05``."""
    ranks = sorted({subject.rank for subject in subjects if subject.scope is Scope.RANK and subject.rank is not None})
    names = [name_subject(subject) for subject in subjects if subject.scope is not Scope.RANK or subject.rank is None]
    return list_names([name_ranks(ranks), *names] if ranks else names, limit)


def count_of(count: int, noun: str) -> str:
    """Count something: ``1 rank``, ``39 ranks``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def list_names(names: Sequence[str], limit: int) -> str:
    """List names in the order given, the first ``limit`` of them: ``a, b and 3 more``."""
    if len(names) <= limit:
        return ", ".join(names)
    return f"{', '.join(names[:limit])} and {len(names) - limit} more"


def name_subject(subject: Subject) -> str:
    """Name a subject by its scope: ``rank 37``, ``host gpu-n05``, ``link between gpu-n05 and gpu-n06``."""
    if subject.scope is Scope.RANK and subject.rank is not None:
        return f"rank {subject.rank}"
    if subject.scope is Scope.DEVICE:
        owner = "" if subject.rank is None else f" of rank {subject.rank}"
        return f"device{_device_index(subject.device)}{owner}"
    if subject.scope is Scope.HOST:
        return f"host {subject.host or list_names(subject.hosts, 4) or 'unknown'}"
    if subject.scope is Scope.LINK:
        ends = subject.hosts or tuple(f"rank {rank}" for rank in subject.ranks)
        return f"link between {' and '.join(ends) or 'unknown ends'}"
    members = name_ranks(subject.ranks) if subject.ranks else "unknown ranks"
    if not subject.ranks and "ep" in subject.coords:
        members = f"EP rank {subject.coords['ep']}"  # which ranks that is, is not known
    if subject.scope is Scope.STAGE:
        number = f" {subject.coords['pp']}" if "pp" in subject.coords else ""
        return f"pipeline stage{number}, {members}"
    return f"group of {members}" if subject.scope is Scope.GROUP and subject.ranks else members


def identify_device(device: Device | None) -> str:
    """Say what tells a device from all others: its UUID and PCI address, as far as they are known."""
    return "" if device is None else ", ".join(part for part in (device.uuid, device.pci_bus_id) if part)


def _device_index(device: Device | None) -> str:
    return "" if device is None or device.index is None else f" {device.index}"


def name_coords(coords: dict[str, int]) -> str:
    """Place a rank on the parallel axes: ``dp 4, ep 5``."""
    return ", ".join(f"{axis} {position}" for axis, position in coords.items())


def name_group(group: GroupRef) -> str:
    """Name a group: ``ep_4 (expert parallel, axis ep)``."""
    axis = f"axis {group.axis}" if group.axis else ""
    details = ", ".join(part for part in (group.desc if group.desc not in {group.name, "undefined"} else "", axis) if part)
    return f"{group.name} ({details})" if details else group.name


def name_collective(collective: CollectiveRef) -> str:
    """Name one operation: ``all_to_all seq 4812``, ``send from rank 3 to rank 4``."""
    parts = [collective.op]
    if collective.seq is not None:
        parts.append(f"seq {collective.seq}")
    if collective.src is not None:
        parts.append(f"from rank {collective.src}")
    if collective.dst is not None:
        parts.append(f"to rank {collective.dst}")
    return " ".join(parts)


def spell_sizes(sizes: Sequence[Sequence[int]]) -> str:
    """Spell tensor sizes: ``8192x1024, 16``."""
    return ", ".join("x".join(str(length) for length in size) or "scalar" for size in sizes)


def spell_duration(duration_s: float) -> str:
    """Spell a duration in two units at most: ``4.5 s``, ``5 min 12 s``, ``3 h 5 min``."""
    if duration_s < 10:
        return f"{duration_s:.1f} s"
    seconds = round(duration_s)
    if seconds < 2 * _MINUTE_S:
        return f"{seconds} s"
    if seconds < 2 * _HOUR_S:
        return f"{seconds // _MINUTE_S} min {seconds % _MINUTE_S} s"
    return f"{seconds // _HOUR_S} h {seconds % _HOUR_S // _MINUTE_S} min"


def name_job(job: Job) -> str:
    """Name a job: ``48213 (slurm), world size 40, attempt 0``."""
    parts = [f"{job.id} ({job.source.value})" if job.id else f"without an id ({job.source.value})"]
    if job.world:
        parts.append(f"world {job.world}")
    parts.append("world size unknown" if job.world_size is None else f"world size {job.world_size}")
    if job.attempt is not None:
        parts.append(f"attempt {job.attempt}")
    return ", ".join(parts)


def explain_stride(folded_ranks: str) -> str:
    """Explain the first ``first-last:stride`` of folded ranks; nothing to explain is an empty text."""
    run = _STRIDED_RUN.search(folded_ranks)
    return f"{run[0]} is every rank from {run[1]} to {run[2]} in steps of {run[3]}." if run else ""
