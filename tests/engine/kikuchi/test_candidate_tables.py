"""Tables and sums of batches against one row and one candidate at a time."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.kikuchi import candidate_tables
from bncli.engine.kikuchi.candidate_gains import Candidates
from bncli.engine.kikuchi.candidate_tables import Batch, CandidateGroup, count, sum_logs, tabulate
from bncli.engine.kikuchi.model_paths import counting_changes, cover, score_table, subsets
from tests import oracles
from tests.datasets import random_dataset

CARDINALITIES = (2, 3, 2, 4, 3)
OFFSETS = np.array([0, 2, 5, 7, 11])
LASTS = [2, 3, 4]
COVERED = {*subsets((0, 3)), (1,)}


def grouped(data: Dataset) -> tuple[Batch, list[np.ndarray]]:
    """The candidates (0, 1, k), and the score tables D (cells, K) that they should have."""
    members = np.array([(0, 1, k) for k in LASTS])
    candidates = Candidates(members, np.zeros((len(members), 8)))
    candidates.cover(COVERED)
    group = CandidateGroup((0, 1), np.array(LASTS), np.arange(3), (2, 3), np.array([2, 4, 3]))
    [counted] = data.reduce(count, [group], OFFSETS, data.n_labels)
    batch = tabulate(group, counted, candidates.changes(group.which), data.total_weight, 1.0)
    tables = []
    for region in map(tuple, members.tolist()):
        [table] = Counts(data).tables([region])
        changes = counting_changes(cover(set(COVERED), region))
        tables.append(score_table(table, region, changes, data.total_weight, 1.0))
    return batch, tables


@pytest.mark.parametrize("n_labels", [2, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_tables_of_a_group_lie_side_by_side(n_labels: int, weighted: bool) -> None:
    data = random_dataset(200, CARDINALITIES, n_labels, seed=1, weighted=weighted)
    batch, tables = grouped(data)
    together = np.log(batch.tables).reshape(n_labels - 1, 6, 9)
    for slot, (start, radix) in enumerate([(0, 2), (2, 4), (6, 3)]):
        d = (tables[slot][:, 1:] - tables[slot][:, :1]).reshape(6, radix, -1)
        np.testing.assert_allclose(np.moveaxis(together[:, :, start : start + radix], 0, 2), d, rtol=1e-9, atol=1e-9)
        n = oracles.count(data, (0, 1, LASTS[slot])).reshape(6, radix, -1)
        assert batch.sums[slot] == pytest.approx(float((n[..., 1:] * d).sum()))


@pytest.mark.parametrize("slots", [[0, 1, 2], [0, 2], [1]])
@pytest.mark.parametrize("steepest", [80.0, 0.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_sums_over_rows(monkeypatch: pytest.MonkeyPatch, slots: list[int], steepest: float, weighted: bool) -> None:
    monkeypatch.setattr(candidate_tables, "STEEPEST", steepest)
    monkeypatch.setattr(candidate_tables, "LOOKUPS_AT_A_TIME", 300)
    monkeypatch.setattr(candidate_tables, "CODES_AT_A_TIME", 1)
    data = random_dataset(1203, CARDINALITIES, 3, seed=2, weighted=weighted)
    batch, tables = grouped(data)
    assert batch.steep == (steepest == 0.0)
    scores = np.random.default_rng(0).normal(0, 3, (3, data.n_rows))
    [block] = data.row_blocks([scores])
    found = sum_logs(block, [replace(batch, slots=np.array(slots))], OFFSETS)
    for slot, total in zip(slots, found, strict=True):
        terms = []
        for t, weight in enumerate(oracles.weights_of(data)):
            p = np.exp(oracles.log_posterior(scores[:, t].tolist()))
            shape = (2, 3, CARDINALITIES[LASTS[slot]])
            cell = np.ravel_multi_index([int(data.codes[i][t]) for i in (0, 1, LASTS[slot])], shape)
            terms.append(weight * math.log(float(p @ np.exp(tables[slot][cell] - tables[slot][cell, 0]))))
        assert total == pytest.approx(math.fsum(terms), rel=1e-9)
