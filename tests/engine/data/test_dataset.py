"""Coded rows in blocks: sums in block order whatever the threads, here or elsewhere; codes of rows under a schema."""

from __future__ import annotations

import itertools
import pickle
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from bncli.engine.data.columns import (
    MISSING,
    UNSEEN,
    CategoricalColumn,
    ChunkedColumn,
    CodedColumn,
    Column,
    Columns,
    NumericColumn,
)
from bncli.engine.data.cutting import learn_dataset
from bncli.engine.data.dataset import (
    MAX_BLOCKS,
    ROWS_PER_BLOCK,
    Dataset,
    DistributedDataset,
    RowBlock,
    block_bounds,
    code_dtype,
    encode_attributes,
    encode_column,
    encode_labels,
)
from bncli.engine.data.schema import Attribute, CategoricalAttribute, NumericAttribute, Schema
from bncli.engine.parameters.likelihood import conditional_likelihood
from bncli.engine.structures.structure import Family
from bncli.errors import ModelError
from tests.datasets import random_dataset
from tests.missing_values import with_missing


def empty_codes(n_rows: int) -> Dataset:
    return random_dataset(0, (), 2) if n_rows == 0 else Dataset(random_dataset(0, (), 2).schema, (), np.zeros(n_rows))


@given(st.integers(0, 2_000_000))
def test_blocks_cover_the_rows_in_order_and_none_is_small(n_rows: int) -> None:
    data = empty_codes(n_rows)
    bounds = data.bounds()
    assert bounds[0][0] == 0
    assert bounds[-1][1] == n_rows
    assert all(before[1] == after[0] for before, after in itertools.pairwise(bounds))
    assert len(bounds) in (1, 2, 4, 8, 16)
    assert len(bounds) == 1 or min(b - a for a, b in bounds) >= ROWS_PER_BLOCK
    assert len(bounds) == MAX_BLOCKS or n_rows < 2 * len(bounds) * ROWS_PER_BLOCK


def block_sums(block: RowBlock, factor: float) -> tuple[float, list[NDArray[Any]]]:
    """Sums whose last bits depend on the order of addition."""
    assert block.weights is not None
    values = factor * block.weights * (1.0 + block.codes[0])
    return float(values.sum()), [np.bincount(block.labels, values, 3), np.bincount(block.codes[0], values, 4)]


@pytest.mark.parametrize("n_rows", [0, 1, 2, 131_071, 131_072, 300_000])
def test_any_number_of_threads_gives_the_same_bits(n_rows: int) -> None:
    outcomes = []
    for threads in (1, 2, 3):
        data = random_dataset(n_rows, (4,), 3, weighted=True, threads=threads)
        total, tables = data.reduce(block_sums, 1.1)
        outcomes.append((total, [table.tobytes() for table in tables]))
    assert outcomes[0] == outcomes[1] == outcomes[2]


def block_values(block: RowBlock) -> NDArray[Any]:
    return block.codes[0] + 10 * block.labels + (0 if block.state is None else 5 * block.state)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_map_keeps_the_order_of_rows_and_passes_states(threads: int) -> None:
    data = random_dataset(140_000, (4,), 3, threads=threads)
    first = data.map(block_values)
    second = data.map(block_values, states=first)
    values = data.codes[0] + 10 * data.labels
    assert len(first) == len(data.bounds()) > 1
    np.testing.assert_array_equal(np.concatenate(first), values)
    np.testing.assert_array_equal(np.concatenate(second), values + 5 * values)


def failing(block: RowBlock) -> None:
    raise ZeroDivisionError


def test_the_thread_that_asks_is_one_of_the_threads() -> None:
    """Each waits for the other, so both work; and no third one does."""
    together = threading.Barrier(2, timeout=60)

    def who(_: RowBlock) -> int:
        together.wait()
        return threading.get_ident()

    workers = random_dataset(300_000, (2,), 2, threads=2).map(who)
    assert len(workers) == 4
    assert len(set(workers)) == 2
    assert threading.get_ident() in workers


@pytest.mark.parametrize("threads", [1, 3])
def test_a_failing_kernel_fails_the_sum(threads: int) -> None:
    with pytest.raises(ZeroDivisionError):
        random_dataset(300_000, (2,), 2, threads=threads).reduce(failing)


