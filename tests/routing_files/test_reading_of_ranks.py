"""What is read of ranks' counts of routing wherever they lie, and what is said where none can be. This process is the rank."""

import json
import os
import time
from pathlib import Path

import pytest
import torch
from msgspec.structs import replace

from pardbg.collectors.live.no_routing import explain_no_routing
from pardbg.collectors.live.routing import read_routing_files
from pardbg.collectors.probe import identity, places
from pardbg.collectors.probe.routing.writing import RoutingWriter
from pardbg.collectors.probe.routing_format import FIGURES, LayerLine
from pardbg.collectors.probe.routing_watch import SWITCHED_OFF
from pardbg.collectors.vitals.inside_page import OnDiskError
from pardbg.collectors.vitals.routing_file import open_routing
from pardbg.collectors.vitals.signs import Signs
from pardbg.watchdog.agent.ward_routing import WardRouting
from pardbg.watchdog.correlators.layer_health import find_layer_health
from pardbg.watchdog.correlators.routing_notes import why_unsure
from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.model.evidence import Absence
from pardbg.watchdog.model.names import AbsenceReason, CollectorName
from pardbg.watchdog.model.routing import RoutingSeries
from pardbg.watchdog.model.world import RankProcess
from pardbg.watchdog.store.view import EvidenceView
from tests.agent.routing_rank import open_folder


def rank_in(root: Path) -> RankProcess:
    """This process, with its probe's folder there."""
    recorder = {places.ROOT_VARIABLE: str(root)}
    started = identity.started_ticks()
    return RankProcess(rank=3, pid=os.getpid(), started_ticks=started, host="here", uid=os.geteuid(), recorder=recorder)


def write_routing(folder: Path) -> None:
    writer = RoutingWriter(str(folder / places.ROUTING_FILE), [LayerLine(0, 2, 1, 0, is_frozen=False, name=b"router")], 2)
    writer.write_step((1, time.time_ns(), 2.0), [[5.0] * len(FIGURES)], torch.tensor([[2, 3]], dtype=torch.int32))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(places.ROOT_VARIABLE, str(tmp_path / "disk"))
    return Path(open_folder())


def test_file_on_a_disk_is_read_once_and_not_held_open_and_a_spoilt_one_is_an_absence(folder: Path) -> None:
    rank = rank_in(folder.parent)
    write_routing(folder)
    (item,) = read_routing_files([rank])
    assert isinstance(item.observation, RoutingSeries)
    assert (item.rank, item.source, item.observation.rows[0].counts) == (3, CollectorName.ROUTING, (2, 3))
    with pytest.raises(OnDiskError, match="rank 3 lies on a disk"):
        open_routing(rank)
    (folder / places.ROUTING_FILE).write_bytes(b"\0" * 4096)
    (item,) = read_routing_files([rank])
    assert isinstance(item.observation, Absence)
    assert item.observation.reason is AbsenceReason.UNREADABLE
    assert "cannot be read: no file of routing that is known here" in item.observation.detail
    assert "cannot be read" in explain_no_routing([rank]).why


def test_why_nothing_is_counted_is_told(folder: Path, tmp_path: Path) -> None:
    rank = rank_in(folder.parent)
    assert explain_no_routing([rank]).why == "its probe runs, and has seen no router train so far"
    said = folder / places.RANK_FILE
    said.write_text(json.dumps({**json.loads(said.read_text()), "problems": [SWITCHED_OFF]}))
    assert explain_no_routing([rank]).remedy == "start it without PARDBG_ROUTING=0"
    assert explain_no_routing([rank_in(tmp_path / "nothing")]).why == "no probe runs in it"
    assert list(read_routing_files([rank])) == []


def test_layers_of_a_job_of_which_a_rank_cannot_be_read_are_unclear(folder: Path) -> None:
    write_routing(folder)
    (read,) = read_routing_files([rank_in(folder.parent)])
    (folder / places.ROUTING_FILE).write_bytes(b"")
    (lost,) = read_routing_files([rank_in(folder.parent)])
    situation = Situation.of(EvidenceView.of([read, replace(lost, rank=1)]))
    assert why_unsure(situation).startswith("routing of 1 layer over 1 step: nothing that could be read is ill, but of rank 1")
    (layer,) = find_layer_health(situation, 4)
    assert layer.doubts[0].startswith("of rank 1 what its probe has counted of routing cannot be read")
    assert find_layer_health(Situation.of(EvidenceView.of([read])), 4)[0].doubts == ()


def test_agent_says_that_it_does_not_read_what_lies_on_a_disk(folder: Path) -> None:
    write_routing(folder)
    ward = WardRouting()
    ward.meet({3: rank_in(folder.parent)})
    for second in range(5):  # not all children in one look
        ward.look({3: Signs(state="S", switches=1)}, float(second))
    assert ward.trouble.startswith("not watched: routing of the probe of rank 3 lies on a disk; `pardbg moe --job` reads it")
    ward.close()
