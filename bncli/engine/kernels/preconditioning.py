"""Approximate inverses of the Hessian of a multinomial log-likelihood, from one co-occurrence matrix per class.

With C_y (cells, cells) and C = sum_y C_y, the Hessian in the tables is taken as

    H_yy' = 1[y = y'] C_y - C_y C^-1 C_y'

which is exact if P(y | x) depends on one family only, and at W = 0. With a penalty of Hessian L_y, and A_y = C_y + L_y,
Hx = g is solved through a shift t common to all classes (Woodbury):

    x_y = A_y^-1 (g_y - L_y t) + t,    sum_y (L_y - L_y A_y^-1 L_y) t = sum_y (g_y - L_y A_y^-1 g_y)

Adding the same function to all classes changes no probability, so t is determined by the penalty alone; without one
t = 0. If all classes share C_y and L_y, t only concerns the mean over classes, whose Hessian is L.

Parameters that are tables up to a factor, W[y, c] = s[y, c] p[y, c], have L_y = diag(lambda / s[y]^2). All this is done
on a subspace of the tables; the cells outside are solved one by one, by the diagonal, and both solutions are added.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from bncli.engine.kernels.arrays import Array, Index

Precondition = Callable[[Array], Array]


@dataclass(frozen=True)
class RowsPrecondition:
    """A preconditioner that can also multiply many gradients, the rows of an array (m, P), in little more time."""

    of_rows: Precondition

    def __call__(self, g: Array) -> Array:
        return np.asarray(self.of_rows(g[np.newaxis])[0])


SHIFT_FLOOR = 1e-3
"""With curved tables, a common shift is used only if the penalty is at least this fraction of the mean curvature."""
RIDGE = 1e-6
"""The ridge relative to the mean of the diagonal, which keeps estimated matrices invertible."""
NEGLIGIBLE = 1e-150
"""Curvature up to this value counts as 0, since the square of its reciprocal might overflow."""
LEAST_SCALE = 1e-6
"""Where matrices are inverted, smaller magnitudes of s are raised to this value; there the penalty dominates."""
MANY_OF_CELLS = 0.2
"""If more than this fraction of all cells belong to sums of a set, looking up a sum for every cell is faster."""
MAX_SHARED = 800
"""With more shared parameters than this, only the diagonal is used."""
MOST_SHIFTED = 1000
"""With more cells than this, only the diagonal of the equations for the shift common to all classes is used."""
INVERTED_TOGETHER = 1 << 16
"""The maximum number of elements of the matrices inverted at a time, unless one matrix has more."""
MOST_INVERTED_WHOLE = 48
"""Triangular matrices with more rows are split into halves, whose inverses are combined by matrix products."""


@dataclass(frozen=True)
class Subspace:
    """A subspace of the tables, as the 0/1 matrix R (n_cells, n) that maps its coordinates to cells.

    columns (sets, n_cells) is the column of R to which each cell belongs in each set, or n if it belongs to none. In
    set 0 every column is a single cell, a *top cell*; in the other sets a column is a sum of cells. A product with R
    visits each cell at most once per set.
    """

    columns: Index
    n: int

    @cached_property
    def top(self) -> Index:
        """The top cells, ordered by column."""
        cells = np.flatnonzero(self.columns[0] < self.n)
        # so that top[j] is the cell of column j
        return cells[np.argsort(self.columns[0][cells])]

    def columns_of(self, members: Index) -> Index:
        """Return the columns of R to which the cells `members` (configurations, any) belong, or n for no column.

        The result has the columns of one set after the other, (configurations, sets * any).
        """
        return np.concatenate([columns[members] for columns in self.columns], axis=1)

    def restrict(self, cells: Array) -> Array:
        """Return R' times each row of `cells` (any, n_cells), shape (any, n)."""
        if len(self.top) == self.n:
            out = cells.take(self.top, axis=1)
        else:
            # the top cells have the first columns; the columns of sums follow and are filled below
            out = np.zeros((len(cells), self.n))
            out[:, : len(self.top)] = cells[:, self.top]
        summed_cells, their_columns = self._all_sums
        if len(summed_cells):
            for row, total in zip(cells, out, strict=True):
                total += np.bincount(their_columns, row[summed_cells], self.n)
        return out

    def add(self, out: Array, columns: Array) -> None:
        """Add R times columns (any, n) to out (any, n_cells)."""
        out[:, self.top] += columns[:, : len(self.top)]
        if not self._sums:
            return
        # cells without a column get the column of zeros
        padded = np.concatenate([columns, np.zeros((len(columns), 1))], axis=1)
        for (cells, numbers), columns_of_cells in zip(self._sums, self.columns[1:], strict=True):
            if len(cells) > MANY_OF_CELLS * out.shape[1]:
                out += padded.take(columns_of_cells, axis=1)
            else:
                out[:, cells] += columns.take(numbers, axis=1)

    def gram(self, weights: Array) -> Array:
        """Return R' diag(weights) R, (n, n), weights (n_cells,)."""
        # R' diag(w) R at (i, j) is the weight of the cells that columns i and j share; a top cell has no other column
        total = np.zeros(self.n * self.n)
        diagonal = np.arange(len(self.top)) * (self.n + 1)
        total[diagonal] = weights[self.top]
        for first, second in itertools.product(self.columns[1:], repeat=2):
            both = np.flatnonzero((first < self.n) & (second < self.n))
            total += np.bincount(first[both] * self.n + second[both], weights[both], len(total))
        return total.reshape(self.n, self.n)

    @cached_property
    def _sums(self) -> list[tuple[Index, Index]]:
        """The cells that belong to a column, and these columns, for each row of `columns` except the first."""
        cells_of_rows = [np.flatnonzero(columns < self.n) for columns in self.columns[1:]]
        return [(cells, columns[cells]) for cells, columns in zip(cells_of_rows, self.columns[1:], strict=True)]

    @cached_property
    def _all_sums(self) -> tuple[Index, Index]:
        """The cells and columns of `_sums`, joined."""
        none = np.zeros(0, np.intp)
        cells = np.concatenate([none, *(cells for cells, _ in self._sums)])
        return cells, np.concatenate([none, *(columns for _, columns in self._sums)])


