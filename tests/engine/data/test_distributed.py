"""Rows whose blocks another keeps: the same bits as here, and no row state comes home unasked."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest

from bncli.engine.data.dataset import Dataset, DistributedDataset, block_bounds
from bncli.engine.parameters.likelihood import conditional_likelihood
from bncli.engine.structures.structure import Family
from tests.datasets import random_dataset


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
