"""`fit --intervals`, `score --interval` and `--abstain-wider`, and the same from Python."""

from __future__ import annotations

import csv
import json
import warnings
from dataclasses import replace
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from pyarrow import parquet

import bncli as package
from bncli.engine.kernels.arrays import Array
from bncli.engine.model import ParameterUncertainty, UncertaintyMethod
from bncli.engine.prediction import probability_intervals
from bncli.engine.prediction.edits import with_positive_label
from bncli.errors import ModelError, UsageError
from bncli.files.artifacts.model import dump_model, read_model
from bncli.watch import silent
from tests.cli.conftest import Bncli, prepare
from tests.cli.test_score import rows_of

PRIOR = ("--prior-network", "m.bnc", "--prior-rows", "50")
MARGINALIZE = ("--missing-policy", "marginalize")
LABELS = ("benign", "malignant")


def learned(table: Any = "tumours.csv", **options: Any) -> package.Model:
    how = {"structure": "nb", "param": "map", "intervals": True, "progress": silent} | options
    if how["param"] == "weighted":
        how["penalty"] = 1
    return package.fit(table, **how)


def ends_of(rows: list[dict[str, str]], label: str) -> Array:
    return np.array([[float(row[f"p_{label}{end}"]) for end in ("_low", "", "_high")] for row in rows])


def test_columns_stand_behind_the_probabilities_in_every_format(bncli: Bncli) -> None:
    assert (
        bncli("fit", "tumours.csv", "--structure", "nb", "--penalty", "1", "--intervals", "-q", "-o", "m.bnc").code == 0
    )
    words = ("score", "m.bnc", "tumours.csv", "--interval", "0.9")
    rows = rows_of(bncli(*words).out)
    ends = [f"p_{label}_{end}" for label in LABELS for end in ("low", "high")]
    assert list(rows[0]) == ["prediction", *(f"p_{label}" for label in LABELS), *ends]
    first, second = (ends_of(rows, label) for label in LABELS)
    assert (np.diff(first, axis=1) >= 0).all()
    np.testing.assert_allclose(first, 1 - second[:, ::-1], atol=1e-9)
    objects = [json.loads(line) for line in bncli(*words, "--output-format", "jsonl").out.splitlines()]
    assert [one["p_benign_low"] for one in objects] == pytest.approx(list(first[:, 0]))
    for name in ("s.parquet", "s.arrow", "s.csv"):
        assert bncli(*words, "-o", name, "-q").code == 0
    assert parquet.read_table("s.parquet")["p_benign_high"].to_pylist() == pytest.approx(list(first[:, 2]))
    rounded = rows_of(bncli(*words, "--digits", 2).out)
    assert all(len(row["p_benign_low"]) == 4 for row in rounded if row["p_benign_low"] not in ("0.0", "1.0"))
    logs = rows_of(bncli(*words, "--log-proba").out)
    assert float(logs[0]["p_benign_low"]) == pytest.approx(np.log(first[0, 0]))


