"""What stands before a line, and who signs it: everything that launchers, schedulers and terminals put there."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pardbg.collectors.parsing.line_prefix import signer_of, signers, split_prefix

BEFORE = (
    *("18:11:06.680 ", "[80746] ", "> ", "    ", "  | 2026-01-02T03:04:05.1Z | ", "704.7s\t13\t", "job.n07 [stderr] ", "0: "),
    *("worker-1: ", "[pod/x/y] ", "x-1 pytorch ", "(W pid=7, ip=10.0.0.1) ", " 12%|#  | 12/100 [00:10<01:20, 1.2s/it]"),
    *("\x1b[36m(W pid=7)\x1b[0m ", "^[[36m(W pid=7)^[[0m ", "#033[36m(W pid=7)#033[0m "),
)


@pytest.mark.parametrize("before", BEFORE)
def test_whatever_stands_before_a_signature_is_taken_off(before: str) -> None:
    names, line = split_prefix(f"{before}[rank3]:   File x")
    assert (names.endswith("[rank3]:"), line) == (True, "  File x")
    assert signers(f"step 1\n{before}[rank3]: x") == {3}


@pytest.mark.parametrize(
    ("prefix", "rank"),
    [
        ("[1,3]<stderr>:", 3),  # mpirun: job and rank
        ("(Worker[rank=3] pid=7, ip=10.0.0.1) ", 3),
        ("[2026-01-02T03:04:05.295539Z] fa88a9df || [rank=3] || ", 3),
        ("[3]:", None),  # a local rank
        ("[default3]:", None),
    ],
)
def test_other_launchers_sign_in_their_own_ways(prefix: str, rank: int | None) -> None:
    assert split_prefix(f"{prefix}KeyError: 1")[1] == "KeyError: 1"
    assert signers(f"{prefix}KeyError: 1") == ({rank} if rank is not None else set())


@pytest.mark.parametrize(
    "text", ["ValueError: [rank3]: bad", "an error on [rank3]: x", "{'at': '[rank3]: x'}", "step 5 [rank=3] || x"]
)
def test_a_signature_that_is_only_quoted_signs_nothing(text: str) -> None:
    assert split_prefix(text) == ("", text)
    assert signers(text) == set()


def test_of_two_signatures_the_inner_one_is_torchs_own() -> None:
    """``torchrun --role rank --tee 3`` labels all lines by local rank."""
    text = "[rank0]:[rank8]: KeyError: 1\n[rank1]:step 3\n"
    assert signer_of(split_prefix(text.partition("\n")[0])[0]) == 8
    assert signers(text) == {8}
    assert signers("[rank1]:step 3\n") == {1}


def test_a_line_that_ray_shows_once_for_many_is_that_line() -> None:
    assert split_prefix("(W pid=33) [rank1]: KeyError: 1 [repeated 7x across cluster]")[1] == "KeyError: 1"


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from((*BEFORE, "[rank3]: ", "[rank=2] || ", "[1,2]<stderr>:", "(", "[", "x y")) | st.text(max_size=9))
)
def test_no_line_hurts(pieces: list[str]) -> None:
    line = "".join(pieces)
    assert len(split_prefix(line)[1]) <= len(line)
    assert all(rank >= 0 for rank in signers(line))
