"""Tests of learning as a whole: its steps one by one on a small mixed table, and the warnings about a fitted model."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bncli import __version__
from bncli.engine.counting.counts import Counts
from bncli.engine.data.columns import MISSING, CategoricalColumn, Column, Columns, NumericColumn
from bncli.engine.data.cutting import cuts_of, learn_dataset
from bncli.engine.data.schema import Attribute, ReadingRules
from bncli.engine.evaluation.cross_validation import CrossValidation, Protocol, cross_validate
from bncli.engine.learn import FittedModel, SuppliedParts, learn, learn_structure, warnings_about
from bncli.engine.model import Component, Ensemble, HeldOutLoss, StoppedBy
from bncli.engine.structure_learners import kdb, tan
from bncli.engine.structures.named_structure import NamedDag, NamedRegions, name_structure
from bncli.engine.structures.regrouping import regroup_attribute
from bncli.engine.structures.structure import Dag, Grouping, Regions
from bncli.errors import BncliError
from bncli.recipe import Recipe
from bncli.watch import Event, Iteration, Note, Progress, Run, Stage
from tests import oracles
from tests.datasets import coded_rows
from tests.missing_values import complete_rows
from tests.sweeps import every_value, first_few

MAP = Recipe.of(structure="nb", param="map")


def mixed(n: int = 300, seed: int = 0, weighted: bool = False) -> Columns:
    """Numbers with and without missing values, words, a constant, a column with a single value; three classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    missing = rng.random(n) < 0.1
    word = np.where(rng.random(n) < 0.6, y, rng.integers(0, 4, n))
    return Columns(
        n,
        {
            "size": NumericColumn(rng.normal(size=n) + 2 * y),
            "age": NumericColumn(np.where(missing, np.nan, rng.normal(size=n) - y)),
            "word": CategoricalColumn(word.astype(np.int8), ("a", "b", "c", "d")),
            "same": CategoricalColumn(np.zeros(n, np.int8), ("x",)),
            "rare": CategoricalColumn(np.where(missing, MISSING, 0).astype(np.int8), ("x",)),
            "noise": NumericColumn(rng.normal(size=n)),
            "copy": CategoricalColumn(((word + (rng.random(n) < 0.2)) % 4).astype(np.int8), ("a", "b", "c", "d")),
        },
        "class",
        CategoricalColumn(y.astype(np.int8), ("no", "maybe", "yes")),
        rng.uniform(0.5, 2.0, n) if weighted else None,
    )


def cells_of(learnt: FittedModel) -> np.ndarray:
    tables = learnt.model.tables
    return np.concatenate([tables.bias[:, np.newaxis], *(w.T for w in tables.weights)], axis=1)


@pytest.mark.parametrize(
    ("recipe", "weighted"),
    every_value(
        [
            MAP,
            Recipe.of(structure="tan", param="map", smoothing="fgg:5"),
            Recipe(arcs="all"),
            Recipe(structure="kdb", k=2, param="discriminative", arcs="all"),
            Recipe(structure="nb", param="extended", penalty=0.0),
            Recipe(discretize="equal-frequency", bins=3, level=2, penalty_center=1.0, arcs="all"),
        ],
        [False, True],
    ),
)
def test_one_fit_is_its_steps(recipe: Recipe, weighted: bool) -> None:
    columns = mixed(weighted=weighted)
    learnt = learn(columns, recipe)
    model, parameters = learnt.model, learnt.parameters
    data = learn_dataset(columns, discretize=recipe.discretize, bins=recipe.bins)
    assert model.schema == data.schema
    made = recipe.replaced(group_levels=None)  # no level was pooled
    assert (model.recipe, model.n_rows, model.version) == (made, 300, __version__)
    assert model.structure.method == recipe.structure
    assert set(model.structure.class_children) == set(data.schema.informative)
    expected: Any = {"tan": tan.learn, "kdb": lambda c: kdb.learn(c, k=2)}.get(recipe.structure)
    if expected is not None:
        assert model.structure == expected(Counts(data))
    assert model.tables is parameters.tables
    cll, _ = oracles.conditional_log_likelihood(model.tables.families, data, cells_of(learnt))
    assert parameters.cll == pytest.approx(cll, rel=1e-10)
    assert cll > -300 * np.log(3)


