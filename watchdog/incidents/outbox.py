"""Who is told what: letters for every receiver, one thread a receiver that delivers them, and what became of them."""

import json
import logging
import threading
from collections import Counter
from collections.abc import Callable, Sequence

from pardbg.watchdog.incidents.clock import Clock
from pardbg.watchdog.incidents.courier import Courier
from pardbg.watchdog.incidents.keeper import Keeper
from pardbg.watchdog.incidents.letters import Event, Letter, new_key
from pardbg.watchdog.incidents.posting import Answer, post
from pardbg.watchdog.incidents.receivers import Receiver, ReceiverKind
from pardbg.watchdog.model.incident import Incident
from pardbg.watchdog.outputs.as_alert import alerts_of_change, webhook_body

_AFTER_OWN_FAULT_S = 30.0
_GOODBYE_S = 1.0
_log = logging.getLogger("pardbg.incidents")


def letters_of(
    receivers: Sequence[Receiver], event: Event, incident: Incident, before: Incident | None, now_s: float
) -> tuple[Letter, ...]:
    """A letter for each receiver. ``before``: the incident as they know it."""
    return tuple(
        Letter(
            key=new_key(),
            receiver=receiver.name,
            incident=incident.id,
            event=event,
            made_at_s=now_s,
            body=_body(receiver, event, incident, before),
        )
        for receiver in receivers
    )


def _body(receiver: Receiver, event: Event, incident: Incident, before: Incident | None) -> str:
    if receiver.kind is ReceiverKind.ALERTMANAGER:
        return json.dumps(alerts_of_change(before, incident))
    return json.dumps(webhook_body(event.value, incident))


class Outbox:
    """Delivers what a keeper holds. `wake` it when there is a new letter; close it."""

    def __init__(
        self,
        receivers: Sequence[Receiver],
        keeper: Keeper,
        clock: Clock,
        send: Callable[[Receiver, str, str], Answer] = post,
    ) -> None:
        self._clock, self._keeper = clock, keeper
        by_name = {receiver.name: receiver for receiver in receivers}
        self.receivers = tuple(by_name.values())
        self._couriers = {name: Courier(receiver, keeper, clock, send) for name, receiver in by_name.items()}
        self._news = {name: threading.Event() for name in by_name}
        self._is_closing = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(name,), name=name, daemon=True) for name in by_name]
        for thread in self._threads:
            thread.start()

    def wake(self) -> None:
        """There is a new letter."""
        for news in self._news.values():
            news.set()

    def counts(self) -> dict[str, int]:
        """Since it was opened: ``sent``, ``retries``, ``given_up``, ``resent``; and ``unsent`` now."""
        total: Counter[str] = Counter()
        for courier in self._couriers.values():
            total.update(courier.counts)
        return {name: total[name] for name in ("sent", "retries", "given_up", "resent")} | {"unsent": self._keeper.unsent}

    def problems(self) -> tuple[str, ...]:
        """Of each receiver that does not take its letters, why."""
        return tuple(courier.problem for courier in self._couriers.values() if courier.problem)

    def close(self) -> None:
        """Ends the threads; one that is just sending ends by its own deadline."""
        self._is_closing.set()
        self.wake()
        for thread in self._threads:
            thread.join(_GOODBYE_S)

    def _run(self, name: str) -> None:
        courier, news = self._couriers[name], self._news[name]
        while not self._is_closing.is_set():
            problem = courier.problem
            try:
                pause_s = courier.step()
            except Exception as error:  # noqa: BLE001 - a thread that ends in silence would be worse
                _log.exception("the courier of %s", name)
                courier.problem, pause_s = f"internal error: {type(error).__name__}", _AFTER_OWN_FAULT_S
            if courier.problem != problem:
                _log.warning("%s", courier.problem or f"{name} takes letters again")
            self._clock.wait(news, pause_s)
            news.clear()
