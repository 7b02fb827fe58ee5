"""Keeps the evidence of a scan in a folder that `pardbg analyze` reads, and other tools as far as they know the forms."""

from pathlib import Path

from pardbg.collectors.parsing.job_file import encode_job
from pardbg.collectors.parsing.process import encode_process
from pardbg.collectors.parsing.saved_evidence import encode_evidence
from pardbg.collectors.parsing.stacks import encode_stack
from pardbg.watchdog.errors import InputError
from pardbg.watchdog.model.evidence import Evidence, JobDescription, Stack
from pardbg.watchdog.model.process import ProcessSample
from pardbg.watchdog.outputs.as_json import render_json
from pardbg.watchdog.scan.scan import Scanned

REST_NAME = "evidence.json"
REPORT_NAME = "report.json"


def make_folder(folder: Path, remedy: str) -> None:
    """Makes the folder for the evidence before anything is looked at, so that nobody waits for nothing.

    Raises:
        InputError: if it cannot be made, or holds something already.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        is_used = any(folder.iterdir())
    except OSError as error:
        raise InputError(f"cannot make {folder}: {error.strerror}", remedy=remedy) from error
    if is_used:
        raise InputError(f"{folder} is not an empty folder", remedy=remedy)


def save_evidence(scanned: Scanned, folder: Path) -> None:
    """Writes ``job.json``, a file a stack and a process look, everything else in ``evidence.json``, and the report."""
    rest: list[Evidence] = []
    for item in scanned.evidence:
        seen = item.observation
        if isinstance(seen, JobDescription):
            (folder / "job.json").write_bytes(encode_job(seen))
        elif isinstance(seen, ProcessSample) and item.rank is not None:
            (folder / f"process_rank{item.rank}_s{seen.sample}.json").write_bytes(encode_process(seen))
        elif isinstance(seen, Stack) and item.rank is not None and not seen.child and not seen.is_native:
            (folder / f"stack_rank{item.rank}_s{seen.sample}.json").write_bytes(encode_stack(seen))
        else:
            rest.append(item)
    (folder / REST_NAME).write_bytes(encode_evidence(rest))
    (folder / REPORT_NAME).write_text(render_json(scanned.report), encoding="utf-8")