@dataclass(frozen=True)
class SampledCurvature:
    """The estimated curvature: `grams` (1 or K, n, n) are C_y on the subspace.

    `mass` (1 or K, n_cells) is the diagonal of C_y for all cells. A first axis of length 1 is shared by all classes.
    """

    grams: Array
    subspace: Subspace
    mass: Array


def scaled_preconditioner(sample: SampledCurvature, scale: Array, penalty: float, n_labels: int) -> RowsPrecondition:
    """Return the preconditioner for tables W = scale p, with scale (1 or K, n_cells)."""
    subspace, top = sample.subspace, sample.subspace.top
    # curvature of the parameters p when W = s p: s^2 m, plus the penalty
    spread = _diagonal(sample.mass * scale**2 + penalty, sample.mass, scale, penalty)
    # the sign stays: with a negative factor, table and parameter move in opposite directions
    factor = np.copysign(np.maximum(np.abs(scale), LEAST_SCALE), scale)
    alike = len(factor) == len(sample.grams) == 1
    squares = np.stack([subspace.gram(row) for row in factor**-2.0])
    if penalty > 0:
        inverses = inverses_of(sample.grams, penalty * squares)
    else:
        # Without a penalty, the ridge stands in for it, in the units of the diagonal that a penalty would have, 1 / s^2
        # in a top cell, but at least 1.
        pairs = zip(*np.broadcast_arrays(sample.grams, squares), strict=True)
        inverses = np.stack([_inverse_in_units(np.minimum(np.diag(of) ** -0.5, 1.0), c) for c, of in pairs])
    dense = _blocks(inverses) if alike or penalty == 0 else _coupled(inverses, penalty * squares, n_labels)

    unscaled = bool((factor == 1.0).all())
    # if every cell is in the subspace, nothing is left to solve by the diagonal
    has_all_cells = len(top) == sample.mass.shape[1]
    of_mean = penalty if penalty > 0 else _divisor(sample.mass * scale**2)[:, top]

    def apply(g: Array) -> Array:
        # (m, K, n_cells)
        gradient = g.reshape(len(g), n_labels, -1)
        # the cells outside the subspace, solved one by one; `dense` then adds its part
        out = np.zeros(gradient.shape) if has_all_cells else spread(gradient)
        if alike:  # the mean over classes is solved by itself
            mean = _mean(gradient)
            out[..., top] = mean[..., top] / of_mean
            gradient = gradient - mean
        elif not has_all_cells:
            # the top cells are solved by `dense` alone
            out[..., top] = 0.0
        # dW = s dp: a gradient in W is that in p divided by s, and a step in p is the step in W divided by s
        inside = out if unscaled else np.zeros(out.shape)
        gradient = gradient if unscaled else gradient / factor
        restricted = subspace.restrict(gradient.reshape(len(g) * n_labels, -1))
        solved = dense(restricted.reshape(len(g), n_labels, -1))
        subspace.add(inside.reshape(len(g) * n_labels, -1), solved.reshape(len(g) * n_labels, -1))
        if not unscaled:
            out += inside / factor
        return out.reshape(g.shape)

    return RowsPrecondition(apply)


