"""What was typed, and the recipe that it means."""

from __future__ import annotations

from pathlib import Path

import pytest

from bncli.catalogue import SMOOTHINGS
from bncli.cli.learning_options import resolve_learning_options
from bncli.errors import UsageError
from bncli.recipe import Recipe
from bncli.recipe.defaults import parse_rule
from bncli.steps.learning_inputs import SuppliedFiles, read_supplied


def test_nothing_typed_is_the_default_recipe() -> None:
    assert resolve_learning_options({}).recipe == Recipe()


@pytest.mark.parametrize(
    ("typed", "init"),
    [
        ({}, "zero"),
        ({"penalty": 0.0}, "generative"),
        ({"penalty": 2.0}, "zero"),
        ({"penalty": "cv"}, "zero"),
        ({"penalty": "cv", "penalty_center": "1"}, "generative"),
        ({"penalty_center": "1"}, "generative"),
        ({"penalty": 0.0, "init": "zero"}, "zero"),
        ({"init": "generative"}, "generative"),
    ],
)
def test_the_start_follows_from_the_penalty(typed: dict[str, object], init: str) -> None:
    assert resolve_learning_options(typed).recipe.init == init


def test_closed_form_parameters_have_no_optimiser() -> None:
    recipe = resolve_learning_options({"param": "map", "smoothing": "fgg"}).recipe
    assert recipe == Recipe.of(smoothing="fgg:5", param="map")


@pytest.mark.parametrize(
    ("typed", "penalty", "seed"),
    [
        ({}, "cv", 0),
        ({"penalty": "cv", "seed": 3}, "cv", 3),
        ({"param": "lr", "seed": 3}, "cv", 3),
        ({"penalty": 2.0, "seed": 3}, 2.0, None),
        ({"param": "map", "seed": 3}, None, None),
    ],
)
def test_the_seed_is_recorded_where_it_matters(typed: dict[str, object], penalty: object, seed: int | None) -> None:
    recipe = resolve_learning_options(typed).recipe
    assert (recipe.penalty, recipe.seed) == (penalty, seed)


def test_options_of_methods_have_defaults() -> None:
    recipe = resolve_learning_options(
        {"discretize": "equal-width", "structure": "kdb", "param": "discriminative"}
    ).recipe
    assert (recipe.bins, recipe.k, recipe.level) == (10, 1, None)
    assert resolve_learning_options({"structure": "kdb", "k": 0}).recipe.k == 0


@pytest.mark.parametrize(
    ("typed", "fields"),
    [
        ({}, {"missing_policy": "level", "early_stop": None}),
        ({"param": "map", "missing_policy": "marginalize"}, {"missing_policy": "marginalize", "early_stop": None}),
        (
            {"param": "extended", "missing_policy": "marginalize", "seed": 4},
            {"early_stop": "cv", "penalty": 0.0, "optimizer": "newton", "init": "generative", "seed": 4},
        ),
        (
            {"param": "extended", "missing_policy": "marginalize", "early_stop": "none"},
            {"early_stop": "none", "penalty": "cv", "optimizer": "newton", "init": "zero"},
        ),
        ({"param": "extended"}, {"early_stop": "none", "penalty": "cv", "optimizer": "newton"}),
        ({"param": "extended", "early_stop": "cv", "penalty": 1.0}, {"early_stop": "cv", "penalty": 1.0, "seed": 0}),
        (
            {"param": "em"},
            {"missing_policy": "marginalize", "optimizer": None, "penalty": None, "tolerance": "auto", "seed": None},
        ),
        (
            {"param": "apn", "seed": 3},
            {"missing_policy": "marginalize", "optimizer": "cg", "penalty": None, "init": None, "seed": None},
        ),
    ],
)
def test_what_a_missing_value_is(typed: dict[str, object], fields: dict[str, object]) -> None:
    recipe = resolve_learning_options({"param": None, **typed}).recipe
    assert {name: getattr(recipe, name) for name in fields} == fields


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("mle", "mle"),
        ("laplace", "laplace:1"),
        ("m-estimate", "m-estimate:1"),
        ("fgg", "fgg:5"),
        ("bdeu", "bdeu:1"),
        ("laplace:0.5", "laplace:0.5"),
        ("laplace:.50", "laplace:0.5"),
        ("bdeu:10", "bdeu:10"),
        ("bdeu:1e1", "bdeu:10"),
        ("fgg:1e-3", "fgg:0.001"),
        ("fgg:0.1234567890123456", "fgg:0.1234567890123456"),
    ],
)
def test_smoothing_rules_are_written_out(text: str, rule: str) -> None:
    assert parse_rule(text, SMOOTHINGS) == rule


