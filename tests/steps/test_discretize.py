"""Discretizing as a program would call it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bncli.errors import UsageError
from bncli.files.artifacts.cuts import read_cuts
from bncli.files.reading.source import Source
from bncli.recipe import Recipe
from bncli.steps.discretize import discretize
from bncli.steps.learning_inputs import read_supplied

IRIS = Source((str(Path(__file__).parents[2] / "sample_data" / "iris.csv"),))


def test_the_report_is_the_file(tmp_path: Path) -> None:
    report = discretize(IRIS, Recipe(), cuts_out=str(tmp_path / "c.json"))
    assert read_cuts(str(tmp_path / "c.json")) == report.cuts
    assert (report.rows, report.n_cuts, report.table) == (150, 8, None)


def test_given_cuts_are_kept(tmp_path: Path) -> None:
    first = discretize(IRIS, Recipe(discretize="equal-width", bins=4), cuts_out=str(tmp_path / "c.json"))
    again = discretize(IRIS, Recipe(), supplied=read_supplied(str(tmp_path / "c.json")), output=str(tmp_path / "b.csv"))
    assert again.cuts == first.cuts
    lines = (tmp_path / "b.csv").read_text().splitlines()
    assert len(lines) == 151
    assert len({line.split('","')[0] for line in lines[1:]}) <= 4


def test_outputs_differ_from_inputs(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        discretize(IRIS, Recipe(), cuts_out=str(tmp_path / "c.json"), output=str(tmp_path / "c.json"))


def test_weights_that_a_schema_file_names_keep_their_name(tmp_path: Path) -> None:
    data = tmp_path / "w.csv"
    data.write_text("a,wt,class\n" + "".join(f"{i},{1 + i % 3},{'xy'[i > 20]}\n" for i in range(40)))
    (tmp_path / "w.schema.json").write_text('{"weights": "wt"}')
    discretize(Source((str(data),)), Recipe(), output=str(tmp_path / "binned.csv"))
    assert set((tmp_path / "binned.csv").read_text().splitlines()[0].split(",")) == {"a", "wt", "class"}
