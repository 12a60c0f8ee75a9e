"""Monotone effects: the log-odds of one label against each other never fall, or never rise, along an attribute.

Let d_f[c] = W_f[c, k] - W_f[c, j] be the *contrast* of the label k with another label j, and s_i = +1 or -1 the sign of
the monotonicity constraint on attribute i. From each interval u of i to the next, u + 1, the log-odds of k against j,
times s_i, must not fall, whatever the values o_f of the other attributes of each table are:

    sum over families f with i of s_i ( d_f[u + 1, o_f] - d_f[u, o_f] ) >= 0    for every o

If tables share only the attribute i, some row has the lowest difference in all of them, so that this is equivalent to

    s_i ( d_f[u + 1, o_f] - d_f[u, o_f] ) >= t_f[u] for all o_f,    sum over f of t_f[u] = 0

with *slopes* t, one per table and step: the slope of one table may be negative if another offsets it. If tables share
further attributes, these conditions are sufficient but not necessary. One table with i is the *carrier* (the table of i
alone, if there is one). Its slope is the one that makes the sum 0, so only the slopes of the other tables are free.

Each label j has its own contrast and slopes. For two labels there is one contrast, the log-odds of k. For more labels,
the log-odds of k against all others are

    ln P(k | x) - ln (1 - P(k | x)) = -ln sum over j of exp -(S_k - S_j),

which rise with every S_k - S_j. The converse does not hold: they may rise while k loses against a label that is almost
impossible. So with three labels or more the conditions are sufficient and stronger than needed; in return they are
linear.

The conditions also hold for rows with missing values. The missing level of another attribute is one of its values; the
missing level of i itself is not ordered. Tables are averaged over an unknown attribute, and a mean of rising tables
rises. But a network leaves out the table of an attribute whose own value is unknown. So the slope t_f of a table whose
child is not i must be at most 0: the other tables must satisfy the condition without it.

**Optimization.** The conditions are linear in the tables, and the tables are linear in the parameters p of every space
that accepts monotonicity constraints. So with the free slopes t in addition to p, the conditions are

    C x = G (W(p)[k] - W(p)[j]) + S t_j >= 0 for every class j but k,    x = (p, t)

Maximising the objective under them is a concave problem, whose optimum is found by
`bncli.engine.optimizers.augmented_lagrangian`. The preconditioner is the one of the unconstrained problem, with a
diagonal for the slopes. If the unconstrained optimum already satisfies the constraints, it is the result.

Conventions: the stiffness of a row of C approximates the curvature of the objective along it. The likelihood adds
1 / (1 / h_c + 1 / h_c') with h_c = n_c P(k) P(j) / (P(k) + P(j)) + 1, where n_c is the weight of the rows in cell c.
The penalty adds lambda / |C_r|^2, but at most the largest of these terms. Violations by rounding errors are removed
from the tables at the end (`Directions.repaired`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from bncli.engine.parameters.coordinates import LinearCoordinates
from bncli.engine.parameters.likelihood import ConditionalLikelihood
from bncli.engine.structures.structure import Family
from bncli.errors import BncliError

TOLERANCE = 1e-9
"""A fall in log-odds up to this size is a rounding error."""
ENTRIES = 1 << 23
"""Sparse matrices are multiplied out if their product has at most about this many entries."""


@dataclass(frozen=True)
class Monotone:
    """The monotonicity constraints on x = (p, t) in a parameter space whose tables are linear in p."""

    directions: Directions
    likelihood: ConditionalLikelihood
    coordinates: LinearCoordinates

    def keeps(self, p: Array) -> bool:
        """Return whether the tables at p satisfy all monotonicity constraints."""
        return self.directions.lowest(self.coordinates.tables(p)) >= 0.0

    def optimum(
        self,
        objective: Objective,
        point: Array,
        penalty: float,
        *,
        method: Callable[..., Optimum],
        report: Report,
        tolerance: float,
        max_iterations: int,
    ) -> Optimum:
        """Minimise an objective of p under the monotonicity constraints, from `point` (P,).

        `method` is the optimizer of the rounds, `penalty` the lambda in the objective; `max_iterations` is the limit
        for all rounds together. The point of the returned optimum is p, without the slopes.
        """
        n = len(point)
        optimum = augmented_lagrangian.descend(
            self._widened(objective),
            self.inequalities(penalty),
            np.concatenate([point, self.directions.slopes(self.coordinates.tables(point))]),
            method=method,
            report=lambda step, x: report(step, x[:n]),
            tolerance=tolerance,
            max_iterations=max_iterations,
        )
        return replace(optimum, point=optimum.point[:n])

    def inequalities(self, penalty: float) -> Inequalities:
        """Return C x >= 0, with the stiffness of its rows under the likelihood and the penalty lambda."""
        matrices = self._matrices
        # |C_r|^2 without the slopes; infinite for rows with only slopes, or if C is not multiplied out
        squares = np.full(matrices[0].shape[0], np.inf)
        if len(matrices) == 1:
            is_parameter = np.arange(matrices[0].shape[1]) < self.coordinates.n_parameters
            squares = matrices[0].power(2) @ is_parameter.astype(np.float64)
            squares = np.where(squares > 0, squares, np.inf)
        stiffness = self._stiffness.ravel()
        return Inequalities(matrices, stiffness + np.minimum(penalty / squares, stiffness.max(initial=0.0)))

    def _widened(self, objective: Objective) -> Objective:
        """Turn an objective of p into an objective of x whose value does not depend on the slopes."""
        # of_slopes (slopes, rows): the stiffness of a slope is the sum of that of its rows, for each contrast in turn
        n, of_slopes = self.coordinates.n_parameters, abs(self.directions.constraints[1]).T.tocsr()
        stiffness = np.concatenate([of_slopes @ row for row in self._stiffness])
        n_slopes = len(stiffness)
        softness = 1.0 / np.where(stiffness > 0, stiffness, 1.0)

        def value_and_gradient(x: Array) -> tuple[float, Array]:
            value, gradient = objective.value_and_gradient(x[:n])
            return value, np.concatenate([gradient, np.zeros(n_slopes)])

        def hessian(x: Array) -> Callable[[Array], Array]:
            product = objective.hessian(x[:n])
            return lambda v: np.concatenate([product(v[:n]), np.zeros(n_slopes)])

        def widened(precondition: Precondition) -> Precondition:
            return lambda g: np.concatenate([precondition(g[:n]), softness * g[n:]])

        return replace(
            objective,
            value_and_gradient=value_and_gradient,
            hessian=hessian,
            precondition=widened(objective.precondition),
            refreshed=lambda x, cost: widened(objective.refreshed(x[:n], cost)),
        )

    @cached_property
    def _matrices(self) -> tuple[Any, ...]:
        """Sparse matrices whose product is C; the last one is applied first.

        The factors are the constraints on tables and slopes, and the map from (p, t) to tables and slopes. They are
        multiplied out as far as the product has at most about ENTRIES entries; often only one matrix remains.
        """
        from scipy.sparse import block_diag, csr_array, eye_array, hstack, kron

        differences, slopes = self.directions.constraints
        n_labels, raised = self.likelihood.data.n_labels, self.directions.raised
        # (K - 1, K): row j takes the contrast W[k] - W[j] out of the tables
        against = np.delete(-np.eye(n_labels), raised, axis=0)
        against[:, raised] = 1.0
        slopes = kron(eye_array(n_labels - 1), slopes)
        unchanged = eye_array(slopes.shape[1])
        product = csr_array(hstack([kron(against, differences), slopes]))
        rest = [csr_array(block_diag([matrix, unchanged])) for matrix in self.coordinates.matrices]
        # the sum is the number of multiplications of the next product, and so the most entries that it can have
        while rest and int(np.diff(rest[0].indptr)[product.indices].sum()) <= ENTRIES:
            product = csr_array(product @ rest.pop(0))
            product.eliminate_zeros()
        return (product, *rest)

    @cached_property
    def _stiffness(self) -> Array:
        """The stiffness of the rows of each contrast under the likelihood, (K - 1, R)."""
        counts = self.likelihood.data.class_counts
        shares = counts / max(float(counts.sum()), 1.0)
        own, others = shares[self.directions.raised], np.delete(shares, self.directions.raised)
        differences, cell_weights = abs(self.directions.constraints[0]), self.likelihood.cell_weights()
        rows = []
        for share in own * others / np.maximum(own + others, 1e-300):
            # a row of `differences` compares two cells c and c': its product is 1 / h_c + 1 / h_c'
            softness = differences @ (1.0 / (cell_weights * float(share) + 1.0))
            stiffness = 1.0 / np.maximum(softness, 1e-300)
            # rows with only slopes get the median of the others
            typical = float(np.median(stiffness[softness > 0])) if (softness > 0).any() else 1.0
            rows.append(np.where(softness > 0, stiffness, typical))
        return np.stack(rows)


class _DirectedTable(NamedTuple):
    """A table that contains an attribute with a monotonicity constraint: its family, and the attribute's axis there.

    `steps` are the steps u of the attribute's codes (from u to u + 1) at which the family's coarse code changes.
    `is_foreign`: whether the family's child is another attribute. `is_shared`: whether, at each step, the slope of the
    carrier can offset the slope of this table.
    """

    family: int
    axis: int
    steps: Index
    is_foreign: bool
    is_shared: Mask


class _DirectedAttribute(NamedTuple):
    """A monotonicity constraint: its sign, the number of the attribute's steps, and its tables, the carrier first."""

    sign: int
    n_steps: int
    tables: tuple[_DirectedTable, ...]


