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

Random networks to draw artificial data from, in which the truth is known.

Every distribution of a node given its parents is drawn from the Dirichlet distribution with all parameters 1: all
distributions over its values are equally likely. What is the parent of what follows from a `Spec`:

    p.n.d.N    each of n attributes has the class and the p - 1 attributes before it (where there are so many) as
               parents; N rows. Perfect. The artificial data of Feelders & Ivanovs 2006, e.g. 2.30.2-3.1000
    nb         the class alone
    tan        the class and one attribute that comes earlier in a random order
    kdb        the class and k attributes that come earlier in a random order, or all where there are fewer
    conditioning   see `conditioning_network`; not random

An attribute has d values; d written 2-3 is drawn for each, 2 and 3 with equal probabilities. Conventions: in p.n.d.N
the class has a number of labels drawn in the same way (the paper does not say; the flops in its Table 2 fit this). The
class is called `class` and its labels c0, c1 ...; attributes are x1, x2 ..., values v0, v1 ..., all numbers with as
many digits as the largest has, so that they sort. Dirichlet numbers are the gaps between sorted uniform numbers: no
logarithm is taken, so that a seed gives the same network on any machine.

Missing values put into rows: every value of an attribute is removed with a probability of its own, whatever it is.

    P(x_ti is removed) = share_i,   independently of every other value, of the class and of x_ti itself

which is "missing completely at random" (Little & Rubin 1987). The class is never removed.

Conventions: each attribute draws from a random stream of its own, one uniform number per row, so that the missing
values are the same in whatever blocks the rows come, and a value missing at a small share is missing at any larger one.
Missing values that the rows have already stay. Cost: a uniform number per value.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from graphlib import TopologicalSorter

import numpy as np

from bncli.engine.data.columns import MISSING, CategoricalColumn, Column, Columns, NumericColumn
from bncli.engine.data.number_formats import NumberForm
from bncli.engine.data.schema import Attribute, CategoricalAttribute, NumericAttribute, Schema
from bncli.engine.kernels.arrays import Array, Index
from bncli.engine.kernels.cells import cell_numbers
from bncli.engine.model import Model
from bncli.engine.networks.network import Network, network_of, table_shapes
from bncli.engine.structures.structure import CLASS, Dag
from bncli.errors import UsageError

Range = tuple[int, int]
"""A number drawn from the first to the last, both included, all equally likely."""
MOST_ENTRIES = 1 << 25
"""Probabilities in all tables of a network together: 256 MiB, and as much again while rows are drawn."""
MOST_ATTRIBUTES = 10_000
MOST_VALUES = 10_000
_NAME = re.compile(r"([0-9]+)\.([0-9]+)\.([0-9]+)(?:-([0-9]+))?\.([0-9]+)")


