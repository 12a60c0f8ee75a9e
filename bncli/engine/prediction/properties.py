"""Properties of a model, proven or refuted over all inputs.

An input gives each attribute that the model uses one of its codes, a missing level included. There are four kinds of
properties:

    ProbabilityBound    P(label | x) is never above (or below) a number, for inputs with some values fixed
    Trend               P(label | x) never falls (or rises) from one interval of a numeric attribute to the next
    DecidesAlone        no value of an attribute fixes the decision whatever the others are
    Flip                no change of a single value changes the most probable label of an input for which that label's
                        probability is above a number

Each is proven or refuted by a search for a counter-example: bounds on differences of scores (`prediction.least_scores`)
show that there is none, or their minimisers are tried as counter-examples. Flips are first looked for by a local
search, since bounds need a minimisation for each pair of values. With more than two classes, averages of models, or
changes of a value, both may fail. Then the inputs are split by the values of one attribute, and each part is
treated in the same way, until a part has at most MOST_INPUTS inputs, which are all scored. So the answer is exact for
every model whose inputs can be enumerated, and for most larger ones; `prove` gives up when the time has run out.

Conventions: a counter-example is scored by the model itself, and a probability violates a property if it does so by
more than TOLERANCE. Cost: a minimisation for each pair of classes and each part.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from bncli.engine.calibration import Temperature
from bncli.engine.kernels.arrays import Array, Index, Mask
from bncli.engine.model import Model
from bncli.engine.prediction.decision_rules import decide_labels
from bncli.engine.prediction.least_scores import FREE, Contrast, Table, components_of
from bncli.engine.prediction.scoring import compile_scorer, log_probabilities
from bncli.engine.prediction.sufficient_reasons import Condition, ReasonSearch
from bncli.errors import ModelError

MOST_INPUTS = 1 << 16
"""A part of the inputs with at most this many inputs is searched by scoring all of them."""
TOLERANCE = 1e-12
_STARTS = 8
"""The number of random inputs from which the local search for flips starts."""


@dataclass(frozen=True)
class ProbabilityBound:
    """The property that P(label | x) is never above `bound` (sign 1) or never below it (sign -1).

    where: the codes of the fixed attributes, keyed by position; the property concerns the inputs with these codes.
    """

    label: int
    sign: int
    bound: float
    where: Mapping[int, int]


@dataclass(frozen=True)
class Trend:
    """The property that P(label | x) never falls (sign 1) or never rises (sign -1) along a numeric attribute.

    position: the position of the attribute. n_values: the number of its intervals.
    """

    label: int
    sign: int
    position: int
    n_values: int


@dataclass(frozen=True)
class DecidesAlone:
    """The property that no value of the attribute at `position` fixes the decision."""

    position: int


@dataclass(frozen=True)
class Flip:
    """The property that no change of a single value flips a prediction whose probability is above `bound`."""

    bound: float


Property = ProbabilityBound | Trend | DecidesAlone | Flip


class CounterExample(NamedTuple):
    """The codes of an input, keyed by position.

    For `DecidesAlone` it has a single code: the value of the attribute that fixes the decision. changed: the codes that
    differ in a second input, if the property compares two inputs; otherwise empty.
    """

    codes: Mapping[int, int]
    changed: Mapping[int, int]


class Verdict(NamedTuple):
    """The result of a proof: whether the property holds (None if the time ran out), and a counter-example if not."""

    holds: bool | None
    counter_example: CounterExample | None = None


class _OutOfTimeError(Exception):
    """Raised when the time has run out."""


class _Part(NamedTuple):
    """A bound for a part of the inputs: whether it may contain a counter-example, and inputs to try (N, attributes)."""

    may_violate: bool
    tries: Index


class Prover:
    """A prover of properties of a model; `seconds`: the time limit for each property, measured by `clock`.

    Raises ModelError if the tables of the model have too many entries.
    """

    def __init__(self, model: Model, seconds: float, clock: Callable[[], float]) -> None:
        self.scorer = compile_scorer(model)
        self._cardinalities = np.array([model.schema.cardinalities[a] for a in self.scorer.used], np.intp)
        self._components = components_of(model.predictor, model.schema, self.scorer.used)
        # the weights of the models that `components_of` returns
        self._weights = self.scorer.weights or tuple(stage.weight for stage in self.scorer.stages)
        self._labels, self._n_labels = model.schema.labels, len(model.schema.labels)
        self._seconds, self._clock, self._deadline = seconds, clock, math.inf
        calibration = None if model.calibration is None else model.calibration.map
        self._calibration = calibration
        temperature = calibration.temperature if isinstance(calibration, Temperature) else 1.0
        self._temperature: float | None = temperature
        """The temperature that divides the scores: 1 without calibration, None for any other calibration map."""
        if calibration is not None and not isinstance(calibration, Temperature):
            self._temperature = None
        self._decide: Callable[[Array], Index] = partial(decide_labels, model.rule, model.schema.labels)
        self._reasons: ReasonSearch | None = None
        try:
            finish = (lambda log_p: log_p) if calibration is None else calibration.apply
            self._reasons = ReasonSearch(model, self.scorer.used, finish, self._decide, model.rule, None, 0.0, clock)
        except ModelError:
            pass  # without bounds for decisions, inputs are scored one by one

    def prove(self, stated: Property) -> Verdict:
        """Prove or refute a property: return whether it holds for all inputs, and a counter-example if it does not."""
        self._deadline = self._clock() + self._seconds
        try:
            if isinstance(stated, ProbabilityBound):
                return self._prove_bound(stated)
            if isinstance(stated, Trend):
                return self._prove_trend(stated)
            if isinstance(stated, DecidesAlone):
                return self._prove_alone(stated)
            return self._prove_flip(stated)
        except _OutOfTimeError:
            return Verdict(None)

    def decision_for(self, codes: Mapping[int, int]) -> str | None:
        """Return the label decided for an input with these codes, or None if the model abstains.

        codes: keyed by position; all other attributes have the code 0.
        """
        decided = int(self._decide(self.log_p(np.maximum(self._all_inputs(codes), 0)[None]))[0])
        return None if decided < 0 else self._labels[decided]

    def log_p(self, codes: Index) -> Array:
        """Return ln P(y | x), (K, N), of inputs (N, attributes)."""
        columns = [column.astype(np.uint32) for column in codes.T]
        return log_probabilities(self.scorer, columns, len(codes))

    def _search(
        self,
        fixed: Index,
        bound: Callable[[Index], _Part],
        is_violated: Callable[[Index], Index],
    ) -> Index | None:
        """Return an input (attributes,) that violates the property, or None if there is none.

        fixed (attributes,): the codes of the fixed attributes, FREE for the others. bound: returns whether some input
        with given fixed codes may violate the property, and inputs to try. is_violated: returns the indices of the
        inputs (N, attributes) that violate it. Raises _OutOfTimeError after the deadline.
        """
        stack = [fixed]
        while stack:
            part = stack.pop()
            if self._clock() > self._deadline:
                raise _OutOfTimeError
            # a counter-example among the tries ends the search, and a bound that excludes any ends the part
            may_violate, tries = bound(part)
            if len(tries) and len(found := is_violated(tries)):
                return np.asarray(tries[found[0]])
            if not may_violate:
                continue
            free = np.flatnonzero(part == FREE)
            # few enough inputs to try all of them
            if math.prod(self._cardinalities[free].tolist()) <= MOST_INPUTS:
                inputs = np.tile(part, (math.prod(self._cardinalities[free].tolist()), 1))
                grids = np.indices(tuple(self._cardinalities[free].tolist())).reshape(len(free), len(inputs))
                inputs[:, free] = grids.T
                if len(found := is_violated(inputs)):
                    return np.asarray(inputs[found[0]])
                continue
            # divide the part by the attribute whose tables vary most
            a = max(free.tolist(), key=lambda p: self._influence[p])
            for code in range(self._cardinalities[a]):
                child = part.copy()
                child[a] = code
                stack.append(child)
        return None

    @cached_property
    def _influence(self) -> Array:
        """The approximate influence (attributes,) of each attribute on the scores.

        It is the sum over its tables of the largest range of an entry along the attribute.
        """
        influence = np.zeros(len(self._cardinalities))
        for component in self._components:
            for positions, values in component.tables:
                for axis, p in enumerate(positions):
                    influence[p] += np.ptp(values, axis=axis).max()
        return influence

    def _all_inputs(self, where: Mapping[int, int]) -> Index:
        fixed = np.full(len(self._cardinalities), FREE, np.intp)
        for position, code in where.items():
            fixed[position] = code
        return fixed

    def _input_pair(self, one: int, other: int) -> Array:
        weights = np.zeros(self._n_labels)
        weights[one], weights[other] = 1.0, -1.0
        return weights

    def _prove_bound(self, stated: ProbabilityBound) -> Verdict:
        sign, label = stated.sign, stated.label
        others = [d for d in range(self._n_labels) if d != label]
        # -sign (S[label] - S[d]) is minimised, for every model of an average
        contrasts = [[c.contrast(-sign * self._input_pair(label, d)) for d in others] for c in self._components]

        def bound(part: Index) -> _Part:
            extreme, tries = 0.0, []
            for weight, of_component in zip(self._weights, contrasts, strict=True):
                odds = []
                for contrast in of_component:
                    values, inputs = contrast.minimise(part[None])
                    odds.append(sign * float(values[0]))  # the minimum or maximum of S[d] - S[label]
                    tries.append(inputs[0])
                # 1 / (1 + sum of exp(odds / temperature)); the exponent of the label itself is 0
                scaled = [value / (self._temperature or 1.0) for value in odds]
                highest = max(0.0, *scaled)
                total = math.exp(-highest) + math.fsum(math.exp(value - highest) for value in scaled)
                # an average of probabilities cannot exceed the average of their extremes
                extreme += weight * (math.exp(-highest) / total)
            if self._calibration is not None and self._temperature is None:
                if self._n_labels > 2:
                    return _Part(True, np.array(tries))
                # with two classes every map is monotone, so it maps the extreme to the extreme
                p = np.clip(np.array([[1 - extreme], [extreme]]), 1e-300, 1.0)
                log_p = np.log(p if label == 1 else p[::-1])
                extreme = float(np.exp(self._calibration.apply(log_p))[label, 0])
            elif len(self._components) > 1 and self._temperature != 1.0:
                return _Part(True, np.array(tries))
            return _Part(sign * (extreme - stated.bound) > 2 * TOLERANCE, np.array(tries))

        def is_violated(inputs: Index) -> Index:
            p = np.exp(self.log_p(inputs)[label])
            return np.flatnonzero(sign * (p - stated.bound) > TOLERANCE)

        return self._verdict(self._search(self._all_inputs(stated.where), bound, is_violated))

    def _prove_trend(self, stated: Trend) -> Verdict:
        position, label = stated.position, stated.label
        others = [d for d in range(self._n_labels) if d != label]
        for code in range(stated.n_values - 1):
            pairs = [
                _change_of_code(component.contrast(stated.sign * self._input_pair(label, d)), position, code, code + 1)
                for component in self._components
                for d in others
            ]

            def bound(part: Index, pairs: list[Contrast] = pairs) -> _Part:
                # with a map per class, P(label) may fall although all differences of scores rise
                if self._n_labels > 2 and self._temperature is None:
                    return _no_bound(part)
                found = [contrast.minimise(part[None]) for contrast in pairs]
                falls = any(values[0] < -TOLERANCE for values, _ in found)
                return _Part(falls, np.array([inputs[0] for _, inputs in found]))

            def is_violated(inputs: Index, code: int = code) -> Index:
                before, after = (np.exp(self.log_p(_with_code(inputs, position, c))[label]) for c in (code, code + 1))
                return np.flatnonzero(stated.sign * (after - before) < -TOLERANCE)

            found = self._search(self._all_inputs({position: code}), bound, is_violated)
            if found is not None:
                return self._verdict(found, {position: code + 1})
        return Verdict(True)

    def _prove_alone(self, stated: DecidesAlone) -> Verdict:
        for code in range(self._cardinalities[stated.position]):
            everything = self._all_inputs({stated.position: code})
            first = np.maximum(everything, 0)
            decision = int(self._decide(self.log_p(first[None]))[0])
            conditions = None if self._reasons is None else self._reasons.conditions_for(first, decision)

            def bound(part: Index, conditions: Sequence[Condition] | None = conditions) -> _Part:
                if conditions is None:
                    return _no_bound(part)
                found = [(least, *contrast.minimise(part[None])) for contrast, least in conditions]
                tries = np.array([inputs[0] for _, _, inputs in found], np.intp).reshape(-1, len(part))
                return _Part(any(values[0] < least for least, values, _ in found), tries)

            def is_decided_otherwise(inputs: Index, decision: int = decision) -> Index:
                return np.flatnonzero(self._decide(self.log_p(inputs)) != decision)

            if self._search(everything, bound, is_decided_otherwise) is None:
                return Verdict(False, CounterExample({stated.position: code}, {}))
        return Verdict(True)

    def _prove_flip(self, stated: Flip) -> Verdict:
        # P(c | x) > P implies S[c] - S[d] > ln P / (1 - P) for every d, and a flip that some S[c] - S[d] falls below 0
        gap = math.log(max(stated.bound, 1e-300) / max(1 - stated.bound, 1e-300)) if stated.bound > 0 else -math.inf
        gap = max(gap, 0.0) * (self._temperature or 1.0)
        has_bound = self._temperature is not None and len(self._components) == 1
        if (flip := self._find_flip(stated.bound)) is not None:
            return Verdict(False, flip)
        labels = list(itertools.permutations(range(self._n_labels), 2)) if has_bound else [(0, 1)]
        # every attribute, change of code, and pair of labels before and after
        for (position, n_values), (one, other) in itertools.product(enumerate(self._cardinalities.tolist()), labels):
            contrast = self._components[0].contrast(self._input_pair(one, other))
            # lower bounds of the change of the contrast from one code of the attribute to another, (before, after)
            least = np.zeros((n_values, n_values))
            for positions, values in contrast.tables:
                if position in positions:
                    ordered = np.moveaxis(values, positions.index(position), 0)[:n_values]
                    by_code = ordered.reshape(n_values, -1)
                    for before in range(n_values):
                        # a sum of minima over tables is at most the minimum of their sum
                        least[before] += (by_code - by_code[before]).min(axis=1)
            for before, after in itertools.permutations(range(n_values), 2):
                if self._clock() > self._deadline:
                    raise _OutOfTimeError
                if has_bound and least[before, after] > TOLERANCE - gap:
                    continue
                bound = _flip_bound(contrast, position, before, after, gap) if has_bound else _no_bound

                def is_violated(
                    inputs: Index, position: int = position, codes: tuple[int, int] = (before, after)
                ) -> Index:
                    first, second = (self.log_p(_with_code(inputs, position, code)) for code in codes)
                    return np.flatnonzero(_is_flip(first, second, stated.bound))

                found = self._search(self._all_inputs({position: before}), bound, is_violated)
                if found is not None:
                    return self._verdict(found, {position: after})
        return Verdict(True)

    def _find_flip(self, bound: float) -> CounterExample | None:
        """Return a flip found by a local search from random inputs, or None if it finds none.

        For each input, the search takes the label and the two codes of one attribute, before and after, that come
        closest to a flip. Then it makes the change of another attribute that brings both inputs closest to a flip. It
        stops when no change brings any input closer.
        """
        sizes, n_attributes = self._cardinalities, len(self._cardinalities)
        if not n_attributes:
            return None
        # all single changes of an input
        attributes_of_changes, codes = (
            np.repeat(np.arange(n_attributes), sizes),
            np.concatenate([np.arange(n) for n in sizes]),
        )
        firsts, changes = np.cumsum(sizes) - sizes, np.arange(len(codes))
        inputs = np.random.default_rng(0).integers(0, sizes, (_STARTS, n_attributes))
        everyone = np.arange(_STARTS)

        def margins(inputs: Index) -> tuple[Array, Array]:
            """Return the margins of each label and of the best other label, each (K, inputs, changes).

            The margin of a label is the smaller of its leads, in ln P, over the best other label and over `bound`. The
            margin of the best other label is its lead over the label.
            """
            tried = np.repeat(inputs[:, None], len(codes), axis=1)
            tried[:, changes, attributes_of_changes] = codes
            log_p = self.log_p(tried.reshape(-1, n_attributes)).reshape(self._n_labels, len(inputs), len(codes))
            others = np.array([np.delete(log_p, c, axis=0).max(axis=0) for c in range(self._n_labels)])
            lead = log_p - others
            return np.minimum(lead, log_p - math.log(max(bound, 1e-300))), -lead

        closest = np.full(_STARTS, -np.inf)
        while self._clock() <= self._deadline:
            # (K, starts, changes), then by attribute the best change before and the best after
            sure, flipped = margins(inputs)
            both = np.minimum(*(np.maximum.reduceat(part, firsts, axis=2) for part in (sure, flipped)))
            # for each start, the label and attribute of the largest margin
            label, position = np.divmod(both.transpose(1, 0, 2).reshape(_STARTS, -1).argmax(axis=1), n_attributes)
            is_own = attributes_of_changes == position[:, None]
            before, after = (
                codes[np.where(is_own, part[label, everyone], -np.inf).argmax(axis=1)] for part in (sure, flipped)
            )
            first, second = inputs.copy(), inputs.copy()
            first[everyone, position], second[everyone, position] = before, after
            found = np.flatnonzero(_is_flip(self.log_p(first), self.log_p(second), bound))
            if len(found):
                i = int(found[0])
                return CounterExample(dict(enumerate(first[i].tolist())), {int(position[i]): int(after[i])})
            # then the change of another attribute that brings both inputs closest to a flip
            both = np.minimum(margins(first)[0][label, everyone], margins(second)[1][label, everyone])
            best = np.where(is_own, -np.inf, both).argmax(axis=1)
            is_closer = both[everyone, best] > closest + TOLERANCE
            if not is_closer.any():
                break
            closest = np.maximum(closest, both[everyone, best])
            inputs = first
            inputs[everyone, attributes_of_changes[best]] = codes[best]
        return None

    def _verdict(self, found: Index | None, changed: Mapping[int, int] | None = None) -> Verdict:
        if found is None:
            return Verdict(True)
        return Verdict(False, CounterExample(dict(enumerate(found.tolist())), changed or {}))


def _no_bound(part: Index) -> _Part:
    """Return a bound that excludes nothing: the part may contain a counter-example, and there are no inputs to try."""
    return _Part(True, np.empty((0, len(part)), np.intp))


def _with_code(inputs: Index, position: int, code: int) -> Index:
    """Return a copy of inputs (N, attributes) with `code` at one position."""
    changed = inputs.copy()
    changed[:, position] = code
    return changed


def _is_flip(before: Array, after: Array, bound: float) -> Mask:
    """Return whether the predicted label changes and had a probability above `bound`, (N,), from ln P (K, N)."""
    is_changed = before.argmax(axis=0) != after.argmax(axis=0)
    is_flip: Mask = is_changed & (np.exp(before.max(axis=0)) > bound + TOLERANCE)
    return is_flip


def _with_fixed_code(contrast: Contrast, position: int, code: int) -> Contrast:
    """Return the contrast with one attribute fixed at a code, as a function of the other attributes."""
    constant, tables = contrast.constant, []
    for positions, values in contrast.tables:
        if position in positions:
            values = np.asarray(values.take(code, axis=positions.index(position)))
            positions = tuple(p for p in positions if p != position)
        if positions:
            tables.append(Table(positions, values))
        else:
            constant += float(values)
    return Contrast(contrast.cardinalities, constant, tuple(tables))


def _change_of_code(contrast: Contrast, position: int, before: int, after: int) -> Contrast:
    """Return the contrast at code `after` minus the contrast at code `before`, as a function of other attributes."""
    constant, tables = 0.0, []
    for positions, values in contrast.tables:
        if position in positions:
            axis = positions.index(position)
            difference = np.asarray(values.take(after, axis=axis) - values.take(before, axis=axis))
            others = tuple(p for p in positions if p != position)
            if others:
                tables.append(Table(others, difference))
            else:
                constant += float(difference)
    return Contrast(contrast.cardinalities, constant, tuple(tables))


def _flip_bound(contrast: Contrast, position: int, before: int, after: int, gap: float) -> Callable[[Index], _Part]:
    """Return the function `bound` for `_search` for contrasts above `gap` at code `before` and at most 0 at `after`."""
    first, second = (_with_fixed_code(contrast, position, code) for code in (before, after))
    negated = Contrast(first.cardinalities, -first.constant, tuple(Table(p, -values) for p, values in first.tables))
    # a flip has contrast > gap before and <= 0 after: change < -gap, -first < -gap and second <= 0
    functions = (_change_of_code(contrast, position, before, after), negated, second)
    least = (-gap, -gap, 0.0)

    def bound(part: Index) -> _Part:
        inputs = []
        for function, most in zip(functions, least, strict=True):
            values, minimisers = function.minimise(part[None])
            if values[0] > most + TOLERANCE:
                return _Part(False, np.empty((0, len(part)), np.intp))
            inputs.append(minimisers[0])
        # from the input with the highest contrast to the one with the lowest, changing one attribute after the other
        path = [np.where(np.arange(len(part)) < k, inputs[2], inputs[1]) for k in range(len(part) + 1)]
        return _Part(True, np.array([inputs[0], *path]))

    return bound
