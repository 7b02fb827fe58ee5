"""The names a world answers to, and whether it is meant by one that the user typed. Pure."""

import re
from collections.abc import Iterable, Mapping

from pardbg.collectors.jobs.process import JobProcess
from pardbg.watchdog.errors import InputError
from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.names import JobSource
from pardbg.watchdog.model.world import World

PREFIXES = {
    "run": JobSource.RUN,
    "slurm": JobSource.SLURM,
    "k8s": JobSource.KUBERNETES,
    "torchrun": JobSource.TORCHRUN,
}
_SLURM = re.compile(r"(?P<job>\d+(?:[_+]\d+)?)(?:\.\w+)?", re.ASCII)
_SLURM_LOOKING = re.compile(r"-?\d[\d,.+_]*(?:\[[\d,%-]*\][\d,.+_]*)?", re.ASCII)  # not 2026-11-30, which torchrun may be given
_LONGEST_SHOWN = 80
_KUBERNETES = re.compile(r"[^/\s]+/[^/\s]+")
_POD_ENDING = re.compile(r"-(?:master|worker|launcher|chief|node|replica|server)-\d.*$|(?:-\d+)?-[a-z0-9]{5}$|-\d+$")
_NO_ID = "none"  # what torchrun passes on where nobody gave an id
_ANY = "*"

JobIds = tuple[tuple[JobSource, str], ...]


class JobName(Noun, frozen=True, kw_only=True):
    """What the user typed: whose name it is, and the name without its prefix."""

    source: JobSource
    name: str

    def means(self, world: World) -> bool:
        """Whether the world answers to it."""
        return any(source is self.source and self._is(own, world) for source, own in world.job_ids)

    def _is(self, own: str, world: World) -> bool:
        if own == self.name:
            return True
        if self.source is JobSource.KUBERNETES:
            return own.startswith(_ANY + "/") and own.partition("/")[2] == self.name.partition("/")[2]
        match = _SLURM.fullmatch(self.name) if self.source is JobSource.SLURM else None
        knows_its_step = any("." in other for source, other in world.job_ids if source is JobSource.SLURM)
        return match is not None and match["job"] == own and not knows_its_step


def read_job_name(text: str, worlds: Iterable[World]) -> JobName:
    """Whose name it is, by its prefix; else one given to `pardbg run`; else by its form."""
    prefix, has_prefix, rest = text.partition(":")
    if has_prefix and prefix in PREFIXES:
        return JobName(source=PREFIXES[prefix], name=rest)
    run = JobName(source=JobSource.RUN, name=text)
    if any(run.means(world) for world in worlds):
        return run
    return JobName(source=_source_by_form(text), name=text)


def check_job_name(text: str) -> None:
    """Sees that a name that a user has typed is one.

    Raises:
        InputError: if it is empty, with or without a prefix, has spaces around it, or consists of digits and Slurm's signs, and
            is no id of Slurm's: no job is called so. Or if it is no text.
    """
    if not text.isprintable() and any("\ud800" <= sign <= "\udfff" for sign in text):  # bytes that are no UTF-8
        raise InputError(f"--job {shorten(ascii(text))} is no text", remedy="give its id as squeue or kubectl shows it")
    prefix, has_prefix, rest = text.partition(":")
    is_prefixed = bool(has_prefix) and prefix in PREFIXES
    name = rest if is_prefixed else text
    if not name.strip():
        raise InputError(f"--job {text!r} names no job", remedy=f"give its id: {prefix + ':' if is_prefixed else ''}ID")
    is_slurms = PREFIXES.get(prefix) is JobSource.SLURM if is_prefixed else _SLURM_LOOKING.fullmatch(name.strip()) is not None
    if is_slurms and _SLURM.fullmatch(name.strip()) is None:
        told = shorten(text)
        raise InputError(
            f"--job {told!r} is no job id such as 1234, 1234_7, 1234+1, 1234.0",
            remedy="see squeue --me; torchrun's: torchrun:ID",
        )
    if name != name.strip():
        raise InputError(
            f"--job {text!r} has spaces around the name", remedy=f"--job {text.replace(name, name.strip()).strip()}"
        )


def shorten(name: str) -> str:
    """A name for a message."""
    return name if len(name) <= _LONGEST_SHOWN else f"{name[: _LONGEST_SHOWN - 3]}..."


def write_job_name(source: JobSource, name: str, worlds: Iterable[World]) -> str:
    """The text that `read_job_name` reads as this; with the prefix only where it is needed."""
    if read_job_name(name, worlds) == JobName(source=source, name=name):
        return name
    return next(prefix for prefix, own in PREFIXES.items() if own is source) + ":" + name


def find_job_ids(ranks: Iterable[JobProcess], launchers: Iterable[JobProcess]) -> JobIds:
    """All names of a world, from its ranks and those that started them; the most telling first."""
    ranks, launchers = list(ranks), list(launchers)
    environments = [process.environment for process in ranks]
    typed = [launcher.look.command.rendezvous_id for launcher in launchers if launcher.look]
    names = [
        *((JobSource.RUN, environment.get("PARDBG_JOB", "")) for environment in environments),
        *((JobSource.SLURM, name) for environment in environments for name in _slurm_names(environment)),
        *((JobSource.KUBERNETES, _kubernetes_name(environment)) for environment in environments),
        *((JobSource.TORCHRUN, name) for name in typed),
        *((JobSource.TORCHRUN, launcher.environment.get("PET_RDZV_ID", "")) for launcher in launchers),
        *((JobSource.TORCHRUN, environment.get("TORCHELASTIC_RUN_ID", "")) for environment in environments),
    ]
    return tuple(dict.fromkeys((source, name) for source, name in names if name and name != _NO_ID))


def _source_by_form(text: str) -> JobSource:
    if _SLURM.fullmatch(text):
        return JobSource.SLURM
    return JobSource.KUBERNETES if _KUBERNETES.fullmatch(text) else JobSource.TORCHRUN


def _slurm_names(environment: Mapping[str, str]) -> list[str]:
    """``1200_7`` of an array, ``1234+1`` of a heterogeneous job, the plain number, each also with the step."""
    names = [
        _join(environment, "SLURM_ARRAY_JOB_ID", "_", "SLURM_ARRAY_TASK_ID"),
        _join(environment, "SLURM_HET_JOB_ID", "+", "SLURM_HET_JOB_OFFSET"),
        environment.get("SLURM_JOB_ID", ""),
        environment.get("SLURM_ARRAY_JOB_ID", ""),
        environment.get("SLURM_HET_JOB_ID", ""),
    ]
    step = environment.get("SLURM_STEP_ID", "")
    return [*names, *(f"{name}.{step}" for name in names if name and step)]


def _join(environment: Mapping[str, str], first: str, sign: str, second: str) -> str:
    return f"{environment[first]}{sign}{environment[second]}" if {first, second} <= environment.keys() else ""


def _kubernetes_name(environment: Mapping[str, str]) -> str:
    """``namespace/job`` of a pod, from its name; ``*`` where the pod does not know its namespace."""
    pod = environment.get("POD_NAME") or environment.get("HOSTNAME", "")
    if "KUBERNETES_SERVICE_HOST" not in environment or not pod:
        return ""
    return f"{environment.get('POD_NAMESPACE') or _ANY}/{_POD_ENDING.sub('', pod)}"
