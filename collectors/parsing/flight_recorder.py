"""A flight-recorder dump: bytes in, a `Recording` out."""

from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from pardbg.collectors.parsing.coalescing import Launch, group_launches
from pardbg.collectors.parsing.completion import (
    collectives_completed,
    idle_groups,
    is_left_scheduled,
    is_marked_done,
    p2p_ends,
    split_name,
    unrecorded_p2p,
)
from pardbg.collectors.parsing.dump_format import RawConfig, RawDump, RawEntry, decode_dump
from pardbg.collectors.parsing.member_text import read_members
from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.operations import DEVICE_BACKENDS, P2P_OPS
from pardbg.watchdog.model.recording import (
    NO_SITE,
    Frame,
    GroupConfig,
    GroupName,
    GroupProgress,
    Operation,
    Recording,
    Signature,
)

_LARGEST_LINE = 1_000_000_000


def parse_flight_recorder(data: bytes) -> Recording:
    """Reads one rank's dump, pickle or JSON, of any version and back end.

    Linear in the number of entries. Of a truncated or partly damaged file the whole entries are kept and ``damage`` says what
    was lost.

    Raises:
        ParseError: if nothing of it can be used.
    """
    dump = decode_dump(data)
    builder = _RecordingBuilder(dump)
    for launch in group_launches(dump.entries):
        builder.add(launch)
    recording = builder.build()
    _check_text(recording)
    return recording


def _check_text(recording: Recording) -> None:
    """A pickle can hold half characters, which no report can print.

    Raises:
        ParseError: if there is one.
    """
    try:
        msgspec.msgpack.encode(replace(recording, operations=()))
    except UnicodeEncodeError as error:
        raise ParseError(f"text that is not Unicode: {error.reason}") from error


class _Name(Struct, frozen=True, gc=False):
    """A profiling name taken apart, once for all entries that carry it."""

    backend: str
    op: str
    src: int | None
    dst: int | None
    on_device: bool
    is_p2p: bool


