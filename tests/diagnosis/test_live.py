"""Running jobs without a reachable recorder: verdicts from stacks, source lines and processes alone."""

from dataclasses import replace

import pytest

from pardbg.watchdog.model.evidence import SourceContext
from pardbg.watchdog.model.names import Cause, Confidence, Kind, Status
from pardbg.watchdog.model.report import Report
from pardbg.watchdog.outputs.blocks import Depth, Table
from pardbg.watchdog.outputs.exit_code import exit_code
from pardbg.watchdog.outputs.page import build_page
from tests.diagnosis.live_evidence import C10D, IN_LOOP, MAIN, frame, handled, job_of, receives, sleeps, subgroup, waits


def told(report: Report) -> tuple[Kind | None, Cause | None, set[int | None]]:
    """Kind, cause and culprits of the verdict."""
    verdict = report.verdict
    if verdict is None:
        return None, None, set()
    return verdict.kind, verdict.cause, {subject.rank for subject in verdict.culprits}


def candidates(report: Report) -> set[int | None]:
    return {subject.rank for subject in report.verdict.candidates} if report.verdict else set()


def test_rank_on_the_host_is_missing_from_what_the_others_wait_in() -> None:
    report = job_of(waits(), waits(), sleeps(), waits()).report()

    assert told(report) == (Kind.MISSING_PARTICIPANT, Cause.SLEEPING, {2})
    assert report.verdict is not None
    assert report.verdict.confidence is Confidence.ESTABLISHED
    assert report.verdict.victims == (0, 1, 3)
    assert report.verdict.collective is not None
    assert (report.verdict.collective.op, report.verdict.collective.seq) == ("all_reduce", None)
    assert report.verdict.since_s == 300.0
    assert report.set_aside == ()


def test_nothing_is_beyond_doubt_while_the_recorder_is_off() -> None:
    report = job_of(waits(), waits(), sleeps(), waits(), is_recorder_off=True).report()

    assert report.verdict is not None
    assert report.verdict.confidence is Confidence.SUPPORTED


def test_young_wait_is_undetermined() -> None:
    young = replace(waits(), still_s=1.5)
    report = job_of(young, young, sleeps(), young).report()

    assert (report.status, report.verdict) == (Status.UNDETERMINED, None)
    assert "still for 1.5 s; ask again in 4 s" in report.notes


def test_rank_that_reads_is_a_slow_phase() -> None:
    reading = sleeps()
    report = job_of(waits(), waits(), reading, waits(), later={2: replace(reading, moved_bytes=30_000_000)}).report()

    assert (report.status, exit_code(report), exit_code(report, strict=True)) == (Status.SLOW, 0, 3)
    assert told(report) == (Kind.SLOW_PHASE, Cause.SLEEPING, set())
    assert report.verdict is not None
    assert [subject.rank for subject in report.verdict.waiting_for] == [2]


def test_few_bytes_are_no_sign_of_life() -> None:
    idling = sleeps()
    report = job_of(waits(), waits(), idling, waits(), later={2: replace(idling, moved_bytes=60_000)}).report()

    assert told(report)[2] == {2}


@pytest.mark.parametrize(
    "later", [replace(waits(), switches=11), waits("barrier"), waits(around=(frame("train", 44), MAIN)), sleeps()]
)
def test_waiting_rank_that_was_awake_or_is_elsewhere_shows_that_the_job_moves(later: object) -> None:
    report = job_of(waits(), waits(), sleeps(), waits(), later={1: later}).report()

    assert (report.status, report.verdict, exit_code(report)) == (Status.HEALTHY, None, 0)


def test_rank_that_came_to_wait_between_the_samples_shows_that_the_job_moves() -> None:
    report = job_of(sleeps(), sleeps(), sleeps(), sleeps(), later={1: waits()}).report()

    assert (report.status, report.verdict) == (Status.HEALTHY, None)