def _diagonal(a: Array, mass: Array, scale: Array, free: float) -> Precondition:
    """Return a function that solves for every cell separately, for gradients (..., K, n_cells).

    a (1 or K, n_cells) is the curvature of the parameters, scale^2 mass + lambda. `free` is the penalty lambda that
    determines the common shift; 0 means no shift.
    """
    a = _divisor(a)
    if len(a) == 1:
        return partial(_spread_alike, a, free if free > 0 else a)
    # The shift of the module's docstring, cell by cell and in units of p: with a = s^2 m + lambda, L = lambda / s^2,
    #     x = g / a + u t,    u = s m / a,    (sum over y of lambda m / a) t = sum over y of u g
    u = np.broadcast_to(mass * scale, a.shape) / a
    if free == 0:
        return lambda g: g / a
    inner = (np.broadcast_to(mass, a.shape) * free / a).sum(axis=0)
    # no class has mass in the cell: there is nothing to shift
    inner = np.where(inner > 0, inner, 1.0)
    return lambda g: g / a + u * ((u * g).sum(axis=-2, keepdims=True) / inner)


def _divisor(a: Array) -> Array:
    """Return the curvature, replaced by 1 where it is 0: in cells without rows or penalty, whose gradient is 0."""
    return np.where(a > 0, a, 1.0)


def _spread_alike(a: Array, of_mean: Array | float, g: Array) -> Array:
    mean = _mean(g)
    out = g - mean
    out /= a
    out += mean / of_mean
    return out


def _mean(g: Array) -> Array:
    """Return the mean over the classes, (..., 1, n_cells); np.mean takes several times as long on short axes."""
    return np.asarray(np.add.reduce(g, axis=-2, keepdims=True) / g.shape[-2])


def _inverse_in_units(units: Array, matrix: Array) -> Array:
    """Return the inverse of a matrix, with a ridge in the given units of its rows and columns."""
    return np.asarray(units[:, np.newaxis] * inverse(units[:, np.newaxis] * matrix * units) * units)


def _blocks(inverses: Array) -> Precondition:
    """Return a function that multiplies gradients (m, K, n) by `inverses` (1 or K, n, n), shared or one per class."""
    if len(inverses) == 1:
        # the block is symmetric
        return lambda g: np.asarray(g.reshape(-1, g.shape[2]) @ inverses[0]).reshape(g.shape)
    return lambda g: np.matmul(inverses, g.transpose(1, 2, 0)).transpose(2, 0, 1)