def test_what_has_one_value_takes_no_part() -> None:
    model = learn(mixed(), MAP).model
    names = [model.schema.attributes[i].name for i in model.structure.class_children]
    assert names == ["size", "age", "word", "rare", "copy"]
    assert [a.name for a in model.schema.attributes if not a.informative] == ["same", "noise"]
    rare = model.schema.attributes[4]
    assert (rare.cardinality, rare.missing) == (2, True)


@pytest.mark.parametrize(
    "recipe",
    first_few(
        [
            Recipe(structure="nb", param="discriminative", increasing=("size",), towards="yes"),
            Recipe(),
            Recipe(structure="kdb", k=2, arcs="cv"),
            Recipe(structure="skdb", arcs="all"),
            Recipe(structure="gbn"),
        ]
    ),
)
def test_columns_of_one_value_change_no_choice(recipe: Recipe) -> None:
    columns = mixed()
    same = CategoricalColumn(np.zeros(300, np.int8), ("x",))
    more = replace(columns, attributes={"first": same, **columns.attributes, "last": same})
    few, many = learn(columns, recipe), learn(more, recipe)
    assert (many.parameters.penalty_cv, many.parameters.held_out) == (
        few.parameters.penalty_cv,
        few.parameters.held_out,
    )
    assert few.parameters.penalty_cv is not None
    np.testing.assert_array_equal(many.parameters.tables.bias, few.parameters.tables.bias)


def test_stages_are_told_in_order() -> None:
    events: list[Any] = []
    learn(mixed(), Recipe(arcs="all"), run=Run(watch=events.append))
    stages = [event.name for event in events if isinstance(event, Stage)]
    assert stages == ["discretize", "structure", "penalty", "parameters"]
    assert any(isinstance(event, Progress) for event in events)
    assert [event.iteration for event in events if isinstance(event, Iteration)][:2] == [0, 1]
    assert not [event for event in events if isinstance(event, Note)]


@pytest.mark.parametrize("recipe", [MAP, Recipe(max_iterations=12, penalty=1.0)], ids=["map", "weighted"])
@pytest.mark.usefixtures("small_blocks")
def test_threads_do_not_change_a_bit(recipe: Recipe) -> None:
    learnt = [learn(mixed(1_000), recipe, run=Run(threads)) for threads in (1, 3)]
    assert learnt[0].model.schema == learnt[1].model.schema
    assert learnt[0].model.structure == learnt[1].model.structure
    assert len({cells_of(fit).tobytes() for fit in learnt}) == 1


def test_given_cuts_are_taken_as_they_are() -> None:
    first, other = mixed(seed=1), mixed(seed=2)
    cuts = cuts_of(learn(first, MAP).model.schema, "mdl", {})
    model = learn(other, Recipe.of(structure="tan", param="map"), supplied=SuppliedParts(cuts)).model
    assert [a.name for a in model.schema.attributes] == [a.name for a in cuts.attributes]
    for given, used in zip(cuts.attributes, model.schema.attributes, strict=True):
        assert getattr(given, "cuts", None) == getattr(used, "cuts", None)
        assert getattr(given, "levels", None) == getattr(used, "levels", None)
        assert sum(used.frequencies) == 300


def test_a_given_structure_is_taken_as_it_is() -> None:
    named = NamedDag("class", {"word": ("class", "size"), "size": ("class",), "class": ("rare",), "same": ("class",)})
    model = learn(mixed(), Recipe(penalty=1), supplied=SuppliedParts(structure=named)).model
    assert model.structure == Dag(((), (), (0,), (), (), (), ()), (0, 2), (4,))
    assert [f.attributes for f in model.tables.families] == [(0,), (2, 0), (4,)]
    assert model.tables.bias.tolist() == [0.0, 0.0, 0.0]


