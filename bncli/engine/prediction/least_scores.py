"""The minimum of a sum of tables over all inputs, or a lower bound, for sufficient reasons and proofs of properties.

    minimum = constant + min over x of sum over tables f of T_f[x_f]

An input gives each attribute one of its codes, a missing level included; some attributes are fixed. Attributes are
eliminated one after the other. The tables that contain attribute a are replaced by one table over their other
attributes,

    M[others] = min over x_a of the sum of these tables

and the minimiser is read off in the opposite order (non-serial dynamic programming, Bertele & Brioschi 1972; Dechter
1999, Artificial Intelligence 113). For a tree this is dynamic programming from the leaves. For tables over single
attributes it is a sum of minima. The next attribute is the one with the smallest joint table; ties go to the first.

If the joint table would have more than MOST_CELLS cells, the tables are partitioned into groups that are minimised
separately (mini-buckets, Dechter & Rish 2003, JACM 50). Then the result is a lower bound, and `Minimiser.exact` is
False.

Conventions: the code one past the last of an attribute means "unobserved". A fixed attribute may have it; an attribute
that is not fixed may have it only if it is UNKNOWN. Ties go to the lowest code, from the attribute eliminated last to
the first. Many inputs are processed at once. Cost per input: one pass over the cells of all joint tables.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from bncli.engine.data.schema import Schema
from bncli.engine.kernels.arrays import Array, Index, Mask
from bncli.engine.model import Ensemble, Path, Pool, Predictor, Tables
from bncli.engine.prediction.factors import LEAST_WEIGHT, expand, unobserved_averages
from bncli.errors import ModelError

MOST_CELLS = 1 << 16
"""The maximum number of cells of a joint table of several tables."""
MOST_ENTRIES = 1 << 24
"""The maximum number of entries of all tables together, over the codes of the schema and "unobserved"."""
ALWAYS_INPUTS = 1 << 20
"""Models with at most this many inputs are exempt from MOST_ENTRIES: their tables are not much larger."""
_NUMBERS_PER_BLOCK = 1 << 19
FREE, UNKNOWN = -1, -2
"""Values that replace the code of an attribute that is not fixed; with UNKNOWN it may also be "unobserved"."""


class Table(NamedTuple):
    """A table over the attributes at `positions`, ascending; the last code on each axis may stand for "unobserved"."""

    positions: tuple[int, ...]
    values: Array


@dataclass(frozen=True)
class ScoreTables:
    """Scores S[y] = bias[y] + sum over the tables, whose last axis is the class.

    The last code of each attribute in the tables is "unobserved". cardinalities: the number of codes of each attribute
    used, without "unobserved".
    """

    cardinalities: tuple[int, ...]
    bias: Array
    tables: tuple[Table, ...]

    @classmethod
    def of(cls, tables: Tables, schema: Schema, used: Sequence[int], hint: str) -> ScoreTables:
        """Return the scores of tables, over the codes of the attributes `used` and with entries for "unobserved".

        Raises ModelError with `hint` if there would be too many entries.
        """
        place = {a: position for position, a in enumerate(used)}
        sums: dict[tuple[int, ...], Array] = {}
        scopes = {frozenset(family.attributes) for family in tables.families if family.by_class}
        n_entries = tables.bias.size * sum(math.prod(schema.cardinalities[a] + 1 for a in scope) for scope in scopes)
        if n_entries > MOST_ENTRIES and math.prod(schema.cardinalities[a] for a in used) > ALWAYS_INPUTS:
            what = f"bounds over all inputs would need {n_entries:,} table entries, more than {MOST_ENTRIES:,}"
            raise ModelError(what, hint=hint)
        for family, weights in zip(tables.families, tables.weights, strict=True):
            if not family.by_class:
                continue
            values = expand(weights.T.reshape(-1, *family.shape), unobserved_averages(family, schema))
            for axis, (_, grouping) in enumerate(family.binned_attributes, start=1):
                if grouping is not None:
                    # over the attribute's own codes, with "unobserved" as the last
                    values = values.take((*grouping, max(grouping) + 1), axis=axis)
            positions = [place[a] for a in family.attributes]
            order = np.argsort(positions).tolist()
            key = tuple(positions[i] for i in order)
            # from (K, axes in the family's order) to (axes in the order of positions, K)
            ordered = values.transpose(*(i + 1 for i in order), 0)
            sums[key] = sums[key] + ordered if key in sums else ordered
        return cls(
            tuple(schema.cardinalities[a] for a in used), tables.bias, tuple(Table(*pair) for pair in sums.items())
        )

    def contrast(self, weights: Array) -> Contrast:
        """Return sum over y of weights[y] S[y] as a function of inputs; weights (K,)."""
        tables = tuple(Table(positions, values @ weights) for positions, values in self.tables)
        return Contrast(self.cardinalities, float(self.bias @ weights), tables)


def components_of(predictor: Predictor, schema: Schema, used: Sequence[int]) -> list[ScoreTables]:
    """Return the score tables of a predictor, one `ScoreTables` for each model whose probabilities it averages.

    Raises ModelError if the tables have too many entries.
    """
    hint = "fit with a lower --max-order, fewer --bins, or --structure tan"
    if isinstance(predictor, Ensemble):
        hint = "fit with --structure interactions or tan, whose tables are smaller than those of boosted trees"
    if isinstance(predictor, Path):
        parts = [predictor.tables(s) for s, step in enumerate(predictor.steps) if step.weight >= LEAST_WEIGHT]
    elif isinstance(predictor, Ensemble):
        logarithmic = predictor.pool is Pool.LOGARITHMIC
        parts = [predictor.combined] if logarithmic else [component.tables for component in predictor.components]
    else:
        parts = [predictor]
    return [ScoreTables.of(tables, schema, used, hint) for tables in parts]


@dataclass(frozen=True)
class Contrast:
    """A function of inputs: constant + sum over the tables.

    The last code of each attribute in the tables is "unobserved".
    """

    cardinalities: tuple[int, ...]
    constant: float
    tables: tuple[Table, ...]

    def values(self, codes: Index) -> Array:
        """Return the values (N,) at inputs (N, attributes)."""
        total = np.full(len(codes), self.constant)
        for positions, values in self.tables:
            total += values[tuple(codes[:, p] for p in positions)]
        return total

    def minimise(self, fixed: Index) -> tuple[Array, Index]:
        """Return minima (N,) and minimisers (N, attributes), given `fixed` (N, attributes).

        An entry of `fixed` is a code, FREE or UNKNOWN. If `exact` is False or an attribute is unobserved or UNKNOWN,
        the minimum may be only a lower bound, and the input that is returned may have a higher value.
        """
        has_unobserved = ((fixed == self.cardinalities) | (fixed == UNKNOWN)).any()
        return (self.with_unobserved if has_unobserved else self.observed).minimise(fixed)

    def game(self, own: Index, members: Mask, candidates: Mask, most: int) -> Game:
        """Return the game that bounds the minima if up to `most` candidates are fixed besides the members.

        own (N, attributes): the codes at which attributes are fixed. members (N, attributes): whether an attribute is
        fixed. candidates (N, attributes): whether it may be fixed.
        """
        has_unobserved = (own == self.cardinalities).any()
        return Game(self.with_unobserved if has_unobserved else self.observed, own.T, members.T, candidates.T, most)

    @property
    def exact(self) -> bool:
        """Whether `minimise` returns exact minima for observed inputs, rather than lower bounds."""
        return self.observed.exact

    @cached_property
    def observed(self) -> Minimiser:
        """The minimiser for inputs whose attributes are all observed; its tables lack "unobserved"."""
        tables = [Table(t.positions, t.values[(slice(-1),) * len(t.positions)]) for t in self.tables]
        return Minimiser(self.cardinalities, self.constant, tables)

    @cached_property
    def with_unobserved(self) -> Minimiser:
        """The minimiser for inputs that may have unobserved attributes."""
        return Minimiser([n + 1 for n in self.cardinalities], self.constant, self.tables, free=self.cardinalities)


class _Bucket(NamedTuple):
    """A joint table from which one attribute is eliminated.

    others: the positions of its other attributes, ascending. values: the sum of the tables, with shape (codes of the
    others, ..., codes of the attribute). own_messages: the indices of earlier buckets whose messages depend on the
    attribute alone. messages: pairs (index of another earlier bucket, axes of the joint table that its message lacks).
    """

    attribute: int
    others: tuple[int, ...]
    values: Array
    own_messages: tuple[int, ...]
    messages: tuple[tuple[int, tuple[int, ...]], ...]

    def at(self, codes: Index) -> Array:
        """Return the sum of tables (codes of the attribute, N) at the codes (attributes, N) of the others."""
        index = tuple(codes[p] for p in self.others)
        return self.values[index].T if index else self.values[:, None]


class Minimiser:
    """A minimiser of a sum of tables; free (attributes,): the number of codes that an attribute may take if it is FREE.

    sizes (attributes,): the number of codes on the axes of the tables, which is also the default of `free`.
    """

    def __init__(
        self, sizes: Sequence[int], constant: float, tables: Sequence[Table], free: Sequence[int] | None = None
    ) -> None:
        self._sizes, self._constant = tuple(sizes), constant
        self._free = self._sizes if free is None else tuple(free)
        self.exact = True
        self._buckets: list[_Bucket] = []
        self._members: dict[int, list[int]] = {}
        """The indices of the buckets of each attribute."""
        pending: list[tuple[tuple[int, ...], Array | int]] = [(t.positions, t.values) for t in tables]
        left = sorted({p for t in tables for p in t.positions})
        while left:
            attribute = min(left, key=lambda a: self._n_cells({p for scope, _ in pending if a in scope for p in scope}))
            left.remove(attribute)
            chosen = [part for part in pending if attribute in part[0]]
            pending = [part for part in pending if attribute not in part[0]]
            groups: list[list[tuple[tuple[int, ...], Array | int]]] = []
            for part in sorted(chosen, key=lambda part: -self._n_cells(part[0])):
                for group in groups:
                    if self._n_cells({p for scope, _ in (*group, part) for p in scope}) <= MOST_CELLS:
                        group.append(part)
                        break
                else:
                    groups.append([part])
            # Split into several groups, an attribute may take a different value in each: only a lower bound remains.
            self.exact &= len(groups) == 1
            for group in groups:
                others = tuple(sorted({p for scope, _ in group for p in scope} - {attribute}))
                pending.append((others, len(self._buckets)))
                self._members.setdefault(attribute, []).append(len(self._buckets))
                self._buckets.append(self._bucket(attribute, others, group))
        self._roots = [number for _, number in pending if isinstance(number, int)]
        self._step = max(1, _NUMBERS_PER_BLOCK // max((b.values.size for b in self._buckets), default=1))

    def _n_cells(self, positions: Sequence[int] | set[int]) -> int:
        return math.prod(self._sizes[p] for p in positions)

    def _bucket(
        self, attribute: int, others: tuple[int, ...], parts: Sequence[tuple[tuple[int, ...], Array | int]]
    ) -> _Bucket:
        axes = (*others, attribute)
        total = np.zeros([self._sizes[p] for p in axes])
        own_messages, messages = [], []
        for positions, part in parts:
            if isinstance(part, int):
                if positions == (attribute,):
                    own_messages.append(part)
                else:
                    messages.append((part, tuple(i for i, p in enumerate(axes) if p not in positions)))
                # a message has its axes in ascending order, and the attribute is the last axis here
                continue
            # the axes of the table in the order of the bucket, with length 1 where it lacks one
            order = sorted(range(len(positions)), key=lambda i: axes.index(positions[i]))
            shape = [self._sizes[p] if p in positions else 1 for p in axes]
            total += part.transpose(order).reshape(shape)
        return _Bucket(attribute, others, total, tuple(own_messages), tuple(messages))

    def minimise(self, fixed: Index) -> tuple[Array, Index]:
        """Return the minimum (N,) and a minimiser (N, attributes) for each row of `fixed` (N, attributes).

        If `exact` is False, the minimum is only a lower bound, and the input returned may have a higher value.
        """
        least, minimisers = np.empty(len(fixed)), np.empty(fixed.shape, np.intp)
        for start in range(0, len(fixed), self._step):
            part = fixed[start : start + self._step]
            forbidden: dict[int, Array] = {}
            """For each attribute, an array (codes, N): 0 for a code that it may take, infinity for any other."""
            for a in self._members:
                codes, own = np.arange(self._sizes[a])[:, None], part[:, a]
                # own (N,): a code allows itself only, FREE the codes of the schema, UNKNOWN all
                is_allowed = np.where(own == FREE, codes < self._free[a], (codes == own) | (own == UNKNOWN))
                forbidden[a] = np.where(is_allowed, 0.0, np.inf)
            messages: list[Array] = []
            for bucket in self._buckets:
                # those over the attribute alone first: their sum is small
                total = forbidden[bucket.attribute]
                for number in bucket.own_messages:
                    total = total + messages[number]
                total = bucket.values[..., None] + total
                for number, lacking in bucket.messages:
                    total += self._aligned(messages[number], number, bucket, lacking)
                # total is (codes of the others ..., codes of the attribute, N)
                messages.append(total.min(axis=-2))
            values = np.full(len(part), self._constant)
            for number in self._roots:
                values += messages[number]
            # code 0 for free attributes until they are chosen below
            result = np.maximum(part.T, 0)
            rows = np.arange(len(part))
            # Backwards through the elimination: the attributes that a message depends on already have their values.
            for a in reversed(self._members):
                own_values = forbidden[a]
                for number in self._members[a]:
                    bucket = self._buckets[number]
                    # the objective as a function of this attribute's code, given those chosen already, (codes, N)
                    own_values = own_values + bucket.at(result)
                    for earlier in (*bucket.own_messages, *(earlier for earlier, _ in bucket.messages)):
                        own_values = own_values + messages[earlier][(*self._digits(earlier, a, result), rows)]
                result[a] = own_values.argmin(axis=0)
            least[start : start + self._step], minimisers[start : start + self._step] = values, result.T
        return least, minimisers

    def _digits(self, number: int, attribute: int, codes: Index) -> list[Index]:
        """Return the index arrays that read a message at `codes` (attributes, N), for every code of the attribute.

        number: the index of the bucket that sent the message. The arrays broadcast to (codes of the attribute, N).
        """
        scope = self._buckets[number].others
        return [np.arange(self._sizes[p])[:, None] if p == attribute else codes[p] for p in scope]

    def _aligned(
        self, message: Array, number: int, bucket: _Bucket, lacking: tuple[int, ...], leading: int = 0
    ) -> Array:
        """Return a message with its axes aligned to the bucket's joint table, after `leading` axes of its own.

        number: the index of the bucket that sent the message. lacking: the axes that it lacks, which get length 1.
        """
        axes = (*bucket.others, bucket.attribute)
        scope = self._buckets[number].others
        order = sorted(range(len(scope)), key=lambda i: axes.index(scope[i]))
        # (leading, axes in the bucket's order, N)
        ordered = message.transpose(*range(leading), *(i + leading for i in order), -1)
        return np.expand_dims(ordered, tuple(i + leading for i in lacking))


class Game:
    """A game between a player who fixes attributes at the codes `own` and an opponent who chooses the other codes.

    Its value is an upper bound on the minimum of the sum if the `members` and any k of the `candidates` are fixed. The
    arrays own, members and candidates are (attributes, N). The attributes are played in the reverse order of
    elimination. At a candidate, the player may add the attribute to the set. If an attribute is not in the set, the
    opponent chooses the code that minimises the final value ("unobserved" only if `own` has it). The player may look at
    the codes chosen before, so the value is at least the minimum for any single set. For tables over single attributes
    some set attains it.

    bound (most + 1, N): the value for k = 0, 1, ..., `most`; infinite if the minimiser is not exact.
    """

    def __init__(self, minimiser: Minimiser, own: Index, members: Mask, candidates: Mask, most: int) -> None:
        self._minimiser, self._own, self._most = minimiser, own, most
        self._members, self._candidates = members, candidates
        sizes, free, buckets = minimiser._sizes, minimiser._free, minimiser._buckets
        rows = np.arange(own.shape[1])
        self._messages: list[Array] = []
        """For each bucket, the value with up to k added attributes among those eliminated so far.

        The shape is (maximum k + 1, codes of the others, ..., N).
        """
        if not minimiser.exact:
            self.bound = np.full((most + 1, len(rows)), np.inf)
            return
        for bucket in buckets:
            a = bucket.attribute
            # (k + 1, codes of the others ..., codes of a, N): the value with 0, ..., k of the attributes so far added
            total = np.zeros((1, sizes[a], 1))
            for number in bucket.own_messages:
                total = _add_budgets(total, self._messages[number], most)
            total = bucket.values[None, ..., None] + total.reshape(
                len(total), *(1 for _ in bucket.others), sizes[a], -1
            )
            for number, lacking in bucket.messages:
                total = _add_budgets(
                    total, minimiser._aligned(self._messages[number], number, bucket, lacking, 1), most
                )
            at_own = total[..., own[a], rows if total.shape[-1] > 1 else 0]
            # not added: the opponent's choice, or the own code if `a` is a member already
            kept = total[..., : free[a], :].min(axis=-2)
            if free[a] < sizes[a]:
                kept = np.where(own[a] == free[a], np.minimum(kept, at_own), kept)
            kept = np.where(members[a], at_own, kept)
            message = np.empty((min(len(kept), most) + 1, *kept.shape[1:]))
            message[: len(kept)] = kept
            message[len(kept) :] = kept[-1]
            # added: the own code, at the cost of one of the budget
            added = np.where(candidates[a], at_own[: len(message) - 1], -np.inf)
            np.maximum(message[1:], added, out=message[1:])
            self._messages.append(message)
        bound = np.full((1, len(rows)), minimiser._constant)
        for number in minimiser._roots:
            bound = _add_budgets(bound, self._messages[number], most)
        self.bound = np.concatenate([bound, np.repeat(bound[-1:], most + 1 - len(bound), axis=0)])

    def choices(self, rows: Index, budget: Index) -> Mask:
        """Return the sets (attributes, rows) that the player chooses for the given rows with budgets (rows,).

        At each choice the opponent's worst code is assumed. The sets are good guesses, but not always the best.
        """
        minimiser, own, candidates = self._minimiser, self._own[:, rows], self._candidates[:, rows]
        sizes, free, buckets = minimiser._sizes, minimiser._free, minimiser._buckets
        chosen, codes = self._members[:, rows], own.copy()
        budgets = np.zeros((len(buckets), len(rows)), np.intp)
        place = np.arange(len(rows))
        roots = {number: self._messages[number][:, rows] for number in minimiser._roots}
        # the whole budget is divided among the roots, and below among the messages of each bucket
        self._divide(budget, np.full((1, len(rows)), minimiser._constant), roots, budgets)
        # from the last eliminated attribute to the first, so that the codes of the others are known
        for number in reversed(range(len(buckets))):
            bucket, budget = buckets[number], budgets[number]
            a = bucket.attribute
            values = bucket.at(codes)
            gathered = {}
            for earlier in (*bucket.own_messages, *(earlier for earlier, _ in bucket.messages)):
                index: tuple[Any, ...] = (slice(None), *minimiser._digits(earlier, a, codes), rows)
                gathered[earlier] = self._messages[earlier][index]
            total = values[None]
            for part in gathered.values():
                total = _add_budgets(total, part, self._most)
            total = np.broadcast_to(total, (*total.shape[:-1], len(rows)))
            # the value for each code of a if the attribute itself is not added, (codes, N)
            with_budget = total[np.minimum(budget, len(total) - 1), :, place].T
            is_barred = (np.arange(sizes[a])[:, None] >= free[a]) & (own[a] < free[a])
            code = np.where(is_barred, np.inf, with_budget).argmin(axis=0)
            # the value at the own code if it is added
            one_less = total[np.clip(budget - 1, 0, len(total) - 1), own[a], place]
            takes = candidates[a] & ~chosen[a] & (budget > 0) & (one_less >= with_budget[code, place])
            chosen[a] |= takes
            codes[a] = np.where(chosen[a], own[a], code)
            at_code = {earlier: part[:, codes[a], place] for earlier, part in gathered.items()}
            self._divide(
                budget - takes, np.broadcast_to(values, total.shape[1:])[codes[a], place][None], at_code, budgets
            )
        return chosen

    def _divide(self, budget: Index, first: Array, parts: dict[int, Array], budgets: Index) -> None:
        """Divide `budget` (N,) among the buckets in `parts` so that the sum of their values is largest.

        first (1, N): a value that needs no budget. parts: maps the index of a bucket to its values (k + 1, N) with
        budgets 0, ..., k. The result is written into budgets (buckets, N).
        """
        if len(parts) == 1:
            for number, part in parts.items():
                budgets[number] = np.minimum(budget, len(part) - 1)
            return
        rows = np.arange(len(budget))
        totals = [first]
        for part in parts.values():
            totals.append(_add_budgets(totals[-1], part, self._most))
        for number, total in zip(reversed(parts), reversed(totals[:-1]), strict=True):
            part = parts[number]
            own = np.arange(len(part))[:, None]
            rest = np.minimum(budget - own, len(total) - 1)
            values = np.where(rest >= 0, part + total[np.maximum(rest, 0), rows], -np.inf)
            budgets[number] = values.argmax(axis=0)
            budget = budget - budgets[number]


def _add_budgets(one: Array, other: Array, most: int) -> Array:
    """Return max over i + j <= k of one[i] + other[j], for k = 0, 1, ... up to at most `most`.

    The values of both must not decrease along the first axis, the budget.
    """
    if len(one) == 1 or len(other) == 1:
        return one + other
    n = min(len(one) + len(other) - 1, most + 1)
    if len(one) < len(other):
        one, other = other, one
    shape = np.broadcast_shapes(one.shape[1:], other.shape[1:])
    total = np.full((n, *shape), -np.inf)
    for j in range(min(len(other), n)):
        # j of the budget for `other`, the rest for `one`
        part = one[: n - j] + other[j]
        target = total[j : j + len(part)]
        np.maximum(target, part, out=target)
    return total
