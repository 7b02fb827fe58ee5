"""What a recorder's call sites, one stack and a log tell of a rank that is no longer where it trained."""

from collections.abc import Sequence
from typing import Any

import pytest

from pardbg.collectors.parsing.flight_recorder import parse_flight_recorder
from pardbg.watchdog.graph.departures import is_at_exit, left_recorded_loop
from pardbg.watchdog.judge.judge import Circumstances, judge
from pardbg.watchdog.model.evidence import Evidence, FlightRecording, LogTraceback, Observation, Stack, StackFrame, Thread
from pardbg.watchdog.model.names import Cause, CollectorName, Confidence, Kind
from pardbg.watchdog.model.recording import Recording
from pardbg.watchdog.model.report import Report
from pardbg.watchdog.store.view import EvidenceView
from tests.collectors.dumps import Entry, make_dump, make_entry, outstanding, pickled
from tests.diagnosis.diagnosing import WHEN

SITE = "/opt/venv/lib/python3.11/site-packages"
RANKS = 4
WORLD = {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2, 3]"}}

MODULE, MAIN = "<module> /root/code/main.py", "main /root/code/main.py"
EPOCH, STEP = "train_one_epoch /root/code/engine.py", "train_step /root/code/engine.py"
HOOK = ("_reduce /root/code/tp.py", "forward /root/code/mlp.py")
TITAN = (f"train {SITE}/torchtitan/train.py", f"<module> {SITE}/torchtitan/train.py")


def frames_of(chain: Sequence[str]) -> tuple[StackFrame, ...]:
    """Frames from ``function file``, innermost first."""
    return tuple(StackFrame(name=name, filename=path, line=7) for name, path in (text.split(" ", 1) for text in chain))


def ring(*sites: Sequence[str], times: int = 2) -> list[Entry]:
    """Finished all_reduces, each issued from every one of these places in turn."""
    places: list[list[dict[str, Any]]] = [
        [{"name": frame.name, "filename": frame.filename, "line": frame.line} for frame in frames_of(site)] for site in sites
    ]
    return [make_entry(number, frames=places[number % len(places)]) for number in range(times * len(places))]


def recording(*sites: Sequence[str], times: int = 2) -> Recording:
    return parse_flight_recorder(pickled(make_dump(ring(*sites, times=times))))


BACK = ("backward /root/code/model.py",)
IN_HOOK = ((*HOOK, STEP, EPOCH, MAIN, MODULE),)
IN_STEP = ((*HOOK, STEP, EPOCH, MAIN, MODULE), (*BACK, STEP, EPOCH, MAIN, MODULE))
IN_MAIN = (("train_batch /root/code/main.py", MAIN, MODULE),)
IN_LIBRARY = (("training_step /root/code/model.py", *TITAN),)


@pytest.mark.parametrize(
    ("sites", "stack", "is_gone"),
    [
        (IN_STEP, ("export /root/code/export.py", MAIN, MODULE), True),
        (IN_STEP, ("export export.py", "main main.py", "<module> main.py"), True),  # the same in py-spy's text
        (IN_HOOK, ("export /root/code/export.py", MAIN, MODULE), True),
        (IN_HOOK, ("scan_tokens /root/code/hooks.py", STEP, EPOCH, MAIN, MODULE), False),  # beside the hook, in the step
        (IN_STEP, ("report /root/code/log.py", EPOCH, MAIN, MODULE), False),  # beside the step, in the loop
        (IN_STEP, ("report log.py", "train_one_epoch engine.py", "main main.py", "<module> main.py"), False),
        (IN_STEP, ("report log.py", "Engine.train_one_epoch engine.py", "<module> main.py"), False),  # qualified, as of 3.11
        (IN_MAIN, ("report /root/code/log.py", MAIN, MODULE), False),  # main may hold the loop
        (IN_MAIN, ("serve /root/code/serve.py", MODULE), True),
        (IN_LIBRARY, ("on_batch_end /root/code/calls.py", *TITAN), False),  # whose loop it is, no name of ours tells
        (((STEP, MODULE),), (MODULE,), True),
        (((MODULE,),), ("report /root/code/log.py", MODULE), False),
    ],
)
def test_loop_is_left_when_the_function_that_holds_it_is_gone(
    sites: Sequence[Sequence[str]], stack: Sequence[str], *, is_gone: bool
) -> None:
    assert left_recorded_loop(frames_of(stack), recording(*sites)) is is_gone


def test_what_happened_once_is_no_loop() -> None:
    assert not left_recorded_loop(frames_of([MODULE]), recording(*IN_STEP, times=1))


