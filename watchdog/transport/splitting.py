"""Bytes as they come -> whole lines, in bounded memory whatever is sent. Pure."""


class LineSplitter:
    """Cuts a stream into lines. A line longer than ``longest_bytes`` is given cut to that length, its rest is skipped."""

    def __init__(self, longest_bytes: int) -> None:
        self._longest_bytes = longest_bytes
        self._rest = b""
        self._is_skipping = False
        self.skipped_bytes = 0

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that are whole now, without their ends."""
        *lines, last = data.split(b"\n")
        if lines:
            if self._is_skipping:
                self.skipped_bytes += len(lines.pop(0))
            else:
                lines[0] = self._rest + lines[0]
            self._rest, self._is_skipping = b"", False
            lines = [self._cut(line) for line in lines]
        if self._is_skipping:
            self.skipped_bytes += len(last)
            return lines
        self._rest += last
        if len(self._rest) > self._longest_bytes:
            lines.append(self._cut(self._rest))
            self._rest, self._is_skipping = b"", True
        return lines

    def finish(self) -> list[bytes]:
        """What is left at the end of the stream: a line without an end."""
        rest, self._rest = self._rest, b""
        return [rest] if rest else []

    def _cut(self, line: bytes) -> bytes:
        if len(line) <= self._longest_bytes:
            return line
        self.skipped_bytes += len(line) - self._longest_bytes
        return line[: self._longest_bytes]


class FrameSplitter:
    """As `LineSplitter`, for frames that share a stream: each is the end of a line, and anybody's bytes may be before it.

    Of a line longer than ``longest_bytes`` the beginning is given as a line of its own, as soon as it is too long, and the end.
    So a node that never ends its line costs the frames of no other that are glued behind it.
    """

    def __init__(self, longest_bytes: int) -> None:
        self._longest_bytes = longest_bytes
        self._rest = b""
        self._is_begun = False
        self.skipped_bytes = 0

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that are whole now, without their ends, and the beginning of one that is too long."""
        *lines, last = (self._rest + data).split(b"\n")
        found = []
        for line in lines:
            found += self._shorten(line)
            self._is_begun = False
        *begun, self._rest = self._shorten(last)
        self._is_begun = self._is_begun or bool(begun)
        return found + begun

    def finish(self) -> list[bytes]:
        """What is left at the end of the stream: a line without an end."""
        rest, self._rest = self._rest, b""
        return [rest] if rest else []

    def _shorten(self, line: bytes) -> list[bytes]:
        """Its beginning, unless that was given or it is short, and its end."""
        if len(line) <= self._longest_bytes:
            return [line]
        self.skipped_bytes += len(line) - self._longest_bytes
        begun = [] if self._is_begun else [line[: self._longest_bytes]]
        return [*begun, line[-self._longest_bytes :]]
