"""The conversation with one `pardbg collect` on each node: a request to all, answers as they come, always an end.

Deadline: that of each request, or for a silent node what `patience.py` grants; closing takes at most four seconds. Cost: a
process here for each launch of the way, and one `collect` a node. Nothing stays anywhere: a `collect` ends when its input does.
"""

import time
from collections.abc import Collection, Iterator
from types import TracebackType

from pardbg.watchdog.model.names import AbsenceReason
from pardbg.watchdog.transport.answer import Answer, no_answer
from pardbg.watchdog.transport.asking import Asking
from pardbg.watchdog.transport.channel import Channel
from pardbg.watchdog.transport.lines import GREETING_ID, encode_request, pack
from pardbg.watchdog.transport.patience import PING_S
from pardbg.watchdog.transport.peers import Peers
from pardbg.watchdog.transport.regrouping import to_regroup
from pardbg.watchdog.transport.silence import describe_end, describe_loss, describe_silence
from pardbg.watchdog.transport.switchboard import Heard, Switchboard
from pardbg.watchdog.transport.way import Way


class Conversation:
    """Speaks to the nodes of a way. Use it in a ``with``; it is for one thread.

    Between two requests nobody listens, so that answers that come too late wait in their pipes.
    """

    def __init__(self, way: Way) -> None:
        self._way = way
        self._peers = Peers(way.nodes)
        self._switchboard = Switchboard(way)
        self._asking: Asking | None = None
        self._request_id = GREETING_ID

    def __enter__(self) -> "Conversation":  # noqa: PYI034 - Self needs Python 3.11
        """Starts the first processes, so that they come up while the caller prepares its request."""
        try:
            self._start_some()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Closes."""
        self.close()

    @property
    def nodes(self) -> tuple[str, ...]:
        """All nodes of the way."""
        return self._way.nodes

    def close(self) -> None:
        """Ends all processes, here and on the nodes; of those who did not answer at once. Deadline: see `ending.py`."""
        self._asking = None
        for channel in self._switchboard.channels:
            if all(map(self._peers.is_overdue, channel.nodes)):
                self._switchboard.drop(channel)
        self._switchboard.close()

    def interrupt(self) -> None:
        """Ends the processes from another thread: who waits in `ask` is told soon, and closes."""
        for channel in self._switchboard.channels:
            channel.process.terminate()

    def ask(self, data: bytes, until_s: float, nodes: Collection[str] | None = None) -> Iterator[Answer]:
        """Puts a request to nodes (None: all) and gives each one's answer, or the reason why there is none, as they come.

        It is sent at once. Every node asked gets exactly one `Answer`, the last at ``until_s`` (as `time.monotonic` counts) at
        the latest; later only by what the caller does between two answers. The next request ends this one.

        Raises:
            KeyError: if a node is none of the way's.
            ValueError: if the request is too long to be sent (1 MiB packed).
        """
        chosen = None if nodes is None else tuple(dict.fromkeys(nodes))
        self._catch_up()
        self._request_id += 1
        self._asking = asking = Asking(self._request_id, pack(data), until_s, chosen, self._peers)
        for channel in self._switchboard.channels:
            self._put(asking, channel)
        return self._answers(asking)

    def _catch_up(self) -> None:
        """What has come since the last request was over tells who is up again, or gone."""
        if self._asking is not None and not self._asking.open:
            heard = self._switchboard.hear(0.0)
            for _ in (*self._settle_lines(self._asking, heard), *self._settle_losses(self._asking, heard)):
                pass

    def _answers(self, asking: Asking) -> Iterator[Answer]:
        yield from asking.refuse_lost()
        while asking is self._asking and asking.waited_for:
            self._start_some()
            left_s = asking.until_s - time.monotonic()
            heard = self._switchboard.hear(max(min(left_s, PING_S / 2) if asking.patience.is_running else left_s, 0.0))
            yield from self._settle_lines(asking, heard)
            yield from self._settle_losses(asking, heard)
            yield from self._tend(asking)
            yield from self._mind_silent(asking)
            if left_s <= 0:  # one last look at what had come in time
                break
        yield from self._end(asking)

    def _settle_lines(self, asking: Asking, heard: Heard) -> Iterator[Answer]:
        for channel, lines in heard.lines:
            for line in lines:
                yield from asking.hear(channel, line)

    def _settle_losses(self, asking: Asking, heard: Heard) -> Iterator[Answer]:
        for channel, loss in heard.losses:
            for node in loss.nodes:
                yield from asking.lose(node, *describe_loss(self._way, channel, node, loss.detail))
        for channel, exit_code in heard.ended:
            for node in channel.launch.nodes:
                yield from asking.lose(node, *describe_end(self._way, channel, node, exit_code, asking.progress(node)))
        for launch, reason, detail in heard.refused:
            for node in launch.nodes:
                yield from asking.lose(node, reason, detail)

    def _tend(self, asking: Asking) -> Iterator[Answer]:
        """Gives up channels that flood us, and starts anew those in which silent nodes keep the others from hearing."""
        for channel in self._switchboard.channels:
            if channel.is_flooding and len(channel.nodes) == 1:
                yield from self._give_up(asking, channel)
            elif self._way.regroup is not None and (nodes := to_regroup(channel)):
                yield from self._regroup(asking, channel, nodes)

    def _mind_silent(self, asking: Asking) -> Iterator[Answer]:
        """Asks nodes that are silent while most have answered if they hear, and gives up those that stay silent."""
        if not asking.patience.is_running:
            return
        now_s = time.monotonic()
        pinged: dict[Channel, list[str]] = {}
        for node in asking.waited_for:
            channel = self._switchboard.channel_of.get(node)
            if channel is None:  # its turn to be started has not come
                continue
            silence_s = asking.patience.silence_s(node, channel.started_s, now_s)
            if asking.patience.is_over(silence_s, is_up=node in channel.greeted):
                lasting = f"and no sign of life for {silence_s:.0f} s while others answered"
                yield asking.give_up(node, *describe_silence(self._way, channel, node, asking.progress(node), lasting))
            elif asking.patience.is_to_be_asked(node, silence_s, now_s):
                pinged.setdefault(channel, []).append(node)
        for channel, nodes in pinged.items():
            self._switchboard.send(channel, encode_request(GREETING_ID, b"", 0.0, tuple(nodes)))

    def _regroup(self, asking: Asking, channel: Channel, nodes: tuple[str, ...]) -> Iterator[Answer]:
        if self._way.regroup is None:
            return
        self._switchboard.replace(channel, self._way.regroup(nodes))
        for node in channel.nodes.difference(nodes):
            detail = f"{self._way.name} could not start anything on it, and was started again without it"
            yield from asking.lose(node, AbsenceReason.UNREACHABLE, detail)

    def _give_up(self, asking: Asking, channel: Channel) -> Iterator[Answer]:
        detail = f"it sends without end what is no answer; {channel.describe_output()}"
        self._switchboard.drop(channel)
        for node in channel.nodes:
            yield from asking.lose(node, AbsenceReason.UNREADABLE, detail)

    def _start_some(self) -> None:
        for channel in self._switchboard.start_some():
            if len(channel.nodes) > 1:
                self._switchboard.send(channel, encode_request(GREETING_ID, b"", 0.0, None))
            if self._asking is not None:
                self._put(self._asking, channel)

    def _put(self, asking: Asking, channel: Channel) -> None:
        if any(asking.is_open(node) for node in channel.nodes):
            self._switchboard.send(channel, asking.line())

    def _end(self, asking: Asking) -> Iterator[Answer]:
        """Every node that has not answered gets its reason."""
        is_current = asking is self._asking
        lasting = f"in {asking.lasts_s:.1f} s"
        for node in asking.open:
            if not is_current:
                yield no_answer(node, AbsenceReason.SKIPPED, "the next request was put before it had answered this one")
                continue
            channel = self._switchboard.channel_of.get(node)
            yield asking.give_up(node, *describe_silence(self._way, channel, node, asking.progress(node), lasting))