def _coupled(inverses: Array, of_penalty: Array, n_labels: int) -> Precondition:
    """Return a solver with a common shift t for gradients (m, K, n), given A_y^-1 and L_y, each (1 or K, n, n)."""
    diagonals = np.diagonal(of_penalty, axis1=1, axis2=2)
    # If every L_y is diagonal, products with it are element-wise, which is much cheaper.
    narrow = np.count_nonzero(of_penalty) == np.count_nonzero(diagonals)
    d = diagonals[:, :, np.newaxis] if narrow else of_penalty
    weighted = np.multiply if narrow else np.matmul
    # sum over y of (L_y - L_y A_y^-1 L_y), to be inverted for t
    if len(of_penalty) == 1:
        # the sum over all K classes, also where all share one matrix
        total = inverses.sum(axis=0) * (n_labels / len(inverses))
        remainder = n_labels * of_penalty[0] - (d[0] * total * d[0].T if narrow else d[0] @ total @ d[0])
    else:
        remainder = np.zeros(inverses.shape[1:])
        for own, factor, solved in zip(of_penalty, d, inverses, strict=True):
            remainder += own - (factor * solved * factor.T if narrow else factor @ solved @ factor)
    least = RIDGE**2 * diagonals.max(axis=0)  # smaller values are rounding errors
    # symmetric up to rounding errors; made exactly so for the Cholesky factorisation
    inner = _inverse_in_units(np.maximum(np.diag(remainder), least) ** -0.5, (remainder + remainder.T) / 2)

    def apply(g: Array) -> Array:
        of_classes = g.transpose(1, 2, 0)
        solved = np.matmul(inverses, of_classes)
        t = inner @ np.add.reduce(of_classes - weighted(d, solved), axis=0)
        solved -= np.matmul(inverses, weighted(d, t))
        solved += t
        return np.asarray(solved.transpose(2, 0, 1))

    return apply


def curved_preconditioner(
    sample: SampledCurvature, curvature: Array, jacobian: Array, penalty: float, n_labels: int
) -> Precondition:
    """Return the preconditioner for tables that are not proportional to the parameters.

    `jacobian` (1 or K, top, top) is J_y = dW_y/dp_y on the top cells; curvature (1 or K, n_cells) is the diagonal of
    J_y' C_y J_y. The subspace must consist of top cells only. There

        x_y = A_y^-1 (g_y + U_y' t),    (C - sum_y U_y A_y^-1 U_y') t = sum_y U_y A_y^-1 g_y,    U_y = C_y J_y

    with A_y = J_y' C_y J_y + lambda I. Here a common shift changes probabilities, so t = 0 for a small penalty.
    """
    top = sample.subspace.top
    free = penalty if penalty >= SHIFT_FLOOR * curvature.mean() else 0.0
    diagonal = np.maximum(curvature, RIDGE * curvature.mean()) + penalty  # it nearly vanishes at probabilities near 0
    spread = _diagonal(diagonal, sample.mass, np.ones((1, curvature.shape[1])), free)
    # U_y, and then A_y = J_y' U_y + lambda I
    weighted = sample.grams @ jacobian
    inverses = np.stack([inverse(a, penalty) for a in jacobian.transpose(0, 2, 1) @ weighted])
    blocks = _blocks(inverses)
    dense: Precondition = lambda g: blocks(g[np.newaxis])[0]  # noqa: E731
    if free > 0:
        dense = _woodbury(sample.grams.sum(axis=0) * (n_labels / len(sample.grams)), weighted, inverses, n_labels)

    def apply(g: Array) -> Array:
        gradient = g.reshape(n_labels, -1)
        out = spread(gradient)
        out[:, top] = dense(gradient[:, top])
        return out.ravel()

    return apply


