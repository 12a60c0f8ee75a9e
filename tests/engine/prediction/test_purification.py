"""Purified scores: contrasts, the same sum, mean 0 along each axis, and tensors in different binnings."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.data.schema import CategoricalAttribute, Schema
from bncli.engine.model import Model
from bncli.engine.prediction.purification import (
    ContrastTensor,
    Score,
    add_by_set,
    common_refinement,
    contrasts,
    mixture_of,
    terms_of,
)
from bncli.engine.structures.structure import Grouping
from tests.strategies import regrouped_models


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.integers(0, 99))
def test_terms_add_up_and_have_mean_0(shape: list[int], seed: int) -> None:
    generator = np.random.default_rng(seed)
    values = generator.normal(size=(*shape, 2))
    weights = [generator.dirichlet(np.ones(n)) for n in shape]
    terms = terms_of(values, weights)
    assert len(terms) == 2 ** len(shape)
    total = np.zeros(values.shape)
    for axes, term in terms.items():
        total += term.reshape(*(n if axis in axes else 1 for axis, n in enumerate(shape)), 2)
        for place, axis in enumerate(axes):
            np.testing.assert_allclose(np.tensordot(weights[axis], term, axes=(0, place)), 0.0, atol=1e-12)
    np.testing.assert_allclose(total, values, rtol=0, atol=1e-12)


def test_overlapping_tables_become_one_term_per_set() -> None:
    attributes = tuple(CategoricalAttribute(name, False, (1.0, 3.0), ("u", "v")) for name in "abc")
    schema = Schema("class", ("n", "y"), attributes)
    pairs = [
        ContrastTensor(pair, (None, None), np.random.default_rng(1).normal(size=(3, 3, 2))) for pair in ((0, 1), (0, 2))
    ]
    score = Score(np.zeros(2), tuple(pairs)).purified(schema)
    assert [tensor.attributes for tensor in score.tensors] == [(0,), (1,), (2,), (0, 1), (0, 2)]


groupings = st.none() | st.lists(st.integers(0, 2), min_size=5, max_size=5).map(
    lambda codes: tuple(sorted(set(codes)).index(code) for code in codes)
)


def test_two_classes_are_log_odds_and_a_constant_is_gone() -> None:
    np.testing.assert_allclose(contrasts(np.array([[1.0, 3.0], [7.0, 7.0]])), [[-2.0, 2.0], [0.0, 0.0]])
    np.testing.assert_allclose(contrasts(np.array([6.0, 0.0, 3.0])), [4.5, -4.5, 0.0])
    assert contrasts(np.array([6.0])).tolist() == [0.0]


@given(st.lists(groupings, min_size=1, max_size=3))
def test_a_refinement_joins_only_codes_that_all_groupings_join(listed: list[Grouping | None]) -> None:
    finest = common_refinement(listed, 5)
    codes = finest or range(5)
    for v in range(5):
        for w in range(5):
            together = all(grouping is not None and grouping[v] == grouping[w] for grouping in listed)
            assert (codes[v] == codes[w]) == (together or v == w)


@given(groupings, groupings, st.integers(0, 99))
def test_tensors_of_different_binnings_are_added(one: Grouping | None, other: Grouping | None, seed: int) -> None:
    schema = Schema("class", ("n", "y"), (CategoricalAttribute("a", False, (1.0,) * 5, tuple("pqrst")),))
    generator = np.random.default_rng(seed)
    sizes = [5 if grouping is None else max(grouping) + 1 for grouping in (one, other)]
    tensors = [
        ContrastTensor((0,), (m,), generator.normal(size=(n + 1, 2))) for m, n in zip((one, other), sizes, strict=True)
    ]
    (total,) = add_by_set(tensors, schema)
    for v in range(6):  # 5: unobserved
        expected = sum(tensor.values[_coarse(tensor.groupings[0], v)] for tensor in tensors)
        np.testing.assert_array_equal(total.values[_coarse(total.groupings[0], v)], expected)


def _coarse(grouping: Grouping | None, code: int) -> int:
    return code if grouping is None else (*grouping, max(grouping) + 1)[code]


@given(regrouped_models())
def test_weights_are_those_of_the_training_rows(model: Model) -> None:
    for tensor in mixture_of(model.predictor, model.schema).terms[0].tensors:
        assert list(tensor.attributes) == sorted(tensor.attributes)
        for weights, size in zip(tensor.weights(model.schema), tensor.values.shape, strict=False):
            assert (len(weights), weights[-1]) == (size, 0.0)
            np.testing.assert_allclose(weights.sum(), 1.0)
