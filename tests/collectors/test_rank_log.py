"""Whose exception a log shows, and which of them are only consequences."""

import pytest
from msgspec.structs import replace

from pardbg.collectors.parsing.rank_log import RankTraceback, find_ranks, parse_rank_log
from pardbg.watchdog.model.evidence import LogTraceback

TRACEBACK = """Traceback (most recent call last):
  File "/app/train.py", line 30, in <module>
    main()
  File "/app/train.py", line 12, in step
    raise ValueError("bad batch")
    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
{exception}
"""
OWN = TRACEBACK.format(exception="ValueError: bad batch")
WHERE = "/app/train.py:12 step"


def own(rank: int | None, exception: str = "ValueError: bad batch", where: str | None = WHERE) -> RankTraceback:
    return RankTraceback(rank=rank, traceback=LogTraceback(exception=exception, where=where, is_signed=rank is not None))


def prefixed(text: str, prefix: str) -> str:
    return "".join(prefix + line for line in text.splitlines(keepends=True))


@pytest.mark.parametrize(
    ("prefix", "rank"),
    [
        ("", None),
        ("[rank3]: ", 3),
        ("[default0]:", None),
        ("[default0]:[rank5]:", 5),
        ("2026-01-02 03:04:05,678 [rank3]: ", 3),
        ("\x1b[36m(Actor pid=123, ip=10.0.0.1)\x1b[0m [rank3]: ", 3),
        ("[10.0.0.1:3]: ", None),
        ("4: ", None),
    ],
)
def test_prefixes_are_taken_off(prefix: str, rank: int | None) -> None:
    text = "step 1\n" + prefixed(OWN, prefix) + prefix + "bye\n"
    (found,) = parse_rank_log(text)
    assert replace(found, traceback=replace(found.traceback, at_ns=None)) == own(rank)
    assert found.traceback.at_ns == (97_445_678_000_000 if prefix.startswith("2026") else None)  # 2 January, 03:04:05.678


def test_two_ranks_interleaved_line_by_line() -> None:
    other = TRACEBACK.format(exception="KeyError: 'x'").replace("line 12", "line 14")
    pairs = zip(prefixed(OWN, "[rank0]:").splitlines(), prefixed(other, "[rank1]: ").splitlines(), strict=True)
    text = "\n".join(line for pair in pairs for line in pair)
    assert set(parse_rank_log(text)) == {own(0), own(1, "KeyError: 'x'", "/app/train.py:14 step")}
    assert find_ranks(text) == {0, 1}


@pytest.mark.parametrize(
    "line",
    [
        "step 41 loss 1.0",
        "2026-11-30 10:31:00,000 - INFO - Epoch: 3",
        "{'loss': 0.7, 'epoch': 1.2}",
        "train:  12%|#  | 12/100 [00:10<01:20]",
        " 12%|#  | 12/100 [00:10<01:20, 1.2s/it]",
        "Training finished, exiting with code 0",
        "falling back to sdpa",
        "step 7 error_rate 0.1",
    ],
)
def test_an_exception_after_which_its_writer_trains_on_was_caught(line: str) -> None:
    assert parse_rank_log(f"{OWN}{line}\n") == ()
    later = TRACEBACK.format(exception="KeyError: 1")
    assert parse_rank_log(f"{OWN}{line}\n{later}") == (own(None, "KeyError: 1"),)
    assert parse_rank_log(prefixed(OWN, "[rank3]: ") + line) == (own(3),)  # of another writer: nobody caught it


@pytest.mark.parametrize(
    "line",
    [
        "training failed at step 41",
        "saving emergency checkpoint at step 41",
        "last completed step 41",
        "wandb: Run history: loss 1.0",
        "Saving state of step 41 before exiting",
        "epochs are over",
        "not falling back",
    ],
)
def test_what_a_dying_program_writes_is_no_progress(line: str) -> None:
    assert parse_rank_log(f"{OWN}{line}\n") == (own(None),)


