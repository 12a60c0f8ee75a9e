"""Reading a file.

Beside pyarrow's own typed reading of it: 200,000 rows of 6 numbers, 8 categories and a class, all types given. CPU
time, least of several runs. The Parquet file holds 1,000,000 rows of 12 numbers, 12 categories as dictionaries and a
class; its plain read decodes the dictionaries.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from pyarrow import parquet

from bncli.engine.data.columns import KnownCuts, NumericColumn
from bncli.engine.data.cutting import learn_dataset
from bncli.engine.data.schema import CategoricalAttribute, NumericAttribute, Schema
from bncli.engine.evaluation.table_checks import check_table
from bncli.files.reading.source import Source
from bncli.files.reading.training_rows import read_columns
from tests.batches import read_batches
from tests.performance.conftest import Recorder

pytestmark = pytest.mark.performance
N_ROWS = 200_000
FAST_SORT = "numpy sorts four times as fast with AVX-512, with which nothing else becomes as fast"


def cpu(work: Callable[[], object], times: int = 5) -> float:
    """The least CPU time of several runs."""
    spent = []
    for _ in range(times):
        start = time.process_time()
        work()
        spent.append(time.process_time() - start)
    return min(spent)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> str:
    rng = np.random.default_rng(0)
    columns = [np.round(rng.normal(size=N_ROWS) * 100, 4).astype(str) for _ in range(3)]
    columns += [rng.integers(0, 10 ** (i + 2), N_ROWS).astype(str) for i in range(3)]
    columns += [np.char.add(f"level_{i}_", rng.integers(0, 3 + 4 * i, N_ROWS).astype(str)) for i in range(8)]
    columns.append(rng.choice(["yes", "no"], N_ROWS))
    names = [*(f"x{i}" for i in range(6)), *(f"c{i}" for i in range(8)), "class"]
    path = tmp_path_factory.mktemp("mixed") / "mixed.csv"
    with open(path, "w") as file:
        file.write(",".join(names) + "\n")
        file.writelines(",".join(row) + "\n" for row in zip(*(column.tolist() for column in columns), strict=True))
    return str(path)


def plain(path: str) -> float:
    types = {f"x{i}": pa.float64() if i < 3 else pa.int64() for i in range(6)}
    types |= {f"c{i}": pa.string() for i in range(8)} | {"class": pa.string()}
    options = pa.csv.ReadOptions(use_threads=False)
    convert = pa.csv.ConvertOptions(column_types=types)
    return cpu(lambda: pa.csv.read_csv(path, options, convert_options=convert))


def test_reading_to_learn(mixed: str, record: Recorder) -> None:
    record("read to learn", cpu(lambda: read_columns(Source((mixed,)))) / plain(mixed), "x the plain read", 2)


def test_reading_to_score(mixed: str, record: Recorder) -> None:
    table = read_columns(Source((mixed,)))
    attributes = tuple(
        NumericAttribute(name, False, ())
        if isinstance(column, NumericColumn)
        else CategoricalAttribute(name, False, (), column.levels)
        for name, column in table.attributes.items()
    )
    assert table.label is not None
    schema = Schema("class", table.label.levels, attributes)
    needed = tuple(attribute.name for attribute in attributes)

    def drain() -> None:
        assert sum(batch.columns.n_rows for batch in read_batches(Source((mixed,)), schema, needed)) == N_ROWS

    record("read to score", cpu(drain) / plain(mixed), "x the plain read", 1.7)


@pytest.fixture(scope="module")
def coded(tmp_path_factory: pytest.TempPathFactory) -> str:
    rng = np.random.default_rng(0)
    n_rows = 1_000_000
    columns: dict[str, pa.Array] = {}
    for i in range(12):
        x = rng.normal(size=n_rows)
        kinds = (x, np.round(x * 100, 2), np.rint(x * 1000).astype(np.int64), np.exp(x).astype(np.float32))
        columns[f"x{i}"] = pa.array(kinds[i % 4])
        levels = (3, 8, 20, 50, 200, 12)[i % 6]
        codes = pa.array(rng.integers(0, levels, n_rows).astype(np.int32))
        columns[f"c{i}"] = pa.DictionaryArray.from_arrays(codes, pa.array([f"level {k}" for k in range(levels)]))
    columns["class"] = pa.array(rng.choice(["yes", "no"], n_rows)).dictionary_encode()
    path = tmp_path_factory.mktemp("coded") / "coded.parquet"
    parquet.write_table(pa.table(columns), path, row_group_size=1 << 17)
    return str(path)


def decoded(path: str) -> None:
    """Read a Parquet file batch by batch, dictionaries decoded."""
    for batch in parquet.ParquetFile(path).iter_batches(1 << 16, use_threads=False):
        for column in batch.columns:
            if pa.types.is_dictionary(column.type):
                column.dictionary_decode()


def test_reading_dictionaries(coded: str, record: Recorder) -> None:
    plain_read = cpu(lambda: decoded(coded))
    ratio = cpu(lambda: read_columns(Source((coded,)))) / plain_read
    kept = cpu(lambda: parquet.read_table(coded, use_threads=False)) / plain_read
    detail = f"pyarrow.parquet.read_table, which decodes no dictionary, takes {kept:.2f} times the plain read"
    missed = "batches are validated, and the columns are kept: their memory is written for the first time"
    record("read Parquet to learn", ratio, "x the plain read", 1, detail, missed=missed)


def test_checking_many_rows(coded: str, record: Recorder) -> None:
    """Checks before learning, beside a sort of each column of numbers."""
    columns = read_columns(Source((coded,)))
    numbers = [c.values for c in columns.attributes.values() if isinstance(c, NumericColumn)]
    own, sort = cpu(lambda: check_table(columns, {}), 3), cpu(lambda: [np.sort(values) for values in numbers], 3)
    detail = f"own {own:.2f} s, sort {sort:.2f} s"
    record(
        "checks of 1,000,000 rows before learning", own / sort, "x a sort of the numbers", 4, detail, missed=FAST_SORT
    )


def test_cutting_many_rows(coded: str, record: Recorder) -> None:
    """Beside a sort of each column of numbers."""
    columns = read_columns(Source((coded,)))
    numbers = [c.values for c in columns.attributes.values() if isinstance(c, NumericColumn)]
    ratio = cpu(lambda: learn_dataset(columns), 3) / cpu(lambda: [np.sort(values) for values in numbers], 3)
    record("cuts and codes of 1,000,000 rows", ratio, "x a sort of the numbers", 2.5)


def test_checking_and_cutting_many_rows(coded: str, record: Recorder) -> None:
    """As a fit does both: the checks find the cuts of the columns that they sort. Beside a sort of each column."""
    columns = read_columns(Source((coded,)))
    numbers = [c.values for c in columns.attributes.values() if isinstance(c, NumericColumn)]
    assert columns.label is not None
    label = columns.label

    def check_and_cut() -> None:
        known = KnownCuts("mdl", label, {})
        check_table(columns, {}, known_cuts=known)
        learn_dataset(replace(columns, known_cuts=known))

    own, sort = cpu(check_and_cut, 3), cpu(lambda: [np.sort(values) for values in numbers], 3)
    what = "checks, cuts and codes of 1,000,000 rows in one fit"
    detail = f"own {own:.2f} s, sort {sort:.2f} s"
    record(what, own / sort, "x a sort of the numbers", 4, detail, missed=FAST_SORT)
