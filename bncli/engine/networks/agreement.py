"""Whether a network by names says what a model says, on rows made at random.

Codes are uniform, each attribute for itself, its missing level among them: rows that the training data never showed
are met as often as any. Both sides are computed apart: the model by its scorer, the network by adding up

    ln P(y, x) = sum over the class and its children of ln theta[parents, own state]

for every label y; nodes without the class in their table cancel. Cost: rows times table look-ups, twice.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bncli.engine.kernels.arrays import Array, Index
from bncli.engine.model import Model
from bncli.engine.networks.named_network import NamedNetwork, Node
from bncli.engine.prediction.scoring import compile_scorer, log_probabilities


def largest_difference(model: Model, network: NamedNetwork, rows: int, rng: np.random.Generator) -> float:
    """max |dP| over the labels and so many random rows; NaN where the network knows no probability for a row."""
    scorer = compile_scorer(model)
    cardinalities = model.schema.cardinalities
    codes = {model.schema.attributes[i].name: rng.integers(0, cardinalities[i], rows) for i in scorer.used}
    expected = np.exp(log_probabilities(scorer, [c.astype(np.uint32) for c in codes.values()], rows))
    return float(np.abs(posteriors(network, model.schema.class_name, codes, rows) - expected).max(initial=0.0))


def posteriors(network: NamedNetwork, class_name: str, codes: Mapping[str, Index], rows: int) -> Array:
    """P(y | x_t), shape (K, rows); `codes` are the positions of the attributes' states."""
    log_joint = np.zeros((len(network.by_name[class_name].states), rows))
    with np.errstate(divide="ignore", invalid="ignore"):
        for node in network.nodes:
            if class_name in (node.name, *node.parents):
                log_joint += _log_factor(node, class_name, codes, rows)
        joint = np.exp(log_joint - log_joint.max(axis=0))
    return np.asarray(joint / joint.sum(axis=0))


def _log_factor(node: Node, class_name: str, codes: Mapping[str, Index], rows: int) -> Array:
    """ln theta of the node's state in every row, for every label (K, rows)."""
    members = (*node.parents, node.name)
    label = members.index(class_name)
    log_theta = np.log(np.moveaxis(node.probabilities, label, 0))
    digits = tuple(codes[member] for member in members if member != class_name)
    return np.stack([np.broadcast_to(table[digits], rows) for table in log_theta])


def same_nodes(one: NamedNetwork, other: NamedNetwork) -> bool:
    """Whether both have the same nodes, states and parents, in the same order, and the same class."""
    return [_naming(one), one.class_name] == [_naming(other), other.class_name]


def _naming(network: NamedNetwork) -> list[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    return [(node.name, node.states, node.parents) for node in network.nodes]
