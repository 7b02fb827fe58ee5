"""What `pardbg run` puts into a job's environment, and where the user's own values win. Pure.

Texts are bytes decoded as UTF-8 with surrogate escapes, whatever the locale: so they come back bit by bit.
"""

from collections.abc import Mapping

from pardbg.collectors.probe import places, recorder_places
from pardbg.watchdog.model.base import Noun

BUFFER_ENTRIES = "20000"
SEARCH_PATH = "PYTHONPATH"

BUFFER_NAMES = ("TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE")
DUMP_NAMES = recorder_places.DUMP_VARIABLES
PIPE_NAME = recorder_places.PIPE_VARIABLE
ON_TIMEOUT_NAME = "TORCH_NCCL_DUMP_ON_TIMEOUT"

# Names that torch knows for the same setting in some version: of each kind the user decides all or nothing.
_BUFFER_ALIASES = (*BUFFER_NAMES, "TORCH_TRACE_BUFFER_SIZE")
_ON_TIMEOUT_ALIASES = (ON_TIMEOUT_NAME, "TORCH_FR_DUMP_ON_TIMEOUT")
_DUMP_ALIASES = (*DUMP_NAMES, "TORCH_FR_DUMP_DYNAMIC_FILE_NAME")  # the last makes a whole file name of what is a prefix
_PIPE_ALIASES = (PIPE_NAME, "TORCH_FR_DEBUG_INFO_PIPE_FILE")


class Request(Noun, frozen=True, kw_only=True):
    """What is decided elsewhere.

    Args:
        uid: the user whose job it is.
        job: its name.
        token: digits that nobody else can guess.
        startup_folder: where the `sitecustomize.py` of the probe lies; empty to load none.
        disk_root: where the user's job folders lie; empty if dumps must stay where torch puts them.
    """

    uid: int
    job: str
    token: str
    startup_folder: str
    disk_root: str


class Plan(Noun, frozen=True, kw_only=True):
    """Variables by name: ``added`` is what gets set, ``kept`` the user's own values that stand in its place."""

    job: str
    added: dict[str, str]
    kept: dict[str, str]


def plan_environment(present: Mapping[str, str], request: Request) -> Plan:
    """Decides what is set on top of a present environment."""
    added: dict[str, str] = {}
    kept: dict[str, str] = {}
    _decide_job(present, request.job, added, kept)
    _decide_search_path(present, request.startup_folder, added, kept)
    dumps = places.dump_prefix(places.job_folder(request.disk_root, request.job)) if request.disk_root else ""
    for names, aliases, value in (
        (BUFFER_NAMES, _BUFFER_ALIASES, BUFFER_ENTRIES),
        ((ON_TIMEOUT_NAME,), _ON_TIMEOUT_ALIASES, "1"),
        (DUMP_NAMES, _DUMP_ALIASES, dumps),
        ((PIPE_NAME,), _PIPE_ALIASES, pipe_stem(request.uid, request.token)),
    ):
        own = {name: present[name] for name in aliases if name in present}
        kept.update(own)
        added.update({name: value for name in names if value and not own})
    return Plan(job=request.job, added=added, kept=kept)


def pipe_stem(uid: int, token: str) -> str:
    """What torch puts a rank's number and ``.pipe`` behind.

    In a folder that is there on every host and in every container: torch's monitor ends the training if it cannot make the
    pipe. The token keeps others from taking the name first. The probe moves the pipe to a folder of its own where it can.
    """
    return f"/tmp/pardbg-{uid}-{token}-"  # noqa: S108 - see above


def _decide_job(present: Mapping[str, str], job: str, added: dict[str, str], kept: dict[str, str]) -> None:
    (kept if present.get(places.JOB_VARIABLE) == job else added)[places.JOB_VARIABLE] = job


def _decide_search_path(present: Mapping[str, str], folder: str, added: dict[str, str], kept: dict[str, str]) -> None:
    """Prepends; an empty value is as none to Python, and an empty part would mean the current folder."""
    own = present.get(SEARCH_PATH, "")
    if folder in own.split(":"):
        if folder:
            kept[SEARCH_PATH] = own
    elif folder:
        added[SEARCH_PATH] = f"{folder}:{own}" if own else folder
