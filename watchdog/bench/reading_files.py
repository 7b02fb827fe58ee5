"""Files in memory to a report, by the readers that `pardbg analyze` uses: for thousands of cases, without child processes."""

from collections.abc import Mapping

from pardbg.collectors.attribution import ReadFile, attribute
from pardbg.collectors.newest import keep_newest
from pardbg.collectors.parsing.file_names import read_name
from pardbg.collectors.parsing.recognise import Content, parse_as, recognise
from pardbg.collectors.reading_protocol import FileRead, Problem, unread
from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.judge.judge import Circumstances, judge
from pardbg.watchdog.model.names import AbsenceReason
from pardbg.watchdog.model.report import Report
from pardbg.watchdog.store.view import EvidenceView

_WHEN = "2026-11-29T15:00:00Z"


def diagnose_files(files: Mapping[str, bytes]) -> Report:
    """Diagnoses a job from the content of its files, by name."""
    read = [ReadFile(path=name, name=read_name(name), read=_read(name, files[name])) for name in sorted(files)]
    return judge(EvidenceView.of(keep_newest(attribute(read))), Circumstances(decided_at=_WHEN))


def _read(name: str, data: bytes) -> FileRead:
    content = recognise(name, data)
    if not data.strip() and content not in {Content.EMPTY_LOG, Content.UNRECOGNISED}:
        return unread(Problem(path=name, reason=AbsenceReason.EMPTY, detail="the file is empty"), content)
    try:
        return FileRead(parsed=parse_as(content, data))
    except ParseError as error:
        return unread(Problem(path=name, reason=AbsenceReason.UNREADABLE, detail=str(error)), content)
