"""Learning a structure from Python: the report, the file, and supplied cuts."""

from __future__ import annotations

from pathlib import Path

from bncli.files.artifacts.structure import read_structure
from bncli.files.exports.structure_json import dump_structure
from bncli.files.reading.source import Source
from bncli.recipe import Recipe
from bncli.steps.discretize import discretize
from bncli.steps.learn_structure import learn_structure
from bncli.steps.learning_inputs import read_supplied

IRIS = Source((str(Path(__file__).parents[2] / "sample_data" / "iris.csv"),))


def test_the_report_is_the_file(tmp_path: Path) -> None:
    report = learn_structure(IRIS, Recipe(structure="kdb", k=2), output=str(tmp_path / "s.json"))
    assert read_structure(str(tmp_path / "s.json")) == report.structure
    assert (tmp_path / "s.json").read_text() == dump_structure(report.structure)
    assert (report.rows, report.attributes) == (150, 4)
    assert report.arcs == 4 + 0 + 1 + 2 + 2
    assert (report.structure.method, report.structure.options) == ("kdb", {"k": 2})


def test_given_cuts_are_the_cuts_learnt(tmp_path: Path) -> None:
    discretize(IRIS, Recipe(), cuts_out=str(tmp_path / "c.json"))
    given = learn_structure(IRIS, Recipe(), supplied=read_supplied(str(tmp_path / "c.json")))
    assert given.structure == learn_structure(IRIS, Recipe()).structure