def test_slices_cover_the_block() -> None:
    (block,) = random_dataset(10, (2,), 2).row_blocks()
    assert [(s.start, s.stop) for s in block.slices(4)] == [(0, 4), (4, 8), (8, 10)]
    assert list(random_dataset(0, (2,), 2).row_blocks()[0].slices()) == []


@pytest.mark.parametrize(
    ("n", "dtype"), [(0, "u1"), (1, "u1"), (256, "u1"), (257, "u2"), (65_536, "u2"), (65_537, "u4")]
)
def test_codes_take_the_narrowest_type(n: int, dtype: str) -> None:
    assert code_dtype(n) == np.dtype(dtype)


def test_rows_are_taken_in_the_order_given() -> None:
    data = random_dataset(20, (3, 2), 2, weighted=True, threads=2)
    rows = np.array([7, 3, 3, 19])
    taken = data.take(rows)
    assert (taken.schema, taken.threads, taken.n_rows) == (data.schema, 2, 4)
    assert [c.tolist() for c in taken.codes] == [c[rows].tolist() for c in data.codes]
    assert taken.labels.tolist() == data.labels[rows].tolist()
    assert taken.weights is not None
    assert data.weights is not None
    assert taken.weights.tolist() == data.weights[rows].tolist()
    assert replace(data, weights=None).take(rows).weights is None


@pytest.mark.usefixtures("small_blocks")
def test_missing_values_are_counted_where_they_can_be() -> None:
    data = with_missing(random_dataset(40_000, (2, 3, 4), 2, threads=2), 0.2)
    assert data.n_missing == tuple(int((c == n).sum()) for c, n in zip(data.codes, (2, 3, 4), strict=True))
    assert data.radices == (3, 4, 5)
    assert data.take(np.arange(0)).n_missing == (0, 0, 0)
    assert random_dataset(9, (2, 3), 2).radices == (2, 3)


def test_an_attribute_without_values_has_no_missing_values() -> None:
    """It takes no part in anything, and its codes mean nothing."""
    schema = Schema("y", ("a", "b"), (CategoricalAttribute("x", False, (), ()),), missing_policy="marginalize")
    assert Dataset(schema, (np.zeros(3, np.uint8),), np.zeros(3, np.uint8)).n_missing == (0,)


class Handle(NamedTuple):
    """Stands for what the keeper has."""

    number: int


class Keeper:
    """Keeps blocks as pickles, as if they were in another process."""

    def __init__(self, data: Dataset) -> None:
        self._blocks = [pickle.dumps(block) for block in data.row_blocks()]
        self._kept: list[bytes] = []

    def results(self, kernel: Callable[..., Any], broadcast: Sequence[Any], states: Sequence[Any] | None) -> list[Any]:
        kernel, broadcast = pickle.loads(pickle.dumps((kernel, broadcast)))
        own = [None] * len(self._blocks) if states is None else [self._state(state) for state in states]
        blocks = [replace(pickle.loads(block), state=state) for block, state in zip(self._blocks, own, strict=True)]
        return [kernel(block, *broadcast) for block in blocks]

    def keep(self, kernel: Callable[..., Any], broadcast: Sequence[Any], states: Sequence[Any] | None) -> list[Any]:
        first = len(self._kept)
        self._kept += [pickle.dumps(result) for result in self.results(kernel, broadcast, states)]
        return [Handle(number) for number in range(first, len(self._kept))]

    def _state(self, state: Any) -> Any:
        if isinstance(state, Handle):
            return pickle.loads(self._kept[state.number])
        return type(state)(map(self._state, state)) if type(state) in (tuple, list) else state


def handles_alone(state: Any) -> bool:
    if type(state) in (tuple, list):
        return all(map(handles_alone, state))
    return isinstance(state, Handle)


