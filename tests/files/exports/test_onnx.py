"""ONNX graphs say what the model says, in onnxruntime and in the reference evaluator of ONNX, whatever the names."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import onnx
import onnx.reference
import onnxruntime
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bncli.engine.model import Model
from bncli.engine.prediction.portable import make_portable, make_portable_effects
from bncli.engine.prediction.verification import ProbeRows, probe_rows
from bncli.errors import ModelError, UsageError
from bncli.files.exports import onnx as form
from bncli.files.exports.onnx import onnx_bytes, run_onnx
from bncli.files.exports.programs import ProgramTarget
from tests.files.exports.test_programs import TARGET, nasty
from tests.many_tables import boosted_model, random_schema
from tests.paths import Case, learnt_paths, model_of
from tests.strategies import models, regrouped_models
from tests.sweeps import examples


def feed(probes: ProbeRows) -> dict[str, Any]:
    """The rows as columns (N, 1)."""
    found = {}
    for one, values in zip(probes.inputs, probes.values, strict=True):
        if one.cuts is None:
            found[one.name] = np.array([["" if value is None else value] for value in values], object)
        else:
            found[one.name] = np.array([[np.nan if value is None else value] for value in values], np.float64)
    return found


def difference(model: Model) -> float:
    probes = probe_rows(model, 40, np.random.default_rng(0))
    said = run_onnx(onnx_bytes(make_portable(model), TARGET), probes.rows())
    assert said is not None
    return float(np.abs(np.array(said).T - probes.probabilities).max())


@settings(max_examples=examples(13))
@given(st.one_of(models(), regrouped_models()))
def test_onnxruntime(model: Model) -> None:
    assume(make_portable(model).inputs)
    assert difference(model) < 1e-12
    assert difference(nasty(model)) < 1e-12


@settings(max_examples=examples(6))
@given(learnt_paths())
def test_a_path(case: Case) -> None:
    model = model_of(*case[:3])
    assume(make_portable(model).inputs)
    assert difference(model) < 1e-12


@settings(max_examples=examples(6))
@given(regrouped_models())
def test_the_reference_evaluator_of_onnx(model: Model) -> None:
    """Another program: labels, too."""
    assume(make_portable(model).inputs)
    probes = probe_rows(model, 40, np.random.default_rng(0))
    session = onnx.reference.ReferenceEvaluator(onnx.load_from_string(onnx_bytes(make_portable(model), TARGET)))
    label, probabilities = session.run(None, feed(probes))
    np.testing.assert_allclose(probabilities.T, probes.probabilities, rtol=0, atol=1e-12)
    best = [model.schema.labels[i] for i in probabilities.argmax(axis=1)]
    assert label.tolist() == best


@settings(max_examples=examples(10))
@given(st.one_of(models(), regrouped_models()))
def test_contributions_add_up(model: Model) -> None:
    """To the log-odds of every label against the geometric mean of the others; their names are told."""
    scorer = make_portable(model)
    assume(scorer.inputs)
    options = {"contributions": True}
    content = onnx_bytes(
        scorer, TARGET._replace(options=options, effects=partial(make_portable_effects, model, scorer.inputs))
    )
    probes = probe_rows(model, 40, np.random.default_rng(0))
    session = onnxruntime.InferenceSession(content)
    _, probabilities, found = session.run(None, feed(probes))
    told = {
        one.key: json.loads(one.value) for one in onnx.load_from_string(content).metadata_props if one.key != "class"
    }
    n_labels = len(told["labels"])
    logs = np.log(probabilities)
    expected = n_labels / (n_labels - 1) * (logs - logs.mean(axis=1, keepdims=True))
    np.testing.assert_allclose(told["base"] + found.sum(axis=1), expected, rtol=0, atol=1e-9)
    assert found.shape == (probes.n_rows, len(told["contributions"]), n_labels)
    assert {name for names in told["contributions"] for name in names} == {one.name for one in scorer.inputs}


def contributions(content: bytes, probes: ProbeRows) -> dict[tuple[str, ...], Any]:
    """Of every set of attributes, (N, K)."""
    *_, found = onnxruntime.InferenceSession(content).run(None, feed(probes))
    properties = {one.key: one.value for one in onnx.load_from_string(content).metadata_props}
    sets = [tuple(sorted(names)) for names in json.loads(properties["contributions"])]
    assert len({*sets}) == len(sets) == found.shape[1]
    return {names: found[:, i] for i, names in enumerate(sets)}


@pytest.mark.slow
@pytest.mark.parametrize("n_labels", [2, 3])
def test_contributions_of_many_trees_are_looked_up_in_several_tables_a_set(n_labels: int) -> None:
    """One table a set, in the joint binning of its trees, has more cells, and says the same."""
    model = boosted_model(random_schema(8, n_labels, intervals=20), 400, most=3)
    inputs = make_portable(model).inputs
    apart = make_portable_effects(model, inputs, apart=True).tables
    joined = make_portable_effects(model, inputs).tables
    cells = [sum(table.entries.shape[1] for table in tables) for tables in (joined, apart)]
    assert cells[0] > cells[1]
    assert len(apart) > len(joined)
    probes = probe_rows(model, 100, np.random.default_rng(0))
    found = []
    for effects in (partial(make_portable_effects, model, inputs), lambda apart: make_portable_effects(model, inputs)):
        target = TARGET._replace(options={"contributions": True}, effects=effects)
        found.append(contributions(onnx_bytes(make_portable(model), target), probes))
    assert found[0].keys() == found[1].keys()
    for names, values in found[0].items():
        np.testing.assert_allclose(values, found[1][names], rtol=0, atol=1e-12)


def renamed(model: Model, *names: str) -> Model:
    attributes = [replace(a, name=name) for a, name in zip(model.schema.attributes, names, strict=False)]
    rest = model.schema.attributes[len(attributes) :]
    return replace(model, schema=replace(model.schema, attributes=(*attributes, *rest)))


@settings(max_examples=examples(6))
@given(models(), st.permutations(["label", "probabilities", "0", "_c0", "__n1"]))
def test_columns_named_as_what_is_inside(model: Model, names: list[str]) -> None:
    """Outputs have an underscore more where a column has their name; numbers are names as any."""
    model = renamed(model, *names)
    scorer = make_portable(model)
    assume(scorer.inputs)
    assert difference(model) < 1e-12
    session = onnxruntime.InferenceSession(onnx_bytes(scorer, TARGET))
    inputs = [one.name for one in session.get_inputs()]
    assert inputs == [one.name for one in scorer.inputs]
    expected = [word + "_" * (word in inputs) for word in ("label", "probabilities")]
    assert [one.name for one in session.get_outputs()] == expected


def test_no_column(monkeypatch: pytest.MonkeyPatch) -> None:
    model = next(filter(lambda one: not make_portable(one).inputs, _without_inputs()))
    with pytest.raises(ModelError, match="the model uses no column"):
        onnx_bytes(make_portable(model), TARGET)


def _without_inputs() -> list[Model]:
    from bncli.engine.structures.structure import Dag
    from tests.datasets import schema_of
    from tests.engine.networks.test_network import model_of as network

    return [network(schema_of((), 2), Dag((), ()), 1.0, 0)]


def test_without_the_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(UsageError, match=r"needs the package 'onnx', .*pip install 'bncli\[onnx\]'") as caught:
        onnx_bytes(make_portable(_without_inputs()[0]), ProgramTarget("m"))
    assert caught.value.exit_code == 2
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert run_onnx(b"", []) is None
    assert not form.FORMAT.is_text
