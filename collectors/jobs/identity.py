"""Which rank of which world a process says it is, by its environment or else its command line. Pure.

Processes inherit their environment: children and wrappers of a rank say the same. `worlds.py` tells them apart.
"""

import ipaddress

from pardbg.collectors.jobs.environment import read_number
from pardbg.collectors.jobs.process import JobProcess, ProcessLook
from pardbg.watchdog.model.base import Noun

_LARGEST_WORLD = 1_000_000


class WorldKey(Noun, frozen=True, kw_only=True):
    """What the processes of one world share. ``apart`` keeps worlds apart that the other four do not tell apart.

    It is the network namespace where the address is a loopback address, and the job or the parent where there is no address.
    """

    address: str = ""
    port: str = ""
    world_size: int | None = None
    attempt: int | None = None
    apart: str = ""

    @property
    def is_loopback(self) -> bool:
        """Whether all its ranks must be on this machine."""
        return is_loopback(self.address)

    @property
    def store(self) -> str:
        """``address:port``, empty if unknown."""
        if not self.address or not self.port:
            return ""
        return f"[{self.address}]:{self.port}" if ":" in self.address else f"{self.address}:{self.port}"


class Identity(Noun, frozen=True, kw_only=True):
    """A rank of a world. ``source`` is where it is said.

    "environment" (RANK), "scheduler" (Slurm or MPI count their tasks, whatever these do), "command-line".
    """

    key: WorldKey
    rank: int
    source: str
    local_rank: int | None = None
    local_world_size: int | None = None


def identify(process: JobProcess) -> Identity | None:
    """What the process says of itself; None if it is no rank, or says what cannot be."""
    look = process.look
    if look is None or look.is_denied or process.is_launcher or process.is_ended:
        return None
    identity = _by_environment(look) or _by_scheduler(look) or _by_command_line(process, look)
    if identity is None:
        return None
    size = _LARGEST_WORLD if identity.key.world_size is None else identity.key.world_size
    return identity if identity.rank < size <= _LARGEST_WORLD else None


def is_loopback(address: str) -> bool:
    """Whether an address means this machine whoever asks."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"


def _by_environment(look: ProcessLook) -> Identity | None:
    environment = look.environment
    rank = read_number(environment.get("RANK"))
    if rank is None:
        return None
    size = read_number(environment.get("WORLD_SIZE"))
    return Identity(
        key=_key(look, look.command.world_size if size is None else size),
        rank=rank,
        source="environment",
        local_rank=read_number(environment.get("LOCAL_RANK")),
        local_world_size=read_number(environment.get("LOCAL_WORLD_SIZE")),
    )


def _by_scheduler(look: ProcessLook) -> Identity | None:
    """Any program started by Slurm or MPI has a number: one without a master is a rank only if it uses torch."""
    environment = look.environment
    if not look.maps_torch and "MASTER_ADDR" not in environment:
        return None
    for rank_name, size_name, local_name, local_size_name in (
        ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"),
        ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", ""),
    ):
        rank = read_number(environment.get(rank_name))
        if rank is not None:
            return Identity(
                key=_key(look, read_number(environment.get("WORLD_SIZE") or environment.get(size_name))),
                rank=rank,
                source="scheduler",
                local_rank=read_number(environment.get(local_name)),
                local_world_size=read_number(environment.get(local_size_name)),
            )
    return None


def _by_command_line(process: JobProcess, look: ProcessLook) -> Identity | None:
    """Ranks that one shell or script has started side by side."""
    command = look.command
    rank = command.local_rank if command.rank is None else command.rank
    if rank is None:
        return None
    environment = look.environment
    size = command.world_size if "WORLD_SIZE" not in environment else read_number(environment["WORLD_SIZE"])
    key = _key(look, size)
    return Identity(
        key=key if key.address else WorldKey(world_size=size, attempt=key.attempt, apart=f"child of {process.stat.parent_pid}"),
        rank=rank,
        source="command-line",
        local_rank=command.local_rank,
    )


def _key(look: ProcessLook, world_size: int | None) -> WorldKey:
    environment = look.environment
    address = environment.get("MASTER_ADDR", "")
    jobs = (environment.get(name, "") for name in ("PARDBG_JOB", "TORCHELASTIC_RUN_ID", "SLURM_JOB_ID"))
    apart = look.network_namespace if is_loopback(address) else "" if address else "/".join(jobs)
    return WorldKey(
        address=address,
        port=environment.get("MASTER_PORT", ""),
        world_size=world_size,
        attempt=read_number(environment.get("TORCHELASTIC_RESTART_COUNT")),
        apart=apart,
    )
