"""A communicator whose set-up never ended, as NCCL's own log tells, and what NCCL warned of before that.

A rank without lines of NCCL is not absent: its log may be quiet. Where recorders were read, they decide.
"""

from collections.abc import Iterable

from pardbg.watchdog.correlators.log_words import MAX_LINES, are_logs_alone, log_line
from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.correlators.wording import name_ranks
from pardbg.watchdog.graph.log_facts import SET_UP_BEGAN, SET_UP_DONE, LogFact
from pardbg.watchdog.graph.log_network import find_network_fault
from pardbg.watchdog.model.host_names import fold_hosts_briefly
from pardbg.watchdog.model.log_event import NcclWarning, Trouble
from pardbg.watchdog.model.names import Cause, Confidence, Kind
from pardbg.watchdog.model.report import Finding, Subject

_ASK_FABRIC = "Look whether the node's fabric manager was restarted, or fits the driver; NCCL_NVLS_ENABLE=0 goes without it."
_ASK_NCCL = "Run it with NCCL_DEBUG=INFO on all ranks; see that all hosts reach each other on the interface that NCCL names."

_ONE_DEVICE_EACH = (
    "Give each process a GPU of its own before its first collective: torch.cuda.set_device(local rank), or "
    "CUDA_VISIBLE_DEVICES; and start no more processes on a host than it has GPUs."
)


def correlate(situation: Situation) -> Iterable[Finding]:
    """At most one finding: a warning that explains it, else the communicator that was never completed."""
    if not are_logs_alone(situation) or situation.own_failures:
        return
    for find in (_no_memory_to_share, _on_one_device, _no_multicast, _never_completed):
        finding = find(situation)
        if finding is not None:
            yield finding
            return


def _no_memory_to_share(situation: Situation) -> Finding | None:
    facts = _warnings(situation, Trouble.SHM_FULL)
    ranks = sorted({fact.rank for fact in facts if fact.rank is not None})
    hosts = sorted({fact.host for fact in facts if fact.host})
    if not facts:
        return None
    where = fold_hosts_briefly(hosts) if hosts else name_ranks(ranks) if ranks else "a host"
    why = "could not extend a file in /dev/shm: no space left"
    return Finding(
        kind=Kind.INIT_STUCK,
        cause=Cause.SHM,
        confidence=Confidence.SUPPORTED,
        culprits=tuple(situation.subject(rank, why) for rank in ranks) or tuple(Subject.of_host(host, why) for host in hosts),
        victims=tuple(rank for rank in situation.standings if rank not in ranks) if ranks else (),
        claim=f"the shared memory of {where} is full (/dev/shm): NCCL cannot set up its channels",
        evidence=tuple(map(log_line, facts[:MAX_LINES])),
        advice=("Give the container more shared memory (--shm-size, or a memory-backed emptyDir): 64 MiB is the default.",),
    )


def _on_one_device(situation: Situation) -> Finding | None:
    """NCCL refuses two ranks on one GPU: both raise, and neither is more to blame. It names members of a communicator."""
    told = [(fact, event) for fact, event in situation.logs.of_type(NcclWarning) if event.trouble is Trouble.SHARED_DEVICE]
    pairs = sorted({tuple(sorted(event.comm_ranks)) for _, event in told if event.comm_ranks})
    if not told:
        return None
    named = "; ".join(name_ranks(pair) for pair in pairs[:4])
    who = f" ({named}, by their numbers in it)" if named else ""
    return Finding(
        kind=Kind.INIT_STUCK,
        confidence=Confidence.SUPPORTED,
        claim=f"NCCL cannot set up a communicator: ranks of it are on one GPU{who}",
        evidence=tuple(log_line(fact) for fact, _ in told[:MAX_LINES]),
        advice=(_ONE_DEVICE_EACH,),
    )


def _no_multicast(situation: Situation) -> Finding | None:
    """The switch of a node refuses: a matter of the node, so that the rank that says so first is not special."""
    facts = _warnings(situation, Trouble.NVLS)
    hosts = sorted({fact.host for fact in facts if fact.host})
    others = {fact.host for fact in situation.logs.facts if fact.host} - set(hosts)
    if not facts:
        return None
    ill = [Subject.of_host(host, "cannot set up multicast over NVLink") for host in hosts] if others else []
    return Finding(
        kind=Kind.INIT_STUCK,
        confidence=Confidence.SUPPORTED if ill else Confidence.SUGGESTED,
        culprits=tuple(ill),
        victims=tuple(situation.standings),
        claim=f"NCCL cannot set up multicast over NVLink on {fold_hosts_briefly(hosts) if hosts else 'a node'}",
        evidence=tuple(map(log_line, facts[:MAX_LINES])),
        advice=(_ASK_FABRIC,),
    )


def _never_completed(situation: Situation) -> Finding | None:
    if situation.logs.is_cut:
        return None  # what is missing may have been cut off
    if (fault := find_network_fault(situation.logs)) is not None and fault.is_never_met:
        return None  # `logged_network` says why
    newest = situation.logs.newest_steps.values()
    open_ = [(fact, event) for fact, event in newest if event.step == SET_UP_BEGAN]
    if not open_:
        return None
    ids = {(event.id, event.size) for _, event in open_}
    done = [fact for fact, event in newest if event.step == SET_UP_DONE and (event.id, event.size) in ids]
    ranks = sorted({fact.rank for fact, _ in open_ if fact.rank is not None})
    size = max(event.size for _, event in open_)
    is_everyone = len(open_) == size and not done
    counts = sorted({len([1 for fact, _ in open_ if fact.host == host]) for host in {fact.host for fact, _ in open_}})
    uneven = "; the hosts have different numbers of ranks" if is_everyone and len(counts) > 1 else ""
    unfinished = tuple(situation.subject(rank, "has not completed the set-up") for rank in ranks)
    finished = f"; {len(done)} {'has' if len(done) == 1 else 'have'} completed it" if done else "; none has completed it"
    return Finding(
        kind=Kind.INIT_STUCK,
        cause=Cause.BOOTSTRAP if is_everyone else None,
        confidence=Confidence.SUGGESTED,
        candidates=unfinished if done else (),
        victims=tuple(ranks) if not done else (),
        claim=f"{len(open_)} of {size} ranks began to set up a communicator and did not complete it{finished}{uneven}",
        evidence=tuple(log_line(fact) for fact, _ in open_[:MAX_LINES]),
        advice=(_ASK_NCCL,),
    )


def _warnings(situation: Situation, trouble: Trouble) -> list[LogFact]:
    return [fact for fact, event in situation.logs.of_type(NcclWarning) if event.trouble is trouble]