@dataclass(frozen=True)
class Directions:
    """The monotonicity constraints on tables (K, n_cells); `raised` is the class k.

    They are G d + S t >= 0 for every other class, with its contrast d (n_cells,) and its free slopes t (n_slopes,).
    """

    families: tuple[Family, ...]
    directed: tuple[_DirectedAttribute, ...]
    raised: int = 1

    def lowest(self, cells: Array) -> float:
        """Return the minimum, over attributes, steps and contrasts, of the sum of the tables' lowest differences.

        If it is not negative, the log-odds of no row violate a constraint. Without any steps it is 0.
        """
        sums = []
        for d in self._contrasts(cells):
            for attribute in self.directed:
                lowest = np.zeros(attribute.n_steps)
                for table in attribute.tables:
                    lowest[table.steps] += self._lowest(d, attribute, table)
                sums.append(lowest)
        return min((float(lowest.min()) for lowest in sums if len(lowest)), default=0.0)

    def repaired(self, cells: Array) -> Array:
        """Return tables (K, n_cells) with contrasts changed just enough that no constraint is violated."""
        contrasts = self._contrasts(cells)
        before = contrasts.copy()
        for d in contrasts:
            for attribute in self.directed:
                # the carrier is raised by what the others need, then each table to the highest value below it
                for table, slopes in zip(attribute.tables, self._slopes(d, attribute), strict=True):
                    line = np.concatenate([[0.0], np.cumsum(slopes)])
                    entries = self._entries(d, table)[: len(line)]
                    # less the line of slopes, no entry may fall below an earlier one: raised to the highest so far
                    level = attribute.sign * entries - line.reshape(-1, *(1,) * (entries.ndim - 1))
                    entries += attribute.sign * (np.maximum.accumulate(level, axis=0) - level)
        change = contrasts - before
        # d = W[k] - W[j]: a higher contrast is a lower W[j]; the raised class itself stays
        return cells - np.insert(change, self.raised, 0.0, axis=0) if change.any() else cells

    def slopes(self, cells: Array) -> Array:
        """Return the free slopes of tables (K, n_cells), one contrast after the other."""
        free = []
        for d in self._contrasts(cells):
            for attribute in self.directed:
                free += self._slopes(d, attribute)[1:]
        return np.concatenate(free) if free else np.zeros(0)

    @cached_property
    def constraints(self) -> tuple[Any, Any]:
        """The sparse matrices G (R, n_cells) and S (R, n_slopes)."""
        from scipy.sparse import csr_array  # costs more to import than a small fit: only where it is used

        n_cells = int(self._offsets[-1])
        n_rows = n_slopes = 0
        empty = _entries_of(np.zeros(0, np.intp), np.zeros(0, np.intp), 0.0)
        differences, slopes = [empty], [empty]
        for attribute in self.directed:
            for table in attribute.tables:
                # the numbers of the cells, (values of the attribute, other cells); then one row of the matrix for each
                # pair of neighbours along the attribute: the cell above minus the cell below
                cells = self._entries(np.arange(n_cells, dtype=np.float64), table)[: len(table.steps) + 1]
                numbers = cells.astype(np.intp).reshape(len(table.steps) + 1, -1)
                rows = n_rows + np.arange(numbers[1:].size).reshape(numbers[1:].shape)
                n_rows += rows.size
                differences.append(_entries_of(rows, numbers[1:], float(attribute.sign)))
                differences.append(_entries_of(rows, numbers[:-1], float(-attribute.sign)))
                if table is attribute.tables[0]:
                    carrier, carrier_rows = table, rows
                    continue
                # minus the slope of the table in its own rows, plus the slope in those of the carrier
                columns = n_slopes + np.flatnonzero(table.is_shared)[:, np.newaxis]
                n_slopes += len(table.steps)
                slopes.append(_entries_of(rows[table.is_shared], columns, -1.0))
                places = np.searchsorted(carrier.steps, table.steps[table.is_shared])
                slopes.append(_entries_of(carrier_rows[places], columns, 1.0))
                # the slope is at most 0, since rows without the child's value leave the table out: -t >= 0
                if table.is_foreign:
                    slopes.append(_entries_of(n_rows + np.arange(len(columns))[:, np.newaxis], columns, -1.0))
                    n_rows += len(columns)
        matrices = []
        for parts, n_columns in ((differences, n_cells), (slopes, n_slopes)):
            positions = tuple(np.concatenate([part[i] for part in parts]) for i in (0, 1))
            values = np.concatenate([part[2] for part in parts])
            matrices.append(csr_array((values, positions), shape=(n_rows, n_columns)))
        return matrices[0], matrices[1]

    @cached_property
    def _offsets(self) -> Index:
        """The first cell of every family, then the number of cells."""
        return np.cumsum([1, *(family.n_cells for family in self.families)])

    def _contrasts(self, cells: Array) -> Array:
        """Return the contrast d of every other class, (K - 1, n_cells), for tables (K, n_cells)."""
        return np.asarray(cells[self.raised] - np.delete(cells, self.raised, axis=0))

    def _entries(self, d: Array, table: _DirectedTable) -> Array:
        """Return the table's part of d (n_cells,) as a view whose first axis is the attribute's."""
        first, family = self._offsets[table.family], self.families[table.family]
        return np.moveaxis(d[first : first + family.n_cells].reshape(family.shape), table.axis, 0)

    def _lowest(self, d: Array, attribute: _DirectedAttribute, table: _DirectedTable) -> Array:
        """Return the lowest difference at each step of a table; it is at most 0 if rows may leave the table out."""
        n_steps = len(table.steps)
        differences = np.zeros((0, 1))
        if n_steps:
            entries = self._entries(d, table)[: n_steps + 1]
            differences = attribute.sign * np.diff(entries, axis=0).reshape(n_steps, -1)
        lowest: Array = differences.min(axis=1)
        return np.minimum(lowest, 0.0) if table.is_foreign else lowest

    def _slopes(self, d: Array, attribute: _DirectedAttribute) -> list[Array]:
        """Return the slopes of every table of an attribute at its steps: the lowest differences of the contrast d.

        The carrier comes first; its slope makes the sum 0. If the carrier does not have a step, or may itself be left
        out of a sum, the slopes of the other tables are 0.
        """
        carrier, *others = attribute.tables
        rest = np.zeros(attribute.n_steps)
        slopes = []
        for table in others:
            slopes.append(np.where(table.is_shared, self._lowest(d, attribute, table), 0.0))
            rest[table.steps] -= slopes[-1]
        return [rest[carrier.steps], *slopes]