def test_host_thread_of_a_device_wakes_without_moving() -> None:
    on_device = replace(waits(), uses_device=True)
    awake = replace(on_device, switches=99)
    report = job_of(on_device, on_device, sleeps(), on_device, later={0: awake, 1: awake, 3: awake}).report()

    assert told(report) == (Kind.MISSING_PARTICIPANT, Cause.SLEEPING, {2})


def test_processor_time_is_no_sign_of_life() -> None:
    spinning = replace(sleeps(), system_call="running", owns_gil=True, state="R", still_s=0.0)
    report = job_of(waits(), waits(), spinning, waits()).report()

    assert told(report) == (Kind.MISSING_PARTICIPANT, Cause.BUSY_LOOP, {2})


def test_nobody_waiting_is_healthy_once_anybody_has_done_anything() -> None:
    report = job_of(sleeps(), sleeps(), sleeps(), sleeps(), later={2: replace(sleeps(), switches=11)}).report()

    assert (report.status, exit_code(report)) == (Status.HEALTHY, 0)


def test_job_in_which_nobody_waits_and_nobody_does_anything_is_not_called_healthy() -> None:
    """All ranks may stand at one dead mount."""
    report = job_of(sleeps(), sleeps(), sleeps(), sleeps()).report()

    assert (report.status, exit_code(report)) == (Status.UNDETERMINED, 4)


def test_rank_that_was_stopped_within_a_collective_is_stopped_and_does_not_wait() -> None:
    stopped = replace(waits(), state="T")
    report = job_of(waits(), waits(), stopped, waits()).report()

    assert told(report) == (Kind.MISSING_PARTICIPANT, Cause.STOPPED, {2})


def test_chain_of_receives_ends_at_the_rank_that_went_on() -> None:
    report = job_of(receives(1), receives(2), receives(3), waits()).report()

    assert told(report) == (Kind.P2P_UNMATCHED, None, {3})


def test_ranks_in_another_communication_library_are_not_healthy() -> None:
    elsewhere = replace(waits(), frames=(frame("dispatch", 300, "/opt/venv/lib/python3.11/site-packages/deep_ep/buffer.py"),))
    report = job_of(elsewhere, elsewhere, elsewhere, elsewhere).report()

    assert (report.status, exit_code(report)) == (Status.UNDETERMINED, 4)


def test_peer_beyond_the_world_is_no_peer() -> None:
    report = job_of(waits(), receives(9), waits(), waits()).report()

    assert told(report)[2] == set()


def test_ranks_that_start_get_time_to_come() -> None:
    starting = replace(waits("init_process_group", around=(MAIN,)), still_s=9.0)
    report = job_of(starting, starting, starting, starting).report()

    assert report.status is Status.UNDETERMINED


def test_rank_that_could_not_be_looked_into_keeps_a_job_from_being_called_healthy() -> None:
    report = job_of(sleeps(), sleeps(), world_size=4).report()

    assert report.status is Status.UNDETERMINED


@pytest.mark.parametrize(
    ("frames", "cause"),
    [
        ((frame("main", 120, source=SourceContext()),), Cause.LEFT_LOOP),  # behind the call that holds the loop
        ((frame("train", 70, source=SourceContext()), MAIN), Cause.LEFT_LOOP),  # behind the loop, in its function
        ((frame("train", 35, source=SourceContext(loops=((30, 60),))), MAIN), Cause.SLEEPING),  # in the loop, before
        ((frame("train", 55, source=SourceContext(loops=((30, 60),))), MAIN), Cause.SLEEPING),  # in the loop, behind
        ((frame("main", 90, source=SourceContext()),), Cause.SLEEPING),  # not there yet
        ((frame("main", 120),), Cause.SLEEPING),  # no source: nothing is known of loops
    ],
)
def test_loop_is_left_where_the_source_says_so(frames: tuple[object, ...], cause: Cause) -> None:
    report = job_of(waits(), waits(), sleeps(*frames), waits()).report()  # type: ignore[arg-type]

    assert told(report) == (Kind.MISSING_PARTICIPANT, cause, {2})


