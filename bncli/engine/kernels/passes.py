"""One pass over coded rows: the conditional log-likelihood, its gradient, and products with its Hessian.

    CLL     = sum over rows t of w_t ln P(y_t | x_t),    P(y | x_t) = softmax_y sum_g E_g[y, code_g(t)]
    dE_g[y, u] = sum over rows t with code_g(t) = u of w_t (1[y_t = y] - P(y | x_t))

Products of the Hessian of -CLL with tables V:

    d[t, y]  = sum over groups g of V_g[y, code_g(t)]
    r[t, y]  = w_t P(y | x_t) (d[t, y] - sum over y' of P(y' | x_t) d[t, y'])
    (HV)_g[y, u] = sum over rows t with code_g(t) = u of r[t, y]

While products at one point are needed, the probabilities (K, rows) at that point are kept, or for two classes only the
curvature w P(0 | x) P(1 | x).

There are kernels for two classes and for more; for few rows they use look-ups, for many rows sparse products
(`Indicators`), which are faster once scipy.sparse is imported. All process rows in blocks whose temporaries stay in
cache, keep scores class-major (reductions run over the short axis) up to MANY_CLASSES classes, and give finite
probabilities for scores of any size. Tables of two classes hold differences, of the second class from the first.
`np.take` with `out` needs mode="clip": the default mode buffers and costs three times as much.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from bncli.engine.kernels.arrays import Array, Index, Integers

MOST_ENTRIES = 1 << 19
"""The maximum number of entries of a sparse matrix, approximately; with many groups, fewer rows go into one."""
BLOCK = 1 << 15
"""The number of rows processed at a time.

