"""Sufficient reasons: a set of a row's values, if possible a smallest one, that alone fixes the row's decision.

A set S of attributes fixes decision c if every completion of the row's values of S gets the decision c. A completion
gives each other attribute any code of the schema, a missing level included (Shih, Choi & Darwiche 2018, IJCAI;
Marques-Silva, Gerspacher, Cooper, Ignatiev & Narodytska 2020, NeurIPS). With scores that are sums of tables this is a
condition on minima over completions (`prediction.least_scores`):

    more than two classes   the minimum of S[c] - S[d] is >= 0 for every d (> 0 if d < c)
    two classes             the minimum and the maximum of S[1] - S[0] lie in an interval in which c is decided

The second form holds for any threshold, costs, calibration or prior, since all of them are monotone in S[1] - S[0].

Search. `Contrast.game` bounds how far k more attributes can raise the minimum. This gives a lower bound on the size of
a set, and a first guess. For tables over single attributes and one condition the guess is the answer; for several
conditions weighted sums of them are bounded too. Otherwise attributes are added to the guess until it fixes the
decision, and removed while it does. Then branch and bound looks for a smaller set, unless the minima are only lower
bounds. If a guess does not fix the decision, some completion gets another decision, and every set that fixes the
decision has one of the attributes in which this completion differs from the row. A node has one child for each of the
_BRANCHES attributes of largest gain: the child adds its attribute and excludes the attributes of the children before
it. One more child excludes all of these attributes.

Conventions: rows with equal values have the same answer, found once. Sums within TIE of 0 count as 0. For an average of
several models, conditions on each model are used, which are sufficient but not necessary. The same holds for a rule
with equal decisions below and above an interval. In both cases the set is not known to be smallest, nor is it if the
time per row has run out. A value that the model does not know can be in a set; if it is not, the completions include it
besides the known values. If missing values are marginalized, it is in no set. Cost: about a bound and a minimisation
per node; the nodes of many rows are evaluated together.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bncli.engine.calibration import Temperature
from bncli.engine.kernels.arrays import Array, Codes, Index, Mask
from bncli.engine.model import DecisionRule, Model
from bncli.engine.prediction.least_scores import FREE, UNKNOWN, Contrast, components_of
from bncli.engine.prediction.marginalization import network_to_marginalize
from bncli.engine.prediction.scoring import write_log_softmax
from bncli.errors import ModelError

TIE = 1e-12
_NODES_PER_ROW = 16
"""The maximum number of nodes per row that are evaluated at a time."""
_BRANCHES = 2
"""The maximum number of children of a node that add an attribute; one more child excludes all of these attributes."""
_BLOCK = 1 << 12
"""The maximum number of nodes that are bounded at a time."""
_ROUNDS = 12
"""The number of weightings of the conditions that are tried for a bound on all of them together."""
_ROUNDING = 1e-9
_FARTHEST = 1e4
"""Beyond this absolute difference of scores, probabilities no longer change."""


class Reasons(NamedTuple):
    """Sets of values that fix the decisions of N rows.

    members (N, attributes): whether an attribute is in the row's set. exact (N,): whether it is proven that no smaller
    set fixes the decision. at_least (N,): a lower bound on the size of any set that fixes the decision.
    """

    members: Mask
    exact: Mask
    at_least: Index


class Condition(NamedTuple):
    """The condition that the contrast is at least `least` for every completion."""

    contrast: Contrast
    least: float


class Interval(NamedTuple):
    """An interval of S[1] - S[0], both ends included, in which the decision is the same."""

    low: float
    high: float
    decision: int


@dataclass(frozen=True)
class _Rows:
    """Distinct rows with the same conditions.

    Each array is (N, attributes): codes; allowed: whether the value may be in a set; free: FREE or UNKNOWN, which
    replaces the code of a value outside the set.
    """

    codes: Index
    allowed: Mask
    free: Index
    conditions: tuple[Condition, ...]


class ReasonSearch:
    """A search for sufficient reasons of rows, whose codes are given for the attributes `used`.

    finish: maps the ln P(y | x_t) (K, N) of the tables to the final ones. decide: maps these to decisions (N,). shift
    (K,): the terms that another prior adds to ln P(y | x_t), or None. seconds: the search time per row, measured by
    `clock`, after which the smallest set found so far is returned. Raises ModelError if the decisions cannot be
    expressed as conditions on sums of tables, or if the tables have too many entries.
    """

    def __init__(
        self,
        model: Model,
        used: Sequence[int],
        finish: Callable[[Array], Array],
        decide: Callable[[Array], Index],
        rule: DecisionRule | None,
        shift: Array | None,
        seconds: float,
        clock: Callable[[], float],
    ) -> None:
        self._components = components_of(model.predictor, model.schema, used)
        self._cardinalities = np.array([model.schema.cardinalities[a] for a in used], np.intp)
        self._n_labels, self._seconds, self._clock = len(model.schema.labels), seconds, clock
        self._decide = decide
        self._marginalizes = network_to_marginalize(model.tables, model.schema) is not None
        self._conditions: dict[int, tuple[Condition, ...]] = {}
        self._intervals: list[Interval] = []
        self._shift, self._temperature = np.zeros(self._n_labels) if shift is None else shift, 1.0
        if self._n_labels == 2:
            self._intervals = decision_intervals(finish, decide, rule)
            return
        calibration = None if model.calibration is None else model.calibration.map
        if isinstance(calibration, Temperature):
            self._temperature = calibration.temperature
        elif calibration is not None:
            what = (
                f"with more than two classes and {calibration.method} calibration, no smallest set of values can be "
                f"found"
            )
            raise ModelError(what, hint="calibrate with bncli calibrate --method temperature")
        if rule is not None and (rule.costs is not None or rule.abstain_below is not None):
            what = "with more than two classes, --because explains the most probable label, not a decision rule"
            raise ModelError(what, hint="leave --costs and --abstain-below out")

    def find(self, codes: Sequence[Codes], log_p: Array) -> Reasons:
        """Return the smallest sets found for rows with codes (N,) per attribute and final ln P(y | x_t) (K, N)."""
        n_rows = log_p.shape[1]
        rows = np.array([column.astype(np.intp) for column in codes], np.intp).reshape(len(codes), n_rows).T
        decisions = self._decide(log_p).astype(np.intp)
        # rows with equal decision and codes are searched once
        distinct, place = np.unique(np.column_stack([decisions, rows]), axis=0, return_inverse=True)
        own, labels = distinct[:, 1:], distinct[:, 0]
        allowed = own < self._cardinalities if self._marginalizes else np.ones(own.shape, bool)
        # any code will do for values that take part in no set
        own = np.where(allowed, own, 0)
        keys = self._interval_numbers(own, labels, allowed) if self._intervals else labels
        members, exact, at_least = allowed.copy(), np.zeros(len(own), bool), np.zeros(len(own), np.intp)
        for key in np.unique(keys[keys >= 0]).tolist():
            chosen = np.flatnonzero(keys == key)
            free = np.where(own[chosen] == self._cardinalities, UNKNOWN, FREE)
            found = _search(
                _Rows(own[chosen], allowed[chosen], free, self._conditions_of(key)), self._seconds, self._clock
            )
            members[chosen], exact[chosen], at_least[chosen] = found
        # conditions that suffice and are not necessary
        decided = [interval.decision for interval in self._intervals]
        is_strict = (len(self._components) > 1) | np.array([decided.count(y) > 1 for y in labels.tolist()], bool)
        exact &= ~(is_strict & members.any(axis=1))
        at_least[is_strict] = 0
        place = place.ravel()
        return Reasons(members[place], exact[place], at_least[place])

    def conditions_for(self, own: Index, decision: int) -> tuple[Condition, ...] | None:
        """Return conditions under which inputs get the decision of the input `own`, or None if rounding decided it."""
        key = decision
        if self._intervals:
            key = int(self._interval_numbers(own[None], np.array([decision]), np.ones((1, len(own)), bool))[0])
        return None if self._intervals and key < 0 else self._conditions_of(key)

    def _interval_numbers(self, own: Index, labels: Index, allowed: Mask) -> Index:
        """Return the index of each row's interval, or -1 if, due to rounding, its decision is not the row's.

        For an average of models, or if some values are not allowed in sets, this is the first interval with the row's
        decision.
        """
        contrast = self._components[0].contrast(np.array([-1.0, 1.0]))
        decided = np.array([interval.decision for interval in self._intervals])
        if len(self._components) > 1 or not allowed.all():
            # the first interval of the decision
            first = np.array([int(np.flatnonzero(np.append(decided, y) == y)[0]) for y in labels], np.intp)
            return np.where(first < len(decided), first, -1)
        at = np.searchsorted([interval.low for interval in self._intervals], contrast.values(own), side="right") - 1
        return np.where(decided[at] == labels, at, -1)

    def _conditions_of(self, key: int) -> tuple[Condition, ...]:
        if key not in self._conditions:
            conditions = []
            for component in self._components:
                if self._intervals:
                    interval = self._intervals[key]
                    weights = np.array([-1.0, 1.0])
                    if interval.low > -_FARTHEST:
                        conditions.append(Condition(component.contrast(weights), interval.low))
                    if interval.high < _FARTHEST:
                        conditions.append(Condition(component.contrast(-weights), -interval.high))
                    continue
                for other in range(self._n_labels):
                    if other != key:
                        weights = np.zeros(self._n_labels)
                        weights[key], weights[other] = 1.0, -1.0
                        # S_c / T + shift_c >= S_d / T + shift_d, as a bound on S_c - S_d
                        least = self._temperature * (self._shift[other] - self._shift[key])
                        tie = TIE if other < key else -TIE
                        conditions.append(Condition(component.contrast(weights), least + tie))
            self._conditions[key] = tuple(conditions)
        return self._conditions[key]


def decision_intervals(
    finish: Callable[[Array], Array], decide: Callable[[Array], Index], rule: DecisionRule | None
) -> list[Interval]:
    """Return the ascending intervals of S[1] - S[0] within which the decision between two labels does not change."""

    def final(difference: float) -> Array:
        log_p = np.empty((2, 1))
        write_log_softmax(np.array([[difference]]), log_p)
        return finish(log_p)

    # the probabilities of the second label at which the decision may change
    changes = {0.5}
    if rule is not None and rule.costs is not None:
        (true_first, wrong_second), (wrong_first, true_second) = rule.costs
        slope = wrong_second - true_first + wrong_first - true_second
        changes = {(wrong_second - true_first) / slope} if slope else set()
    elif rule is not None and rule.threshold is not None:
        changes = {rule.threshold.value}
    if rule is not None and rule.abstain_below is not None:
        changes |= {rule.abstain_below, 1 - rule.abstain_below}
    # ln P changes more finely than P near 1, and for the second label ties go to the first
    crossings = [(-np.inf, -_FARTHEST)]
    for p in sorted(changes):
        if not np.exp(final(-_FARTHEST)[1, 0]) < p <= np.exp(final(_FARTHEST)[1, 0]):
            continue
        below, above = -_FARTHEST, _FARTHEST
        while True:
            # bisection down to neighbouring floating-point numbers
            middle = (below + above) / 2
            if middle in (below, above):
                break
            log_p = final(middle)
            reached = log_p[1, 0] > log_p[0, 0] if p == 0.5 and changes == {0.5} else np.exp(log_p[1, 0]) >= p
            below, above = (below, middle) if reached else (middle, above)
        crossings.append((below, above))
    intervals: list[Interval] = []
    for (_, low), (high, _) in itertools.pairwise([*crossings, (_FARTHEST, np.inf)]):
        # at a bound itself rounding decides
        decision = int(decide(final((max(low, high - 2.0) + min(high, low + 2.0)) / 2))[0])
        if intervals and intervals[-1].decision == decision:
            intervals[-1] = intervals[-1]._replace(high=high)
        else:
            intervals.append(Interval(low, high, decision))
    return intervals


def _search(rows: _Rows, seconds: float, clock: Callable[[], float]) -> tuple[Mask, Mask, Index]:
    """Search for smallest sets; return members (N, attributes), exact (N,) and at_least (N,), as in `Reasons`."""
    everything = np.arange(len(rows.codes))
    nothing = np.zeros(rows.codes.shape, bool)
    at_least, guesses = _bound_sizes(rows, everything, nothing, rows.allowed, rows.allowed.sum(axis=1))
    n_allowed = rows.allowed.sum(axis=1)
    # where all values are needed by the bound, there is nothing to search
    exact = (at_least >= n_allowed) & rows.allowed.all(axis=1)
    members = np.where((at_least >= n_allowed)[:, None], rows.allowed, guesses)
    left = np.flatnonzero(at_least < n_allowed)
    at_least = np.minimum(at_least, n_allowed)
    members[left] = _add_until_fixed(rows, left, members[left])
    if not all(condition.contrast.exact for condition in rows.conditions):
        members[left] = _remove_unneeded(rows, left, members[left])
        return members, exact, at_least
    sizes = members.sum(axis=1)
    fixes = _worst_completions(rows, left, members[left])[0]
    exact[left] = fixes & (sizes[left] == at_least[left])
    open_rows = left[fixes & ~exact[left]]
    members[open_rows] = _remove_unneeded(rows, open_rows, members[open_rows])
    sizes[open_rows] = members[open_rows].sum(axis=1)
    exact[open_rows] = sizes[open_rows] == at_least[open_rows]
    is_open = np.zeros(len(exact), bool)
    is_open[open_rows] = ~exact[open_rows]
    spent = np.zeros(len(rows.codes))
    # the nodes of a row are a stack: the last ones come first
    owners = np.flatnonzero(is_open)
    sets, allowed = nothing[owners], rows.allowed[owners]
    while len(owners):
        began = clock()
        order = np.argsort(owners, kind="stable")
        # position from the end of each row's stack: the last _NODES_PER_ROW are taken
        ends = np.searchsorted(owners[order], owners[order], side="right")
        chosen = np.zeros(len(owners), bool)
        chosen[order] = ends - np.arange(len(order)) <= _NODES_PER_ROW
        at, at_sets, at_allowed = owners[chosen], sets[chosen], allowed[chosen]
        counts = at_sets.sum(axis=1)
        # only sets smaller than the best so far are of interest
        needed, guesses = _bound_sizes(rows, at, at_sets, at_allowed, sizes[at] - 1 - counts)
        left = np.flatnonzero(counts + needed < sizes[at])
        at_sets, at_allowed, guesses, which = at_sets[left], at_allowed[left], guesses[left], at[left]
        fixes, missed, inputs = _worst_completions(rows, which, guesses)
        found = guesses.sum(axis=1)
        # large sets first, so that the smallest is kept
        for i in np.flatnonzero(fixes)[np.argsort(-found[fixes], kind="stable")].tolist():
            if found[i] < sizes[which[i]]:
                members[which[i]], sizes[which[i]] = guesses[i], found[i]
        # nodes whose guess failed, and whose bound still allows a smaller set, are branched
        left = np.flatnonzero(~fixes & (counts[left] + needed[left] < sizes[which]))
        children = _child_nodes(rows, which[left], at_sets[left], at_allowed[left], missed[left], inputs[left])
        np.add.at(spent, at, (clock() - began) / len(at))
        owners = np.concatenate([owners[~chosen], children[0]])
        sets, allowed = np.concatenate([sets[~chosen], children[1]]), np.concatenate([allowed[~chosen], children[2]])
        # nothing smaller is possible, or all nodes were searched
        is_done = is_open & ((sizes == at_least) | (np.bincount(owners, minlength=len(exact)) == 0))
        exact |= is_done
        at_least[is_done] = sizes[is_done]
        is_open &= ~is_done & (spent <= seconds)
        kept = is_open[owners]
        owners, sets, allowed = owners[kept], sets[kept], allowed[kept]
    return members, exact, at_least


def _child_nodes(
    rows: _Rows, which: Index, sets: Mask, allowed: Mask, missed: Index, inputs: Index
) -> tuple[Index, Mask, Mask]:
    """Branch nodes whose worst completions are `inputs`; return the children's rows, sets and allowed attributes.

    Every set that fixes the decision has an attribute in which the completion differs from the row. missed (N,): the
    index of the condition that the completion misses.
    """
    candidates = (inputs != rows.codes[which]) & allowed & ~sets
    gains = np.where(candidates, _gains(rows, which, missed, inputs), -np.inf)
    numbers = np.arange(len(which))
    nodes, allowed = [], allowed.copy()
    for _ in range(_BRANCHES):
        a = gains.argmax(axis=1)
        is_child = gains[numbers, a] > -np.inf
        child = sets.copy()
        child[numbers, a] = True
        # indexing with a mask copies, so later exclusions do not change this node
        nodes.append((numbers[is_child], child[is_child], allowed[is_child]))
        allowed[numbers[is_child], a[is_child]] = False
        gains[numbers, a] = -np.inf
    is_child = (gains > -np.inf).any(axis=1)
    nodes.append((numbers[is_child], sets[is_child], allowed[is_child]))
    # reversed: the most promising child comes last, on top of the stack
    parents, sets, allowed = (np.concatenate(parts) for parts in zip(*reversed(nodes), strict=True))
    order = np.argsort(parents, kind="stable")
    return which[parents[order]], sets[order], allowed[order]


def _bound_sizes(rows: _Rows, which: Index, members: Mask, allowed: Mask, most: Index) -> tuple[Index, Mask]:
    """Return lower bounds (N,) on the number of attributes to add to fix the decision, and guessed sets.

    The sets are (N, attributes). Where the bound exceeds `most` (N,), a higher bound may exist, and the set can be
    `members` itself.
    """
    if all(len(table.positions) == 1 for contrast, _ in rows.conditions for table in contrast.tables):
        return _bound_sizes_of_single_tables(rows, which, members, allowed)
    needed, guesses = np.zeros(len(which), np.intp), members.copy()
    # nodes with similar limits are bounded together
    order = np.argsort(-most, kind="stable")
    for start in range(0, len(which), _BLOCK):
        block = order[start : start + _BLOCK]
        limit = max(int(most[block[0]]), 0)
        left, deciding, games = np.arange(len(block)), np.full(len(block), -1), []
        for number, (contrast, least) in enumerate(rows.conditions):
            nodes = block[left]
            if not len(nodes):
                break
            game = contrast.game(rows.codes[which[nodes]], members[nodes], allowed[nodes], limit)
            # bounds rise with the budget, so the number of insufficient budgets is the smallest sufficient budget
            counts = (game.bound < least - TIE).sum(axis=0)
            deciding[left[counts > needed[nodes]]] = number
            needed[nodes] = np.maximum(needed[nodes], counts)
            games.append((game, nodes))
            left = left[needed[nodes] <= most[nodes]]
        kept = np.full(len(which), -1)
        kept[block[left]] = deciding[left]
        for number, (game, nodes) in enumerate(games):
            chosen = np.flatnonzero(kept[nodes] == number)
            if len(chosen):
                guesses[nodes[chosen]] = game.choices(chosen, needed[nodes[chosen]]).T
    return needed, guesses


def _bound_sizes_of_single_tables(rows: _Rows, which: Index, members: Mask, allowed: Mask) -> tuple[Index, Mask]:
    """Return bounds and guessed sets, as `_bound_sizes` does, if every table is over a single attribute.

    Each condition misses its limit by some amount, and an added attribute makes up a fraction of it. The fractions of
    the added attributes must sum to at least 1 in each condition. The same holds for their weighted average over
    conditions, whatever the weights. Round by round, the weights of conditions that the chosen attributes do not
    satisfy are increased (Plotkin, Shmoys & Tardos 1995).
    """
    own, fixed = rows.codes[which], np.where(members, rows.codes[which], rows.free[which])
    n_conditions, n_attributes = len(rows.conditions), own.shape[1]
    shares = np.zeros((n_conditions, *own.shape))
    is_missed = np.zeros((n_conditions, len(own)), bool)
    for number, (contrast, least) in enumerate(rows.conditions):
        values, inputs = contrast.minimise(fixed)
        missing = least - values
        is_missed[number] = missing > TIE
        where = allowed & is_missed[number][:, None]
        np.divide(_shared_gains(contrast, own, inputs), missing[:, None], out=shares[number], where=where)
    needed, guesses = np.zeros(len(own), np.intp), members.copy()
    is_found = ~is_missed.any(axis=0)
    varying = is_missed.astype(np.float64)
    for number in range(n_conditions + (_ROUNDS if n_conditions > 1 else 0)):
        # each condition alone first, then mixtures of all
        weights = np.where(np.arange(n_conditions)[:, None] == number, is_missed, 0.0)
        if number >= n_conditions:
            weights = varying / np.maximum(varying.sum(axis=0), 1e-300)
        # d: conditions, t: rows, a: attributes
        total = np.einsum("dt,dta->ta", weights, shares)
        # a sum of 1 is reached with the fewest attributes by taking the largest shares first
        order = np.argsort(-total, axis=1, kind="stable")
        made_up = np.cumsum(np.take_along_axis(total, order, axis=1), axis=1)
        counts = np.where(weights.any(axis=0), (made_up < 1 - _ROUNDING).sum(axis=1) + 1, 0)
        chosen = np.zeros(own.shape, bool)
        np.put_along_axis(chosen, order, np.arange(n_attributes) < counts[:, None], axis=1)
        parts = np.einsum("dta,ta->dt", shares, chosen)
        finds = ((parts >= 1) | ~is_missed).all(axis=0)
        # a guess goes with the highest bound; among equal ones, with one that satisfies every condition
        is_better = (counts > needed) | ((counts == needed) & finds & ~is_found)
        guesses[is_better] = members[is_better] | chosen[is_better]
        needed, is_found = np.maximum(needed, counts), np.where(is_better, finds, is_found)
        if number >= n_conditions:
            # conditions whose shares do not yet reach 1 weigh more; steps shrink from round to round
            varying = weights * np.exp((1.5 * 0.8 ** (number - n_conditions)) * np.clip(1 - parts, -9, 9))
    return needed, guesses


def _worst_completions(rows: _Rows, which: Index, members: Mask) -> tuple[Mask, Index, Index]:
    """Return whether each set fixes the decision of its row, (N,), and the worst completion if it does not.

    The worst completion is given by the index of the condition that it misses by the largest amount, (N,), and by its
    codes, (N, attributes). which (N,): the row of each set in `members` (N, attributes).
    """
    fixed = np.where(members, rows.codes[which], rows.free[which])
    worst, missed, inputs = np.zeros(len(which)), np.zeros(len(which), np.intp), fixed
    for number, (contrast, least) in enumerate(rows.conditions):
        values, completions = contrast.minimise(fixed)
        is_worst = least - values > worst
        worst = np.maximum(worst, least - values)
        missed = np.where(is_worst, number, missed)
        inputs = np.where(is_worst[:, None], completions, inputs)
    return worst <= 0, missed, inputs


def _gains(rows: _Rows, which: Index, missed: Index, inputs: Index) -> Array:
    """Return the gain in the missed contrast that `_shared_gains` allocates to each attribute, (N, attributes)."""
    own = rows.codes[which]
    gains = np.empty(own.shape)
    for number in np.unique(missed).tolist():
        chosen = missed == number
        gains[chosen] = _shared_gains(rows.conditions[number].contrast, own[chosen], inputs[chosen])
    return gains


def _add_until_fixed(rows: _Rows, which: Index, members: Mask) -> Mask:
    """Add attributes of largest gain to copies of the sets until they fix the decisions or have all allowed ones."""
    members = members.copy()
    left = np.arange(len(which))
    while len(left):
        fixes, missed, inputs = _worst_completions(rows, which[left], members[left])
        free = rows.allowed[which[left]] & ~members[left]
        is_open = ~fixes & free.any(axis=1)
        left, free = left[is_open], free[is_open]
        gains = _gains(rows, which[left], missed[is_open], inputs[is_open])
        members[left, np.where(free, gains, -1.0).argmax(axis=1)] = True
    return members


def _remove_unneeded(rows: _Rows, which: Index, members: Mask) -> Mask:
    """Return each row's set without the attributes that it does not need, removed one after the other."""
    members = members.copy()
    for a in range(members.shape[1]):
        has = np.flatnonzero(members[:, a])
        if len(has):
            tried = members[has]
            tried[:, a] = False
            members[has[_worst_completions(rows, which[has], tried)[0]], a] = False
    return members


