"""Earlier incidents are told with a verdict; what says the same is not told again."""

import json

import pytest
from msgspec.structs import replace

from pardbg.watchdog.incidents.history import with_history
from pardbg.watchdog.incidents.sameness import say_the_same
from pardbg.watchdog.outputs.as_json import render_json
from pardbg.watchdog.outputs.terminal import render_terminal
from pardbg.watchdog.outputs.validation import validate_report
from tests.incidents.making import incident, report
from tests.outputs.samples import SAMPLES


def test_earlier_incidents_of_the_host_are_one_note() -> None:
    earlier = [incident(number) for number in (9, 8, 7, 6)]
    told = with_history(report(), earlier)
    assert told.notes[-1] == (
        "a culprit was on host gpu-n05 in 4 earlier incidents: 20261130-000009-4f2a (checkpoint-io),"
        " 20261130-000008-4f2a (checkpoint-io), 20261130-000007-4f2a (checkpoint-io) and 1 more"
    )
    assert replace(told, notes=report().notes) == report()
    validate_report(json.loads(render_json(told)))
    assert "4 earlier incidents" in render_terminal(told)


def test_a_gpu_is_told_besides_its_host() -> None:
    told = with_history(report("device_stuck"), [incident(1, of="device_stuck")])
    assert told.notes[-1].startswith("a culprit was on host dgx-038 in 1 earlier incident: ")
    assert (
        "; at GPU GPU-5d1f0c2a-7b1e-4a55-9c37-0c5b8e3f7a10 in 1 earlier incident: 20261130-000001-4f2a (xid)" in told.notes[-1]
    )


@pytest.mark.parametrize("name", ["healthy", "desync", "checkpoint_io"])
def test_where_nothing_is_known_nothing_is_said(name: str) -> None:
    assert with_history(report(name), [incident(1, of="dead_rank")]) == report(name)
    assert with_history(report(name), []) == report(name)


def test_reports_that_differ_in_time_only_say_the_same() -> None:
    one = report()
    verdict = one.verdict
    assert verdict is not None
    later = replace(one, took_s=99.0, verdict=replace(verdict, since_s=9999.0, claim="the same, only later"))
    assert say_the_same(one, later)
    assert not say_the_same(one, replace(one, verdict=replace(verdict, culprits=())))
    assert not say_the_same(one, replace(one, verdict=replace(verdict, cause=None)))
    assert not say_the_same(one, replace(one, verdict=None))
    assert sum(say_the_same(one, other) for other in SAMPLES.values()) == 1