def _woodbury(total: Array, weighted: Array, inverses: Array, n_labels: int) -> Precondition:
    """Return a solver with a common shift t; total = C (n, n), weighted = U_y, inverses = A_y^-1 (1 or K, n, n)."""
    # A_y^-1 U_y', (1 or K, parameters, top cells)
    back = inverses @ weighted.transpose(0, 2, 1)
    inner = inverse(total - (weighted @ back).sum(axis=0) * (n_labels / len(back)))

    def apply(g: Array) -> Array:
        # g_y' A_y^-1 U_y' is the transpose of U_y A_y^-1 g_y: sum over y
        t = inner @ np.matmul(g[:, np.newaxis], back)[:, 0].sum(axis=0)
        return np.asarray(np.matmul(inverses, g[:, :, np.newaxis])[:, :, 0] + back @ t)

    return apply


def shared_preconditioner(
    sample: SampledCurvature, scale: Array, index: Index, n_parameters: int, penalty: float
) -> Precondition:
    """Return the preconditioner for shared parameters: W[y, c] = scale[y, c] p[index[y, c]].

    scale and index have shape (K, n_cells). H = sum_y A_y C_y A_y' - B C^-1 B' + lambda I, B = sum_y A_y C_y, with
    A_y (P, cells) holding dW[y]/dp. With more than MAX_SHARED parameters only the diagonal of H is used.
    """
    n_labels, n_cells = scale.shape
    mass = np.broadcast_to(sample.mass, scale.shape)
    # the diagonal of C_y - C_y C^-1 C_y for classes of equal mass, C = K C_y
    curvature = (1 - 1 / n_labels) * mass * scale**2
    diagonal = np.bincount(index.ravel(), curvature.ravel(), n_parameters) + penalty
    if n_parameters > MAX_SHARED:
        reciprocal = 1.0 / np.where(diagonal > NEGLIGIBLE, diagonal, 1.0)
        return lambda g: g * reciprocal
    grams = np.broadcast_to(sample.grams, (n_labels, *sample.grams.shape[1:]))
    hessian = np.zeros((n_parameters, n_parameters))
    both = np.zeros((n_parameters, len(sample.subspace.top)))
    for y in range(n_labels):
        # A_y (P, top cells): one entry per cell, in the row of its parameter
        a = np.zeros(both.shape)
        a[index[y, sample.subspace.top], np.arange(len(sample.subspace.top))] = scale[y, sample.subspace.top]
        hessian += a @ grams[y] @ a.T
        both += a @ grams[y]
    hessian -= both @ inverse(grams.sum(axis=0)) @ both.T
    remainder = np.setdiff1d(np.arange(n_cells), sample.subspace.top)
    # cells outside the subspace count by their diagonal alone
    left_out = np.bincount(index[:, remainder].ravel(), curvature[:, remainder].ravel(), n_parameters)
    hessian[np.diag_indices(len(hessian))] += left_out
    solver = inverse(hessian, penalty)
    return lambda g: solver @ g


