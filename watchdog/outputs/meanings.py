"""What each kind of finding means, in a clause that completes "this finding says that ..."."""

from pardbg.watchdog.model.names import Edit, Kind

KIND_MEANING: dict[Kind, str] = {
    Kind.MISSING_PARTICIPANT: "a live rank has not entered what others of a group wait in",
    Kind.DESYNC: "ranks of one group issued different operations at one sequence number",
    Kind.ORDER_INVERSION: "ranks entered their groups in opposite orders and wait in a cycle",
    Kind.GROUP_MISMATCH: "ranks built one group with different members or in a different order",
    Kind.P2P_DEADLOCK: "sends and receives wait for each other in a cycle",
    Kind.P2P_UNMATCHED: "a peer waits in communication and will never issue the counterpart",
    Kind.DEAD_RANK: "a rank will issue no more operations",
    Kind.DEVICE_STUCK: "an operation was launched and its device does not finish it",
    Kind.COMM_STUCK: "every member entered the same operation and none finishes",
    Kind.MULTI_COMM_DEADLOCK: "several communicators are outstanding on every rank and none moves",
    Kind.INIT_STUCK: "the ranks never got as far as a first completed operation",
    Kind.TEARDOWN_STUCK: "training is complete and ranks do not leave",
    Kind.SLOW_PHASE: "one rank is in a long host phase that moves",
    Kind.STRAGGLER: "the job moves, and one subject makes the others wait",
    Kind.ROUTER_COLLAPSE: "the router sends nearly all tokens to few experts",
    Kind.DROP_SPIKE: "far more tokens are dropped than before",
    Kind.DEAD_EXPERTS: "experts receive no tokens",
    Kind.EP_IMBALANCE: "the experts of one rank receive far more tokens than the others'",
    Kind.ROUTER_NO_GRADIENT: "the router receives no gradient and does not learn",
    Kind.REPLICA_DIVERGENCE: "replicas are no longer equal, or were fed the same data",
    Kind.CONFIG_MISMATCH: "one host differs from the others in software or settings",
    Kind.LAYOUT_INVALID: "the parallel layout cannot work",
    Kind.LAYOUT_WARNING: "the parallel layout works, at a cost",
    Kind.INSUFFICIENT_EVIDENCE: "something is wrong, and what was seen cannot say what",
}

EDIT_MEANING: dict[Edit, str] = {
    Edit.SKIPPED: "one operation was skipped: with the rest shifted by one, it matches",
    Edit.EXTRA: "one operation too many was issued: without it, the rest matches",
    Edit.SWAPPED: "two operations were issued in swapped order: swapped back, they match",
}
