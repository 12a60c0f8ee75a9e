"""Look-ups of the scorer: tables by cell, and what a table says of a row in which some attribute is unknown.

A `Factor` has the code "unobserved" built into its table and is looked up blindly. A `WideFactor` is one that this code
would blow up (k binary parents make 2^k cells, and 3^k with the code): it keeps the plain table, and the few
rows with an unknown are averaged one pattern of unknowns at a time,

    entry = sum over the values v of the unknown attributes of prod q(v) W[known, v, y],

which is 0 where the family's own attribute is unknown. Cost of such a row: the number of completions.

From the scores of rows to probabilities, of one model or averaged over several.

    P(y | x_t) = exp S[t, y] / sum over c of exp S[t, c]

Scores (R, rows) are class-major: R = K rows, or for two classes one row, the difference d = S[t, 1] - S[t, 0].

What scoring adds up between two softmaxes: the steps of a path gathered into stages, each region's changes into one.

A step whose weight is next to nothing needs no probabilities of its own, so its changes go to the next step that does:
a stage is a step with weight and those just before it without. Of the changes of a stage many cancel, and what is left
of a region that another one contains goes into the table of that one. So the model of a single step is a stage with one
table for every region that no other contains.

Conventions: steps of less than LEAST_WEIGHT are left out. That is less than a rounding error of any probability.

Look-ups of a path: one table over the cells of a region, into which all that changes inside the region is added up.

    D[v, y] = sum over changes (R, c) of c ln P(v_R, y)

Every submodel is marginalized over what a row does not show, so that the model is that of the attributes it shows:

    ln P(v_R without a, y) = ln sum over values u of a of P(v_R with a = u, y)

Submodels of overlapping regions are consistent, so what is left is the submodel of the smaller region. Such entries are
in the table (`expand_submodel`), unless they would blow it up: a `RegionFactor` has the plain table and marginalizes,
pattern by pattern, over what the rows at hand do not show.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from bncli.engine.kernels.arrays import Array, Index, Mask, log_sum
from bncli.engine.model import Path
from bncli.engine.structures.region_graph import Region, maximal
from bncli.engine.structures.structure import Family

Scores = Array | Sequence[Array]
"""(R, rows), or R arrays (rows,)."""
Averages = tuple[Array | None, ...]
"""By attribute, the frequencies that an unknown value is averaged with; None for the family's own attribute."""
GATHERED_ENTRIES = 1 << 18
"""Entries gathered at a time for the unknown rows of a wide factor."""


@dataclass(frozen=True)
class Factor:
    """tables (R, cells), R score rows; the cell is the mixed-radix number of the codes at `positions` (`cells_of`)."""

    positions: tuple[int, ...]
    shape: tuple[int, ...]
    tables: Array

    def add_to(self, scores: Scores, codes: Sequence[Index]) -> None:
        """Add the entry of every row to scores (R, rows); codes[p] (rows,) are the codes at position p."""
        cells = cells_of([codes[p] for p in self.positions], self.shape)
        found = np.empty(len(cells))
        for row, table in zip(scores, self.tables, strict=True):
            np.take(table, cells, out=found, mode="clip")
            row += found