def test_an_exception_far_from_the_end_of_its_log_is_hardly_what_ended_it() -> None:
    ((late,), (last,)) = (parse_rank_log(OWN + "something else\n" * lines) for lines in (30, 20))
    assert (late.traceback.is_passed, last.traceback.is_passed) == (True, False)
    assert parse_rank_log(OWN + "wandb: x\n" * 30) == (own(None),)


def test_an_announced_exception_has_the_time_of_the_line_above_it() -> None:
    at_ns = [
        parse_rank_log(f"{above}\n{prefixed(OWN, '[rank1]: ')}")[0].traceback.at_ns
        for above in ("2026-01-02 03:04:05,678 ERROR", "2026-01-02 03:04:05,678 step 3")
    ]
    assert at_ns == [97_445_678_000_000, None]


def test_only_the_first_own_exception_counts() -> None:
    """Where nobody signs, another one may be another rank's."""
    later = TRACEBACK.format(exception="TypeError: later")
    assert parse_rank_log(prefixed(OWN + later, "[rank3]: ")) == (own(3),)
    (found,) = parse_rank_log(OWN + later + later)
    assert found.traceback == replace(own(None).traceback, others=("TypeError: later",))
    chained = "\nDuring handling of the above exception, another exception occurred:\n\n"
    assert parse_rank_log(OWN + chained + later) == (own(None),)


PEERS = [
    "RuntimeError: [/gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:1148. \U0001f41b",
    "RuntimeError: [x/pair.cc:1] Read error [1]: Connection reset by peer",
    "RuntimeError: [x/unbound_buffer.cc:78] Timed out waiting 25000ms for recv operation to complete",
    "torch.distributed.DistBackendError: NCCL error in: x.cpp:77, remote process exited or there was a network error",
    "torch.distributed.DistNetworkError: Failed to recv, got 0 bytes. Connection was likely closed.",
    "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 1/2 clients joined.",
    'torch.distributed.DistNetworkError: Failed to check the "should dump" flag on TCPStore, with error: Broken pipe',
    "RuntimeError: [1] is setting up NCCL communicator via key '0', but store->get('0') got error: Socket Timeout",
    "RuntimeError: [Rank 0]: Ranks 4, 5 failed to pass monitoredBarrier in 2000000 ms",
]
WRAPPERS = [
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
    "torch.distributed.elastic.multiprocessing.api.SignalException: Process 7 got signal: 15",
    "BrokenPipeError: [Errno 32] Broken pipe",
    "KeyboardInterrupt",
    "EOFError",
]


@pytest.mark.parametrize("exception", WRAPPERS)
def test_what_a_launcher_says_is_not_the_ranks_own(exception: str) -> None:
    assert parse_rank_log(TRACEBACK.format(exception=exception)) == ()


@pytest.mark.parametrize("exception", PEERS)
def test_loss_of_a_peer_is_told_as_a_consequence(exception: str) -> None:
    (found,) = parse_rank_log(TRACEBACK.format(exception=exception))
    assert found.traceback.is_consequence
    assert found.traceback.exception == exception


@pytest.mark.parametrize("exception", PEERS)
def test_nothing_that_follows_the_loss_of_a_peer_is_its_own(exception: str) -> None:
    chained = "\nDuring handling of the above exception, another exception occurred:\n\n"
    assert [
        item.traceback.is_consequence for item in parse_rank_log(TRACEBACK.format(exception=exception) + chained + OWN)
    ] == [True]
    assert [item.traceback.is_consequence for item in parse_rank_log(TRACEBACK.format(exception=exception) + OWN)] == [True]


def test_search_goes_on_after_a_launchers_traceback() -> None:
    assert parse_rank_log(TRACEBACK.format(exception=WRAPPERS[0]) + OWN) == (own(None),)


@pytest.mark.parametrize(
    "exception",
    [
        "ValueError: network error ratio",
        "EOFError: Ran out of input",
        "torch.OutOfMemoryError: CUDA out of memory.",
        "MyOdd: x",
    ],
)
def test_similar_words_of_the_program_are_its_own(exception: str) -> None:
    assert parse_rank_log(TRACEBACK.format(exception=exception)) == (own(None, exception),)


