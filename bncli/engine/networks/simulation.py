"""Random Bayesian networks, rows drawn from a network, and missing values put into these rows.

**Rows.** Parents are drawn before children, each node by the inverse of its distribution function:

    x_i = the number of thresholds sum over v' <= v of theta_i(v' | pi(i), y) that are <= u,   u uniform in [0, 1)

Conventions: every node has its own random stream, spawned from the caller's generator. So row t is the same regardless
of the number of rows and the size of the blocks, and the same on any machine (a model's probabilities are exponentials,
which another machine may round differently; that changes one row in 10^15). An interval (a, b] of a numeric attribute
becomes a number drawn uniformly from it, so that the rows can be learned from again. An outer interval is assumed to be
as wide as its neighbour (with a single cut c, |c| wide, or 1 if c is 0; values of an attribute without cuts are between
0 and 1). The missing level becomes a missing value.

Cost per row and node: a uniform number, a table look-up for each doubling of the number of values, a multiplication for
each parent. Memory: one block.

**Random networks.** Every distribution of a node given its parents is drawn from the Dirichlet distribution with all
parameters 1, so that all distributions over its values are equally likely. The kind of network determines the parents
of the attributes (`RandomNetworkKind`, except for conditioning):

    p.n.d.N    each of n attributes has the class and the p - 1 attributes before it (fewer for the first ones) as
               parents, so the graph is perfect; N is the number of rows. These are the artificial data of Feelders &
               Ivanovs 2006, for example 2.30.2-3.1000
    nb         the class alone
    tan        the class and one attribute that comes earlier in a random order
    kdb        the class and k attributes that come earlier in a random order, or all if there are fewer
    conditioning   see `conditioning_network`; not random

An attribute has d values; if d is 2-3, each attribute has 2 or 3 with equal probabilities. Conventions: in p.n.d.N the
number of class labels is drawn in the same way (the paper does not specify it; the flops in its Table 2 fit this). The
class is called `class` and its labels c0, c1 ...; attributes are x1, x2 ..., values v0, v1 ..., padded to the same
number of digits, so that they sort. Dirichlet variates are the gaps between sorted uniform variates: no logarithm is
taken, so that a seed gives the same network on any machine.

**Missing values.** Every value of an attribute is removed with a probability that depends on the attribute only:

    P(x_ti is removed) = share_i,   independently of every other value, of the class and of x_ti itself

This is "missing completely at random" (Little & Rubin 1987). The class is never removed. Conventions: each attribute
has its own random stream, with one uniform variate per row. So the missing values do not depend on the blocks, and a
value that is missing with a low probability is also missing with any higher probability. Values that are missing
already remain so.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from graphlib import TopologicalSorter
from typing import NamedTuple

import numpy as np

from bncli.engine.data.columns import MISSING, CategoricalColumn, Column, Columns, NumericColumn
from bncli.engine.data.schema import CategoricalAttribute, NumberForm, NumericAttribute, Schema
from bncli.engine.kernels.arrays import Array, Index, cell_numbers
from bncli.engine.model import Model
from bncli.engine.networks.network import Network, network_of, table_shapes
from bncli.engine.structures.structure import CLASS, Dag
from bncli.errors import UsageError

Range = tuple[int, int]
"""The smallest and the largest of the integers from which one is drawn uniformly."""
MOST_ENTRIES = 1 << 25
"""The maximum number of probabilities in all tables of a network (256 MiB, and twice that while rows are drawn)."""
MOST_ATTRIBUTES = 10_000
MOST_VALUES = 10_000
MOST_EXPONENT = 300.0
NUMBERS_PER_BLOCK = 1 << 23
ROWS_PER_BLOCK = 1 << 15
NETWORK_NAME = re.compile(r"([0-9]+)\.([0-9]+)\.([0-9]+)(?:-([0-9]+))?\.([0-9]+)")


@dataclass(frozen=True)
class RandomNetworkKind:
    """A kind of random network, in which the class is a parent of every attribute.

    - name: the name of the kind
    - k: the number of attribute parents of each attribute; if fewer attributes come earlier, all of them are parents
    - attributes: the number of attributes
    - values, classes: the ranges from which the number of values of each attribute and the number of labels are drawn
    - ordered: True if the parents are the k attributes just before it in the schema; False if they are drawn at random
      from the attributes that come earlier in a random order
    - rows: the number of rows given in the name, or None
    - options: the options that the structure file records

    Raises UsageError if the number of attributes or a range is out of bounds, or if a range is reversed.
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
            ("values per attribute", self.values, 2, MOST_VALUES),
            ("classes", self.classes, 2, MOST_VALUES),
        ):
            if not low <= least <= most <= high:
                number = str(least) if least == most else f"{least}-{most}"
                hint = "give the smaller number first" if least > most else f"the range is from {low} to {high:,}"
                raise UsageError(f"a random network cannot have {number} {what}", hint=hint)