@dataclass(frozen=True)
class WideFactor:
    """Like `Factor`, without the code "unobserved" in the table: code shape[i] means that digit i is unknown."""

    positions: tuple[int, ...]
    shape: tuple[int, ...]
    tables: Array
    averages: Averages

    def add_to(self, scores: Scores, codes: Sequence[Index]) -> None:
        """Add the entry of every row, averaged over its unknown values, to scores (R, rows)."""
        digits = [codes[p] for p in self.positions]
        unknown = np.array([digit == n for digit, n in zip(digits, self.shape, strict=True)])
        rows = np.flatnonzero(unknown.any(axis=0))
        cells = cells_of([np.where(u, 0, digit) for u, digit in zip(unknown, digits, strict=True)], self.shape)
        for row, table in zip(scores, self.tables, strict=True):
            found = np.take(table, cells, mode="clip")
            found[rows] = 0.0
            row += found
        for pattern in np.unique(unknown[:, rows], axis=1).T:
            alike = rows[(unknown[:, rows] == pattern[:, None]).all(axis=0)]
            self._add_averages(scores, alike, cells[alike], pattern)

    def _add_averages(self, scores: Scores, rows: Index, cells: Index, pattern: Mask) -> None:
        """scores[:, rows] += the averages of rows that have the same digits unknown, these being 0 in `cells`."""
        hidden = [i for i in range(len(self.shape)) if pattern[i]]
        offsets, weights = np.zeros(1, dtype=np.intp), np.ones(1)
        for i in hidden:
            average = self.averages[i]
            if average is None:
                return
            stride = int(np.prod(self.shape[i + 1 :], dtype=np.intp))
            offsets = np.add.outer(offsets, stride * np.arange(self.shape[i])).ravel()
            weights = np.multiply.outer(weights, average).ravel()
        step = max(1, GATHERED_ENTRIES // offsets.size)
        for start in range(0, rows.size, step):
            block = slice(start, start + step)
            for row, table in zip(scores, self.tables, strict=True):
                row[rows[block]] += table[cells[block, None] + offsets] @ weights


LEAST_PROBABILITY = 1e-280
"""Averages below it may have lost digits."""
_TINY = float(np.finfo(np.float64).tiny)
_STEEPEST = 690.0
"""Of a difference whose exp, and that of its negative, are neither infinite nor 0."""
LEAST_WEIGHT = 1e-17
Change = tuple[int, int]
"""Index of a family of the path, or -1 for the class alone; the change of its counting number."""


@dataclass(frozen=True)
class PathStage:
    """`hosts`: family by family of the path what is added over its cells; `class_change`: what is left of the class."""

    weight: float
    class_change: int
    hosts: tuple[tuple[int, tuple[Change, ...]], ...]


EXPANDED_ENTRIES = 1 << 20
"""A table is expanded when the result holds at most so many entries, or at most twice as many as before."""
Term = tuple[int, Region, Array]
"""A factor c, attributes R in the order of the region around them, and an array (values of each ..., K)."""


class SubmodelTensors:
    """The submodels of a path, shape (cardinalities ..., K), plain or expanded; index -1 is the class alone."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._expanded: dict[int, Array] = {-1: path.class_logs}

    def plain(self, f: int) -> Array:
        return self.path.class_logs if f < 0 else self.path.logs[f].reshape(*self.path.families[f].shape, -1)

    def expanded(self, f: int) -> Array:
        if f not in self._expanded:
            self._expanded[f] = expand_submodel(self.plain(f))
        return self._expanded[f]

    def attributes(self, f: int) -> tuple[int, ...]:
        return () if f < 0 else self.path.families[f].attributes


@dataclass(frozen=True)
class RegionFactor:
    """The table of a large region: tables (R, cells), and the terms it is made of for rows that do not show it all.

    Code shape[i] means that digit i, `region[i]`, is unknown.
    """

    positions: tuple[int, ...]
    region: tuple[int, ...]
    shape: tuple[int, ...]
    tables: Array
    terms: tuple[Term, ...]

    def add_to(self, scores: Array, codes: Sequence[Index]) -> None:
        """Add the entry of every row to scores (R, rows)."""
        digits = [codes[p] for p in self.positions]
        unknown = np.array([digit == n for digit, n in zip(digits, self.shape, strict=True)])
        patterns, of_row = np.unique(unknown, axis=1, return_inverse=True)
        for k, pattern in enumerate(patterns.T):
            rows = np.flatnonzero(of_row.ravel() == k)
            known = [axis for axis, hidden in enumerate(pattern) if not hidden]
            tables = self.tables if len(known) == len(pattern) else self._margin(known)
            cells = cells_of([digits[a][rows] for a in known], [self.shape[a] for a in known]) if known else 0
            scores[:, rows] += tables[:, cells] if known else tables

    def _margin(self, known: Sequence[int]) -> Array:
        """Return what the table is to rows that show only these axes, (R, cells of these)."""
        shown = tuple(self.region[a] for a in known)
        terms = [
            (
                change,
                tuple(i for i in region if i in shown),
                log_margin(table, [axis for axis, i in enumerate(region) if i not in shown]),
            )
            for change, region, table in self.terms
        ]
        table = sum_over(shown, [self.shape[a] for a in known], terms)
        return score_rows(table.reshape(-1, table.shape[-1]))


def cells_of(digits: Sequence[Index], shape: Sequence[int]) -> Index:
    """Mixed-radix number of the digits, the first the most significant."""
    cells = digits[0]
    for digit, n in zip(digits[1:], shape[1:], strict=True):
        cells = cells * n
        cells += digit
    return cells


def expand(tensor: Array, averages: Averages) -> Array:
    """Return (R, n_1, n_2, ...) -> (R, n_1 + 1, n_2 + 1, ...): the last code of every axis stands for "unobserved"."""
    for axis, frequencies in enumerate(averages, start=1):
        if frequencies is None:
            unobserved = np.zeros_like(tensor.take(0, axis))
        else:
            unobserved = np.tensordot(tensor, frequencies, axes=(axis, 0))
        tensor = np.concatenate([tensor, np.expand_dims(unobserved, axis)], axis=axis)
    return tensor


def score_rows(weights: Array) -> Array:
    """Return (cells, K) -> (K, cells), or (1, cells) for two classes: second minus first."""
    rows: Array = np.ascontiguousarray(weights.T)
    if len(rows) == 2:
        rows = rows[1:] - rows[:1]
    return rows


def log_softmax(scores: Array, out: Array) -> None:
    """Write ln P over the classes into out (K, rows); for two, log P(1) = min(d, 0) - log(1 + exp(-|d|))."""
    if len(out) == 2:
        difference = scores[0]
        log_sum = np.log1p(np.exp(-np.abs(difference)))
        np.minimum(difference, 0.0, out=out[1])
        np.minimum(-difference, 0.0, out=out[0])
        out -= log_sum
        return
    np.subtract(scores, scores.max(axis=0), out=out)
    out -= np.log(np.exp(out).sum(axis=0))


def add_softmax(scores: Array, weight: float, out: Array) -> None:
    """Add weight P to out (K, rows); both probabilities of two classes keep their digits, however small."""
    if len(out) == 2:
        odds = np.clip(scores[0], -_STEEPEST, _STEEPEST)
        np.exp(odds, out=odds)
        share = odds + 1.0
        np.divide(weight, share, out=share)
        out[0] += share
        share *= odds
        out[1] += share
        return
    shares = scores - scores.max(axis=0)
    np.exp(shares, out=shares)
    shares *= weight / shares.sum(axis=0)
    out += shares


def log_shares(out: Array) -> None:
    """Replace (K, rows) by ln of each row's shares of their sum; a share of 0 counts as the least positive number."""
    if len(out) != 2:
        out /= out.sum(axis=0)
        np.log(np.maximum(out, _TINY, out=out), out=out)
        return
    second = out[1] > out[0]
    odds = np.minimum(out[0], out[1]) / np.maximum(out[0], out[1])
    larger = np.log1p(odds)
    smaller = np.log(np.maximum(odds, _TINY, out=odds), out=odds)
    np.negative(larger, out=larger)
    smaller += larger
    out[0] = np.where(second, smaller, larger)
    out[1] = np.where(second, larger, smaller)


def log_average(scores: Sequence[Array], weights: Sequence[float], out: Array) -> None:
    """Return ln of the weighted average of the probabilities of several models, (R, rows) each; weights sum to 1."""
    out[:] = 0.0
    for one, weight in zip(scores, weights, strict=True):
        add_softmax(one, weight, out)
    rare = np.flatnonzero(out.min(axis=0) < LEAST_PROBABILITY)
    log_shares(out)
    if rare.size:
        out[:, rare] = _log_average_in_logs([one[:, rare] for one in scores], weights, len(out))


def _log_average_in_logs(scores: Sequence[Array], weights: Sequence[float], n_labels: int) -> Array:
    terms = np.empty((len(weights), n_labels, scores[0].shape[1]))
    for term, one, weight in zip(terms, scores, weights, strict=True):
        log_softmax(one, term)
        term += math.log(weight)
    return normalised(np.asarray(np.logaddexp.reduce(terms)))


def normalised(logs: Array) -> Array:
    """Logarithms of probabilities (K, rows) that sum to 1 but for rounding, made to do so, none above 0."""
    return np.asarray(np.minimum(logs - np.logaddexp.reduce(logs, axis=0), 0.0))


def stages_of(path: Path) -> list[PathStage]:
    """Return the stages in the order of their steps; those after the last step with weight are gone."""
    stages, changes = [], defaultdict[int, int](int)
    for step in path.steps:
        for family, change in step.changes:
            changes[family] += change
        if step.weight >= LEAST_WEIGHT:
            stages.append(_stage(path, step.weight, {f: c for f, c in changes.items() if c}))
            changes.clear()
    return stages


def _stage(path: Path, weight: float, changes: dict[int, int]) -> PathStage:
    """Return every change in the first family that contains it, of those that no other contains."""
    regions: dict[int, Region] = {f: path.families[f].attributes if f >= 0 else () for f in changes}
    largest = set(maximal(region for region in regions.values() if region))
    hosts: dict[int, list[Change]] = {f: [] for f, region in regions.items() if region in largest}
    homeless = 0
    for f, change in changes.items():
        home = next((h for h in hosts if set(regions[f]) <= set(regions[h])), None)
        if home is None:
            homeless = change
        else:
            hosts[home].append((f, change))
    return PathStage(weight, homeless, tuple((h, tuple(terms)) for h, terms in hosts.items()))


def compile_host(
    tensors: SubmodelTensors, host: int, changes: Sequence[Change], used: Sequence[int]
) -> Factor | RegionFactor:
    """Return the factor of family `host` of the path, to which these changes go.

    `used` are the attributes of the scorer.
    """
    family = tensors.path.families[host]
    # `used` is ascending: a look-up that is not linear in the attributes
    positions = tuple(bisect_left(used, a) for a in family.attributes)
    shape = tuple(n + 1 for n in family.shape)
    rows = len(score_rows(tensors.path.class_logs[None, :]))
    if rows * math.prod(shape) <= max(EXPANDED_ENTRIES, 2 * rows * family.n_cells):
        terms = ((change, tensors.attributes(f), tensors.expanded(f)) for f, change in changes)
        return Factor(positions, shape, _table(family, shape, terms))
    plain = tuple((change, tensors.attributes(f), tensors.plain(f)) for f, change in changes)
    return RegionFactor(positions, family.attributes, family.shape, _table(family, family.shape, plain), plain)


def _table(family: Family, shape: Sequence[int], terms: Iterable[Term]) -> Array:
    """Return (R, cells of `shape`)."""
    table = sum_over(family.attributes, shape, terms)
    return score_rows(table.reshape(-1, table.shape[-1]))


def sum_over(region: Region, shape: Sequence[int], terms: Iterable[Term]) -> Array:
    """D, shape (*shape, K); every R is a subset of `region` and one of them is all of it."""
    total: Array | None = None
    for factor, attributes, table in terms:
        sizes = dict(zip(attributes, table.shape[:-1], strict=True))
        aligned = table.reshape(*(sizes.get(i, 1) for i in region), -1)
        if total is None:
            total = np.zeros((*shape, aligned.shape[-1]))
        total += factor * aligned
    assert total is not None
    return total


def log_margin(table: Array, axes: Collection[int]) -> Array:
    """Return ln of the sum of exp over these axes, which go."""
    if not axes:
        return table
    summed = tuple(axes)
    return np.asarray(np.squeeze(log_sum(table, summed), summed))


def expand_submodel(table: Array) -> Array:
    """Return (n_1, n_2, ..., K) -> (n_1 + 1, n_2 + 1, ..., K): the last code of every axis stands for "unobserved"."""
    for axis in range(table.ndim - 1):
        table = np.concatenate([table, np.expand_dims(log_margin(table, (axis,)), axis)], axis=axis)
    return table
