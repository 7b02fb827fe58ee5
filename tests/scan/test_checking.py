"""Answers that have the right form and make no sense are no answers."""

import pytest
from msgspec.structs import replace

from pardbg.collectors.digesting import digest
from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.evidence import Evidence, FlightRecording
from pardbg.watchdog.model.names import CollectorName
from pardbg.watchdog.model.recording import GroupConfig, Recording
from pardbg.watchdog.model.summary import Block
from pardbg.watchdog.scan.nodes.checking import check_reply
from pardbg.watchdog.scan.nodes.messages import Seen, decode_reply, encode
from pardbg.watchdog.sim.recipe import Recipe
from pardbg.watchdog.sim.scenario import simulate
from tests.diagnosis.diagnosing import evidence_of


def good() -> Recording:
    evidence = evidence_of(simulate(Recipe(fault="missing-participant", ranks=8, entries=60)))
    return next(digest(item.observation.recording) for item in evidence if isinstance(item.observation, FlightRecording))


def seen(recording: Recording, rank: int = 3) -> Seen:
    observation = FlightRecording(recording=recording)
    return Seen(evidence=(Evidence(source=CollectorName.FLIGHT_RECORDER, rank=rank, observation=observation, origin="x"),))


def test_digest_survives_its_journey() -> None:
    reply = decode_reply(encode(seen(good())))
    check_reply(reply)
    assert reply == seen(good())


@pytest.mark.parametrize(
    "changes",
    [
        {"signatures": ()},
        {"sites": ()},
        {"groups": ()},
        {"configs": (GroupConfig(name="0", desc="default_pg", runs=((0, 1, 10**12),)),)},
        {"configs": (GroupConfig(name="0", desc="default_pg", runs=((-5, 1, 2),)),)},
    ],
)
def test_recording_that_points_outside_of_itself_or_of_the_job_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(ParseError):
        check_reply(seen(replace(good(), **changes)))


def test_block_of_no_group_is_refused() -> None:
    recording = good()
    assert recording.summary is not None
    wrong = replace(recording.summary, blocks=(Block(99, 0, 1, 0, 0),))
    with pytest.raises(ParseError):
        check_reply(seen(replace(recording, summary=wrong)))


def test_rank_that_no_job_has_is_refused() -> None:
    with pytest.raises(ParseError):
        check_reply(seen(good(), rank=10**9))
