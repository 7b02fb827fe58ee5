"""A recorder's content in the file format of the flight recorder: the pickle's and the JSON's quirks."""

import json
import pickle
from typing import Any

from pardbg.watchdog.sim.layout import Group
from pardbg.watchdog.sim.recipe import Recipe
from pardbg.watchdog.sim.recorder import Recorder

Dump = dict[str, Any]

_NCCL_VERSION = "2.27.3"
_BROKEN_GLOO_CONFIG = {"": {"name": "", "desc": "", "ranks": "[]"}}


def silent_dump(recipe: Recipe) -> Dump:
    """What a rank writes whose recorder is off."""
    return {**_frame(recipe, [], {}, []), "pg_config": {}}


def whole_dump(recipe: Recipe, recorder: Recorder, ring_size: int) -> Dump:
    """The newest ``ring_size`` entries; with ``is_active_only`` without those known to be completed."""
    entries = recorder.entries[-ring_size:]
    if recipe.is_active_only:
        entries = [entry for entry in entries if entry["time_discovered_completed_ns"] is None]
    return _frame(recipe, list(recorder.used_groups), recorder.progress(), entries)


def encode_pickle(dump: Dump) -> bytes:
    """Protocol 2, as PyTorch's own C++ pickler writes."""
    return pickle.dumps(dump, protocol=2)


def encode_json(dump: Dump) -> bytes:
    """The JSON form: no frames, text for most numbers, 0 for no time, no `entries` where there are none."""
    plain: Dump = {
        **{key: value for key, value in dump.items() if key != "entries"},
        "nccl_comm_state": {},
        "pg_status": {
            group: {name: str(number) for name, number in counters.items()} for group, counters in dump["pg_status"].items()
        },
    }
    if dump["entries"]:
        plain["entries"] = [_plain_entry(entry) for entry in dump["entries"]]
    return json.dumps(plain, sort_keys=True, separators=(",", ":")).encode()


def _plain_entry(entry: Dump) -> Dump:
    return {
        **{key: value for key, value in entry.items() if key != "frames"},
        "time_discovered_started_ns": entry["time_discovered_started_ns"] or 0,
        "time_discovered_completed_ns": entry["time_discovered_completed_ns"] or 0,
    }


def _frame(recipe: Recipe, groups: list[Group], progress: dict[str, dict[str, int]], entries: list[Dump]) -> Dump:
    is_nccl = recipe.backend == "nccl"
    version_key = "nccl_version" if recipe.version == "2.9" else "comm_lib_version"
    config = {group.name: _config(group) for group in sorted(groups, key=lambda group: group.name)}
    return {
        "version": recipe.version,
        "pg_config": config if is_nccl else _BROKEN_GLOO_CONFIG,
        version_key: _NCCL_VERSION if is_nccl else "",
        "pg_status": progress,
        "entries": entries,
    }


def _config(group: Group) -> dict[str, str]:
    return {"name": group.name, "desc": group.description, "ranks": group.member_text}
