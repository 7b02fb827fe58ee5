"""Which of several agents leads. The others are functions that answer, keep silent or know nothing."""

from pardbg.watchdog.agent.leading import SILENCE_S, Leading, Part, Word


class Others:
    """What other agents say, by address; `OSError` for those that keep silent."""

    def __init__(self, **words: Word | type[OSError] | None) -> None:
        self.words, self.now_s = words, 0.0
        self.asked: list[str] = []

    def ask(self, address: str) -> Word | None:
        """One of them."""
        self.asked.append(address)
        word = self.words[address]
        if isinstance(word, type):
            raise word
        return word

    def decide(self, leading: Leading) -> Part:
        """What this agent has to do, by these words."""
        return leading.decide(lambda: self.now_s)


def test_first_agent_leads_at_once() -> None:
    others = Others()

    assert others.decide(Leading((), 0, others.ask)) is Part.LEAD


def test_agent_of_lower_ranks_goes_first_whatever_it_thinks() -> None:
    others = Others(n1=Word(0))

    assert others.decide(Leading(("n1",), 8, others.ask)) is Part.WAIT


def test_open_incident_of_another_agent_is_followed() -> None:
    others = Others(n1=Word(24), n2=Word(8, "20261130-1"))

    assert others.decide(Leading(("n1", "n2"), 16, others.ask)) is Part.FOLLOW


def test_agents_without_a_part_or_of_higher_ranks_do_not_lead() -> None:
    others = Others(n1=Word(24), n2=None)

    assert others.decide(Leading(("n1", "n2"), 16, others.ask)) is Part.LEAD


def test_silent_agent_is_passed_over_after_its_time() -> None:
    others = Others(n1=ConnectionRefusedError)
    leading = Leading(("n1",), 8, others.ask)
    assert others.decide(leading) is Part.WAIT
    others.now_s = SILENCE_S - 1
    assert others.decide(leading) is Part.WAIT
    others.now_s = SILENCE_S + 1
    assert others.decide(leading) is Part.LEAD


def test_silence_that_was_broken_counts_anew() -> None:
    others = Others(n1=ConnectionRefusedError)
    leading = Leading(("n1",), 8, others.ask)
    others.decide(leading)
    others.words["n1"], others.now_s = Word(0), 10.0
    others.decide(leading)
    others.words["n1"], others.now_s = TimeoutError, SILENCE_S + 1

    assert others.decide(leading) is Part.WAIT


def test_nobody_asks_more_agents_than_needed() -> None:
    words: dict[str, Word | type[OSError] | None] = {f"n{number}": Word(number * 8) for number in range(1000)}
    others = Others(**words)

    assert others.decide(Leading(tuple(words), 8000, others.ask)) is Part.WAIT
    assert len(others.asked) <= 4
