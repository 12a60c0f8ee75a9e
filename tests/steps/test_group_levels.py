"""Pooled levels from one command to the next: files, step by step, and rows as they are in a table."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bncli.engine.data.schema import CategoricalAttribute
from bncli.files.artifacts.model import read_model
from bncli.files.reading.source import Source
from bncli.recipe import Recipe
from bncli.recipe.defaults import SuppliedKinds
from bncli.steps.discretize import discretize
from bncli.steps.evaluate.evaluate import evaluate
from bncli.steps.export import export
from bncli.steps.fit import fit
from bncli.steps.inspect import inspect
from bncli.steps.learn_structure import learn_structure
from bncli.steps.learning_inputs import read_supplied
from bncli.steps.score import ScoreOutput, score
from bncli.steps.simulate import SimulateOutputs, simulate
from bncli.watch import Event, Note, Run
from tests.sweeps import first_few

HEADER = ("town", "street", "age", "side", "class")


@pytest.fixture
def table(tmp_path: Path) -> Source:
    """500 rows: two kinds of towns, streets that say nothing, a number and a side."""
    rng = np.random.default_rng(0)
    town = rng.integers(0, 40, 500)
    y = rng.random(500) < np.where(town % 3 == 0, 0.9, 0.1)
    age = np.round(rng.normal(40 + 8 * y, 9), 1)
    rows = [
        (f"t{t}" if t else "?", f"s{s}", a, side, "yes" if c else "no")
        for t, s, a, side, c in zip(town, rng.integers(0, 200, 500), age, rng.choice(["l", "r"], 500), y, strict=True)
    ]
    return written(tmp_path / "rows.csv", HEADER, rows)


def written(path: Path, header: Sequence[str], rows: Sequence[Sequence[object]]) -> Source:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return Source((str(path),))


def notes(heard: list[Event]) -> list[str]:
    return [event.text for event in heard if isinstance(event, Note)]


def test_step_by_step_is_one_fit(table: Source, tmp_path: Path) -> None:
    recipe = Recipe(param="map")
    fit(table, recipe, output=str(tmp_path / "one.bnc"))
    cuts, structure = str(tmp_path / "c.json"), str(tmp_path / "s.json")
    discretize(table, Recipe(), cuts_out=cuts)
    learn_structure(table, Recipe(), supplied=read_supplied(cuts), output=structure)
    supplied = read_supplied(cuts, structure)
    fit(
        table,
        Recipe.of(param="map", files=SuppliedKinds(cuts, structure)),
        supplied=supplied,
        output=str(tmp_path / "two.bnc"),
    )
    assert (tmp_path / "one.bnc").read_bytes() == (tmp_path / "two.bnc").read_bytes()
    model = read_model(str(tmp_path / "one.bnc"))
    assert model.recipe.group_levels == "auto"
    assert model.schema.pooled


def test_a_model_says_of_pooling_only_where_levels_are_pooled(table: Source, tmp_path: Path) -> None:
    for words in ({"group_levels": "off"}, {"group_levels": 300}):
        fit(table, Recipe(param="map", **words), output=str(tmp_path / f"{words['group_levels']}.bnc"))
    assert (tmp_path / "off.bnc").read_bytes() == (tmp_path / "300.bnc").read_bytes()
    assert b"group" not in (tmp_path / "off.bnc").read_bytes()
    discretize(table, Recipe(group_levels="off"), cuts_out=str(tmp_path / "c.json"))
    assert "group" not in (tmp_path / "c.json").read_text()


@pytest.mark.parametrize(
    "words", first_few([{"structure": "nb"}, {"structure": "kikuchi"}, {"structure": "auto", "effort": 1}], 2), ids=str
)
def test_fit_tells_what_was_pooled(table: Source, tmp_path: Path, words: dict[str, Any]) -> None:
    """`auto` keeps an effect for every town, drawn in, and pools none."""
    heard: list[Event] = []
    fit(table, Recipe(**words), output=str(tmp_path / "m.bnc"), run=Run(watch=heard.append))
    told = notes(heard)
    assert sum(
        "levels with similar information about the class were pooled: town 39 -> 2 groups" in text for text in told
    ) == (words["structure"] != "auto")
    assert sum("'street' (" in text and "left out" in text for text in told) == 1


def test_evaluate_tells_it_of_the_first_fold_alone(table: Source) -> None:
    heard: list[Event] = []
    evaluate(table, Recipe(structure="nb", param="map"), run=Run(watch=heard.append))
    told = [text.partition(",")[0] for text in notes(heard) if "belong together" not in text]
    assert told == ["in the first fold", "in the first fold"]


def test_the_values_of_a_group_score_alike(table: Source, tmp_path: Path) -> None:
    model, out = str(tmp_path / "m.bnc"), str(tmp_path / "out.csv")
    fit(table, Recipe(structure="nb"), output=model)
    town = read_model(model).schema.attributes[0]
    assert isinstance(town, CategoricalAttribute)
    one, other = town.groups
    values = [one[0], one[1], town.levels[0], other[0], other[1], town.levels[1], "elsewhere"]
    rows = written(tmp_path / "new.csv", HEADER[:-1], [(value, "s1", 40, "l") for value in values])
    report = score(model, rows, ScoreOutput(path=out))
    found = [row["p_yes"] for row in csv.DictReader(Path(out).read_text().splitlines())]
    assert len(set(found[:3])) == len(set(found[3:6])) == 1
    assert found[0] != found[3]
    assert {name: n for name, n in report.unseen.items() if n} == {"town": 1}


def test_what_others_read_has_the_names_of_groups(table: Source, tmp_path: Path) -> None:
    model = str(tmp_path / "m.bnc")
    fit(table, Recipe(param="map"), output=model)
    town = read_model(model).schema.attributes[0]
    assert isinstance(town, CategoricalAttribute)
    (shown, *_) = inspect(model).as_json()["attributes"]
    assert shown["levels"] == list(town.levels)
    assert shown["groups"] == [list(group) for group in town.groups]
    xml = export(model, "xmlbif").text
    assert xml is not None
    assert all(name in xml for name in town.levels)


def test_rows_drawn_from_a_model_are_read_by_it(table: Source, tmp_path: Path) -> None:
    model, drawn = str(tmp_path / "m.bnc"), str(tmp_path / "drawn.csv")
    fit(table, Recipe(param="map"), output=model)
    simulate(model, 50, SimulateOutputs(drawn))
    report = score(model, Source((drawn,)), ScoreOutput(path=str(tmp_path / "out.csv")))
    assert sum(report.unseen.values()) == 0


def test_a_binned_table_is_read_with_the_cuts_that_made_it(table: Source, tmp_path: Path) -> None:
    cuts, binned = str(tmp_path / "c.json"), str(tmp_path / "b.csv")
    discretize(table, Recipe(), cuts_out=cuts, output=binned)
    content = json.loads(Path(cuts).read_text())
    content["attributes"] = [a for a in content["attributes"] if a["type"] == "categorical"]
    Path(cuts).write_text(json.dumps(content))
    report = discretize(Source((binned,)), Recipe(), supplied=read_supplied(cuts))
    first = discretize(table, Recipe(), supplied=read_supplied(cuts))
    assert report.attributes == first.attributes