def test_a_model_keeps_its_bytes_without_intervals_and_tells_their_size(bncli: Bncli) -> None:
    words = ("fit", "tumours.csv", "--structure", "nb", "--param", "map", "-o", "m.bnc")
    ran = bncli(*words, "--intervals")
    assert "intervals   posterior of the tables; " in ran.err
    with_intervals = read_model("m.bnc")
    report = json.loads(bncli(*words, "--intervals", "--json").out)
    assert with_intervals.uncertainty is not None
    assert report["intervals"] == {"method": "posterior", "bytes": with_intervals.uncertainty.entries.nbytes}
    assert Path("m.bnc").read_bytes() == dump_model(with_intervals)
    assert "intervals" not in json.loads(bncli(*words, "--json").out)
    assert Path("m.bnc").read_bytes() == dump_model(replace(with_intervals, uncertainty=None))


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("score", "m.bnc", "iris.csv", "--interval", "0.9"), 3, "fit --intervals"),
        (("score", "m.bnc", "iris.csv", "--abstain-wider", "0.2"), 3, "fit --intervals"),
        (("score", "m.bnc", "iris.csv", "--interval", "90"), 2, "--interval"),
        (("score", "m.bnc", "iris.csv", "--interval", "0.9", "--labels-only"), 2, "--interval has no effect"),
        (("fit", "iris.csv", "--structure", "kikuchi", "--intervals"), 2, "no posterior"),
        (("fit", "iris.csv", "--intervals", "--dry-run"), 2, "--intervals has no effect"),
        (("fit", "iris.csv", "--param", "acll", *MARGINALIZE, "--intervals"), 2, "no posterior"),
        (("fit", "iris.csv", "--param", "extended", *MARGINALIZE, "--intervals"), 2, "marginalized"),
        (("fit", "iris.csv", *PRIOR, "--class-weights", "balanced", "--intervals"), 2, "--class-weights"),
    ],
)
def test_what_cannot_be_is_one_line(bncli: Bncli, words: tuple[str, ...], code: int, text: str) -> None:
    prepare(bncli, "fit iris.csv --structure nb --param map -q -o m.bnc")
    ran = bncli(*words)
    assert ran.code == code
    assert text in ran.err
    assert len(ran.err.splitlines()) == 1


def test_rows_with_wide_intervals_are_left_to_a_person(bncli: Bncli) -> None:
    assert bncli("fit", "iris.csv", "--structure", "nb", "--penalty", "1", "--intervals", "-q", "-o", "m.bnc").code == 0
    words = ("score", "m.bnc", "iris.csv", "--abstain-wider", "0.3")
    rows = rows_of(bncli(*words, "--interval", "0.8").out)
    widths = [float(row[f"p_{row['prediction']}_high"]) - float(row[f"p_{row['prediction']}_low"]) for row in rows]
    assert 0 < sum(width > 0.3 for width in widths) < len(rows)
    assert [row["decision"] == "" for row in rows] == [width > 0.3 for width in widths]
    assert all(row["decision"] in ("", row["prediction"]) for row in rows)
    wider = rows_of(bncli(*words).out)
    assert list(wider[0]) == ["prediction", "p_setosa", "p_versicolor", "p_virginica", "decision"]
    assert sum(row["decision"] == "" for row in wider) >= sum(row["decision"] == "" for row in rows)
    lines = [json.loads(line) for line in bncli(*words, "--output-format", "jsonl").out.splitlines()]
    assert [line["decision"] or "" for line in lines] == [row["decision"] for row in wider]
    both = rows_of(bncli(*words, "--abstain-below", "0.9").out)
    for row, alone in zip(both, wider, strict=True):
        unsure = max(float(row[f"p_{label}"]) for label in ("setosa", "versicolor", "virginica")) < 0.9
        assert (row["decision"] == "") == (unsure or alone["decision"] == "")
    assert list(rows_of(bncli(*words, "--labels-only").out)[0]) == ["prediction", "decision"]


@pytest.mark.parametrize("param", ["map", "weighted"])
def test_two_classes_follow_the_formula(param: str) -> None:
    model = learned(str(SAMPLE / "tumours.csv"), param=param)
    engine = model._model
    assert engine.uncertainty is not None
    entries, tables = engine.uncertainty.entries, engine.tables
    rows = dict(first_rows(20).items())
    p = model.predict_proba(rows)
    found = model.predict_interval(rows, 0.8)
    codes = codes_of(model, rows)
    for t in range(20):
        cells, first = [0], 1
        for family in tables.families:
            cells.append(first + np.ravel_multi_index([codes[a][t] for a in family.attributes], family.shape))
            first += family.n_cells
        variance = entries[:, cells].sum() if param == "map" else np.square(entries[:, 0, cells].sum(axis=1)).sum()
        s, z = np.log(p[t, 1] / p[t, 0]), NormalDist().inv_cdf(0.9)
        expected = 1 / (1 + np.exp(-(s + np.array([-z, z]) * np.sqrt(variance))))
        np.testing.assert_allclose(found[t, 1], expected, rtol=1e-9)