With more rows, the memory for the scores of several classes is requested from the system in every pass, which takes 1.6
times as long. With fewer, two threads spend their time on handing over the interpreter lock.
"""
SPARSE_BLOCK = 3 << 13
"""The approximate number of rows processed at a time by sparse products."""
MANY_CLASSES_BLOCK = 1 << 12
"""The approximate number of rows processed at a time with more than SOME_CLASSES classes."""
MANY_CLASSES = 64
"""With more classes, scores are kept row by row: transposing them would take most of the time of a pass."""
MANY_SCORES = 1 << 16
"""The approximate number of scores of many classes that are processed at a time, so that they stay in the cache."""
SOME_CLASSES = 10
"""Up to this many classes, look-ups for few rows take no longer than sparse products."""
LOG_FACTORS = 16
"""The number of normalising sums multiplied before taking a logarithm; each is at most K, so the product is finite."""


class SparseRows(NamedTuple):
    """Some rows of Z as a sparse matrix in row format (CSR), and its transpose, which shares the memory."""

    rows: slice
    z: Any
    transpose: Any


class Indicators:
    """The rows' configurations as a sparse matrix: Z[t, u] = 1 if row t has configuration u, one per group.

        sum over groups g of E_g[code_g(t)] = (Z E)[t],    sum over rows t with code_g(t) = u of r[t] = (Z' r)[u]

    One product does the look-ups, or the sums, of all groups in a block of rows, and other threads can compute
    meanwhile: np.bincount (numpy 2.4) holds the interpreter lock, so that two threads that sum with it take turns.

    Z has the shape (rows, configurations of all groups in turn). Iteration yields it in blocks of about equal size, of
    about `at_a_time` rows or, with many groups, fewer. codes (rows, groups) are numbers within the group, and sizes[g]
    is the number of configurations of group g. With `keep` the matrices are kept, 4 bytes per code; otherwise every
    iteration rebuilds them. With `single` the entries are float32, so that products with float32 tables are float32.
    """

    def __init__(
        self, codes: Integers, sizes: Sequence[int], at_a_time: int, keep: bool, *, single: bool = False
    ) -> None:
        self._codes, self._sizes, self._kind = codes, tuple(sizes), np.dtype(np.float32 if single else np.float64)
        at_a_time = min(at_a_time, max(1, MOST_ENTRIES // len(sizes)))
        # even blocks: round the number of blocks, then divide the rows among them, rounded up
        self.at_a_time = -(-len(codes) // max(1, round(len(codes) / at_a_time))) or 1
        self._kept = list(self._build()) if keep else None

    @property
    def n_rows(self) -> int:
        return len(self._codes)

    def __sizeof__(self) -> int:
        """Return the size of codes and kept matrices in bytes, which a cluster reads before it moves the object."""
        of_matrices = np.dtype(np.int32).itemsize * self._codes.size if self._kept is not None else 0
        return self._codes.nbytes + of_matrices

    def __iter__(self) -> Iterator[SparseRows]:
        return self._build() if self._kept is None else iter(self._kept)

    def _build(self) -> Iterator[SparseRows]:
        from scipy.sparse import csr_array  # costs more to import than a small fit: only where it is used

        for start in range(0, self.n_rows, self.at_a_time):
            codes = self._codes[start : start + self.at_a_time]
            # CSR arrays: row t has its entries at starts[t] .. starts[t + 1] - 1, one per group, all 1
            ones, offsets, starts = _shared_arrays(len(codes), self._sizes, self._kind)
            columns = np.add(codes.reshape(-1), offsets, dtype=np.int32)
            z = csr_array((ones, columns, starts), shape=(len(codes), sum(self._sizes)))
            # the transpose of a matrix by rows is one by columns over the same arrays
            yield SparseRows(slice(start, start + len(codes)), z, z.T)


@lru_cache(maxsize=4)
def _shared_arrays(n_rows: int, sizes: tuple[int, ...], kind: np.dtype[Any]) -> tuple[Array, Integers, Integers]:
    """Return the arrays shared by matrices of one shape: entries, first column of each entry's group, row starts."""
    n_entries = n_rows * len(sizes)
    first = np.cumsum([0, *sizes[:-1]], dtype=np.int32)
    return np.ones(n_entries, kind), np.tile(first, n_rows), np.arange(0, n_entries + 1, len(sizes), dtype=np.int32)


def gradient_two_classes(
    codes: Sequence[Integers], signs: Array, weights: Array | None, tables: Sequence[Array]
) -> tuple[float, list[Array]]:
    """Return the CLL and its gradient for K = 2, with respect to tables[g] (configurations,) of differences.

    signs (rows,) is +1 for the second class, -1 for the first. Only the difference d = S[1] - S[0] between the scores
    S of the two classes is needed.
    """
    totals = [np.zeros(len(table)) for table in tables]
    buffers = [np.empty(min(BLOCK, len(signs))) for _ in range(3)]
    cll = 0.0
    for start in range(0, len(signs), BLOCK):
        sign = signs[start : start + BLOCK]
        block = [np.asarray(c[start : start + BLOCK], np.intp) for c in codes]
        margin, spare, residual = (buffer[: len(sign)] for buffer in buffers)
        np.take(tables[0], block[0], out=margin, mode="clip")
        for table, code in zip(tables[1:], block[1:], strict=True):
            margin += np.take(table, code, out=spare, mode="clip")
        # now the log-odds of the row's own class
        margin *= sign
        weight = None if weights is None else weights[start : start + BLOCK]
        cll += _logistic(margin, spare, residual, weight)
        # d CLL / dd is w (1 - p) of the own class, with a minus for rows of the first class
        residual *= sign
        for total, code in zip(totals, block, strict=True):
            total += np.bincount(code, residual, len(total))
    return cll, totals


def sparse_gradient_two_classes(
    z: Indicators, signs: Array, weights: Array | None, table: Array
) -> tuple[float, Array]:
    """Return the same as `gradient_two_classes`, for many rows; table and gradient have shape (columns of Z,)."""
    total, cll = np.zeros(len(table)), 0.0
    buffers = [np.empty(min(z.at_a_time, z.n_rows)) for _ in range(2)]
    for rows, by_row, by_column in z:
        margin, sign = by_row @ table, signs[rows]
        spare, residual = (buffer[: len(sign)] for buffer in buffers)
        # as in `gradient_two_classes`: log-odds of the own class, and the sign back on its residual
        margin *= sign
        cll += _logistic(margin, spare, residual, None if weights is None else weights[rows])
        residual *= sign
        total += by_column @ residual
    return cll, total


def _logistic(margin: Array, spare: Array, residual: Array, weight: Array | None) -> float:
    """Return the sum of w ln p, p = 1 / (1 + exp(-margin)).

    `residual` becomes w (1 - p); `margin` and `spare` are overwritten.
    """
    # With m = -margin: 1 - p = exp(min(m, 0)) / (1 + exp(-|m|)) and -ln p = max(m, 0) + ln(1 + exp(-|m|)).
    np.negative(margin, out=margin)
    # exponents are at most 0 above and below the fraction line: nothing overflows, regardless of the margin
    np.minimum(margin, 0.0, out=residual)
    np.exp(residual, out=residual)
    np.abs(margin, out=spare)
    np.negative(spare, out=spare)
    np.exp(spare, out=spare)
    spare += 1.0
    residual /= spare
    np.maximum(margin, 0.0, out=margin)
    if weight is None:
        return -float(margin.sum()) - _sum_of_logs(spare)
    residual *= weight
    margin += np.log(spare, out=spare)
    return -float(margin @ weight)


def _sum_of_logs(x: Array) -> float:
    """Return the sum of ln x for x between 1 and about 2^16, by products, which cost a tenth of a logarithm."""
    n_in_products = len(x) - len(x) % LOG_FACTORS
    # (16, products): each product takes its factors from 16 distant places, so that whole rows are multiplied
    products = np.multiply.reduce(x[:n_in_products].reshape(LOG_FACTORS, -1), axis=0)
    return float(np.add.reduce(np.log(products)) + np.add.reduce(np.log(x[n_in_products:])))


def gradient_classes(
    codes: Sequence[Integers], labels: Integers, weights: Array | None, tables: Sequence[Array]
) -> tuple[float, list[Array]]:
    """Return the CLL and its gradient for about 3 to 10 classes, with respect to tables[g] (K, configurations).

    This takes one bincount per group and class, and looks up several classes at a time. Only differences from the first
    class are looked up; its residuals are minus the sum of the others, since residuals sum to 0 over the classes.
    """
    n_labels = len(tables[0])
    parts = [class_differences(table) for table in tables]
    totals = [np.zeros(table.shape) for table in tables]
    buffers = [np.empty(n_labels * min(BLOCK, len(labels))) for _ in range(3)]
    cll = 0.0
    for start in range(0, len(labels), BLOCK):
        label = labels[start : start + BLOCK]
        block = [np.asarray(c[start : start + BLOCK], np.intp) for c in codes]
        # the shorter last block takes a prefix of each buffer, which is contiguous as `residuals` requires
        scores, *spare = (buffer[: n_labels * len(label)].reshape(n_labels, -1) for buffer in buffers)
        look_up_scores(scores, spare, parts, block)
        cll += residuals(scores, label, None if weights is None else weights[start : start + BLOCK])
        for total, code in zip(totals, block, strict=True):
            for sums, residual in zip(total[1:], scores[1:], strict=True):
                # the first class is skipped, see below
                sums += np.bincount(code, residual, len(sums))
    for total in totals:
        # a row's residuals sum to 0 over the classes, and so do those of a cell
        total[0] = -total[1:].sum(axis=0)
    return cll, totals


def sparse_gradient_classes(
    z: Indicators, labels: Integers, weights: Array | None, table: Array
) -> tuple[float, Array]:
    """Return the same as `gradient_classes` for many rows or many classes.

    table (configurations of all groups, K - 1) has differences from the first class; the gradient has the same shape
    and leaves out the first class, too. With many classes, a single-precision table halves the time; each sum then has
    a relative error of about 1e-6.
    """
    total, cll = np.zeros(table.shape), 0.0
    # by_row @ table is (rows, K - 1); with few classes it is transposed, since reductions are then faster
    for rows, by_row, by_column in z:
        if table.shape[1] >= MANY_CLASSES:
            differences = by_row @ table
            cll += residuals_by_row(differences, labels[rows], None if weights is None else weights[rows])
            total += by_column @ differences
            continue
        scores = class_major(by_row @ table)
        cll += residuals(scores, labels[rows], None if weights is None else weights[rows])
        total += by_column @ np.ascontiguousarray(scores[1:].T)
    return cll, total


def log_likelihood(
    codes: Sequence[Index], labels: Integers, weights: Array | None, tables: Sequence[Sequence[Array]]
) -> float:
    """Return the CLL alone, for few enough rows that their scores fit the cache.

    tables[g] are the parts that `class_differences` returns.
    """
    widths = [part.shape[1] for part in tables[0]]
    scores = np.empty((1 + sum(widths), len(labels)))
    look_up_scores(scores, [np.empty(max(widths, default=0) * len(labels)) for _ in range(2)], tables, codes)
    return residuals(scores, labels, weights)


def class_differences(table: Array) -> list[Array]:
    """Return a table's differences from the first class, in parts of 4, 2 or 1 classes, (configurations, classes).

    np.take moves one row of such a part in one instruction.
    """
    parts, k = [], 1
    while k < len(table):
        width = next(w for w in (4, 2, 1) if k + w <= len(table))
        # (width, configurations), transposed and copied so that the classes of a cell lie together
        parts.append(np.ascontiguousarray((table[k : k + width] - table[0]).T))
        k += width
    return parts


def look_up_scores(
    scores: Array, spare: Sequence[Array], tables: Sequence[Sequence[Array]], codes: Sequence[Index]
) -> None:
    """Fill scores (K, rows), 0 for the first class, from the parts by `class_differences`; overwrite `spare`."""
    scores[0] = 0.0
    k = 1
    for parts in zip(*tables, strict=True):
        width = parts[0].shape[1]
        # both (rows, width), at the front of the spare arrays
        total, taken = (array.ravel()[: width * len(codes[0])].reshape(-1, width) for array in spare)
        np.take(parts[0], codes[0], axis=0, out=total, mode="clip")
        for part, code in zip(parts[1:], codes[1:], strict=True):
            total += np.take(part, code, axis=0, out=taken, mode="clip")
        scores[k : k + width] = total.T
        k += width


def class_major(differences: Array) -> Array:
    """Return scores (K, rows), 0 for the first class, given differences from the first class, (rows, K - 1)."""
    scores = np.zeros((differences.shape[1] + 1, len(differences)))
    scores[1:] = differences.T
    return scores


def residuals(scores: Array, labels: Integers, weights: Array | None) -> float:
    """Turn contiguous scores (K, rows) into w_t (1[y_t = y] - P(y | x_t)) in place; return the CLL of the rows."""
    # ufuncs called directly: for few rows the methods max and sum cost twice as much
    scores -= np.maximum.reduce(scores, axis=0)
    flat = scores.reshape(-1)
    # position of S[y_t, t] in the flattened scores: y_t * rows + t
    entries = labels * np.intp(scores.shape[1])
    entries += np.arange(len(labels))
    # a copy, taken before the scores become exponentials
    own = flat[entries]
    np.exp(scores, out=scores)
    norm = np.add.reduce(scores, axis=0)
    if weights is None:
        cll = float(np.add.reduce(own)) - _sum_of_logs(norm)
    else:
        own -= np.log(norm)
        cll = float(own @ weights)
    # residuals 1[y_t = y] - P(y | x_t): minus all probabilities first, then plus 1 for the own class
    np.divide(-1.0, norm, out=norm)
    scores *= norm
    flat[entries] += 1.0
    if weights is not None:
        scores *= weights
    return cll


def residuals_by_row(differences: Array, labels: Integers, weights: Array | None) -> float:
    """Turn differences from the first class, (rows, K - 1), into residuals in place; return the CLL of the rows.

    Equivalent to `residuals`, except that the first class is left out: its residuals are minus the sums of the others.
    """
    cll = 0.0
    for rows in _rows_in_cache(differences):
        part, label = differences[rows], labels[rows]
        others = np.flatnonzero(label)  # the rows that are not of the first class
        entries = label[others].astype(np.intp) - 1
        # the score of the first class is 0
        highest = np.maximum(part.max(axis=1), 0.0)
        # own score minus the highest, always in double precision; rows of other classes than the first add their score
        # below
        own = -highest.astype(np.float64)
        own[others] += part[others, entries]
        norm = _exponentials(part, highest)
        own -= np.log(norm)
        part *= (-1.0 / norm).astype(part.dtype)[:, np.newaxis]
        part[others, entries] += 1.0
        if weights is None:
            cll += float(np.add.reduce(own))
            continue
        part *= weights[rows].astype(part.dtype)[:, np.newaxis]
        cll += float(own @ weights[rows])
    return cll


def _rows_in_cache(scores: Array) -> Iterator[slice]:
    """Yield slices of the rows of scores (rows, any) with about MANY_SCORES scores each."""
    at_a_time = max(1, MANY_SCORES // scores.shape[1])
    for start in range(0, len(scores), at_a_time):
        yield slice(start, start + at_a_time)


def _exponentials(differences: Array, highest: Array) -> Array:
    """Turn differences d (rows, K - 1) into exp(d - highest) in place; return their sum per row plus exp(-highest)."""
    differences -= highest[:, np.newaxis]
    np.exp(differences, out=differences)
    return np.asarray(differences.sum(axis=1, dtype=differences.dtype) + np.exp(-highest.astype(np.float64)))


def sparse_variances(z: Indicators, weights: Array | None, table: Array) -> Array:
    """Return the sums of w P(y | x) (1 - P(y | x)) over the rows in each configuration, (configurations, K).

    The arguments are as in `sparse_gradient_classes` with many classes.
    """
    # column 0 is the first class, whose probability is not among the differences
    total = np.zeros((len(table), table.shape[1] + 1))
    for rows, by_row, by_column in z:
        differences = by_row @ table
        first = np.empty((len(differences), 1), differences.dtype)
        for part in _rows_in_cache(differences):
            p, of_first = differences[part], first[part]
            highest = np.maximum(p.max(axis=1), 0.0)
            norm = _exponentials(p, highest)
            p *= (1.0 / norm).astype(p.dtype)[:, np.newaxis]
            of_first[:, 0] = np.exp(-highest) / norm
            # views: differences and first hold the result when all parts are done
            for probability in (p, of_first):
                probability *= 1.0 - probability
                if weights is not None:
                    probability *= weights[rows][part].astype(p.dtype)[:, np.newaxis]
        total[:, 1:] += by_column @ differences
        total[:, :1] += by_column @ first
    return total


def curvature_two_classes(codes: Sequence[Integers], weights: Array | None, tables: Sequence[Array]) -> Array:
    """Return w P(0 | x) P(1 | x), (rows,), given tables of differences between the two classes."""
    margin = np.zeros(len(codes[0]))
    for table, code in zip(tables, codes, strict=True):
        margin += table[code]
    # p (1 - p) is the same for d and -d, so it does not matter from which class the differences are taken
    curvature = _curvature(margin)
    return curvature if weights is None else curvature * weights


def sparse_curvature_two_classes(z: Indicators, weights: Array | None, table: Array) -> Array:
    """Return the same as `curvature_two_classes`, given a table (configurations of all groups,)."""
    curvature = np.empty(z.n_rows)
    for rows, by_row, _ in z:
        curvature[rows] = _curvature(by_row @ table)
    if weights is not None:
        curvature *= weights
    return curvature


def _curvature(margin: Array) -> Array:
    """Return P(0 | x) P(1 | x) for scores that differ by `margin`; overwrite `margin`."""
    # e^-|d| / (1 + e^-|d|)^2 = p (1 - p), without overflow
    np.abs(margin, out=margin)
    np.exp(np.negative(margin, out=margin), out=margin)
    return margin / np.square(1.0 + margin)


def hessian_two_classes(codes: Sequence[Integers], curvature: Array, tables: Sequence[Array]) -> list[Array]:
    """Return (HV)_g for the second class, given tables V of differences; the first class has the negative values."""
    totals = [np.zeros(len(table)) for table in tables]
    for start in range(0, len(curvature), BLOCK):
        block = [np.asarray(c[start : start + BLOCK], np.intp) for c in codes]
        r = tables[0][block[0]]
        for table, code in zip(tables[1:], block[1:], strict=True):
            r += table[code]
        # r = w p_1 (d - p_1 d) = w p_0 p_1 d, as d is 0 for the first class
        r *= curvature[start : start + BLOCK]
        for total, code in zip(totals, block, strict=True):
            total += np.bincount(code, r, len(total))
    return totals


def sparse_hessian_two_classes(z: Indicators, curvature: Array, table: Array) -> Array:
    """Return the same as `hessian_two_classes`; table and result have shape (configurations of all groups,)."""
    total = np.zeros(len(table))
    for rows, by_row, by_column in z:
        r = by_row @ table
        r *= curvature[rows]
        total += by_column @ r
    return total


def probabilities(codes: Sequence[Integers], tables: Sequence[Array]) -> Array:
    """Return P(y | x), (K, rows), given tables[g] (K, configurations)."""
    p = np.empty((len(tables[0]), len(codes[0])))
    for start, _block, scores in _score_blocks(codes, tables):
        _softmax(scores)
        p[:, start : start + scores.shape[1]] = scores
    return p


def sparse_probabilities(z: Indicators, table: Array) -> list[Array]:
    """Return P(y | x) for each block of rows, as a list of arrays (K, rows).

    table (configurations of all groups, K - 1) has differences from the first class.
    """
    blocks = []
    for _rows, by_row, _ in z:
        scores = class_major(by_row @ table)
        _softmax(scores)
        blocks.append(scores)
    return blocks


def _score_blocks(codes: Sequence[Integers], tables: Sequence[Array]) -> Iterator[tuple[int, list[Index], Array]]:
    """Yield the first row, the codes, and the score differences from the first class (K, rows) of each block.

    The array of score differences is reused for the next block.
    """
    n_labels, n_rows = len(tables[0]), len(codes[0])
    parts = [class_differences(table) for table in tables]
    buffers = [np.empty(n_labels * min(BLOCK, n_rows)) for _ in range(3)]
    for start in range(0, n_rows, BLOCK):
        block = [np.asarray(c[start : start + BLOCK], np.intp) for c in codes]
        scores, *spare = (buffer[: n_labels * len(block[0])].reshape(n_labels, -1) for buffer in buffers)
        look_up_scores(scores, spare, parts, block)
        yield start, block, scores


def _softmax(scores: Array) -> None:
    scores -= scores.max(axis=0)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=0)


def hessian_classes(codes: Sequence[Integers], p: Array, weights: Array | None, tables: Sequence[Array]) -> list[Array]:
    """Return (HV)_g of every group g, each (K, configurations), given p = P(y | x), (K, rows)."""
    totals = [np.zeros(table.shape) for table in tables]
    for start, block, d in _score_blocks(codes, tables):
        rows = slice(start, start + d.shape[1])
        _to_hessian_residuals(d, p[:, rows], None if weights is None else weights[rows])
        for total, code in zip(totals, block, strict=True):
            for sums, residual in zip(total[1:], d[1:], strict=True):
                sums += np.bincount(code, residual, len(sums))
    for total in totals:
        total[0] = -total[1:].sum(axis=0)
    return totals


def sparse_hessian_classes(z: Indicators, p: Sequence[Array], weights: Array | None, table: Array) -> Array:
    """Return HV without the first class, given p as `sparse_probabilities` returns it.

    Result and `table` have shape (configurations of all groups, K - 1).
    """
    total = np.zeros(table.shape)
    for (rows, by_row, by_column), of_block in zip(z, p, strict=True):
        d = class_major(by_row @ table)
        _to_hessian_residuals(d, of_block, None if weights is None else weights[rows])
        total += by_column @ np.ascontiguousarray(d[1:].T)
    return total


def _to_hessian_residuals(d: Array, p: Array, weights: Array | None) -> None:
    """Replace d by r = w p (d - sum over y of p d) in place; all are (K, rows)."""
    # subtract the mean of d over the row's class distribution
    d -= np.einsum("kt,kt->t", d, p)
    d *= p
    if weights is not None:
        d *= weights
