"""What the ways to a recorder read from text: pure."""

import json
import os
import pickle
import threading

import pytest

from pardbg.collectors.live.recorders.authorship import Author, find_author
from pardbg.collectors.live.recorders.handlers import choose_questions, parse_handler_names
from pardbg.collectors.live.recorders.http_exchange import NoAnswerError, parse_answer
from pardbg.collectors.live.recorders.listening import (
    TcpAddress,
    UnixAddress,
    find_tcp_listener,
    find_unix_listener,
    parse_accepting,
    parse_socket_inode,
)
from pardbg.collectors.live.recorders.places import dump_places, has_dynamic_names, pipe_path
from pardbg.collectors.live.recorders.switched_off import (
    find_torch,
    is_off_by_default,
    is_off_by_environment,
    parse_version,
)
from pardbg.watchdog.errors import ParseError
from tests.collectors.dumps import make_dump, make_entry, pickled

UNIX_TABLE = b"""Num       RefCount Protocol Flags    Type St Inode Path
00000000ed5b3fff: 00000002 00000000 00010000 0001 01 238931 /tmp/with space/w1.sock
00000000ed5b3ffe: 00000003 00000000 00000000 0001 03 238932 /tmp/connected.sock
00000000ed5b3ffd: 00000002 00000000 00010000 0001 01 238933 @abstract
00000000ed5b3ffc: 00000003 00000000 00000000 0001 03 238934
"""
TCP6_TABLE = """  sl  local_address   remote_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000000000000000000000000000:BFB1 00000000000000000000000000000000:0000 0A 0:0 00:0 0     0        0 238953 1 0 100
   1: 0000000000000000FFFF00000100007F:740F 0000000000000000FFFF00000100007F:BA6A 01 0:0 00:0 0     0        0 238923 1 0 20
"""
TCP_TABLE = """  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:8885 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 238927 1 0 100 0 0 10 0
"""
MAPS = """7f0000000000-7f0000100000 rw-p 00000000 00:00 0
7f1fe0000000-7f1fe8000000 r-xp 00000000 08:01 99   /opt/env/lib/python3.11/site-packages/torch/lib/libtorch_cpu.so
"""


def test_only_a_thread_in_accept_names_a_listening_descriptor() -> None:
    assert parse_accepting("288 0xa 0x0 0x0 0x80000 0x0 0x7f9efdd25a07 0x7f9efdd25b90 0x7f9f1e528fa8\n", "x86_64") == 10
    assert parse_accepting("242 0x7 0x0 0x0 0x0 0x0 0x0 0x0 0x0\n", "aarch64") == 7
    assert parse_accepting("202 0x7f9ef0000c28 0x189 0x0 0x0 0x0 0xffffffff 0x0 0x0\n", "x86_64") is None
    assert parse_accepting("running\n", "x86_64") is None
    assert parse_accepting("288 0xa 0x0 0x0 0x0 0x0 0x0 0x0 0x0\n", "riscv64") is None


def test_a_descriptor_of_a_file_is_no_socket() -> None:
    assert parse_socket_inode("socket:[4711]") == 4711
    assert parse_socket_inode("/data/socket:[4711]") is None


def test_a_listening_unix_socket_is_found_by_its_inode() -> None:
    assert find_unix_listener(UNIX_TABLE, 238931) == UnixAddress(path=b"/tmp/with space/w1.sock")
    assert [find_unix_listener(UNIX_TABLE, inode) for inode in (238932, 238933, 238934, 1)] == [None] * 4


def test_a_listening_tcp_socket_is_found_by_its_inode() -> None:
    assert find_tcp_listener(TCP6_TABLE, 238953) == TcpAddress(host="::", port=0xBFB1)
    assert find_tcp_listener(TCP_TABLE, 238927) == TcpAddress(host="127.0.0.1", port=0x8885)
    assert find_tcp_listener(TCP6_TABLE, 238923) is None  # a connection


def test_the_recorder_of_nccl_is_asked_before_that_of_gloo() -> None:
    assert choose_questions({"ping", "fr_trace_json"}) == ("/handler/fr_trace_json",)
    both = choose_questions({"ping", "fr_trace_json", "dump_nccl_trace_json", "dump_nccl_trace_pickle"})
    assert both == ("/handler/dump_nccl_trace_json", "/handler/fr_trace_json")
    assert choose_questions({"ping", "dump_nccl_trace_pickle"}) == ("/handler/dump_nccl_trace_pickle?includestacktraces=false",)
    later = choose_questions({"fr_dump_file", "fr_trace_json"})
    assert later == ("/handler/fr_trace_json?backend=nccl2", "/handler/fr_trace_json")


@pytest.mark.parametrize("body", [b"", b"{}", b'["GET"]', b"[1]", b"\xff", b"<html>"])
def test_another_server_has_no_list_of_handlers(body: bytes) -> None:
    with pytest.raises(ParseError, match="worker server"):
        parse_handler_names(body)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"", "no worker server"),
        (b"SSH-2.0-OpenSSH_9.6\r\n\r\n", "no worker server"),
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 1\r\n\r\nx", "HTTP 404"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nx", "broke off"),
        (b"HTTP/1.1 200 OK\r\n\r\nx", "broke off"),
    ],
)
def test_an_answer_that_is_not_whole_is_none(answer: bytes, words: str) -> None:
    with pytest.raises(NoAnswerError, match=words):
        parse_answer(answer)


