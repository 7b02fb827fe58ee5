"""Which letter goes next, and when one is tried again."""

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from msgspec.structs import replace

from pardbg.watchdog.incidents import courier
from pardbg.watchdog.incidents.clock import as_rfc3339
from pardbg.watchdog.incidents.courier import LONGEST_PAUSE_S, MOST_REFUSALS, Courier
from pardbg.watchdog.incidents.keeper import Keeper
from pardbg.watchdog.incidents.letters import Event
from pardbg.watchdog.incidents.outbox import letters_of
from pardbg.watchdog.incidents.posting import Answer, Outcome
from pardbg.watchdog.incidents.receivers import Receiver, ReceiverKind
from pardbg.watchdog.model.incident import Incident
from tests.incidents.making import MORNING_S, SetClock, ended, incident, report

HOOK = Receiver(kind=ReceiverKind.WEBHOOK, url="http://127.0.0.1:1/hook")
MANAGER = Receiver(kind=ReceiverKind.ALERTMANAGER, url="http://127.0.0.1:1/")
TAKEN = Answer(outcome=Outcome.TAKEN)
DOWN = Answer(outcome=Outcome.LATER, words="connection refused")
WRONG = Answer(outcome=Outcome.REFUSED, words="answers 400")


class Post:
    """Answers as it is told, for all or for one incident, and remembers what it got and when."""

    def __init__(self, clock: SetClock) -> None:
        self._clock = clock
        self.answer, self.answers = TAKEN, dict[str, Answer]()
        self.tried: list[tuple[float, str]] = []
        self.taken: list[tuple[float, str]] = []

    def __call__(self, receiver: Receiver, body: str, _key: str) -> Answer:  # noqa: D102 - see above
        said = json.loads(body)
        if receiver.kind is ReceiverKind.WEBHOOK:
            about, words = said["id"], f"{int(said['id'][9:15])} {said['event']}"
        else:
            about = said[0]["labels"]["incident"]
            words = ", ".join(f"{int(one['labels']['incident'][9:15])} {_state(one)}" for one in said)
        answer = self.answers.get(about, self.answer)
        self.tried.append((self._clock.now_s, words))
        if answer is TAKEN:
            self.taken.append((self._clock.now_s, words))
        return answer


def _state(alert: dict[str, object]) -> str:
    return "ends" if "endsAt" in alert else "fires"


class Desk:
    """A keeper, a courier and a clock that only moves when the courier waits."""

    def __init__(self, folder: Path, receiver: Receiver) -> None:
        self.clock, self.receiver = SetClock(), receiver
        self.post = Post(self.clock)
        self.keeper = Keeper(folder)
        self.courier = Courier(receiver, self.keeper, self.clock, self.post)

    def tell(self, event: Event, one: Incident, before: Incident | None = None) -> None:
        """Something has happened."""
        self.keeper.save(one, letters_of([self.receiver], event, one, before, self.clock.wall_s()))

    def live(self, duration_s: float) -> None:
        """Lets the courier work for some time."""
        end_s = self.clock.now_s + duration_s
        while self.clock.now_s < end_s:
            self.clock.now_s = min(self.clock.now_s + self.courier.step(), end_s)

    @property
    def taken(self) -> list[str]:
        """What has arrived."""
        return [words for _, words in self.post.taken]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path, HOOK)
    yield made
    made.keeper.close()


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path, MANAGER)
    yield made
    made.keeper.close()


def test_receiver_that_is_down_for_an_hour_loses_nothing_and_gets_it_in_order(desk: Desk) -> None:
    desk.post.answer = DOWN
    desk.tell(Event.OPENED, incident(1))
    desk.live(600)
    desk.tell(Event.UPDATED, incident(1))
    desk.tell(Event.OPENED, incident(2))
    desk.live(1800)
    desk.tell(Event.ENDED, ended(incident(1)))
    desk.live(1200)
    assert desk.taken == []
    assert (desk.courier.problem, desk.keeper.unsent) == ("connection refused", 4)
    pauses = [later - sooner for (sooner, _), (later, _) in pairwise(desk.post.tried)]
    assert 0.5 <= pauses[0] <= 1
    assert max(pauses) <= LONGEST_PAUSE_S
    assert 18 <= len(desk.post.tried) <= 40
    assert desk.courier.counts["retries"] == len(desk.post.tried)

    desk.post.answer = TAKEN
    desk.live(LONGEST_PAUSE_S + 1)
    assert sorted(desk.taken, key=lambda words: words[0]) == ["1 opened", "1 updated", "1 ended", "2 opened"]
    assert (desk.courier.problem, desk.keeper.unsent, desk.courier.counts["sent"]) == ("", 0, 4)


