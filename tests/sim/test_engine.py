"""The engine: what moves and what stays, for programs of two to four ranks."""

from dataclasses import replace

from pardbg.watchdog.sim.callsites import host_site
from pardbg.watchdog.sim.engine import Host, Pace, play
from pardbg.watchdog.sim.instruction import Fate, HostBlock, Join, Launch, Op, Program, Synchronize, Vanish
from pardbg.watchdog.sim.layout import Group
from pardbg.watchdog.sim.program import alone, collective, transfer

PAIR = Group("0", "default_pg", "world", (0, 1))
OTHER_PAIR = Group("1", "undefined", "late", (0, 1))
WAIT = Synchronize(host_site("synchronize"))
BLOCK = HostBlock(host_site("host"))


def reduce(group: Group = PAIR, size: int = 8, label: str = "reduce") -> Launch:
    return alone(collective(group, Op.ALL_REDUCE, "loss", (size,)), label)


def outstanding(*programs: Program, pace: Pace | None = None) -> list[list[str]]:
    """Labels of what is not completed, by rank."""
    hosts = play(dict(enumerate(programs)), pace or Pace())
    return [[flight.launch.label for flight in host.outstanding] for host in hosts.values()]


def test_collective_is_done_when_all_members_have_started_it() -> None:
    assert outstanding([reduce()], [reduce()]) == [[], []]


def test_collective_waits_for_a_member_that_is_blocked_on_its_host() -> None:
    assert outstanding([reduce()], [BLOCK, reduce()]) == [["reduce"], []]


def test_members_that_disagree_on_the_size_wait_for_ever() -> None:
    assert outstanding([reduce(size=8)], [reduce(size=9)]) == [["reduce"], ["reduce"]]


def test_operations_pair_up_by_position_not_by_label() -> None:
    assert outstanding([reduce(label="a")], [reduce(label="b"), reduce(label="c")]) == [[], ["c"]]


def test_host_runs_ahead_of_its_device() -> None:
    assert outstanding([reduce(), reduce()], []) == [["reduce", "reduce"], []]


def test_gloo_host_waits_for_each_operation() -> None:
    assert outstanding([reduce(), reduce()], [], pace=Pace(queue_depth=1)) == [["reduce"], []]


def test_host_stops_at_a_synchronization() -> None:
    assert outstanding([reduce(label="a"), WAIT, reduce(label="b")], []) == [["a"], []]


def test_groups_entered_in_opposite_orders_deadlock_even_when_both_are_enqueued() -> None:
    first, second = reduce(PAIR, label="first"), reduce(OTHER_PAIR, label="second")

    assert outstanding([first, second], [second, first]) == [["first", "second"], ["second", "first"]]


def test_asynchronous_launches_of_two_groups_do_not_wait_for_each_other() -> None:
    launches = [replace(reduce(group), is_async=True) for group in (PAIR, OTHER_PAIR)]

    assert outstanding([*launches, Join()], [*reversed(launches), Join()]) == [[], []]


def test_join_puts_later_launches_behind_asynchronous_ones() -> None:
    side = replace(reduce(PAIR, label="side"), is_async=True, fate=Fate.NEVER_DONE)
    main = reduce(OTHER_PAIR, label="main")

    assert outstanding([side, main], [side, main]) == [["side"], ["side"]]
    assert outstanding([side, Join(), main], [side, Join(), main]) == [["side", "main"], ["side", "main"]]


def sends_first(rank: int) -> list[Launch]:
    return [alone(transfer(PAIR, op, 1 - rank), op.value) for op in (Op.SEND, Op.RECV)]


def test_two_ranks_that_both_send_first_deadlock() -> None:
    assert outstanding(list(sends_first(0)), list(sends_first(1))) == [["send", "recv"], ["send", "recv"]]


def test_coalesced_transfers_cannot_deadlock() -> None:
    first, second = (Launch(tuple(one.first for one in sends_first(rank)), is_coalesced=True) for rank in range(2))

    assert outstanding([first], [second]) == [[], []]


def test_transfers_do_not_disturb_the_numbering_of_others() -> None:
    send, recv = alone(transfer(PAIR, Op.SEND, 1), "send"), alone(transfer(PAIR, Op.RECV, 0), "recv")

    assert outstanding([send, send, reduce()], [recv, recv, reduce()]) == [[], []]


def test_root_of_a_broadcast_is_done_before_a_receiver_joins() -> None:
    launch = alone(replace(collective(PAIR, Op.BROADCAST, "data", (8,)), root=0), "broadcast")

    assert outstanding([launch], [BLOCK]) == [[], []]
    assert outstanding([BLOCK], [launch]) == [[], ["broadcast"]]


def test_ranks_that_hold_different_groups_of_one_name_never_meet() -> None:
    namesake = Group(PAIR.name, PAIR.description, PAIR.axis, PAIR.ranks)

    assert outstanding([reduce(PAIR)], [reduce(namesake)]) == [["reduce"], ["reduce"]]


def test_stuck_device_lets_the_others_finish() -> None:
    assert outstanding([reduce().with_fate(Fate.STUCK_HERE)], [reduce()]) == [["reduce"], []]


def test_lost_completion_events_do_not_stop_the_device() -> None:
    assert outstanding([reduce().with_fate(Fate.NOT_REPORTED), reduce()], [reduce(), reduce()]) == [["reduce"], []]


def test_process_vanishes_after_what_it_launched() -> None:
    hosts = play({0: [reduce(), WAIT, Vanish(), reduce()], 1: [reduce(), reduce()]}, Pace())

    assert hosts[0].has_vanished
    assert [len(host.outstanding) for host in hosts.values()] == [0, 1]


def times(host: Host) -> list[tuple[int, int | None]]:
    return [(flight.enqueued_ns, flight.completed_ns) for flight in host.flights]


def test_nothing_completes_before_all_members_enqueued_it() -> None:
    hosts = play({0: [reduce(), WAIT, reduce()], 1: [reduce(OTHER_PAIR).with_fate(Fate.NEVER_DONE), BLOCK]}, Pace())
    late = play({0: [reduce()], 1: [reduce(), reduce()]}, Pace())

    assert times(hosts[0]) == [(3_000_000, None)]
    assert times(late[0]) == [(3_000_000, 8_000_000)]
    assert times(late[1]) == [(3_000_000, 8_000_000), (6_000_000, None)]
