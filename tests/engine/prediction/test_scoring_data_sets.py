"""Log-probabilities of coded rows: the definition row by row, any number of threads, the scorer's very bits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bncli.engine.data import dataset
from bncli.engine.data.dataset import Dataset
from bncli.engine.prediction.scoring import compile_scorer, log_probabilities, log_probabilities_of
from tests.many_tables import boosted_model, mixed_ensemble, random_codes, random_schema
from tests.scoring_oracle import slow_log_probabilities


@pytest.mark.parametrize("n_labels", [2, 7])
def test_equals_the_definition_whatever_the_number_of_threads(monkeypatch: pytest.MonkeyPatch, n_labels: int) -> None:
    monkeypatch.setattr(dataset, "ROWS_PER_BLOCK", 10)
    model = boosted_model(random_schema(5, n_labels, intervals=5), 40, most=3)
    data = Dataset(model.schema, tuple(random_codes(model.schema, 50, unknown=0.1)), np.zeros(50, np.uint8))
    assert len(data.bounds()) > 1
    expected = [slow_log_probabilities(model, {i: int(c[t]) for i, c in enumerate(data.codes)}) for t in range(50)]
    actual = log_probabilities_of(model.predictor, data)
    np.testing.assert_allclose(actual, np.array(expected).T, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(actual, log_probabilities_of(model.predictor, replace(data, threads=2)))


def test_is_what_the_scorer_says_of_an_ensemble() -> None:
    model = mixed_ensemble(random_schema(6, 3), 70)
    codes = random_codes(model.schema, 30)
    scorer = compile_scorer(model)
    expected = log_probabilities(scorer, [codes[a] for a in scorer.used])
    data = Dataset(model.schema, tuple(codes), np.zeros(30, np.uint8))
    np.testing.assert_array_equal(log_probabilities_of(model.predictor, data), expected)


def test_no_rows_and_no_attributes() -> None:
    model = boosted_model(random_schema(3, 2), 0)
    nothing = Dataset(model.schema, tuple(random_codes(model.schema, 0)), np.zeros(0, np.uint8))
    assert log_probabilities_of(model.predictor, nothing).shape == (2, 0)
    some = Dataset(model.schema, tuple(random_codes(model.schema, 4)), np.zeros(4, np.uint8))
    assert len(np.unique(log_probabilities_of(model.predictor, some)[0])) == 1
