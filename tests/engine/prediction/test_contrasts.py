"""Contrasts, and tensors that see their attributes differently, added up."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.data.schema import CategoricalAttribute, Schema
from bncli.engine.model import Model
from bncli.engine.prediction.mixtures import mixture_of
from bncli.engine.prediction.purification import ContrastTensor, contrasts, gathered, refinement
from bncli.engine.structures.structure import Grouping
from tests.strategies import regrouped_models

groupings = st.none() | st.lists(st.integers(0, 2), min_size=5, max_size=5).map(
    lambda codes: tuple(sorted(set(codes)).index(code) for code in codes)
)


def test_two_classes_are_log_odds_and_a_constant_is_gone() -> None:
    np.testing.assert_allclose(contrasts(np.array([[1.0, 3.0], [7.0, 7.0]])), [[-2.0, 2.0], [0.0, 0.0]])
    np.testing.assert_allclose(contrasts(np.array([6.0, 0.0, 3.0])), [4.5, -4.5, 0.0])
    assert contrasts(np.array([6.0])).tolist() == [0.0]


@given(st.lists(groupings, min_size=1, max_size=3))
def test_a_refinement_joins_only_what_all_join(listed: list[Grouping | None]) -> None:
    finest = refinement(listed, 5)
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
    (total,) = gathered(tensors, schema)
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
