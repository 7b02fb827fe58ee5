"""Prepares a job's environment and becomes the job: no process of pardbg stays.

The command finds everything as if it had been started without pardbg, but for what the plan adds: process, signals,
descriptors, folder, priority. The environment stays in the process's own memory and is only added to, so that entries which
Python cannot name survive. (Signals that Python ignores at its start, SIGPIPE and SIGXFSZ, are default again, even if whoever
started pardbg had ignored them: that cannot be told any more.)

Cost: about 0.1 s, at most a second more where much is old. It leaves the job's folder.
"""

import os
import secrets
import shlex
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import NoReturn

from pardbg.collectors import probe
from pardbg.collectors.probe import places
from pardbg.watchdog.errors import InputError
from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.run.environment import SEARCH_PATH, Plan, Request, plan_environment
from pardbg.watchdog.run.folders import RefusedError, make_job_folder, why_refused
from pardbg.watchdog.run.job_name import check_name, propose_name
from pardbg.watchdog.run.program import explain_failed_start, find_program
from pardbg.watchdog.run.pruning import Roots, prune

_COERCED = b"LC_CTYPE"  # Python sets it at its start where the locale is C (PEP 538)
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)

Say = Callable[[str], None]


class Prepared(Noun, frozen=True, kw_only=True):
    """What is going to happen, and what not and why."""

    plan: Plan
    roots: Roots
    job_folder: str
    warnings: tuple[str, ...]


def prepare(job: str | None, words: Sequence[str]) -> Prepared:
    """Reads the present environment and plans; makes nothing.

    Args:
        job: the name that the user gave, in the coding of the locale.
        words: the command, which may be missing.

    Raises:
        InputError: if the name, or ``PARDBG_DIR``, cannot be used.
    """
    present = {_decode(name): _decode(value) for name, value in os.environb.items()}
    name = _choose_name(job, words, present)
    uid = os.getuid()
    root = _check_root(places.disk_root(uid, present))
    refused = why_refused(os.fsdecode(_encode(root)), uid)
    startup = _startup_folder()
    plan = plan_environment(
        present,
        Request(
            uid=uid,
            job=name,
            token=secrets.token_hex(8),
            startup_folder="" if ":" in startup else startup,
            disk_root="" if refused else root,
        ),
    )
    warnings = (
        *([f"{refused}: torch's dumps stay where torch puts them; remove it, or set {places.ROOT_VARIABLE}"] * bool(refused)),
        *([f"{startup} cannot be in {SEARCH_PATH} (a colon): the probe is not loaded"] * (":" in startup)),
    )
    folder = "" if refused else os.fsdecode(_encode(places.job_folder(root, name)))
    memory = os.fsdecode(_encode(places.memory_root(uid, present)))
    roots = Roots(memory=memory, disk=os.fsdecode(_encode(root)), uid=uid, kept_job=folder)
    return Prepared(plan=plan, roots=roots, job_folder=folder, warnings=warnings)


def launch(prepared: Prepared, words: Sequence[str], say: Say) -> NoReturn:
    """Makes the job's folder, removes what is old, says the job's name, and becomes the command.

    Args:
        prepared: what `prepare` returned.
        words: the command as typed.
        say: takes one line for the user.

    Raises:
        InputError: if the command cannot be started.
    """
    program = find_program(words[0], os.environ.get("PATH", os.defpath))
    for warning in prepared.warnings:
        say(f"warning: {warning}")
    if prepared.job_folder:
        try:
            make_job_folder(prepared.job_folder, prepared.roots.uid)
        except RefusedError as error:
            say(f"warning: {error}: dumps that torch writes by itself may be lost")
    prune(prepared.roots, time.time())
    job = prepared.plan.job
    say(f"job {job}; from another terminal: pardbg scan --job {shlex.quote(job)}")
    become(program, words, prepared.plan.added)


def become(program: str, words: Sequence[str], added: Mapping[str, str]) -> NoReturn:
    """Replaces this process.

    Raises:
        InputError: if the system refuses.
    """
    for name, value in added.items():
        os.environb[_encode(name)] = _encode(value)
    _restore_locale()
    for number in _IGNORED_BY_PYTHON:
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execv(program, list(words))  # noqa: S606 - what the user typed, and without a shell
    except OSError as error:
        raise explain_failed_start(program, error) from error


def _restore_locale() -> None:
    """Undoes what Python did to the locale's variable at its start; the kernel still has the first environment."""
    try:
        entries = Path("/proc/self/environ").read_bytes().split(b"\0")
    except OSError:
        return
    own = next((value for name, _, value in (entry.partition(b"=") for entry in entries) if name == _COERCED), None)
    if own is not None:
        os.environb[_COERCED] = own
    else:
        os.environb.pop(_COERCED, None)


def _choose_name(job: str | None, words: Sequence[str], present: Mapping[str, str]) -> str:
    if job is not None:
        return check_name(_decode(os.fsencode(job)), "--job")
    if own := present.get(places.JOB_VARIABLE):
        return check_name(own, places.JOB_VARIABLE)
    return propose_name(words, datetime.now().astimezone(), secrets.token_hex(2))


def _check_root(root: str) -> str:
    """Ranks may run in other folders than this one."""
    if not root.startswith("/"):
        raise InputError(
            f"{places.ROOT_VARIABLE}={root} is no absolute path", remedy="ranks may run elsewhere: give it from / on"
        )
    return root.rstrip("/") or "/"


def _startup_folder() -> str:
    """Where the installed probe's `sitecustomize.py` lies, links resolved."""
    return _decode(os.fsencode(Path(probe.__path__[0]).resolve() / "startup"))


def _decode(data: bytes) -> str:
    return data.decode(errors="surrogateescape")


def _encode(text: str) -> bytes:
    return text.encode(errors="surrogateescape")