class _RecordingBuilder:
    """Collects operations while interning what repeats: group names, signatures, call sites."""

    def __init__(self, dump: RawDump) -> None:
        self._dump = dump
        self._completed = collectives_completed(dump)
        self._idle = idle_groups(dump)
        self._cut = dump.entries[0] if _has_wrapped(dump) else None  # members of its launch may be lost
        self._operations: list[Operation] = []
        self._names: dict[str, _Name] = {}
        self._groups: dict[tuple[str, str], int] = {}
        self._group_numbers: dict[tuple[int | str, tuple[str, str] | None], int] = {}
        self._signatures: dict[tuple[Any, ...], int] = {}
        self._signature_list: list[Signature] = []
        self._signature_names: list[_Name] = []
        self._site_by_frame_ids: dict[tuple[int, ...], int] = {}
        self._sites: dict[tuple[Frame, ...], int] = {}
        self._local_ids: dict[str, str] = {}
        self._batch_count = 0
        self._left_scheduled: set[int] = set()  # record ids

    def add(self, launch: Launch) -> None:
        """Adds one launch: every member of a P2P batch, one operation for everything else."""
        entries = launch.entries
        first = entries[0]
        group = self._group_numbers.get((first.pg_id, first.process_group))
        if group is None:
            group = self._number_group(first)
        is_done = self._is_done(launch)
        batch = 0
        if launch.is_p2p_batch:
            self._batch_count += 1
            batch = self._batch_count
        if not batch and (len(entries) > 1 or first is self._cut):
            entries = [self._as_one(launch)]
        for entry in entries:
            if not is_done and not batch and is_left_scheduled(entry):
                self._left_scheduled.add(entry.record_id)
            signature = self._sign(entry, launch)
            self._operations.append(
                Operation(
                    entry.record_id,
                    group,
                    entry.seq,
                    entry.p2p_seq_id,
                    signature,
                    self._locate(entry.frames),
                    entry.time_created_ns or entry.time_created_us * 1000,
                    is_done,
                    entry.is_p2p or self._signature_names[signature].is_p2p,
                    batch,
                    (launch.closing or entry).time_discovered_completed_ns or 0,
                )
            )

    def _as_one(self, launch: Launch) -> RawEntry:
        """Collectives that were coalesced one by one, as one with all their tensors.

        The oldest launch of a ring that has wrapped may have lost its first members: of its tensors nothing is known then.
        """
        is_cut = launch.entries[0] is self._cut and (launch.closing is not None or len(launch.entries) > 1)
        if len(launch.entries) == 1 and not is_cut:
            return launch.entries[0]
        whole = () if is_cut else launch.entries
        return replace(
            launch.entries[0],
            input_sizes=tuple(size for entry in whole for size in entry.input_sizes or ()),
            output_sizes=tuple(size for entry in whole for size in entry.output_sizes or ()),
            input_dtypes=tuple(dtype for entry in whole for dtype in entry.input_dtypes or ()),
            output_dtypes=tuple(dtype for entry in whole for dtype in entry.output_dtypes or ()),
        )

    def build(self) -> Recording:
        """Returns what was collected."""
        dump = self._dump
        return Recording(
            version=dump.version,
            library_version=dump.comm_lib_version or dump.nccl_version,
            groups=tuple(GroupName(name=name, desc=desc) for name, desc in self._groups),
            signatures=tuple(self._signature_list),
            sites=tuple(self._sites),
            operations=tuple(self._in_stream_order()),
            configs=tuple(filter(None, (_read_config(key, config) for key, config in dump.pg_config.items()))),
            progress=tuple(
                GroupProgress(
                    local_id=local_id,
                    last_enqueued=progress.last_enqueued_collective,
                    last_completed=progress.last_completed_collective,
                )
                for local_id, progress in dump.pg_status.items()
            ),
            local_ids=self._local_ids,
            unrecorded_p2p=tuple(self._local_ids[local_id] for local_id in unrecorded_p2p(dump)),
            damage=dump.damage,
        )

    def _number_group(self, entry: RawEntry) -> int:
        name, desc = entry.process_group or (str(entry.pg_id), "")
        self._local_ids[str(entry.pg_id)] = name
        group = self._groups.setdefault((name, desc), len(self._groups))
        self._group_numbers[entry.pg_id, entry.process_group] = group
        return group

    def _name(self, profiling_name: str) -> _Name:
        name = self._names.get(profiling_name)
        if name is None:
            backend, op = split_name(profiling_name)
            op, src, dst = p2p_ends(op)
            name = _Name(backend, op, src, dst, on_device=backend in DEVICE_BACKENDS, is_p2p=op in P2P_OPS)
            self._names[profiling_name] = name
        return name

    def _is_done(self, launch: Launch) -> bool:
        first = launch.entries[0]
        on_device = self._name(first.profiling_name).on_device
        if launch.closing is not None:
            return is_marked_done(launch.closing, on_device=on_device)
        if all([is_marked_done(entry, on_device=on_device) for entry in launch.entries]):  # noqa: C419 - one entry, mostly
            return True
        if not on_device:
            return False  # gloo's counters also count P2P, and its worker threads finish out of order
        local_id = str(first.pg_id)
        return local_id in self._idle or (not first.is_p2p and first.seq <= self._completed.get(local_id, -1))

    def _in_stream_order(self) -> list[Operation]:
        """Applies "work of one communicator finishes in order", walking backwards. P2P has a communicator per pair."""
        on_device = [name.on_device for name in self._signature_names]
        finished: set[int | tuple[int, int]] = set()
        ordered: list[Operation] = []
        for operation in reversed(self._operations):
            is_pair = operation.is_p2p and not operation.batch
            stream = (operation.group, operation.signature) if is_pair else operation.group
            if not operation.is_done:
                is_passed = is_pair and operation.record_id in self._left_scheduled and operation.group in finished
                ordered.append(_finish(operation) if is_passed or stream in finished else operation)
                continue
            if on_device[operation.signature]:
                finished.add(stream)
            ordered.append(operation)
        ordered.reverse()
        return ordered

    def _sign(self, entry: RawEntry, launch: Launch) -> int:
        key = (
            entry.profiling_name if launch.closing is None or launch.is_p2p_batch else _closing_name(launch),
            entry.input_sizes,
            entry.output_sizes,
            entry.input_dtypes,
            entry.output_dtypes,
        )
        number = self._signatures.get(key)
        if number is None:
            number = self._signatures[key] = len(self._signature_list)
            name = self._name(key[0])
            self._signature_names.append(name)
            self._signature_list.append(
                Signature(
                    backend=name.backend,
                    op=name.op,
                    input_sizes=entry.input_sizes or (),
                    output_sizes=entry.output_sizes or (),
                    input_dtypes=entry.input_dtypes or (),
                    output_dtypes=entry.output_dtypes or (),
                    src=name.src,
                    dst=name.dst,
                )
            )
        return number

    def _locate(self, frames: Any) -> int:
        if not isinstance(frames, list | tuple) or not frames:
            return NO_SITE
        ids = tuple(map(id, frames))  # one dump shares its frame objects, so this is both exact and cheap
        site = self._site_by_frame_ids.get(ids)
        if site is None:
            site = self._sites.setdefault(tuple(_read_frames(frames)), len(self._sites))
            self._site_by_frame_ids[ids] = site
        return site


def _has_wrapped(dump: RawDump) -> bool:
    """Whether the ring has overwritten entries; a dump of unfinished ones alone begins with any number."""
    return bool(dump.entries) and dump.entries[0].record_id > 0 and any(entry.state == "completed" for entry in dump.entries)


def _closing_name(launch: Launch) -> str:
    """Names a coalesced collective: by its closing entry where that tells the operation, else by its first member."""
    name = (launch.closing or launch.entries[0]).profiling_name
    return launch.entries[0].profiling_name if name.endswith(":coalesced") else name


def _finish(operation: Operation) -> Operation:
    return Operation(
        operation.record_id,
        operation.group,
        operation.seq,
        operation.p2p_seq,
        operation.signature,
        operation.site,
        operation.created_ns,
        is_done=True,
        is_p2p=operation.is_p2p,
        batch=operation.batch,
        completed_ns=operation.completed_ns,
    )


def _read_frames(frames: list[Any] | tuple[Any, ...]) -> list[Frame]:
    return [
        Frame(
            name=_read_text(frame.get("name")), filename=_read_text(frame.get("filename")), line=_read_line(frame.get("line"))
        )
        for frame in frames
        if isinstance(frame, dict)
    ]


def _read_text(value: object) -> str:
    return value if isinstance(value, str) else "?"


def _read_line(value: object) -> int:
    return value if isinstance(value, int) and 0 <= value < _LARGEST_LINE else 0


def _read_config(key: str, config: RawConfig) -> GroupConfig | None:
    """Reads the member text ``[0, 1]``. gloo writes one nameless, empty entry (torch 2.13): no configuration."""
    name = config.name or key
    runs = read_members(config.ranks)
    return GroupConfig(name=name, desc=config.desc, runs=runs) if name and runs else None