def named_spec(name: str) -> RandomNetworkKind | None:
    """Return the kind of network with the name p.n.d.N, or None if the name has another form.

    Raises UsageError for a number outside its range.
    """
    match = NETWORK_NAME.fullmatch(name)
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
    """Draw a network of a kind, or of the kind named p.n.d.N; raise UsageError if it is unknown or too large."""
    if isinstance(spec, str):
        named = named_spec(spec)
        if named is None:
            raise UsageError(f"there is no network {spec!r}", hint="use a name like 2.30.2-3.1000")
        spec = named
    n, k = spec.attributes, spec.k
    _refuse_size(spec.values[0] ** min(k + 1, n) * spec.classes[0])  # at least one table is as large
    n_labels = int(rng.integers(*spec.classes, endpoint=True))
    cardinalities = rng.integers(*spec.values, size=n, endpoint=True).tolist()
    if spec.ordered:
        # The nearest attribute comes first.
        parents = [tuple(range(i - 1, max(i - 1 - k, -1), -1)) for i in range(n)]
    else:
        order = rng.permutation(n)
        parents = [()] * n
        for place, i in enumerate(order.tolist()):
            if place and k:
                parents[i] = tuple(order[rng.choice(place, min(k, place), replace=False)].tolist())
    structure = Dag(tuple(parents), tuple(range(n)), (), "random", spec.options)
    shapes = table_shapes(structure, cardinalities, n_labels)
    _refuse_size(sum(map(math.prod, shapes)))
    tables = []
    for n_values, *configurations in (*shapes[:-1], (n_labels,)):
        # The gaps between sorted uniform numbers are uniform among all distributions.
        marks = rng.random((math.prod(configurations), n_values - 1))
        marks.sort(axis=1)
        theta = np.ascontiguousarray(np.diff(marks, axis=1, prepend=0.0, append=1.0).T)
        tables.append(theta.reshape(n_values, *configurations))
    names = numbered("x", n, first=1)
    attributes = tuple(
        CategoricalAttribute(name, False, (), numbered("v", cardinality))
        for name, cardinality in zip(names, cardinalities, strict=True)
    )
    schema = Schema("class", numbered("c", n_labels), attributes)
    return Network(schema, structure, tables[-1], tuple(tables[:-1]))


def _refuse_size(entries: int) -> None:
    if entries > MOST_ENTRIES:
        size = f"{entries:,}" if entries < 10**15 else f"about 10^{len(str(entries)) - 1}"
        raise UsageError(
            f"the tables of this network would have {size} probabilities or more; the maximum is {MOST_ENTRIES:,}",
            hint="use fewer parents, values or attributes",
        )


def numbered(letter: str, n: int, first: int = 0) -> tuple[str, ...]:
    """Return n names: the letter followed by consecutive numbers, zero-padded so that the names sort in this order."""
    width = len(str(n - 1 + first))
    return tuple(f"{letter}{number:0{width}d}" for number in range(first, n + first))


