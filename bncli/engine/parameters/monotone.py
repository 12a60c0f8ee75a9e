"""Monotone parameters: the penalised conditional likelihood maximised under the directions of attributes.

What directions ask of tables (`bncli.engine.parameters.monotone`) is linear in them, and tables are linear in
the parameters p of every space that takes directions. So with the free slopes t beside p,

    C x = G (W(p)[k] - W(p)[j]) + S t_j >= 0 for every class j but k,    x = (p, t),

k being the class that the directions are about, and the problem is concave: what is found
(`bncli.engine.optimizers.augmented_lagrangian`) is the optimum. The preconditioner is that of the free problem, and a
diagonal for the slopes. Where the optimum without directions keeps them already, it is the answer.

Conventions: the stiffness of a row is about the curvature of the likelihood along it, 1 / (1 / h_c + 1 / h_c') with
h_c = n_c P(k) P(j) / (P(k) + P(j)) + 1, n_c the weight of the rows in cell c, and of the penalty, lambda / |C_r|^2, as
far as that is no more than the largest of the likelihood. What rounding leaves of a fall is taken off the tables in the
end (`Directions.repaired`).

Monotone effects: the log-odds of one label against each other never fall, or never rise, along an attribute.

With d_f[c] = W_f[c, k] - W_f[c, j], the *contrast* of the label k with another j, and +1 or -1 as s_i, the direction of
attribute i, the log-odds of k against j may not fall where the interval of i goes up by one, from u to u + 1, whatever
the other attributes o_f of each table are:

    sum over families f with i of s_i ( d_f[u + 1, o_f] - d_f[u, o_f] ) >= 0    for every o

Where tables share only the attribute i, the lowest differences of all of them meet in some row, so that this is

    s_i ( d_f[u + 1, o_f] - d_f[u, o_f] ) >= t_f[u] for all o_f,    sum over f of t_f[u] = 0

with *slopes* t, one a table and step: what one table takes away another must give. There it is exact; where tables
share further attributes with each other it is sufficient. One table with i, the *carrier* (its own where i has one),
has for its slope what the others leave, so theirs alone are free.

Each label j has a contrast, and slopes, of its own. Of two labels there is one: the log-odds of k. Of more the log-odds
of k against all others follow,

    ln P(k | x) - ln (1 - P(k | x)) = -ln sum over j of exp -(S_k - S_j),

which rises with every S_k - S_j. The contrary does not hold: they may rise while k loses to a label that is next to
impossible. So with three labels or more what is asked is sufficient and more than is needed; in return it is linear.

A row that lacks something keeps the order. The missing level of another attribute is one more of its values. The level
of i itself lies outside of the order. An attribute that is unknown is averaged over, and a mean of rising tables rises;
but the table of an attribute whose own value is unknown is left out of a network, and so a slope t_f of a table with
another child than i is at most 0.

Whether a model keeps the directions of its attributes: every cell of its tables is looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from bncli.engine.data.schema import Schema, direction_of
from bncli.engine.kernels.arrays import Array, Index, Mask
from bncli.engine.model import Ensemble, Model, Optimum, Tables
from bncli.engine.optimizers import augmented_lagrangian
from bncli.engine.optimizers.augmented_lagrangian import Inequalities
from bncli.engine.optimizers.objective import Objective, Precondition, Report
from bncli.engine.parameters.coordinates import Linear
from bncli.engine.parameters.likelihood import ConditionalLikelihood
from bncli.engine.structures.structure import Family
from bncli.errors import BncliError

TOLERANCE = 1e-9
"""Of a fall that is rounding, in log-odds."""


class _Member(NamedTuple):
    """A family that has the attribute: its index, the axis, which steps of the codes it sees, whose child it is.

    steps: the steps u of the attribute's own codes (from u to u + 1) at which the family goes to its next code.
    """

    family: int
    axis: int
    steps: Index
    foreign: bool


@dataclass(frozen=True)
class _Directed:
    """An attribute with a direction and the families that have it, the carrier first."""

    sign: int
    members: tuple[_Member, ...]

    @property
    def n_steps(self) -> int:
        return 1 + max((int(member.steps[-1]) for member in self.members if len(member.steps)), default=-1)

    def shared(self, member: _Member) -> Mask:
        """At which of its steps a table may take what the carrier gives."""
        carrier = self.members[0]
        return np.isin(member.steps, carrier.steps) & (not carrier.foreign)


@dataclass(frozen=True)
class Directions:
    """What the directions of attributes ask of tables (K, n_cells), the bias first, whose class k is `raised`.

    G d + S t >= 0 for every other class, d (n_cells,) its contrast, t (n_slopes,) its free slopes.
    """

    families: tuple[Family, ...]
    directed: tuple[_Directed, ...]
    raised: int = 1

    @cached_property
    def offsets(self) -> Index:
        """The first cell of every family, and the number of all."""
        return np.cumsum([1, *(family.n_cells for family in self.families)])

    @cached_property
    def rows(self) -> _Rows:
        """G and S."""
        built = _Builder(self)
        for one in self.directed:
            built.add(one)
        return built.rows()

    @property
    def n_slopes(self) -> int:
        return int(self.rows.slopes.shape[1])

    def contrasts(self, cells: Array) -> Array:
        """Return d of every other class (K - 1, n_cells) in tables (K, n_cells)."""
        return np.asarray(cells[self.raised] - np.delete(cells, self.raised, axis=0))

    def table(self, d: Array, member: _Member) -> Array:
        """Return the family's part of d (n_cells,) with the axis of the attribute first; a view."""
        begin = self.offsets[member.family]
        family = self.families[member.family]
        return np.moveaxis(d[begin : begin + family.n_cells].reshape(family.shape), member.axis, 0)

    def lowest(self, cells: Array) -> float:
        """Return the smallest sum of the lowest differences over all tables of an attribute, steps and contrasts.

        Above or next to 0 no row's log-odds fall (or rise, along a decreasing one).
        """
        sums = [self._sums(d, one) for d in self.contrasts(cells) for one in self.directed]
        return min((float(one.min()) for one in sums if len(one)), default=0.0)

    def _sums(self, d: Array, one: _Directed) -> Array:
        lowest = np.zeros(one.n_steps)
        for member in one.members:
            lowest[member.steps] += self._lowest(d, one, member)
        return lowest

    def _lowest(self, d: Array, one: _Directed, member: _Member) -> Array:
        """Return the lowest difference at each of a table's steps, at most 0 where a sum may omit the table."""
        table = self.table(d, member)[: len(member.steps) + 1]
        low = (
            one.sign * np.diff(table, axis=0).reshape(len(member.steps), -1) if len(member.steps) else np.zeros((0, 1))
        )
        least: Array = low.min(axis=1)
        return np.minimum(least, 0.0) if member.foreign else least

    def repaired(self, cells: Array) -> Array:
        """Tables (K, n_cells) whose contrasts are raised no more than it takes that nothing falls, by the others."""
        contrasts = self.contrasts(cells)
        kept = contrasts.copy()
        for d in contrasts:
            for one in self.directed:
                self._repair(d, one)
        change = contrasts - kept
        return cells - np.insert(change, self.raised, 0.0, axis=0) if change.any() else cells

    def _repair(self, d: Array, one: _Directed) -> None:
        """Raise the carrier by what the others need, then each table to the highest value below, slope by slope."""
        slopes = self.slopes(d, one)
        for member, slope in zip(one.members, slopes, strict=True):
            line = np.concatenate([[0.0], np.cumsum(slope)])
            table = self.table(d, member)[: len(line)]
            level = one.sign * table - line.reshape(-1, *(1,) * (table.ndim - 1))
            table += one.sign * (np.maximum.accumulate(level, axis=0) - level)

    def slopes(self, d: Array, one: _Directed) -> list[Array]:
        """Return t of every table of an attribute, at its steps, for the differences d: the lowest.

        What the carrier gives.

        They are 0 where the carrier has no step, or may itself be left out of a sum.
        """
        carrier, *others = one.members
        free = np.zeros(one.n_steps)
        given = []
        for member in others:
            given.append(np.where(one.shared(member), self._lowest(d, one, member), 0.0))
            free[member.steps] -= given[-1]
        return [free[carrier.steps], *given]

    def start(self, cells: Array) -> Array:
        """Return the free slopes of tables (K, n_cells), those of each contrast after the other."""
        found = [self.slopes(d, one)[1:] for d in self.contrasts(cells) for one in self.directed]
        flat = [slope for of_one in found for slope in of_one]
        return np.concatenate(flat) if flat else np.zeros(0)


