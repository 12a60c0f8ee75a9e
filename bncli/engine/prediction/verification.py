"""Verification: whether a model still predicts what it predicted when it was made, and whether exports agree with it.

- Self-test. A model file holds artificial rows and the probabilities that the model predicted for them. The codes of
  each attribute are about equally frequent, in random order, so that many cells of every table are looked up. Every
  fourth row lacks about half of its values, unless the model cannot predict such rows (missing values marginalized over
  a dense network). The random seed is fixed, so equal models have equal self-tests.
- Probe rows, to compare a program with its model, contain every value that the model distinguishes. For a categorical
  attribute these are each level, each value pooled into a level, a string that no training row had, and a missing
  value. For a numeric attribute they are each cut, the next larger floating-point number, a number between neighbouring
  cuts, numbers far outside, and a missing value. The other values of such a row are drawn at random. Every HIDDEN-th
  row lacks about half of its values.
- Networks. A network with named states is compared with the model on rows of uniform random codes, missing levels
  included. The model is evaluated by its scorer, the network independently of it by

      ln P(y, x) = sum over the class and its children of ln theta[parents, own state] + a term without y

  for every label y. The last term comes from the nodes without the class in their table, and cancels. Cost: a look-up
  per row and table, for the network also per label.

No row is taken from the training data.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bncli.engine.kernels.arrays import Array, Index
from bncli.engine.model import Model, SelfTest
from bncli.engine.networks.network import NamedNetwork
from bncli.engine.prediction.edits import editable_effect, parameter_arrays, undo_edit
from bncli.engine.prediction.portable import Input
from bncli.engine.prediction.scoring import compile_scorer, log_probabilities
from bncli.errors import BncliError, ModelError

ROWS = 32
LACKING = 4
"""In a self-test, one row in this many lacks values."""
HIDDEN = 8
EXPORT_ROWS = 10_000
"""The minimum number of rows on which an export is compared with its model."""
TOLERANCE = 1e-9
"""Larger differences of probabilities are errors; smaller ones may come from another order of summation or exp()."""
Value = float | str | None
"""A value of an input: a number, a string, or None for a missing value."""


def with_self_test(model: Model) -> Model:
    """Return the model with a new self-test."""
    cardinalities = np.array([model.schema.cardinalities[i] for i in self_test_attributes(model)], np.intp)
    rng = np.random.Generator(np.random.PCG64(0))
    complete = np.empty((len(cardinalities), ROWS), np.intp)
    for row, cardinality in zip(complete, cardinalities, strict=True):
        row[:] = rng.permutation(rng.permutation(cardinality)[np.arange(ROWS) % cardinality])
    is_lacking = (np.arange(ROWS) % LACKING == 0) & (rng.random(complete.shape) < 0.5)
    codes = np.where(is_lacking, cardinalities[:, None], complete)
    try:
        probabilities = predict_self_test(model, codes)
    except BncliError:
        codes, probabilities = complete, predict_self_test(model, complete)
    return replace(model, self_test=SelfTest(codes, probabilities))


def self_test_attributes(model: Model) -> tuple[int, ...]:
    """Return the indices of the attributes, ascending, whose codes are in a self-test."""
    return tuple(sorted(model.attributes))


def predict_self_test(model: Model, codes: Index) -> Array:
    """Return P(y | x_t), shape (K, rows), for the codes (attributes, rows) of a self-test."""
    scorer, by_attribute = compile_scorer(model), dict(zip(self_test_attributes(model), codes, strict=True))
    used = [by_attribute[attribute].astype(np.uint32) for attribute in scorer.used]
    return np.exp(log_probabilities(scorer, used, codes.shape[1]))


def largest_change(model: Model, test: SelfTest) -> float:
    """Return the largest absolute difference between the stored probabilities of a self-test and new predictions."""
    return float(np.abs(predict_self_test(model, test.codes) - test.probabilities).max(initial=0.0))


def largest_edit_difference(model: Model) -> float:
    """Return the largest absolute difference, in log-odds, between effects and the values that edits recorded.

    Edits are undone one by one, and the effects before and after each of them are compared. Raises ModelError if an
    edit refers to an effect or a value that the model does not have.
    """
    largest = 0.0
    # from the last edit back: each state of the model must have the effects that were recorded
    while model.edits:
        edit, before = model.edits[-1], undo_edit(model)
        for state, recorded in ((model, edit.values), (before, edit.before)):
            try:
                effect = replace(
                    editable_effect(replace(state, calibration=None), edit.effect), temperature=edit.temperature
                )
                cells = effect.cells
                edited_cells = [cells[name] for name in edit.cells]
            except (BncliError, KeyError) as error:
                what = f"the recorded edit of {' & '.join(edit.effect)} does not match the model"
                raise ModelError(what, hint="fit the model again, or use a copy from before the edit") from error
            now = effect.read(parameter_arrays(state.predictor))
            found = np.array([now[place] for place in edited_cells])
            largest = max(largest, float(np.abs(found - np.array(recorded)).max(initial=0.0)))
        model = before
    return largest


@dataclass(frozen=True)
class ProbeRows:
    """Rows for a comparison: values[p] (rows,) of input p, and the model's predictions P(y | x_t) (K, rows)."""

    inputs: tuple[Input, ...]
    values: tuple[tuple[Value, ...], ...]
    probabilities: Array

    @property
    def n_rows(self) -> int:
        return len(self.probabilities.T)

    def rows(self) -> list[dict[str, Value]]:
        """Return each row as a dictionary that maps the names of the inputs to their values."""
        if not self.values:
            return [{} for _ in range(self.n_rows)]
        names = [one.name for one in self.inputs]
        return [dict(zip(names, row, strict=True)) for row in zip(*self.values, strict=True)]


