"""Intervals of rows whose missing values are marginalized, against finite differences and enumeration."""

from __future__ import annotations

from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import polygamma

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.kernels.arrays import Array
from bncli.engine.model import Model, Tables
from bncli.engine.parameters.generative import generative_tables
from bncli.engine.parameters.uncertainty import posterior_variances
from bncli.engine.prediction.marginalization import network_to_marginalize
from bncli.engine.prediction.probability_intervals import IntervalFinder, score_covariances
from bncli.engine.prediction.scoring import compile_scorer, log_probabilities
from bncli.engine.structures.structure import Dag
from bncli.recipe import Recipe
from tests.datasets import random_dataset
from tests.missing_values import rows_with_unknowns, slow_log_joint, with_missing
from tests.strategies import dags

STEP = 1e-5
SMOOTHING = "laplace:1"
"""At least LEAST_PSEUDO_COUNT in every cell, so that the posterior is that of the smoothed counts."""


def learned(
    dag: Dag, cardinalities: tuple[int, ...], n_labels: int, seed: int, n_rows: int = 60
) -> tuple[Model, Dataset]:
    data = with_missing(random_dataset(n_rows, cardinalities, n_labels, seed=seed), 0.2, seed)
    counts, recipe = Counts(data), Recipe.of(missing_policy="marginalize", param="map", smoothing=SMOOTHING)
    tables, uncertainty = generative_tables(counts, dag, SMOOTHING), posterior_variances(counts, dag, SMOOTHING)
    return Model(data.schema, dag, tables, recipe, data.n_rows, "1.2.3", uncertainty=uncertainty), data


def covariance_of_entries(model: Model, data: Dataset) -> Array:
    """Return the covariance of all entries ln theta (K * n_cells) squared, from the counts of complete families."""
    n_labels = len(model.schema.labels)
    numbers, first = np.arange(n_labels * model.tables.cells.shape[1]).reshape(n_labels, -1), 1
    result = np.zeros((numbers.size, numbers.size))

    def add(alpha: Array, entries: list[np.ndarray]) -> None:
        """Add a distribution; every array of entries holds the same random numbers."""
        block = np.diag(polygamma(1, alpha)) - polygamma(1, alpha.sum())
        for rows in entries:
            for columns in entries:
                result[np.ix_(rows, columns)] += block

    if not model.structure.class_parents:
        add(np.bincount(data.labels, minlength=n_labels) + 1.0, [numbers[:, 0]])
    for family in model.tables.families:
        known = np.all([data.codes[a] < model.schema.cardinalities[a] for a in family.attributes], axis=0)
        counts = np.zeros((n_labels, *family.shape))
        np.add.at(counts, (data.labels[known], *(data.codes[a][known] for a in family.attributes)), 1.0)
        entries = numbers[:, first : first + family.n_cells]
        first += family.n_cells
        if family.child is None:
            for cell, alpha in enumerate(counts.reshape(n_labels, -1).T + 1.0):
                add(alpha, [entries[:, cell]])
            continue
        by_parents = entries.reshape(n_labels, family.shape[0], -1)
        counts = counts.reshape(by_parents.shape)
        for parents in range(by_parents.shape[2]):
            if family.by_class:
                for y in range(n_labels):
                    add(counts[y, :, parents] + 1.0, [by_parents[y, :, parents]])
            else:
                add(counts[:, :, parents].sum(axis=0) + 1.0, [by_parents[y, :, parents] for y in range(n_labels)])
    return result


def without_barren_nodes(model: Model, row: dict[int, int]) -> list[bool]:
    """Return for every family whether its child is the class, is known, or has a known descendant."""
    needed = {None} | {a for a, code in row.items() if code < model.schema.cardinalities[a]}
    parents = dict(enumerate(model.structure.parents)) | {None: model.structure.class_parents}
    for _ in parents:
        needed |= {parent for node in needed for parent in parents[node]}
    return [family.child in needed for family in model.tables.families]


def slow_covariance(model: Model, row: dict[int, int], of_entries: Array) -> Array:
    """Return the covariance (K, K) of ln P(y, e), with the derivatives as differences of sums over all completions."""
    keep, tables = without_barren_nodes(model, row), model.tables

    def log_p(cells: Array) -> Array:
        changed = Tables.of_cells(cells, tables.families)
        families, weights = (
            tuple(x for x, is_kept in zip(xs, keep, strict=True) if is_kept)
            for xs in (changed.families, changed.weights)
        )
        return np.array(slow_log_joint(replace(model, predictor=Tables(changed.bias, families, weights)), row))

    gradient = np.zeros((len(tables.bias), tables.cells.size))
    for k, (y, cell) in enumerate(np.ndindex(tables.cells.shape)):
        ends = []
        for sign in (1, -1):
            cells = tables.cells
            cells[y, cell] += sign * STEP
            ends.append(log_p(cells))
        gradient[:, k] = (ends[0] - ends[1]) / (2 * STEP)
    return gradient @ of_entries @ gradient.T


