"""A fitted model in Python: probabilities, decisions, explanations, effects, and its file.

Modules that read tables are imported by the methods that need them. So loading a model and scoring single rows work
without loading pyarrow.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bncli.api.arguments import check_integer, check_real
from bncli.api.scorer import Scorer, bounded
from bncli.engine import model as engine
from bncli.engine.data.schema import Unseen
from bncli.engine.kernels.arrays import Array
from bncli.engine.prediction.scoring import prior_shift, shift_log_probabilities
from bncli.engine.structures.named_structure import NamedDag, name_structure
from bncli.errors import BncliError, UsageError
from bncli.files.artifacts.model import dump_model, read_model
from bncli.files.atomic import temporary_folder

if TYPE_CHECKING:
    from bncli.steps.effects_and_regions import NamedEffect
    from bncli.steps.row_scoring import RowScorer, ScoredBlock

_EFFECTS_SHOWN, _ARCS_SHOWN = 12, 48
"""The maximum numbers of effects and of arcs that a notebook shows."""


class Contribution(NamedTuple):
    """The contribution of a set of attributes to the log-odds of the predicted class, and their values in the row."""

    attributes: tuple[str, ...]
    values: tuple[str, ...]
    contribution: float


class RowExplanation(NamedTuple):
    """The explanation of a prediction: log_odds = base + sum of the contributions + rest, in nats.

    See `bncli help explain`.
    """

    prediction: str
    log_odds: float
    base: float
    contributions: tuple[Contribution, ...]
    rest: float


class SufficientReason(NamedTuple):
    """The smallest set of values of a row that was found to fix its decision, whatever the other values are.

    values: keyed by attribute, as the model writes them. exact: whether it is proven that no smaller set fixes the
    decision. See `bncli help what-if`.
    """

    values: dict[str, str]
    exact: bool


class Decisions(NamedTuple):
    """Decisions about rows.

    labels: the label chosen for each row (N,), or None for an abstention. expected_costs: the expected cost of each
    decision (N,), or of the one that an abstention replaces; None without costs. sets: the prediction set of each row,
    or None without prediction sets.
    """

    labels: NDArray[Any]
    expected_costs: Array | None
    sets: list[tuple[str, ...]] | None


class Model:
    """A fitted classifier, returned by `fit` and `load`; it does not change.

    classes_: the labels (K,), as strings, in the order of the columns of `predict_proba`. class_name: the column that
    is predicted. feature_names_in_: the columns that the model uses. report: the fields of `fit --json` without the
    path of the model, or None for a model that was loaded.

    All methods that take a table accept a path, a data frame, or a dictionary of columns. With `allow_missing_columns`,
    a column that the table lacks is missing in every row; otherwise it is an error. Columns that the model does not use
    are ignored. Methods that score rows also accept `unseen`, `missing`, `on_bad_row`, and for a file
    `format`, `delimiter`, `encoding` and `names`, as in `fit`; the defaults of `unseen` and `missing` are the model's,
    and rows that are skipped have no result. The methods raise BncliError, and TypeError for an unknown option.
    """

    def __init__(self, model: engine.Model, report: dict[str, Any] | None = None) -> None:
        self._model = model
        self.report = report
        self.class_name = model.schema.class_name
        self.classes_: NDArray[Any] = np.array(model.schema.labels, dtype=object)
        self.feature_names_in_: NDArray[Any] = np.array(self._scorer.columns, dtype=object)

    def predict_proba(
        self,
        table: Any,
        *,
        prior: Mapping[str, float] | Literal["training"] | None = None,
        threads: int = 1,
        allow_missing_columns: bool = False,
        **options: Any,
    ) -> Array:
        """Return P(y | x_t), shape (N, K), with one row per row of the table and one column per label.

        prior: the class frequencies to assume, as a probability per label; `training` for the frequencies in the
        training data, which undoes class weights; None for those that the model was fitted with.
        """
        if prior is None and threads == 1 and not options and (row := self._scorer.plain_row(table)) is not None:
            with suppress(BncliError):  # reading it as a table gives a more precise error
                return np.array([self._scorer(row)])
        shift = None if prior is None else prior_shift(self._model, prior)
        blocks = self._score(self._row_scorer(), table, threads, allow_missing_columns, options)
        probabilities = [bounded(np.exp(shift_log_probabilities(block.log_p, shift))).T for block in blocks]
        return np.concatenate(probabilities) if probabilities else np.empty((0, len(self.classes_)))

    def predict_interval(
        self,
        table: Any,
        level: float = 0.9,
        *,
        prior: Mapping[str, float] | Literal["training"] | None = None,
        threads: int = 1,
        allow_missing_columns: bool = False,
        **options: Any,
    ) -> Array:
        """Return the interval of each probability, shape (N, K, 2): its lower and its upper end.

        level: the probability that an interval contains the true P(y | x_t), above 0 and below 1. prior: as in
        `predict_proba`. Raises ModelError for a model that was not learned with `intervals=True`.
        """
        level = check_real("level", level, 0, 1)
        shift = None if prior is None else prior_shift(self._model, prior)
        scorer = self._row_scorer(level=level, shift=shift)
        ends = []
        for block in self._score(scorer, table, threads, allow_missing_columns, options):
            log_p = np.stack([np.asarray(column) for column in block.answers], axis=1)
            ends.append(bounded(np.exp(log_p)).reshape(len(log_p), -1, 2))
        return np.concatenate(ends) if ends else np.empty((0, len(self.classes_), 2))

    def scorer(self) -> Scorer:
        """Return a function from one row, a dict or a sequence of values, to the list of its probabilities.

        It takes microseconds per row: see `Scorer`, and `bncli help python` for an example.
        """
        return self._scorer

    @cached_property
    def _scorer(self) -> Scorer:
        return Scorer(self._model)

    def predict(
        self, table: Any, *, threads: int = 1, allow_missing_columns: bool = False, **options: Any
    ) -> NDArray[Any]:
        """Return the most probable label of each row, shape (N,); ties go to the first label."""
        blocks = self._score(self._row_scorer(), table, threads, allow_missing_columns, options)
        labels = [self.classes_[block.log_p.argmax(axis=0)] for block in blocks]
        return np.concatenate(labels) if labels else self.classes_[:0]

    def decide(self, table: Any, *, threads: int = 1, allow_missing_columns: bool = False, **options: Any) -> Decisions:
        """Return a decision for each row, by the model's rule or by options that replace parts of it.

        The options are costs (`{true: {decision: cost}}`, a string or a file), threshold, abstain_below, abstain_wider,
        sets and sets_by, as for `bncli score`, level (0.9) of the intervals for abstain_wider, and prior, as in
        `predict_proba`. Raises BncliError if there is no rule.
        """
        from bncli.api.calls import SCORED_OPTIONS, python_call
        from bncli.engine.prediction.decision_rules import ABSTAINED, DecidedRows, Decider
        from bncli.steps.score import decision_options, rule_to_score, warn_about_threshold

        prior, width, level = (options.pop(key, None) for key in ("prior", "abstain_wider", "level"))
        reading = {key: options.pop(key) for key in (*SCORED_OPTIONS, "unseen") if key in options}
        changes = decision_options(options)
        for name, value in (("abstain_wider", width), ("level", level)):
            if value is not None:
                check_real(name, value, 0, 1)
        if level is not None and width is None:
            raise UsageError("level has no effect without abstain_wider", hint="add abstain_wider")
        labels = tuple(self.classes_)
        with python_call() as watch:
            rule = rule_to_score(self._model, changes, prior is not None, watch)
            if rule is None and width is not None:
                rule = engine.DecisionRule()
            if rule is None:
                hint = "add costs, a threshold, abstain_below, abstain_wider or sets"
                raise UsageError("there is no decision rule", hint=hint)
            shift = None if prior is None else prior_shift(self._model, prior)
            decider = Decider.of(rule, labels)
            decided, highest = list[DecidedRows](), -math.inf
            scorer = self._row_scorer(level=level, abstain_wider=width, shift=shift)
            for block in self._score(scorer, table, threads, allow_missing_columns, reading):
                highest = max(highest, float(block.log_p[1].max()))
                rows = decider.decide(block.log_p)
                if width is not None:
                    rows = replace(rows, codes=np.where(np.asarray(block.answers[-1]), ABSTAINED, rows.codes))
                decided.append(rows)
            warn_about_threshold(rule, labels, highest, watch)
        names = np.array([*labels, None], dtype=object)  # the code of an abstention is the last
        costs = [block.expected_costs for block in decided if block.expected_costs is not None]
        members = [block.members for block in decided if block.members is not None]
        sets = [tuple(self.classes_[row]) for block in members for row in block.T]
        return Decisions(
            np.concatenate([names[block.codes] for block in decided]) if decided else self.classes_[:0],
            np.concatenate(costs) if costs else None,
            sets if members else None,
        )

    def explain(
        self, table: Any, n: int = 3, *, threads: int = 1, allow_missing_columns: bool = False, **options: Any
    ) -> list[RowExplanation]:
        """Explain the most probable label of each row by its n largest contributions; raise UsageError if n < 1."""
        n = check_integer("n", n, 1)
        explanations = []
        scorer = self._row_scorer(explain=n)
        for block in self._score(scorer, table, threads, allow_missing_columns, options):
            why = block.why
            assert why is not None
            for t, label in enumerate(self.classes_[block.log_p.argmax(axis=0)]):
                contributions = []
                for i, term in enumerate(why.term_of[:, t]):
                    if term >= 0:
                        text = why.terms[term]
                        contributions.append(Contribution(text.attributes, text.values, float(why.contributions[i, t])))
                log_odds, base, rest = float(why.log_odds[t]), float(why.base[t]), float(why.rest[t])
                explanations.append(RowExplanation(label, log_odds, base, tuple(contributions), rest))
        return explanations

    def what_if(
        self, table: Any, changes: Mapping[str, Any], *, allow_missing_columns: bool = False, **options: Any
    ) -> Array:
        """Return P(y | x_t), shape (N, K), after setting the values of `changes` in every row.

        changes: values by column, None for missing.
        """
        texts = tuple((name, "" if value is None else str(value)) for name, value in changes.items())
        answers = self._answer({"changes": texts}, table, allow_missing_columns, options)
        # The first column has the most probable labels, the others the log-probabilities.
        probabilities = [np.exp(np.stack(columns[1:], axis=1)) for columns in answers]
        return np.concatenate(probabilities) if probabilities else np.empty((0, len(self.classes_)))

    def flip(
        self,
        table: Any,
        columns: Iterable[str] = (),
        changes: int = 2,
        *,
        allow_missing_columns: bool = False,
        **options: Any,
    ) -> list[str]:
        """Return for each row a smallest set of changes (`A=v; B=w`) that changes its decision, or "" if there is none.

        The decision follows the model's rule, or is the most probable label if there is no rule. At most `changes`
        values change, and only in `columns`, or in any column if it is empty.
        """
        names = (columns,) if isinstance(columns, str) else tuple(columns)
        questions = {"flip": True, "flip_columns": names, "flip_changes": check_integer("changes", changes, 1, 6)}
        answers = self._answer(questions, table, allow_missing_columns, options)
        return [str(text) for (texts,) in answers for text in texts]

    def because(
        self, table: Any, seconds: float = 1.0, *, allow_missing_columns: bool = False, **options: Any
    ) -> list[SufficientReason]:
        """Return for each row a smallest set of its values that fixes the decision, whatever the other values are.

        The decision follows the model's rule, or is the most probable label if there is no rule. After `seconds`
        seconds per row, the smallest set found so far is returned. Raises ModelError if the model's decisions cannot be
        expressed as conditions on sums of tables, or if the tables are too large.
        """
        seconds = check_real("seconds", seconds, 0)
        answers = self._answer({"because": seconds}, table, allow_missing_columns, options)
        return [
            SufficientReason(dict(values), bool(exact))
            for sets, proven in answers
            for values, exact in zip(sets, proven, strict=True)
        ]

    def next_best(self, table: Any, *, allow_missing_columns: bool = False, **options: Any) -> list[str]:
        """Return for each row the missing column that is most informative about the class.

        It has the highest mutual information with the class, given the known values of the row. The string is empty for
        a row without missing values, and if none of them would be informative. Raises ModelError if the model is not a
        network, is calibrated, or has an attribute with a missing level.
        """
        answers = self._answer({"next_best": True}, table, allow_missing_columns, options)
        return [str(text) for (texts,) in answers for text in texts]

    def surprise(self, table: Any, *, allow_missing_columns: bool = False, **options: Any) -> Array:
        """Return -ln P(x_t) in nats per row, shape (N,).

        Raises ModelError if the model is not a network with probabilities.
        """
        answers = self._answer({"surprise": True}, table, allow_missing_columns, options)
        values = [column for (column,) in answers]
        return np.concatenate(values) if values else np.empty(0)

    def monitor(
        self, table: Any, *, threads: int = 1, allow_missing_columns: bool = False, **options: Any
    ) -> dict[str, Any]:
        """Return the content of the file that `score --monitor` writes: drift from training, predictions, ln P(x)."""
        from bncli.files.artifacts.monitors import monitor_json

        scorer = self._row_scorer(monitored=True)
        for _ in self._score(scorer, table, threads, allow_missing_columns, options):
            pass
        return monitor_json(scorer.monitor())

    def _answer(
        self, questions: Mapping[str, Any], table: Any, allow_missing_columns: bool, options: Mapping[str, Any]
    ) -> Iterator[tuple[Any, ...]]:
        """Yield the output columns of the answers, block by block."""
        from bncli.steps.row_scoring import WhatIfQuestions

        scorer = self._row_scorer(questions=WhatIfQuestions(**questions), rule=self._model.rule)
        for block in self._score(scorer, table, 1, allow_missing_columns, options):
            yield block.answers

    def _row_scorer(self, **what: Any) -> RowScorer:
        from bncli.steps.row_scoring import RowScorer

        return RowScorer(self._model, **what)

    def _score(
        self, scorer: RowScorer, table: Any, threads: int, allow_missing_columns: bool, options: Mapping[str, Any]
    ) -> Iterator[ScoredBlock]:
        from bncli.api.calls import SCORED_OPTIONS, check_word, make_run, python_call, source_of, source_options

        reading = source_options({key: value for key, value in options.items() if key != "unseen"}, SCORED_OPTIONS)
        run = make_run(threads)
        scorer.strict = (check_word("unseen", options.get("unseen")) or self._model.schema.unseen) == "error"
        with (
            python_call(),
            source_of(table, in_memory=True, **reading, allow_missing_columns=allow_missing_columns) as source,
            scorer.open(source, run) as batches,
        ):
            for batch in batches:
                yield from scorer.score(batch)

    def verify(self, properties: str | Iterable[str], *, seconds: float = 60.0) -> list[dict[str, Any]]:
        """Prove or refute properties over all inputs; return a result per property, as `verify --property --json` does.

        properties: one or several, in the words of `bncli help properties`. seconds: time for each. Each result has
        `property`, `holds` (None if the time ran out) and `counter_example` (value by column, or None). A
        counter-example comes with the probabilities `p` of the labels, or with the `decision` if it is a value that
        decides alone. For a property of two rows, `changed` has the values that differ in the second row, and
        `p_changed` its probabilities. Raises UsageError for a string that states no property of the model.
        """
        from bncli.api.calls import python_call
        from bncli.steps.properties import prove_properties

        texts = (properties,) if isinstance(properties, str) else tuple(properties)
        with python_call():
            return [one.as_json() for one in prove_properties(self._model, texts, seconds)]

    def effects(self) -> tuple[NamedEffect, ...]:
        """Return the effects of sets of attributes on the log-odds of the classes, the largest first (at most 1,000).

        Each effect has `attributes`, `share` (of the score's variance), `values` (in nats: one axis per attribute, and
        the classes last), and `names` (of the values of each attribute).
        """
        from bncli.steps.effects_and_regions import effects_report

        return effects_report(self._model).effects

    def evaluate(
        self,
        table: Any,
        *,
        by: str | Iterable[str] = (),
        reliability: bool = False,
        unseen: Unseen | None = None,
        threads: int = 1,
        allow_missing_columns: bool = False,
        **options: Any,
    ) -> dict[str, Any]:
        """Evaluate the model on a labelled table; return the results in the form of `bncli evaluate --model --json`.

        `by` and `reliability` are as in `bncli.evaluate`. Options: about the table `class_`, `weights`, `missing`,
        `drop_unlabelled`, `on_bad_row`, `positive`, `group`, and for a file how to read it, as in `fit`; about
        decisions `costs`, `threshold`, `abstain_below`, `sets` and `sets_by`, as in `decide`.
        """
        from bncli.api.calls import LABELLED_OPTIONS, check_word, make_run, python_call, source_of, source_options
        from bncli.steps.evaluate.evaluate import EvaluateOutputs, evaluate_fitted
        from bncli.steps.score import decision_options

        words = (*LABELLED_OPTIONS, "positive", "group")
        reading = source_options({key: options.pop(key) for key in words if key in options}, words)
        outputs = EvaluateOutputs(by=(by,) if isinstance(by, str) else tuple(by), reliability=reliability)
        decisions = decision_options(options)
        with python_call() as watch, source_of(table, **reading, allow_missing_columns=allow_missing_columns) as source:
            run = make_run(threads, watch)
            schema = self._model.schema
            model = replace(self._model, schema=replace(schema, unseen=check_word("unseen", unseen) or schema.unseen))
            return evaluate_fitted(model, source, outputs=outputs, decisions=decisions, run=run).as_json()

    def calibrate(
        self,
        table: Any,
        method: str = "temperature",
        *,
        threads: int = 1,
        allow_missing_columns: bool = False,
        **options: Any,
    ) -> Model:
        """Return a model with the same tables, calibrated on `table`, which must not contain its training rows.

        method: temperature, isotonic or per-class (see `bncli help calibration`). Options about the table: `class_`,
        `weights`, `missing`, `drop_unlabelled`, `on_bad_row`, `group`, `time`, `gap`, `window`, and for a file how to
        read it, as in `fit`.
        """
        from bncli.api.calls import LABELLED_OPTIONS, SPLIT_OPTIONS, make_run, python_call, source_of, source_options
        from bncli.steps.calibrate import calibrate_model

        reading = source_options(options, (*LABELLED_OPTIONS, *SPLIT_OPTIONS))
        with (
            python_call() as watch,
            source_of(table, **reading, allow_missing_columns=allow_missing_columns) as source,
        ):
            return Model(calibrate_model(self._model, source, method, run=make_run(threads, watch))[0], self.report)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model file, with the same bytes as `bncli fit` writes."""
        from bncli.files.atomic import write_bytes

        write_bytes(os.fspath(path), dump_model(self._model))

    def __reduce__(self) -> tuple[Any, ...]:
        return _load_bytes, (dump_model(self._model), self.report)

    def __repr__(self) -> str:
        recipe = self._model.recipe
        methods = " ".join(dict.fromkeys([recipe.structure, recipe.param]))
        return (
            f"<bncli.Model {self.class_name} ({', '.join(self.classes_[:5])}): {methods}, {self._model.n_rows:,} rows>"
        )

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook shows: the network, and the strongest effects."""
        structure = name_structure(self._model.structure, self._model.schema)
        if isinstance(structure, NamedDag):
            pairs = [(parent, child) for child, parents in structure.parents.items() for parent in parents]
            network = ", ".join(f"{escape(parent)} &rarr; {escape(child)}" for parent, child in pairs[:_ARCS_SHOWN])
            network += f", and {len(pairs) - _ARCS_SHOWN:,} more arcs" if len(pairs) > _ARCS_SHOWN else ""
        else:
            network = f"regions of {len(structure.nodes):,} attributes"
        rows = ""
        for effect in self.effects()[:_EFFECTS_SHOWN]:
            width = max(1, round(200 * effect.share))
            bar = f'<svg width="{width}" height="10"><rect width="{width}" height="10" fill="#0072b2"/></svg>'
            name = escape(" × ".join(effect.attributes))
            rows += f"<tr><td>{name}</td><td>{effect.share:.1%}</td><td>{bar}</td></tr>"
        return f"<div><p><b>{escape(repr(self))}</b></p><p>{network}</p><table>{rows}</table></div>"


def load(path: str | os.PathLike[str]) -> Model:
    """Load a model from a file; raise ModelError if it cannot be read, is invalid, or is of a newer format."""
    return Model(read_model(os.fspath(path)))


def _load_bytes(content: bytes, report: dict[str, Any] | None) -> Model:
    with temporary_folder() as folder:
        path = Path(folder, "model.bnc")
        path.write_bytes(content)
        return Model(read_model(str(path)), report)
