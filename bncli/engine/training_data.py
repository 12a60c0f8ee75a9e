"""The first step of learning: select attributes, discretize, and encode the training rows according to a recipe.

Every fit except those of `--structure auto` calls `encode_needed`, which keeps all attributes unless
`--max-attributes N` sets a limit.

The attributes are ranked by forward selection. The model is a naive Bayes classifier with a weight w_i per attribute,

    ln P(y | x) = ln f[y] + sum over the selected i of w_i ln [P(x_i | y) / P(x_i)] + constant,

and the next attribute is the one that lowers the log-loss of held-out rows most, summed over the folds. Frequencies,
probabilities, cuts and levels come from the training rows of each fold, and so does the weight of the attribute, which
Newton's method finds with the earlier weights fixed. Attributes that are redundant, or whose many values merely
identify single rows, therefore come late. Information that only pairs of attributes carry is not detected.

Conventions: f is estimated with 1 added to every count, and P with one row added to each class, spread evenly over the
values. A gain is computed again only while it may be the largest, because the gain of an attribute hardly ever grows
when others are added. Ties go to the attribute that comes first in the table. There are FOLDS stratified folds of at
most MOST_ROWS rows in total, fewer with many classes. If there are more than MOST_RANKED attributes, only those with
the highest mutual information with the class, averaged over the folds, are ranked.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bncli.catalogue import DISCRETIZERS
from bncli.engine.data.columns import Columns, apply_class_weights, parse_class_weights
from bncli.engine.data.cutting import cuts_of, learn_dataset, set_directions
from bncli.engine.data.dataset import Dataset
from bncli.engine.data.schema import Cuts, MissingPolicy, NumericAttribute, ReadingRules, Schema
from bncli.engine.data.splits import count_units, stratified_sample, units_of_several_rows
from bncli.engine.discretizers import SUPERVISED
from bncli.engine.kernels.arrays import Array
from bncli.engine.parameters.penalty_choice import (
    HeldOutFold,
    folds_with_own_cuts,
    is_measured_as_read,
    log_frequencies,
    with_recut_rows,
)
from bncli.engine.structure_learners.dependence import relevance
from bncli.errors import BncliError
from bncli.recipe import Recipe
from bncli.watch import Note, Run, Stage, silent

MOST_ROWS, MOST_SCORES = 20_000, 200_000
"""At most MOST_ROWS rows are used, or MOST_SCORES / K if that is fewer, but no fewer than FEWEST_ROWS."""
FEWEST_ROWS = 2_000
MOST_RANKED = 500
"""The maximum number of attributes that are ranked, unless twice the number to keep is larger."""
NEWTON_STEPS = 4
RIDGE = 1.0
"""The precision of the normal prior of each weight w_i, whose mean is 0."""
LARGEST_WEIGHT = 2.0
MOST_NAMED = 5
"""A note names at most this many columns."""


def keep_needed(columns: Columns, recipe: Recipe, run: Run) -> Columns:
    """Return the columns with the attributes that held-out rows select, in table order.

    All attributes are kept if `recipe.max_attributes` is None or not below their number, or if there are no rows. A
    note names the first MOST_NAMED attributes left out.
    """
    most = recipe.max_attributes
    if most is None or len(columns.attributes) <= most or columns.n_rows == 0:
        return columns
    kept = set(rank_attributes(columns, recipe, most, run))
    left_out = [name for name in columns.attributes if name not in kept]
    names = ", ".join(map(repr, left_out[:MOST_NAMED]))
    more = f" and {len(left_out) - MOST_NAMED:,} more" if len(left_out) > MOST_NAMED else ""
    of_all = f"{len(left_out):,} of {len(columns.attributes):,} attributes"
    run.watch(Note(f"--max-attributes {most} left out {of_all}: {names}{more}"))
    return with_attributes(columns, kept)


def encode_needed(
    columns: Columns, recipe: Recipe, cuts: Cuts | None, reading_rules: ReadingRules, run: Run
) -> Dataset:
    """Select attributes if the recipe limits them, and encode the rows as `encode_training_rows` does.

    Monotonicity constraints of attributes that are left out are ignored. For skdb, the rows of all but very large
    tables are encoded again with cuts and levels learned within folds, if rows belong together or have times and cuts
    or pooled levels depend on the labels. Otherwise, cuts that follow the labels of a unit would favour attributes that
    identify the unit.
    """
    needed = keep_needed(columns, recipe, run)
    left_out = columns.attributes.keys() - needed.attributes.keys()
    if left_out:
        directed = {key: getattr(recipe, key) or () for key in ("increasing", "decreasing")}
        recipe = recipe.replaced(
            **{key: tuple(n for n in names if n not in left_out) for key, names in directed.items()}
        )
    data = encode_training_rows(needed, recipe, cuts, reading_rules, run)
    if recipe.structure != "skdb" or (by := needed.split_by) is None:
        return data
    is_raw = cuts is None and columns.origin is None and is_measured_as_read(needed.n_rows, len(needed.attributes))
    is_cut = recipe.discretize in SUPERVISED and any(isinstance(a, NumericAttribute) for a in data.schema.attributes)
    if is_raw and (is_cut or data.schema.pooled) and (by.times is not None or units_of_several_rows(by) is not None):
        quiet = run._replace(watch=silent, distribute=None)
        return with_recut_rows(
            data, needed, lambda rows: encode_training_rows(rows, recipe, None, reading_rules, quiet), recipe.seed or 0
        )
    return data


def with_attributes(columns: Columns, names: set[str]) -> Columns:
    """Return the columns with only the attributes in `names`, in table order."""
    return replace(columns, attributes={name: columns.attributes[name] for name in columns.attributes if name in names})


def rank_attributes(columns: Columns, recipe: Recipe, n: int, run: Run) -> list[str]:
    """Return the n attributes that forward selection by held-out log-loss adds first, in this order.

    If the columns are coded and a sample of raw rows was kept, the ranking uses that sample. Raises BncliError if the
    class is missing in a row, or if no rows can be held out.
    """
    origin, seed = columns.origin, recipe.seed or 0
    rows = columns if origin is None or origin.sample is None else origin.sample
    if rows.label is None or (rows.label.codes < 0).any():
        raise BncliError(f"the class {rows.class_name!r} is missing in some rows")
    if rows.n_rows == 1:
        raise BncliError(
            "--max-attributes needs held-out rows, but there is only one row", hint="leave --max-attributes out"
        )
    n_rows = max(FEWEST_ROWS, min(MOST_ROWS, MOST_SCORES // len(rows.label.levels)))
    rows = rows.take(stratified_sample(rows.label.codes, n_rows, seed, rows.split_by))
    quiet = run._replace(watch=silent, distribute=None)
    # directions do not enter the ranking
    undirected = recipe.replaced(increasing=None, decreasing=None, towards=None)
    folds = folds_with_own_cuts(
        rows, lambda part: encode_training_rows(part, undirected, None, ReadingRules(), quiet), seed
    )
    if not folds:
        is_one = count_units(rows.n_rows, rows.split_by) == 1
        what = "all rows belong to one group" if is_one else "no rows are later than the others"
        raise BncliError(f"--max-attributes needs held-out rows, but {what}", hint="leave --max-attributes out")
    names = list(rows.attributes)
    candidates = list(range(len(names)))
    if len(names) > MOST_RANKED and len(names) > 2 * n:
        information = sum(relevance(fold.counts) for fold in folds)
        order = np.argsort(-information, kind="stable")
        candidates = sorted(order[: max(MOST_RANKED, 2 * n)].tolist())
    states = [_FoldState.of(fold) for fold in folds]
    informative = {i for fold in folds for i in fold.counts.schema.informative}
    selected: list[int] = []
    # the last known gain of each candidate, and how many attributes were selected when it was computed
    gains = {i: (sum(state.gain(i) for state in states), 0) for i in candidates}
    while len(selected) < n:
        # attributes with a single value in every fold come last
        best = max(gains, key=lambda i: (i in informative, gains[i][0], -i))
        if gains[best][1] < len(selected):
            gains[best] = sum(state.gain(best) for state in states), len(selected)
            continue
        for state in states:
            state.add(best)
        selected.append(best)
        del gains[best]
    return [names[i] for i in selected]


@dataclass
class _FoldState:
    """The classifier of one fold: the log-scores (K, rows) of its training and held-out rows, and its held-out loss.

    The loss is in nats, summed over the held-out rows.
    """

    training: Dataset
    held_out: Dataset
    scores: Array
    held_out_scores: Array
    loss: float

    @classmethod
    def of(cls, fold: HeldOutFold) -> _FoldState:
        training = fold.counts.data
        start = log_frequencies(training.class_counts)[:, None]
        scores, held_out_scores = (np.tile(start, data.n_rows) for data in (training, fold.rows))
        return cls(training, fold.rows, scores, held_out_scores, _log_loss(held_out_scores, fold.rows))

    def gain(self, i: int) -> float:
        """Return the decrease of the held-out log-loss if attribute i were added, in nats summed over the rows."""
        if not self.training.schema.attributes[i].informative:
            return 0.0
        _, held_out_scores = self._scores_with(i)
        return self.loss - _log_loss(held_out_scores, self.held_out)

    def add(self, i: int) -> None:
        """Add attribute i to the classifier, unless it has a single value in the training rows of the fold."""
        if self.training.schema.attributes[i].informative:
            self.scores, self.held_out_scores = self._scores_with(i)
            self.loss = _log_loss(self.held_out_scores, self.held_out)

    def _scores_with(self, i: int) -> tuple[Array, Array]:
        # ln [P(x_i | y) / P(x_i)], shape (K, r_i + 1); it is 0 for the last code, that of marginalized values
        data = self.training
        n_values, n_labels = data.schema.attributes[i].cardinality, data.n_labels
        cells = np.bincount(
            data.labels.astype(np.int64) * (n_values + 1) + data.codes[i], data.weights, n_labels * (n_values + 1)
        )
        counts = cells.reshape(n_labels, n_values + 1)[:, :n_values] + 1.0 / n_values
        of_values = counts.sum(axis=0)
        ratios = np.log(counts / counts.sum(axis=1, keepdims=True)) - np.log(of_values / of_values.sum())
        table = np.column_stack([ratios, np.zeros(n_labels)])
        own = table[:, self.training.codes[i]]
        weight = _best_weight(self.scores, own, self.training)
        return self.scores + weight * own, self.held_out_scores + weight * table[:, self.held_out.codes[i]]


def _best_weight(scores: Array, own: Array, data: Dataset) -> float:
    """Return the w in [0, LARGEST_WEIGHT] with about the highest penalised likelihood of scores + w * own, both (K, N).

    It comes from NEWTON_STEPS Newton steps.
    """
    of_rows = np.ones(data.n_rows) if data.weights is None else data.weights
    of_label = own[data.labels, np.arange(data.n_rows)]
    weight = 0.0
    for _ in range(NEWTON_STEPS):
        weighted = scores + weight * own
        p = np.exp(weighted - weighted.max(axis=0))
        p /= p.sum(axis=0)
        mean = (p * own).sum(axis=0)
        slope = float((of_rows * (of_label - mean)).sum()) - RIDGE * weight
        curvature = float((of_rows * ((p * own * own).sum(axis=0) - mean * mean)).sum()) + RIDGE
        weight = min(max(weight + slope / curvature, 0.0), LARGEST_WEIGHT)
    return weight


def _log_loss(scores: Array, data: Dataset) -> float:
    """Return the weighted sum over the rows of the log-loss under scores (K, N), in nats."""
    highest = scores.max(axis=0)
    norm = highest + np.log(np.exp(scores - highest).sum(axis=0))
    losses: Array = norm - scores[data.labels, np.arange(data.n_rows)]
    return float(losses.sum() if data.weights is None else (losses * data.weights).sum())


def encode_training_rows(
    columns: Columns, recipe: Recipe, cuts: Cuts | None, reading_rules: ReadingRules, run: Run
) -> Dataset:
    """Learn a schema from the rows, with `cuts` if they are supplied, and return the rows encoded with it.

    Raises BncliError if there are no rows, if the class is missing in a row, or if the cuts do not fit the columns;
    UsageError if monotonicity constraints do not fit them.
    """
    run.watch(Stage("discretize"))
    data = learn_dataset(
        columns,
        discretize=recipe.discretize,
        group_levels=recipe.group_levels,
        shrinks=recipe.structure == "interactions",
        few_digits=recipe.structure == "card",
        cuts=cuts,
        missing_policy=missing_policy(recipe),
        reading=reading_rules,
        run=run,
        **recipe.options(DISCRETIZERS.method(recipe.discretize)),
    )
    if data.n_rows == 0:
        raise BncliError(
            "there are no rows to learn from", hint="every row is unlabelled, has weight 0, or was skipped"
        )
    return set_directions(data, recipe.increasing or (), recipe.decreasing or (), recipe.towards)


def learn_cuts(columns: Columns, recipe: Recipe, run: Run = Run()) -> Cuts:
    """Return the cut points and levels of all attributes that `learn` would learn from these columns."""
    class_weights = parse_class_weights(recipe.class_weights, columns)
    if class_weights is not None:
        columns = apply_class_weights(columns, class_weights)
    if recipe.param == "auto":
        from bncli.engine.ensembles.candidates import fine_dataset

        schema = fine_dataset(columns, ReadingRules(), run, recipe.group_levels).schema
    else:
        schema = encode_training_rows(columns, recipe, None, ReadingRules(), run).schema
    return cuts_of_schema(schema, recipe)


def cuts_of_schema(schema: Schema, recipe: Recipe) -> Cuts:
    """Return the cut points and levels of a schema learned with the recipe, and the options that made them."""
    rule = recipe.group_levels if schema.pooled else None
    options = recipe.options(DISCRETIZERS.method(recipe.discretize)) | {"group_levels": rule}
    return cuts_of(schema, recipe.discretize, {key: value for key, value in options.items() if value is not None})


def missing_policy(recipe: Recipe) -> MissingPolicy:
    """Return the missing-value policy of a recipe; None, as in models older than this option, means "level"."""
    return "marginalize" if recipe.missing_policy == "marginalize" else "level"
