"""Parts become answers: in any order, twice, of many nodes at once; a bad node costs nobody but itself."""

import random
import zlib

import pytest

from pardbg.watchdog.model.names import AbsenceReason
from pardbg.watchdog.transport import assembling
from pardbg.watchdog.transport.answer import Answer
from pardbg.watchdog.transport.assembling import Assembly
from pardbg.watchdog.transport.lines import Part, decode_answer_line, encode_answer


def part(node: str = "n1", **keys: object) -> Part:
    return Part(**{"pardbg": "collect/1", "id": 1, "node": node, **keys})  # type: ignore[arg-type]


def parts_of(node: str, data: bytes, request_id: int = 1) -> list[Part]:
    found = [decode_answer_line(line) for line in encode_answer(request_id, node, data)]
    return [one for one in found if isinstance(one, Part)]


def only_reason(answers: list[Answer]) -> tuple[AbsenceReason, str]:
    (answer,) = answers
    assert answer.absence is not None
    return answer.absence.reason, answer.absence.detail


def test_parts_of_many_nodes_in_any_order_and_twice_become_one_answer_each() -> None:
    seeded = random.Random(3)
    wanted = {f"n{number}": seeded.randbytes(seeded.randrange(20_000)) for number in range(40)}
    parts = [one for node, data in wanted.items() for one in parts_of(node, data) * 2]
    seeded.shuffle(parts)
    assembly = Assembly(1, wanted)
    answers = [answer for one in parts for answer in assembly.take(one)]
    assert len(answers) == len(wanted)
    assert {answer.node: answer.data for answer in answers} == wanted
    assert assembly.open == []


def test_parts_of_other_requests_and_of_nodes_that_were_not_asked_are_nothing() -> None:
    assembly = Assembly(2, ["n1"])
    assert [assembly.take(one) for one in parts_of("n1", b"old", 1) + parts_of("n9", b"who", 2)] == [[], []]
    assert assembly.open == ["n1"]


@pytest.mark.parametrize("of", [0, -1, 10**9])
def test_a_number_of_parts_that_cannot_be_ends_the_node(of: int) -> None:
    reason, detail = only_reason(Assembly(1, ["n1"]).take(part(of=of)))
    assert reason is AbsenceReason.UNREADABLE
    assert str(of) in detail


@pytest.mark.parametrize("number", [3, -1, 2**62])
def test_a_part_beyond_the_last_ends_the_node(number: int) -> None:
    assert only_reason(Assembly(1, ["n1"]).take(part(part=number, of=3)))[0] is AbsenceReason.UNREADABLE


def test_two_that_speak_in_one_name_end_in_a_reason() -> None:
    assembly = Assembly(1, ["n1"])
    assert assembly.take(part(of=3, data=b"abc")) == []
    assert "do two processes speak" in only_reason(assembly.take(part(part=1, of=4)))[1]
    assembly = Assembly(1, ["n1"])
    first, second = parts_of("n1", random.Random(1).randbytes(1200)), parts_of("n1", random.Random(2).randbytes(1200))
    assert assembly.take(first[0]) == []
    assert "does not unpack" in only_reason(assembly.take(second[1]))[1]


def test_a_node_that_sends_more_than_an_answer_may_have_is_given_up_before_it_is_held() -> None:
    assembly = Assembly(1, ["n1", "n2"])
    answers: list[Answer] = []
    sent = 0
    while not answers:
        answers = assembly.take(part(part=sent, of=60_000, data=bytes(1_000_00)))
        sent += 1
    assert sent * 1_000_00 < assembling.LARGEST_PACKED_BYTES + 2 * 1_000_00
    assert "larger than" in only_reason(answers)[1]
    assert assembly.take(parts_of("n2", b"fine")[0]) == [Answer(node="n2", data=b"fine")]


def test_together_nodes_hold_no_more_than_a_bound_and_the_largest_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assembling, "MOST_HELD_BYTES", 10_000)
    assembly = Assembly(1, ["n1", "n2", "n3"])
    assert assembly.take(part("n1", of=9, data=bytes(6000))) == []
    assert assembly.take(part("n2", of=9, data=bytes(3000))) == []
    (answer,) = assembly.take(part("n3", of=9, data=bytes(3000)))
    assert answer.node == "n1"
    assert assembly.open == ["n2", "n3"]


def test_a_bomb_ends_in_a_reason() -> None:
    bomb = zlib.compress(bytes(2 * assembling.LARGEST_DATA_BYTES), 9)
    assert "unpacks to more than" in only_reason(Assembly(1, ["n1"]).take(part(data=bomb)))[1]


def test_a_reason_travels_and_one_that_is_not_known_is_still_a_reason() -> None:
    told = only_reason(Assembly(1, ["n1"]).take(part(reason="gone", detail="no such \x1b[31mjob")))
    assert told == (AbsenceReason.GONE, "no such [31mjob")
    assert only_reason(Assembly(1, ["n1"]).take(part(reason="tired")))[0] is AbsenceReason.UNREADABLE
