"""Slurm's own fan-out: one srun for all nodes of a job. Its input goes to every task, their lines come back through one pipe.

What srun does with silent nodes, long lines and dying tasks was measured with 22.05; see `regrouping.py` and `LINE_BYTES`.
Only the owner of a job may start a step in it: for others ``program`` begins with what becomes the owner.
"""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pardbg.watchdog.errors import InputError
from pardbg.watchdog.model.names import AbsenceReason
from pardbg.watchdog.transport.folded_names import unfold
from pardbg.watchdog.transport.printable import printable
from pardbg.watchdog.transport.remote import collect_command
from pardbg.watchdog.transport.way import NOT_THERE, Launch, Loss, Sign, Way

_OPTIONS = (
    "--overlap",  # beside the job's own step, without processors of its own
    "--ntasks-per-node=1",
    "--input=all",
    "--kill-on-bad-exit=0",  # a site may have set 1: one node's end would be everybody's
    "--wait=0",
    "--mpi=none",
    "--mem=0",
    "--cpu-bind=none",
    "--gres=none",
    "--export=ALL",  # an interpreter of a module needs LD_LIBRARY_PATH
    "--chdir=/",
)
_KEPT = frozenset({"SLURM_CONF", "SLURM_CLUSTERS"})
_NODE = re.compile(r"[\w.-]+")
_JOB = re.compile(r"\d+([_+.]\w+)*")
_NOISE = re.compile(r"^srun: cluster configuration lacks support for cpu binding")
_LOST = (
    re.compile(r"error: (?P<nodes>[\w.,\[\]-]+): tasks? [\d,\[\]-]+: (?P<why>\S.*)"),
    re.compile(r"error: Node failure on (?P<nodes>[\w.,\[\]-]+)"),
    re.compile(r"error: Task launch for \S+ failed on node (?P<nodes>[\w.,\[\]-]+): (?P<why>\S.*)"),
)
_SIGNS = (
    Sign(
        words=re.compile(r"Access/permission denied|Invalid user"),
        reason=AbsenceReason.DENIED,
        advice="only the owner of a job may look at it through srun",
    ),
    Sign(
        words=re.compile(r"Invalid job id|already completing or completed|Job/step already|Expired"), reason=AbsenceReason.GONE
    ),
    Sign(
        words=re.compile(
            r"step creation temporarily disabled|Requested nodes are busy|Required nodes? not available|not available"
        ),
        reason=AbsenceReason.UNREACHABLE,
        advice="Slurm starts nothing more in this job now: try --via ssh",
    ),
    Sign(
        words=re.compile(r"unrecognized option|invalid option|Invalid .*option"),
        reason=AbsenceReason.UNSUPPORTED,
        advice="--overlap needs Slurm 20.11: try --via ssh",
    ),
    Sign(words=re.compile(r"Task launch .* failed|Unable to contact slurm|Socket timed out"), reason=AbsenceReason.UNREACHABLE),
    NOT_THERE,
)


def through_srun(
    job: str,
    nodes: Iterable[str],
    command: tuple[str, ...] | None = None,
    program: tuple[str, ...] = ("srun",),
    environment: Mapping[str, str] | None = None,
) -> Way:
    """One srun for all ``nodes``, by the names Slurm has for them. Leave out those that are known to be down.

    Args:
        job: its number, with ``_N`` or ``+N`` where it is one of several.
        nodes: all that are to be asked.
        command: what starts `pardbg collect` there.
        program: srun, and what it is put behind.
        environment: ours if None; an outer job's variables are left out, since srun would take its options from them.

    Raises:
        InputError: for a job id or a node name that srun could take for something else.
    """
    chosen = tuple(dict.fromkeys(nodes))
    if not _JOB.fullmatch(job) or not chosen or not all(_NODE.fullmatch(node) and node[0] != "-" for node in chosen):
        raise InputError(f"job {job!r} on {', '.join(chosen[:3]) or 'no nodes'} cannot be given to srun", remedy="see squeue")
    words = command or collect_command()
    kept = _without_outer_job(os.environ if environment is None else environment)

    def launch(some: tuple[str, ...]) -> Launch:
        where = (f"--jobid={job}", f"--nodes={len(some)}", f"--ntasks={len(some)}", f"--nodelist={','.join(some)}")
        return Launch(nodes=some, command=(*program, *where, *_OPTIONS, *words), environment=kept, noise=_NOISE)

    return Way(name="srun", launches=(launch(chosen),), signs=_SIGNS, regroup=launch, hear_loss=hear_loss)


def join_sruns(ways: Sequence[Way]) -> Way:
    """Several sruns as one way: each component of a het job needs its own, or only one of them gets the input."""
    first = ways[0]
    own = {node: way for way in ways for node in way.nodes}

    def regroup(some: tuple[str, ...]) -> Launch:
        """Those of one launch are of one component."""
        remake = own[some[0]].regroup
        if remake is None:
            raise ValueError("no way of srun's")
        return remake(some)

    return replace(first, launches=tuple(launch for way in ways for launch in way.launches), regroup=regroup)


def hear_loss(line: str) -> Loss | None:
    """The nodes that a line of srun's standard error gives up."""
    for form in _LOST:
        if found := form.search(line):
            parts = found.groupdict()
            return Loss(nodes=tuple(unfold(parts["nodes"])), detail=f"srun: {printable(parts.get('why') or 'node failure')}")
    return None


def _without_outer_job(environment: Mapping[str, str]) -> dict[str, str]:
    def is_kept(name: str) -> bool:
        return name in _KEPT or not name.startswith(("SLURM_", "SRUN_"))

    return {name: value for name, value in environment.items() if is_kept(name)}