def test_exception_in_a_data_worker_is_the_original_one() -> None:
    inner = 'Original Traceback (most recent call last):\n  File "/app/data.py", line 5, in __getitem__\n    x\nKeyError: 9\n'
    text = TRACEBACK.format(exception="KeyError: Caught KeyError in DataLoader worker process 0.") + inner
    assert parse_rank_log(text) == (own(None, "KeyError: 9", "/app/data.py:5 __getitem__"),)


def test_ignored_exception_is_nobodys() -> None:
    assert parse_rank_log("Exception ignored in: <function f>\n" + OWN) == ()


def test_report_of_torchrun_names_the_rank() -> None:
    block = "[0]:\n  time      : x\n  host      : a\n  rank      : 3 (local_rank: 1)\n  exitcode  : 1 (pid: 9)\n"
    body = OWN.replace("\n", "\n  ")
    text = block + "  error_file: /tmp/e.json\n  traceback : " + body + "\n" + "=" * 60 + "\n"
    assert parse_rank_log(text) == (own(3),)


def test_foreign_lines_in_a_traceback_are_passed_over() -> None:
    lines = OWN.splitlines()
    text = "\n".join([*lines[:2], "host:1:2 [0] NCCL INFO x", *lines[2:4], "100%|####| 3/3", *lines[4:]])
    assert parse_rank_log(text) == (own(None),)


def test_a_traceback_that_torch_signs_is_known_by_its_end_alone() -> None:
    """Torch signs only what nobody caught; another signer also what was caught, and a program may print such a line itself."""
    end = "\n".join(OWN.splitlines()[3:]) + "\n"
    assert parse_rank_log(prefixed(end, "[rank3]: ")) == (own(3),)
    assert parse_rank_log("[rank3]: ValueError: bad batch\n") == (own(3, where=None),)
    for text in (end, prefixed(end, "[1,3]<stderr>:"), "[rank3]: step 1\n[rank3]: ValueError: bad batch\n"):
        assert parse_rank_log(text) == ()


def test_labels_of_a_launcher_are_no_ranks_where_torch_signs_too() -> None:
    """A local rank in the form of a signature: only what torch signs within is a global rank."""
    text = prefixed(OWN, "[rank1]:[rank9]: ") + prefixed(TRACEBACK.format(exception="KeyError: 1"), "[rank0]:")
    assert parse_rank_log(text) == (own(9), own(None, "KeyError: 1"))


def test_a_progress_bar_that_is_only_drawn_again_is_no_progress() -> None:
    bar = " 12%|#  | 12/100 [00:{}<01:20, 1.2s/it]\n"
    again = parse_rank_log(f"{bar.format(10)}{OWN}{bar.format(11)}")
    assert again == (own(None),)
    assert parse_rank_log(f"{OWN}{bar.format(11).replace('12/100', '0/100')}") == (own(None),)
    assert parse_rank_log(f"{bar.format(10)}{OWN}{bar.format(11).replace('12/100', '13/100')}") == ()


def test_a_traceback_in_a_box_is_one() -> None:
    box = f"╭{'─' * 9} Traceback (most recent call last) {'─' * 9}╮\n│ /app/train.py:12 in step{' ' * 9}│\n╰{'─' * 40}╯\n"
    assert parse_rank_log(f"{box}KeyError: 'x'\n") == (own(None, "KeyError: 'x'", where=None),)
    assert parse_rank_log(f"{box}done\n") == ()


def test_cut_off_traceback_is_nothing() -> None:
    assert parse_rank_log("\n".join(OWN.splitlines()[:4])) == ()


def test_long_lines_are_cut() -> None:
    (found,) = parse_rank_log(TRACEBACK.format(exception="ValueError: " + "x" * 100_000))
    assert len(found.traceback.exception) == 500