def test_rank_in_the_handler_of_what_the_others_are_in_is_dead() -> None:
    inside = frame("main", 120, source=handled("except Exception", (95, 110)))
    report = job_of(waits(), waits(), sleeps(inside), waits()).report()

    assert told(report) == (Kind.DEAD_RANK, Cause.EXCEPTION, {2})
    assert report.status is Status.HUNG


def test_handler_of_something_else_is_no_death() -> None:
    retrying = frame("load_batch", 14, source=handled("except Empty", (10, 12)))
    report = job_of(waits(), waits(), sleeps(retrying, *waits().frames[1:]), waits()).report()

    assert told(report) == (Kind.MISSING_PARTICIPANT, Cause.SLEEPING, {2})


def test_clean_up_is_a_death_only_after_a_traceback() -> None:
    cleaning = sleeps(frame("main", 120, source=handled("finally", (95, 110))))
    quiet = job_of(waits(), waits(), cleaning, waits()).report()
    loud = job_of(waits(), waits(), cleaning, waits(), exceptions={2: "ValueError: bad batch"}).report()

    assert told(quiet) == (Kind.MISSING_PARTICIPANT, Cause.LEFT_LOOP, {2})
    assert told(loud) == (Kind.DEAD_RANK, Cause.EXCEPTION, {2})


def test_what_the_living_do_after_a_death_is_a_consequence() -> None:
    report = job_of(waits(), waits(), world_size=4).report()
    assert told(report)[0] is not Kind.DEAD_RANK

    seen = {0: waits(), 1: sleeps(), 3: sleeps()}
    report = replace(job_of(), seen=seen, ended={2: -9}).report()
    assert told(report) == (Kind.DEAD_RANK, Cause.SIGNAL, {2})
    assert all(not finding.culprits for finding in report.set_aside)


def test_ranks_that_ask_the_store_wait_for_the_dead_one() -> None:
    asking = replace(sleeps(), system_call="poll", is_store=True)
    report = replace(job_of(), seen={0: asking, 1: asking, 3: asking}, ended={2: -9}).report()

    assert told(report) == (Kind.DEAD_RANK, Cause.SIGNAL, {2})
    assert report.verdict is not None
    assert report.verdict.victims == (0, 1, 3)


def test_rank_without_a_process_has_not_started_while_the_others_are_being_set_up() -> None:
    setting_up = waits("init_process_group", around=(MAIN,))
    report = replace(job_of(), seen=dict.fromkeys((0, 1, 3), setting_up), ended={2: None}).report()

    assert told(report) == (Kind.INIT_STUCK, Cause.NOT_STARTED, {2})


def test_two_receives_in_a_circle() -> None:
    report = job_of(waits(), receives(2), receives(1), waits()).report()

    assert told(report) == (Kind.P2P_DEADLOCK, None, {1, 2})
    assert report.verdict is not None
    assert report.verdict.victims == (0, 3)


def test_peer_that_waits_in_a_collective_never_sends() -> None:
    assert told(job_of(waits(), receives(3), waits(), waits()).report()) == (Kind.P2P_UNMATCHED, None, {3})


def test_peer_that_waits_for_nobody_knows_what_is_not_accused() -> None:
    """`work.wait()` of an isend shows no operation: it may be the very transfer."""
    functional = C10D.replace("distributed_c10d", "_functional_collectives")
    vague = replace(waits(), frames=(frame("wait_tensor", 142, functional), *IN_LOOP))
    report = job_of(waits(), receives(3), waits(), vague).report()

    assert told(report)[2] == set()


def test_other_operation_of_one_rank_is_a_desync() -> None:
    report = job_of(waits(), waits(), waits("all_gather"), waits()).report()

    assert told(report) == (Kind.DESYNC, None, {2})
    assert report.verdict is not None
    assert report.verdict.victims == (0, 1, 3)


