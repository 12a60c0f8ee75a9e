"""Products with the Hessian of the negative conditional log-likelihood, on the groups' tables: one pass over the rows.

    d[t, y]  = sum over groups g of V_g[y, code_g(t)]
    r[t, y]  = w_t P(y | x_t) (d[t, y] - sum over y' of P(y' | x_t) d[t, y'])
    (HV)_g[y, u] = sum over rows t with code_g(t) = u of r[t, y]

The probabilities at the point of the Hessian are kept, (K, rows) numbers, as long as products are wanted there; of two
classes only w P(0 | x) P(1 | x). Kernels and ranges of K are those of `bncli.engine.kernels.passes`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from bncli.engine.kernels.arrays import Array, Index, Integers
from bncli.engine.kernels.indicators import Indicators
from bncli.engine.kernels.passes import BLOCK, class_major, look_up, wide


def spread_of_two(codes: Sequence[Integers], weights: Array | None, tables: Sequence[Array]) -> Array:
    """w P(0 | x) P(1 | x), (rows,), from tables of differences as in `passes.two_classes`."""
    margin = np.zeros(len(codes[0]))
    for table, code in zip(tables, codes, strict=True):
        margin += table[code]
    spread = _spread(margin)
    return spread if weights is None else spread * weights


def _spread(margin: Array) -> Array:
    """P(0 | x) P(1 | x) where the scores differ by `margin`, which is overwritten."""
    np.abs(margin, out=margin)
    np.exp(np.negative(margin, out=margin), out=margin)
    return margin / np.square(1.0 + margin)


def of_two(codes: Sequence[Integers], spread: Array, tables: Sequence[Array]) -> list[Array]:
    """r of class 1 summed, by group, for tables V of differences; that of class 0 is its negative."""
    totals = [np.zeros(len(table)) for table in tables]
    for start in range(0, len(spread), BLOCK):
        block = [np.asarray(c[start : start + BLOCK], np.intp) for c in codes]
        r = tables[0][block[0]]
        for table, code in zip(tables[1:], block[1:], strict=True):
            r += table[code]
        r *= spread[start : start + BLOCK]
        for total, code in zip(totals, block, strict=True):
            total += np.bincount(code, r, len(total))
    return totals


def probabilities_of_some(codes: Sequence[Integers], tables: Sequence[Array]) -> Array:
    """P (K, rows)."""
    out = np.empty((len(tables[0]), len(codes[0])))
    for start, _block, scores in _scores(codes, tables):
        _softmax(scores)
        out[:, start : start + scores.shape[1]] = scores
    return out


def of_some(codes: Sequence[Integers], p: Array, weights: Array | None, tables: Sequence[Array]) -> list[Array]:
    """r summed by group and class, (K, configurations) each."""
    totals = [np.zeros(table.shape) for table in tables]
    for start, block, d in _scores(codes, tables):
        rows = slice(start, start + d.shape[1])
        _residual(d, p[:, rows], None if weights is None else weights[rows])
        for total, code in zip(totals, block, strict=True):
            for sums, residual in zip(total[1:], d[1:], strict=True):
                sums += np.bincount(code, residual, len(sums))
    for total in totals:
        total[0] = -total[1:].sum(axis=0)
    return totals


def _scores(codes: Sequence[Integers], tables: Sequence[Array]) -> Iterator[tuple[int, list[Index], Array]]:
    """(first row, codes, sums of tables less those of class 0 (K, rows)) of every block; the sums are overwritten."""
    n_labels, n_rows = len(tables[0]), len(codes[0])
    parts = [wide(table) for table in tables]
    buffers = [np.empty(n_labels * min(BLOCK, n_rows)) for _ in range(3)]
    for start in range(0, n_rows, BLOCK):
        block = [np.asarray(c[start : start + BLOCK], np.intp) for c in codes]
        scores, *spare = (buffer[: n_labels * len(block[0])].reshape(n_labels, -1) for buffer in buffers)
        look_up(scores, spare, parts, block)
        yield start, block, scores


def sparse_spread_of_two(z: Indicators, weights: Array | None, table: Array) -> Array:
    """As `spread_of_two`; table (configurations of all groups,)."""
    spread = np.empty(z.n_rows)
    for rows, by_row, _ in z:
        spread[rows] = _spread(by_row @ table)
    if weights is not None:
        spread *= weights
    return spread


def sparse_of_two(z: Indicators, spread: Array, table: Array) -> Array:
    """As `of_two`; table and result (configurations of all groups,)."""
    total = np.zeros(len(table))
    for rows, by_row, by_column in z:
        r = by_row @ table
        r *= spread[rows]
        total += by_column @ r
    return total


def sparse_probabilities(z: Indicators, table: Array) -> list[Array]:
    """P (K, rows) of every block, table (configurations of all groups, K - 1) of differences from the first class."""
    found = []
    for _rows, by_row, _ in z:
        scores = class_major(by_row @ table)
        _softmax(scores)
        found.append(scores)
    return found


def sparse_of(z: Indicators, p: Sequence[Array], weights: Array | None, table: Array) -> Array:
    """r summed, without the first class: of the shape of `table`, (configurations of all groups, K - 1)."""
    total = np.zeros(table.shape)
    for (rows, by_row, by_column), of_block in zip(z, p, strict=True):
        d = class_major(by_row @ table)
        _residual(d, of_block, None if weights is None else weights[rows])
        total += by_column @ np.ascontiguousarray(d[1:].T)
    return total


def _softmax(scores: Array) -> None:
    scores -= scores.max(axis=0)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=0)


def _residual(d: Array, p: Array, weights: Array | None) -> None:
    """d becomes r."""
    d -= np.einsum("kt,kt->t", d, p)
    d *= p
    if weights is not None:
        d *= weights
