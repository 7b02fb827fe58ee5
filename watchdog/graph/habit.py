"""Does a rank do what it used to do? Training repeats itself, and a rank that leaves its own order gives itself away.

Where two ranks wait for each other there is no majority. But the one that has followed its own last operations by something
else than before is the likelier one to have gone astray.
"""

from pardbg.watchdog.graph.fronts import LOST
from pardbg.watchdog.graph.meetings import Room
from pardbg.watchdog.model.matching import Token, tokenize

LONGEST_CONTEXT = 8  # operations before a step that are compared
SHORTEST_CONTEXT = 2
TIMES_TO_BE_A_HABIT = 2
RECENT_STEPS = 16  # up to the front: a device works off a queue, so the front may come after the step that went astray

Step = tuple[int, Token, int | None, int | None]


def keeps_habit(room: Room, rank: int) -> bool | None:
    """Whether the last operations up to the one a rank stands at are what followed the same operations before.

    None if that cannot be said: these operations, or their contexts, never occurred before, or a digest has left them out.

    Linear in the rank's recorded operations.
    """
    fronts = room.fronts(rank)
    recording = room.progress.view.recordings.get(rank)
    if recording is None or recording.summary is not None or not fronts or fronts[0].operation.record_id == LOST:
        return None
    front = fronts[0].operation
    cache: dict[tuple[int, int], Token] = {}
    steps: list[Step] = []
    for group, operation in room.progress.operations(rank):
        signature = recording.signatures[operation.signature]
        steps.append((group, tokenize(recording, operation, cache).hard, signature.src, signature.dst))
        if operation is front:
            break
    recent = range(max(len(steps) - RECENT_STEPS, 0), len(steps))
    answers = {_followed_before(steps, place) for place in recent}
    return None if answers == {None} else False not in answers


def _followed_before(steps: list[Step], place: int) -> bool | None:
    if steps[place] not in steps[:place]:
        return None
    for length in range(min(LONGEST_CONTEXT, place), SHORTEST_CONTEXT - 1, -1):
        context = steps[place - length : place]
        followers = [steps[start + length] for start in range(place - length) if steps[start : start + length] == context]
        if steps[place] in followers:
            return True
        if len(followers) >= TIMES_TO_BE_A_HABIT and len(set(followers)) == 1:
            return False
    return None