@pytest.mark.parametrize("text", ["", "lapace", "mle:1", "laplace:", "laplace:0", "fgg:-1", "bdeu:nan", "bdeu:1e999"])
def test_other_smoothing_rules_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--smoothing"):
        parse_rule(text, SMOOTHINGS)


def test_a_method_beats_a_file_of_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nb").touch()
    (tmp_path / "mine").write_text('{"format": "bncli-structure", "version": 1, "class": "y", "parents": {"x": ["y"]}}')
    plain = Recipe(structure="nb")
    assert resolve_learning_options({"structure": "nb"}) == (plain, SuppliedFiles(), ())
    assert resolve_learning_options({"structure": "mine"}) == (
        plain.replaced(structure="file"),
        read_supplied(None, "mine"),
        (),
    )


@pytest.mark.parametrize(
    ("typed", "fields"),
    [
        ({}, {"structure_score": "cmi", "forest": False, "k": None}),
        ({"forest": True, "structure_score": "bdeu"}, {"structure_score": "bdeu:1", "forest": True}),
        ({"structure_score": "bdeu:2.50"}, {"structure_score": "bdeu:2.5"}),
        ({"structure_score": "acll"}, {"structure_score": "acll:5", "pseudo_counts": None}),
        (
            {"structure_score": "acll-uniform", "pseudo_counts": 7.0, "param": "acll"},
            {"structure_score": "acll-uniform:7", "pseudo_counts": 7.0, "smoothing": None},
        ),
        ({"param": "acll"}, {"structure_score": "cmi", "pseudo_counts": 5.0}),
        ({"structure": "skdb"}, {"k": 5, "loss": "rmse", "structure_score": None}),
        ({"structure": "skdb", "k": 2, "loss": "error"}, {"k": 2, "loss": "error"}),
        ({"structure": "hill-climb"}, {"structure_score": "bic", "max_parents": 2, "perfect": False, "forest": None}),
        ({"structure": "hill-climb", "perfect": True, "max_parents": 3}, {"max_parents": 3, "perfect": True}),
        ({"structure": "gbn"}, {"epsilon": 0.01, "structure_score": None, "forest": None}),
    ],
)
def test_options_of_structures(typed: dict[str, object], fields: dict[str, object]) -> None:
    recipe = resolve_learning_options(typed).recipe
    assert {name: getattr(recipe, name) for name in fields} == fields


WITHOUT_SUBSETS: dict[str, dict[str, object]] = {
    "--structure nb": {"structure": "nb"},
    "--structure kdb --k 0": {"structure": "kdb", "k": 0},
    "--structure skdb --k 0": {"structure": "skdb", "k": 0},
    "--structure hill-climb --max-parents 0": {"structure": "hill-climb", "max_parents": 0},
    "--structure kikuchi --max-order 2": {"structure": "kikuchi", "max_order": 2},
    "--structure interactions --max-order 2": {"structure": "interactions", "max_order": 2},
}
"""Structures every table of which has one attribute."""


