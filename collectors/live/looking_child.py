"""The child process that reads `/proc` for a scan: a stuck process may keep it for ever, and nothing else suffers."""

import os
from typing import BinaryIO

import msgspec

from pardbg.collectors.first_to_go import be_the_first_to_go
from pardbg.collectors.live.asking_protocol import LENGTH, Answer, Denied, Gone, GroupsRead, GroupsRequest, Looked, Question
from pardbg.collectors.live.group_memory import read_group
from pardbg.collectors.live.look import Looker, ProcessGoneError
from pardbg.collectors.live.process_folder import ProcessFolder
from pardbg.collectors.procfs.stat import parse_stat
from pardbg.watchdog.errors import ParseError


def main() -> None:
    """Serves until the parent closes the pipe."""
    be_the_first_to_go()
    with os.fdopen(os.dup(0), "rb") as questions, os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)  # nothing else may write between the frames
        serve(questions, answers)


def serve(questions: BinaryIO, answers: BinaryIO) -> None:
    """Answers each question in order."""
    looker = Looker()
    decoder = msgspec.msgpack.Decoder(Question)
    while len(length := questions.read(LENGTH.size)) == LENGTH.size:
        body = msgspec.msgpack.encode(_answer(looker, decoder.decode(questions.read(LENGTH.unpack(length)[0]))))
        answers.write(LENGTH.pack(len(body)) + body)
        answers.flush()


def _answer(looker: Looker, question: Question) -> Answer:
    try:
        if isinstance(question, GroupsRequest):
            return _read_groups(question)
        sample, is_partial = looker.look(question.pid, question.started_ticks, question.store_port)
    except PermissionError:
        return Denied()
    except (ProcessGoneError, ProcessLookupError, FileNotFoundError):
        return Gone()
    return Looked(sample=sample, is_partial=is_partial)


def _read_groups(question: GroupsRequest) -> Answer:
    with ProcessFolder(question.pid) as folder:
        try:
            is_same = parse_stat(folder.text("stat") or "").started_ticks == question.started_ticks
        except ParseError:
            is_same = False
        if not is_same:
            return Gone()
        found = (read_group(folder.memory, address, question.world_size) for address in question.addresses)
        return GroupsRead(groups=tuple(found))


if __name__ == "__main__":
    main()