class _Rows(NamedTuple):
    """Sparse matrices: differences (R, n_cells), slopes (R, n_slopes)."""

    differences: Any
    slopes: Any


class _Builder:
    """The entries of G and S, attribute by attribute."""

    def __init__(self, directions: Directions) -> None:
        self._of = directions
        self._n_rows = self._n_slopes = 0
        self._differences: list[_Entries] = []
        self._slopes: list[_Entries] = []

    def rows(self) -> _Rows:
        """Return the matrices."""
        n_cells = int(self._of.offsets[-1])
        return _Rows(
            _matrix(self._differences, (self._n_rows, n_cells)), _matrix(self._slopes, (self._n_rows, self._n_slopes))
        )

    def add(self, one: _Directed) -> None:
        """Add the rows of an attribute's tables: a cell above minus the one below, minus the slope there."""
        carrier, *others = one.members
        carried = self._differ(one, carrier)
        for member in others:
            slopes = self._n_slopes + np.arange(len(member.steps))
            self._n_slopes += len(slopes)
            rows = self._differ(one, member)
            shared = one.shared(member)
            self._slope(rows[shared], slopes[shared], -1.0)
            self._slope(carried[np.searchsorted(carrier.steps, member.steps[shared])], slopes[shared], 1.0)
            if member.foreign:
                self._slope(self._numbered(int(shared.sum()), 1), slopes[shared], -1.0)

    def _numbered(self, n_steps: int, n_others: int) -> Index:
        """Return new row numbers (steps, others)."""
        numbers = self._n_rows + np.arange(n_steps * n_others).reshape(n_steps, n_others)
        self._n_rows += numbers.size
        return numbers

    def _differ(self, one: _Directed, member: _Member) -> Index:
        """Return rows (steps, others), one for each two cells that lie beside each other along the attribute."""
        n_steps = len(member.steps)
        cells = np.arange(self._of.offsets[-1], dtype=np.float64)
        numbers = self._of.table(cells, member)[: n_steps + 1].astype(np.intp).reshape(n_steps + 1, -1)
        rows = self._numbered(n_steps, numbers.shape[1])
        for part, value in ((numbers[1:], one.sign), (numbers[:-1], -one.sign)):
            self._differences.append(_Entries(rows.ravel(), part.ravel(), np.full(rows.size, float(value))))
        return rows

    def _slope(self, rows: Index, slopes: Index, value: float) -> None:
        columns = np.broadcast_to(slopes[:, np.newaxis], rows.shape).ravel()
        self._slopes.append(_Entries(rows.ravel(), columns, np.full(rows.size, value)))


