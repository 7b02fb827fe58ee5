"""What a second reader answered, who saw the scenarios and the contract only, where that differs from a case's truth; and why.

Asked on 2026-11-30 of all 177 variants (seed 2): 148 answers were the same in kind, cause and culprits. Most of the others are
among the answers that a case accepts.
"""

from pardbg.watchdog.model.base import Noun


class Opinion(Noun, frozen=True, kw_only=True):
    """One answer. ``case`` is the family's number and the variant's name."""

    case: str
    answer: str
    discussion: str


SECOND_OPINIONS = (
    Opinion(
        case="C07/log-of-the-exception-lost",
        answer="dead-rank / exception of 3",
        discussion="Below a handler, yes, but which exception, and whether it was this rank's, is lost with its log.",
    ),
    Opinion(
        case="C08/everyone-spins",
        answer="comm-stuck",
        discussion="All that is known was written by those who gave up. comm-stuck is accepted.",
    ),
    Opinion(
        case="C10/fingerprint-only",
        answer="desync of 0",
        discussion=(
            "The case counts rank 0 as one side, since each of the others speaks for itself and rank 0 does not. "
            "Fifteen against one is accepted."
        ),
    ),
    Opinion(
        case="C104/recorders-off",
        answer="insufficient-evidence",
        discussion=(
            "Recorders that are off show nothing wrong: there is nothing of which the cause would be unknown. "
            "Exit code and status agree."
        ),
    ),
    Opinion(
        case="C105/zero-everywhere",
        answer="insufficient-evidence",
        discussion="Zero everywhere is no sign that anything is wrong.",
    ),
    Opinion(
        case="C109/children-too",
        answer="missing-participant / network-io of 13",
        discussion="The cause is that of the main thread; the worker's is told in the claim.",
    ),
    Opinion(
        case="C14/all-but-one-early",
        answer="missing-participant / user-code of 21",
        discussion="Outside the loop, or in user code; the rank is the same.",
    ),
    Opinion(
        case="C14/idle-majority",
        answer="missing-participant / user-code of 0-4,6-7",
        discussion=(
            "A scheduler that waits for requests is outside the loop of the experts; `user-code` is as true, and "
            "less is said by it."
        ),
    ),
    Opinion(
        case="C19/no-native-stack",
        answer="missing-participant of 14",
        discussion="That it is in a function of the program is seen; native code would be a guess.",
    ),
    Opinion(
        case="C20/barrier-names-rank-zero",
        answer="insufficient-evidence",
        discussion="The barrier says who did not come; whether it lives is not told: the reader's caution is accepted.",
    ),
    Opinion(
        case="C20/barrier-names-several",
        answer="insufficient-evidence",
        discussion=(
            "The barrier's own words are that these ranks did not come. Whether they live is not told: the "
            "reader's caution is accepted."
        ),
    ),
    Opinion(
        case="C32/peer-waits-for-control",
        answer="p2p-deadlock of 6-7",
        discussion="Truly a circle, but one half of it is an RPC, which no recorder shows: rule 7 of blame stops there.",
    ),
    Opinion(
        case="C34/one-never-came",
        answer="missing-participant / user-code of 3",
        discussion="Outside the loop, or in user code; the rank is the same.",
    ),
    Opinion(
        case="C34/root-is-ahead",
        answer="comm-stuck",
        discussion="Right as well: a root that is ahead is no sign of anything, and nobody is named in either.",
    ),
    Opinion(
        case="C41/memory-at-the-start",
        answer="init-stuck",
        discussion=(
            "The contract lets absent ranks only be culprits of init-stuck; this one says itself what is wrong "
            "with it. Both are accepted."
        ),
    ),
    Opinion(
        case="C46/nobody-prepares",
        answer="init-stuck / store-wait",
        discussion=(
            "That everybody waits at the store is where they wait, not why: rank 0 waits there as well, and for "
            "whom is not told."
        ),
    ),
    Opinion(
        case="C46/tokenising",
        answer="init-stuck / store-wait of 0",
        discussion=(
            "Rank 0 is no waiter at the store; what it does there is data loading, and init-stuck has no word for that."
        ),
    ),
    Opinion(
        case="C47/worker-in-a-lock",
        answer="missing-participant / lock of 11",
        discussion="The main thread waits for data; that its worker is in a lock is told in the claim.",
    ),
    Opinion(
        case="C52/heartbeat-and-nothing",
        answer="insufficient-evidence",
        discussion="Every operation is done: a watchdog that stood still is no fault of the job yet.",
    ),
    Opinion(
        case="C53/finished",
        answer="teardown-stuck",
        discussion="All ranks are those ranks: naming every one of them, or nobody, accuses the same.",
    ),
    Opinion(
        case="C53/finished-by-log",
        answer="teardown-stuck",
        discussion=(
            "The lines say that watchdogs stood still, not that ranks are stuck in leaving; with stacks it would be certain."
        ),
    ),
    Opinion(
        case="C55/all-in-launches",
        answer="comm-stuck / foreign-comm",
        discussion=(
            "The reader asks who else could spin; nothing on the host waits in a library, all launch kernels. Both name nobody."
        ),
    ),
    Opinion(
        case="C56/first-load-python-only",
        answer="missing-participant of 11",
        discussion="Native code would be a guess; that it is in a function of the program is seen.",
    ),
    Opinion(
        case="C59/waits-for-device",
        answer="missing-participant / native-code of 14",
        discussion=(
            "Nothing of NCCL is outstanding on it, and it waits for its own device: suggested, not shown. The "
            "reader's answer is accepted."
        ),
    ),
    Opinion(
        case="C61/seven-and-eight",
        answer="init-stuck",
        discussion="Whether a sixteenth rank should be there is not told in the text; the files have a world of fifteen.",
    ),
    Opinion(
        case="C67/shared-memory-full",
        answer="init-stuck / shm",
        discussion="The ranks that could not grow the file say so themselves. Nobody named is accepted.",
    ),
    Opinion(
        case="C70/consequence-of",
        answer="device-stuck / nvlink of 1,4-5,7",
        discussion="All four GPUs have errors, and 145 on three of them follows from 149 on one: its link is the first.",
    ),
    Opinion(
        case="C71/fatal-links",
        answer="dead-rank / signal of 0-1",
        discussion=(
            "A signal is how they ended; the links are why. The contract has no cause of dead-rank for a device, "
            "so none is given."
        ),
    ),
    Opinion(
        case="C74/timeouts-everywhere",
        answer="comm-stuck",
        discussion="All that is known was written by those who gave up; what came before is not. comm-stuck is accepted.",
    ),
)