def test_the_named_prefix_alone_counts_and_its_new_name_first() -> None:
    environment = {"TORCH_NCCL_DEBUG_INFO_TEMP_FILE": b"/old/rank_", "TORCH_FR_DUMP_TEMP_FILE": b"/new/rank_"}
    assert [place.path for place in dump_places(environment, 3, b"/w", b"/home/me")] == [b"/new/rank_3"]
    assert all(place.is_named for place in dump_places(environment, 3, b"/w", b"/home/me"))


def test_without_a_prefix_the_defaults_of_all_versions_are_looked_at() -> None:
    places = dump_places({"XDG_CACHE_HOME": b"/cache"}, 3, b"/w", b"/home/me")
    assert {place.path for place in places} == {
        b"/cache/torch/comm_lib_trace_rank_3",
        b"/cache/torch/nccl_trace_rank_3",
        b"/home/me/.cache/torch/comm_lib_trace_rank_3",
        b"/home/me/.cache/torch/nccl_trace_rank_3",
        b"/tmp/nccl_trace_rank_3",
    }
    assert not any(place.is_named for place in places)


def test_a_name_may_be_relative_but_never_leads_into_proc() -> None:
    assert [place.path for place in dump_places({"TORCH_FR_DUMP_TEMP_FILE": b"fr_"}, 1, b"/w", b"/h")] == [b"/w/fr_1"]
    assert dump_places({"TORCH_FR_DUMP_TEMP_FILE": b"/proc/1/root/fr_"}, 1, b"/w", b"/h") == ()
    assert pipe_path({"TORCH_NCCL_DEBUG_INFO_PIPE_FILE": b"/w/../proc/1/root/p"}, 1, b"/w") is None
    assert pipe_path({"TORCH_NCCL_DEBUG_INFO_PIPE_FILE": b"/w/p_"}, 12, b"/x") == b"/w/p_12.pipe"
    assert pipe_path({}, 12, b"/x") is None


def test_dynamic_names_are_recognised_as_torch_does() -> None:
    assert has_dynamic_names({"TORCH_FR_DUMP_DYNAMIC_FILE_NAME": b"1"})
    assert not has_dynamic_names({"TORCH_FR_DUMP_DYNAMIC_FILE_NAME": b"0"})


def test_a_recorder_is_off_only_if_no_name_switches_it_on() -> None:
    assert is_off_by_environment({"TORCH_FR_BUFFER_SIZE": b"0"})
    assert is_off_by_environment({"TORCH_NCCL_TRACE_BUFFER_SIZE": b" 0 "})
    assert not is_off_by_environment({"TORCH_FR_BUFFER_SIZE": b"0", "TORCH_NCCL_TRACE_BUFFER_SIZE": b"2000"})
    assert not is_off_by_environment({})


def test_before_2_11_a_recorder_is_off_unless_it_is_switched_on() -> None:
    assert is_off_by_default({}, (2, 9))
    assert not is_off_by_default({}, (2, 11))
    assert not is_off_by_default({}, None)
    assert not is_off_by_default({"TORCH_NCCL_TRACE_BUFFER_SIZE": b"2000"}, (2, 9))


def test_the_version_of_torch_is_read_beside_its_mapped_library() -> None:
    assert find_torch(MAPS) == b"/opt/env/lib/python3.11/site-packages/torch/version.py"
    assert find_torch("") is None
    assert parse_version(b"__all__ = ['x']\n__version__ = '2.13.0+cpu'\ndebug = False\n") == (2, 13)
    assert parse_version(b"__version__: str = '2.4.1'\n") == (2, 4)
    assert parse_version(b"nothing") is None


def test_a_dump_belongs_to_the_process_whose_threads_issued_it() -> None:
    dump = make_dump([make_entry(0, thread_id=str(0x7F0000000800)), make_entry(1, thread_id=str(0x7F0000000900))])
    assert find_author(pickled(dump), MAPS) is Author.PROCESS
    assert find_author(json.dumps(dump).encode(), MAPS) is Author.PROCESS
    foreign = make_dump([make_entry(0, thread_id=str(0x7FFF00000000))])
    assert find_author(pickled(foreign), MAPS) is Author.ANOTHER
    assert find_author(pickled(foreign), "") is Author.UNKNOWN


@pytest.mark.parametrize("entries", [[], [make_entry(0, thread_id=...)], [make_entry(0, thread_id="x")]])
def test_a_dump_without_threads_has_no_known_author(entries: list[dict[str, object]]) -> None:
    assert find_author(pickled(make_dump(entries)), MAPS) is Author.UNKNOWN
    assert find_author(b"\x80\x02}", MAPS) is Author.UNKNOWN
    assert find_author(pickle.dumps(os.getcwd), MAPS) is Author.UNKNOWN


def test_this_process_is_the_author_of_what_its_threads_issue() -> None:
    with open("/proc/self/maps", encoding="ascii") as maps:  # noqa: PTH123
        memory_map = maps.read()
    dump = make_dump([make_entry(0, thread_id=str(threading.get_ident()))])
    assert find_author(pickled(dump), memory_map) is Author.PROCESS
