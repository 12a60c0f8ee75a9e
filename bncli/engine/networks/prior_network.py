"""A network written by an expert as a prior of the parameters: `--prior-network FILE --prior-rows N`.

The network Q counts as much as N rows:

    closed forms    N Q(x_S, y) is added to the count of every cell of every family S
    optimizers      each row x with each label y is added to the training rows, with the weight N Q(x, y)

The families need not be families of the network: Q(x_S, y) is computed by variable elimination. Optimizers get every
combination of attribute values if there are at most MOST_ROWS of them. Otherwise MOST_ROWS values of x are drawn from
the network, and x with label y has the weight N Q(y | x) / MOST_ROWS. As N goes to infinity, the fitted P(y | x)
approaches Q(y | x) if the structure can represent it; as N goes to 0, it approaches the fit to the data alone.

Conventions: the states of the network are the cuts and levels of the model. The network must have every attribute of
the table; its other attributes are summed out. The prior affects only the parameters, not the structure.

Cost: one table of at most MOST_ENTRIES entries per elimination.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from bncli.engine.data.columns import CategoricalColumn, Columns, NumericColumn
from bncli.engine.data.dataset import Dataset
from bncli.engine.data.schema import Attribute, CategoricalAttribute, Cuts, NumericAttribute, Schema
from bncli.engine.kernels.arrays import Array, Index
from bncli.engine.networks.network import Network
from bncli.engine.networks.simulation import Sampler
from bncli.errors import BncliError

MOST_ROWS = 10_000
MOST_ENTRIES = 1 << 24
_CLASS = -1
"""The number of the class as a variable; attributes are numbered from 0."""


@dataclass(frozen=True)
class PriorNetwork:
    """A network Q that counts as much as `n_rows` > 0 rows; messages refer to it by `name`."""

    network: Network
    n_rows: float
    name: str
    _known: dict[tuple[int, ...], Array] = field(default_factory=dict, compare=False, repr=False)

    def cuts_of(self, columns: Columns) -> Cuts:
        """Return the network's cuts and levels for the columns; raise BncliError if the table does not fit."""
        schema = self.network.schema
        known = {attribute.name: attribute for attribute in schema.attributes}
        if columns.class_name != schema.class_name:
            what = f"the class is {columns.class_name!r} in the table and {schema.class_name!r} in the network"
            raise self._error(
                what,
                "give the class of the table with --class, or choose that of the network with bncli import --class",
            )
        assert columns.label is not None
        self._check_labels(columns.label.levels)
        for name, column in columns.attributes.items():
            if name not in known:
                raise self._error(f"the network has no attribute {name!r}", f"add --ignore {name!r}")
            attribute = known[name]
            if isinstance(attribute, CategoricalAttribute) and isinstance(column, NumericColumn):
                what = f"column {name!r} was read as numbers, but the network has the states {_listed(attribute)}"
                raise self._error(what, f"add --categorical {name!r}")
            if isinstance(attribute, NumericAttribute) and isinstance(column, CategoricalColumn):
                what = f"column {name!r} contains text, but the states of the network are intervals"
                raise self._error(what, "use intervals or text in both")
            if isinstance(attribute, CategoricalAttribute) and isinstance(column, CategoricalColumn):
                occurring = [column.levels[code] for code in np.unique(column.codes[column.codes >= 0])]
                unknown = [level for level in occurring if level not in attribute.code_of]
                if unknown:
                    what = f"column {name!r} has the value {unknown[0]!r}, but the states of the network are"
                    raise self._error(f"{what} {_listed(attribute)}", "use the same values in both")
        bare = tuple(replace(known[name], frequencies=(), missing_weight=0.0) for name in columns.attributes)
        return Cuts(columns.class_name, bare)

    def aligned(self, schema: Schema, seed: int = 0) -> AlignedPrior:
        """Return the prior in the codes of a schema; raise BncliError if attributes, labels, cuts or levels differ."""
        own = self.network.schema
        positions, orders = [], []
        for attribute in schema.attributes:
            if attribute.name not in {other.name for other in own.attributes}:
                raise self._error(
                    f"the network has no attribute {attribute.name!r}",
                    f"leave out the column with --ignore {attribute.name}",
                )
            positions.append(own.index(attribute.name))
            orders.append(
                self._codes_in_network(attribute, own.attributes[positions[-1]], marginalizes=schema.marginalizes)
            )
        self._check_labels(schema.labels)
        labels = np.array([own.labels.index(label) for label in schema.labels])
        return AlignedPrior(self, tuple(positions), tuple(orders), labels, seed)

    def probabilities(self, members: Sequence[int]) -> Array:
        """Return Q(x_S, y) for attributes S of the network, one axis per attribute, with the class on the last axis.

        Raises BncliError if the result, or a table of the variable elimination, would have more than MOST_ENTRIES
        entries.
        """
        key = tuple(sorted(members))
        if key not in self._known:
            # variable elimination, each time of the variable with the smallest joint table
            network, structure = self.network, self.network.structure
            children = set(structure.class_children)
            scopes: dict[int, tuple[int, ...]] = {
                i: (i, *parents, *((_CLASS,) if i in children else ())) for i, parents in enumerate(structure.parents)
            }
            scopes[_CLASS] = (*structure.class_parents, _CLASS)
            # Variables that are not ancestors of the members or the class sum to 1.
            needed, waiting = set[int](), [*key, _CLASS]
            while waiting:
                node = waiting.pop()
                if node not in needed:
                    needed.add(node)
                    waiting += scopes[node]
            tables = [
                (scopes[node], network.theta_class if node == _CLASS else network.theta[node])
                for node in sorted(needed)
            ]
            sizes = dict(enumerate(network.schema.cardinalities)) | {_CLASS: len(network.schema.labels)}
            hidden = needed.difference(key, (_CLASS,))
            while hidden:
                joined = {v: sorted({u for scope, _ in tables if v in scope for u in scope}) for v in hidden}
                variable = min(sorted(hidden), key=lambda v: float(np.prod([float(sizes[u]) for u in joined[v]])))
                self._check_size(joined[variable], sizes)
                touched = [one for one in tables if variable in one[0]]
                product = _multiply_tables(touched, joined[variable]).sum(axis=joined[variable].index(variable))
                other_variables = tuple(u for u in joined[variable] if u != variable)
                tables = [*(one for one in tables if variable not in one[0]), (other_variables, product)]
                hidden.remove(variable)
            target = (*key, _CLASS)
            self._check_size(target, sizes)
            table = _multiply_tables(tables, target)
            self._known[key] = table / table.sum()
        return self._known[key].transpose(*(key.index(i) for i in members), len(key))

    def draw_rows(self, n: int, seed: int) -> tuple[list[Index], Array]:
        """Draw n rows from the network; return their codes, one array (n,) per attribute, and Q(y | x), (n, K)."""
        network, structure = self.network, self.network.structure
        sampled = Sampler(network, np.random.Generator(np.random.PCG64(seed))).draw_codes(n)
        codes = [sampled[i] for i in range(len(network.theta))]
        with np.errstate(divide="ignore"):
            scores = np.log(network.theta_class[tuple(codes[j] for j in structure.class_parents)])
            scores = np.broadcast_to(scores, (n, len(network.schema.labels))).copy()
            for i in structure.class_children:
                scores += np.log(network.theta[i][tuple(codes[j] for j in (i, *structure.parents[i]))])
        p = np.exp(scores - scores.max(axis=1, keepdims=True))
        return codes, np.asarray(p / p.sum(axis=1, keepdims=True))

    def _check_size(self, scope: Collection[int], sizes: dict[int, int]) -> None:
        if np.prod([float(sizes[variable]) for variable in scope]) > MOST_ENTRIES:
            raise self._error("the network is too dense for exact inference", "use a network with fewer parents")

    def _check_labels(self, labels: Sequence[str]) -> None:
        own = self.network.schema.labels
        if set(labels) != set(own):
            what = f"the class has the labels {', '.join(labels[:10])} in the table"
            raise self._error(f"{what} but {', '.join(own[:10])} in the network", "use the same labels in both")

    def _codes_in_network(self, attribute: Attribute, own: Attribute, *, marginalizes: bool) -> Index:
        """Return the network's code for each code of an attribute; raise BncliError if they do not correspond."""
        name = attribute.name
        if attribute.missing and not own.missing:
            what = f"column {name!r} has missing values, but the network has no state for them"
            raise self._error(what, "use --missing-policy marginalize with --param map, or --drop-incomplete")
        if own.missing and not attribute.missing:
            how = "use --missing-policy level" if marginalizes else "leave --cuts out to use the cuts of the network"
            raise self._error(f"the network has a state for missing values of {name!r}", how)
        if isinstance(own, NumericAttribute) and isinstance(attribute, NumericAttribute) and own.cuts == attribute.cuts:
            return np.arange(own.cardinality)
        if isinstance(own, CategoricalAttribute) and isinstance(attribute, CategoricalAttribute):
            groups, own_groups = dict(_groups(attribute)), dict(_groups(own))
            if groups == own_groups:
                order = [own.levels.index(level) for level in attribute.levels]
                return np.array([*order, *([own.n_values] if own.missing else [])])
        raise self._error(
            f"the cuts or levels of {name!r} do not match the states of the network", "use the same ones in both"
        )

    def _error(self, what: str, hint: str) -> BncliError:
        return BncliError(what, where=self.name, hint=hint)