@dataclass(frozen=True)
class RandomNetworkKind:
    """A kind of random network: `k` is the most attribute parents of an attribute, `name` what it is called.

    ordered: the parents are the attributes just before; otherwise earlier ones in a random order, drawn at random.
    rows: how many the name asks for; None where it does not say. options: what its structure file says of it.
    """

    name: str
    k: int
    attributes: int = 10
    values: Range = (3, 3)
    classes: Range = (2, 2)
    ordered: bool = False
    rows: int | None = None
    options: dict[str, int | float | str | bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for what, (least, most), low, high in (
            ("attributes", (self.attributes, self.attributes), 1, MOST_ATTRIBUTES),
            ("values", self.values, 2, MOST_VALUES),
            ("classes", self.classes, 2, MOST_VALUES),
        ):
            if not low <= least <= most <= high:
                number = str(least) if least == most else f"{least}-{most}"
                raise UsageError(
                    f"a network of {number} {what} cannot be drawn", hint=f"from {low} to {high:,} are possible"
                )


MOST_EXPONENT = 300.0
__all__ = ["Sampler", "random_network", "sample", "sample_blocks"]
Node = int | None
NUMBERS_PER_BLOCK = 1 << 23
ROWS_PER_BLOCK = 1 << 15


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
        """Return the next rows."""
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
        """Draw the value of every row given its parents: the number of thresholds below a uniform number."""
        uniform = self.stream.random(rows)
        digits = [codes[parent] for parent in self.parents]
        cells = cell_numbers(digits, self.radices) if digits else np.zeros(rows, np.intp)
        # How many of thresholds[cells[t]] are <= uniform[t], for every row t at once, by halving.
        n = self.thresholds.shape[1]
        flat, base = self.thresholds.ravel(), cells * n - 1
        count = np.zeros(len(cells), np.intp)
        step = 1 << n.bit_length() >> 1
        while step:
            further = count + step
            count = np.where((further <= n) & (flat[base + np.minimum(further, n)] <= uniform), further, count)
            step >>= 1
        return count


class MissingCompletelyAtRandom:
    """Shares made ready, one for each attribute in order; `applied_to` goes on where the last rows ended."""

    def __init__(self, shares: Sequence[float], rng: np.random.Generator) -> None:
        self._shares = tuple(shares)
        self._streams = rng.spawn(len(self._shares))

    def applied_to(self, rows: Columns) -> Columns:
        """Return the rows with missing values."""
        members = zip(rows.as_read.items(), self._shares, self._streams, strict=True)
        attributes = {name: _removed(column, share, stream) for (name, column), share, stream in members}
        return Columns(rows.n_rows, attributes, rows.class_name, rows.label, rows.weights)


def named_spec(name: str) -> RandomNetworkKind | None:
    """Return what a name p.n.d.N stands for; None where it is no such name."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    if max(map(len, filter(None, match.groups()))) > 15:
        raise UsageError(f"a number in the network {name!r} is too large")
    parents, attributes, least, most, rows = (int(number) if number else 0 for number in match.groups())
    if parents < 1 or rows < 1:
        what = "parent (the class)" if parents < 1 else "row"
        raise UsageError(f"the network {name!r} needs at least one {what}", hint="for example 2.30.2-3.1000")
    values = (least, most or least)
    return RandomNetworkKind(name, parents - 1, attributes, values, values, True, rows, {"network": name})


def random_network(spec: RandomNetworkKind | str, rng: np.random.Generator) -> Network:
    """Return a network of this kind, or of this name p.n.d.N; UsageError where its tables would not fit into memory."""
    if isinstance(spec, str):
        named = named_spec(spec)
        if named is None:
            raise UsageError(f"there is no network {spec!r}", hint="a name is like 2.30.2-3.1000")
        spec = named
    _refuse_size(spec.values[0] ** min(spec.k + 1, spec.attributes) * spec.classes[0])  # one table at least is as large
    n_labels = int(rng.integers(*spec.classes, endpoint=True))
    cardinalities = rng.integers(*spec.values, size=spec.attributes, endpoint=True).tolist()
    structure = _preceding(spec) if spec.ordered else _scattered(spec, rng)
    shapes = table_shapes(structure, cardinalities, n_labels)
    _refuse_size(sum(map(math.prod, shapes)))
    *theta, theta_class = (_dirichlet(shape[0], shape[1:], rng) for shape in (*shapes[:-1], (n_labels,)))
    return Network(_schema(cardinalities, n_labels), structure, theta_class, tuple(theta))


def _refuse_size(entries: int) -> None:
    """Sizes as powers of ten where they are beyond any number that one would like to read."""
    if entries > MOST_ENTRIES:
        size = f"{entries:,}" if entries < 10**15 else f"about 10^{len(str(entries)) - 1}"
        raise UsageError(
            f"the tables of this network would hold {size} probabilities or more; the most is {MOST_ENTRIES:,}",
            hint="take fewer parents, values or attributes",
        )


def _preceding(spec: RandomNetworkKind) -> Dag:
    """Return the nearest attribute first."""
    parents = tuple(tuple(range(i - 1, max(i - 1 - spec.k, -1), -1)) for i in range(spec.attributes))
    return Dag(parents, tuple(range(spec.attributes)), (), "random", spec.options)


def _scattered(spec: RandomNetworkKind, rng: np.random.Generator) -> Dag:
    order = rng.permutation(spec.attributes)
    parents: list[tuple[int, ...]] = [()] * spec.attributes
    for place, i in enumerate(order.tolist()):
        if place and spec.k:
            parents[i] = tuple(order[rng.choice(place, min(spec.k, place), replace=False)].tolist())
    return Dag(tuple(parents), tuple(range(spec.attributes)), (), "random", spec.options)


def _dirichlet(n: int, given: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Shape (n, *given): over its first axis, each a distribution drawn uniformly from all distributions."""
    marks = rng.random((math.prod(given), n - 1))
    marks.sort(axis=1)
    theta: Array = np.diff(marks, axis=1, prepend=0.0, append=1.0).T
    return np.ascontiguousarray(theta).reshape(n, *given)


def _schema(cardinalities: list[int], n_labels: int) -> Schema:
    """Without rows, there are no frequencies."""
    names = numbered("x", len(cardinalities), first=1)
    attributes = (
        CategoricalAttribute(name, False, (), numbered("v", n)) for name, n in zip(names, cardinalities, strict=True)
    )
    return Schema("class", numbered("c", n_labels), tuple(attributes))


def numbered(letter: str, n: int, first: int = 0) -> tuple[str, ...]:
    """Return n names: the letter and numbers of equal length, so that their order is that of the numbers."""
    width = len(str(n - 1 + first))
    return tuple(f"{letter}{number:0{width}d}" for number in range(first, n + first))


def conditioning_network(exponent: float) -> Network:
    """Return three independent uniform binary attributes whose influence on the class differs by powers of ten.

        P(y = 1 | x) = 1 / (1 + exp(-(10^a x_1 + x_2 + 10^-a x_3))),   x_i in {0, 1}, a = exponent

    The class has the attributes as parents. The larger a, the worse conditioned is the likelihood of a logistic
    regression on such data (Zaidi et al. 2017, section 5.5.1, where the 1 + is lost in print; a from 0 to 1).
    """
    if not 0 <= exponent <= MOST_EXPONENT:
        raise UsageError(f"the exponent {exponent:g} is not between 0 and {MOST_EXPONENT:g}")
    x = np.indices((2, 2, 2)).astype(np.float64)
    score = 10.0**exponent * x[0] + x[1] + 10.0**-exponent * x[2]
    theta_class = np.stack([np.exp(-score), np.ones_like(score)], axis=-1) / (1.0 + np.exp(-score))[..., np.newaxis]
    attributes = tuple(CategoricalAttribute(name, False, (), ("0", "1")) for name in numbered("x", 3, first=1))
    options: dict[str, int | float | str | bool] = {"network": "conditioning", "exponent": exponent}
    structure = Dag(((), (), ()), (), (0, 1, 2), "conditioning", options)
    return Network(Schema("class", ("0", "1"), attributes), structure, theta_class, (np.full(2, 0.5),) * 3)


def sample(source: Model | Network, rows: int, rng: np.random.Generator) -> Columns:
    """Return `rows` labelled rows from a network, or from a model that is one (see `network_of`)."""
    return Sampler(source if isinstance(source, Network) else network_of(source), rng).draw(rows)


def sample_blocks(network: Network, rows: int, rng: np.random.Generator) -> Iterator[Columns]:
    """Yield the same rows, block by block."""
    sampler = Sampler(network, rng)
    step = min(ROWS_PER_BLOCK, NUMBERS_PER_BLOCK // (len(network.theta) + 1) + 1)
    for start in range(0, rows, step):
        yield sampler.draw(min(step, rows - start))


def missing_shares(schema: Schema) -> tuple[float, ...]:
    """Return how often each attribute was unobserved in the training rows.

    0 where they count as a value of their own.
    """
    return tuple(
        a.missing_weight / (a.missing_weight + sum(a.frequencies)) if a.missing_weight else 0.0
        for a in schema.attributes
    )


def count_missing(column: Column) -> int:
    """Return how many values of a column are missing."""
    if isinstance(column, CategoricalColumn):
        return int(np.count_nonzero(column.codes == MISSING))
    return int(np.count_nonzero(np.isnan(column.values))) if column.values.dtype.kind == "f" else 0


def _attribute_node(network: Network, i: int, stream: np.random.Generator) -> _Node:
    by_class: tuple[Node, ...] = (CLASS,) if i in network.structure.class_children else ()
    theta = np.moveaxis(network.theta[i], 0, -1)
    return _Node((*network.structure.parents[i], *by_class), theta.shape[:-1], _thresholds(theta), stream)


def _thresholds(theta: Array) -> Array:
    cumulated = theta.reshape(-1, theta.shape[-1]).cumsum(axis=1)
    # divided by the true sum: rounded probabilities may add up to a little less or more than 1
    return np.asarray(cumulated[:, :-1] / cumulated[:, -1:])


def _class_node(network: Network, stream: np.random.Generator) -> _Node:
    theta = network.theta_class
    return _Node(network.structure.class_parents, theta.shape[:-1], _thresholds(theta), stream)


def _column(attribute: Attribute, codes: Index, stream: np.random.Generator) -> Column:
    """Return the values that the codes stand for."""
    if isinstance(attribute, NumericAttribute):
        form = attribute.form if isinstance(attribute.form, NumberForm) else None  # parts of dates stand alone
        return NumericColumn(_numbers(attribute, codes, stream), form)
    narrow = codes.astype(_signed(attribute.cardinality))
    narrow[codes >= attribute.n_values] = MISSING
    return CategoricalColumn(narrow, attribute.levels)


def _numbers(attribute: NumericAttribute, codes: Index, stream: np.random.Generator) -> Array:
    """Return a number inside the interval of each code, NaN for the missing level. No sum here can overflow."""
    edges = _edges(attribute.cuts)
    bounds = edges[:-1], np.nextafter(edges[:-1], edges[1:]), edges[1:]
    open_low, low, high = (np.append(bound, np.nan)[codes] for bound in bounds)
    share = stream.random(len(codes))
    # rounding could reach the open end, which belongs to the interval below
    return np.asarray(np.clip(share * open_low + (1.0 - share) * high, low, high))


def _edges(cuts: tuple[float, ...]) -> Array:
    """Return the cuts and two ends, all finite; the last interval holds a number, if there is one beyond its cut."""
    if not cuts:
        return np.array([0.0, 1.0])
    first, last = (abs(cuts[0]) or 1.0,) * 2
    if len(cuts) > 1:
        first, last = cuts[1] - cuts[0], cuts[-1] - cuts[-2]
    largest = float(np.finfo(np.float64).max)
    end = max(cuts[-1] + last, math.nextafter(cuts[-1], math.inf))
    return np.array([max(cuts[0] - first, -largest), *cuts, min(end, largest)])


def _signed(n_codes: int) -> np.dtype[np.signedinteger]:
    """Return the narrowest type for codes below n_codes and for negative marks."""
    return np.dtype(np.min_scalar_type(-max(n_codes, 1) - 1))


def _removed(column: Column, share: float, stream: np.random.Generator) -> Column:
    if share <= 0:
        return column
    if isinstance(column, CategoricalColumn):
        codes = column.codes.copy()
        codes[stream.random(len(codes)) < share] = MISSING
        return CategoricalColumn(codes, column.levels)
    values = column.values.astype(np.float64)
    values[stream.random(len(values)) < share] = np.nan
    return replace(column, values=values)
