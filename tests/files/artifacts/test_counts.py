"""The counts file: there and back, damaged, and forged."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.counting.counted_rows import CountedRows, CountsPart, count_rows, merge_counts
from bncli.engine.data.schema import CategoricalAttribute, Cuts, NumericAttribute, Schema
from bncli.errors import BncliError
from bncli.files.artifacts.archive import pack
from bncli.files.artifacts.counts import dump_counts, read_counts
from tests.datasets import random_dataset
from tests.files.archives import damaged, damaged_inside, members, sealed

CUTS = Cuts(
    "y",
    (NumericAttribute("a", False, (), (1.0,)), CategoricalAttribute("b", True, (), ("p", "q"))),
    "mdl",
)


def counted(n: int = 40, seed: int = 0) -> CountedRows:
    data = random_dataset(n, (2, 3), 2, seed=seed)
    found = count_rows(replace(data, schema=Schema("y", ("u", "v"), CUTS.attributes)), CUTS, None)
    return replace(found, parts=(CountsPart(f"{seed:064x}", n),))


CONTENT = dump_counts(counted())


def read(folder: Path, content: bytes) -> CountedRows:
    (folder / "x.counts").write_bytes(content)
    return read_counts(str(folder / "x.counts"))


def test_there_and_back_is_the_same(tmp_path: Path) -> None:
    both = [counted(seed=1), counted(30, seed=2)]
    for one in (
        counted(),
        merge_counts(both, ("u", "v")),
        merge_counts(both, ("u", "v"), 0.3),
        replace(both[0], missing_tokens=("",)),
    ):
        again = read(tmp_path, dump_counts(one))
        assert dump_counts(again) == dump_counts(one)
        assert replace(again, numbers=one.numbers) == one
        np.testing.assert_array_equal(again.numbers, one.numbers)
        assert again.numbers.dtype == one.numbers.dtype


def test_numpy_and_a_zip_reader_are_enough(tmp_path: Path) -> None:
    with zipfile.ZipFile(io.BytesIO(CONTENT)) as archive:
        assert archive.namelist() == ["counts.json", "tables.npy"]
        numbers = np.load(io.BytesIO(archive.read("tables.npy")), allow_pickle=False)
    np.testing.assert_array_equal(numbers, counted().numbers)
    assert numbers[:2].sum() == 40


@given(damaged(CONTENT))
def test_any_damaged_byte_is_noticed(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    if content != CONTENT:
        with pytest.raises(BncliError) as caught:
            read(tmp_path_factory.getbasetemp(), content)
        assert "\n" not in str(caught.value)


@given(damaged_inside(CONTENT).map(sealed))
def test_a_sealed_archive_with_damaged_insides_never_crashes(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    try:
        found = read(tmp_path_factory.getbasetemp(), content)
    except BncliError as error:
        assert "\n" not in str(error)  # noqa: PT017
    else:
        assert (found.numbers >= 0).all()


@given(st.integers(0, len(CONTENT) - 1))
def test_a_file_that_is_cut_short_is_refused(tmp_path_factory: pytest.TempPathFactory, size: int) -> None:
    with pytest.raises(BncliError, match=r"damaged or incomplete|this is"):
        read(tmp_path_factory.getbasetemp(), CONTENT[:size])


def forged(change: Callable[[dict[str, Any]], object], numbers: Callable[[bytes], bytes] = lambda data: data) -> bytes:
    parts = members(CONTENT)
    description = json.loads(parts["counts.json"])
    change(description)
    tables = numbers(parts["tables.npy"])
    return pack([("counts.json", json.dumps(description).encode()), ("tables.npy", tables)])


def changed(**keys: Any) -> bytes:
    return forged(lambda description: description.update(keys))


def many(description: dict[str, Any]) -> None:
    """Thousands of attributes of two values: tables of pairs of gigabytes."""
    one = {"type": "categorical", "levels": ["p", "q"]}
    description["cuts"]["attributes"] = [{"name": f"n{i}"} | one for i in range(8_000)]
    description["missing"] = [0] * 8_000


def with_cell(value: int) -> Callable[[bytes], bytes]:
    return lambda data: data[:-8] + value.to_bytes(8, "little", signed=True)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "this is an empty file, not a bncli counts file"),
        (b"a,b\n1,2\n", "this is a text file, perhaps a table"),
        (pack([("model.json", b"{}")]), "this is a bncli model, not a bncli counts file"),
        (pack([("counts.json", b"{}")]), "its members are not counts.json and tables.npy"),
        (changed(version=2), r"newer bncli \(format version 2\)"),
        (changed(format="bncli-model"), "not a bncli counts file"),
        (changed(extra=1), "unknown key 'extra'"),
        (changed(labels=["u"]), "does not have the size"),
        (changed(labels=["u", "u"]), "'u' is listed twice"),
        (changed(rows=-1), "out of range"),
        (changed(missing=[0]), "1 numbers for 2 attributes"),
        (changed(missing=[1, 0]), "'a' has missing values but no code for them"),
        (changed(tables="triples"), "expected a list"),
        (changed(tables=[["a", "z"]]), "'z' is not an attribute"),
        (changed(tables=[["b", "a"]]), "must be in the order of the attributes"),
        (changed(tables=[["a", "b"], ["a", "b"]]), "must be in the order of the attributes"),
        (changed(tables=[]), "does not have the size"),
        (changed(decayed=True), "does not consist of numbers"),
        (changed(parts=[{"fingerprint": "../x", "rows": 1}]), "64 hexadecimal digits"),
        (changed(parts=[{"fingerprint": "0" * 64, "rows": 1, "weight": 2}]), "between 0 and 1"),
        (changed(missing_tokens=5), "expected a list"),
        (forged(many), "does not have the size"),
        (forged(lambda description: description["cuts"].update(version=9)), "newer bncli"),
        (forged(lambda _: None, with_cell(-1)), "whole numbers of at least 0"),
        (forged(lambda _: None, with_cell(1000)), "not counted from the same rows"),
        (forged(lambda _: None, with_cell(2**62)), "not counted from the same rows"),
        (forged(lambda _: None, lambda data: data.replace(b"<i8", b"|O8")), "does not consist of whole numbers"),
        (forged(lambda _: None, lambda data: data[:-8]), "does not have the size"),
    ],
)  # fmt: skip
def test_forgeries_are_told_in_a_line(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(BncliError, match=message) as caught:
        read(tmp_path, content)
    assert "\n" not in str(caught.value)


def test_more_rows_than_float64_can_count_are_refused(tmp_path: Path) -> None:
    huge = replace(counted(), numbers=counted().numbers * 2**49)
    with pytest.raises(BncliError, match="counts more than 9,007,199,254,740,992 rows"):
        read(tmp_path, dump_counts(huge))