@pytest.mark.parametrize("n_labels", [2, 3, 12])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_likelihood_has_the_same_bits(small_blocks: None, n_labels: int, weighted: bool) -> None:
    data = random_dataset(9_000, (3, 4, 2, 5), n_labels, seed=4)
    rng = np.random.default_rng(1)
    data = replace(data, weights=rng.random(data.n_rows) if weighted else None)
    kept = (data.schema, data.codes, data.labels, data.weights, data.threads)
    there = DistributedDataset(*kept, keeper=Keeper(data))
    families = [Family.over((0, 1), data.schema.cardinalities), Family.over((2, 3), data.schema.cardinalities)]
    here, away = (conditional_likelihood(one, families) for one in (data, there))
    assert all(map(handles_alone, away.states))
    assert all(map(handles_alone, away.fusion.codes))
    cells, direction = rng.normal(size=(2, n_labels, here.n_cells))
    assert here.value_and_gradient(cells)[0] == away.value_and_gradient(cells)[0]
    assert (here.value_and_gradient(cells)[1] == away.value_and_gradient(cells)[1]).all()
    assert (here.hessian(cells)(direction) == away.hessian(cells)(direction)).all()
    assert (here.cell_weights() == away.cell_weights()).all()


def test_rows_that_are_taken_are_here(small_blocks: None) -> None:
    data = random_dataset(5_000, (3, 4), 2, seed=0)
    there = DistributedDataset(data.schema, data.codes, data.labels, keeper=Keeper(data))
    taken = there.take(np.array([4, 1, 3]))
    assert type(taken) is Dataset
    assert (taken.labels == data.labels[[4, 1, 3]]).all()


@pytest.mark.parametrize(("n_rows", "n_blocks"), [((1 << 24) - 1, 16), (1 << 24, 64), (1 << 30, 256), (10**10, 256)])
def test_very_many_rows_have_more_blocks(n_rows: int, n_blocks: int) -> None:
    bounds = block_bounds(n_rows)
    assert len(bounds) == n_blocks
    assert bounds[-1][1] == n_rows


NAN = float("nan")


def categorical(codes: list[int], *levels: str) -> CategoricalColumn:
    return CategoricalColumn(np.array(codes, np.int16), levels)


def batch(column: Column, n: int) -> Columns:
    return Columns(n, {"a": column}, "y", None)


def schema_of(attribute: Attribute) -> Schema:
    return Schema("y", ("no", "yes"), (attribute,))


@pytest.mark.parametrize(("missing", "code"), [(False, 3), (True, 3)])
def test_numbers(missing: bool, code: int) -> None:
    """Without a missing level 3 is the code of the unknown, with one it is that level's."""
    schema = schema_of(NumericAttribute("a", missing, (), (1.0, 2.0)))
    column = NumericColumn(np.array([-np.inf, 1.0, 1.5, 2.0, np.inf, NAN, -0.0]))
    encoded = encode_attributes(batch(column, 7), schema, [0])
    assert encoded.codes[0].tolist() == [0, 0, 1, 1, 2, code, 0]
    assert encoded.codes[0].dtype == np.uint8
    assert (encoded.unseen, encoded.missing) == ((0,), (1,))


@pytest.mark.parametrize(("missing", "code", "unknown"), [(False, 2, 2), (True, 2, 3)])
def test_levels_are_matched_by_name(missing: bool, code: int, unknown: int) -> None:
    schema = schema_of(CategoricalAttribute("a", missing, (), ("red", "blue")))
    column = categorical([0, 1, 2, MISSING, UNSEEN], "blue", "green", "red")
    encoded = encode_attributes(batch(column, 5), schema, [0])
    assert encoded.codes[0].tolist() == [1, unknown, 0, code, unknown]
    assert (encoded.unseen, encoded.missing) == ((2,), (1,))


@pytest.mark.parametrize(("missing", "unknown"), [(False, 2), (True, 3)])
def test_codes_of_other_levels_are_translated(missing: bool, unknown: int) -> None:
    attribute = CategoricalAttribute("a", missing, (), ("red", "blue"))
    own = CategoricalAttribute("a", True, (), ("blue", "green", "red"))
    column = CodedColumn(ChunkedColumn((np.array([0, 1, 2, 3, 3, 3], np.uint8),)), own)
    encoded = encode_column(column, attribute)
    assert encoded.codes.tolist() == [1, unknown, 0, 2, 2, 2]
    assert (encoded.unseen, encoded.missing) == (1, 3)


def test_the_unknown_code_may_need_a_wider_type() -> None:
    levels = tuple(f"v{i}" for i in range(256))
    schema = schema_of(CategoricalAttribute("a", False, (), levels))
    encoded = encode_attributes(batch(categorical([UNSEEN, 255], *levels), 2), schema, [0])
    assert encoded.codes[0].tolist() == [256, 255]


