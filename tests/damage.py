"""Columnar files with damage done to them, read in a process that may die of it.

`python -m tests.damage FIRST LAST FORMAT...` reads the mutations [FIRST, LAST) of each format, each as learning and as
scoring read it, and prints a JSON object a format: how many ended how, and what went wrong with which mutation. The
reading is done in a child that is started anew when it dies, and that the system keeps from more than MEMORY bytes.
Mutation i of a format is the same in every run.
"""

from __future__ import annotations

import datetime
import decimal
import io
import json
import os
import random
import resource
import signal
import struct
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import pyarrow as pa
from pyarrow import feather, parquet

from bncli.engine.data.schema import CategoricalAttribute, Schema
from bncli.errors import BncliError
from bncli.files.reading.source import Source
from bncli.files.reading.training_rows import read_columns
from tests.batches import read_batches

MEMORY = 3 << 30
"""Bytes of address space, of which the interpreter and its libraries take about 1 GB."""
ALLOWED = 64 << 20
"""Bytes that Arrow may hold for a file of a few kilobytes."""
PATIENCE = 20
"""Seconds for one file."""

Encode = Callable[[pa.Table], bytes]


def _plain() -> pa.Table:
    n = 40
    return pa.table(
        {
            "int": pa.array([i if i % 7 else None for i in range(n)], pa.int64()),
            "small": pa.array([i % 5 for i in range(n)], pa.int8()),
            "unsigned": pa.array([i * 3 for i in range(n)], pa.uint64()),
            "float": pa.array([i / 3 if i % 5 else None for i in range(n)]),
            "half": pa.array([i / 4 for i in range(n)], pa.float32()),
            "text": [f"value {i % 6}" if i % 9 else None for i in range(n)],
            "long": pa.array([f"é{i}" for i in range(n)], pa.large_string()),
            "name": pa.array([f"level {i % 3}" if i % 8 else None for i in range(n)]).dictionary_encode(),
            "code": pa.array([i % 4 for i in range(n)]).dictionary_encode(),
            "flag": [bool(i % 2) if i % 6 else None for i in range(n)],
            "money": pa.array([decimal.Decimal(i) / 100 for i in range(n)], pa.decimal128(12, 2)),
            "vast": pa.array([decimal.Decimal(i) for i in range(n)], pa.decimal256(76, 10)),
            "day": pa.array([datetime.date(2020, 1, 1 + i % 28) if i % 4 else None for i in range(n)]),
            "moment": pa.array([i * 10**15 for i in range(n)], pa.timestamp("ns")),
            "zoned": pa.array([i * 10**9 for i in range(n)], pa.timestamp("ms", tz="Europe/Paris")),
            "time": pa.array([i * 1000 for i in range(n)], pa.time64("us")),
            "none": pa.nulls(n),
            "class": ["u", "v"] * (n // 2),
        }
    )


def _nested() -> pa.Table:
    n = 24
    return pa.table(
        {
            "list": [list(range(i % 4)) if i % 5 else None for i in range(n)],
            "large": pa.array([["a"] * (i % 3) for i in range(n)], pa.large_list(pa.string())),
            "fixed": pa.array([[i, i + 1] for i in range(n)], pa.list_(pa.int32(), 2)),
            "record": [{"a": i, "b": f"b{i}"} for i in range(n)],
            "map": pa.array([[("k", i)] for i in range(n)], pa.map_(pa.string(), pa.int64())),
            "bytes": pa.array([b"ab%d" % (i % 10) for i in range(n)], pa.binary()),
            "binary": pa.array([b"abcd"] * n, pa.binary(4)),
            "listed": pa.array(
                [["x", "y"][: i % 3] for i in range(n)], pa.list_(pa.dictionary(pa.int8(), pa.string()))
            ),
            "lasting": pa.array(range(n), pa.duration("s")),
            "x": [i / 2 for i in range(n)],
            "class": ["u", "v", "w"] * (n // 3),
        }
    )


def _arrow_only() -> pa.Table:
    """Types that Parquet does not know."""
    n = 24
    union = pa.UnionArray.from_sparse(
        pa.array([i % 2 for i in range(n)], pa.int8()), [pa.array(range(n)), pa.array([f"t{i}" for i in range(n)])]
    )
    dense = pa.UnionArray.from_dense(
        pa.array([i % 2 for i in range(n)], pa.int8()),
        pa.array([i // 2 for i in range(n)], pa.int32()),
        [pa.array(range(n)), pa.array([f"t{i}" for i in range(n)])],
    )
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([6, 12, n], pa.int32()), pa.array(["a", "b", "a"]))
    view = pa.array([f"a text too long for the view {i % 5}" if i % 4 else "short" for i in range(n)], pa.string_view())
    lists = pa.array([[i] * (i % 3) for i in range(n)], pa.list_view(pa.int64()))
    spans = pa.array([(1, i, 5) for i in range(n)], pa.month_day_nano_interval())
    label = pa.array(["u", "v"] * (n // 2))
    arrays = [union, dense, runs, view, lists, spans, pa.array([i % 5 for i in range(n)]), label]
    return pa.table(arrays, names=["union", "dense", "runs", "view", "lists", "spans", "x", "class"])


def _in_batches(table: pa.Table, new: Callable[..., Any], **options: Any) -> bytes:
    sink = io.BytesIO()
    with new(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table, max_chunksize=(table.num_rows + 2) // 3)
    return sink.getvalue()


def _deltas(new: Callable[..., Any], **options: Any) -> bytes:
    """Dictionaries that grow, or (where a stream may) change, from batch to batch."""
    sink = io.BytesIO()
    schema = pa.schema([("name", pa.dictionary(pa.int8(), pa.string())), ("class", pa.string())])
    with new(sink, schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        for levels in (["a", "b"], ["a", "b", "c"], ["a", "b", "c", "d"]):
            codes = pa.array([i % len(levels) for i in range(12)], pa.int8())
            names = pa.DictionaryArray.from_arrays(codes, pa.array(levels))
            writer.write_batch(pa.record_batch([names, pa.array(["u", "v"] * 6)], schema=schema))
    return sink.getvalue()


def _parquet(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    parquet.write_table(table, sink, row_group_size=(table.num_rows + 2) // 3, **options)
    return sink.getvalue()


def _feather(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    feather.write_feather(table, sink, chunksize=(table.num_rows + 2) // 3, **options)
    return sink.getvalue()


def _ipc(new: Callable[..., Any], **deltas: Any) -> list[bytes]:
    plain, nested, rare = _plain(), _nested(), _arrow_only()
    return [
        _in_batches(plain, new, unify_dictionaries=True),
        _in_batches(plain, new, compression="lz4", unify_dictionaries=True),
        _in_batches(plain, new, compression="zstd", unify_dictionaries=True),
        _in_batches(nested.drop_columns(["listed"]), new),
        _in_batches(nested.drop_columns(["listed"]), new, compression="lz4"),
        _in_batches(rare, new),
        _deltas(new, **deltas),
    ]


def _parquets() -> list[bytes]:
    plain, nested = _plain(), _nested()
    flat = plain.select(["int", "unsigned", "text", "long", "class"])
    delta = dict.fromkeys(("int", "unsigned"), "DELTA_BINARY_PACKED")
    delta |= {"text": "DELTA_BYTE_ARRAY", "long": "DELTA_LENGTH_BYTE_ARRAY", "class": "PLAIN"}
    return [
        _parquet(plain),
        _parquet(plain, compression="none", use_dictionary=False),
        _parquet(plain, compression="zstd", data_page_version="2.0", write_page_checksum=True),
        _parquet(plain, compression="gzip", store_schema=False, write_page_index=True),
        _parquet(nested.drop_columns(["binary"])),
        _parquet(nested, compression="lz4", use_dictionary=False),
        _parquet(flat, compression="none", use_dictionary=False, column_encoding=delta),
        _parquet(
            plain.select(["float", "half", "class"]), use_dictionary=False, use_byte_stream_split=["float", "half"]
        ),
    ]


@cache
def originals(kind: str) -> tuple[bytes, ...]:
    """The sound files of a format."""
    if kind == "parquet":
        return tuple(_parquets())
    if kind == "file":
        return tuple(_ipc(pa.ipc.new_file, emit_dictionary_deltas=True))
    if kind == "stream":
        streams = _ipc(pa.ipc.new_stream, emit_dictionary_deltas=True)
        return (*streams, _deltas(pa.ipc.new_stream))
    plain = _plain()
    return tuple(_feather(plain, compression=codec) for codec in ("uncompressed", "lz4", "zstd"))


@cache
def names_of(kind: str) -> tuple[tuple[str, ...], ...]:
    """The columns of each of them."""
    if kind == "parquet":
        return tuple(tuple(parquet.read_schema(io.BytesIO(data)).names) for data in originals(kind))
    new = pa.ipc.open_stream if kind == "stream" else pa.ipc.open_file
    return tuple(tuple(new(data).schema.names) for data in originals(kind))


WITHOUT_TEXT = ("list", "large", "fixed", "record", "map", "listed", "union", "dense", "runs", "lists", "spans")
FORMATS = ("parquet", "file", "stream", "feather")


def mutation(kind: str, i: int) -> tuple[str, bytes]:
    """What is done to which of the format's files, in words, and the damaged bytes."""
    dice = random.Random(f"{kind} {i}")
    which = i % len(originals(kind))
    what, data = _damaged(originals(kind)[which], dice)
    return f"file {which}: {what}", data


def _damaged(data: bytes, dice: random.Random) -> tuple[str, bytes]:
    at = dice.randrange(len(data))
    # The numbers that lie best stand in the metadata, at the end of some formats and the beginning of others.
    if dice.random() < 0.3:
        at = dice.randrange(max(0, len(data) - 1500), len(data))
    way = dice.choices(
        ("flip", "set", "number", "truncate", "insert", "zero", "copy", "flips"), (6, 4, 5, 1, 1, 1, 1, 1)
    )[0]
    if way == "flip":
        return f"bit flipped at {at}", data[:at] + bytes([data[at] ^ 1 << dice.randrange(8)]) + data[at + 1 :]
    if way == "set":
        value = dice.choice((0, 1, 0x7F, 0x80, 0xFF, dice.randrange(256)))
        return f"byte {at} set to {value}", data[:at] + bytes([value]) + data[at + 1 :]
    if way == "number":
        at -= at % 4
        new = struct.pack(
            *dice.choice(
                (
                    ("<q", 2**63 - 1),
                    ("<q", -1),
                    ("<q", 2**40),
                    ("<i", 2**31 - 1),
                    ("<i", -(2**31)),
                    ("<i", 2**30),
                    ("<q", 2**31),
                )
            )
        )
        return f"number at {at}: {new.hex()}", (data[:at] + new + data[at + len(new) :])[: len(data)]
    size = dice.choice((1, 4, 8, 64, 300))
    if way == "truncate":
        return f"cut off at {at}", data[:at]
    if way == "insert":
        return f"{size} bytes inserted at {at}", data[:at] + dice.randbytes(size) + data[at:]
    if way == "zero":
        return f"{size} zeros at {at}", (data[:at] + bytes(size) + data[at + size :])[: len(data)]
    if way == "copy":
        start = dice.randrange(len(data))
        return f"{size} bytes of {start} at {at}", (data[:at] + data[start : start + size] + data[at + size :])[
            : len(data)
        ]
    changed = bytearray(data)
    for _ in range(6):
        changed[dice.randrange(len(data))] = dice.randrange(256)
    return "six bytes changed", bytes(changed)


def read_both(path: str, names: Sequence[str]) -> str:
    """The file as learning and as scoring read it, with columns of these names: `read`, or the error in one line."""
    textless = tuple(name for name in names if name in WITHOUT_TEXT)
    try:
        read_columns(Source((path,), ignore=textless))
        outcome = "read"
    except BncliError as error:
        outcome = _one_line(error)
    try:
        schema = Schema("class", ("u", "v"), (CategoricalAttribute("x", False, (), ("u", "v", "w")),))
        keep = [name for name in names if name not in textless]
        for _ in read_batches(Source((path,), on_bad_row="skip"), schema, (), keep=keep):
            pass
    except BncliError as error:
        outcome = _one_line(error)
    return outcome


def _one_line(error: BncliError) -> str:
    assert "\n" not in str(error), str(error)
    assert error.where or error.hint, str(error)
    return f"Error: {error}"


def _outcome(path: str, kind: str, i: int) -> str:
    _what, data = mutation(kind, i)
    with open(path, "wb") as file:
        file.write(data)
    signal.alarm(PATIENCE)
    try:
        outcome = read_both(path, names_of(kind)[i % len(originals(kind))])
    except Exception as error:  # what the user would see as an internal error
        outcome = f"internal: {type(error).__name__}: {error}"
    signal.alarm(0)
    held = pa.default_memory_pool().max_memory()
    return f"held {held} bytes; {outcome}" if held > ALLOWED else outcome


def _child(pipe: int, kind: str, first: int, last: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with tempfile.NamedTemporaryFile() as file:
        for i in range(first, last):
            outcome = _outcome(file.name, kind, i).replace(file.name, "FILE")
            os.write(pipe, json.dumps(outcome).encode() + b"\n")
            if outcome.startswith("held"):
                return  # the most that was ever held can be measured once


def survey(kind: str, first: int, last: int) -> dict[str, Any]:
    """Counts of outcomes, and the failures: mutation, what it was, how it ended."""
    counts: Counter[str] = Counter()
    failures: list[tuple[int, str, str]] = []
    messages: Counter[str] = Counter()
    i = first
    originals(kind)
    while i < last:
        outcomes, status = _run(kind, i, last)
        if os.WIFSIGNALED(status):
            outcomes.append(f"killed by {signal.Signals(os.WTERMSIG(status)).name}")
        assert outcomes, f"the child ended with status {status} before mutation {i}"
        for outcome in outcomes:
            word = outcome.split()[0].strip(":")
            counts[word] += 1
            if word not in ("read", "Error"):
                failures.append((i, mutation(kind, i)[0], outcome))
            else:
                messages[outcome[:100]] += 1
            i += 1
    return {"counts": counts, "failures": failures, "messages": messages.most_common(60)}


def _run(kind: str, first: int, last: int) -> tuple[list[str], int]:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        try:
            _child(writing, kind, first, last)
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as pipe:
        lines = pipe.read().splitlines()
    return [json.loads(line) for line in lines], os.waitpid(pid, 0)[1]


if __name__ == "__main__":
    print(json.dumps({kind: survey(kind, int(sys.argv[1]), int(sys.argv[2])) for kind in sys.argv[3:]}, indent=1))
