"""Reads what one rank's probe has counted of routing, wherever its folder lies. Runs in a child that may be abandoned.

Cost: the file, 4 MB as a rule and 64 MiB at most, and some 100 ms for a full one; the rank notices nothing.
"""

import os
import time

from pardbg.collectors.live.probe.place import check_folder, read_own_words
from pardbg.collectors.live.recorders.rank_root import opened_root
from pardbg.collectors.live.recorders.trusted_file import read_file
from pardbg.collectors.parsing.rank_file import RankFile
from pardbg.collectors.parsing.routing_page import parse_routing_page
from pardbg.collectors.probe.places import ROUTING_FILE
from pardbg.collectors.probe.routing_format import MOST_SIZE
from pardbg.collectors.probe.routing_watch import SWITCHED_OFF
from pardbg.collectors.reading_job import ProbeRequest, RoutingRead, RoutingRequest
from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.routing import RoutingSeries

_TRIES = 3  # a step that is being written, or a file that another one replaces
_BETWEEN_S = 0.02


def read_routing(request: RoutingRequest) -> RoutingRead:
    """All steps that are kept.

    Raises:
        RefusedError, ParseError, OSError: if there is such a file, and it may not be believed or not be read.
    """
    with opened_root(request.probe.inside) as root:
        try:
            own = _read_own(request.probe, root)
        except FileNotFoundError:
            return RoutingRead()
        try:
            series = _read(request.probe, root) if own is not None else None
        except FileNotFoundError:
            series = None
    if own is None:
        return RoutingRead()
    return RoutingRead(series=series, has_probe=True, is_switched_off=SWITCHED_OFF in (own.problems or ()))


def _read_own(probe: ProbeRequest, root: int | None) -> RankFile | None:
    check_folder(probe.folder, probe.uid, root)
    return read_own_words(probe.folder, probe.pid, probe.started_ticks, probe.uid, root)


def _read(probe: ProbeRequest, root: int | None) -> RoutingSeries:
    path = os.path.join(probe.folder, os.fsencode(ROUTING_FILE))  # noqa: PTH118 - bytes
    for _ in range(_TRIES - 1):
        try:
            return parse_routing_page(read_file(path, probe.uid, most_bytes=MOST_SIZE, root=root)[0], probe.pid)
        except ParseError:
            time.sleep(_BETWEEN_S)
    return parse_routing_page(read_file(path, probe.uid, most_bytes=MOST_SIZE, root=root)[0], probe.pid)
