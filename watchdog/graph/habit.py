"""Does a rank do what it used to do? Training repeats itself, and a rank that leaves its own order gives itself away.

Where two ranks wait for each other there is no majority. But the one that has followed its own last operations by something
else than before is the likelier one to have gone astray.
"""

from pardbg.watchdog.graph.fronts import LOST
from pardbg.watchdog.graph.meetings import Room

LONGEST_CONTEXT = 8  # operations before the front that are compared
SHORTEST_CONTEXT = 2

Step = tuple[int, str, int | None, int | None]


def keeps_habit(room: Room, rank: int) -> bool | None:
    """Whether the operation a rank stands at is what followed the same operations before.

    None if that cannot be said: these operations, or the one it stands at, never occurred before.

    Linear in the rank's recorded operations.
    """
    fronts = room.fronts(rank)
    recording = room.progress.view.recordings.get(rank)
    if recording is None or not fronts or fronts[0].operation.record_id == LOST:
        return None
    front = fronts[0].operation
    steps: list[Step] = []
    place = None
    for group, operation in room.progress.operations(rank):
        signature = recording.signatures[operation.signature]
        if operation is front:
            place = len(steps)
        steps.append((group, signature.op, signature.src, signature.dst))
    return None if place is None else _followed_before(steps, place)


def _followed_before(steps: list[Step], place: int) -> bool | None:
    if steps[place] not in steps[:place]:
        return None
    for length in range(min(LONGEST_CONTEXT, place), SHORTEST_CONTEXT - 1, -1):
        context = steps[place - length : place]
        followers = {steps[start + length] for start in range(place - length) if steps[start : start + length] == context}
        if followers:
            return steps[place] in followers
    return None