def _entries_of(rows: Index, columns: Index, value: float) -> tuple[Index, Index, Array]:
    """Return rows, columns and values of entries of a sparse matrix; `columns` are broadcast to the shape of `rows`."""
    return rows.ravel(), np.broadcast_to(columns, rows.shape).ravel(), np.full(rows.size, value)


def monotone_of(likelihood: ConditionalLikelihood, coordinates: LinearCoordinates) -> Monotone | None:
    """Return the monotonicity constraints in the schema of the rows, or None if none applies to the families."""
    directions = directions_of(likelihood.data.schema, likelihood.families)
    return None if directions is None else Monotone(directions, likelihood, coordinates)


def directions_of(schema: Schema, families: Sequence[Family]) -> Directions | None:
    """Return the schema's monotonicity constraints on tables over `families`, or None if none applies to them."""
    directed = []
    for i in schema.informative:
        sign = direction_of(schema, i)
        if not sign:
            continue
        n_values = schema.attributes[i].n_values
        tables = []
        for f, family in enumerate(families):
            if i in family.attributes and family.by_class:
                axis = family.attributes.index(i)
                grouping = family.binned_attributes[axis][1]
                codes = np.arange(n_values) if grouping is None else np.array(grouping[:n_values])
                steps = np.flatnonzero(np.diff(codes))
                tables.append(_DirectedTable(f, axis, steps, family.child not in (None, i), np.zeros(0, np.bool_)))
        if tables:
            # the carrier is the smallest table that has the attribute as its child, or no child, so no sum omits it
            tables.sort(key=lambda table: (table.is_foreign, families[table.family].n_cells))
            carrier = tables[0]
            shared = [np.isin(table.steps, carrier.steps) & (not carrier.is_foreign) for table in tables]
            tables = [table._replace(is_shared=mask) for table, mask in zip(tables, shared, strict=True)]
            n_steps = 1 + max((int(table.steps[-1]) for table in tables if len(table.steps)), default=-1)
            directed.append(_DirectedAttribute(sign, n_steps, tuple(tables)))
    return Directions(tuple(families), tuple(directed), schema.direction_label) if directed else None


def check_directions(model: Model) -> None:
    """Raise BncliError if the tables of a model violate a monotonicity constraint by more than TOLERANCE.

    Every cell of the tables is checked. A violation is a defect of learning that no input should cause.
    """
    if not model.schema.directed:
        return
    predictor = model.predictor
    tables = predictor.combined if isinstance(predictor, Ensemble) else predictor.leading
    if lowest_difference(model, tables) < -TOLERANCE:
        hint = "please report this bug; until it is fixed, learn without --increasing and --decreasing"
        raise BncliError("the model violates the requested directions", hint=hint)


def lowest_difference(model: Model, tables: Tables) -> float:
    """Return the smallest change of log-odds, in the required direction, from one interval to the next.

    The minimum is over all attributes with monotonicity constraints, their intervals, and all values of the other
    attributes, including unknown values. The log-odds compare the label of the constraints with each other label. If
    tables share further attributes, the result is a lower bound. Without constraints it is 0.
    """
    directions = directions_of(model.schema, tables.families)
    return 0.0 if directions is None else directions.lowest(tables.cells)
