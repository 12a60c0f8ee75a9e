"""Compare a pass and its gradient with a loop over rows, for every kernel, grouping, weighting and number of blocks."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.counting import fused_codes as fusion
from bncli.engine.data.dataset import Dataset
from bncli.engine.kernels import passes
from bncli.engine.model import Tables
from bncli.engine.parameters import likelihood
from bncli.engine.parameters.likelihood import ConditionalLikelihood, conditional_likelihood
from bncli.engine.structures.structure import Dag, Family
from tests import oracles
from tests.datasets import dataset_of, dense_dataset, random_dataset
from tests.strategies import dags, datasets, regrouped_families
from tests.sweeps import every_pair

KERNELS = (2, 3, 7, 12)
"""Numbers of classes: difference, look-ups, look-ups, sparse products."""


@pytest.fixture(params=[0, 1 << 14], ids=["sparse", "as it is"], autouse=True)
def few_rows(request: pytest.FixtureRequest) -> Iterator[None]:
    """Use sparse products for any number of rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(likelihood, "FEW_ROWS", request.param)
        yield


def random_cells(like: ConditionalLikelihood, scale: float = 1.0, seed: int = 0) -> np.ndarray:
    return scale * np.random.default_rng(seed).normal(size=(like.data.n_labels, like.n_cells))


def assert_equals_the_loop(like: ConditionalLikelihood, cells: np.ndarray) -> None:
    cll, gradient = like.value_and_gradient(cells)
    slow_cll, slow_gradient = oracles.conditional_log_likelihood(like.families, like.data, cells)
    assert cll == pytest.approx(slow_cll, rel=1e-11, abs=1e-11)
    np.testing.assert_allclose(gradient, slow_gradient, rtol=1e-10, atol=1e-10)


GRAPHS = [
    Dag(((), (), (), ()), (0, 1, 2, 3)),
    Dag(((), (0,), (1, 0), (0,)), (0, 1, 2, 3)),
    Dag(((), (0,), (1, 0), ()), (1, 2), (3, 0)),
    Dag(((), (), (), ()), (), (1, 2)),
    Dag(((), (), (), ()), ()),
]


@pytest.mark.parametrize(
    ("n_labels", "weighted", "largest", "n_bytes"),
    every_pair(KERNELS, [False, True], [1, 20, 100_000], [0, 1 << 28]),
)
def test_equals_the_loop(
    monkeypatch: pytest.MonkeyPatch, n_labels: int, weighted: bool, largest: int, n_bytes: int
) -> None:
    monkeypatch.setattr(likelihood, "_max_configurations", lambda *_: largest)
    monkeypatch.setattr(fusion, "WIDE_BYTES", n_bytes)
    monkeypatch.setattr(likelihood, "KEPT_BYTES", n_bytes)
    for constant in ("BLOCK", "SPARSE_BLOCK", "MANY_CLASSES_BLOCK"):
        monkeypatch.setattr(passes, constant, 16)
    data = random_dataset(45, (3, 2, 4, 2), n_labels, weighted=weighted)
    for dag in GRAPHS:
        like = conditional_likelihood(data, dag.families(data.schema.cardinalities))
        assert_equals_the_loop(like, random_cells(like))


@given(datasets(max_rows=20), st.data(), st.sampled_from([0.01, 1.0, 20.0]))
def test_equals_the_loop_on_any_graph(data: Dataset, draw: st.DataObject, scale: float) -> None:
    dag = draw.draw(dags(len(data.codes)))
    like = conditional_likelihood(data, dag.families(data.schema.cardinalities))
    assert_equals_the_loop(like, random_cells(like, scale))


