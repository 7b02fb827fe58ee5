"""Logs that several ranks wrote, and such as only look so."""

import pytest

from pardbg.collectors.parsing.many_ranks import is_of_many_ranks

BANNER = "Setting OMP_NUM_THREADS environment variable for each process to be 1 in default, to avoid an overload.\n"


@pytest.mark.parametrize(
    "text",
    [
        "[default0]:step 1\n[default1]:step 1\n",
        "[trainer3]:step 1\n[trainer4]:step 1\n",
        f"*****\n{BANNER}*****\n",
        f"W1129 14:00:00.1 77 site-packages/torch/distributed/run.py:793] {BANNER}",
        "init rank 8 of 16 (local rank 0)\ninit rank 9 of 16 (local rank 1)\n",
        "rank 0/4 is here\nrank 1/4 is here\n",
    ],
)
def test_a_launchers_banner_and_two_ranks_tell_of_many(text: str) -> None:
    assert is_of_many_ranks(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[default3]:step 1\n[default3]:step 2\n",
        "[default3]:step 1\n[writer0]:saved\n",  # two roles, one number each
        "step 1 [default0]: x [default1]: y\n",  # nobody's prefix
        f"note: {BANNER}",
        "rank 3 of 8 is ready\nrank 3 of 8 trains\n",
        "rank 3 waits for rank 4\n",
    ],
)
def test_one_rank_that_speaks_of_itself_or_of_others_is_one(text: str) -> None:
    assert not is_of_many_ranks(text)
