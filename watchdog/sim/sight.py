"""How the truth changes with what is seen: a lost dump makes nobody guilty, and may hide who is."""

from msgspec.structs import replace

from pardbg.watchdog.model.names import Kind, Status
from pardbg.watchdog.sim.faults.fault import Expectation
from pardbg.watchdog.sim.recipe import Recipe
from pardbg.watchdog.sim.truth import NOT_SURE, UNDETERMINED_EXIT, Answer, Truth, unknown_because

_NEEDS_A_MAJORITY = frozenset({Kind.DESYNC, Kind.ORDER_INVERSION, Kind.GROUP_MISMATCH})


def truth_as_seen(expectation: Expectation, recipe: Recipe, missing: frozenset[int]) -> Truth:
    """The truth that the evidence written can show."""
    truth = expectation.truth
    if expectation.without_call_sites is not None and not recipe.shows_call_sites:
        truth = expectation.without_call_sites
    if recipe.backend == "gloo" and recipe.parallel_layout.pp > 1 and truth.kind is not None:
        note = f"{truth.note}; ranks that wait in gloo's unrecorded send or recv look idle".lstrip("; ")
        truth = replace(truth, acceptable=(*truth.acceptable, NOT_SURE), note=note)
    if not missing:
        return truth
    lost = tuple(sorted(missing))
    if truth.kind is None:
        note = "nothing is outstanding where there are dumps; the others may tell another story"
        return replace(truth, status=Status.UNDETERMINED, exit_code=UNDETERMINED_EXIT, missing_files=lost, note=note)
    if not expectation.is_proven_otherwise and missing & {*truth.culprits, *truth.candidates}:
        truth = _without_some(truth, missing)
    return replace(truth, acceptable=(*truth.acceptable, *_weaker(truth)), missing_files=lost)


def _without_some(truth: Truth, missing: frozenset[int]) -> Truth:
    """Some of those to blame left no dump."""
    culprits = tuple(rank for rank in truth.culprits if rank not in missing)
    candidates = tuple(rank for rank in truth.candidates if rank not in missing)
    if not culprits and len(candidates) < 2:
        note = f"the dumps that would show {truth.kind.value if truth.kind else 'it'} are lost"
        return replace(unknown_because(note), also=truth.also)
    return replace(truth, culprits=culprits, candidates=candidates)


def _weaker(truth: Truth) -> tuple[Answer, ...]:
    """With fewer witnesses it is honest not to be sure, to leave open which side is wrong, or to see another fault only."""
    answers = [NOT_SURE, *(Answer(kind=Kind.MISSING_PARTICIPANT, culprits=ranks) for ranks in truth.also)]
    if truth.kind in _NEEDS_A_MAJORITY:
        answers.append(Answer(kind=truth.kind))
    if truth.kind is Kind.MULTI_COMM_DEADLOCK:
        answers.append(Answer(kind=Kind.COMM_STUCK))
    return tuple(answers)