def test_unseen_and_missing_tokens_are_written_down() -> None:
    schema = learn(mixed(), MAP, reading_rules=ReadingRules(("?",), "error")).model.schema
    assert (schema.missing_tokens, schema.unseen) == (("?",), "error")


@pytest.mark.parametrize("recipe", [MAP, Recipe()], ids=["map", "weighted"])
def test_no_rows_are_one_clear_error(recipe: Recipe) -> None:
    with pytest.raises(BncliError, match="there are no rows to learn from"):
        learn(mixed().take(np.arange(0)), recipe)


PARAMS = ("map", "weighted", "discriminative", "extended", "lr", "lr-roos")
SPOILT = ("one row", "one class", "no informative attribute")


@pytest.mark.parametrize(
    ("structure", "param", "rows"),
    [
        case
        for case in itertools.product(("nb", "tan", "kdb"), PARAMS, SPOILT)
        if case[0] == "nb" or case[1] in ("map", "weighted")
    ],
)
def test_degenerate_tables_give_a_model(structure: str, param: str, rows: str) -> None:
    recipe = Recipe.of(structure=structure, k=2 if structure == "kdb" else None, param=param)
    if structure != "nb" and param == "weighted":  # of nb held-out rows choose the penalty
        recipe = recipe.replaced(penalty=1.0)
    columns = mixed()
    assert columns.label is not None
    if rows == "no informative attribute":
        columns = replace(columns, attributes={"same": columns.attributes["same"]})
    else:
        chosen = np.arange(1) if rows == "one row" else np.flatnonzero(columns.label.codes == 1)
        columns = columns.take(chosen)
    learnt = learn(columns, recipe)
    assert learnt.model.schema.labels == ("no", "maybe", "yes")
    assert np.isfinite(cells_of(learnt)).all()
    assert learnt.parameters.cll <= 0
    assert learnt.parameters.stopped_by in StoppedBy


SUMMED: dict[str, Any] = {"param": "map", "missing_policy": "marginalize"}


@pytest.mark.parametrize("structure", ["nb", "tan", "kdb", "skdb", "hill-climb", "gbn"])
def test_marginalized_missing_values_are_available_cases(structure: str) -> None:
    """Each table is what the rows that have its whole family say."""
    options: dict[str, dict[str, Any]] = {
        "kdb": {"k": 2},
        "skdb": {"k": 2},
        "gbn": {"epsilon": 0.05},
    }
    recipe = Recipe.of(structure=structure, **SUMMED, **options.get(structure, {}))
    columns = mixed(weighted=True)
    learnt = learn(columns, recipe)
    schema = learnt.model.schema
    assert (schema.missing_policy, any(a.missing for a in schema.attributes)) == ("marginalize", False)
    assert [a.name for a in schema.attributes if not a.informative] == ["same", "rare", "noise"]
    data = coded_rows(columns, schema)
    ages = columns.attributes["age"]
    assert isinstance(ages, NumericColumn)
    assert learnt.n_missing == data.n_missing[1] == np.isnan(ages.values).sum()
    families = learnt.model.tables.families
    assert families == learnt.model.structure.families(schema.cardinalities, all_factors=True)
    for family, w in zip(families, learnt.model.tables.weights, strict=True):
        counts = oracles.count(complete_rows(data, set(family.attributes)), family.attributes)
        if family.child is not None and family.by_class:
            theta = oracles.smoothed(counts.reshape(len(counts), -1), "m-estimate:1")
            np.testing.assert_allclose(np.exp(w), theta.reshape(family.n_cells, -1), rtol=1e-10)


def test_missing_values_that_are_marginalized_are_told_by_searches_that_take_them_for_values() -> None:
    events: list[Any] = []
    recipe = Recipe.of(structure="skdb", k=1, **SUMMED)
    learn(mixed(), recipe, run=Run(watch=events.append))
    assert any("skdb treats a missing value as one more value" in e.text for e in events if isinstance(e, Note))


@pytest.mark.parametrize("param", ["weighted", "discriminative", "lr", "lr-roos"])
def test_only_probabilities_can_be_summed(param: str) -> None:
    recipe = Recipe.of(structure="nb", param=param).replaced(missing_policy="marginalize")
    with pytest.raises(BncliError, match=f"cannot be marginalized with the parameters '{param}', .*; use --param map"):
        learn(mixed(), recipe)


