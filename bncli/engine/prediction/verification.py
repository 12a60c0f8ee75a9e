"""The self-test of a model: made-up rows, and what it said of them when it was made, to be scored again anywhere.

Of every attribute each code comes up about as often as any other, in an order of its own, so that the rows look up
every table at many of its cells. Every fourth row lacks about half of its values. None of it is taken from training
rows.

Conventions: the random stream is fixed, so that equal models have equal self-tests. Where a row that lacks values would
take too large a table (missing values marginalized over a dense network), no row lacks any.

Whether a network by names says what a model says, on rows made at random.

Codes are uniform, each attribute for itself, its missing level among them: rows that the training data never showed are
met as often as any. Both sides are computed apart: the model by its scorer, the network by adding up

    ln P(y, x) = sum over the class and its children of ln theta[parents, own state]

for every label y; nodes without the class in their table cancel. Cost: rows times table look-ups, twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from bncli.engine.kernels.arrays import Array, Index
from bncli.engine.model import Model, SelfTest
from bncli.engine.networks.named_network import NamedNetwork, Node
from bncli.engine.prediction.scoring import compile_scorer, log_probabilities
from bncli.errors import BncliError

ROWS = 32
LACKING = 4
"""Every so-manyeth row lacks values."""
EXPORT_ROWS = 10_000
"""At least so many rows an export is compared with its model on."""
TOLERANCE = 1e-9
"""Probabilities that differ by no more agree: what sums in another order, or another machine's exp, may do to them."""


def with_self_test(model: Model) -> Model:
    """Return the model with its self-test; cost: compiling it as for scoring, and scoring 32 rows."""
    cardinalities = np.array([model.schema.cardinalities[i] for i in self_tested(model)], np.intp)
    rng = np.random.Generator(np.random.PCG64(0))
    complete = _complete_rows(cardinalities, rng)
    lacking = (np.arange(ROWS) % LACKING == 0) & (rng.random(complete.shape) < 0.5)
    codes = np.where(lacking, cardinalities[:, None], complete)
    try:
        probabilities = probabilities_of(model, codes)
    except BncliError:
        codes, probabilities = complete, probabilities_of(model, complete)
    return replace(model, self_test=SelfTest(codes, probabilities))


def _complete_rows(cardinalities: Index, rng: np.random.Generator) -> Index:
    """Return codes (attributes, rows): each code of an attribute as often as any other, give or take one."""
    codes = np.empty((len(cardinalities), ROWS), np.intp)
    for row, cardinality in zip(codes, cardinalities, strict=True):
        row[:] = rng.permutation(rng.permutation(cardinality)[np.arange(ROWS) % cardinality])
    return codes


def self_tested(model: Model) -> tuple[int, ...]:
    """Return the attributes, ascending, whose codes a self-test has."""
    return tuple(sorted(model.attributes))


def probabilities_of(model: Model, codes: Index) -> Array:
    """Return P(y | x_t) as the model says it here and now, shape (K, rows); `codes` as in a self-test."""
    scorer, by_attribute = compile_scorer(model), dict(zip(self_tested(model), codes, strict=True))
    used = [by_attribute[attribute].astype(np.uint32) for attribute in scorer.used]
    return np.exp(log_probabilities(scorer, used, codes.shape[1]))


def largest_change(model: Model, test: SelfTest) -> float:
    """Return max |dP| between what the model says of the rows now and what it said when it was made."""
    return float(np.abs(probabilities_of(model, test.codes) - test.probabilities).max(initial=0.0))


def largest_difference(model: Model, network: NamedNetwork, rows: int, rng: np.random.Generator) -> float:
    """Return max |dP| over the labels and so many random rows; NaN where the network knows no probability for a row."""
    scorer = compile_scorer(model)
    cardinalities = model.schema.cardinalities
    codes = {model.schema.attributes[i].name: rng.integers(0, cardinalities[i], rows) for i in scorer.used}
    expected = np.exp(log_probabilities(scorer, [c.astype(np.uint32) for c in codes.values()], rows))
    return float(np.abs(posteriors(network, model.schema.class_name, codes, rows) - expected).max(initial=0.0))


def posteriors(network: NamedNetwork, class_name: str, codes: Mapping[str, Index], rows: int) -> Array:
    """Return P(y | x_t), shape (K, rows); `codes` are the positions of the attributes' states."""
    log_joint = np.zeros((len(network.by_name[class_name].states), rows))
    with np.errstate(divide="ignore", invalid="ignore"):
        for node in network.nodes:
            if class_name in (node.name, *node.parents):
                log_joint += _log_factor(node, class_name, codes, rows)
        joint = np.exp(log_joint - log_joint.max(axis=0))
    return np.asarray(joint / joint.sum(axis=0))


def _log_factor(node: Node, class_name: str, codes: Mapping[str, Index], rows: int) -> Array:
    """Return ln theta of the node's state in every row, for every label (K, rows)."""
    members = (*node.parents, node.name)
    label = members.index(class_name)
    log_theta = np.log(np.moveaxis(node.probabilities, label, 0))
    digits = tuple(codes[member] for member in members if member != class_name)
    return np.stack([np.broadcast_to(table[digits], rows) for table in log_theta])


def same_nodes(one: NamedNetwork, other: NamedNetwork) -> bool:
    """Return whether both have the same nodes, states and parents, in the same order, and the same class."""
    return [_naming(one), one.class_name] == [_naming(other), other.class_name]


def _naming(network: NamedNetwork) -> list[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    return [(node.name, node.states, node.parents) for node in network.nodes]
