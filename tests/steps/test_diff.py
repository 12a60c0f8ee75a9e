"""diff: what differs between two models by name, and what they say of a table, against scoring them one by one."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.cli.diff import difference_lines
from bncli.engine.calibration import Calibration, Temperature
from bncli.engine.data.schema import CategoricalAttribute, NumberForm, NumericAttribute
from bncli.engine.data.splits import SplitRecord
from bncli.engine.model import (
    ChosenPenalty,
    DecisionRule,
    Ensemble,
    HeldOutLoss,
    Model,
    ParameterUncertainty,
    Restarts,
    Tables,
    TrainingLogP,
    TriedPenalty,
    UncertaintyMethod,
)
from bncli.engine.model import Path as PredictorPath
from bncli.errors import ModelError, UsageError
from bncli.files.artifacts import model as model_files
from bncli.files.artifacts.cuts import MODEL_ATTRIBUTE_KEYS
from bncli.files.artifacts.model import read_model, write_model
from bncli.files.reading.source import Source
from bncli.recipe import Recipe
from bncli.steps import diff as step
from bncli.steps.diff import DiffReport, diff
from bncli.steps.fit import fit
from bncli.steps.score import ScoreOutput, score

SAMPLE_DATA = Path(__file__).parents[2] / "sample_data"
WINE = Source((str(SAMPLE_DATA / "wine_holes.csv"),))


def learnt(folder: Path, name: str, source: Source = WINE, **options: object) -> str:
    path = str(folder / f"{name}.bnc")
    fit(source, Recipe.of(**options), output=path)
    return path


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("diff")
    return {
        "tan": learnt(folder, "tan", param="map"),
        "nb": learnt(folder, "nb", param="map", structure="nb"),
        "coarse": learnt(folder, "coarse", param="map", discretize="equal-width", bins=3),
        "kikuchi": learnt(folder, "kikuchi", structure="kikuchi", max_order=2),
        "auto": learnt(folder, "auto", structure="auto", effort=1),
    }


def test_a_model_and_itself(models: dict[str, str]) -> None:
    for path in models.values():
        report = diff(path, path, WINE)
        assert report.same_bytes
        assert (report.arcs_added, report.cuts_changed, report.options_changed) == ((), (), {})
        assert (report.tables.changed, report.tables.largest) == ((), 0.0)
        assert report.predictions == (178, 0.0, 0.0)


def test_arcs_and_tables_of_two_structures(models: dict[str, str]) -> None:
    there, back = diff(models["nb"], models["tan"]), diff(models["tan"], models["nb"])
    found = read_model(models["tan"])
    names = [attribute.name for attribute in found.schema.attributes]
    arcs = {(names[p], names[i]) for i, parents in enumerate(found.structure.parents) for p in parents}
    assert set(there.arcs_added) == arcs == set(back.arcs_removed)
    assert (there.arcs_removed, back.arcs_added, there.cuts_changed) == ((), (), ())
    assert there.options_changed["structure"] == ("nb", "tan")
    assert there.tables.added == back.tables.removed
    assert len(there.tables.added) == len(arcs)
    assert there.predictions is None
    assert there.as_json()["changed_decisions"] is None


def test_other_cuts(models: dict[str, str]) -> None:
    report = diff(models["tan"], models["coarse"])
    one, other = read_model(models["tan"]).schema, read_model(models["coarse"]).schema
    pairs = zip(one.attributes, other.attributes, strict=True)
    assert report.cuts_changed == tuple(a.name for a, b in pairs if a.cuts != b.cuts)
    assert () in report.tables.changed or report.tables.same == 1  # the bias, which has no cuts
    assert all(set(names) & set(report.cuts_changed) for names in report.tables.recut)


def test_an_entry_that_changed(models: dict[str, str], tmp_path: Path) -> None:
    whole = read_model(models["tan"])
    weights = list(whole.tables.weights)
    weights[2] = weights[2] + 0.25 * (np.arange(weights[2].size) == 1).reshape(weights[2].shape)
    other = str(tmp_path / "o.bnc")
    write_model(other, replace(whole, predictor=Tables(whole.tables.bias, whole.tables.families, tuple(weights))))
    tables = diff(models["tan"], other).tables
    names = tuple(whole.schema.attributes[i].name for i in whole.tables.families[2].attributes)
    assert tables.changed == (names,)
    assert tables.largest == pytest.approx(0.25)
    assert tables.same == len(weights)


@pytest.mark.parametrize("pair", [("tan", "nb"), ("tan", "coarse"), ("kikuchi", "auto"), ("nb", "kikuchi")])
def test_decisions_are_those_of_score(
    models: dict[str, str], tmp_path: Path, pair: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step, "_NUMBERS_PER_BLOCK", 3 * 7)
    found = diff(models[pair[0]], models[pair[1]], WINE).predictions
    rows = [scored(models[name], tmp_path / name) for name in pair]
    changed = [p["prediction"] != q["prediction"] for p, q in zip(*rows, strict=True)]
    keys = [key for key in rows[0][0] if key != "prediction"]
    largest = max(abs(float(p[key]) - float(q[key])) for p, q in zip(*rows, strict=True) for key in keys)
    assert found is not None
    assert (found.rows, found.changed) == (178, sum(changed) / 178)
    assert found.max_dp == pytest.approx(largest, abs=1e-12)
    assert found.max_dp > 0


def scored(model: str, path: Path) -> list[dict[str, str]]:
    score(model, WINE, ScoreOutput(str(path)))
    with path.open() as file:
        return list(csv.DictReader(file))


def relabelled(folder: Path, change: dict[str, str]) -> str:
    """A model of the table under other labels, in the order in which they come there."""
    lines = (SAMPLE_DATA / "iris.csv").read_text().splitlines()
    rows = [line.rsplit(",", 1) for line in lines]
    (folder / "other.csv").write_text("\n".join(f"{x},{change.get(y, y)}" for x, y in rows) + "\n")
    return learnt(folder, "other", Source((str(folder / "other.csv"),)), param="map")


def test_other_labels_are_compared_by_name(tmp_path: Path) -> None:
    source = Source((str(SAMPLE_DATA / "iris.csv"),))
    one = learnt(tmp_path, "one", source, param="map")
    other = relabelled(tmp_path, {"setosa": "wild"})
    report = diff(one, other, source)
    assert report.label_order == (("setosa", "versicolor", "virginica"), read_model(other).schema.labels)
    assert report.predictions is not None
    assert report.predictions.changed == pytest.approx(50 / 150, abs=0.02)
    assert report.predictions.max_dp > 0.99
    swapped = relabelled(tmp_path, {"setosa": "versicolor", "versicolor": "setosa"})
    assert diff(one, swapped, source).predictions.changed == pytest.approx(100 / 150, abs=0.05)  # type: ignore[union-attr]


def test_other_columns_are_told(models: dict[str, str], tmp_path: Path) -> None:
    iris = learnt(tmp_path, "iris", Source((str(SAMPLE_DATA / "iris.csv"),)), param="map")
    report = diff(models["tan"], iris)
    assert "petal_width" in report.attributes_added
    assert "alcohol" in report.attributes_removed
    assert report.rows_learnt_from == (178, 150)
    with pytest.raises(ModelError, match="the table has no column"):
        diff(models["tan"], iris, WINE)


def test_the_standard_input_cannot_be_read_twice(models: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="read twice"):
        diff(models["tan"], models["nb"], Source(("-",)))


@given(st.lists(st.integers(1, 9), max_size=8), st.data())
def test_blocks_of_other_sizes_go_in_step(sizes: list[int], data: st.DataObject) -> None:
    total = sum(sizes)
    ends = sorted(data.draw(st.sets(st.integers(1, max(total - 1, 1)), max_size=5))) if total > 1 else []
    numbers = np.arange(total)

    def blocks(cut: list[int]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for part in np.split(numbers, cut):
            if len(part):
                yield part, part[:, None] + 0.5

    pairs = list(step._align_blocks(blocks(list(np.cumsum(sizes)[:-1])), blocks(ends)))
    for (one, p), (other, q) in pairs:
        np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(p, q)
    assert [int(row) for (one, _), _ in pairs for row in one] == list(range(total))


def test_every_field_is_in_the_json(models: dict[str, str]) -> None:
    report = diff(models["tan"], models["nb"], WINE)
    names = {"class" if name == "class_name" else name for name in DiffReport.__dataclass_fields__} - {
        "predictions",
        "labels",
    }
    assert set(report.as_json()) == names | {"rows", "changed_decisions", "max_abs_dp"}


def test_a_calibration_and_a_rule_are_differences(models: dict[str, str], tmp_path: Path) -> None:
    """Models that say other probabilities, or decide otherwise, are never called the same."""
    plain = read_model(models["tan"])
    hot, cold = (Calibration(Temperature(t), 100, 0.5, 0.4) for t in (2.0, 0.5))
    paths = [str(tmp_path / f"{name}.bnc") for name in ("hot", "cold", "bold")]
    write_model(paths[0], replace(plain, calibration=hot))
    write_model(paths[1], replace(plain, calibration=cold))
    write_model(paths[2], replace(plain, rule=DecisionRule(abstain_below=0.6)))
    report = diff(paths[0], paths[1])
    assert (report.calibration, report.rule, report.options_changed) == ((hot, cold), None, {})
    assert [one["temperature"] for one in report.as_json()["calibration"]] == [2.0, 0.5]
    assert "calibration temperature 2 -> temperature 0.5" in difference_lines(report)
    report = diff(models["tan"], paths[2])
    assert report.calibration is None
    assert report.as_json()["rule"] == [None, {"abstain_below": 0.6}]
    told = "decides     the most probable label -> no label if none has a probability of at least 0.6"
    assert difference_lines(report) == [told]
    assert difference_lines(diff(models["tan"], paths[0])) == ["calibration none -> temperature 2"]


def with_schema(model: Model, **changes: Any) -> Model:
    return replace(model, schema=replace(model.schema, **changes))


def with_attribute(model: Model, kind: type, **changes: Any) -> Model:
    """The first attribute of a kind changed."""
    changed = list(model.schema.attributes)
    i = next(i for i, attribute in enumerate(changed) if isinstance(attribute, kind))
    changed[i] = replace(changed[i], **changes)
    return with_schema(model, attributes=tuple(changed))


def with_groups(model: Model) -> Model:
    attribute = next(a for a in model.schema.attributes if isinstance(a, CategoricalAttribute))
    groups = tuple((level,) for level in attribute.levels)
    levels = (f"{attribute.levels[0]} and more", *attribute.levels[1:])
    return with_attribute(model, CategoricalAttribute, levels=levels, groups=((*groups[0], "more"), *groups[1:]))


def with_other_shares(model: Model) -> Model:
    """Steps of a path, or components of an ensemble, that weigh otherwise."""
    predictor = model.predictor
    if isinstance(predictor, PredictorPath):
        steps = list(predictor.steps)
        steps[:2] = [
            one._replace(weight=sum(s.weight for s in steps[:2]) * share)
            for one, share in zip(steps, (0.2, 0.8), strict=False)
        ]
        return replace(model, predictor=replace(predictor, steps=tuple(steps)))
    assert isinstance(predictor, Ensemble)
    components = [c._replace(weight=c.weight * 0.5) for c in predictor.components]
    return replace(model, predictor=replace(predictor, components=tuple(components)))


def marginalizing(model: Model) -> Model:
    """Without missing levels, of a network that has all its tables."""
    found = with_schema(model, missing_policy="marginalize")
    return replace(found, recipe=found.recipe.replaced(missing_policy="marginalize"))


CHANGES: dict[str, tuple[str, Callable[[Model], Model], str]] = {
    "intervals": (
        "nb",
        lambda m: replace(m, uncertainty=ParameterUncertainty(UncertaintyMethod.POSTERIOR, np.abs(m.tables.cells))),
        "other keys",
    ),
    "penalty_cv": ("nb", lambda m: replace(m, penalty_cv=ChosenPenalty(3.0, (TriedPenalty(3.0, 0.5),))), "other keys"),
    "restarts": ("nb", lambda m: replace(m, restarts=Restarts((-4.0, -3.0))), "other keys"),
    "sampled_rows": ("nb", lambda m: replace(m, sampled_rows=50), "other keys"),
    "self_test": ("nb", lambda m: replace(m, self_test=None), "other keys"),
    "class_weights": (
        "nb",
        lambda m: replace(m, class_weights=(2.0, 1.0)),
        "classes     weights equal -> benign 2, malignant 1",
    ),
    "plain_frequencies": ("nb", lambda m: replace(m, plain_frequencies={2: (1.0,) * 3}), "other keys"),
    "calibration": (
        "nb",
        lambda m: replace(m, calibration=Calibration(Temperature(2.0), 100, 0.5, 0.4)),
        "calibration none -> temperature 2",
    ),
    "decisions": ("nb", lambda m: replace(m, rule=DecisionRule(abstain_below=0.6)), "decides     the most"),
    "training_log_p": (
        "nb",
        lambda m: replace(m, log_p=TrainingLogP(569, -8.25, (-9.0,) * 7)),
        "ln P(x)     none -> mean -8.25 of 569 rows",
    ),
    "held_out": ("nb", lambda m: replace(m, held_out=HeldOutLoss(0.3, 0.6)), "other keys"),
    "split": ("nb", lambda m: replace(m, split=SplitRecord("group", ("patient",), 90)), "other keys"),
    "path": ("kikuchi", with_other_shares, "other keys"),
    "blend": ("auto", with_other_shares, "tables"),
    "schema.missing_policy": ("nb", marginalizing, "options     missing-policy level -> marginalize"),
    "schema.label_frequencies": ("nb", lambda m: with_schema(m, label_frequencies=()), "other keys"),
    "schema.towards": (
        "directed",
        lambda m: with_schema(m, towards="malignant"),
        "directions  towards benign -> malignant",
    ),
    "attributes.holes": ("nb", lambda m: with_attribute(m, NumericAttribute, missing_weight=2.5), "other keys"),
    "attributes.form": ("nb", lambda m: with_attribute(m, NumericAttribute, form=NumberForm(",")), "types"),
    "attributes.direction": ("nb", lambda m: with_attribute(m, NumericAttribute, direction=-1), "directions"),
    "attributes.groups": ("nb", with_groups, "levels"),
}
"""By a key that only some models have: a model, that model with another value there, and the line that tells it."""


def test_no_key_of_the_model_file_is_forgotten() -> None:
    known = {*model_files.OPTIONAL_KEYS, *(f"schema.{key}" for key in model_files.OPTIONAL_SCHEMA_KEYS)}
    known |= {f"attributes.{key}" for keys in MODEL_ATTRIBUTE_KEYS.values() for key in keys}
    # The tests of edits compare models before and after one.
    assert {*CHANGES, "edits"} == known


@pytest.fixture(scope="module")
def tumours(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Model]:
    folder, source = tmp_path_factory.mktemp("tumours"), Source((str(SAMPLE_DATA / "tumours.csv"),))
    towards: dict[str, Any] = {"increasing": ["radius"], "towards": "benign", "penalty": 1}
    recipes: dict[str, dict[str, Any]] = {
        "nb": {"structure": "nb", "param": "map"},
        "directed": {"structure": "nb"} | towards,
        "kikuchi": {"structure": "kikuchi", "max_order": 2},
        "auto": {"structure": "auto", "effort": 1},
    }
    return {name: read_model(learnt(folder, name, source, **recipe)) for name, recipe in recipes.items()}


@pytest.mark.parametrize("key", CHANGES)
def test_models_that_differ_in_one_optional_key_alone(tumours: dict[str, Model], tmp_path: Path, key: str) -> None:
    name, change, told = CHANGES[key]
    paths = [str(tmp_path / "a.bnc"), str(tmp_path / "b.bnc")]
    write_model(paths[0], tumours[name])
    write_model(paths[1], change(tumours[name]))
    shown = difference_lines(diff(*paths))
    assert any(line.startswith(told) for line in shown), shown
    if told == "other keys":
        assert shown == [f"other keys  {key}"]
    assert len(shown) == 1 or key in ("schema.missing_policy", "attributes.groups", "attributes.form", "blend"), shown


def test_texts_that_mean_missing_and_what_unseen_values_do_are_told(tumours: dict[str, Model], tmp_path: Path) -> None:
    paths = [str(tmp_path / "a.bnc"), str(tmp_path / "b.bnc")]
    write_model(paths[0], tumours["nb"])
    write_model(paths[1], with_schema(tumours["nb"], missing_tokens=("-", "none"), unseen="error"))
    assert difference_lines(diff(*paths)) == [
        "options     missing none -> -, none",
        "            unseen average -> error",
    ]


def test_other_numbers_behind_the_same_mean_are_told(tumours: dict[str, Model], tmp_path: Path) -> None:
    paths = [str(tmp_path / "a.bnc"), str(tmp_path / "b.bnc")]
    for path, low in zip(paths, (-9.5, -9.0), strict=True):
        write_model(path, replace(tumours["nb"], log_p=TrainingLogP(569, -8.25, (low, *(-9.0,) * 6))))
    report = diff(*paths)
    assert difference_lines(report) == ["ln P(x)     mean -8.25 of 569 rows, with other quantiles"]
    assert [one["quantiles"]["0.01"] for one in report.as_json()["training_log_p"]] == [-9.5, -9.0]
