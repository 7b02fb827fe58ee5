"""One child process that reads GPUs: started, heard, ended. Nothing here ever waits for it longer than a moment."""

import importlib.util
import json
import os
from collections.abc import Collection
from pathlib import Path

from pardbg.collectors.gpu.messages import Message, parse_message
from pardbg.collectors.own_child import child_command, end_child, start_child
from pardbg.watchdog.errors import ParseError

_MODULE = "pynvml"
_PIPE_READ_BYTES = 65536


def find_nvml_binding() -> str | None:
    """The folder that holds pynvml, None if there is none. It is not imported here: that would take 5 MB."""
    found = importlib.util.find_spec(_MODULE)
    return str(Path(found.origin).parent) if found is not None and found.origin else None


class NvmlChild:
    """A running child. `is_over`: it has ended, or talks nonsense."""

    def __init__(self, binding: str, *, period_s: float, skip: Collection[int] = ()) -> None:
        """Starts it, in a session of its own: Ctrl-C reaches us, who end it.

        Args:
            binding: the folder of pynvml.
            period_s: how far apart its samples are.
            skip: GPUs it does not touch.

        Raises:
            OSError: if the system starts no more processes.
        """
        command = [*child_command("pardbg.collectors.gpu.nvml_child"), binding]
        self._process = start_child(command)
        self.is_over = False
        self._received = b""
        os.set_blocking(self.fileno(), False)
        wish = json.dumps({"period_s": period_s, "skip": sorted(skip)}).encode() + b"\n"
        if self._process.stdin is not None:
            self._process.stdin.write(wish)

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def fileno(self) -> int:
        """The descriptor on which it writes."""
        if self._process.stdout is None:
            raise ValueError("the child has no output")
        return self._process.stdout.fileno()

    def hear(self) -> list[Message]:
        """All that it has said since, without waiting."""
        messages: list[Message] = []
        while not self.is_over:
            try:
                part = os.read(self.fileno(), _PIPE_READ_BYTES)
            except BlockingIOError:
                break
            self.is_over = not part
            *lines, self._received = (self._received + part).split(b"\n")
            try:
                messages += map(parse_message, lines)
            except ParseError:
                self.is_over = True
        return messages

    def end(self) -> None:
        """Kills it. One in uninterruptible sleep stays until the driver lets it go; we do not wait."""
        end_child(self._process)
