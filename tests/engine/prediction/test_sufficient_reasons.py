"""Sufficient reasons beside the definition: every set of attributes, and every completion of it."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bncli.engine.calibration import Calibration, Isotonic, Knots, PerClass, Temperature
from bncli.engine.model import Component, DecisionRule, Ensemble, Model, Tables, Threshold
from bncli.engine.prediction import least_scores
from bncli.engine.prediction.decision_rules import decide_labels
from bncli.engine.prediction.scoring import compile_scorer, log_probabilities, shift_log_probabilities, uncalibrated
from bncli.engine.prediction.sufficient_reasons import ReasonSearch
from bncli.engine.structures.structure import Dag
from bncli.errors import ModelError
from tests.strategies import models, regrouped_models
from tests.sweeps import examples

Rows = list[np.ndarray]
TWO_LABELS = st.sampled_from(
    [
        (None, None),
        (Temperature(2.0), None),
        (PerClass((0.5, 2.0), (0.3, -0.2)), DecisionRule(threshold=Threshold(0.3))),
        (Isotonic((Knots((0.2, 0.5, 0.9), (0.1, 0.4, 0.8)),)), DecisionRule(threshold=Threshold(0.4))),
        (None, DecisionRule(threshold=Threshold(0.9), abstain_below=0.7)),
        (None, DecisionRule(abstain_below=0.8)),
        (None, DecisionRule(costs=((0.0, 1.0), (8.0, 0.0)))),
        (Temperature(0.5), DecisionRule(costs=((0.0, 5.0), (1.0, 0.0)), abstain_below=0.6)),
    ]
)


def random_rows(model: Model, used: tuple[int, ...], n: int, seed: int) -> Rows:
    rng = np.random.default_rng(seed)
    return [
        np.where(rng.random(n) < 0.1, model.schema.cardinalities[a], rng.integers(0, model.schema.cardinalities[a], n))
        for a in used
    ]


class Case:
    """A model with what it decides, and its search."""

    def __init__(self, model: Model, rule: DecisionRule | None = None, shift: np.ndarray | None = None) -> None:
        self.model, self.scorer = model, compile_scorer(model)
        self.decide = partial(decide_labels, rule, model.schema.labels)

        def finish(log_p: np.ndarray) -> np.ndarray:
            calibrated = log_p if model.calibration is None else model.calibration.map.apply(log_p)
            return shift_log_probabilities(calibrated, shift)

        self.finish = finish
        self.is_strict = rule is not None and rule.abstain_below is not None and rule != DecisionRule(abstain_below=0.8)
        self.search = ReasonSearch(model, self.scorer.used, finish, self.decide, rule, shift, 60.0, lambda: 0.0)

    def decisions(self, rows: Rows, n: int) -> np.ndarray:
        return self.decide(self.finish(uncalibrated(self.scorer, [r.astype(np.uint32) for r in rows], n)))

    def fixes(self, row: list[int], members: tuple[int, ...], decision: int) -> bool:
        cardinalities = [self.model.schema.cardinalities[a] for a in self.scorer.used]
        domains = [[row[p]] if p in members else range(n + (row[p] == n)) for p, n in enumerate(cardinalities)]
        completions = list(itertools.product(*domains))
        columns = [np.array(column) for column in zip(*completions, strict=True)]
        return bool((self.decisions(columns, len(completions)) == decision).all())

    def check(self, rows: Rows, n: int) -> None:
        raw = uncalibrated(self.scorer, [r.astype(np.uint32) for r in rows], n)
        reasons = self.search.find([r.astype(np.uint32) for r in rows], self.finish(raw))
        for t, decision in enumerate(self.decisions(rows, n).tolist()):
            row = [int(column[t]) for column in rows]
            members = tuple(np.flatnonzero(reasons.members[t]).tolist())
            assert self.fixes(row, members, decision)
            assert reasons.exact[t] or (self.is_strict and members)
            if not reasons.exact[t]:
                continue
            assert reasons.at_least[t] == len(members)
            fewer = itertools.combinations(range(len(row)), max(len(members) - 1, 0)) if members else ()
            assert not any(self.fixes(row, fewer_members, decision) for fewer_members in fewer)


@settings(max_examples=examples(20), deadline=None)
@given(models() | regrouped_models(), st.integers(0, 1000))
def test_no_smaller_set_fixes_the_most_probable_label(model: Model, seed: int) -> None:
    case = Case(model)
    case.check(random_rows(model, case.scorer.used, 6, seed), 6)


@settings(max_examples=examples(20), deadline=None)
@given(models(max_attributes=7), st.integers(0, 1000))
def test_nor_with_tables_over_single_attributes(model: Model, seed: int) -> None:
    n_attributes, n_labels = len(model.schema.attributes), len(model.schema.labels)
    dag = Dag(((),) * n_attributes, tuple(range(n_attributes)))
    rng = np.random.default_rng(seed)
    families = dag.families(model.schema.cardinalities)
    weights = tuple(rng.normal(size=(family.n_cells, n_labels)) for family in families)
    case = Case(replace(model, structure=dag, predictor=Tables(rng.normal(size=n_labels), families, weights)))
    case.check(random_rows(case.model, case.scorer.used, 6, seed), 6)


@settings(max_examples=examples(20), deadline=None)
@given(models(max_labels=2) | regrouped_models(max_labels=2), st.integers(0, 1000), TWO_LABELS)
def test_nor_any_decision_between_two_labels(model: Model, seed: int, how: tuple[object, DecisionRule | None]) -> None:
    calibration, rule = how
    if calibration is not None:
        model = replace(model, calibration=Calibration(calibration, 10, 1.0, 1.0))  # type: ignore[arg-type]
    case = Case(model, rule, np.array([0.2, -0.1]))
    case.check(random_rows(model, case.scorer.used, 6, seed), 6)


@settings(max_examples=examples(6), deadline=None)
@given(models(), st.integers(0, 1000))
def test_another_prior_and_a_temperature(model: Model, seed: int) -> None:
    shift = np.random.default_rng(seed).normal(size=len(model.schema.labels))
    case = Case(replace(model, calibration=Calibration(Temperature(3.0), 10, 1.0, 1.0)), None, shift)
    case.check(random_rows(model, case.scorer.used, 4, seed), 4)


@settings(max_examples=examples(6), deadline=None)
@given(models(), st.integers(0, 1000))
def test_averages_of_models_get_a_set_that_fixes_the_decision_and_do_not_claim_more(model: Model, seed: int) -> None:
    assert isinstance(model.tables, type(model.predictor))
    tables = model.tables
    other = replace(tables, weights=tuple(w * 0.5 for w in tables.weights))
    pool = replace(model, predictor=Ensemble((Component(0.6, tables, "a"), Component(0.4, other, "b"))))
    case = Case(pool)
    rows = random_rows(pool, case.scorer.used, 4, seed)
    raw = log_probabilities(case.scorer, [r.astype(np.uint32) for r in rows], 4)
    reasons = case.search.find([r.astype(np.uint32) for r in rows], raw)
    for t, decision in enumerate(case.decisions(rows, 4).tolist()):
        members = tuple(np.flatnonzero(reasons.members[t]).tolist())
        assert case.fixes([int(column[t]) for column in rows], members, decision)
        assert reasons.exact[t] == (not members)


@settings(max_examples=examples(6), deadline=None)
@given(model=models(), seed=st.integers(0, 1000))
def test_tables_that_are_only_bounded_get_a_set_that_fixes_the_decision(model: Model, seed: int) -> None:
    kept, least_scores.MOST_CELLS = least_scores.MOST_CELLS, 1
    try:
        case = Case(model)
        rows = random_rows(model, case.scorer.used, 4, seed)
        raw = log_probabilities(case.scorer, [r.astype(np.uint32) for r in rows], 4)
        reasons = case.search.find([r.astype(np.uint32) for r in rows], raw)
        for t, decision in enumerate(case.decisions(rows, 4).tolist()):
            members = tuple(np.flatnonzero(reasons.members[t]).tolist())
            row = [int(column[t]) for column in rows]
            assert case.fixes(row, members, decision)
            if reasons.exact[t] and members:
                fewer = itertools.combinations(range(len(row)), len(members) - 1)
                assert not any(case.fixes(row, fewer_members, decision) for fewer_members in fewer)
    finally:
        least_scores.MOST_CELLS = kept


@settings(max_examples=5, deadline=None)
@given(models(max_labels=4).filter(lambda model: len(model.schema.labels) > 2))
def test_decisions_that_are_no_sums_of_tables_are_refused(model: Model) -> None:
    with pytest.raises(ModelError, match="most probable label"):
        Case(model, DecisionRule(abstain_below=0.5))
    n = len(model.schema.labels)
    with pytest.raises(ModelError, match="most probable label"):
        Case(model, DecisionRule(costs=tuple(tuple(float(i != j) for j in range(n)) for i in range(n))))
    maps = PerClass((1.0,) * n, (0.0,) * n)
    with pytest.raises(ModelError, match="per-class calibration"):
        Case(replace(model, calibration=Calibration(maps, 10, 1.0, 1.0)))
