"""How a person runs a command on a host of the job, from where the scan ran. Values only."""

import re
import shlex

from pardbg.watchdog.model.base import Noun

HOST = "HOST"
_FOR_A_SHELL = re.compile(r"[|;&$`<>*?(){}~]")


class Reach(Noun, frozen=True, kw_only=True):
    """The words that lead to a host.

    Attributes:
        before: what a command line begins with, up to the name of the host: ``srun --jobid=7 --overlap -N1 -n1 -w``.
            Empty where nothing is known that leads to other hosts.
        after: what follows that name: ``--``.
        takes_line: whether the far side gives all that follows to a shell, as ssh does.
        names: what a host is called there, where that is not its name: ``ada@n1``.
        options: what else follows the name of a host: ``-c train``.
        here: the host on which a command needs no way.
        question: a command that tells whether a host is up; ``HOST`` stands for it. Empty if none is known.
    """

    before: str = ""
    after: str = ""
    takes_line: bool = False
    names: dict[str, str] = {}
    options: dict[str, str] = {}
    here: str = ""
    question: str = ""

    def names_place(self, host: str) -> bool:
        """Whether a command line of `on` says where it is to be run, or that goes without saying."""
        return bool(self.before) or self._is_here(host)

    def on(self, host: str | None, command: str) -> str:
        """The command line that runs a command on a host; the command itself where no way is known or needed."""
        if not self.before or host is None or self._is_here(host):
            return command
        needs_shell = _FOR_A_SHELL.search(command) is not None
        far = shlex.quote(command) if needs_shell else command
        if needs_shell and not self.takes_line:
            far = f"sh -c {far}"
        return " ".join(filter(None, (self.before, self._name(host), self.options.get(host), self.after, far)))

    def ask_about(self, host: str) -> str | None:
        """The command line that tells whether a host is up."""
        return self.question.replace(HOST, self._name(host)) or None

    def _is_here(self, host: str) -> bool:
        return host in {self.here, self.here.partition(".")[0]}

    def _name(self, host: str) -> str:
        return shlex.quote(self.names.get(host, host))


NO_WAY = Reach()
"""Nobody knows where the reader is: evidence from files."""