class _Entries(NamedTuple):
    rows: Index
    columns: Index
    values: Array


_NOTHING = _Entries(np.zeros(0, np.intp), np.zeros(0, np.intp), np.zeros(0))
ENTRIES = 1 << 23
"""Of a sparse matrix that is multiplied out: differences have far fewer effects than tables have."""


@dataclass(frozen=True)
class Monotone:
    """The directions in the coordinates x = (p, t) of a parameter space whose tables are linear in p."""

    directions: Directions
    likelihood: ConditionalLikelihood
    coordinates: Linear

    def optimum(
        self,
        objective: Objective,
        point: Array,
        penalty: float,
        *,
        method: Callable[..., Optimum],
        report: Report,
        **stop: Any,
    ) -> Optimum:
        """Return the optimum of an objective of p under the directions, from `point`; `method` takes the rounds.

        `penalty` is the lambda in the objective; `stop` are the tolerance and the most iterations of all rounds.
        """
        n = len(point)
        found = augmented_lagrangian.descend(
            self.widened(objective),
            self.inequalities(penalty),
            self.start(point),
            method=method,
            report=lambda step, x: report(step, x[:n]),
            **stop,
        )
        return replace(found, point=found.point[:n])

    def keeps(self, p: Array) -> bool:
        """Return whether tables of these parameters keep all directions."""
        return self.directions.lowest(self.coordinates.tables(p)) >= 0.0

    def start(self, p: Array) -> Array:
        """Return (p, t) with the slopes that tables of p have."""
        return np.concatenate([p, self.directions.start(self.coordinates.tables(p))])

    def inequalities(self, penalty: float) -> Inequalities:
        """Return C x >= 0, stiff by the likelihood and by the penalty lambda."""
        of_rows = self._stiffness.ravel()
        of_penalty = np.minimum(penalty / self._squares, of_rows.max(initial=0.0))
        return Inequalities(self._factors, of_rows + of_penalty)

    @cached_property
    def _factors(self) -> tuple[Any, ...]:
        """C as a product of sparse matrices: of differences of contrasts of tables, and of what makes tables."""
        from scipy.sparse import block_diag, csr_array, eye_array, hstack, kron

        n_others, n_labels, of = len(self._stiffness), self.likelihood.data.n_labels, self.directions
        against = np.delete(-np.eye(n_labels), of.raised, axis=0)
        against[:, of.raised] = 1.0
        slopes = kron(eye_array(n_others), of.rows.slopes)
        beside = eye_array(slopes.shape[1])
        first = csr_array(hstack([kron(against, of.rows.differences), slopes]))
        return _multiplied([first, *(csr_array(block_diag([factor, beside])) for factor in self.coordinates.factors)])

    @cached_property
    def _squares(self) -> Array:
        """|C_r|^2 without the slopes, (R,); infinite for rows of slopes alone, or where C is not multiplied out."""
        if len(self._factors) > 1:
            return np.full(self._factors[0].shape[0], np.inf)
        n_slopes = len(self._stiffness) * self.directions.n_slopes
        found = self._factors[0].power(2) @ np.repeat([1.0, 0.0], [self.coordinates.n_parameters, n_slopes])
        return np.where(found > 0, found, np.inf)

    @cached_property
    def _stiffness(self) -> Array:
        """Of the rows of every contrast (K - 1, R)."""
        counts = self.likelihood.data.class_counts
        shares = counts / max(float(counts.sum()), 1.0)
        own, others = shares[self.directions.raised], np.delete(shares, self.directions.raised)
        both = own * others / np.maximum(own + others, 1e-300)
        return np.stack([self._stiffness_of(self.likelihood.cell_weights() * float(share) + 1.0) for share in both])

    def _stiffness_of(self, h: Array) -> Array:
        along = abs(self.directions.rows.differences) @ (1.0 / h)
        found = 1.0 / np.maximum(along, 1e-300)
        # rows of slopes alone
        return np.where(along > 0, found, float(np.median(found[along > 0])) if (along > 0).any() else 1.0)

    def widened(self, objective: Objective) -> Objective:
        """Return an objective of p as one of x: the slopes are free of cost."""
        n, of_slopes = self.coordinates.n_parameters, abs(self.directions.rows.slopes).T.tocsr()
        stiff = np.concatenate([of_slopes @ one for one in self._stiffness])
        n_slopes = len(stiff)
        softness = 1.0 / np.where(stiff > 0, stiff, 1.0)

        def value_and_gradient(x: Array) -> tuple[float, Array]:
            value, gradient = objective.value_and_gradient(x[:n])
            return value, np.concatenate([gradient, np.zeros(n_slopes)])

        def hessian(x: Array) -> Callable[[Array], Array]:
            product = objective.hessian(x[:n])
            return lambda v: np.concatenate([product(v[:n]), np.zeros(n_slopes)])

        def beside(precondition: Precondition) -> Precondition:
            return lambda g: np.concatenate([precondition(g[:n]), softness * g[n:]])

        return replace(
            objective,
            value_and_gradient=value_and_gradient,
            hessian=hessian,
            precondition=beside(objective.precondition),
            refreshed=lambda x, cost: beside(objective.refreshed(x[:n], cost)),
        )


