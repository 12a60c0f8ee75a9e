"""Programs that score rows by themselves say what the model says, whatever its names."""

from __future__ import annotations

import base64
import json
import re
import shutil
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bncli.engine.data.schema import CategoricalAttribute, NumericAttribute, Schema
from bncli.engine.model import Model, Tables
from bncli.engine.prediction.portable import make_portable
from bncli.engine.prediction.verification import probe_rows
from bncli.engine.structures.structure import Dag
from bncli.errors import BncliError
from bncli.files.exports import javascript, python
from bncli.files.exports.programs import ProgramTarget
from bncli.recipe import Recipe
from tests.paths import Case, learnt_paths, model_of
from tests.strategies import models, regrouped_models

TARGET = ProgramTarget("m", ("", "?"), ("", "?", "NA"))
NASTY = (
    'it\'s "so"',
    "back\\slash \\u0041",
    "new\nline",
    "</script>",
    "__proto__",
    "\u2028\u202e",
    "{x} %s",
    "😀",
    "10",
    "2",
    "None",
)


def module(text: str) -> dict[str, Any]:
    space: dict[str, Any] = {}
    exec(compile(text, "program", "exec"), space)
    return space


def nasty(model: Model) -> Model:
    """Names, levels and labels that a careless writer stumbles over."""
    schema = model.schema
    attributes = tuple(
        replace(a, name=NASTY[i], **({"levels": NASTY[: len(a.levels)]} if isinstance(a, CategoricalAttribute) else {}))
        for i, a in enumerate(schema.attributes)
    )
    labels = NASTY[-len(schema.labels) :]
    return replace(model, schema=replace(schema, class_name='a """ class', labels=labels, attributes=attributes))


def difference(model: Model) -> float:
    program = module(python.python_text(make_portable(model), TARGET))
    probes = probe_rows(model, 40, np.random.default_rng(0))
    said = [list(program["predict_proba"](row).values()) for row in probes.rows()]
    return float(np.abs(np.array(said).T - probes.probabilities).max())


@given(st.one_of(models(), regrouped_models()))
def test_python(model: Model) -> None:
    assert difference(model) < 1e-12
    assert difference(nasty(model)) < 1e-12


@given(learnt_paths())
def test_a_path_in_python(case: Case) -> None:
    assert difference(model_of(*case[:3])) < 1e-12


@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not at hand")
@settings(max_examples=2)
@given(regrouped_models(), learnt_paths())
def test_javascript(model: Model, case: Case) -> None:
    for one in (nasty(model), model_of(*case[:3])):
        probes = probe_rows(one, 40, np.random.default_rng(0))
        said = javascript.FORMAT.run(javascript.javascript_text(make_portable(one), TARGET), probes.rows())
        assert said is not None
        assert np.abs(np.array(said).T - probes.probabilities).max() < 1e-12
        packed = javascript.FORMAT.run(javascript.packed_javascript(make_portable(one), TARGET), probes.rows())
        assert np.abs(np.array(packed).T - probes.probabilities).max() < 1e-9


@given(
    st.lists(st.lists(st.floats(-30, 30), min_size=3, max_size=3), min_size=1, max_size=5),
    st.sampled_from([1e-6, 1.0, 1e3]),
)
@example([[0.0, 0.0, 8.0e-303]], 1e-6)  # divided by 2^39, it has no digit left
@example([[0.0, 5e-300, -8.0e-303]], 1.0)
def test_packed_entries_are_what_they_were(rows: list[list[float]], scale: float) -> None:
    entries = scale * np.array(rows)
    schema = Schema("class", ("a", "b"), (NumericAttribute("n", False, (1.0, 1.0, 1.0), (0.5, 1.5)),))
    dag = Dag(((),), (0,))
    tables = Tables(np.zeros(2), dag.families((3,)), (np.stack((entries[0], -entries[0]), axis=1),))
    scorer = make_portable(Model(schema, dag, tables, Recipe(), 2, "1"))
    table = replace(scorer.stages[0].tables[0], entries=entries)
    stage = replace(scorer.stages[0], tables=(table,))
    text = javascript.packed_javascript(replace(scorer, stages=(stage,)), TARGET)
    width = int(re.findall(r"bytes.length / (\d)", text)[0])
    (told,) = re.findall(r'"entries": (\[.*\])}', text)
    for (step, letters), row in zip(json.loads(told), entries, strict=True):
        octets = base64.b64decode(letters)
        wholes = [int.from_bytes(octets[i : i + width], "big") for i in range(0, len(octets), width)]
        read = step * (np.array(wholes, np.float64) - 2.0 ** (8 * width - 1))
        most = max(2.0 ** (1 - 8 * width) * np.abs(row).max(), sys.float_info.min / 2)
        assert np.abs(read - row).max() <= min(2e-10, most)
        assert np.array_equal(read == 0, np.abs(row) <= step / 2)


@pytest.mark.parametrize("form", [python, javascript])
def test_a_text_in_place_of_a_number_is_refused(form: Any) -> None:
    if form is javascript and shutil.which("node") is None:
        pytest.skip("Node is not at hand")
    schema = Schema("class", ("a", "b"), (NumericAttribute("n", False, (1.0, 1.0), (0.5,)),))
    dag = Dag(((),), (0,))
    tables = Tables(np.zeros(2), dag.families((2,)), (np.array([[0.0, 1.0], [1.0, 0.0]]),))
    model = Model(schema, dag, tables, Recipe(), 2, "1")
    text = form.FORMAT.write(make_portable(model), TARGET)
    said = form.FORMAT.run(text, [{"n": value} for value in (" 1e0 ", 1.0, "+.5", ".25", None, "NA")])
    assert said[0] == said[1]
    assert said[2] == said[3]
    assert said[4] == said[5] == [0.5, 0.5]
    for value in ("nan", "1_0", "0x10", "Infinity", "zwei", "1e400", True):
        with pytest.raises(BncliError, match=r"could not be run by .*not a (finite )?number"):
            form.FORMAT.run(text, [{"n": value}])
