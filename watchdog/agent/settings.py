"""How an agent is to run."""

import os
import socket
from dataclasses import dataclass, field
from pathlib import Path

from pardbg.watchdog.agent.quiet import Limits
from pardbg.watchdog.agent.watch import Patience

STATE_FOLDER = "/var/lib/pardbg"


@dataclass(frozen=True)
class Settings:
    """What does not change while it runs.

    Attributes:
        node: this machine's name among the nodes of a job, empty for its own.
        limits: how long ranks may be silent; ``patience``: how long to wait before what.
        attach: whether its scans may attach to ranks: ``never``, unless the site says otherwise.
        scan_timeout_s: their deadline, seconds.
    """

    node: str = ""
    limits: Limits = field(default_factory=Limits)
    patience: Patience = field(default_factory=Patience)
    attach: str = "never"
    scan_timeout_s: float = 60.0

    @property
    def host(self) -> str:
        """The name under which it speaks of this machine."""
        return self.node or socket.gethostname()


def usual_state_folder() -> Path:
    """Where an agent keeps things if nobody says otherwise: the machine's place for root, else the user's for this machine.

    A home may be shared by machines, and the database may not.
    """
    if os.geteuid() == 0:
        return Path(STATE_FOLDER)
    home = os.environ.get("XDG_STATE_HOME")
    return (Path(home) if home else Path.home() / ".local" / "state") / "pardbg" / socket.gethostname()
