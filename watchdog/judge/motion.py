"""Does the job move? "Hung" needs two samples; where there is only one, an outstanding operation counts as hung."""

from itertools import pairwise

from pardbg.watchdog.model.recording import Recording
from pardbg.watchdog.store.view import EvidenceView


def moved_between_samples(view: EvidenceView) -> bool:
    """Whether any rank completed an operation between two samples of its recorder."""
    return any(_finished(before, after) for samples in view.samples.values() for before, after in pairwise(samples))


def _finished(before: Recording, after: Recording) -> bool:
    """Whether something outstanding before is finished after; overwritten or filtered out counts as finished."""
    still_open = {operation.record_id for operation in after.operations if not operation.is_done}
    return any(not operation.is_done and operation.record_id not in still_open for operation in before.operations)