@pytest.mark.parametrize(
    ("typed", "line"),
    [
        ({"structure": "tam"}, "unknown --structure 'tam'; did you mean tan?"),
        ({"structure": "x/y.json"}, "there is no structure file 'x/y.json'"),
        ({"discretize": "mld"}, "unknown --discretize 'mld'; did you mean mdl?"),
        (
            {"param": "qqq"},
            "unknown --param 'qqq'; the choices are map, acll, acll-uniform, weighted, discriminative, extended",
        ),
        ({"optimizer": "sgd"}, "unknown --optimizer 'sgd'"),
        ({"k": 2}, "--k has no effect with --structure tan; use it with --structure kdb or --structure skdb"),
        ({"structure_score": "bdue"}, "unknown --structure-score 'bdue'; did you mean bdeu?"),
        ({"structure_score": "bic:2"}, "--structure-score bic does not take a number"),
        ({"structure_score": "acll:2"}, "--structure-score acll does not take a number"),
        ({"structure_score": "bdeu:0"}, "--structure-score bdeu needs a number above 0"),
        ({"structure": "nb", "structure_score": "bic"}, "--structure-score has no effect with --structure nb"),
        (
            {"structure": "hill-climb", "structure_score": "cmi"},
            "--structure-score cmi has no effect with --structure",
        ),
        ({"structure": "hill-climb", "forest": True}, "--forest has no effect with --structure hill-climb"),
        ({"structure": "gbn", "k": 2}, "--k has no effect with --structure gbn"),
        ({"loss": "error"}, "--loss has no effect with --structure tan; use it with --structure skdb"),
        (
            {"pseudo_counts": 2.0},
            "--pseudo-counts has no effect with --structure-score cmi and --param weighted; use it with",
        ),
        (
            {"param": None, "missing_policy": "marginalize"},
            "--missing-policy marginalize cannot be used with --param weighted, whose tables are not",
        ),
        ({"param": "em", "missing_policy": "level"}, "--missing-policy level has no effect with --param em; em marg"),
        ({"param": "em", "optimizer": "cg"}, "--optimizer has no effect with --param em"),
        ({"early_stop": "cv"}, "--early-stop has no effect with --param weighted; use it with --param extended"),
        (
            {"param": "extended", "early_stop": "cv", "penalty": "cv"},
            "--penalty cv and --early-stop cv both use held-out rows to prevent overfitting; choose one of them",
        ),
        ({"param": "acll", "smoothing": "mle"}, "--smoothing has no effect with --param acll"),
        ({"bins": 4}, "--bins has no effect with --discretize mdl"),
        ({"cuts": "c.json", "bins": 4}, "--bins has no effect with --cuts FILE"),
        ({"cuts": "c.json", "discretize": "mdl"}, "--discretize has no effect with --cuts FILE"),
        ({"param": "extended", "level": "2"}, "--level has no effect with --param extended"),
        ({"param": "map", "penalty": 2.0}, "--penalty has no effect with --param map"),
        ({"param": "map", "penalty": "cv"}, "--penalty has no effect with --param map"),
        ({"param": "map", "trace": "t.csv"}, "--trace has no effect with --param map"),
        ({"param": "map", "optimizer": "lbfgs"}, "--optimizer has no effect with --param map"),
        (
            {"param": "extended", "penalty_center": "1"},
            "--penalty-center 1 has no effect with --param extended; use --penalty-center 0, or --param weighted",
        ),
        ({"penalty": 0.0, "penalty_center": "1"}, "--penalty-center has no effect with --penalty 0; leave one of"),
        ({"structure": "nb", "k": 2, "level": "7"}, "Invalid value for '--level': '7' is not one of"),
        ({"structure": "nb", "k": 2, "param": "mpa"}, "unknown --param 'mpa'; did you mean map?"),
        *(
            ({"param": param, "smoothing": "fgg"}, f"--smoothing has no effect with --param {param} and --init zero")
            for param in ("discriminative", "lr", "lr-roos", "extended")
        ),
        *(
            (
                {"param": "discriminative", "lower_orders": True} | words,
                f"--lower-orders has no effect with {what}, because",
            )
            for what, words in WITHOUT_SUBSETS.items()
        ),
        ({"arcs": "all", "structure": "nb"}, "--arcs has no effect with --structure nb, because"),
        ({"arcs": "cv", "structure": "kdb", "k": 0}, "--arcs has no effect with --structure kdb --k 0, because"),
        (
            {"arcs": "cv", "early_stop": "cv", "param": "extended"},
            "--arcs cv and --early-stop cv both use held-out rows",
        ),
        ({"arcs": "cv", "structure": "kikuchi", "param": "discriminative"}, "--arcs has no effect with regions,"),
        ({"arcs": "cv", "structure": "auto"}, "--arcs has no effect with"),
        ({"arcs": "all", "param": "map"}, "--arcs has no effect with --param map;"),
        ({"arcs": "some"}, "Invalid value for '--arcs': 'some' is not one of 'cv', 'all'"),
    ],
)
def test_what_has_no_effect_is_refused(typed: dict[str, object], line: str) -> None:
    with pytest.raises(UsageError) as refused:
        resolve_learning_options({"param": None, **typed})
    assert str(refused.value).startswith(line)


