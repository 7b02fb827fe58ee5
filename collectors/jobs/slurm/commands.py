"""The commands that are put to Slurm, as lists of arguments. Ids are digits and one sign, node lists come from Slurm itself."""

from pardbg.collectors.parsing.slurm_nodes import SINFO_FORMAT
from pardbg.collectors.parsing.slurm_sacct import SACCT_DELIMITER, SACCT_FORMAT
from pardbg.collectors.parsing.slurm_squeue import SQUEUE_FORMAT

Command = tuple[str, ...]


def show_job(name: str) -> Command:
    """One job; an array's or a het job's number gives all its parts."""
    return ("scontrol", "--oneliner", "show", "job", name)


def show_steps(job_id: int) -> Command:
    """The steps of one job that run now."""
    return ("scontrol", "--oneliner", "show", "step", str(job_id))


def show_nodes(folded: str) -> Command:
    """The states of some nodes. The controller sends its whole node table, `sinfo` chooses."""
    return ("sinfo", "--noheader", "--Node", f"--nodes={folded}", f"--format={SINFO_FORMAT}")


def list_pids(job_id: int, node: str) -> Command:
    """The processes of a job on the node this runs on."""
    return ("scontrol", "listpids", str(job_id), node)


def list_job(job_id: int) -> Command:
    """One job in the form of every version."""
    return ("squeue", "--noheader", "--states=all", f"--jobs={job_id}", f"--format={SQUEUE_FORMAT}")


def list_job_as_json(job_id: int) -> Command:
    """One job, from 23.02 on; 22.05 would write all of them."""
    return ("squeue", "--json", "--states=all", f"--jobs={job_id}")


def tell_version() -> Command:
    """Asks nobody."""
    return ("squeue", "--version")


def show_accounting(name: str) -> Command:
    """All runs of a job and their steps, from the database."""
    options = ("--parsable2", "--noheader", "--duplicates", f"--delimiter={SACCT_DELIMITER}", f"--format={SACCT_FORMAT}")
    return ("sacct", *options, f"--jobs={name}")