@pytest.mark.parametrize(("rank", "named"), [(1, set()), (2, {2}), (3, set())])
def test_broadcast_accuses_only_who_deals_with_nobody_but_the_source(rank: int, named: set[int]) -> None:
    """Rank 3 gets its data through rank 1, which may have skipped the broadcast, and rank 1 waits for rank 3 to take them."""
    seen = [waits(), waits(), waits(), waits()]
    seen[rank] = waits("broadcast", {"is_default_group": "True", "src": "0"})
    report = job_of(*seen).report()

    assert told(report) == (Kind.DESYNC, None, named)
    assert candidates(report) == (set() if named else {0, 1, 2, 3})


def test_half_against_half_names_nobody() -> None:
    report = job_of(waits(), waits(), waits("barrier"), waits("barrier")).report()

    assert told(report) == (Kind.DESYNC, None, set())
    assert candidates(report) == {0, 1, 2, 3}


def test_two_groups_of_everybody_in_opposite_orders() -> None:
    control = waits(locals_=subgroup(4, 2, "control"))
    report = job_of(waits(), waits(), control, waits()).report()

    assert told(report) == (Kind.ORDER_INVERSION, None, {2})


def test_everybody_in_one_operation_is_a_matter_of_the_links() -> None:
    report = job_of(waits(), waits(), waits(), waits()).report()

    assert told(report) == (Kind.COMM_STUCK, None, set())
    assert report.verdict is not None
    assert report.verdict.confidence is Confidence.SUGGESTED


def test_hang_cascades_over_three_axes() -> None:
    """Ranks are 4 pp + 2 dp + tp; rank 5 never comes."""
    report = job_of(
        receives(4),
        receives(5),
        waits(locals_=subgroup(2, 1, "dp")),
        waits(locals_=subgroup(2, 1, "dp")),
        waits(locals_=subgroup(2, 0, "tp")),
        sleeps(),
        waits(locals_=subgroup(2, 1, "dp")),
        waits(locals_=subgroup(2, 1, "dp")),
    ).report()

    assert told(report) == (Kind.MISSING_PARTICIPANT, Cause.SLEEPING, {5})
    assert report.verdict is not None
    assert report.verdict.victims == (0, 1, 2, 3, 4, 6, 7)
    (waiting,) = [section for section in build_page(report, Depth.NORMAL).sections if section.title == "Who waits where"]
    (table,) = [block for block in waiting.blocks if isinstance(block, Table)]
    assert [row[0] for row in table.rows] == ["1", "2-3,6-7", "4", "0"]


def test_members_follow_from_the_places_of_a_regular_layout() -> None:
    seen = [waits(locals_=subgroup(2, rank % 2, "tp")) for rank in range(4)]
    seen[1] = sleeps()
    verdict = job_of(*seen).report().verdict

    assert verdict is not None
    assert verdict.group is not None
    assert (verdict.group.desc, verdict.group.ranks) == ("tp", (0, 1))


def test_everybody_waiting_in_groups_whose_members_do_not_follow_is_a_circle() -> None:
    one, other = waits(locals_=subgroup(3, 0, "tp")), waits(locals_=subgroup(3, 2, "dp"))
    report = job_of(one, replace(one), other, replace(other)).report()

    assert told(report) == (Kind.ORDER_INVERSION, None, set())
    assert candidates(report) == {0, 1, 2, 3}


def test_ranks_that_do_not_say_what_they_wait_in_name_nobody() -> None:
    functional = C10D.replace("distributed_c10d", "_functional_collectives")
    vague = replace(waits(), frames=(frame("wait_tensor", 142, functional), *IN_LOOP))
    report = job_of(vague, vague, vague, vague).report()

    assert told(report) == (Kind.INSUFFICIENT_EVIDENCE, None, set())
    assert report.verdict is not None
    assert "4 ranks wait" in report.verdict.claim


