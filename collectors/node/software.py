"""Which versions ranks run, from what they have mapped. Runs in the trying child: files of a job may lie on a dead mount.

Cost: the memory map of each rank, one small file of torch, one listing of a folder.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from pardbg.collectors.live.identity import is_same_process
from pardbg.collectors.live.process_folder import ProcessFolder
from pardbg.collectors.live.recorders.rank_root import opened_root
from pardbg.collectors.live.recorders.switched_off import find_torch
from pardbg.collectors.live.recorders.trusted_file import RefusedError, read_file
from pardbg.collectors.node.answers import RankSoftware, RankTarget, SoftwareRequest
from pardbg.collectors.node.driver import UNKNOWN, read_driver
from pardbg.collectors.node.ranks import find_python
from pardbg.watchdog.model.text import printable_text

_TORCH = re.compile(rb"^__version__\s*(?::[^=]*)?=\s*['\"]([^'\"]{1,60})['\"]", re.MULTILINE)
_NCCL = re.compile(r"(/\S*/)?libnccl\.so\.(\d+(?:\.\d+)*)$", re.MULTILINE)
_WHEEL = re.compile(r"nvidia_nccl_cu\d+-([\w.]{1,30})\.dist-info")


def read_software(request: SoftwareRequest) -> Iterator[RankSoftware]:
    """One answer a rank, as far as it can be told. The caller has the deadline."""
    found = read_driver()
    driver = found if found != UNKNOWN else ""
    for target in request.ranks:
        try:
            yield _read(target, driver or None)
        except OSError:
            yield RankSoftware(pid=target.pid)


def _read(target: RankTarget, driver: str | None) -> RankSoftware:
    with ProcessFolder(target.pid) as folder:
        if not is_same_process(target.pid, target.started_ticks):
            return RankSoftware(pid=target.pid)
        program, memory_map = folder.link("exe") or "", folder.text("maps") or ""
    minor = find_python(program, memory_map)
    return RankSoftware(
        pid=target.pid,
        torch=_torch(memory_map, target),
        nccl=_nccl(memory_map, can_list=target.is_at_home),
        driver=driver,
        python=f"3.{minor}" if minor is not None else None,
    )


def _torch(memory_map: str, target: RankTarget) -> str | None:
    path = find_torch(memory_map)
    try:
        with opened_root(target.foreign_root) as root:
            found = _TORCH.search(read_file(path, None, root=root)[0]) if path else None
    except (RefusedError, OSError):
        return None
    return printable_text(found[1].decode(errors="replace")) if found else None


def _nccl(memory_map: str, *, can_list: bool) -> str | None:
    """From the name of the library, else from the wheel beside it."""
    found = _NCCL.search(memory_map)
    if found is None:
        return None
    if "." in found[2]:
        return found[2]
    if not can_list or not found[1]:
        return None
    packages = Path(found[1]).parent.parent.parent  # site-packages/nvidia/nccl/lib/libnccl.so.2
    try:
        names = os.listdir(packages)  # noqa: PTH208 - names only
    except OSError:
        return None
    return next((match[1] for name in names if (match := _WHEEL.fullmatch(name))), None)