@pytest.mark.parametrize("structure", ["nb", "tan", "hill-climb", "gbn"])
@pytest.mark.parametrize("missing", ["rows", "column", "everything"])
def test_missing_values_everywhere(structure: str, missing: str) -> None:
    """Rows that show nothing, a column that shows nothing, a table that shows nothing."""
    columns = mixed(60)
    blank = {"rows": slice(0, 20), "column": slice(None), "everything": slice(None)}[missing]
    attributes = {}
    for name, column in columns.attributes.items():
        if missing == "column" and name != "size":
            attributes[name] = column
        elif isinstance(column, NumericColumn):
            values = column.values.astype(np.float64)
            values[blank] = np.nan
            attributes[name] = NumericColumn(values)
        else:
            codes = column.codes.copy()
            codes[blank] = MISSING
            attributes[name] = CategoricalColumn(codes, column.levels)
    recipe = Recipe.of(structure=structure, perfect=structure == "hill-climb", **SUMMED)
    learnt = learn(replace(columns, attributes=attributes), recipe)
    assert np.isfinite(cells_of(learnt)).all()
    assert learnt.parameters.cll <= 0
    if missing == "column":
        assert not learnt.model.schema.attributes[0].informative
    if missing == "everything":
        assert learnt.model.structure.class_children == ()


@pytest.mark.parametrize("param", ["extended", "em", "apn"])
def test_learners_get_the_options_that_they_take(param: str) -> None:
    typed: dict[str, dict[str, Any]] = {
        "em": {"max_iterations": 50},
        "apn": {"optimizer": "cg", "max_iterations": 20},
        "extended": {"optimizer": "cg", "max_iterations": 10, "early_stop": "cv", "seed": 1},
    }
    recipe = Recipe.of(missing_policy="marginalize", param=param, tolerance=1e-6, **typed[param])
    learnt = learn(mixed(120), recipe)
    assert learnt.model.schema.marginalizes
    assert learnt.parameters.iterations <= 50
    assert np.isfinite(cells_of(learnt)).all()


def test_regions_with_bins_of_their_own() -> None:
    """Fine singles and coarse pairs: the same model as over a table in which the pair's columns are cut coarsely."""
    named = NamedRegions("class", (("size",), ("age",), ("size", "age")), bins=(None, 3))
    recipe = Recipe(discretize="equal-frequency", bins=9, param="discriminative").replaced(structure="file")
    found = learn(mixed(), recipe, supplied=SuppliedParts(structure=named))
    families = found.model.tables.families
    assert [family.shape for family in families] == [(9,), (10,), (3, 4)], "age has a missing level"
    columns = mixed()
    copies = {f"{name} 3": columns.attributes[name] for name in ("size", "age")}
    copied = replace(columns, attributes={**columns.attributes, **copies})
    wanted = {a.name: a for a in found.model.schema.attributes}
    merged = [coarse_attribute(wanted[name], families[2].groupings[i]) for i, name in enumerate(("size", "age"))]
    cuts = cuts_of(replace(found.model.schema, attributes=(*found.model.schema.attributes, *merged)), "file", {})
    plain = NamedRegions("class", (("size",), ("age",), ("size 3", "age 3")))
    other = learn(copied, recipe, supplied=SuppliedParts(cuts, plain))
    np.testing.assert_allclose(cells_of(found), cells_of(other), atol=1e-6)
    assert name_structure(found.model.structure, found.model.schema) == named


def coarse_attribute(attribute: Attribute, grouping: Grouping | None) -> Attribute:
    assert grouping is not None
    return replace(regroup_attribute(attribute, grouping), name=f"{attribute.name} 3")


