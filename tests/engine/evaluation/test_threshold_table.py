"""Tables of thresholds and gains beside slow obvious counts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bncli.engine.evaluation.classification_curves import gains, label_curves, threshold_table

ROWS = st.lists(st.tuples(st.integers(0, 1000), st.booleans(), st.integers(1, 3)), min_size=1, max_size=40)


@settings(max_examples=60, deadline=None)
@given(ROWS)
def test_every_threshold_counts_what_lies_at_or_above_it(rows: list[tuple[int, bool, int]]) -> None:
    log_p = np.log(np.array([max(p, 1) / 1003 for p, _, _ in rows]))  # never next to a threshold
    own, weights = np.array([o for _, o, _ in rows]), np.array([float(w) for _, _, w in rows])
    table = threshold_table(log_p, own, weights)
    for threshold, found, alarms in zip(table.thresholds, table.found, table.false_alarms, strict=True):
        above = np.exp(log_p) >= threshold
        assert (found, alarms) == (weights[above & own].sum(), weights[above & ~own].sum())
    assert (table.positives, table.negatives) == (weights[own].sum(), weights[~own].sum())


def test_gains_are_shares_of_rows_against_shares_found() -> None:
    rng = np.random.default_rng(0)
    p = rng.permutation(60) / 61 + 0.005
    labels = (rng.random(60) < p).astype(np.int64)
    curve = label_curves(np.log(np.stack([1 - p, p])), labels)[1].roc
    assert curve is not None
    found = gains(curve, float(labels.mean()))
    for threshold, looked_at, share in zip(curve.thresholds[1:], found.looked_at[1:], found.found[1:], strict=True):
        above = p >= threshold - 1e-12
        assert looked_at == pytest.approx(above.mean())
        assert share == pytest.approx(labels[above].sum() / labels.sum())