def test_letter_that_is_refused_is_given_up_and_holds_up_no_other_incident(desk: Desk) -> None:
    desk.post.answers = {incident(1).id: WRONG}
    desk.tell(Event.OPENED, incident(1))
    desk.tell(Event.OPENED, incident(2))
    desk.live(5)
    assert desk.taken == ["2 opened"]
    desk.live(1800)
    assert [words for _, words in desk.post.tried].count("1 opened") == MOST_REFUSALS
    assert (desk.courier.counts["given_up"], desk.keeper.unsent) == (1, 0)
    assert desk.courier.problem == f"gave up telling that {incident(1).id} was opened: answers 400"
    desk.post.answers = {}
    desk.tell(Event.ENDED, ended(incident(1)))
    desk.live(1)
    assert desk.taken == ["2 opened", "1 ended"]


def test_letter_that_makes_the_receiver_fall_does_not_stop_the_others(desk: Desk) -> None:
    desk.post.answers = {incident(1).id: replace(DOWN, words="answers 500")}
    for number in (1, 2, 3):
        desk.tell(Event.OPENED, incident(number))
    desk.live(60)
    assert desk.taken == ["2 opened", "3 opened"]


def test_receiver_that_says_when_to_come_back_is_obeyed(desk: Desk) -> None:
    desk.post.answer = replace(DOWN, wait_s=100.0)
    desk.tell(Event.OPENED, incident(1))
    desk.live(99)
    assert len(desk.post.tried) == 1
    desk.live(2)
    assert len(desk.post.tried) == 2


def test_after_its_time_it_is_given_up(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(courier, "KEPT_S", 86400.0)  # a week has 2,000 attempts
    desk.post.answer = DOWN
    desk.tell(Event.OPENED, incident(1))
    desk.live(courier.KEPT_S - 1)
    assert desk.courier.counts["given_up"] == 0
    desk.live(LONGEST_PAUSE_S + 2)
    assert (desk.courier.counts["given_up"], desk.keeper.unsent) == (1, 0)


def test_letters_survive_the_agent(tmp_path: Path) -> None:
    desk = Desk(tmp_path, HOOK)
    desk.post.answer = DOWN
    desk.tell(Event.OPENED, incident(1))
    desk.live(100)
    desk.keeper.close()
    again = Desk(tmp_path, HOOK)
    again.live(1)
    assert again.taken == ["1 opened"]
    again.keeper.close()


def test_alertmanager_hears_each_minute_of_what_is_open_and_for_a_while_of_what_ended(manager: Desk) -> None:
    manager.tell(Event.OPENED, incident(1))
    manager.live(190)
    assert manager.taken == ["1 fires"] * 5
    times = [at for at, _ in manager.post.taken]
    assert times[1] == 0  # a manager may have lost all before
    assert all(60 <= later - sooner <= 90 for sooner, later in pairwise(times[1:]))
    over = replace(ended(incident(1)), updated_at=as_rfc3339(MORNING_S + 190))
    manager.tell(Event.ENDED, over)
    manager.live(3600)
    assert set(manager.taken[5:]) == {"1 ends"}
    assert 10 <= len(manager.taken[5:]) <= 17


def test_open_incidents_are_sent_again_only_after_their_letters(manager: Desk) -> None:
    manager.post.answer = DOWN
    manager.tell(Event.OPENED, incident(1))
    manager.live(3000)
    assert {words for _, words in manager.post.tried} == {"1 fires"}
    manager.tell(Event.ENDED, replace(ended(incident(1)), updated_at=as_rfc3339(MORNING_S + 3000)))
    manager.post.answer = TAKEN
    manager.live(400)
    fired, *later = manager.taken
    assert (fired, later[0]) == ("1 fires", "1 ends")
    at = [when for when, _ in manager.post.taken]
    assert at[1] - at[0] >= courier._HOLD_S  # so that somebody is told at all


def test_alert_whose_labels_change_ends_under_its_old_ones(manager: Desk) -> None:
    manager.tell(Event.OPENED, incident(1))
    changed = replace(incident(1), report=report("desync"))
    manager.tell(Event.UPDATED, changed, incident(1))
    manager.live(1)
    assert manager.taken[:2] == ["1 fires", "1 ends, 1 fires"]
