"""The environment of a process, of which only a closed list of names is kept. Whatever else it holds is dropped here.

Pure: bytes of ``/proc/PID/environ`` in, a small dictionary out. It is what the process was started with; what a program sets
later (``os.environ[...]``) does not show.
"""

from pardbg.collectors.probe.identity import IDENTITY_NAMES

RECORDER_NAMES = frozenset(
    {
        "HOME",
        "NCCL_RAS_ADDR",
        "NCCL_TIMEOUT",
        "PARDBG_ATTACH",
        "PARDBG_DIR",
        "TORCH_FR_BUFFER_SIZE",
        "TORCH_FR_DEBUG_INFO_PIPE_FILE",
        "TORCH_FR_DUMP_DYNAMIC_FILE_NAME",
        "TORCH_FR_DUMP_TEMP_FILE",
        "TORCH_NCCL_DEBUG_INFO_PIPE_FILE",
        "TORCH_NCCL_DEBUG_INFO_TEMP_FILE",
        "TORCH_NCCL_DUMP_ON_TIMEOUT",
        "TORCH_NCCL_TRACE_BUFFER_SIZE",
        "TORCH_TRACE_BUFFER_SIZE",
        "TORCH_WORKER_SERVER_SOCKET",
        "XDG_CACHE_HOME",
    }
)
"""What `RankProcess.recorder` may hold."""

KEPT_NAMES = RECORDER_NAMES | frozenset(IDENTITY_NAMES)
"""All that is ever kept of an environment."""

PRESENT = "set"
"""Stands for the value of a name of which only the presence matters."""

_PRESENCE_ONLY = frozenset({"KUBERNETES_SERVICE_HOST", "NCCL_TIMEOUT"})
_LONGEST_VALUE = 4096


def read_environment(data: bytes) -> dict[str, str]:
    """The kept names with their values, cut at 4096 characters; a value that is not printable text is dropped.

    Of a name that is there twice the first counts, as for the process itself.
    """
    kept: dict[str, str] = {}
    for entry in data.split(b"\0"):
        raw_name, is_assignment, raw_value = entry.partition(b"=")
        name = raw_name.decode("ascii", errors="replace")
        if not is_assignment or name not in KEPT_NAMES or name in kept:
            continue
        value = PRESENT if name in _PRESENCE_ONLY else raw_value.decode(errors="replace")[:_LONGEST_VALUE]
        if value.isprintable() and "\N{REPLACEMENT CHARACTER}" not in value:
            kept[name] = value
    return kept


def recorder_settings(environment: dict[str, str]) -> dict[str, str]:
    """The part of a kept environment that asks something of the flight recorder, or forbids to attach."""
    return {name: value for name, value in environment.items() if name in RECORDER_NAMES}


def read_number(text: str | None) -> int | None:
    """A rank, a size, a count: a plain number of at most nine digits, else None."""
    is_number = text is not None and text.isascii() and text.isdigit() and len(text) <= 9
    return int(text) if is_number and text is not None else None
