"""How long silent nodes are waited for: never while most are silent, never those at work, and longer where all are slow."""

from pardbg.watchdog.transport.patience import FIRST_S, LEAST_S, PING_S, Patience

NODES = [f"n{number}" for number in range(4096)]


def after_half(took_s: float) -> Patience:
    """Half of all nodes have answered, each after ``took_s``, of which it took half to come up."""
    patience = Patience(NODES, 100.0, is_short=False)
    for _ in NODES[::2]:
        assert not patience.is_running
        patience.note_answer(100.0, 100.0 + took_s / 2, 100.0 + took_s)
    assert patience.is_running
    return patience


def test_a_silent_node_has_seconds_and_more_if_it_has_not_come_up() -> None:
    patience = after_half(0.2)
    assert patience.silence_s("n1", 90.0, 103.2) == 3.0
    assert not patience.is_over(LEAST_S, is_up=True)
    assert patience.is_over(LEAST_S + 0.1, is_up=True)
    assert not patience.is_over(FIRST_S, is_up=False)


def test_where_all_are_slow_a_silent_one_has_four_times_their_time() -> None:
    patience = after_half(10.0)
    assert not patience.is_over(19.9, is_up=True)
    assert patience.is_over(20.1, is_up=True)
    assert not patience.is_over(39.9, is_up=False)
    assert patience.is_over(40.1, is_up=False)


def test_silence_begins_with_the_last_sign_of_life_and_not_before_the_start() -> None:
    patience = after_half(0.2)
    patience.note_sign("n1", 150.0)
    assert patience.silence_s("n1", 90.0, 151.0) == 1.0
    assert patience.silence_s("n3", 150.5, 151.0) == 0.5  # of thousands over ssh a few are started at a time


def test_a_silent_node_is_asked_whether_it_hears_once_a_second() -> None:
    patience = after_half(0.2)
    assert not patience.is_to_be_asked("n1", PING_S / 2, 101.0)
    assert patience.is_to_be_asked("n1", PING_S, 101.2)
    assert not patience.is_to_be_asked("n1", PING_S, 101.7)
    assert patience.is_to_be_asked("n1", PING_S, 102.2)


def test_lost_nodes_are_not_among_those_that_may_still_answer_and_hasten_nothing_by_themselves() -> None:
    patience = Patience(NODES[:4], 100.0, is_short=False)
    patience.note_loss(100.1)
    patience.note_loss(100.1)
    assert not patience.is_running
    patience.note_answer(100.0, 100.5, 101.0)
    assert patience.is_running