def probe_rows(model: Model, n_rows: int, rng: np.random.Generator) -> ProbeRows:
    """Draw at least `n_rows` rows, and enough that every probe value of every input occurs."""
    scorer = compile_scorer(model)
    inputs = tuple(Input.of(model.schema.attributes[i]) for i in scorer.used)
    values_of_inputs = [_probe_values(one) for one in inputs]
    n_rows = max(n_rows, sum(map(len, values_of_inputs)))
    # Random values, some of them missing; then each value of each input in turn.
    drawn: list[Any] = [rng.integers(0, len(values), n_rows) for values in values_of_inputs]
    may_lack = np.arange(n_rows) % HIDDEN == 0
    for column in drawn:
        column[may_lack & (rng.random(n_rows) < 0.5)] = 0
    first = 0
    for column, values in zip(drawn, values_of_inputs, strict=True):
        column[first : first + len(values)] = np.arange(len(values))
        first += len(values)
    pairs = list(zip(inputs, values_of_inputs, drawn, strict=True))
    shown = tuple(tuple(values[i] for i in rows) for _, values, rows in pairs)
    codes = [np.array([one.code(value) for value in values])[rows].astype(np.uint32) for one, values, rows in pairs]
    return ProbeRows(inputs, shown, np.exp(log_probabilities(scorer, codes, n_rows)))


def _probe_values(one: Input) -> list[Value]:
    """Return the values of an input that occur in probe rows; the first is None, the missing value."""
    if one.codes is not None:
        unseen = "never seen"
        while unseen in one.codes:  # any string may be a value in a table
            unseen += "!"
        return [None, *one.codes, unseen]
    cuts = one.cuts or ()
    between = [(a + b) / 2 for a, b in itertools.pairwise(cuts)]
    above = [math.nextafter(cut, math.inf) for cut in cuts]
    far = [-1e300, 0.0, 1e300, *(cut * 2 for cut in cuts[-1:]), *(cut * 2 for cut in cuts[:1])]
    return [None, *filter(math.isfinite, (*cuts, *above, *between, *far))]


def largest_difference(model: Model, network: NamedNetwork, rows: int, rng: np.random.Generator) -> float:
    """Return the largest absolute difference between P(y | x_t) of a model and of a network over `rows` random rows.

    The result is NaN if a row has probability 0 in the network.
    """
    scorer = compile_scorer(model)
    cardinalities = model.schema.cardinalities
    codes = {model.schema.attributes[i].name: rng.integers(0, cardinalities[i], rows) for i in scorer.used}
    expected = np.exp(log_probabilities(scorer, [c.astype(np.uint32) for c in codes.values()], rows))
    return float(np.abs(network_posteriors(network, model.schema.class_name, codes, rows) - expected).max(initial=0.0))


def network_posteriors(network: NamedNetwork, class_name: str, codes: Mapping[str, Index], rows: int) -> Array:
    """Return P(y | x_t), shape (K, rows), of a network; codes[name] (rows,): the index of the node's state."""
    log_joint = np.zeros((len(network.by_name[class_name].states), rows))
    with np.errstate(divide="ignore", invalid="ignore"):
        for node in network.nodes:
            members = (*node.parents, node.name)
            if class_name not in members:
                continue
            # ln theta of the node's state in every row, for every label
            log_theta = np.log(np.moveaxis(node.probabilities, members.index(class_name), 0))
            digits = tuple(codes[member] for member in members if member != class_name)
            log_joint += np.stack([np.broadcast_to(table[digits], rows) for table in log_theta])
        joint = np.exp(log_joint - log_joint.max(axis=0))
    return np.asarray(joint / joint.sum(axis=0))


def same_nodes(one: NamedNetwork, other: NamedNetwork) -> bool:
    """Return whether both networks have the same class, and the same nodes, states and parents in the same order."""
    nodes, others = ([(node.name, node.states, node.parents) for node in net.nodes] for net in (one, other))
    return nodes == others and one.class_name == other.class_name