def conditioning_network(exponent: float) -> Network:
    """Return a network of independent uniform binary attributes x_1, x_2, x_3 with log-odds effects 10^a, 1, 10^-a.

        P(y = 1 | x) = 1 / (1 + exp(-(10^a x_1 + x_2 + 10^-a x_3))),   x_i in {0, 1}, a = exponent

    The attributes are the parents of the class. The larger a, the worse conditioned is the likelihood of a logistic
    regression on such data (Zaidi et al. 2017, section 5.5.1, where the 1 + is missing in print; a from 0 to 1).
    Raises UsageError for an exponent below 0 or above MOST_EXPONENT.
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
    """Draw `rows` labelled rows from a network, or from a model that can be written as one (see `network_of`).

    Raises ModelError for any other model.
    """
    return Sampler(source if isinstance(source, Network) else network_of(source), rng).draw(rows)


def sample_blocks(network: Network, rows: int, rng: np.random.Generator) -> Iterator[Columns]:
    """Yield the rows of `sample` block by block."""
    sampler = Sampler(network, rng)
    step = min(ROWS_PER_BLOCK, NUMBERS_PER_BLOCK // (len(network.theta) + 1) + 1)
    for start in range(0, rows, step):
        yield sampler.draw(min(step, rows - start))


class _Node(NamedTuple):
    """A node and its random stream.

    thresholds (configurations of the parents, values - 1): cumulative probabilities without the last, which is 1.
    """

    parents: tuple[int | None, ...]
    radices: tuple[int, ...]
    thresholds: Array
    stream: np.random.Generator


class Sampler:
    """A sampler of rows from a network; each call of `draw` or `draw_codes` continues the random streams."""

    def __init__(self, network: Network, rng: np.random.Generator) -> None:
        structure, n = network.structure, len(network.theta)
        self._schema = network.schema
        # theta of each node, with the node's values on the last axis; the class comes last, also in the random streams
        tables: list[tuple[int | None, tuple[int | None, ...], Array]] = []
        for i, (parents, theta) in enumerate(zip(structure.parents, network.theta, strict=True)):
            by_class = (CLASS,) if i in structure.class_children else ()
            tables.append((i, (*parents, *by_class), np.moveaxis(theta, 0, -1)))
        tables.append((CLASS, structure.class_parents, network.theta_class))
        self._nodes: dict[int | None, _Node] = {}
        for (node, node_parents, theta), stream in zip(tables, rng.spawn(n + 1), strict=True):
            cumulated = theta.reshape(-1, theta.shape[-1]).cumsum(axis=1)
            # divided by the actual sum, since rounded probabilities may add up to a little less or more than 1
            thresholds = cumulated[:, :-1] / cumulated[:, -1:]
            self._nodes[node] = _Node(node_parents, theta.shape[:-1], thresholds, stream)
        parents_of = {node: table.parents for node, table in self._nodes.items()}
        self._order = list(TopologicalSorter(parents_of).static_order())
        self._within_intervals = rng.spawn(n)

    def draw_codes(self, rows: int) -> dict[int | None, Index]:
        """Draw the next `rows` rows; return the codes (rows,) of each node, keyed by attribute index, or CLASS."""
        codes: dict[int | None, Index] = {}
        for node in self._order:
            parents, radices, thresholds, stream = self._nodes[node]
            uniform = stream.random(rows)
            digits = [codes[parent] for parent in parents]
            cells = cell_numbers(digits, radices) if digits else np.zeros(rows, np.intp)
            # Count the thresholds[cells[t]] that are <= uniform[t] by binary search, for every row t at once.
            n = thresholds.shape[1]
            flat, base = thresholds.ravel(), cells * n - 1
            count = np.zeros(len(cells), np.intp)
            step = 1 << n.bit_length() >> 1
            while step:
                further = count + step
                count = np.where((further <= n) & (flat[base + np.minimum(further, n)] <= uniform), further, count)
                step >>= 1
            codes[node] = count
        return codes

    def draw(self, rows: int) -> Columns:
        """Draw the next `rows` rows; return them as columns, with numeric values drawn uniformly from the intervals."""
        codes = self.draw_codes(rows)
        schema, attributes = self._schema, {}
        for i, (attribute, stream) in enumerate(zip(schema.attributes, self._within_intervals, strict=True)):
            column: Column
            if isinstance(attribute, NumericAttribute):
                form = attribute.form if isinstance(attribute.form, NumberForm) else None  # parts of dates have no form
                # a number from the interval of each code, NaN for the missing level; no sum here can overflow
                edges = _finite_edges(attribute.cuts)
                bounds = edges[:-1], np.nextafter(edges[:-1], edges[1:]), edges[1:]
                open_low, low, high = (np.append(bound, np.nan)[codes[i]] for bound in bounds)
                share = stream.random(rows)
                # by rounding, a number could reach the open end, which belongs to the interval below
                values = np.asarray(np.clip(share * open_low + (1.0 - share) * high, low, high))
                column = NumericColumn(values, form)
            else:
                narrow = codes[i].astype(_signed_code_type(attribute.cardinality))
                narrow[codes[i] >= attribute.n_values] = MISSING
                column = CategoricalColumn(narrow, attribute.levels)
            attributes[attribute.name] = column
        label = CategoricalColumn(codes[CLASS].astype(_signed_code_type(len(schema.labels))), schema.labels)
        return Columns(rows, attributes, schema.class_name, label)


def _finite_edges(cuts: tuple[float, ...]) -> Array:
    """Return the cuts and two finite outer ends; the last interval is nonempty if a finite number exceeds its cut."""
    if not cuts:
        return np.array([0.0, 1.0])
    first, last = (abs(cuts[0]) or 1.0,) * 2
    if len(cuts) > 1:
        first, last = cuts[1] - cuts[0], cuts[-1] - cuts[-2]
    largest = float(np.finfo(np.float64).max)
    end = max(cuts[-1] + last, math.nextafter(cuts[-1], math.inf))
    return np.array([max(cuts[0] - first, -largest), *cuts, min(end, largest)])


def _signed_code_type(n_codes: int) -> np.dtype[np.signedinteger]:
    """Return the narrowest signed type for codes below n_codes and for MISSING and UNSEEN."""
    return np.dtype(np.min_scalar_type(-max(n_codes, 1) - 1))


class MissingCompletelyAtRandom:
    """Removal of values completely at random, with probability shares[i] for a value of attribute i.

    Each call of `applied_to` continues the random streams of the previous call.
    """

    def __init__(self, shares: Sequence[float], rng: np.random.Generator) -> None:
        self._shares = tuple(shares)
        self._streams = rng.spawn(len(self._shares))

    def applied_to(self, rows: Columns) -> Columns:
        """Return the rows with some values removed; the class and the weights stay unchanged.

        Coded columns, groups and times are left out.
        """
        attributes = dict(rows.as_read)
        for (name, column), share, stream in zip(rows.as_read.items(), self._shares, self._streams, strict=True):
            if share <= 0:
                continue
            if isinstance(column, CategoricalColumn):
                codes = column.codes.copy()
                codes[stream.random(len(codes)) < share] = MISSING
                attributes[name] = CategoricalColumn(codes, column.levels)
            else:
                values = column.values.astype(np.float64)
                values[stream.random(len(values)) < share] = np.nan
                attributes[name] = replace(column, values=values)
        return Columns(rows.n_rows, attributes, rows.class_name, rows.label, rows.weights)


def missing_shares(schema: Schema) -> tuple[float, ...]:
    """Return, for each attribute, the weighted fraction of training rows with a missing value.

    It is 0 if missing values are a level.
    """
    return tuple(
        a.missing_weight / (a.missing_weight + sum(a.frequencies)) if a.missing_weight else 0.0
        for a in schema.attributes
    )


def count_missing(column: Column) -> int:
    """Return the number of missing values of a column."""
    if isinstance(column, CategoricalColumn):
        return int(np.count_nonzero(column.codes == MISSING))
    return int(np.count_nonzero(np.isnan(column.values))) if column.values.dtype.kind == "f" else 0
