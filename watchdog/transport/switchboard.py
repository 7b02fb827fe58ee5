"""All processes of a conversation: started a few at a time, heard together, noticed when they end.

Cost: one process and three descriptors a launch. The process's soft limit of descriptors is raised if that is not enough.
"""

import contextlib
import selectors
import subprocess
import time
from collections import deque
from dataclasses import dataclass, field

from pardbg.watchdog.model.names import AbsenceReason
from pardbg.watchdog.transport.channel import Channel
from pardbg.watchdog.transport.descriptors import allow_descriptors
from pardbg.watchdog.transport.ending import end_all
from pardbg.watchdog.transport.way import Launch, Loss, Way

STARTING_S = 5.0
"""For so long a process that nobody has greeted through counts as starting and keeps others from it."""

_LINGER_S = 0.5  # between the end of the output and the end of the process
_RIPE_S = 0.3  # between the report of a loss, and the last lines of and about the node, which come another way
_ROUND_S = 0.05


@dataclass
class Heard:
    """What one round has brought."""

    lines: list[tuple[Channel, list[bytes]]] = field(default_factory=list)
    losses: list[tuple[Channel, Loss]] = field(default_factory=list)
    ended: list[tuple[Channel, int | None]] = field(default_factory=list)
    refused: list[tuple[Launch, AbsenceReason, str]] = field(default_factory=list)


class Switchboard:
    """The channels of a way."""

    def __init__(self, way: Way) -> None:
        self._way = way
        self._waiting = deque(way.launches)
        self._selector = selectors.DefaultSelector()
        self._channels: list[Channel] = []
        self._leaving: dict[Channel, float] = {}
        self._dying: list[subprocess.Popen[bytes]] = []
        self._refused: list[tuple[Launch, AbsenceReason, str]] = []
        self._losses: deque[tuple[float, Channel, Loss]] = deque()
        self.channel_of: dict[str, Channel] = {}
        allow_descriptors(3 * len(way.launches))

    def start_some(self) -> list[Channel]:
        """Starts processes as long as fewer than ``most_starting`` are starting."""
        if not self._waiting:
            return []
        latest_s = time.monotonic() - STARTING_S
        starting = sum(not channel.greeted and channel.started_s > latest_s for channel in self._channels)
        return [channel for _ in range(self._way.most_starting - starting) if (channel := self._start()) is not None]

    @property
    def channels(self) -> list[Channel]:
        """Those that run."""
        return list(self._channels)

    def replace(self, channel: Channel, launch: Launch) -> None:
        """Gives a channel up; another launch is the next to start."""
        self.drop(channel)
        self._waiting.appendleft(launch)

    def send(self, channel: Channel, line: bytes) -> bool:
        """Hands a request to a channel; False if it does not take them in."""
        is_taken = channel.send(line)
        self._watch_requests(channel)
        return is_taken

    def hear(self, within_s: float) -> Heard:
        """What comes within a time; returns as soon as something does."""
        heard = Heard()
        heard.refused, self._refused = self._refused, []
        is_changing = (
            self._leaving or self._waiting or self._losses or any(not channel.is_settled for channel in self._channels)
        )
        patience_s = _ROUND_S if is_changing else within_s
        for key, events in self._selector.select(0 if heard.refused else min(within_s, patience_s)):
            channel: Channel = key.data
            if events & selectors.EVENT_WRITE:
                channel.flush()
                self._watch_requests(channel)
            elif key.fileobj is channel.errors:
                self._hear_errors(channel)
            else:
                self._hear_answers(channel, heard)
        while self._losses and (self._losses[0][0] < time.monotonic() or self._losses[0][1] in self._leaving):
            heard.losses.append(self._losses.popleft()[1:])
        for channel in [channel for channel, since_s in self._leaving.items() if _has_left(channel, since_s)]:
            self._hear_errors(channel)
            heard.ended.append((channel, channel.process.poll()))
            self.drop(channel)
        return heard

    def drop(self, channel: Channel) -> None:
        """Gives a channel up, and ends its process if that still runs."""
        for stream in (channel.requests, channel.answers, channel.errors):
            self._forget(stream)
        self._leaving.pop(channel, None)
        self._channels.remove(channel)
        for node in channel.nodes:
            self.channel_of.pop(node, None)
        channel.release()
        if channel.process.poll() is None:
            channel.process.terminate()
            self._dying.append(channel.process)

    def close(self) -> None:
        """Ends all processes. Deadline: see `ending.py`."""
        self._waiting.clear()
        try:
            end_all(self._channels, self._dying)
        finally:
            self._selector.close()
            self._channels, self._dying, self.channel_of = [], [], {}

    def _start(self) -> Channel | None:
        """Starts the next process; None if there is none, or it cannot be started."""
        if not self._waiting:
            return None
        launch = self._waiting.popleft()
        try:
            channel = Channel(launch)
        except OSError as error:
            reason = AbsenceReason.NOT_INSTALLED if isinstance(error, FileNotFoundError) else AbsenceReason.UNREACHABLE
            self._refused.append((launch, reason, f"{launch.command[0]} cannot be started here: {error.strerror}"))
            return None
        self._channels.append(channel)
        self.channel_of |= dict.fromkeys(launch.nodes, channel)
        for stream in (channel.answers, channel.errors):
            self._selector.register(stream, selectors.EVENT_READ, channel)
        return channel

    def _hear_answers(self, channel: Channel, heard: Heard) -> None:
        lines = channel.hear()
        if lines is None:
            self._forget(channel.answers)
            self._leaving[channel] = time.monotonic()
        elif lines:
            heard.lines.append((channel, lines))

    def _hear_errors(self, channel: Channel) -> None:
        said = channel.hear_errors()
        if said is None:
            self._forget(channel.errors)
        for line in said or ():
            if loss := self._way.hear_loss(line):
                self._losses.append((time.monotonic() + _RIPE_S, channel, loss))

    def _watch_requests(self, channel: Channel) -> None:
        is_watched = channel.requests in self._selector.get_map()
        if channel.has_unsent and not is_watched:
            self._selector.register(channel.requests, selectors.EVENT_WRITE, channel)
        elif is_watched and not channel.has_unsent:
            self._selector.unregister(channel.requests)

    def _forget(self, stream: object) -> None:
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(stream)  # type: ignore[arg-type] # what is not registered is no error


def _has_left(channel: Channel, since_s: float) -> bool:
    """Whether a process whose output has ended has ended itself, or lingers (an ssh that keeps its connection for others)."""
    return channel.process.poll() is not None or time.monotonic() > since_s + _LINGER_S