def test_smoothing_makes_the_generative_start() -> None:
    typed = {"param": "discriminative", "smoothing": "mle", "init": "generative"}
    assert resolve_learning_options(typed).recipe.smoothing == "mle"


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"structure": "nb"}, "has no effect with --structure nb, which does not use --structure-score"),
        ({"structure": "tan"}, "has no effect with --structure-score cmi"),
        ({"structure": "tan", "structure_score": "bic"}, "has no effect with --structure-score bic"),
    ],
)
def test_a_command_without_param_speaks_of_none(typed: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError) as refused:
        resolve_learning_options({**typed, "pseudo_counts": 2.0})
    assert said in str(refused.value)
    assert "--structure-score acll" in str(refused.value)
    assert "--param" not in str(refused.value)


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ({"structure": "auto", "bins": 3}, "--bins has no effect with --structure auto"),
        ({"structure": "auto", "cuts": "c.json"}, "--cuts has no effect with --structure auto"),
        ({"structure": "auto", "param": "map"}, "--param map cannot be used with --structure auto"),
        ({"structure": "tan", "param": "auto"}, "--param auto cannot be used with networks"),
        ({"structure": "tan", "param": "kbma"}, "--param kbma cannot be used with networks"),
        ({"structure": "kikuchi", "param": "weighted"}, "--param weighted cannot be used with regions"),
        ({"structure": "kikuchi", "smoothing": "mle"}, "--smoothing"),
        ({"structure": "interactions", "param": "kbma"}, "--param kbma cannot be used with regions"),
        ({"structure": "interactions", "theta": 2.0}, "--theta"),
        ({"structure": "interactions", "init": "generative"}, "--init generative has no effect"),
        ({"structure": "tan", "param": "discriminative", "theta": 2.0}, "--theta has no effect without regions"),
        (
            {"structure": "tan", "metric": "error"},
            "--metric has no effect with --param weighted; use it with --structure auto",
        ),
        ({"structure": "auto", "init": "zero"}, "--init has no effect with --structure auto; use it with --param w"),
        (
            {"structure": "auto", "missing_policy": "marginalize"},
            "marginalize cannot be used with --structure auto, whose",
        ),
    ],
)
def test_what_does_not_go_with_the_kind_of_structure_is_refused(typed: dict[str, object], told: str) -> None:
    flags = {"structure": None, "param": None, "smoothing": None}
    with pytest.raises(UsageError) as error:
        resolve_learning_options(flags | typed)
    assert told in str(error.value)


def test_defaults_that_follow_from_the_kind_of_structure() -> None:
    flags = {"structure": None, "param": None}
    kikuchi = resolve_learning_options(flags | {"structure": "kikuchi"}).recipe
    assert (kikuchi.param, kikuchi.theta, kikuchi.smoothing) == ("kbma", 1.0, None)
    interactions = resolve_learning_options(flags | {"structure": "interactions", "penalty": 0.0}).recipe
    cut = (interactions.discretize, interactions.bins)
    assert (*cut, interactions.param, interactions.coding, interactions.init, interactions.theta) == (
        *("equal-frequency", 255),
        *("discriminative", "thermometer", "zero", None),
    )
    assert (
        resolve_learning_options(flags | {"param": "auto"}).recipe
        == resolve_learning_options(flags | {"structure": "auto"}).recipe
    )


@pytest.mark.parametrize("param", ["discriminative", "lr", "lr-roos", "extended"])
@pytest.mark.parametrize("start", [{"init": "generative"}, {"penalty": 0.0}])
def test_smoothing_counts_where_the_start_is_generative(param: str, start: dict[str, object]) -> None:
    assert resolve_learning_options({"param": param, "smoothing": "fgg", **start}).recipe.smoothing == "fgg:5"


@pytest.mark.parametrize("words", [{"structure": "kdb", "k": 1}, {"structure": "kikuchi", "max_order": 3}, {}])
def test_lower_orders_count_where_tables_have_two_attributes(words: dict[str, object]) -> None:
    assert (
        resolve_learning_options({"param": "discriminative", "lower_orders": True, **words}).recipe.lower_orders is True
    )


def test_theta_of_a_file_of_regions_only_makes_the_generative_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    held = '{"format": "bncli-structure", "version": 1, "class": "y", "method": "kikuchi", "options": {}, '
    Path("r.json").write_text(held + '"regions": [["x"]]}')
    typed: dict[str, object] = {"structure": "r.json", "param": "discriminative", "theta": 2.0}
    with pytest.raises(UsageError, match="--theta has no effect with --param discriminative and --init zero"):
        resolve_learning_options(typed)
    assert resolve_learning_options({**typed, "init": "generative"}).recipe.theta == 2.0
    assert resolve_learning_options({"structure": "r.json", "param": "kbma", "theta": 2.0}).recipe.theta == 2.0
