"""Memory does not grow with the rows where a table is read as a stream: the peaks of two sizes, each in its process.

The budget of exact values is small here, so that tables past memory are small too. That the bound can fail is proved
by the same reading with the budget as it is, which holds the values of all rows.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

ROWS, PART, COLUMNS = (1_000_000, 3_000_000), 250_000, 12
VALUES = (ROWS[1] - ROWS[0]) * COLUMNS * 4 / 1e6
"""Megabytes by which the values of the one table exceed those of the other, as float32."""
CHILD = """
import sys
from pathlib import Path
from bncli.files.reading import training_rows
budget, *sys.argv = sys.argv[1:]
if budget:
    training_rows.BUDGET, training_rows.SAMPLE_ROWS = int(budget), 1 << 16
from bncli.__main__ import main
try:
    main()
finally:
    status = Path("/proc/self/status").read_text()  # not getrusage: its peak counts the process that forked this one
    print(int(status.split("VmHWM:")[1].split()[0]) / 1e3)
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of memory is read from /proc"),
]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Parquet file of each size."""
    folder = tmp_path_factory.mktemp("flat")
    schema = pa.schema([*((f"x{i}", pa.float32()) for i in range(COLUMNS)), ("class", pa.string())])
    for n_rows in ROWS:
        with parquet.ParquetWriter(folder / f"{n_rows}.parquet", schema) as writer:
            for part in range(n_rows // PART):
                rng = np.random.default_rng(part)
                y = rng.integers(0, 2, PART)
                numbers = [rng.normal(y, 1.0).round(3).astype(np.float32) for _ in range(COLUMNS)]
                rows = pa.table([*numbers, pa.array(np.array(["no", "yes"])[y])], schema=schema)
                writer.write_table(rows, row_group_size=50_000)
    return folder


def _peak(folder: Path, budget: str, *words: str) -> float:
    """The peak of a command in megabytes."""
    ran = subprocess.run(
        [sys.executable, "-c", CHILD, budget, "bncli", *words, "--threads", "2", "--quiet"],
        cwd=folder,
        stdout=subprocess.PIPE,
        check=True,
    )
    return float(ran.stdout.split()[-1])


def _growth(folder: Path, budget: str, *words: str) -> float:
    """Megabytes between the peaks of the two sizes; `{}` in the words is the size."""
    few, many = (_peak(folder, budget, *(word.format(n_rows) for word in words)) for n_rows in ROWS)
    return many - few


ENCODE = ("encode", "{}.parquet", "-o", "{}.codes")


def test_encode_stays_flat(tables: Path) -> None:
    assert _growth(tables, str(1 << 24), *ENCODE) < VALUES / 4


def test_score_stays_flat(tables: Path) -> None:
    """One file and four: within the first million rows, queues between two threads fill up."""
    parts = [f"part{i}.parquet" for i in range(4)]
    for part in parts:
        (tables / part).hardlink_to(tables / f"{ROWS[1]}.parquet")
    _peak(tables, "", "fit", parts[0], "--structure", "nb", "--param", "map", "-o", "m.bnc")
    one, four = (_peak(tables, "", "score", "m.bnc", *parts[:n], "-o", "/dev/null") for n in (1, 4))
    assert four - one < 3 * ROWS[1] * COLUMNS * 4 / 1e6 / 4


def test_what_holds_the_values_of_all_rows_does_not(tables: Path) -> None:
    assert _growth(tables, "", *ENCODE) > VALUES / 2