def _shared_gains(contrast: Contrast, own: Index, inputs: Index) -> Array:
    """Allocate the gain of the contrast to the attributes that take the row's values; return shares (N, attributes).

    own, inputs (N, attributes): codes of the rows and of the inputs before the change. In each table, no set of
    attributes gains more than the sum of its shares, but an attribute may gain less alone than its share. The share
    starts with the gain of the attribute alone, if positive. Wherever a larger set gains more than the sum of its
    shares, the excess is split equally among its attributes, small sets first.
    """
    gains = np.zeros(own.shape)
    for positions, values in contrast.tables:
        at_minimum = [inputs[:, p] for p in positions]
        at_own = [own[:, p] for p in positions]
        base = values[tuple(at_minimum)]
        shares = np.zeros((len(positions), len(own)))
        for size in range(1, len(positions) + 1):
            rests = []
            for axes in itertools.combinations(range(len(positions)), size):
                mixed = tuple(at_own[i] if i in axes else at_minimum[i] for i in range(len(positions)))
                # what these attributes add together beyond their shares so far
                rest = values[mixed] - base - shares[list(axes)].sum(axis=0)
                rests.append((axes, np.maximum(rest, 0.0) / size))
            for axes, rest in rests:
                for i in axes:
                    shares[i] = np.maximum(shares[i], rest) if size == 1 else shares[i] + rest
        for p, share in zip(positions, shares, strict=True):
            gains[:, p] += share
    gains[inputs == own] = 0.0
    return gains
