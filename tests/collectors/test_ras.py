"""Answers of NCCL's RAS, as text and as JSON, whole and damaged."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pardbg.collectors.parsing.ras_json import parse_ras_json
from pardbg.collectors.parsing.ras_text import is_ras_text, parse_ras_text
from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.ras import RasCommunicator, RasCount, RasPlace, RasProcess, RasSeen

HEAD = """NCCL version 2.27.3 compiled with CUDA 12.8
CUDA runtime version 12080, driver version 12080

Job summary
===========

  Nodes  Processes         GPUs  Processes     GPUs
(total)   per node  per process    (total)  (total)
      2          4            1          8        8

Communicators... (0.02s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1         2         4         8         8   RUNNING  INCOMPLETE,MISMATCH
    1         4         2       1-2         2         8   RUNNING      OK
"""
TEXT = f"""{HEAD}
Errors
======

INCOMPLETE
  Missing communicator data from 1 job process
  Process 300 on node 10.0.0.2 managing GPU 1 (NVML 3)

DEAD
  1 job process is considered dead (unreachable via the RAS network)
  Process 301 on node 10.0.0.2 managing GPU 1

#0-0 (27a079b828ff1a75) INCOMPLETE
  Missing communicator data from 2 ranks
  Rank 5 -- GPU 1 managed by process 301 on node 10.0.0.2
  Rank 6 -- GPU 1 (NVML 3) managed by process 300 on node 10.0.0.2

#0-0 (27a079b828ff1a75) ERROR
  Asynchronous error on 1 rank
  Rank 2 reported Remote process error -- GPU 2 managed by process 12 on node 10.0.0.1

Warnings
========

TIMEOUT
  Encountered 1 communication timeout while gathering communicator data

#0-0 (27a079b828ff1a75) MISMATCH
  Communicator ranks have different status
  5 ranks have status RUNNING
  Rank 1 has status FINALIZE -- GPU 1 managed by process 101 on node 10.0.0.1
  Communicator ranks have different AllReduce operation counts
  5 ranks have launched up to operation 18
  Rank 3 has launched up to operation 17 -- GPU 3 managed by process 13 on node 10.0.0.1

  Communicator ranks have different Broadcast operation counts
  4 ranks have launched up to operation 2
  2 ranks have not launched any operations
  Rank 3 -- GPU 3 managed by process 13 on node 10.0.0.1
  Rank 4 -- [process information not found]

"""


def test_text_gives_what_differs_and_who_is_dead() -> None:
    assert is_ras_text(TEXT)
    assert parse_ras_text(TEXT) == RasSeen(
        nccl="2.27.3",
        communicators=(
            RasCommunicator(
                hash="27a079b828ff1a75",
                size=8,
                counts=(
                    RasCount(op="AllReduce", launched=18, number=5),
                    RasCount(op="AllReduce", launched=17, number=1, members=(3,)),
                    RasCount(op="Broadcast", launched=2, number=4),
                    RasCount(op="Broadcast", launched=0, number=2, members=(3, 4)),
                ),
                missing=(RasPlace(member=5, host="10.0.0.2", pid=301), RasPlace(member=6, host="10.0.0.2", pid=300)),
                dead=(RasPlace(member=5, host="10.0.0.2", pid=301),),
                failed=(RasPlace(member=2, host="10.0.0.1", pid=12),),
            ),
        ),
        processes=(
            RasProcess(host="10.0.0.2", pid=300, is_dead=False),
            RasProcess(host="10.0.0.2", pid=301, is_dead=True),
        ),
    )


def test_text_without_trouble_names_no_communicator() -> None:
    assert parse_ras_text(HEAD + "\nErrors\n======\n\nWarnings\n========\n\n") == RasSeen(nccl="2.27.3")


def member(rank: int, count: int = 5, **status: Any) -> dict[str, Any]:
    status = {"init_state": 0, "async_error": 0, "finalize_called": False, "destroy_flag": False, "abort_flag": False, **status}
    counts = {"Broadcast": 0, "AllReduce": count}
    return {
        "rank": rank,
        "host": "10.0.0.1",
        "pid": 100 + rank,
        "cuda_dev": rank,
        "status": status,
        "collective_counts": counts,
    }


def gone(rank: int, *, is_dead: bool) -> dict[str, Any]:
    status = {"unresponsive": True, "considered_dead": is_dead}
    return {"rank": rank, "host": "10.0.0.2", "pid": 100 + rank, "cuda_dev": 0, "nvml_dev": 0, "status": status}


def answer(*members: Any, missing: tuple[Any, ...] = (), size: int = 4) -> bytes:
    communicator = {"hash": "0xab", "secondary_hash": "0x1:0x2", "size": size, "ranks": members, "missing_ranks": missing}
    return json.dumps({"nccl_version": "2.28.3", "communicators_count": 1, "communicators": [communicator]}).encode()


def test_json_gives_every_members_counts() -> None:
    data = answer(member(0), member(1, 4), member(2, async_error=6), missing=(gone(3, is_dead=True),))
    (item,) = parse_ras_json(b"SERVER PROTOCOL 2\nOK\n" + data).communicators
    assert item == RasCommunicator(
        hash="00000000000000ab",
        size=4,
        counts=(
            RasCount(op="AllReduce", launched=5, number=2, members=(0, 2)),
            RasCount(op="AllReduce", launched=4, number=1, members=(1,)),
        ),
        missing=(RasPlace(member=3, host="10.0.0.2", pid=103),),
        dead=(RasPlace(member=3, host="10.0.0.2", pid=103),),
        failed=(RasPlace(member=2, host="10.0.0.1", pid=102),),
    )


def test_json_with_odd_parts_loses_only_those() -> None:
    (item,) = parse_ras_json(answer(member(0), {"rank": "x"}, 7, {"rank": 1})).communicators
    assert item.counts == (RasCount(op="AllReduce", launched=5, number=1, members=(0,)),) or item.counts[0].members == (0,)


@pytest.mark.parametrize("data", [b"", b"{", b'{"communicators": 1}', b"[" * 5000, b'{"nccl_version": "x"}'])
def test_what_is_no_answer_is_an_error_in_one_line(data: bytes) -> None:
    with pytest.raises(ParseError) as caught:
        parse_ras_json(data)
    assert "\n" not in str(caught.value)
    with pytest.raises(ParseError):
        parse_ras_text(data.decode())


@settings(max_examples=100, deadline=None)
@given(st.integers(0, len(TEXT)), st.integers(0, len(TEXT)), st.text(max_size=20))
def test_damaged_text_is_no_error(begin: int, end: int, extra: str) -> None:
    assert isinstance(parse_ras_text(HEAD + TEXT[begin:end] + extra + TEXT[end:]), RasSeen)


@settings(max_examples=100, deadline=None)
@given(st.recursive(st.none() | st.integers() | st.text(max_size=5), lambda kids: st.lists(kids, max_size=3), max_leaves=8))
def test_any_json_in_place_of_a_member_is_no_error(value: Any) -> None:
    assert isinstance(parse_ras_json(answer(value, {"rank": 0, "host": value}, missing=(value,))), RasSeen)
