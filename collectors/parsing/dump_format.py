"""The flight recorder's file format, versions 1.x to 2.11, pickle or JSON, as loosely as its writers treat it.

Field names and their history: `pytorch/torch/csrc/distributed/c10d/FlightRecorder*.hpp`. This module only types what is there;
what it means is decided in `completion.py` and `flight_recorder.py`.
"""

import json
from typing import Annotated, Any

import msgspec

from pardbg.collectors.parsing import safe_pickle
from pardbg.watchdog.errors import ParseError

# Every number of the format is one of C++'s: a larger one is damage, and no report could hold it.
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Sizes = tuple[tuple[Int64, ...], ...]

# What msgspec raises for values of the wrong type: too deep, or holding half a character (a pickle can).
_UNFIT = (msgspec.ValidationError, RecursionError, UnicodeEncodeError)


class RawEntry(msgspec.Struct, gc=False):
    """One entry as written. Every key but the name may be missing in some version."""

    profiling_name: str
    record_id: Int64 = 0
    pg_id: Int64 | str = 0
    process_group: tuple[str, str] | None = None
    collective_seq_id: Int64 | None = None
    seq_id: Int64 | None = None  # before 2.0
    p2p_seq_id: Int64 = 0
    op_id: Int64 = 0
    time_created_ns: Int64 = 0
    time_created_us: Annotated[int, msgspec.Meta(ge=0, le=2**53)] = 0  # before 2.0
    input_sizes: Sizes | None = None
    output_sizes: Sizes | None = None
    input_dtypes: tuple[str, ...] | None = None
    output_dtypes: tuple[str, ...] | None = None
    state: str = "scheduled"
    time_discovered_completed_ns: Int64 | None = None
    retired: bool = False
    is_p2p: bool = False
    frames: Any = None  # left raw: thousands of entries share a few frames

    @property
    def seq(self) -> int:
        """The collective sequence number under its new or its old name."""
        return self.seq_id or 0 if self.collective_seq_id is None else self.collective_seq_id


class RawConfig(msgspec.Struct):
    """One process group; ``ranks`` is text: ``[0, 1]``."""

    name: str = ""
    desc: str = ""
    ranks: str = ""


class RawProgress(msgspec.Struct):
    """The counters of one process group."""

    last_enqueued_collective: Int64 = -1
    last_started_collective: Int64 = -1
    last_completed_collective: Int64 = -1


class RawDump(msgspec.Struct):
    """The whole file. ``damage`` is ours: what could not be used."""

    version: str = ""
    comm_lib_version: str = ""
    nccl_version: str = ""  # until 2.9
    pg_config: dict[str, RawConfig] = {}
    pg_status: dict[str, RawProgress] = {}
    entries: list[RawEntry] = []
    damage: str = ""


def decode_dump(data: bytes) -> RawDump:
    """Types a dump of any version.

    Raises:
        ParseError: if it is no flight-recorder dump, or no entry and no key of it can be used.
    """
    content, damage = _decode_json(data) if data[:1] in b"{[ \n" else _decode_pickle(data)
    if isinstance(content, list):  # before 1.0 the file was the bare list
        content = {"entries": content}
    if not isinstance(content, dict) or not (content.keys() & {"entries", "pg_config", "pg_status"}):
        raise ParseError(f"not a flight-recorder dump: {_describe(content)}")
    return _type_dump(content, damage)


def _decode_pickle(data: bytes) -> tuple[Any, str]:
    try:
        return safe_pickle.loads(data), ""
    except ParseError as error:
        whole = safe_pickle.salvage(data)
        if not whole.get("entries") and "pg_config" not in whole:
            raise
        return whole, f"{error}; kept {len(whole['entries'])} whole entries"


def _decode_json(data: bytes) -> tuple[Any, str]:
    try:
        return msgspec.json.decode(data), ""
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        entries = _salvage_json_entries(data.decode(errors="replace"))
        if not entries:
            raise ParseError(f"damaged JSON: {error}") from error
        return {"entries": entries}, f"damaged JSON: {error}; kept {len(entries)} whole entries"


def _salvage_json_entries(text: str) -> list[Any]:
    start = text.find('"entries"')
    decoder, entries = json.JSONDecoder(), []
    position = text.find("{", start) if start >= 0 else -1
    while position >= 0:
        try:
            entry, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            break
        if not isinstance(entry, dict) or "profiling_name" not in entry:
            break
        entries.append(entry)
        position = text.find("{", position)
    return entries


def _type_dump(content: dict[str, Any], damage: str) -> RawDump:
    lost: list[str] = [damage] if damage else []
    entries = _type_entries(content.get("entries") or [], lost)
    header = {key: content[key] for key in ("version", "comm_lib_version", "nccl_version") if isinstance(content.get(key), str)}
    configs = _type_mapping(content.get("pg_config"), RawConfig, lost)
    progress = _type_mapping(content.get("pg_status"), RawProgress, lost)
    if lost and not (entries or configs or progress):
        raise ParseError(f"nothing in it can be used: {'; '.join(lost)}")
    return RawDump(**header, pg_config=configs, pg_status=progress, entries=entries, damage="; ".join(lost))


def _type_entries(raw: Any, lost: list[str]) -> list[RawEntry]:
    try:
        return msgspec.convert(raw, list[RawEntry], strict=False)
    except _UNFIT:
        pass
    if not isinstance(raw, list | tuple):
        lost.append(f"entries is {_describe(raw)}, not a list")
        return []
    whole = []
    for entry in raw:
        try:
            whole.append(msgspec.convert(entry, RawEntry, strict=False))
        except _UNFIT as error:
            reason = str(error)
    lost.append(f"{len(raw) - len(whole)} of {len(raw)} entries are damaged ({reason}); kept the others")
    return whole


def _type_mapping(raw: Any, value_type: type[Any], lost: list[str]) -> dict[str, Any]:
    if not raw:
        return {}
    if not isinstance(raw, dict):
        lost.append(f"expected groups, found {_describe(raw)}")
        return {}
    typed: dict[str, Any] = {}
    for key, value in raw.items():
        try:
            typed[str(key)] = msgspec.convert(value, value_type, strict=False)
        except _UNFIT as error:
            lost.append(f"group {str(key)[:40]!a}: {error}")
    return typed


def _describe(value: object) -> str:
    if not isinstance(value, dict):
        return f"a {type(value).__name__}"
    return f"a dict with keys {sorted(ascii(key[:40]) for key in value if isinstance(key, str))[:5]}"