@pytest.mark.parametrize(
    ("stack", "is_over"),
    [
        ((f"teardown {SITE}/wandb/sdk/wandb_setup.py", f"_teardown {SITE}/wandb/sdk/wandb_setup.py"), True),
        (("_shutdown threading.py",), True),
        (("teardown wandb/sdk/wandb_setup.py", "main /root/code/main.py", MODULE), False),
        (("wait threading.py", MAIN), False),  # of no program that is known
        (("_run_code <frozen runpy>", "<module> <string>", "_run_module_as_main <frozen runpy>"), False),
        ((f"forward {SITE}/torch/nn/modules/module.py",) * 100, False),  # cut by faulthandler
        ((), False),
    ],
)
def test_exit_is_known_by_a_stack_without_a_program(stack: Sequence[str], *, is_over: bool) -> None:
    assert is_at_exit(frames_of(stack)) is is_over


def evidence(source: CollectorName, rank: int, seen: Observation) -> Evidence:
    return Evidence(source=source, rank=rank, observation=seen, origin=f"{source.value}_{rank}")


def report_with(*of_rank_3: Observation) -> Report:
    """Ranks 0 to 2 wait in the third all_reduce, rank 3 has issued two; ``of_rank_3`` is what else was seen of it."""
    done = ring(*IN_HOOK)
    found = []
    for rank in range(RANKS):
        entries = [*done, outstanding(len(done))] if rank < RANKS - 1 else done
        dump = parse_flight_recorder(pickled(make_dump(entries, pg_config=WORLD)))
        found.append(evidence(CollectorName.FLIGHT_RECORDER, rank, FlightRecording(recording=dump)))
    for seen in of_rank_3:
        source = CollectorName.RANK_LOG if isinstance(seen, LogTraceback) else CollectorName.STACKS
        found.append(evidence(source, RANKS - 1, seen))
    return judge(EvidenceView.of(found), Circumstances(decided_at=WHEN))


def stack_of(*chain: str) -> Stack:
    return Stack(pid=1, threads=(Thread(name="MainThread", is_active=False, owns_gil=False, frames=frames_of(chain)),))


UNCAUGHT = LogTraceback(exception="ValueError: bad batch", where=None, is_signed=True)
CAUGHT = LogTraceback(exception="ValueError: bad batch", where=None)
AT_EXIT = stack_of(f"teardown {SITE}/wandb/sdk/wandb_setup.py")
AT_WORK = stack_of("readinto /usr/lib/python3.11/socket.py", STEP, EPOCH, MAIN, MODULE)


@pytest.mark.parametrize(
    ("seen", "answer"),
    [
        ((UNCAUGHT,), (Kind.DEAD_RANK, Cause.EXCEPTION, Confidence.SUPPORTED)),
        ((CAUGHT, AT_EXIT), (Kind.DEAD_RANK, Cause.EXCEPTION, Confidence.SUPPORTED)),
        ((CAUGHT,), (Kind.MISSING_PARTICIPANT, None, Confidence.SUPPORTED)),
        ((UNCAUGHT, AT_WORK), (Kind.MISSING_PARTICIPANT, Cause.NETWORK_IO, Confidence.SUPPORTED)),  # of another attempt
        ((AT_EXIT,), (Kind.MISSING_PARTICIPANT, Cause.LEFT_LOOP, Confidence.SUPPORTED)),
    ],
)
def test_exception_that_nothing_caught_is_the_death_of_a_rank_that_lives(
    seen: Sequence[Observation], answer: tuple[Kind, Cause | None, Confidence]
) -> None:
    verdict = report_with(*seen).verdict

    assert verdict is not None
    assert (verdict.kind, verdict.cause, verdict.confidence) == answer
    assert [culprit.rank for culprit in verdict.culprits] == [3]
    assert any("bad batch" in line.text for line in verdict.evidence) is any(isinstance(one, LogTraceback) for one in seen)


@pytest.mark.parametrize(
    ("above", "answer"),
    [
        (f"do_bench {SITE}/triton/testing.py", (Kind.MISSING_PARTICIPANT, Cause.COMPILE, [3])),
        ("clip_grads /root/code/optim.py", (Kind.INSUFFICIENT_EVIDENCE, None, [])),  # its device may hold what nobody saw
    ],
)
def test_rank_that_times_kernels_with_nothing_outstanding_waits_for_nobody(
    above: str, answer: tuple[Kind, Cause | None, list[int]]
) -> None:
    waiting = f"synchronize {SITE}/torch/cuda/__init__.py"
    verdict = report_with(stack_of(waiting, above, STEP, EPOCH, MAIN, MODULE)).verdict

    assert verdict is not None
    assert (verdict.kind, verdict.cause, [culprit.rank for culprit in verdict.culprits]) == answer