@pytest.mark.parametrize("n_labels", KERNELS)
def test_the_gradient_is_the_slope(n_labels: int) -> None:
    data = random_dataset(60, (3, 2, 4, 2), n_labels, weighted=True)
    like = conditional_likelihood(data, GRAPHS[1].families(data.schema.cardinalities))
    cells = random_cells(like)
    for seed in range(5):
        direction = random_cells(like, seed=seed + 1)
        expected = oracles.slope(lambda p: like.value_and_gradient(p)[0], cells, direction, 1e-4)
        assert float((like.value_and_gradient(cells)[1] * direction).sum()) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("n_labels", KERNELS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.usefixtures("small_blocks")
def test_several_blocks_have_the_same_bits_for_any_threads(n_labels: int, weighted: bool) -> None:
    outcomes = []
    for threads in (1, 3):
        data = random_dataset(5_000, (3, 2, 4, 2), n_labels, weighted=weighted, threads=threads)
        like = conditional_likelihood(data, GRAPHS[1].families(data.schema.cardinalities))
        cells = random_cells(like)
        cll, gradient = like.value_and_gradient(cells)
        outcomes.append((cll, gradient.tobytes(), like.cell_weights().tobytes()))
    assert outcomes[0] == outcomes[1]
    assert cll == pytest.approx(vectorised_cll(like, cells), rel=1e-11)


def vectorised_cll(like: ConditionalLikelihood, cells: np.ndarray) -> float:
    """Return the CLL computed by whole columns, without groups or row blocks."""
    data, scores, offset = like.data, np.repeat(cells[:, :1], like.data.n_rows, axis=1), 1
    for family in like.families:
        number = np.zeros(data.n_rows, np.intp)
        for i, radix in zip(family.attributes, family.shape, strict=True):
            number = number * radix + data.codes[i]
        scores += cells[:, offset + number]
        offset += family.n_cells
    losses = np.log(np.exp(scores).sum(axis=0)) - scores[data.labels, np.arange(data.n_rows)]
    return -float(losses.sum() if data.weights is None else losses @ data.weights)


@pytest.mark.parametrize(("n_labels", "weighted", "largest"), every_pair([1, *KERNELS, 5], [False, True], [1, 100_000]))
def test_hessian_products_are_those_of_the_explicit_hessian(
    monkeypatch: pytest.MonkeyPatch, n_labels: int, weighted: bool, largest: int
) -> None:
    monkeypatch.setattr(likelihood, "_max_configurations", lambda *_: largest)
    monkeypatch.setattr(passes, "BLOCK", 16)
    for constant in ("SPARSE_BLOCK", "MANY_CLASSES_BLOCK"):
        monkeypatch.setattr(passes, constant, 16)
    data = random_dataset(45, (3, 2, 4, 2), n_labels, weighted=weighted)
    for dag in GRAPHS:
        like = conditional_likelihood(data, dag.families(data.schema.cardinalities))
        for scale in (0.0, 10.0):
            cells, v = random_cells(like, scale), random_cells(like, seed=1)
            expected = (oracles.hessian(like.families, data, cells) @ v.ravel()).reshape(v.shape)
            np.testing.assert_allclose(like.hessian(cells)(v), expected, rtol=1e-10, atol=1e-10)


@given(datasets(max_rows=20), st.data(), st.sampled_from([0.01, 1.0, 20.0]))
def test_hessian_products_on_any_graph(data: Dataset, draw: st.DataObject, scale: float) -> None:
    dag = draw.draw(dags(len(data.codes)))
    like = conditional_likelihood(data, dag.families(data.schema.cardinalities))
    cells, v = random_cells(like, scale), random_cells(like, seed=1)
    expected = (oracles.hessian(like.families, data, cells) @ v.ravel()).reshape(v.shape)
    np.testing.assert_allclose(like.hessian(cells)(v), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n_labels", KERNELS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.usefixtures("small_blocks")
def test_hessian_products_are_slopes_of_the_gradient(n_labels: int, weighted: bool) -> None:
    """There are several row blocks, and one point serves many products in any order."""
    data = random_dataset(3_000, (3, 2, 4, 2), n_labels, weighted=weighted)
    like = conditional_likelihood(data, GRAPHS[1].families(data.schema.cardinalities))
    cells = random_cells(like)
    product = like.hessian(cells)
    found = [product(random_cells(like, seed=seed)) for seed in (1, 2)]
    for seed, image in zip((1, 2), found, strict=True):
        v = random_cells(like, seed=seed)
        expected = -oracles.slope(lambda p: like.value_and_gradient(p)[1], cells, v, 1e-3)
        np.testing.assert_allclose(image, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())
        np.testing.assert_array_equal(product(v), image)
    assert float((found[0] * random_cells(like, seed=2)).sum()) == pytest.approx(
        float((found[1] * random_cells(like, seed=1)).sum()), rel=1e-9
    )


@pytest.mark.parametrize("n_labels", KERNELS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.usefixtures("small_blocks")
def test_hessian_products_have_the_same_bits_for_any_threads(n_labels: int, weighted: bool) -> None:
    outcomes = set()
    for threads in (1, 3):
        data = random_dataset(5_000, (3, 2, 4, 2), n_labels, weighted=weighted, threads=threads)
        like = conditional_likelihood(data, GRAPHS[1].families(data.schema.cardinalities))
        outcomes.add(like.hessian(random_cells(like))(random_cells(like, seed=1)).tobytes())
    assert len(outcomes) == 1


@pytest.mark.parametrize("n_labels", KERNELS)
def test_where_all_is_certain_there_is_no_curvature(n_labels: int) -> None:
    data = random_dataset(60, (3, 2, 4, 2), n_labels)
    like = conditional_likelihood(data, GRAPHS[1].families(data.schema.cardinalities))
    cells = np.zeros((n_labels, like.n_cells))
    cells[-1, 0] = 1e4
    product = like.hessian(cells)
    np.testing.assert_array_equal(product(random_cells(like)), np.zeros(cells.shape))
    assert np.isfinite(like.hessian(random_cells(like, 1e150))(random_cells(like, 1e3))).all()


@pytest.mark.parametrize("n_labels", KERNELS)
def test_what_all_classes_share_has_no_curvature(n_labels: int) -> None:
    data = random_dataset(60, (3, 2, 4, 2), n_labels, weighted=True)
    like = conditional_likelihood(data, GRAPHS[1].families(data.schema.cardinalities))
    v = np.repeat(random_cells(like, seed=1)[:1], n_labels, axis=0)
    np.testing.assert_allclose(like.hessian(random_cells(like))(v), 0.0, atol=1e-12)


@pytest.mark.parametrize("n_labels", KERNELS)
@pytest.mark.parametrize("scale", [1e3, 1e150])
def test_huge_scores_stay_finite(n_labels: int, scale: float) -> None:
    data = random_dataset(60, (3, 2, 4, 2), n_labels)
    like = conditional_likelihood(data, GRAPHS[1].families(data.schema.cardinalities))
    cll, gradient = like.value_and_gradient(random_cells(like, scale))
    assert np.isfinite(cll)
    assert cll <= 0
    assert np.isfinite(gradient).all()
    assert np.abs(gradient).max() <= data.n_rows


@pytest.mark.parametrize("n_labels", KERNELS)
def test_equal_scores_are_the_uniform_distribution(n_labels: int) -> None:
    data = random_dataset(60, (3, 2), n_labels)
    like = conditional_likelihood(data, (Family((0,), (3,), 0),))
    constant = np.full((n_labels, like.n_cells), 700.0)
    assert like.value_and_gradient(constant)[0] == pytest.approx(-60 * np.log(n_labels), rel=1e-12)


@pytest.mark.parametrize("n_labels", [1, *KERNELS])
def test_no_rows_and_one_class(n_labels: int) -> None:
    for n_rows in (0, 3):
        data = random_dataset(n_rows, (3, 2), n_labels)
        like = conditional_likelihood(data, Dag(((), (0,)), (0, 1)).families((3, 2)))
        if n_rows == 0 or n_labels == 1:
            cll, gradient = like.value_and_gradient(random_cells(like))
            assert cll == 0
            assert not gradient.any()


@pytest.mark.parametrize("n_labels", KERNELS)
@pytest.mark.parametrize("weighted", [False, True])
def test_cell_weights_are_counts(n_labels: int, weighted: bool) -> None:
    data = random_dataset(40, (3, 2, 4, 2), n_labels, weighted=weighted)
    for dag in GRAPHS:
        like = conditional_likelihood(data, dag.families(data.schema.cardinalities))
        expected = oracles.indicators(like.families, data).T @ np.array(oracles.weights_of(data))
        np.testing.assert_allclose(like.cell_weights(), expected, rtol=1e-12, atol=1e-12)


def test_tables_are_the_inverse_of_flatten() -> None:
    data = dense_dataset((2, 3), 3)
    like = conditional_likelihood(data, Dag(((), (0,)), (0, 1)).families((2, 3)))
    cells = random_cells(like)
    tables = Tables.of_cells(cells, like.families)
    assert tables.bias.tolist() == cells[:, 0].tolist()
    assert [w.shape for w in tables.weights] == [(2, 3), (6, 3)]
    assert tables.weights[1][4, 2] == cells[2, 1 + 2 + 4]
    np.testing.assert_array_equal(tables.cells, cells)


MERGED = (
    Family((0,), (4,), None),
    Family((0, 1), (2, 3), None, groupings=((0, 0, 1, 1), None)),
    Family((0,), (2,), None, groupings=((0, 0, 1, 1),)),
    Family((2, 0), (2, 3), 2, groupings=((0, 0, 0, 1, 1), (0, 0, 1, 2))),
)
"""Over attributes of 4, 3 and 5 values, some in coarser binnings."""


@pytest.mark.parametrize("n_labels", KERNELS)
@pytest.mark.parametrize("largest", [1, 100_000])
def test_regrouped_attributes(monkeypatch: pytest.MonkeyPatch, n_labels: int, largest: int) -> None:
    """Compare with the loop, the slope and the explicit Hessian; the tables are those of the original families."""
    monkeypatch.setattr(likelihood, "_max_configurations", lambda *_: largest)
    data = random_dataset(50, (4, 3, 5), n_labels, weighted=True)
    like = conditional_likelihood(data, MERGED)
    assert like.families == MERGED
    assert like.data is data
    cells, v = random_cells(like), random_cells(like, seed=1)
    assert_equals_the_loop(like, cells)
    slope = oracles.slope(lambda p: like.value_and_gradient(p)[0], cells, v, 1e-4)
    assert float((like.value_and_gradient(cells)[1] * v).sum()) == pytest.approx(slope, rel=1e-9)
    expected = (oracles.hessian(like.families, data, cells) @ v.ravel()).reshape(v.shape)
    np.testing.assert_allclose(like.hessian(cells)(v), expected, rtol=1e-10, atol=1e-10)
    expected = oracles.indicators(MERGED, data).T @ np.array(oracles.weights_of(data))
    np.testing.assert_allclose(like.cell_weights(), expected, rtol=1e-12)
    assert Tables.of_cells(cells, like.families).families == MERGED
    np.testing.assert_array_equal(Tables.of_cells(cells, like.families).cells, cells)


@given(st.data(), st.integers(2, 4), st.integers(0, 99))
def test_regrouped_tables_are_tables_with_equal_cells(draw: st.DataObject, n_labels: int, seed: int) -> None:
    """Compare with a table written out over all codes, whose gradient sums to that of the joined cells."""
    data = random_dataset(20, (4, 3, 5), n_labels, seed=seed)
    families = draw.draw(regrouped_families(data.schema.attributes))
    like = conditional_likelihood(data, families)
    tables = Tables.of_cells(random_cells(like, seed=seed), like.families)
    written = [
        oracles.written_out(family, w, data.schema.cardinalities)
        for family, w in zip(families, tables.weights, strict=True)
    ]
    fine = conditional_likelihood(data, [family for family, _ in written])
    cll, gradient = like.value_and_gradient(tables.cells)
    flat = Tables(tables.bias, fine.families, tuple(w for _, w in written)).cells
    fine_cll, fine_gradient = fine.value_and_gradient(flat)
    assert cll == pytest.approx(fine_cll, rel=1e-12)
    slopes = Tables.of_cells(fine_gradient, fine.families)
    for family, found, spread in zip(
        families, Tables.of_cells(gradient, like.families).weights, slopes.weights, strict=True
    ):
        cells = np.arange(family.n_cells, dtype=np.float64)[:, np.newaxis]
        _, cell_of = oracles.written_out(family, cells, data.schema.cardinalities)
        summed = np.zeros(found.shape)
        np.add.at(summed, cell_of[:, 0].astype(np.intp), spread)
        np.testing.assert_allclose(found, summed, rtol=1e-10, atol=1e-10)


@given(datasets(max_rows=30), st.data(), st.booleans())
def test_condensed_it_is_the_same_function(data: Dataset, draw: st.DataObject, merging: bool) -> None:
    families = draw.draw(regrouped_families(data.schema.attributes))
    like = conditional_likelihood(data, families)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(likelihood, "MERGE_WORK", -1e9 if merging else math.inf)
        patch.setattr(likelihood, "FEW_EQUAL", -1.0)
        condensed = like.condensed
    columns = [data.labels, *(data.codes[a] for a in sorted({a for family in families for a in family.attributes}))]
    distinct = len(np.unique(np.stack([column.astype(int) for column in columns]), axis=1).T)
    assert condensed.data.n_rows == (distinct if merging else data.n_rows)
    assert condensed.data.total_weight == pytest.approx(data.total_weight)
    weights = like.cell_weights()
    kept = np.arange(like.n_cells) if condensed.cells is None else condensed.cells
    np.testing.assert_array_equal(kept, np.flatnonzero(weights > 0))
    np.testing.assert_allclose(condensed.cell_weights(), weights[kept])
    cells = random_cells(like)
    cll, gradient = like.value_and_gradient(cells)
    found, of_kept = condensed.value_and_gradient(cells[:, kept])
    assert found == pytest.approx(cll, rel=1e-11, abs=1e-11)
    np.testing.assert_allclose(of_kept, gradient[:, kept], rtol=1e-10, atol=1e-10)
    moved = random_cells(like, seed=1)
    moved[:, weights == 0] = 0.0
    np.testing.assert_allclose(
        condensed.hessian(cells[:, kept])(moved[:, kept]),
        like.hessian(cells)(moved)[:, kept],
        rtol=1e-9,
        atol=1e-9,
    )


@pytest.mark.parametrize("repeats", [1, 5])
def test_rows_are_merged_where_many_are_equal(repeats: int) -> None:
    codes = np.random.default_rng(0).integers(0, 8, (4, 2_000))
    data = dataset_of([*codes], np.arange(2_000) % 12, (8,) * 4, 12)
    data = data.take(np.tile(np.arange(2_000), repeats))
    condensed = conditional_likelihood(data, GRAPHS[0].families(data.schema.cardinalities)).condensed
    assert condensed.data.n_rows <= 2_000
    assert (condensed.data is data) == (repeats == 1)


def test_rows_with_equal_keys_are_not_merged_if_they_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(likelihood, "_row_keys", lambda columns: np.zeros(len(columns[0]), np.uint64))
    monkeypatch.setattr(likelihood, "MERGE_WORK", -1e9)
    data = random_dataset(45, (3, 2, 4, 2), 3)
    like = conditional_likelihood(data, GRAPHS[1].families(data.schema.cardinalities))
    assert like.condensed.data is data
