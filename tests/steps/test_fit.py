"""Fitting as a program would call it: the report against the model that was written."""

from __future__ import annotations

from pathlib import Path

import pytest

from bncli.engine.model import StoppedBy
from bncli.engine.schema import NumericAttribute
from bncli.errors import BncliError, UsageError
from bncli.files.model import read_model
from bncli.files.table import Source
from bncli.recipe import Recipe
from bncli.steps.discretize import discretize
from bncli.steps.fit import fit
from bncli.steps.learn_structure import learn_structure
from bncli.watch import Event, Stage

SAMPLE_DATA = Path(__file__).parents[2] / "sample_data"
CLOSED_FORM = Recipe(
    structure="kdb", k=2, param="map", level=None, init=None, penalty=None, penalty_center=None, optimizer=None,
    tolerance=None, max_iterations=None,
)  # fmt: skip


def source(name: str) -> Source:
    return Source(paths=(str(SAMPLE_DATA / name),))


def test_the_report_is_about_the_model_written(tmp_path: Path) -> None:
    report = fit(source("wine_holes.csv"), Recipe(), output=str(tmp_path / "m.bnc"))
    model = read_model(str(tmp_path / "m.bnc"))
    schema = model.schema
    assert (report.model, report.rows, report.classes) == (str(tmp_path / "m.bnc"), model.n_rows, len(schema.labels))
    assert report.attributes == len(schema.attributes) == 13
    assert report.cuts == sum(len(a.cuts) for a in schema.attributes if isinstance(a, NumericAttribute))
    assert report.used == len(model.structure.attributes)
    assert model.recipe == Recipe()
    assert report.cll > report.cll_start
    assert report.log_loss == -report.cll / 178


def test_a_closed_form_says_so(tmp_path: Path) -> None:
    report = fit(source("iris.csv"), CLOSED_FORM, output=str(tmp_path / "m.bnc"))
    assert (report.stopped_by, report.iterations) == (StoppedBy.CLOSED_FORM, 0)
    assert report.as_json()["stopped_by"] == "closed-form"


def test_weights_count_in_the_log_loss(tmp_path: Path) -> None:
    lines = (SAMPLE_DATA / "iris.csv").read_text().splitlines()
    weighted = [f"{line},2" for line in lines[1:]]
    (tmp_path / "w.csv").write_text("\n".join([lines[0] + ",w", *weighted]) + "\n")
    (tmp_path / "twice.csv").write_text("\n".join([lines[0], *lines[1:], *lines[1:]]) + "\n")
    once = fit(Source((str(tmp_path / "w.csv"),), weights="w"), CLOSED_FORM)
    twice = fit(Source((str(tmp_path / "twice.csv"),)), CLOSED_FORM)
    assert (once.rows, twice.rows) == (150, 300)
    assert once.cll == pytest.approx(twice.cll)
    assert once.log_loss == pytest.approx(twice.log_loss)


def test_every_stage_is_told_and_timed(tmp_path: Path) -> None:
    events: list[Event] = []
    report = fit(source("iris.csv"), Recipe(), output=str(tmp_path / "m.bnc"), watch=events.append)
    stages = [event.name for event in events if isinstance(event, Stage)]
    assert stages == ["read", "discretize", "structure", "parameters", "write"]
    assert list(report.seconds) == [*stages, "total"]
    assert sum(report.seconds[stage] for stage in stages) <= report.seconds["total"]


def test_the_methods_of_given_files_are_recorded(tmp_path: Path) -> None:
    cuts, dag = str(tmp_path / "cuts.json"), str(tmp_path / "dag.json")
    discretize(source("iris.csv"), Recipe(discretize="equal-width", bins=3), cuts_out=cuts)
    learn_structure(source("iris.csv"), CLOSED_FORM, cuts=cuts, output=dag)
    fit(source("iris.csv"), Recipe(), cuts=cuts, structure=dag, output=str(tmp_path / "m.bnc"))
    recipe = read_model(str(tmp_path / "m.bnc")).recipe
    assert recipe == Recipe(discretize="equal-width", bins=3, structure="kdb", k=2)


def test_nothing_is_written_over_or_left_behind(tmp_path: Path) -> None:
    data = tmp_path / "x.csv"
    data.write_text("a,b,class\n1,2,x\n")
    with pytest.raises(UsageError, match="cannot write"):
        fit(Source((str(data),)), Recipe(), output=str(data))
    with pytest.raises(BncliError):
        fit(Source((str(data),)), Recipe())
    assert [path.name for path in tmp_path.iterdir()] == ["x.csv"]