@st.composite
def models(draw: st.DrawFn) -> tuple[Model, Dataset]:
    cardinalities = tuple(draw(st.lists(st.integers(2, 3), min_size=2, max_size=4)))
    return learned(draw(dags(len(cardinalities))), cardinalities, draw(st.integers(2, 3)), draw(st.integers(0, 999)))


@settings(deadline=None, max_examples=12)
@given(models(), st.integers(0, 99))
def test_covariances_of_scores_equal_differences_of_sums_over_completions(
    found: tuple[Model, Dataset], seed: int
) -> None:
    model, data = found
    network = network_to_marginalize(model.tables, model.schema)
    if network is None:
        return
    assert model.uncertainty is not None
    rows = rows_with_unknowns(model, 3, seed)
    entries = [Tables.of_cells(e, model.tables.families) for e in np.split(model.uncertainty.entries, 2, axis=1)]
    covariances = score_covariances(network, entries[0], entries[1], dict(enumerate(rows)))
    contrasts = np.eye(len(model.schema.labels))[1:] - np.eye(len(model.schema.labels))[0]
    of_entries = covariance_of_entries(model, data)
    for t in range(3):
        expected = slow_covariance(model, {i: int(c[t]) for i, c in enumerate(rows)}, of_entries)
        np.testing.assert_allclose(
            contrasts @ covariances[t] @ contrasts.T, contrasts @ expected @ contrasts.T, rtol=1e-6, atol=1e-8
        )


TREE = Dag(((), (0,), (0,), (1,)), (0, 2, 3))


def test_two_classes_follow_the_formula_in_complete_and_incomplete_rows() -> None:
    model, data = learned(TREE, (2, 3, 2, 3), 2, 5)
    rows = rows_with_unknowns(model, 30, 2)
    scorer = compile_scorer(model)
    log_p = log_probabilities(scorer, rows)
    ends = IntervalFinder(model, scorer.used, lambda values: values, 0.8).find(rows, log_p)
    of_entries, z = covariance_of_entries(model, data), NormalDist().inv_cdf(0.9)
    for t in range(30):
        covariance = slow_covariance(model, {i: int(c[t]) for i, c in enumerate(rows)}, of_entries)
        sd = np.sqrt(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1])
        s = log_p[1, t] - log_p[0, t]
        assert ends.low[1, t] == pytest.approx(-np.log1p(np.exp(-s + z * sd)), rel=1e-6)
        assert ends.high[1, t] == pytest.approx(-np.log1p(np.exp(-s - z * sd)), rel=1e-6)


@pytest.mark.slow
def test_log_odds_have_the_covariance_of_networks_drawn_from_the_posterior() -> None:
    """With many rows the delta method is exact; 300 draws of all distributions have an error of 4 %."""
    model, data = learned(TREE, (2, 3, 2, 3), 3, 7, n_rows=3000)
    rows, rng, n_draws = rows_with_unknowns(model, 8, 3), np.random.default_rng(1), 300
    prior = rng.dirichlet(np.bincount(data.labels, minlength=3) + 1.0, n_draws)
    tables = []
    for family in model.tables.families:
        known = np.all([data.codes[a] < model.schema.cardinalities[a] for a in family.attributes], axis=0)
        counts = np.zeros((3, *family.shape))
        np.add.at(counts, (data.labels[known], *(data.codes[a][known] for a in family.attributes)), 1.0)
        counts = counts if family.by_class else counts.sum(axis=0, keepdims=True)
        gammas = rng.gamma(counts + 1.0, size=(n_draws, *counts.shape))
        theta = np.log(gammas / gammas.sum(axis=2, keepdims=True)).reshape(n_draws, len(counts), -1)
        tables.append(np.broadcast_to(theta, (n_draws, 3, family.n_cells)))
    drawn = np.empty((n_draws, 3, 8))
    for r in range(n_draws):
        weights = tuple(np.ascontiguousarray(table[r].T) for table in tables)
        changed = replace(model, predictor=Tables(np.log(prior[r]), model.tables.families, weights))
        drawn[r] = log_probabilities(compile_scorer(changed), rows)
    network = network_to_marginalize(model.tables, model.schema)
    assert network is not None
    assert model.uncertainty is not None
    entries = [Tables.of_cells(e, model.tables.families) for e in np.split(model.uncertainty.entries, 2, axis=1)]
    found = score_covariances(network, entries[0], entries[1], dict(enumerate(rows)))
    for a, b in ((0, 1), (0, 2), (1, 2)):
        expected = (drawn[:, a] - drawn[:, b]).std(axis=0)
        sd = np.sqrt(found[:, a, a] + found[:, b, b] - 2 * found[:, a, b])
        np.testing.assert_allclose(sd, expected, rtol=0.12)
