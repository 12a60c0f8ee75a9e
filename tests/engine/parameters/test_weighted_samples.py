"""Check nested samples: their probabilities, nesting, unbiased sums, rare rows, and independence of threads."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from bncli.engine.data.dataset import Dataset
from bncli.engine.parameters.likelihood import ConditionalLikelihood, conditional_likelihood
from bncli.engine.parameters.weighted_samples import Growth, weighted_samples
from bncli.engine.structures.structure import Dag
from tests.datasets import random_dataset

TAN = Dag(((), (0,), (0,)), (0, 1, 2))


def rows(n_rows: int = 20_000, *, weighted: bool = False, threads: int = 1) -> Dataset:
    return random_dataset(n_rows, (3, 2, 4), 3, weighted=weighted, threads=threads)


def likelihood(data: Dataset) -> ConditionalLikelihood:
    return conditional_likelihood(data, TAN.families(data.schema.cardinalities))


def chances(data: Dataset, n: int) -> NDArray[np.float64]:
    """Return q of the module by slow code: a dictionary of weights for every family."""
    weights = np.ones(data.n_rows) if data.weights is None else data.weights
    families = [(), *(family.attributes for family in TAN.families(data.schema.cardinalities))]
    leverage, occurring = np.zeros(data.n_rows), 0
    for attributes in families:
        keys = list(zip(*(data.codes[i].tolist() for i in attributes), data.labels.tolist(), strict=True))
        total: dict[tuple[int, ...], float] = {}
        for key, weight in zip(keys, weights, strict=True):
            total[key] = total.get(key, 0.0) + weight
        leverage += [1.0 / total[key] for key in keys]
        occurring += len(total)
    rates = weights / (2 * weights.sum()) + weights * leverage / (2 * occurring)
    return np.minimum(1.0, n * rates)


def numbered(data: Dataset) -> Dataset:
    """Return the same rows, numbered by a column that no family has."""
    wide = random_dataset(0, (3, 2, 4, data.n_rows), 3).schema
    return replace(data, schema=wide, codes=(*data.codes, np.arange(data.n_rows, dtype=np.uint32)))


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_have_the_chances_of_the_formula(weighted: bool) -> None:
    data = rows(weighted=weighted)
    (sample,) = weighted_samples(likelihood(numbered(data)), (2_000,))
    q = chances(data, 2_000)
    taken = np.zeros(data.n_rows)
    taken[sample.codes[3]] = 1.0
    # tenths of the rows by their chance: the number taken is within five standard deviations of what is expected
    for part in np.array_split(np.argsort(q), 10):
        assert abs(taken[part].sum() - q[part].sum()) < 5 * np.sqrt((q[part] * (1 - q[part])).sum()) + 1e-9
    own = np.ones(data.n_rows) if data.weights is None else data.weights
    expanded = (own / q)[sample.codes[3]]
    for y in range(3):
        mine = sample.labels == y
        assert sample.weights is not None
        np.testing.assert_allclose(
            sample.weights[mine] / expanded[mine], data.class_counts[y] / expanded[mine].sum(), rtol=1e-9
        )


def test_the_smaller_is_part_of_the_larger() -> None:
    small, middle, large = weighted_samples(likelihood(numbered(rows())), (500, 2_000, 8_000))
    assert set(small.codes[3]) < set(middle.codes[3]) < set(large.codes[3])
    for sample, n in ((small, 500), (middle, 2_000), (large, 8_000)):
        expected = chances(rows(), n).sum()
        assert expected <= n * (1 + 1e-9)
        assert abs(sample.n_rows - expected) < 6 * np.sqrt(n)


@pytest.mark.parametrize("weighted", [False, True])
def test_classes_weigh_what_they_weigh_in_all_rows(weighted: bool) -> None:
    data = rows(weighted=weighted)
    for sample in weighted_samples(likelihood(data), (500, 4_000)):
        np.testing.assert_allclose(sample.class_counts, data.class_counts, rtol=1e-12)


def test_a_class_of_three_rows_and_a_cell_of_one_are_kept_whole() -> None:
    data = rows()
    labels, codes = data.labels.copy(), data.codes[2].copy()
    labels[labels == 2] = 1
    labels[[5, 7_000, 19_999]] = 2
    codes[codes == 3] = 0
    codes[11_111] = 3
    changed = replace(data, labels=labels, codes=(*data.codes[:2], codes))
    for sample in weighted_samples(likelihood(changed), (200, 2_000)):
        assert (sample.labels == 2).sum() == 3
        assert (sample.codes[2] == 3).sum() == 1


@pytest.mark.usefixtures("small_blocks")
def test_threads_do_not_change_what_is_drawn() -> None:
    one, two = (list(weighted_samples(likelihood(rows(threads=n)), (500, 4_000))) for n in (1, 2))
    for a, b in zip(one, two, strict=True):
        assert a.labels.tobytes() == b.labels.tobytes()
        assert a.weights is not None
        assert b.weights is not None
        assert a.weights.tobytes() == b.weights.tobytes()
        assert all(x.tobytes() == y.tobytes() for x, y in zip(a.codes, b.codes, strict=True))


def test_sizes_follow_rows_and_parameters() -> None:
    growth = Growth()
    assert growth.sizes(49_999, 10) == ()
    assert growth.sizes(100_000, 4_815) == ()  # a quarter of the rows would be too few
    assert growth.sizes(100_000, 4_000) == (25_000,)  # and here it is fewer than were wished for
    assert growth.sizes(1_000_000, 4_815) == (77_040,)  # a smaller one would have fewer rows a parameter
    assert growth.sizes(100_000, 100) == (16_384,)
    assert growth.sizes(10_000_000, 100) == (19_531, 78_125, 312_500)