def factored_preconditioner(mass: Array, scale: Array, penalty: float, first_cells: Index) -> Precondition:
    """Return the preconditioner for tables W = scale p of many classes, from the curvature of each cell alone.

    mass (K, n_cells) is the sum m of w P(y | x) (1 - P(y | x)) over the rows in each cell, scale is (1 or K, n_cells);
    first_cells (F,) are the first cells of the bias (0) and of each family. The families are treated as independent
    given the class. With n_y the mass of the bias and u_y = m_y / sqrt(n_y),

        C_y = diag(m_y) - the blocks u_yf u_yf' of each family f + u_y u_y',    A_y = C_y + L_y

    So A_y is a diagonal plus F + 1 products of vectors, and is inverted in O(n_cells) by Sherman-Morrison. The shift
    common to all classes, and the meaning of L_y, are as in the module docstring. The ridge replaces a smaller L_y.
    """
    factor = np.maximum(np.abs(scale), LEAST_SCALE) * np.where(scale < 0, -1.0, 1.0)
    of_penalty = np.broadcast_to(
        np.maximum(penalty / factor**2, RIDGE * max(float(mass.mean()), NEGLIGIBLE)), mass.shape
    )
    widths = np.diff(first_cells, append=mass.shape[1])
    reciprocal: Array = 1.0 / (mass + of_penalty)
    # column 0 is the bias, a single cell of all rows: its mass is n_y
    u = mass / np.sqrt(np.maximum(mass[:, :1], NEGLIGIBLE))
    solved = u * reciprocal
    # a positive lower bound, because rounding must not cancel the part due to the penalty
    inner = np.maximum(1.0 - np.add.reduceat(u * solved, first_cells, axis=1), RIDGE**2)

    def of_blocks(g: Array) -> Array:
        # (D - u u')^-1 g = D^-1 g + D^-1 u (u' D^-1 g) / (1 - u' D^-1 u), within each family
        out: Array = g * reciprocal
        out += solved * np.repeat(np.add.reduceat(u * out, first_cells, axis=1) / inner, widths, axis=1)
        return out

    # then + u u' over all families: (B + u u')^-1 g = B^-1 g - B^-1 u (u' B^-1 g) / (1 + u' B^-1 u)
    across = of_blocks(u)
    of_across = 1.0 + (u * across).sum(axis=1, keepdims=True)

    def inverse_of_classes(g: Array) -> Array:
        out = of_blocks(g)
        out -= across * ((u * out).sum(axis=1, keepdims=True) / of_across)
        return out

    # The matrix of the shift is the sum over classes of L - L A^-1 L. Of the diagonal of A alone this is L m / (m + L),
    # which does not cancel where the penalty is far greater than the mass.
    diagonal = (of_penalty * mass * reciprocal).sum(axis=0)
    shift: Callable[[Array], Array]
    # the other terms of L A^-1 L, those of the two Sherman-Morrison steps
    in_blocks, in_all = of_penalty * solved, of_penalty * across / np.sqrt(of_across)
    if mass.shape[1] <= MOST_SHIFTED:
        matrix = np.diag(diagonal)
        for f, (first, width) in enumerate(zip(first_cells, widths, strict=True)):
            cells = slice(first, first + width)
            matrix[cells, cells] -= (in_blocks[:, cells] / inner[:, f : f + 1]).T @ in_blocks[:, cells]
        matrix += in_all.T @ in_all
        units = np.sqrt(_reciprocals(np.diag(matrix)))
        shift = partial(np.matmul, _inverse_in_units(units, (matrix + matrix.T) / 2))
    else:
        # the diagonal of the same matrix
        diagonal += (in_all**2 - in_blocks**2 / np.repeat(inner, widths, axis=1)).sum(axis=0)
        shift = partial(np.multiply, _reciprocals(diagonal))

    def apply(g: Array) -> Array:
        gradient = g.reshape(mass.shape) / factor
        x = inverse_of_classes(gradient)
        t = shift((gradient - of_penalty * x).sum(axis=0))
        x += t - inverse_of_classes(of_penalty * t)
        return np.asarray(x / factor, np.float64).ravel()

    return apply


def _reciprocals(diagonal: Array) -> Array:
    """Return 1 / d, or 0 for elements negligible compared with their mean: cells without rows, and rounding errors."""
    kept = diagonal > max(RIDGE**2 * float(diagonal.mean()), NEGLIGIBLE)
    return np.divide(1.0, diagonal, out=np.zeros(len(diagonal)), where=kept)


def dense_work(n_blocks: int) -> float:
    """Return the approximate time of `n_blocks` dense blocks with n columns, in units of n^3 nanoseconds."""
    return 0.06 * n_blocks + (0.2 if n_blocks > 1 else 0.0)