@dataclass(frozen=True)
class AlignedPrior:
    """A prior in the codes of a schema.

    - positions[i]: the index of attribute i in the network
    - orders[i]: the network's code for each code of attribute i
    - labels: the index of each label in the network
    - seed: the seed of drawn rows
    """

    prior: PriorNetwork
    positions: tuple[int, ...]
    orders: tuple[Index, ...]
    labels: Index
    seed: int

    def expected(self, members: Sequence[int]) -> Array:
        """Return the expected counts N Q(x_S, y) of a set of attributes, shape (cardinalities..., K).

        Raises BncliError if the network is too dense for exact inference, as `PriorNetwork.probabilities` does.
        """
        table = self.prior.probabilities([self.positions[i] for i in members])
        for axis, order in enumerate([*(self.orders[i] for i in members), self.labels]):
            table = np.take(table, order, axis)
        return self.prior.n_rows * table

    def added_to(self, data: Dataset) -> Dataset:
        """Return the rows of the data, without their units and times, and weighted rows that represent the network.

        Raises BncliError if exact probabilities are needed and the network is too dense for them.
        """
        shape, n_labels = data.schema.cardinalities, data.n_labels
        if np.prod([float(n) for n in shape]) <= MOST_ROWS:
            joint = self.expected(range(len(shape))).reshape(-1, n_labels).T
            codes = list(np.indices(shape).reshape(len(shape), -1))
        else:
            drawn, probabilities = self.prior.draw_rows(MOST_ROWS, self.seed)
            codes = [np.argsort(o)[drawn[i]] for i, o in zip(self.positions, self.orders, strict=True)]
            joint = probabilities[:, self.labels].T * (self.prior.n_rows / MOST_ROWS)
        labels, rows = np.nonzero(joint)
        weights = np.ones(data.n_rows) if data.weights is None else data.weights
        joined = [
            np.concatenate([np.asarray(c), own[rows].astype(c.dtype)]) for c, own in zip(data.codes, codes, strict=True)
        ]
        return Dataset(
            data.schema,
            tuple(joined),
            np.concatenate([data.labels, labels.astype(data.labels.dtype)]),
            np.concatenate([weights, joint[labels, rows]]),
            data.threads,
        )


def _multiply_tables(tables: Sequence[tuple[tuple[int, ...], Array]], scope: Sequence[int]) -> Array:
    """Return the product of tables, with one axis per variable of `scope`, which includes all their variables."""
    result: Array = np.ones((1,) * len(scope))
    for own, table in tables:
        order = sorted(range(len(own)), key=lambda axis: scope.index(own[axis]))
        sizes = dict(zip(own, table.shape, strict=True))
        result = result * table.transpose(order).reshape([sizes.get(variable, 1) for variable in scope])
    return result


def _groups(attribute: CategoricalAttribute) -> list[tuple[str, frozenset[str]]]:
    groups = attribute.groups or tuple((level,) for level in attribute.levels)
    return [(level, frozenset(group)) for level, group in zip(attribute.levels, groups, strict=True)]


def _listed(attribute: CategoricalAttribute) -> str:
    return ", ".join(attribute.levels[:10]) + (", ..." if len(attribute.levels) > 10 else "")