def test_rank_that_polls_its_work_waits_and_its_waking_says_nothing() -> None:
    asking = frame("train_one_step", 51, source=SourceContext(loops=((50, 52),), is_polling=True))
    polling = replace(sleeps(asking, *IN_LOOP), switches=10)
    later = dict.fromkeys((0, 1, 3), replace(polling, switches=90))
    report = job_of(polling, polling, sleeps(), polling, later=later).report()

    assert told(report) == (Kind.MISSING_PARTICIPANT, Cause.SLEEPING, {2})


def test_of_a_group_whose_members_are_not_known_nobody_is_accused_among_several() -> None:
    """Rank 0 waits in a group of two: rank 1 may be missing, or any other that is busy with its own."""
    waiting = waits(locals_=subgroup(2, 0, "replicas"))
    report = job_of(waiting, sleeps(), sleeps(), sleeps()).report()

    assert told(report) == (Kind.MISSING_PARTICIPANT, Cause.SLEEPING, set())
    assert candidates(report) == {1, 2, 3}


def test_the_only_rank_that_stands_still_is_missing_though_members_are_not_known() -> None:
    waiting = waits(locals_=subgroup(2, 0, "replicas"))
    validating = sleeps(frame("validate", 80), MAIN)
    later = {rank: sleeps(frame("score", 90), MAIN) for rank in (2, 3)}
    report = job_of(waiting, sleeps(), validating, validating, later=later).report()

    assert told(report) == (Kind.MISSING_PARTICIPANT, Cause.SLEEPING, {1})


def test_ranks_that_ended_and_that_nobody_waits_for_are_not_blamed() -> None:
    report = replace(job_of(), seen={0: sleeps()}, ended={1: None, 2: None, 3: 0}).report()

    assert told(report)[2] == set()


def test_variable_that_holds_a_group_is_no_identity() -> None:
    """`for g in order: all_reduce(x, group=g)`: all ranks stand in one line, in different groups."""
    line = frame("step", 40, source=SourceContext(loops=((30, 60),), group="g"))
    there = waits(locals_=subgroup(4, 0, "undefined"), around=(line, MAIN))
    report = job_of(there, there, there, there).report()

    assert told(report) == (Kind.INSUFFICIENT_EVIDENCE, None, set())


def test_receive_from_anybody_waits_for_the_rank_that_is_not_in_communication() -> None:
    anybody = replace(waits(), frames=(frame("recv", 2799, C10D, locals_={"src": "None"}), *IN_LOOP))
    report = job_of(anybody, waits(), sleeps(), waits()).report()

    assert told(report) == (Kind.MISSING_PARTICIPANT, Cause.SLEEPING, {2})


def test_backward_that_waits_beside_a_collective_names_all() -> None:
    autograd = C10D.replace("torch/distributed/distributed_c10d", "torch/autograd/graph")
    backward = replace(waits(), frames=(frame("_engine_run_backward", 979, autograd), *IN_LOOP))
    report = job_of(backward, backward, waits("barrier"), backward).report()

    assert told(report) == (Kind.INSUFFICIENT_EVIDENCE, None, set())
    assert candidates(report) == {0, 1, 2, 3}


def test_group_that_may_be_complete_accuses_nobody_outside_of_it() -> None:
    """Four ranks wait in a group of four: a fifth on the host need not belong to it."""
    seen = [waits(locals_=subgroup(4, rank, "replicas")) for rank in range(4)]
    report = job_of(*seen, sleeps()).report()

    assert told(report)[2] == set()


def test_layout_that_follows_from_few_ranks_accuses_nobody_among_several() -> None:
    """Ranks 0 and 1 fit a group of [0, 1, 2]; it may as well be [0, 1, 5]."""
    seen = [waits(locals_=subgroup(3, rank, "odd")) for rank in range(2)]
    report = job_of(*seen, sleeps(), sleeps(), sleeps(), sleeps()).report()

    assert told(report)[2] == set()