def test_a_clock_limits_the_search_that_the_recipe_limits() -> None:
    columns = mixed()
    data = learn_dataset(columns)
    recipe = Recipe(structure="kikuchi", max_order=3, theta=1.0, max_candidates=100, max_seconds=3.0)
    ticks = iter(range(100))
    found = learn_structure(Counts(data), recipe, Run(clock=lambda: float(next(ticks))))
    whole = learn_structure(Counts(data), recipe.replaced(max_seconds=None))
    assert isinstance(found, Regions)
    assert isinstance(whole, Regions)
    assert found.regions == whole.regions[:1]
    assert learn_structure(Counts(data), recipe) == replace(whole, options={**whole.options, "max_seconds": 3.0})


def pairs_matter(n_rows: int) -> Columns:
    """Three numbers; the class is whether two of them lie on the same side of their middles, but for noise."""
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(n_rows, 3))
    labels = ((x[:, 0] > 0.5) == (x[:, 1] > 0.5)) ^ (rng.uniform(size=n_rows) < 0.1)
    numbers = {f"x{i}": NumericColumn(column) for i, column in enumerate(x.T)}
    return Columns(n_rows, numbers, "class", CategoricalColumn(labels.astype(np.int8), ("no", "yes")))


@pytest.mark.slow
def test_interactions_of_many_rows_are_judged_on_few_folds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loss and base are those of the same rows, and the path of penalties ends soon after the best one."""
    columns, recipe = pairs_matter(400), Recipe.of(structure="interactions")
    whole = learn(columns, recipe).parameters
    monkeypatch.setattr("bncli.engine.learn.MANY_ROWS", 400)
    few = learn(columns, recipe).parameters
    assert whole.held_out is not None
    assert few.held_out is not None
    assert few.held_out.base_log_loss == pytest.approx(whole.held_out.base_log_loss, rel=0.02)
    assert few.held_out.log_loss != whole.held_out.log_loss
    assert few.penalty_cv is not None
    losses = [trial.log_loss for trial in few.penalty_cv.tried]
    assert few.held_out.log_loss == min(losses)
    assert all(loss <= 1.01 * min(losses[: k + 1]) + 1e-3 for k, loss in enumerate(losses[:-1]))


@pytest.mark.slow
def test_regions_that_were_edited_are_handwork_in_every_fold() -> None:
    """The penalty of a file whose pairs were taken out is that of the same regions by hand."""
    columns, recipe = pairs_matter(400), Recipe.of(structure="interactions")
    found = learn(columns, recipe.replaced(penalty=1.0)).model.structure
    assert isinstance(found, Regions)
    assert any(len(region) > 1 for region in found.regions)
    singles = NamedRegions("class", tuple((f"x{i}",) for i in range(3)))
    tried = []
    for method in ("interactions", "file"):
        fit = learn(columns, recipe, supplied=SuppliedParts(structure=replace(singles, method=method)))
        assert fit.parameters.penalty_cv is not None
        tried.append(fit.parameters.penalty_cv.tried)
    assert tried[0] == tried[1]


N = 600
MANY, NEGLIGIBLE = 20, 1e-3
"""The most values of a column that are not many; the largest share of a loss that is no gain."""


def table(**columns: Column) -> Columns:
    """Return columns of N rows; `label` is the class."""
    label = columns.pop("label")
    assert isinstance(label, CategoricalColumn)
    return Columns(N, columns, "label", label)


def names(codes: Any, n: int) -> CategoricalColumn:
    return CategoricalColumn(np.asarray(codes, np.int16), tuple(f"v{i:03}" for i in range(n)))


def warnings_of(columns: Columns, **options: object) -> list[str]:
    """Return the warnings of a fit, which reports no other notes."""
    heard: list[Event] = []
    learn(columns, Recipe.of(**options), run=Run(watch=heard.append))  # type: ignore[arg-type]
    notes = [event for event in heard if isinstance(event, Note)]
    assert all(note.warning for note in notes)
    return [note.text for note in notes]


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


@pytest.fixture
def good(rng: np.random.Generator) -> dict[str, Column]:
    """Return a class and attributes that depend on it."""
    y = rng.integers(0, 2, N)
    return {
        "x": NumericColumn(y + rng.normal(0, 0.7, N)),
        "a": names(np.where(rng.random(N) < 0.8, y, 2), 3),
        "label": names(y, 2),
    }


@pytest.mark.parametrize("options", [{}, {"structure": "nb"}, {"param": "map"}, {"structure": "kdb", "k": 2}])
def test_a_good_model_gets_no_warning(good: dict[str, Column], options: dict[str, Any]) -> None:
    assert warnings_of(table(**good), **options) == []


@pytest.mark.parametrize("param", ["weighted", "map"])
def test_a_model_that_uses_no_attribute(rng: np.random.Generator, param: str) -> None:
    label = names(rng.integers(0, 2, N), 2)
    kept = {"param": param} if param == "map" else {"param": param, "arcs": "all"}
    noise = table(x=NumericColumn(rng.normal(size=N)), y=NumericColumn(rng.normal(size=N)), label=label)
    (text,) = warnings_of(noise, param=param)
    assert text.startswith("the model does not use any of the 2 attributes: every row gets the class frequencies of")
    assert "--discretize equal-frequency" in text
    assert "--class" in text
    assert all("does not use" not in text for text in warnings_of(noise, discretize="equal-frequency", **kept))
    (text,) = warnings_of(table(a=names(np.zeros(N), 1), label=label), param=param)
    assert text.startswith("the model does not use the only attribute: ")
    assert "--discretize" not in text


def test_attributes_that_do_not_help_on_held_out_rows_are_not_used(rng: np.random.Generator) -> None:
    noise = table(
        a=names(rng.integers(0, 6, N), 6), b=names(rng.integers(0, 6, N), 6), label=names(np.arange(N) % 2, 2)
    )
    (text,) = warnings_of(noise)
    assert text.startswith("the model does not use any of the 2 attributes: every row gets the class frequencies of")
    assert "which have the lower held-out log-loss" in text
    assert "--discretize" not in text


def test_a_model_no_better_than_the_class_frequencies(rng: np.random.Generator, good: dict[str, Column]) -> None:
    noise = {name: names(rng.integers(0, 6, N), 6) for name in ("a", "b")}
    (text,) = warnings_of(table(**noise, label=good["label"]), arcs="all")
    assert text.startswith("on held-out rows, the model is no better than the class frequencies alone (log-loss 0.6")
    assert "'label'" in text
    assert "--structure auto" in text
    # nothing is held out where there is nothing to choose by it
    assert warnings_of(table(**noise, label=good["label"]), penalty=1) == []


@pytest.mark.parametrize(
    ("loss", "base", "is_warned"),
    [(0.7, 0.69, True), (0.69, 0.69, True), (0.69 * (1 - 0.9 * NEGLIGIBLE), 0.69, True), (0.6893, 0.69, False)],
)
def test_a_negligible_gain_is_no_gain(good: dict[str, Column], loss: float, base: float, is_warned: bool) -> None:
    fitted = learn(table(**good), Recipe.of(param="map"))
    parameters = replace(fitted.parameters, held_out=HeldOutLoss(loss, base))
    texts = list(warnings_about(fitted.model, parameters))
    assert [text.startswith("on held-out rows, the model is no better") for text in texts] == [True] * is_warned


@pytest.mark.slow
def test_the_column_that_makes_most_parameters_is_named(rng: np.random.Generator, good: dict[str, Column]) -> None:
    town = names(rng.permutation(np.arange(N) % 300), 300)
    texts = warnings_of(
        table(**{"a": good["a"], "my town": town, "x": good["x"], "label": good["label"]}),
        group_levels="off",
        arcs="all",
    )
    (text,) = (text for text in texts if "parameters" in text)
    n = int(text.split()[0].replace(",", ""))
    assert n > N
    assert f" parameters from {N} rows: " in text
    assert " of them belong to 'my town', which has 300 values; " in text
    assert text.endswith("leave it out (--ignore 'my town'), pool its values (--group-levels) or learn --structure nb")


def test_naive_bayes_is_not_advised_to_use_naive_bayes(rng: np.random.Generator, good: dict[str, Column]) -> None:
    town = names(np.arange(N) % 400, 400)
    texts = warnings_of(table(town=town, **good), structure="nb", param="map", group_levels="off")
    (text,) = (text for text in texts if "parameters" in text)
    assert text.endswith(
        "'town', which has 400 values; leave it out (--ignore 'town') or pool its values (--group-levels)"
    )
    assert "--structure nb" not in text


def test_far_too_many_parameters_without_a_penalty_are_reported(rng: np.random.Generator) -> None:
    y = rng.integers(0, 2, N)
    columns = {f"a{i}": names(np.where(rng.random(N) < 0.3, y, rng.integers(0, 6, N)), 6) for i in range(8)}
    deep = {"structure": "kdb", "k": 4}
    (text,) = warnings_of(table(**columns, label=names(y, 2)), param="map", **deep)
    assert re.match(r"[0-9,]+ parameters from 600 rows and no penalty \(the largest table is over 'a.', ", text)
    assert text.endswith("; learn with --param discriminative or learn --structure nb")
    (text,) = warnings_of(table(**columns, label=names(y, 2)), penalty=0, max_iterations=2, **deep)
    assert text.endswith("; learn with --penalty cv or learn --structure nb")
    assert warnings_of(table(**columns, label=names(y, 2)), penalty=1, max_iterations=2, **deep) == []


def test_twenty_values_are_not_many(rng: np.random.Generator, good: dict[str, Column]) -> None:
    codes = names(np.arange(N) % MANY, MANY)
    assert warnings_of(table(codes=codes, **good), structure="kdb", k=2) == []


@pytest.mark.parametrize(("n_parameters", "is_warned"), [(50 * N, False), (50 * N + 1, True)])
def test_fifty_times_the_rows_are_too_many_parameters_without_a_penalty(
    good: dict[str, Column], n_parameters: int, is_warned: bool
) -> None:
    found = learn(table(**good), Recipe.of(param="map"))
    texts = list(warnings_about(found.model, replace(found.parameters, n_parameters=n_parameters)))
    assert [text.startswith(f"{n_parameters:,} parameters from 600 rows and no penalty") for text in texts] == (
        [True] if is_warned else []
    )


@pytest.mark.parametrize(("n_values", "is_warned"), [(20, False), (21, True)])
def test_more_than_twenty_values_are_many(good: dict[str, Column], n_values: int, is_warned: bool) -> None:
    codes = names(np.arange(N) % n_values, n_values)
    found = learn(table(codes=codes, **good), Recipe.of(param="map", structure="nb", group_levels="off"))
    texts = list(warnings_about(found.model, replace(found.parameters, n_parameters=N + 1)))
    assert ["'codes', which has 21 values" in text for text in texts] == ([True] if is_warned else [])


def test_an_ensemble_is_judged_by_held_out_rows_alone(rng: np.random.Generator, good: dict[str, Column]) -> None:
    town = names(rng.permutation(np.arange(N) % 300), 300)
    found = learn(table(town=town, **good), Recipe.of(param="map", group_levels="off"))
    assert [text for text in warnings_about(found.model, found.parameters) if "parameters from" in text]
    ensemble = replace(found.model, predictor=Ensemble((Component(1.0, found.model.tables, "tree"),)))
    assert list(warnings_about(ensemble, found.parameters)) == []
    (text,) = warnings_about(ensemble, replace(found.parameters, held_out=HeldOutLoss(0.7, 0.69)))
    assert text.startswith("on held-out rows, the model is no better than the class frequencies alone (log-loss 0.7 ")
    assert "--structure auto" not in text


@pytest.mark.slow
def test_cross_validation_warns_once(rng: np.random.Generator) -> None:
    heard: list[Event] = []
    noise = table(x=NumericColumn(rng.normal(size=N)), label=names(rng.integers(0, 2, N), 2))
    folds = list(
        cross_validate(
            noise, CrossValidation(Recipe(structure="tan", arcs="cv"), Protocol(2, 2)), Run(watch=heard.append)
        )
    )
    assert len(folds) == 4
    (note,) = (event for event in heard if isinstance(event, Note))
    assert note.warning
    assert note.text.startswith("in the first fold, the model does not use the only attribute: ")
