"""`score --because` through the command line: the columns, what they mean, and what is refused."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import Bncli


@pytest.fixture
def model(bncli: Bncli) -> str:
    assert bncli("fit", "tumours.csv", "--structure", "nb", "--param", "map", "-o", "m.bnc", "-q").code == 0
    return "m.bnc"


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_the_values_alone_decide(bncli: Bncli, model: str) -> None:
    """Rows that keep only the values of the set, all other values exchanged, get the same prediction."""
    found = rows(bncli("score", model, "tumours.csv", "--because", "--keep-all", "-q").out)
    assert {row["because_exact"] for row in found} == {"true"}
    names = [name for name in found[0] if name not in ("because", "because_exact", "prediction", "class")]
    attributes = [name for name in names if not name.startswith("p_")]
    kept = [[pair.partition("=")[0] for pair in row["because"].split("|")] for row in found]
    assert all(set(members) <= set(attributes) for members in kept)
    for other in (found[0], found[-1], found[len(found) // 2]):
        lines = [",".join(attributes)]
        for row, members in zip(found, kept, strict=True):
            lines.append(",".join(row[name] if name in members else other[name] for name in attributes))
        Path("others.csv").write_text("\n".join(lines) + "\n")
        again = rows(bncli("score", model, "others.csv", "-q").out)
        assert [row["prediction"] for row in again] == [row["prediction"] for row in found]


def test_a_row_has_the_same_answer_wherever_it_stands(bncli: Bncli, model: str) -> None:
    forward = rows(bncli("score", model, "tumours.csv", "--because", "-q").out)
    header, *lines = Path("tumours.csv").read_text().splitlines()
    Path("backward.csv").write_text("\n".join([header, *lines[::-1]]) + "\n")
    backward = bncli("score", model, "backward.csv", "--because", "-q")
    assert rows(backward.out)[::-1] == forward


def test_formats(bncli: Bncli, model: str) -> None:
    line = bncli("score", model, "tumours.csv", "--because", "--row", "1", "--output-format", "jsonl", "-q").out
    answer = json.loads(line)
    assert answer["because_exact"] is True
    assert "=" in answer["because"]
    bncli("score", model, "tumours.csv", "--because", "-o", "s.parquet", "-q")
    table = pq.read_table("s.parquet")
    assert table.schema.field("because_exact").type == pa.bool_()
    assert table["because"][0].as_py() == answer["because"]


def test_a_search_without_time_says_what_is_open(bncli: Bncli) -> None:
    drawn = ("--network", "tan", "--attributes", "20", "--rows", "400", "--seed", "3")
    assert bncli("simulate", *drawn, "-o", "d.csv", "-q").code == 0
    assert bncli("fit", "d.csv", "--structure", "tan", "--param", "map", "-o", "t.bnc", "-q").code == 0
    ran = bncli("score", "t.bnc", "d.csv", "--because", "--because-seconds", "0", "--row", "1-100")
    n_open = sum(row["because_exact"] == "false" for row in rows(ran.out))
    assert n_open
    assert re.search(rf"for {n_open} rows, a set with .* may exist \(because_exact is false\)", ran.err)


def test_refusals(bncli: Bncli, model: str) -> None:
    ran = bncli("score", model, "tumours.csv", "--because-seconds", "2")
    assert ran.code == 2
    assert "--because-seconds has no effect without --because" in ran.err
    assert bncli("fit", "iris.csv", "--param", "map", "-o", "i.bnc", "-q").code == 0
    ran = bncli("score", "i.bnc", "iris.csv", "--because", "--abstain-below", "0.5")
    assert ran.code == 3
    assert ran.err.count("\n") == 1
    assert "--abstain-below" in ran.err