def test_attributes_come_in_the_order_asked_for() -> None:
    attributes = tuple(NumericAttribute(name, False, (), (0.0,)) for name in "abc")
    columns = Columns(
        1, {n: NumericColumn(np.array([v], np.int8)) for n, v in zip("cba", (1, 0, -1), strict=True)}, "y", None
    )
    encoded = encode_attributes(columns, Schema("y", ("no", "yes"), attributes), [2, 0])
    assert [c.tolist() for c in encoded.codes] == [[1], [0]]


def test_labels_are_matched_by_name() -> None:
    schema = schema_of(NumericAttribute("a", False, (), ()))
    columns = Columns(3, {}, "y", categorical([0, 1, 0], "yes", "no"))
    assert encode_labels(columns, schema).tolist() == [1, 0, 1]
    unused = Columns(1, {}, "y", categorical([1], "maybe", "yes"))
    assert encode_labels(unused, schema).tolist() == [1]


@pytest.mark.parametrize(
    ("label", "message"),
    [
        (categorical([0, 1], "no", "maybe"), "is not in the model: 'maybe'"),
        (categorical([MISSING], "no"), "the class 'y' is missing in some rows"),
        (categorical([UNSEEN], "no", "yes"), "the class 'y' is missing in some rows"),
        (None, "has no class column 'y'"),
    ],
)
def test_labels_that_do_not_fit(label: CategoricalColumn | None, message: str) -> None:
    columns = Columns(0 if label is None else len(label.codes), {}, "y", label)
    with pytest.raises(ModelError, match=message):
        encode_labels(columns, Schema("y", ("no", "yes"), ()))


def test_columns_that_do_not_fit() -> None:
    schema = schema_of(NumericAttribute("a", False, (), (1.0,)))
    with pytest.raises(ModelError, match="no column 'a'"):
        encode_attributes(Columns(0, {}, "y", None), schema, [0])
    with pytest.raises(ModelError, match="'a' is not numeric"):
        encode_attributes(batch(categorical([0], "x"), 1), schema, [0])
    other = schema_of(CategoricalAttribute("a", False, (), ("1", "2")))
    with pytest.raises(ModelError, match="'a' is not categorical"):
        encode_attributes(batch(NumericColumn(np.zeros(1)), 1), other, [0])


@given(st.data())
def test_rows_keep_their_order(data: st.DataObject) -> None:
    """The codes of some of the rows are some of the codes of all rows."""
    n = data.draw(st.integers(1, 30))
    rng = np.random.default_rng(data.draw(st.integers(0, 10_000)))
    missing = rng.random(n) < 0.2
    columns = Columns(
        n,
        {
            "number": NumericColumn(np.where(missing, NAN, rng.integers(0, 6, n))),
            "whole": NumericColumn(rng.integers(-3, 3, n).astype(np.int8)),
            "word": CategoricalColumn(
                np.where(missing, MISSING, rng.integers(0, 4, n)).astype(np.int8), ("d", "a", "c", "b")
            ),
        },
        "y",
        CategoricalColumn(rng.integers(0, 2, n).astype(np.int8), ("no", "yes")),
    )
    whole = learn_dataset(columns, discretize="equal-frequency", bins=3)
    rows = rng.integers(0, n, 10)
    part = encode_attributes(columns.take(rows), whole.schema, whole.schema.informative)
    for i, taken in zip(whole.schema.informative, part.codes, strict=True):
        assert taken.tolist() == whole.codes[i][rows].tolist()


def test_a_column_that_is_not_there_is_unknown_where_that_is_allowed() -> None:
    """Whether or not training had missing values: nothing says that it is one."""
    attributes = (NumericAttribute("a", True, (), (1.0,)), CategoricalAttribute("b", False, (), ("p", "q")))
    schema = Schema("y", ("no", "yes"), attributes)
    columns = Columns(3, {}, "y", None)
    encoded = encode_attributes(columns, schema, [0, 1], allow_missing=True)
    assert [codes.tolist() for codes in encoded.codes] == [[3, 3, 3], [2, 2, 2]]
    assert (encoded.unseen, encoded.missing) == ((0, 0), (0, 0))
    with pytest.raises(ModelError, match="no column 'a'"):
        encode_attributes(columns, schema, [0, 1])
