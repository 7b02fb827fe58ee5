"""Reads what one rank's probe keeps: who it is, its page, its groups. Runs in a reader's child, which may be abandoned.

Cost: three small files, 0.2 ms; the rank notices nothing. Nothing of a file leaves this module but what its parser makes of it.
"""

import os
import time
from collections.abc import Iterator

from msgspec.structs import replace

from pardbg.collectors.live.probe.place import check_folder, read_own_words
from pardbg.collectors.live.recorders.outcome import Refusal
from pardbg.collectors.live.recorders.rank_root import opened_root
from pardbg.collectors.live.recorders.trusted_file import RefusedError, read_file
from pardbg.collectors.parsing import group_file
from pardbg.collectors.parsing.group_file import parse_groups
from pardbg.collectors.parsing.page import parse_page
from pardbg.collectors.parsing.rank_file import RankFile
from pardbg.collectors.probe.page_format import PAGE_SIZE
from pardbg.collectors.probe.places import GROUPS_FILE, PAGE_FILE, RANK_FILE
from pardbg.collectors.reading_job import ProbeRead, ProbeRequest
from pardbg.collectors.walking import printable
from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.heartbeat import Heartbeat
from pardbg.watchdog.model.names import AbsenceReason
from pardbg.watchdog.model.recording import GroupConfig

_BETWEEN_COPIES_S = 0.0005


def read_probe(request: ProbeRequest) -> ProbeRead:
    """Everything of one probe; empty if the process has none. What could not be read is among the problems.

    Raises:
        RefusedError: if the process lives in another mount namespace that cannot be entered.
    """
    with opened_root(request.inside) as root:
        return _read(request, root)


def _read(request: ProbeRequest, root: int | None) -> ProbeRead:
    problems: list[Refusal] = []
    own = _read_rank(request, root, problems)
    if own is None:
        return ProbeRead(problems=tuple(problems))
    heartbeat, groups = _read_page(request, root, own, problems), _read_groups(request, root, problems)
    return ProbeRead(own=own, heartbeat=heartbeat, groups=groups, problems=tuple(problems))


def _read_rank(request: ProbeRequest, root: int | None, problems: list[Refusal]) -> RankFile | None:
    path = _file(request, RANK_FILE)
    try:
        check_folder(request.folder, request.uid, root)
    except FileNotFoundError:
        return None
    except RefusedError as error:
        problems.append(error.refusal)
        return None
    try:
        return read_own_words(request.folder, request.pid, request.started_ticks, request.uid, root)
    except FileNotFoundError:
        problems.append(_refusal(AbsenceReason.EMPTY, "its probe has not written yet who it is", path))
    except (RefusedError, ParseError, OSError) as error:
        problems.append(_explain(error, path))
    return None


def _read_page(request: ProbeRequest, root: int | None, own: RankFile, problems: list[Refusal]) -> Heartbeat | None:
    path = _file(request, PAGE_FILE)
    try:
        return replace(parse_page(_copies(path, request.uid, root), request.pid), oom_kills=own.oom_kills)
    except FileNotFoundError:
        return None  # it is no probe that writes there, but a rank that was attached to
    except (RefusedError, ParseError, OSError) as error:
        problems.append(_explain(error, path))
    return None


def _copies(path: bytes, uid: int, root: int | None) -> Iterator[bytes]:
    while True:
        yield read_file(path, uid, most_bytes=PAGE_SIZE, root=root)[0]
        time.sleep(_BETWEEN_COPIES_S)


def _read_groups(request: ProbeRequest, root: int | None, problems: list[Refusal]) -> tuple[GroupConfig, ...]:
    path = _file(request, GROUPS_FILE)
    try:
        return parse_groups(read_file(path, request.uid, most_bytes=group_file.MOST_BYTES, root=root)[0])
    except FileNotFoundError:
        return ()  # it has made none yet
    except (RefusedError, ParseError, OSError) as error:
        problems.append(_explain(error, path))
    return ()


def _file(request: ProbeRequest, name: str) -> bytes:
    return os.path.join(request.folder, os.fsencode(name))  # noqa: PTH118 - bytes


def _explain(error: RefusedError | ParseError | OSError, path: bytes) -> Refusal:
    if isinstance(error, RefusedError):
        return error.refusal
    detail = (error.strerror or type(error).__name__) if isinstance(error, OSError) else str(error)
    return _refusal(AbsenceReason.UNREADABLE, detail, path)


def _refusal(reason: AbsenceReason, detail: str, path: bytes) -> Refusal:
    return Refusal(reason=reason, detail=detail, origin=printable(path))