def directions_of(schema: Schema, families: Sequence[Family]) -> Directions | None:
    """Return what the schema asks of tables over these families; None where no attribute in them has a direction."""
    directed = []
    for i in schema.informative:
        sign = direction_of(schema, i)
        members = list(_members(schema, families, i)) if sign else []
        if members:
            # the carrier is in no sum without its table: it has the attribute as its child, or none; the smallest
            members.sort(key=lambda member: (member.foreign, families[member.family].n_cells))
            directed.append(_Directed(sign, tuple(members)))
    return Directions(tuple(families), tuple(directed), schema.direction_label) if directed else None


def _members(schema: Schema, families: Sequence[Family], i: int) -> Iterator[_Member]:
    n_values = schema.attributes[i].n_values
    for f, family in enumerate(families):
        if i in family.attributes and family.by_class:
            axis = family.attributes.index(i)
            grouping = family.binned_attributes[axis][1]
            codes = np.arange(n_values) if grouping is None else np.array(grouping[:n_values])
            yield _Member(f, axis, np.flatnonzero(np.diff(codes)), family.child not in (None, i))


def monotone_of(likelihood: ConditionalLikelihood, coordinates: Linear) -> Monotone | None:
    """Return what the directions of the rows' schema ask of parameters; None where they ask for nothing."""
    directions = directions_of(likelihood.data.schema, likelihood.families)
    return None if directions is None else Monotone(directions, likelihood, coordinates)


