"""Planted and mutated files: nothing is executed, and no parser raises anything but ParseError."""

import json
import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pardbg.collectors.parsing import safe_pickle
from pardbg.collectors.parsing.flight_recorder import parse_flight_recorder
from pardbg.collectors.parsing.job_file import parse_job
from pardbg.collectors.parsing.rank_log import parse_rank_log
from pardbg.collectors.parsing.recognise import parse_file
from pardbg.collectors.parsing.stacks import parse_stacks
from pardbg.watchdog.errors import ParseError
from tests.collectors.dumps import make_dump, make_entry, pickled

MUTATIONS = 3000


def planted(witness: Path) -> dict[str, bytes]:
    command = f"touch {witness}".encode()
    text = b"X" + len(command).to_bytes(4, "little") + command
    short = b"\x8c" + bytes([len(command)]) + command
    return {
        "reduce": b"\x80\x02cos\nsystem\n" + text + b"\x85R.",
        "stack-global": b"\x80\x04\x8c\x02os\x8c\x06system\x93" + short + b"\x85R.",
        "inst": b"(S'" + command + b"'\nios\nsystem\n.",
        "obj": b"\x80\x02(cos\nsystem\n" + text + b"o.",
        "newobj": b"\x80\x02cos\nsystem\n" + text + b"\x85\x81.",
        "ext": b"\x80\x02\x82\x01" + text + b"\x85R.",
        "ext4": b"\x80\x02\x84\x01\x00\x00\x00" + text + b"\x85R.",
        "persistent": b"\x80\x02" + text + b"Q.",
        "build-on-dict": b"\x80\x02}}X\x0c\x00\x00\x00__setstate__cos\nsystem\nsb.",
        "build-plain": b"\x80\x02}X\x01\x00\x00\x00a" + text + b"\x86b.",
        "builtins": b"\x80\x02cbuiltins\neval\nX\x01\x00\x00\x001\x85R.",
        "inside-an-entry": pickled(make_dump([make_entry(0)]))[:-1] + b"0cos\nsystem\n" + text + b"\x85R.",
    }


@pytest.mark.parametrize("way", sorted(planted(Path("x"))))
def test_planted_pickle_executes_nothing(way: str, tmp_path: Path) -> None:
    witness = tmp_path / "executed"
    data = planted(witness)[way]
    for parser in (safe_pickle.loads, safe_pickle.salvage, parse_flight_recorder):
        assert_refuses_politely(parser, data)
    assert not witness.exists()


def test_planted_pickle_is_refused_with_the_name_of_what_it_asked_for(tmp_path: Path) -> None:
    with pytest.raises(ParseError, match=r"os\.system"):
        parse_file("nccl_trace_rank_3", planted(tmp_path / "x")["reduce"])


def mutate(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5, 50))):
        place = rng.randrange(len(changed) + 1)
        kind = rng.randrange(4)
        if kind == 0:
            changed[place : place + 1] = rng.randbytes(1)
        elif kind == 1:
            del changed[place : place + rng.randrange(1, 20)]
        elif kind == 2:
            changed[place:place] = rng.randbytes(rng.randrange(1, 9))
        else:
            changed = changed[:place]
    return bytes(changed)


def assert_refuses_politely(parser: Callable[[bytes], Any], data: bytes) -> None:
    words = ""
    try:
        parser(data)
    except ParseError as error:
        words = str(error)
    assert "\n" not in words
    words.encode()


@pytest.mark.usefixtures("memory_limit")
def test_mutated_dumps_raise_only_parse_errors(real_dumps: list[Path]) -> None:
    rng = random.Random(1)
    samples = [path.read_bytes() for path in real_dumps]
    for _ in range(MUTATIONS):
        assert_refuses_politely(parse_flight_recorder, mutate(rng.choice(samples), rng))


@pytest.mark.usefixtures("memory_limit")
def test_mutated_python_pickles_and_json_raise_only_parse_errors() -> None:
    rng = random.Random(2)
    dump = make_dump([make_entry(n) for n in range(3)])
    samples = [pickled(dump, 4), pickled(dump, 5), json.dumps(dump).encode()]
    for _ in range(MUTATIONS):
        assert_refuses_politely(parse_flight_recorder, mutate(rng.choice(samples), rng))


def random_value(rng: random.Random, depth: int = 0) -> Any:
    kind = rng.randrange(8 if depth < 4 else 6)
    keys = (
        "entries",
        "version",
        "pg_config",
        "pg_status",
        "frames",
        "name",
        "filename",
        "line",
        "ranks",
        "rank",
        "pid",
        "process",
    )
    scalars = (None, True, rng.getrandbits(rng.choice((3, 31, 70))), rng.random(), "\ud800" if rng.random() < 0.1 else "x", -1)
    if kind < 6:
        return scalars[kind]
    children = [random_value(rng, depth + 1) for _ in range(rng.randrange(4))]
    return children if kind == 6 else {rng.choice(keys): child for child in children}


@pytest.mark.usefixtures("memory_limit")
def test_random_values_raise_only_parse_errors() -> None:
    rng = random.Random(3)
    for _ in range(MUTATIONS):
        value = random_value(rng)
        text = json.dumps(value).encode()
        for parser in (parse_flight_recorder, parse_job, parse_stacks, lambda data: parse_file("rank_3.json", data)):
            assert_refuses_politely(parser, text)
        assert_refuses_politely(parse_flight_recorder, pickle.dumps(value, protocol=rng.choice((2, 4))))


@pytest.mark.usefixtures("memory_limit")
def test_random_bytes_raise_only_parse_errors() -> None:
    rng = random.Random(4)
    for _ in range(MUTATIONS):
        data = rng.choice((b"\x80\x02", b"\x80\x04", b"{", b"[{", b"Thread ", b"")) + rng.randbytes(rng.randrange(80))
        assert_refuses_politely(lambda data: parse_file("_dump_3", data), data)
        parse_rank_log(data.decode(errors="replace"))


def test_deep_nesting_is_refused() -> None:
    for data in (b"[" * 100_000, b'{"entries":' + b"[" * 100_000, b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b"."):
        assert_refuses_politely(lambda data: parse_file("_dump_3", data), data)
