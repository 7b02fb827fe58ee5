"""Why py-spy gave no stack, from what it says on standard error. Its words are not repeated: they may quote the process."""

import re

from pardbg.watchdog.model.evidence import Absence
from pardbg.watchdog.model.names import AbsenceReason

_DENIED = re.compile(r"Permission Denied|Operation not permitted|os error 1\)|os error 13\)", re.IGNORECASE)
_NO_PYTHON = re.compile(r"Failed to find python version", re.IGNORECASE)
_VERSION = re.compile(r"Unsupported version of Python: ([23]\.\d{1,2}(?:\.\d{1,2})?)\b")
_TRACED = re.compile(r"Failed to suspend process|Failed to lock process|PTRACE", re.IGNORECASE)

DENIED_WORDS = (
    "the system does not let us read its memory: run as root or as the job's user; containers need the capability SYS_PTRACE,"
    " hosts kernel.yama.ptrace_scope=0, and the job's seccomp profile must not forbid process_vm_readv"
)


def explain_failure(errors: str) -> Absence:
    """The reason of one failed attempt; "unreadable" may go away with another one."""
    if _DENIED.search(errors):
        return Absence(reason=AbsenceReason.DENIED, detail=DENIED_WORDS)
    if (version := _VERSION.search(errors)) is not None:
        detail = f"py-spy does not know Python {version[1]}: pip install --upgrade py-spy"
        return Absence(reason=AbsenceReason.UNSUPPORTED, detail=detail)
    if _NO_PYTHON.search(errors):
        return Absence(reason=AbsenceReason.UNSUPPORTED, detail="no Python in it that py-spy knows")
    if _TRACED.search(errors):
        detail = "py-spy cannot hold it: a debugger is attached, or the process is stopped"
        return Absence(reason=AbsenceReason.UNREADABLE, detail=detail)
    return Absence(
        reason=AbsenceReason.UNREADABLE, detail="py-spy read nothing that makes sense: the process moved, or is damaged"
    )
