"""Programs and views that decide, decide as `score` does: by costs, a threshold, and where none is probable enough."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bncli.engine.model import DecisionRule, Model, Threshold
from bncli.engine.prediction.decision_rules import Decider
from bncli.engine.prediction.portable import PortableScorer, PortableStage, make_portable
from bncli.engine.prediction.verification import probe_rows
from bncli.files.exports import javascript, python, sql
from bncli.files.exports.programs import ProgramTarget
from tests.files.exports.test_programs import TARGET, module, nasty
from tests.strategies import models
from tests.sweeps import examples

SQL = {"input": 'my "rows"', "key": "the key"}


@st.composite
def rules(draw: st.DrawFn, n_labels: int) -> DecisionRule:
    """One way to decide, or none, and a bound to abstain below, or none; not neither."""
    kinds = ["costs", "none", *(["threshold"] if n_labels == 2 else [])]
    kind = draw(st.sampled_from(kinds))
    bound = draw(st.floats(0.2, 0.9) if kind == "none" else st.none() | st.floats(0.2, 0.9))
    numbers = st.lists(st.integers(0, 9).map(float), min_size=n_labels, max_size=n_labels).map(tuple)
    costs = st.lists(numbers, min_size=n_labels, max_size=n_labels).map(tuple).filter(lambda m: any(map(any, m)))
    threshold = Threshold(draw(st.floats(0, 1))) if kind == "threshold" else None
    return DecisionRule(draw(costs) if kind == "costs" else None, threshold, bound)


def agree(model: Model, rule: DecisionRule, form: Any, target: ProgramTarget) -> None:
    probes = probe_rows(model, 40, np.random.default_rng(0))
    text = form.FORMAT.write(make_portable(model), target._replace(rule=rule))
    found = form.FORMAT.decide(text, probes.rows())
    p, labels = probes.probabilities, model.schema.labels
    decided = np.array([*labels, None], dtype=object)[Decider.of(rule, labels).decide(np.log(p)).codes]
    sure = slowly_sure(p, rule)
    assert np.array(found, dtype=object)[sure].tolist() == decided[sure].tolist()
    assert np.abs(np.array(form.FORMAT.run(text, probes.rows())).T - p).max() < 1e-12


def slowly_sure(p: Any, rule: DecisionRule) -> Any:
    """Rows that no change of 1e-9 in a probability decides otherwise, by trying some."""
    decider = Decider.of(rule, tuple("abcdefghij"[: len(p)]))
    plain = decider.decide(np.log(p)).codes
    same = np.ones(p.shape[1], np.bool_)
    for k in range(len(p)):
        for change in (-1e-9, 1e-9):
            moved = p.copy()
            moved[k] = np.maximum(moved[k] + change, 1e-300)
            same &= decider.decide(np.log(moved)).codes == plain
    return same


@given(models(), st.data())
def test_python_decides(model: Model, data: st.DataObject) -> None:
    model = nasty(model)
    rule = data.draw(rules(len(model.schema.labels)))
    text = python.python_text(make_portable(model), TARGET._replace(rule=rule))
    program, probes = module(text), probe_rows(model, 40, np.random.default_rng(0))
    found = np.array([program["decide"](row) for row in probes.rows()], dtype=object)
    labels = model.schema.labels
    decided = np.array([*labels, None], dtype=object)
    decided = decided[Decider.of(rule, labels).decide(np.log(probes.probabilities)).codes]
    sure = slowly_sure(probes.probabilities, rule)
    assert found[sure].tolist() == decided[sure].tolist()


@given(models(), st.data())
def test_margins_say_which_rows_rounding_can_turn(model: Model, data: st.DataObject) -> None:
    rule = data.draw(rules(len(model.schema.labels)))
    p = probe_rows(model, 40, np.random.default_rng(0)).probabilities
    turned = ~slowly_sure(p, rule)
    assert (Decider.of(rule, model.schema.labels).margins(p)[turned] <= 1e-8).all()


@pytest.mark.slow
@settings(deadline=None, max_examples=4)
@given(models(), st.data())
def test_the_others_decide(model: Model, data: st.DataObject) -> None:
    model = nasty(model)
    rule = data.draw(rules(len(model.schema.labels)))
    if shutil.which("node") is not None:
        agree(model, rule, javascript, TARGET)
    agree(model, rule, python, TARGET)


@settings(deadline=None, max_examples=examples(10))
@given(models(), st.data())
def test_sqlite_decides(model: Model, data: st.DataObject) -> None:
    rule = data.draw(rules(len(model.schema.labels)))
    agree(nasty(model), rule, sql, TARGET._replace(options={"dialect": "sqlite", **SQL}))


@settings(deadline=None, max_examples=4)
@given(models(), st.data())
def test_duckdb_decides(model: Model, data: st.DataObject) -> None:
    pytest.importorskip("duckdb")
    rule = data.draw(rules(len(model.schema.labels)))
    agree(nasty(model), rule, sql, TARGET._replace(options={"dialect": "duckdb", **SQL}))


def test_sql_decides_where_a_probability_just_reaches_a_bar() -> None:
    """Both labels have exactly one half."""
    scorer = PortableScorer("class", ("no", "yes"), (), (PortableStage(1.0, True, np.zeros(1), ()),))
    rules = {
        DecisionRule(abstain_below=0.5): "no",
        DecisionRule(threshold=Threshold(0.5)): "yes",
        DecisionRule(abstain_below=0.51): None,
    }
    for rule, expected in rules.items():
        text = sql.sql_text(scorer, TARGET._replace(rule=rule, options={"dialect": "sqlite", **SQL}))
        assert sql.decide_sql(text, [{"x": 1}]) == [expected]


@pytest.mark.slow
@pytest.mark.skipif(sql.postgres_programs() is None, reason="PostgreSQL is not at hand")
@settings(deadline=None, max_examples=1)
@given(models(), st.data())
def test_postgres_decides(model: Model, data: st.DataObject) -> None:
    rule = data.draw(rules(len(model.schema.labels)))
    agree(nasty(model), rule, sql, TARGET._replace(options={"dialect": "postgres", **SQL}))


@pytest.mark.parametrize("form", [python, javascript, sql])
@settings(max_examples=3)
@given(model=models())
def test_without_a_rule_nothing_is_written_of_decisions(form: Any, model: Model) -> None:
    text = form.FORMAT.write(make_portable(model), TARGET)
    assert "decide" not in text
    assert "decision" not in text
