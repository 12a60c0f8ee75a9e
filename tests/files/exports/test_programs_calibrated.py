"""Programs, views and graphs of calibrated models say what the model says, whatever its map and however it averages."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bncli.engine.calibration import Calibration, CalibrationMap, Isotonic, Knots, PerClass, Temperature
from bncli.engine.model import Component, Ensemble, Model, Pool, Tables
from bncli.engine.prediction.portable import make_portable
from bncli.engine.prediction.verification import probe_rows
from bncli.engine.structures.structure import Dag
from bncli.errors import ModelError
from bncli.files.exports import javascript, onnx, python, sql
from bncli.files.exports.programs import ProgramTarget
from bncli.files.exports.scorecard import scorecard_text
from bncli.recipe import Recipe
from tests.datasets import schema_of
from tests.files.exports.test_programs import TARGET, nasty
from tests.paths import learnt_paths, model_of
from tests.portable_oracle import portable_probabilities
from tests.strategies import models
from tests.sweeps import examples


@st.composite
def knots(draw: st.DrawFn) -> Knots:
    """Corners at least 1/1000 apart: nearer ones make the last digits of P large."""
    at = draw(st.lists(st.integers(0, 1000), min_size=1, max_size=20, unique=True).map(sorted))
    values = draw(st.lists(st.floats(0.001, 0.999), min_size=len(at), max_size=len(at)).map(sorted))
    return Knots(tuple(place / 1000 for place in at), tuple(values))


def maps(n_labels: int) -> st.SearchStrategy[CalibrationMap]:
    """Each kind, as `calibrate` learns them."""
    n_lines = 1 if n_labels == 2 else n_labels
    scales = st.lists(st.floats(0, 3), min_size=n_labels, max_size=n_labels).map(tuple)
    shifts = st.lists(st.floats(-4, 4), min_size=n_labels, max_size=n_labels).map(tuple)
    return st.one_of(
        st.floats(0.01, 100).map(Temperature),
        st.builds(PerClass, scales, shifts),
        st.lists(knots(), min_size=n_lines, max_size=n_lines).map(lambda found: Isotonic(tuple(found))),
    )


@st.composite
def calibrated_models(draw: st.DrawFn) -> Model:
    """One sum of tables, an average of two, or a path."""
    kind = draw(st.sampled_from(["tables", "average", "path"]))
    model = model_of(*draw(learnt_paths())[:3]) if kind == "path" else draw(models())
    if kind == "average":
        tables = model.tables
        other = replace(tables, bias=-tables.bias, weights=tuple(entries[::-1].copy() for entries in tables.weights))
        model = replace(
            model, predictor=Ensemble((Component(0.25, tables, "a"), Component(0.75, other, "b")), (), Pool.LINEAR)
        )
    return replace(model, calibration=Calibration(draw(maps(len(model.schema.labels))), 9, 1.0, 0.9))


def difference(model: Model, form: Any, target: ProgramTarget) -> float:
    probes = probe_rows(model, 40, np.random.default_rng(0))
    found = form.FORMAT.run(form.FORMAT.write(make_portable(model), target), probes.rows())
    return float(np.abs(np.array(found).T - probes.probabilities).max())


@given(calibrated_models())
def test_plainly(model: Model) -> None:
    scorer, probes = make_portable(model), probe_rows(model, 40, np.random.default_rng(0))
    codes = [np.array([one.code(v) for v in shown]) for one, shown in zip(probes.inputs, probes.values, strict=True)]
    assert np.abs(portable_probabilities(scorer, codes) - probes.probabilities).max() < 1e-11


def sql_target(dialect: str) -> ProgramTarget:
    return TARGET._replace(options={"dialect": dialect, "input": "rows", "key": "the key"})


@settings(deadline=None, max_examples=examples(13))
@given(calibrated_models())
def test_sqlite(model: Model) -> None:
    assert difference(nasty(model), sql, sql_target("sqlite")) < 1e-11


@settings(deadline=None, max_examples=examples(13))
@given(calibrated_models())
def test_onnxruntime(model: Model) -> None:
    assume(make_portable(model).inputs)
    assert _onnxruntime(model) < 1e-11


def _onnxruntime(model: Model) -> float:
    pytest.importorskip("onnxruntime")
    return difference(model, onnx, TARGET)


def _node(model: Model) -> float:
    if shutil.which("node") is None:
        pytest.skip("Node is not at hand")
    return difference(nasty(model), javascript, TARGET)


def _duckdb(model: Model) -> float:
    pytest.importorskip("duckdb")
    return difference(nasty(model), sql, sql_target("duckdb"))


def _postgres(model: Model) -> float:
    if sql.postgres_programs() is None:
        pytest.skip("PostgreSQL is not at hand")
    return difference(model, sql, sql_target("postgres"))


@pytest.mark.parametrize("run", [_node, _duckdb, lambda model: difference(nasty(model), python, TARGET)])
@settings(max_examples=settings.default.max_examples // 2)
@given(model=calibrated_models())
def test_the_others(run: Callable[[Model], float], model: Model) -> None:
    assert run(model) < 1e-11


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "path"), [(0, True), (1, False), (0, False), (1, True)])
@settings(deadline=None, max_examples=1)
@given(data=st.data())
def test_postgres(path: bool, kind: int, data: st.DataObject) -> None:
    model = model_of(*data.draw(learnt_paths())[:3]) if path else data.draw(models())
    n_labels = len(model.schema.labels)
    power = PerClass((0.05, 1.5, *[0.7] * (n_labels - 2)), (0.25,) * n_labels)
    line = Knots((0.1, 0.4, 0.9), (0.05, 0.5, 0.8))
    found = (power, Isotonic((line,) * (1 if n_labels == 2 else n_labels)))[kind]
    assert _postgres(replace(model, calibration=Calibration(found, 9, 1.0, 0.9))) < 1e-11


def two_classes(bias: tuple[float, float], found: CalibrationMap) -> Model:
    schema = schema_of((2,), 2)
    dag = Dag(((),), (0,))
    tables = Tables(np.array(bias), dag.families((2,)), (np.array([[0.0, 3.0], [1.0, 0.0]]),))
    return Model(schema, dag, tables, Recipe(), 2, "1", calibration=Calibration(found, 9, 1.0, 0.9))


@pytest.mark.parametrize(
    "run",
    [
        _node,
        _duckdb,
        _postgres,
        lambda model: difference(model, python, TARGET),
        lambda model: difference(model, sql, sql_target("sqlite")),
        _onnxruntime,
    ],
)
def test_probabilities_that_no_double_holds_are_raised_to_a_power(run: Callable[[Model], float]) -> None:
    """e^-900 to the power of 0.01 is one of 8,000."""
    model = two_classes((900.0, 0.0), PerClass((0.01, 0.01), (0.0, 0.5)))
    assert 1e-5 < probe_rows(model, 9, np.random.default_rng(0)).probabilities.min() < 1e-3
    assert run(model) < 1e-12


def test_an_average_that_is_0_has_a_logarithm() -> None:
    """A probability below all doubles in every member, to the power of 0: 1, as of any other."""
    model = two_classes((2000.0, 0.0), PerClass((0.0, 0.0), (0.0, 0.5)))
    members = (Component(0.25, model.tables, "a"), Component(0.75, model.tables, "b"))
    model = replace(model, predictor=Ensemble(members, (), Pool.LINEAR))
    scorer = make_portable(model)
    assert len(scorer.stages) == 2
    text = onnx.FORMAT.write(scorer, TARGET)
    found = np.array(onnx.FORMAT.run(text, probe_rows(model, 4, np.random.default_rng(0)).rows()))
    np.testing.assert_allclose(found, [[1 / (1 + np.exp(0.5)), 1 / (1 + np.exp(-0.5))]] * len(found), rtol=1e-12)


def test_points_do_not_add_up_to_a_map() -> None:
    scorer = make_portable(two_classes((0.0, 0.0), Isotonic((Knots((0.1, 0.4), (0.2, 0.3)),))))
    with pytest.raises(
        ModelError, match=("calibrated by a map of its probabilities, which sums of points cannot represent")
    ):
        scorecard_text(scorer, TARGET)
