"""Looks into one process through ``/proc``. May block for ever: memory locked in the kernel blocks whoever asks for it.

Cost: about 60 microseconds, and a few milliseconds more where the memory map is read. It opens files of ``/proc`` only, all of
them through one open folder, so that they speak of one process; the process notices nothing and nothing is left behind.
"""

import os

import msgspec

from pardbg.collectors.jobs.command_line import is_interpreter, read_command
from pardbg.collectors.jobs.environment import read_environment
from pardbg.collectors.jobs.process import ProcessLook
from pardbg.collectors.procfs.id_map import find_inner_id
from pardbg.collectors.procfs.stat import parse_stat
from pardbg.collectors.procfs.status import parse_status

_PART_BYTES = 256 * 1024
_MOST_BYTES = 16 * 1024**2
_RANK_NAMES = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK")
_TORCH_LIBRARIES = (b"/libtorch_python.", b"/libtorch_cpu.", b"/libtorch.")
_PYTHON_LIBRARY = b"/libpython"

TorchUsers = dict[int, dict[str, str]]
"""The processes known to use torch, with their environment: those they fork use it, too."""


def look_at(proc: bytes, pid: int, torch_users: TorchUsers) -> ProcessLook:
    """Reads what a process was started as.

    Raises:
        OSError: if it has ended.
        ParseError: if the kernel writes something else than expected.
    """
    folder = os.open(os.path.join(proc, b"%d" % pid), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)  # noqa: PTH118 - bytes
    try:
        stat = parse_stat(_read(folder, "stat").decode(errors="replace"))
        status = parse_status(_read(folder, "status").decode(errors="replace"))
        command = read_command(_read(folder, "cmdline"))
        look = ProcessLook(
            pid=pid,
            started_ticks=stat.started_ticks,
            uid=status.uid,
            namespace_pids=status.namespace_pids,
            command=command,
            is_python=command.is_python,
        )
        try:
            return _look_inside(folder, look, stat.parent_pid, torch_users)
        except PermissionError:
            return msgspec.structs.replace(look, is_denied=True)
    finally:
        os.close(folder)


def _look_inside(folder: int, look: ProcessLook, parent_pid: int, torch_users: TorchUsers) -> ProcessLook:
    """Adds what the kernel shows only to those who may trace the process."""
    environment = read_environment(_read(folder, "environ"))
    is_python = look.is_python or is_interpreter(_link(folder, "exe"))
    maps_torch: bool | None = None
    inner_uid: int | None = None
    if look.command.rank is not None or any(name in environment for name in _RANK_NAMES):
        inner_uid = _inner_uid(folder, look.uid)
        if torch_users.get(parent_pid) == environment:
            torch_users[look.pid] = environment
        else:
            maps_torch, has_python = _libraries(folder)
            is_python |= has_python
            if maps_torch:
                torch_users[look.pid] = environment
    return msgspec.structs.replace(
        look,
        environment=environment,
        is_python=is_python,
        maps_torch=maps_torch,
        mount_namespace=_link(folder, "ns/mnt"),
        network_namespace=_link(folder, "ns/net"),
        inner_uid=inner_uid,
    )


def _inner_uid(folder: int, uid: int) -> int | None:
    try:
        return find_inner_id(_read(folder, "uid_map").decode(errors="replace"), uid)
    except FileNotFoundError:  # a kernel without user namespaces
        return None


def _libraries(folder: int) -> tuple[bool, bool]:
    """Whether torch and whether Python's library are mapped. Stops reading as soon as torch is found."""
    has_torch = has_python = False
    descriptor = os.open("maps", os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)
    try:
        end = b""
        while not has_torch and (part := os.read(descriptor, _PART_BYTES)):
            text = end + part
            has_torch = any(library in text for library in _TORCH_LIBRARIES)
            has_python |= _PYTHON_LIBRARY in text
            end = text[-64:]
    finally:
        os.close(descriptor)
    return has_torch, has_torch or has_python


def _read(folder: int, name: str) -> bytes:
    """Reads a file; one without an owner's memory (an ended process) reads as empty."""
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)
    except ProcessLookupError:
        return b""
    try:
        data = b""
        while len(data) < _MOST_BYTES and (part := os.read(descriptor, _PART_BYTES)):
            data += part
        return data
    finally:
        os.close(descriptor)


def _link(folder: int, name: str) -> str:
    """What a link of the kernel says; empty for a process that has ended."""
    try:
        return os.readlink(name, dir_fd=folder)
    except FileNotFoundError:
        return ""
