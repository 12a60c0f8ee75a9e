"""The least value of a sum of tables, and bounds for sets of fixed attributes, beside all inputs."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.prediction import least_scores
from bncli.engine.prediction.least_scores import FREE, UNKNOWN, Contrast, Table


@st.composite
def contrasts(draw: st.DrawFn) -> Contrast:
    cardinalities = tuple(draw(st.lists(st.integers(1, 3), min_size=1, max_size=5)))
    n = len(cardinalities)
    scopes = draw(st.lists(st.sets(st.integers(0, n - 1), min_size=1, max_size=3), max_size=6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    tables = [Table(tuple(sorted(s)), rng.normal(size=[cardinalities[a] + 1 for a in sorted(s)])) for s in scopes]
    return Contrast(cardinalities, float(rng.normal()), tuple(tables))


def inputs(contrast: Contrast, fixed: np.ndarray) -> np.ndarray:
    pairs = zip(contrast.cardinalities, fixed, strict=True)
    domains = [range(n) if code == FREE else range(n + 1) if code == UNKNOWN else [code] for n, code in pairs]
    return np.array(list(itertools.product(*domains)), np.intp)


@given(contrasts(), st.integers(0, 1000))
def test_the_least_value_is_that_of_all_inputs(contrast: Contrast, seed: int) -> None:
    rng = np.random.default_rng(seed)
    fixed = np.array([[rng.integers(UNKNOWN, n + 1) for n in contrast.cardinalities] for _ in range(4)], np.intp)
    values, minimisers = contrast.minimise(fixed)
    assert contrast.exact
    for own, value, minimiser in zip(fixed, values, minimisers, strict=True):
        everything = inputs(contrast, own)
        np.testing.assert_allclose(value, contrast.values(everything).min(), atol=1e-12)
        np.testing.assert_allclose(value, contrast.values(minimiser[None])[0], atol=1e-12)
        assert (everything == minimiser).all(axis=1).any()


@given(contrasts(), st.integers(0, 1000))
def test_no_set_exceeds_the_bound(contrast: Contrast, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = len(contrast.cardinalities)
    own = np.array([[rng.integers(0, m + 1) for m in contrast.cardinalities]], np.intp)
    members = rng.random((1, n)) < 0.2
    may = ~members & (rng.random((1, n)) < 0.8)
    least = float(rng.normal())
    game = contrast.game(own, members, may, n)
    bounds = game.bound[:, 0]
    assert (np.diff(bounds) >= 0).all()
    single = all(len(table.positions) == 1 for table in contrast.tables)
    for k in range(n + 1):
        best = -np.inf
        for added in itertools.combinations(np.flatnonzero(may[0]).tolist(), min(k, int(may.sum()))):
            fixed = np.where(members[0], own[0], np.where(own[0] == contrast.cardinalities, UNKNOWN, FREE))
            fixed[list(added)] = own[0][list(added)]
            best = max(best, contrast.values(inputs(contrast, fixed)).min())
        assert best <= bounds[k] + 1e-12
        if single:
            np.testing.assert_allclose(best, bounds[k], atol=1e-12)
    needed = int((bounds < least).sum())
    if needed <= n:
        chosen = game.choices(np.zeros(1, np.intp), np.array([needed]))[:, 0]
        assert (chosen >= members[0]).all()
        assert (chosen <= (members | may)[0]).all()
        assert chosen.sum() - members[0].sum() <= needed


def test_too_large_joint_tables_give_a_lower_bound(monkeypatch: object) -> None:
    rng = np.random.default_rng(0)
    tables = [Table(pair, rng.normal(size=(4, 4))) for pair in itertools.combinations(range(6), 2)]
    whole = Contrast((3,) * 6, 0.0, tuple(tables))
    fixed = np.full((1, 6), FREE, np.intp)
    exact = whole.minimise(fixed)[0][0]
    monkeypatch.setattr(least_scores, "MOST_CELLS", 30)  # type: ignore[attr-defined]
    bounded = Contrast(whole.cardinalities, 0.0, whole.tables)
    value, minimiser = bounded.minimise(fixed)
    assert not bounded.exact
    assert value[0] <= exact + 1e-12
    assert bounded.values(minimiser)[0] >= exact - 1e-12
    assert np.isinf(bounded.game(np.zeros((1, 6), np.intp), fixed == 0, fixed != 0, 6).bound).all()
