"""What was not seen, of very large jobs: a few lines, whatever is missing."""

from msgspec.structs import replace
from tests.outputs.samples import SAMPLES

from pardbg.watchdog.model.names import AbsenceReason, CollectorName
from pardbg.watchdog.model.report import Unknown
from pardbg.watchdog.outputs.blocks import Depth, Items, Paragraph
from pardbg.watchdog.outputs.sections.unseen import unseen

MISSING = range(0, 4096, 19)  # nodes, 5 %


def texts(unknowns: list[Unknown]) -> list[str]:
    section = unseen(replace(SAMPLES["undetermined"], unknowns=tuple(unknowns)), Depth.NORMAL)
    return [item.text for block in section.blocks if isinstance(block, Items) for item in block.items]


def unknown(rank: int | None, host: str | None, detail: str) -> Unknown:
    collector = CollectorName.HOST if rank is None else CollectorName.FLIGHT_RECORDER
    return Unknown(rank=rank, host=host, collector=collector, reason=AbsenceReason.UNREACHABLE, detail=detail)


def test_hundreds_of_missing_nodes_are_two_short_lines() -> None:
    nodes = [(number, f"n{number:04d}") for number in MISSING]
    ranks = [unknown(rank, host, f"{host} is silent") for number, host in nodes for rank in range(number * 8, number * 8 + 8)]
    told = texts([*ranks, *(unknown(None, host, "silent") for _, host in nodes)])
    hosts = "on n[0000,0019,0038,0057] and 212 more (216 hosts; --json has all)"
    ranks_told = "0-7,152-159,304-311,456-463,608-615,760-767,912-919,1064-1071,1216-1223 and 1656 more"
    assert told == [
        f"flight-recorder: unreachable, ranks {ranks_told} (1728 ranks; --json has all) {hosts}",
        f"host: unreachable, {hosts}",
    ]


def test_host_that_is_known_of_some_ranks_is_not_that_of_all() -> None:
    assert texts([unknown(0, "n1", "no way"), unknown(1, "n1", "no way"), unknown(2, None, "no way")]) == [
        "flight-recorder: unreachable, ranks 0-2 (3 ranks)"
    ]


def test_other_reasons_in_words_are_other_lines() -> None:
    told = texts([unknown(0, "n1", "no way to it"), unknown(1, "n1", "no way to it"), unknown(2, "n2", "n2 is silent")])
    assert told == ["flight-recorder: unreachable, ranks 0-1 (2 ranks) on n1", "flight-recorder: unreachable, rank 2 on n2"]


def test_a_job_of_which_no_rank_is_left_is_not_said_to_be_seen_whole() -> None:
    report = SAMPLES["undetermined"]
    section = unseen(replace(report, unknowns=(), coverage=replace(report.coverage, ranks_seen=0)), Depth.NORMAL)
    told = [block.text for block in section.blocks if isinstance(block, Paragraph)]
    assert (section.title, told[-1]) == ("What was not seen", "No rank was there to be asked.")
