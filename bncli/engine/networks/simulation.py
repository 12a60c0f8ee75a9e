"""Rows drawn from a Bayesian network: parents before children, each node by the inverse of its distribution function.

    x_i = the number of thresholds sum over v' <= v of theta_i(v' | pi(i), y) that are <= u,   u uniform in [0, 1)

Conventions: every node draws from a random stream of its own, spawned from the generator given. So row t is the same
however many rows are asked for and in whatever blocks, and the same on any machine (a model's probabilities are
exponentials, which another machine may round otherwise: that changes one row in 10^15). An interval (a, b] of a
numeric attribute becomes a number drawn uniformly inside it, so that the rows can be learnt from again; an outer
interval is taken to be as wide as its neighbour (where there is one cut c only, |c| wide, or 1 if c is 0; an attribute
without cuts lies between 0 and 1). The missing level becomes a missing value.

Cost a row and node: a uniform number, a table look-up for each doubling of the number of values, a multiplication
for each parent. Memory: one block.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from graphlib import TopologicalSorter

import numpy as np

from bncli.engine.data.columns import MISSING, CategoricalColumn, Column, Columns, NumericColumn
from bncli.engine.data.forms import NumberForm
from bncli.engine.data.schema import Attribute, NumericAttribute
from bncli.engine.kernels.arrays import Array, Index
from bncli.engine.kernels.cells import cell_numbers
from bncli.engine.model import Model
from bncli.engine.networks.network import Network, network_of
from bncli.engine.networks.random_networks import random_network
from bncli.engine.structures.structure import CLASS

__all__ = ["Sampler", "random_network", "sample", "sample_blocks"]

Node = int | None

NUMBERS_PER_BLOCK = 1 << 23
ROWS_PER_BLOCK = 1 << 15


def sample(source: Model | Network, rows: int, rng: np.random.Generator) -> Columns:
    """`rows` labelled rows from a network, or from a model that is one (see `network_of`)."""
    return Sampler(source if isinstance(source, Network) else network_of(source), rng).draw(rows)


def sample_blocks(network: Network, rows: int, rng: np.random.Generator) -> Iterator[Columns]:
    """The same rows, block by block."""
    sampler = Sampler(network, rng)
    step = min(ROWS_PER_BLOCK, NUMBERS_PER_BLOCK // (len(network.theta) + 1) + 1)
    for start in range(0, rows, step):
        yield sampler.draw(min(step, rows - start))


class Sampler:
    """A network made ready; `draw` goes on where the last draw ended."""

    def __init__(self, network: Network, rng: np.random.Generator) -> None:
        n = len(network.theta)
        *of_nodes, of_class = rng.spawn(n + 1)
        self._nodes: dict[Node, _Node] = {CLASS: _class_node(network, of_class)}
        self._nodes.update((i, _attribute_node(network, i, of_nodes[i])) for i in range(n))
        self._order = list(TopologicalSorter({i: node.parents for i, node in self._nodes.items()}).static_order())
        self._schema = network.schema
        self._inside = dict(zip(range(n), rng.spawn(n), strict=True))

    def draw(self, rows: int) -> Columns:
        """The next rows."""
        codes: dict[Node, Index] = {}
        for i in self._order:
            codes[i] = self._nodes[i].draw(rows, codes)
        schema = self._schema
        attributes = {a.name: _column(a, codes[i], self._inside[i]) for i, a in enumerate(schema.attributes)}
        label = CategoricalColumn(codes[CLASS].astype(_signed(len(schema.labels))), schema.labels)
        return Columns(rows, attributes, schema.class_name, label)


@dataclass(frozen=True)
class _Node:
    """thresholds (configurations of the parents, values - 1): cumulated probabilities, the last one, 1, left out."""

    parents: tuple[Node, ...]
    radices: tuple[int, ...]
    thresholds: Array
    stream: np.random.Generator

    def draw(self, rows: int, codes: Mapping[Node, Index]) -> Index:
        """The value of every row, given those of its parents: how many thresholds do not exceed a uniform number."""
        uniform = self.stream.random(rows)
        digits = [codes[parent] for parent in self.parents]
        cells = cell_numbers(digits, self.radices) if digits else np.zeros(rows, np.intp)
        return _count_below(self.thresholds, cells, uniform)


def _attribute_node(network: Network, i: int, stream: np.random.Generator) -> _Node:
    by_class: tuple[Node, ...] = (CLASS,) if i in network.structure.class_children else ()
    theta = np.moveaxis(network.theta[i], 0, -1)
    return _Node((*network.structure.parents[i], *by_class), theta.shape[:-1], _thresholds(theta), stream)


def _class_node(network: Network, stream: np.random.Generator) -> _Node:
    theta = network.theta_class
    return _Node(network.structure.class_parents, theta.shape[:-1], _thresholds(theta), stream)


def _thresholds(theta: Array) -> Array:
    cumulated = theta.reshape(-1, theta.shape[-1]).cumsum(axis=1)
    # divided by the true sum: rounded probabilities may add up to a little less or more than 1
    return np.asarray(cumulated[:, :-1] / cumulated[:, -1:])


def _count_below(thresholds: Array, cells: Index, uniform: Array) -> Index:
    """How many of thresholds[cells[t]] are <= uniform[t], for every row t at once, by halving."""
    n = thresholds.shape[1]
    flat, base = thresholds.ravel(), cells * n - 1
    count = np.zeros(len(cells), np.intp)
    step = 1 << n.bit_length() >> 1
    while step:
        further = count + step
        count = np.where((further <= n) & (flat[base + np.minimum(further, n)] <= uniform), further, count)
        step >>= 1
    return count


def _column(attribute: Attribute, codes: Index, stream: np.random.Generator) -> Column:
    """The values that the codes stand for."""
    if isinstance(attribute, NumericAttribute):
        form = attribute.form if isinstance(attribute.form, NumberForm) else None  # parts of dates stand alone
        return NumericColumn(_numbers(attribute, codes, stream), form)
    narrow = codes.astype(_signed(attribute.cardinality))
    narrow[codes >= attribute.n_values] = MISSING
    return CategoricalColumn(narrow, attribute.levels)


def _numbers(attribute: NumericAttribute, codes: Index, stream: np.random.Generator) -> Array:
    """A number inside the interval of each code, NaN for the missing level. No sum here can overflow."""
    edges = _edges(attribute.cuts)
    bounds = edges[:-1], np.nextafter(edges[:-1], edges[1:]), edges[1:]
    open_low, low, high = (np.append(bound, np.nan)[codes] for bound in bounds)
    share = stream.random(len(codes))
    # rounding could reach the open end, which belongs to the interval below
    return np.asarray(np.clip(share * open_low + (1.0 - share) * high, low, high))


def _edges(cuts: tuple[float, ...]) -> Array:
    """The cuts and two ends, all finite; the last interval holds a number, if there is one beyond its cut."""
    if not cuts:
        return np.array([0.0, 1.0])
    first, last = (abs(cuts[0]) or 1.0,) * 2
    if len(cuts) > 1:
        first, last = cuts[1] - cuts[0], cuts[-1] - cuts[-2]
    largest = float(np.finfo(np.float64).max)
    end = max(cuts[-1] + last, math.nextafter(cuts[-1], math.inf))
    return np.array([max(cuts[0] - first, -largest), *cuts, min(end, largest)])


def _signed(n_codes: int) -> np.dtype[np.signedinteger]:
    """The narrowest type for codes below n_codes and for negative marks."""
    return np.dtype(np.min_scalar_type(-max(n_codes, 1) - 1))
