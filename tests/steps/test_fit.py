"""Fitting as a program would call it: the report against the model that was written."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bncli.engine.data.schema import Cuts, NumericAttribute
from bncli.engine.model import StoppedBy
from bncli.engine.structures.named_structure import NamedDag
from bncli.errors import BncliError, UsageError
from bncli.files.artifacts.cuts import write_cuts
from bncli.files.artifacts.model import read_model
from bncli.files.artifacts.structure import write_structure
from bncli.files.reading.source import Source
from bncli.recipe import Recipe
from bncli.recipe.defaults import SuppliedKinds
from bncli.steps.discretize import discretize
from bncli.steps.fit import fit
from bncli.steps.learn_structure import learn_structure
from bncli.steps.learning_inputs import read_supplied
from bncli.watch import Event, Note, Run, Stage

SAMPLE_DATA = Path(__file__).parents[2] / "sample_data"
CLOSED_FORM = Recipe.of(structure="kdb", k=2, param="map")


def source(name: str) -> Source:
    return Source(paths=(str(SAMPLE_DATA / name),))


def test_the_report_is_about_the_model_written(tmp_path: Path) -> None:
    recipe = Recipe.of(structure="nb", penalty=1.0)
    report = fit(source("wine_holes.csv"), recipe, output=str(tmp_path / "m.bnc"))
    model = read_model(str(tmp_path / "m.bnc"))
    schema = model.schema
    assert (report.model, report.rows, report.classes) == (str(tmp_path / "m.bnc"), model.n_rows, len(schema.labels))
    assert report.attributes == len(schema.attributes) == 13
    assert report.cuts == sum(len(a.cuts) for a in schema.attributes if isinstance(a, NumericAttribute))
    assert report.used == len(model.structure.attributes)
    assert model.recipe == recipe.replaced(group_levels=None)  # no level was pooled
    assert report.cll > report.cll_start
    assert report.log_loss == -report.cll / 178


def test_a_closed_form_says_so(tmp_path: Path) -> None:
    report = fit(source("iris.csv"), CLOSED_FORM, output=str(tmp_path / "m.bnc"))
    assert (report.stopped_by, report.iterations) == (StoppedBy.CLOSED_FORM, 0)
    assert report.as_json()["stopped_by"] == "closed-form"


def test_the_class_and_what_a_structure_leaves_out_are_told(tmp_path: Path) -> None:
    dag = NamedDag("class", {"petal_width": ("class",)})
    write_structure(str(tmp_path / "dag.json"), dag)
    report = fit(
        source("iris.csv"),
        CLOSED_FORM,
        supplied=read_supplied(None, str(tmp_path / "dag.json")),
        output=str(tmp_path / "m.bnc"),
    )
    assert (report.class_name, report.labels) == ("class", ("setosa", "versicolor", "virginica"))
    assert report.left_out == ("sepal_length", "sepal_width", "petal_length")
    assert report.as_json().items() >= {"class": "class", "left_out": list(report.left_out)}.items()


def test_a_structure_for_another_class_is_named(tmp_path: Path) -> None:
    write_structure(str(tmp_path / "dag.json"), NamedDag("species", {"petal_width": ("species",)}))
    with pytest.raises(UsageError, match=r"no column 'species', .*dag\.json uses it as the class"):
        fit(
            source("iris.csv"),
            CLOSED_FORM,
            supplied=read_supplied(None, str(tmp_path / "dag.json")),
            output=str(tmp_path / "m.bnc"),
        )


DRAWING = "digraph { class -> {petal_width petal_length} petal_width -> petal_length }"


def test_a_structure_of_another_program_gives_the_same_model(tmp_path: Path) -> None:
    (tmp_path / "x.gv").write_text(DRAWING)
    dag = NamedDag("class", {"petal_width": ("class",), "petal_length": ("class", "petal_width")})
    write_structure(str(tmp_path / "x.json"), dag)
    models = []
    for name in ("x.gv", "x.json"):
        fit(
            source("iris.csv"),
            CLOSED_FORM,
            supplied=read_supplied(None, str(tmp_path / name)),
            output=str(tmp_path / "m.bnc"),
        )
        models.append((tmp_path / "m.bnc").read_bytes())
    assert models[0] == models[1]


@pytest.mark.parametrize(
    ("text", "class_name", "message"),
    [
        (DRAWING.replace("petal_width", "petals"), None, r"unknown attribute 'petals', .*x\.gv"),
        (DRAWING, "sepal_length", r"the class 'sepal_length' is not a node of the structure, .*x\.gv; .*--class"),
        (DRAWING + "}", None, r"expected the end of the file after the graph, found '}', .*x\.gv, line 1, column"),
    ],
)
def test_faults_of_a_structure_name_its_file(tmp_path: Path, text: str, class_name: str | None, message: str) -> None:
    (tmp_path / "x.gv").write_text(text)
    data = replace(source("iris.csv"), class_name=class_name, categorical=(class_name,) if class_name else ())
    with pytest.raises(BncliError, match=message):
        fit(
            data,
            CLOSED_FORM,
            supplied=read_supplied(None, str(tmp_path / "x.gv")),
            output=str(tmp_path / "m.bnc"),
        )


def test_columns_that_a_cuts_file_leaves_out_are_told(tmp_path: Path) -> None:
    write_cuts(str(tmp_path / "cuts.json"), Cuts("class", (NumericAttribute("petal_width", False, (), (0.8,)),), "mdl"))
    notes: list[Event] = []
    fit(
        source("iris.csv"),
        CLOSED_FORM,
        supplied=read_supplied(str(tmp_path / "cuts.json")),
        output=str(tmp_path / "m"),
        run=Run(watch=notes.append),
    )
    assert Note("columns that are not in the cuts file were left out: sepal_length, sepal_width, petal_length") in notes


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
    recipe = Recipe.of(structure="nb")
    report = fit(source("iris.csv"), recipe, output=str(tmp_path / "m.bnc"), run=Run(watch=events.append))
    stages = [event.name for event in events if isinstance(event, Stage)]
    assert stages == ["read", "discretize", "structure", "penalty", "parameters", "write"]
    assert list(report.seconds) == [*stages, "total"]
    assert sum(report.seconds[stage] for stage in stages) <= report.seconds["total"]


def test_the_methods_of_given_files_are_recorded(tmp_path: Path) -> None:
    cuts, dag = str(tmp_path / "cuts.json"), str(tmp_path / "dag.json")
    discretize(source("iris.csv"), Recipe(discretize="equal-width", bins=3), cuts_out=cuts)
    learn_structure(source("iris.csv"), CLOSED_FORM, supplied=read_supplied(cuts), output=dag)
    from_files = Recipe.of(files=SuppliedKinds(cuts=cuts, structure=dag))
    fit(source("iris.csv"), from_files, supplied=read_supplied(cuts, dag), output=str(tmp_path / "m.bnc"))
    recipe = read_model(str(tmp_path / "m.bnc")).recipe
    assert recipe == Recipe(discretize="equal-width", bins=3, structure="kdb", k=2).replaced(group_levels=None)


def test_missing_values_that_are_marginalized_step_by_step_as_at_once(tmp_path: Path) -> None:
    recipe = CLOSED_FORM.replaced(missing_policy="marginalize")
    cuts, dag = str(tmp_path / "cuts.json"), str(tmp_path / "dag.json")
    report = fit(source("wine_holes.csv"), recipe, output=str(tmp_path / "once.bnc"))
    discretize(source("wine_holes.csv"), recipe, cuts_out=cuts)
    learn_structure(source("wine_holes.csv"), recipe, supplied=read_supplied(cuts), output=dag)
    fit(source("wine_holes.csv"), recipe, supplied=read_supplied(cuts, dag), output=str(tmp_path / "steps.bnc"))
    assert (tmp_path / "once.bnc").read_bytes() == (tmp_path / "steps.bnc").read_bytes()
    assert (report.missing_policy, report.holes) == ("marginalize", 260)
    assert report.log_loss == -report.cll / 178


def test_a_structure_learner_needs_no_parameters_to_sum_out(tmp_path: Path) -> None:
    report = learn_structure(source("wine_holes.csv"), Recipe().replaced(missing_policy="marginalize"))
    assert report.attributes == 13


def test_nothing_is_written_over_or_left_behind(tmp_path: Path) -> None:
    data = tmp_path / "x.csv"
    data.write_text("a,b,class\n1,2,x\n")
    with pytest.raises(UsageError, match="cannot write"):
        fit(Source((str(data),)), Recipe(), output=str(data))
    with pytest.raises(BncliError):
        fit(Source((str(data),)), Recipe())
    assert [path.name for path in tmp_path.iterdir()] == ["x.csv"]


def test_what_was_held_out_is_reported(tmp_path: Path) -> None:
    report = fit(source("iris.csv"), Recipe(), output=str(tmp_path / "m.bnc"))
    assert report.held_out is not None
    assert report.penalty_cv is not None
    assert report.held_out.log_loss == min(one.log_loss for one in report.penalty_cv.tried)
    assert report.held_out.base_log_loss == pytest.approx(math.log(3), abs=0.01)
    assert report.as_json()["held_out"] == report.held_out._asdict()
    assert report.warnings == ()


@pytest.mark.parametrize("recipe", [CLOSED_FORM, Recipe.of(penalty=1), Recipe.of(structure="kikuchi")])
def test_nothing_is_held_out_where_nothing_is_chosen_by_it(tmp_path: Path, recipe: Recipe) -> None:
    report = fit(source("iris.csv"), recipe, output=str(tmp_path / "m.bnc"))
    assert report.held_out is None
    assert report.as_json()["held_out"] is None


def test_every_warning_of_the_run_is_reported_once(tmp_path: Path) -> None:
    """One of reading, one of learning."""
    rows = [f"{i % 7},{i % 100 / 4}\n" for i in range(700)]
    (tmp_path / "x.csv").write_text("a,price\n" + "".join(rows))
    heard: list[Event] = []
    run = Run(watch=heard.append)
    report = fit(Source((str(tmp_path / "x.csv"),)), Recipe(), output=str(tmp_path / "m.bnc"), run=run)
    assert [text[:40] for text in report.warnings] == [
        "the class 'price' looks like a numeric v",
        "the model does not use the only attribut",
    ]
    assert [event.text for event in heard if isinstance(event, Note) and event.warning] == list(report.warnings)
    assert report.as_json()["warnings"] == list(report.warnings)


@pytest.mark.parametrize("trend", [0, 1])
def test_a_running_number_is_named_if_the_model_uses_it(trend: int, tmp_path: Path) -> None:
    """Without a trend, its cuts give no information about the class."""
    lines = ["no,x,y"]
    for i in range(400):
        x = (i * 7919) % 97
        lines.append(f"{5000 + i},{x},{'yes' if x + (i * 31) % 41 + trend * i / 4 > 68 else 'no'}")
    table = tmp_path / "table.csv"
    table.write_text("\n".join(lines) + "\n")
    report = fit(Source((str(table),)), Recipe(structure="nb"), output=str(tmp_path / "model.bnc"))
    about = [warning for warning in report.warnings if "identifier" in warning]
    expected = "'no' is used, but every row has its own number in it: possibly an identifier; "
    expected += "add --ignore no to leave it out"
    assert about == [expected] * trend
    assert report.uninformative == (() if trend else ("no",))


MONKS = Source((str(Path(__file__).parents[2] / "sample_data" / "monks1.csv"),))


@pytest.mark.parametrize(
    "words",
    [
        {"structure": "tan", "param": "map"},
        {"structure": "kdb", "k": 2, "param": "discriminative"},
        {"structure": "kikuchi"},
        {"structure": "interactions"},
        pytest.param({"structure": "auto"}, marks=pytest.mark.slow),
        {"param": "em"},
        {"param": "apn"},
        {"structure": "skdb", "param": "map"},
        {"structure": "hill-climb", "param": "acll"},
    ],
    ids=lambda words: " ".join(map(str, words.values())),
)
def test_few_words_are_enough_for_fit(tmp_path: Path, words: dict[str, Any]) -> None:
    recipe = Recipe(**words)
    report = fit(MONKS, recipe, output=str(tmp_path / "m.bnc"))
    assert read_model(str(tmp_path / "m.bnc")).recipe == recipe.replaced(group_levels=None)  # nothing was pooled
    assert report.log_loss < 0.7