SAMPLE = Path(__file__).parents[2] / "sample_data"


def first_rows(n: int) -> dict[str, list[Any]]:
    from pyarrow import csv

    return {name: values[:n] for name, values in csv.read_csv(SAMPLE / "tumours.csv").to_pydict().items()}


def codes_of(model: package.Model, rows: dict[str, list[Any]]) -> list[Array]:
    """Return the code of every value by the cuts and levels of the schema."""
    codes = []
    for attribute in model._model.schema.attributes:
        values = rows[attribute.name]
        if hasattr(attribute, "cuts"):
            codes.append(np.searchsorted(attribute.cuts, values, side="left"))
        else:
            codes.append(np.array([attribute.levels.index(str(value)) for value in values]))  # type: ignore[union-attr]
    return codes


def test_more_classes_follow_draws_of_the_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare with many draws of all entries at once; the ends differ by the noise of DRAWS draws."""
    monkeypatch.setattr(probability_intervals, "DRAWS", 4000)
    rng = np.random.default_rng(0)
    for param in ("map", "weighted"):
        model = learned(str(SAMPLE / "iris.csv"), param=param)
        engine = model._model
        assert engine.uncertainty is not None
        rows = {"petal_width": [1.6], "petal_length": [4.9], "sepal_length": [6.0], "sepal_width": [2.8]}
        codes = {
            a.name: int(np.searchsorted(a.cuts, rows[a.name][0]))
            for a in engine.schema.attributes
            if hasattr(a, "cuts")
        }
        cells, first = [0], 1
        for family in engine.tables.families:
            cells.append(first + codes[engine.schema.attributes[family.attributes[0]].name])
            first += family.n_cells
        scores = np.log(model.predict_proba(rows)[0])[:, np.newaxis]
        entries = engine.uncertainty.entries
        if param == "map":
            drawn = scores + np.sqrt(entries[:, cells].sum(axis=1))[:, np.newaxis] * rng.normal(size=(3, 20_000))
        else:
            deviations = entries[:, :, cells].sum(axis=2)
            drawn = np.repeat(scores, 20_000, axis=1)
            drawn[1:] += deviations.T @ rng.normal(size=(len(deviations), 20_000))
        p = np.exp(drawn) / np.exp(drawn).sum(axis=0)
        expected = np.quantile(p, [0.05, 0.95], axis=1).T
        np.testing.assert_allclose(model.predict_interval(rows)[0], expected, atol=0.02)


@pytest.mark.parametrize("options", [{}, {"calibrate": "temperature"}, {"calibrate": "isotonic"}])
@pytest.mark.parametrize("table", ["tumours.csv", "iris.csv"])
def test_calibrated_probabilities_and_another_prior_lie_in_their_intervals(options: dict[str, str], table: str) -> None:
    path = str(SAMPLE / table)
    model = learned(path, **options)
    even = {str(label): 1 / len(model.classes_) for label in model.classes_}
    p, ends = model.predict_proba(path, prior=even), model.predict_interval(path, prior=even)
    assert (ends[:, :, 0] <= p + 1e-12).all()
    assert (p <= ends[:, :, 1] + 1e-12).all()
    wider = model.predict_interval(path, 0.99, prior=even)
    assert (wider[:, :, 0] <= ends[:, :, 0] + 1e-12).all()
    assert (ends[:, :, 1] <= wider[:, :, 1] + 1e-12).all()
    np.testing.assert_array_equal(model.predict_interval(path, prior=even, threads=2), ends)


def test_more_rows_are_surer_and_each_row_stands_alone() -> None:
    path = str(SAMPLE / "iris.csv")
    model = learned(path, discretize="equal-width")
    whole = model.predict_interval(path)
    from pyarrow import csv

    table = csv.read_csv(path)
    order = np.random.default_rng(0).permutation(len(table))
    np.testing.assert_array_equal(model.predict_interval(table.take(order)), whole[order])
    thrice = {name: column * 3 for name, column in table.to_pydict().items()}
    surer = learned(thrice, discretize="equal-width").predict_interval(path)
    assert np.diff(surer, axis=2).mean() < np.diff(whole, axis=2).mean()


@pytest.mark.parametrize("param", ["map", "weighted"])
def test_the_other_event_has_the_same_intervals(param: str, tmp_path: Path) -> None:
    model = learned(str(SAMPLE / "tumours.csv"), param=param)
    other = package.Model(with_positive_label(model._model, "benign"))
    found = other.predict_interval(str(SAMPLE / "tumours.csv"))
    np.testing.assert_allclose(found[:, ::-1], model.predict_interval(str(SAMPLE / "tumours.csv")), rtol=1e-12)
    model.save(tmp_path / "m.bnc")
    again = package.load(tmp_path / "m.bnc")
    np.testing.assert_array_equal(
        again.predict_interval(str(SAMPLE / "tumours.csv")), model.predict_interval(str(SAMPLE / "tumours.csv"))
    )


def test_marginalized_rows_have_intervals_and_missing_values_widen_them(bncli: Bncli) -> None:
    words = ("--structure", "tan", "--param", "map", *MARGINALIZE, "--intervals", "-q")
    assert bncli("fit", "wine_holes.csv", *words, "-o", "m.bnc").code == 0
    rows = rows_of(bncli("score", "m.bnc", "wine_holes.csv", "--interval", "0.9").out)
    for label in ("cultivar_1", "cultivar_2", "cultivar_3"):
        assert (np.diff(ends_of(rows, label), axis=1) >= 0).all()
    model = read_model("m.bnc")
    assert Path("m.bnc").read_bytes() == dump_model(model)
    whole = package.load("m.bnc")
    for reorder in (slice(None), slice(None, None, -1)):
        table = {name: values[reorder] for name, values in columns_of("wine_holes.csv").items()}
        ends = whole.predict_interval(table)[reorder]
        np.testing.assert_allclose(ends[:, 0, 0], [float(row["p_cultivar_1_low"]) for row in rows], rtol=1e-9)
    two = columns_of("wine_holes.csv")
    two["class"] = np.where(two["class"] == "cultivar_1", "a", "b")
    fitted = learned(two, class_="class", structure="tan", missing_policy="marginalize")
    other = package.Model(with_positive_label(fitted._model, "a"))
    np.testing.assert_allclose(other.predict_interval(two)[:, ::-1], fitted.predict_interval(two), rtol=1e-9)


def columns_of(path: str) -> dict[str, Any]:
    """Return the columns of a table as text."""
    with Path(path).open(newline="") as file:
        rows = list(csv.reader(file))
    return {name: np.array([row[i] for row in rows[1:]]) for i, name in enumerate(rows[0])}


def test_a_damaged_uncertainty_is_refused(tmp_path: Path) -> None:
    model = learned(str(SAMPLE / "tumours.csv"))._model
    assert model.uncertainty is not None
    entries = model.uncertainty.entries
    for wrong in (-entries - 1, entries[:, 1:], entries[:1]):
        path = tmp_path / "m.bnc"
        path.write_bytes(
            dump_model(replace(model, uncertainty=ParameterUncertainty(UncertaintyMethod.POSTERIOR, wrong)))
        )
        with pytest.raises(ModelError):
            read_model(str(path))


def test_an_edited_model_has_no_intervals_and_says_so(bncli: Bncli) -> None:
    assert (
        bncli("fit", "tumours.csv", "--structure", "nb", "--penalty", "1", "--intervals", "-q", "-o", "m.bnc").code == 0
    )
    ran = bncli("edit", "m.bnc", "--effect", "radius", "--flatten", "--why", "test", "-o", "e.bnc")
    assert ran.code == 0
    assert "the edited model has no intervals" in ran.err
    assert bncli("score", "e.bnc", "tumours.csv", "--interval", "0.9").code == 3


def test_python_refuses_what_is_no_level() -> None:
    model = learned(str(SAMPLE / "iris.csv"))
    with pytest.raises(UsageError, match="level"):
        model.predict_interval(str(SAMPLE / "iris.csv"), 90)
    plain = learned(str(SAMPLE / "iris.csv"), intervals=False)
    with pytest.raises(ModelError, match="no intervals"):
        plain.predict_interval(str(SAMPLE / "iris.csv"))


@pytest.mark.slow
@pytest.mark.parametrize("param", ["map", "weighted"])
def test_effects_have_margins_from_the_uncertainty_of_their_table(bncli: Bncli, param: str) -> None:
    """Without arcs an effect is its table less the mean; the margins differ by the noise of 200 draws."""
    words = (
        "fit",
        "tumours.csv",
        "--structure",
        "nb",
        *(("--penalty", "1") if param == "weighted" else ("--param", param)),
    )
    assert bncli(*words, "--intervals", "-q", "-o", "m.bnc").code == 0
    report = json.loads(bncli("explain", "m.bnc", "--json").out)
    model = read_model("m.bnc")
    assert model.uncertainty is not None
    entries, first = model.uncertainty.entries, 1
    for family in model.tables.families:
        attribute = model.schema.attributes[family.attributes[0]]
        effect = next(one for one in report["effects"] if one["attributes"] == [attribute.name])
        q = np.array(attribute.frequencies) / sum(attribute.frequencies)
        centring = np.eye(family.n_cells) - q
        cells = entries[..., first : first + family.n_cells]
        first += family.n_cells
        if param == "map":
            variance = np.square(centring) @ cells.sum(axis=0)
        else:
            variance = np.square(cells[:, 0] @ centring.T).sum(axis=0)
        z = NormalDist().inv_cdf(0.95)
        margins = np.array(effect["margins"])
        np.testing.assert_allclose(margins[:, 1], z * np.sqrt(variance), rtol=0.25)
        np.testing.assert_allclose(margins[:, 0], margins[:, 1])
    assert "± " in bncli("explain", "m.bnc").out
    assert bncli(*words, "-q", "-o", "p.bnc").code == 0
    plain = bncli("explain", "p.bnc")
    assert "± " not in plain.out
    assert "margins" not in json.loads(bncli("explain", "p.bnc", "--json").out)["effects"][0]


def test_the_report_draws_the_intervals_of_the_parameters(bncli: Bncli) -> None:
    texts = []
    for more in ([], ["--intervals"]):
        words = ("--structure", "nb", "--param", "map", "-q", "-o", "m.bnc")
        assert bncli("fit", "tumours.csv", *words, *more).code == 0
        assert bncli("report", "m.bnc", "tumours.csv", "-q", "-o", "page.html").code == 0
        texts.append(Path("page.html").read_text())
    assert ["Lines and bands are 90 % intervals" in text for text in texts] == [False, True]


def test_the_estimator_gives_the_intervals_of_its_classes() -> None:
    sklearn_like = package.Classifier("nb", "map", options={"intervals": True})
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 200)
    features = np.stack([labels + rng.normal(size=200), rng.normal(size=200)], axis=1)
    fitted = sklearn_like.fit(features, np.array(["c", "a", "b"])[labels])
    ends, p = fitted.predict_interval(features, 0.8), fitted.predict_proba(features)
    assert ends.shape == (200, 3, 2)
    assert (ends[:, :, 0] <= p + 1e-12).all()
    assert (p <= ends[:, :, 1] + 1e-12).all()
    with pytest.raises(ValueError, match="no intervals"):
        package.Classifier("nb", "map").fit(features, labels).predict_interval(features)


def test_a_prior_worth_many_rows_makes_probabilities_surer(bncli: Bncli) -> None:
    words = ("fit", "tumours.csv", "--structure", "nb", "--param", "map", "-q")
    assert bncli(*words, "-o", "prior.bnc").code == 0
    widths = []
    for more in ([], ["--prior-network", "prior.bnc", "--prior-rows", "5000"]):
        assert bncli(*words, *more, "--intervals", "-o", "m.bnc").code == 0
        ends = package.load("m.bnc").predict_interval("tumours.csv")
        widths.append(float((ends[:, :, 1] - ends[:, :, 0]).mean()))
    assert widths[1] < widths[0] / 2


def test_counts_have_the_intervals_of_their_rows(bncli: Bncli) -> None:
    assert bncli("discretize", "tumours.csv", "-q", "--cuts-out", "cuts.json").code == 0
    assert bncli("count", "tumours.csv", "--cuts", "cuts.json", "-q", "-o", "t.counts").code == 0
    words = ("--structure", "nb", "--param", "map", "--intervals", "-q")
    assert bncli("fit", "--from-counts", "t.counts", *words, "-o", "a.bnc").code == 0
    assert bncli("fit", "tumours.csv", "--cuts", "cuts.json", *words, "-o", "b.bnc").code == 0
    assert Path("a.bnc").read_bytes() == Path("b.bnc").read_bytes()


def test_a_label_that_ends_like_a_column_of_intervals_is_one_line(bncli: Bncli) -> None:
    rows = "".join(f"{i % 7},{'a' if i % 3 else 'a_low'}\n" for i in range(60))
    Path("t.csv").write_text(f"x,class\n{rows}")
    assert bncli("fit", "t.csv", "--param", "map", "--intervals", "-q", "-o", "m.bnc").code == 0
    ran = bncli("score", "m.bnc", "t.csv", "--interval", "0.9")
    assert ran.code == 2
    assert "'p_a_low'" in ran.err
    assert len(ran.err.splitlines()) == 1


def test_inspect_tells_whether_a_model_has_intervals(bncli: Bncli) -> None:
    words = ("fit", "tumours.csv", "--structure", "nb", "--param", "map", "-q", "-o", "m.bnc")
    assert bncli(*words, "--intervals").code == 0
    assert json.loads(bncli("inspect", "m.bnc", "--json").out)["intervals"]["method"] == "posterior"
    assert "intervals" in bncli("inspect", "m.bnc").out
    assert bncli(*words).code == 0
    assert "intervals" not in json.loads(bncli("inspect", "m.bnc", "--json").out)


@pytest.mark.slow
def test_an_ensemble_has_the_spread_of_its_components(bncli: Bncli) -> None:
    words = ("fit", "tumours.csv", "--structure", "auto", "--effort", "1", "-o", "m.bnc")
    ran = bncli(*words, "--intervals")
    assert "intervals   spread within and between the components of the ensemble; " in ran.err
    model = read_model("m.bnc")
    assert model.uncertainty is not None
    assert model.uncertainty.method is UncertaintyMethod.SPREAD
    assert Path("m.bnc").read_bytes() == dump_model(model)
    report = json.loads(bncli("inspect", "m.bnc", "--json").out)
    assert report["intervals"] == {"method": "spread", "bytes": model.uncertainty.entries.nbytes}
    rows = rows_of(bncli("score", "m.bnc", "tumours.csv", "--interval", "0.9").out)
    for label in LABELS:
        assert (np.diff(ends_of(rows, label), axis=1) >= 0).all()
    effects = json.loads(bncli("explain", "m.bnc", "--json").out)["effects"]
    assert all(np.max(effect["margins"]) > 0 for effect in effects)
    other = package.Model(with_positive_label(model, "benign")).predict_interval("tumours.csv")
    np.testing.assert_allclose(other[:, ::-1], package.load("m.bnc").predict_interval("tumours.csv"), rtol=1e-9)
    wrong = replace(model, uncertainty=replace(model.uncertainty, method=UncertaintyMethod.LAPLACE))
    Path("w.bnc").write_bytes(dump_model(wrong))
    with pytest.raises(ModelError, match="no intervals of the method"):
        read_model("w.bnc")
    assert bncli(*words).code == 0
    assert Path("m.bnc").read_bytes() == dump_model(replace(model, uncertainty=None))


@pytest.mark.parametrize(
    ("how", "tolerance"),
    [({}, 0.05), pytest.param({"param": "discriminative", "penalty": 2}, 1e-3, marks=pytest.mark.slow)],
)
def test_class_weights_are_no_rows(how: dict[str, Any], tolerance: float) -> None:
    """The same factor in all weights, and in the penalty, makes no probability surer."""
    path, widths = str(SAMPLE / "tumours.csv"), []
    for factor in (1, 10):
        words = {name: factor * value if name == "penalty" else value for name, value in how.items()}
        weights = dict.fromkeys(LABELS, factor)
        model = learned(path, discretize="equal-width", class_weights=weights, **words)
        widths.append(np.diff(model.predict_interval(path), axis=2).mean())
    assert widths[1] == pytest.approx(widths[0], rel=tolerance)
    plain = learned(path, discretize="equal-width", **how)
    assert np.diff(plain.predict_interval(path), axis=2).mean() == pytest.approx(widths[0], rel=1e-3)


@pytest.mark.slow
def test_an_ensemble_with_class_weights_has_intervals(bncli: Bncli) -> None:
    words = ("fit", "tumours.csv", "--structure", "auto", "--effort", "1", "--class-weights", "malignant=5")
    assert bncli(*words, "--intervals", "-q", "-o", "m.bnc").code == 0
    model = package.load("m.bnc")
    for prior in (None, "training"):
        p, ends = model.predict_proba("tumours.csv", prior=prior), model.predict_interval("tumours.csv", prior=prior)
        assert (ends[:, :, 0] <= p + 1e-12).all()
        assert (p <= ends[:, :, 1] + 1e-12).all()


def test_python_leaves_rows_with_wide_intervals_undecided(bncli: Bncli) -> None:
    assert bncli("fit", "iris.csv", "--structure", "nb", "--penalty", "1", "--intervals", "-q", "-o", "m.bnc").code == 0
    model = package.load("m.bnc")
    for more, options in (
        ((), {}),
        (("--interval", "0.8", "--abstain-below", "0.8"), {"level": 0.8, "abstain_below": 0.8}),
    ):
        rows = rows_of(bncli("score", "m.bnc", "iris.csv", "--abstain-wider", "0.3", *more).out)
        decided = model.decide("iris.csv", abstain_wider=0.3, **options).labels
        assert [label or "" for label in decided] == [row["decision"] for row in rows]
    shifted = model.decide("iris.csv", abstain_wider=0.3, prior="training").labels
    assert list(shifted) == list(model.decide("iris.csv", abstain_wider=0.3).labels)
    for options, word in (({"abstain_wider": 3}, "abstain_wider"), ({"level": 0.9, "abstain_below": 0.5}, "no effect")):
        with pytest.raises(UsageError, match=word):
            model.decide("iris.csv", **options)


@pytest.mark.parametrize("param", ["map", "weighted", "discriminative"])
def test_two_rows_leave_a_probability_open(param: str) -> None:
    rows = {"a": ["u", "v"], "b": ["x", "z"], "class": ["no", "yes"]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = package.fit(rows, class_="class", structure="nb", param=param, intervals=True, progress=silent)
    ends = model.predict_interval({name: rows[name] for name in ("a", "b")}, 0.9)
    widths = ends[:, :, 1] - ends[:, :, 0]
    assert (widths > 0.7).all()
    assert (widths < 1).all()
