"""Pages as a probe writes them, for the tests of those who read them."""

from pardbg.collectors.probe.page_format import PAGE_SIZE, EndingRecord, Record, encode_header, encode_record

HEAD_BYTES = 8  # version and checksum


def page_of(*records: Record, pid: int = 7) -> bytes:
    """A page with these records."""
    page = bytearray(PAGE_SIZE)
    head = encode_header(pid, 1)
    page[: len(head)] = head
    for record in records:
        offset, data = encode_record(record, 1)
        page[offset : offset + len(data)] = data
    return bytes(page)


def torn(page: bytes, record: Record) -> bytes:
    """The same page while that record is being written."""
    offset, data = encode_record(record, 2)
    return page[: offset + HEAD_BYTES] + data[HEAD_BYTES:] + page[offset + len(data) :]


def ending(kind: int, text: bytes = b"", *, at_ns: int = 5, code: int = -1, oom_kills: int = -1) -> EndingRecord:
    """A last word."""
    return EndingRecord(at_ns=at_ns, kind=kind, code=code, oom_kills=oom_kills, where=b"/app/train.py:7 step", text=text)
