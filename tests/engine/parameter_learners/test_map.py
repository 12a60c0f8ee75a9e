"""Parameters in closed form."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.model import StoppedBy
from bncli.engine.parameter_learners import map as closed_form
from bncli.engine.parameters.generative import generative_tables
from tests import oracles
from tests.strategies import dags, datasets


@given(datasets(max_rows=30), st.data(), st.sampled_from(["mle", "m-estimate:1", "fgg:5"]))
def test_the_generative_tables_and_their_likelihood(data: Dataset, draw: st.DataObject, rule: str) -> None:
    dag = draw.draw(dags(len(data.codes)))
    learnt = closed_form.learn(Counts(data), dag, smoothing=rule)
    tables = generative_tables(Counts(data), dag, rule)
    assert learnt.stopped_by is StoppedBy.CLOSED_FORM
    assert learnt.n_parameters == tables.bias.size + sum(w.size for w in tables.weights)
    np.testing.assert_array_equal(learnt.tables.bias, tables.bias)
    for ours, theirs in zip(learnt.tables.weights, tables.weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    cells = np.concatenate([tables.bias[:, np.newaxis], *(w.T for w in tables.weights)], axis=1)
    slow, _ = oracles.conditional_log_likelihood(tables.families, data, cells)
    assert learnt.cll == learnt.cll_start == pytest.approx(slow, rel=1e-10, abs=1e-10)
