"""Purified terms: the same sum, mean 0 along each axis, and what the definition says."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.data.schema import CategoricalAttribute, Schema
from bncli.engine.prediction.purification import ContrastTensor, Score, purified, terms_of


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


def test_overlapping_tables_end_as_one_term_a_set() -> None:
    attributes = tuple(CategoricalAttribute(name, False, (1.0, 3.0), ("u", "v")) for name in "abc")
    schema = Schema("class", ("n", "y"), attributes)
    pairs = [
        ContrastTensor(pair, (None, None), np.random.default_rng(1).normal(size=(3, 3, 2))) for pair in ((0, 1), (0, 2))
    ]
    score = purified(Score(np.zeros(2), tuple(pairs)), schema)
    assert [tensor.attributes for tensor in score.tensors] == [(0,), (1,), (2,), (0, 1), (0, 2)]
