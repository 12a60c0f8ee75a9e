"""Outcomes as CSV: read back as they were told."""

from __future__ import annotations

import csv
from pathlib import Path

from bncli.files.outcomes import write_outcomes


def test_rows_come_back(tmp_path: Path) -> None:
    rows = [{"data": 'a, "b"\nc', "error": 0.1 + 0.2, "auc": None}, {"data": "é", "error": 1e-17, "auc": 1.0}]
    write_outcomes(str(tmp_path / "o.csv"), ["data", "error", "auc"], rows)
    with open(tmp_path / "o.csv", newline="", encoding="utf-8") as file:
        told = list(csv.DictReader(file))
    assert [row["data"] for row in told] == ['a, "b"\nc', "é"]
    assert [float(row["error"]) for row in told] == [0.1 + 0.2, 1e-17]
    assert [row["auc"] for row in told] == ["", "1.0"]


def test_only_the_header(tmp_path: Path) -> None:
    write_outcomes(str(tmp_path / "o.csv"), ["a", "b"], [])
    assert (tmp_path / "o.csv").read_bytes() == b"a,b\n"