def inverses_of(matrices: Array, penalties: Array) -> Array:
    """Return `inverse` of each matrix with its penalty, both (1 or m, n, n); fast if the first ridge suffices."""
    added = np.broadcast_to(penalties, (max(len(matrices), len(penalties)), *penalties.shape[1:]))
    diagonal = np.diagonal(matrices, axis1=1, axis2=2)
    ridge = RIDGE * np.maximum(diagonal.mean(axis=1, keepdims=True), NEGLIGIBLE)
    ridges = np.where(diagonal + np.diagonal(added, axis1=1, axis2=2) <= NEGLIGIBLE, 1.0, ridge)
    if np.isfinite(ridge).all():
        with suppress(np.linalg.LinAlgError):
            # small matrices all at once, and large ones one by one, so that temporary arrays are small
            at_a_time = max(1, INVERTED_TOGETHER // max(1, matrices.shape[1] ** 2))
            inverses = np.empty(np.broadcast_shapes(matrices.shape, added.shape))
            for start in range(0, len(inverses), at_a_time):
                part = slice(start, start + at_a_time)
                raised = (matrices[part] if len(matrices) > 1 else matrices) + added[part]
                # a writable view of the diagonals
                np.einsum("kii->ki", raised)[:] += ridges[part] if len(ridges) > 1 else ridges
                # (F F')^-1 = F^-1' F^-1
                factors = _inverse_of_triangle(np.asarray(np.linalg.cholesky(raised), np.float64))
                np.matmul(factors.transpose(0, 2, 1), factors, out=inverses[part])
            return inverses
    pairs = zip(*np.broadcast_arrays(matrices, penalties), strict=True)
    return np.stack([inverse(matrix, penalty) for matrix, penalty in pairs])


def _inverse_of_triangle(lower: Array) -> Array:
    """Return the inverses of lower triangular matrices (..., n, n), at a quarter of the work of a general inverse."""
    n = lower.shape[-1]
    if n <= MOST_INVERTED_WHOLE:
        return np.asarray(np.linalg.inv(lower))
    half = n // 2
    # [[A, 0], [B, D]]^-1 = [[A^-1, 0], [-D^-1 B A^-1, D^-1]]
    out = np.zeros(lower.shape)
    first, last = slice(half), slice(half, n)
    out[..., first, first] = _inverse_of_triangle(lower[..., first, first])
    out[..., last, last] = _inverse_of_triangle(lower[..., last, last])
    out[..., last, first] = -(out[..., last, last] @ (lower[..., last, first] @ out[..., first, first]))
    return out


def inverse(matrix: Array, penalty: Array | float = 0.0) -> Array:
    """Return (matrix + L + ridge I)^-1 with a ridge large enough for the sum to be positive definite.

    L is `penalty`, a matrix or a multiple of I. The ridge is relative to the mean of the diagonal of `matrix` alone; it
    is 1 in rows where the diagonal of matrix + L is negligible. If no finite ridge suffices, for example because the
    matrix is not finite, return the identity matrix.
    """
    added = penalty if isinstance(penalty, np.ndarray) else penalty * np.eye(len(matrix))
    diagonal = np.diag(matrix)
    empty = diagonal + np.diag(added) <= NEGLIGIBLE
    # above 0 even for a matrix of zeros, or raising it would never end
    ridge = RIDGE * max(float(diagonal.mean()), NEGLIGIBLE)
    while np.isfinite(ridge):
        raised = matrix + added + np.diag(np.where(empty, 1.0, ridge))
        try:
            factor = _inverse_of_triangle(np.linalg.cholesky(raised))
        except np.linalg.LinAlgError:
            # coarse steps: each costs a factorisation, and a preconditioner need not be exact
            ridge *= 100.0
            continue
        return np.asarray(factor.T @ factor)
    return np.eye(len(matrix))
