"""gloo retires an operation whose connection broke: the rank waited in it all the same."""

import pytest

from pardbg.collectors.ended.broken import reopen_last
from pardbg.collectors.parsing.flight_recorder import parse_flight_recorder
from pardbg.watchdog.model.heartbeat import Ending, EndingKind
from pardbg.watchdog.model.recording import Recording
from tests.collectors.dumps import gloo, make_dump, pickled

TIMEOUT = "RuntimeError: [third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 8000ms for recv operation"


def said(text: str, *, is_consequence: bool = True) -> Ending:
    return Ending(kind=EndingKind.EXCEPTION, text=text, is_consequence=is_consequence)


@pytest.fixture
def finished() -> Recording:
    return parse_flight_recorder(pickled(make_dump(gloo(number, is_retired=True) for number in range(2))))


def test_last_operation_of_a_rank_that_gloo_broke_off_is_outstanding(finished: Recording) -> None:
    reopened = reopen_last(finished, said(TIMEOUT))
    assert [operation.is_done for operation in reopened.operations] == [True, False]


@pytest.mark.parametrize(
    "ending",
    [
        None,
        said("ValueError: bad record", is_consequence=False),
        said("RuntimeError: Broken pipe while asking the store"),
        Ending(kind=EndingKind.SIGNAL, code=-15),
    ],
)
def test_any_other_end_says_nothing_of_it(finished: Recording, ending: Ending | None) -> None:
    assert reopen_last(finished, ending) == finished