def check_directions(model: Model) -> None:
    """Raise BncliError where the log-odds of any row would fall along an increasing attribute, or rise along another.

    That would be a defect of learning: nothing a user says makes it.
    """
    if not model.schema.directed:
        return
    predictor = model.predictor
    tables = predictor.combined if isinstance(predictor, Ensemble) else predictor.leading
    if lowest_difference(model, tables) < -TOLERANCE:
        hint = "this is a defect of bncli; learn without --increasing and --decreasing"
        raise BncliError("the model does not keep the directions that were asked for", hint=hint)


def lowest_difference(model: Model, tables: Tables) -> float:
    """Return how much log-odds change, at the least, from one interval of an attribute with a direction to the next.

    In the attribute's direction, over all its intervals and all values of the other attributes, unknown ones included:
    the log-odds of the label that directions are about, against each other label.
    """
    directions = directions_of(model.schema, tables.families)
    if directions is None:
        return 0.0
    return directions.lowest(np.concatenate([tables.bias[np.newaxis], *tables.weights]).T)


def _matrix(parts: Sequence[_Entries], shape: tuple[int, int]) -> Any:
    from scipy.sparse import csr_array  # costs more to import than a small fit: only where it is used

    rows, columns, values = (np.concatenate(each) for each in zip(*parts, strict=True)) if parts else _NOTHING
    return csr_array((values, (rows, columns)), shape=shape)


def _multiplied(factors: list[Any]) -> tuple[Any, ...]:
    """Sparse matrices of the same product, the first ones multiplied out as far as that has at most ENTRIES numbers."""
    from scipy.sparse import csr_array

    product, *rest = factors
    while rest and int(np.diff(rest[0].indptr)[product.indices].sum()) <= ENTRIES:
        product = csr_array(product @ rest.pop(0))
        product.eliminate_zeros()
    return (product, *rest)
