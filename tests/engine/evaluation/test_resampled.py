"""The corrected test beside its formula, and by simulation: it finds nothing where there is nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from bncli.engine.evaluation.resampled import corrected_resampled_t
from bncli.engine.evaluation.significance import paired_t
from bncli.errors import BncliError

differences = st.lists(st.integers(-50, 50).map(lambda n: n / 100), min_size=2, max_size=30)


@given(differences, st.floats(0.05, 0.5))
def test_as_the_formula(d: list[float], share: float) -> None:
    n, mean, deviation = len(d), np.mean(d), np.std(d, ddof=1)
    found = corrected_resampled_t(d, share)
    assert (found.n, found.mean) == (n, pytest.approx(mean))
    if len(set(d)) == 1:
        assert found.p == (1.0 if d[0] == 0 else 0.0)
        return
    t = mean / (deviation * math.sqrt(1 / n + share / (1 - share)))
    assert found.t == pytest.approx(t, rel=1e-9, abs=1e-9)
    assert found.p == pytest.approx(2 * stats.t.sf(abs(t), n - 1), rel=1e-6)
    assert found.p_higher == pytest.approx(stats.t.sf(t, n - 1), rel=1e-6)
    assert found.p_lower == pytest.approx(stats.t.cdf(t, n - 1), rel=1e-6)


@given(differences)
def test_laws(d: list[float]) -> None:
    found, plain = corrected_resampled_t(d, 0.2), paired_t(d, np.zeros(len(d)))
    assert found.p >= plain.p
    turned = corrected_resampled_t([-x for x in d], 0.2)
    assert (turned.t, turned.p, turned.p_higher) == (-found.t, found.p, found.p_lower)
    tiny = corrected_resampled_t(d, 1e-12)
    assert (tiny.t, tiny.p) == (pytest.approx(plain.t, rel=1e-6), pytest.approx(plain.p, rel=1e-6, abs=1e-12))


def test_it_finds_nothing_where_there_is_nothing() -> None:
    """Two columns drawn alike, each predicted by its mean over the training rows: equally well.

    Over ten times five folds the plain test calls far more than one comparison in twenty different.
    """
    rng = np.random.default_rng(11)
    corrected, plain = [], []
    for _ in range(400):
        rows = rng.normal(size=(2, 60))
        d = []
        for _ in range(10):
            fold_of = rng.permutation(60) % 5
            for fold in range(5):
                tested, means = fold_of == fold, rows[:, fold_of != fold].mean(axis=1)
                losses = ((rows[:, tested] - means[:, np.newaxis]) ** 2).mean(axis=1)
                d.append(losses[0] - losses[1])
        corrected.append(corrected_resampled_t(d, 0.2).p)
        plain.append(paired_t(d, np.zeros(50)).p)
    assert np.mean(np.array(corrected) < 0.05) < 0.1
    assert np.mean(np.array(plain) < 0.05) > 0.3


def test_refused() -> None:
    for share in (0.0, 1.0, -1.0, math.nan):
        with pytest.raises(BncliError, match="share"):
            corrected_resampled_t([0.1, 0.2], share)
    with pytest.raises(BncliError, match="finite"):
        corrected_resampled_t([0.1, math.nan], 0.2)
    with pytest.raises(BncliError, match="one length"):
        corrected_resampled_t([[0.1, 0.2]], 0.2)


def test_too_few_folds() -> None:
    for d in ([], [0.5]):
        assert corrected_resampled_t(d, 0.2).p == 1.0
