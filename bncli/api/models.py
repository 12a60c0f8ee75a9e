"""A learnt model in Python: probabilities, explanations, effects, and the bytes of its file."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bncli.api.linear_algebra import one_thread
from bncli.api.messages import in_python, run_of, watching
from bncli.api.tables import LABELLED, SCORED, one_of, source_of, source_options
from bncli.engine import model as engine
from bncli.engine.data.schema import Unseen
from bncli.engine.kernels.arrays import Array
from bncli.engine.prediction.contributions import Explanation
from bncli.engine.prediction.decision_rules import Decided, Decider
from bncli.engine.prediction.monitoring import Monitor
from bncli.engine.prediction.prior import prior_shift, shifted
from bncli.engine.structures.named_structure import NamedDag, name_structure
from bncli.errors import UsageError
from bncli.files.artifacts.model import dump_model, read_model
from bncli.files.artifacts.monitors import monitor_json, monitored_model
from bncli.files.reading.rows_by_schema import Batches
from bncli.steps.effects_and_regions import NamedEffect, effects_report
from bncli.steps.score import decision_options_of, rule_to_score, warn_about_threshold
from bncli.steps.score_rows import ScoredBlock, ScoredRows
from bncli.steps.what_if import WhatIfQuestions

_SHOWN = 12
"""Effects and nodes that a notebook shows."""


class Contribution(NamedTuple):
    """What a set of attributes adds to the log-odds of the predicted class, and the values that it had in the row."""

    attributes: tuple[str, ...]
    values: tuple[str, ...]
    contribution: float


class Reasons(NamedTuple):
    """A row explained: log_odds = base + the sum of contributions + rest, in nats (see `bncli help explain`)."""

    prediction: str
    log_odds: float
    base: float
    contributions: tuple[Contribution, ...]
    rest: float


class Decisions(NamedTuple):
    """Rows decided: labels (N,), None where there is no decision; expected costs (N,) and sets of labels, as asked."""

    labels: NDArray[Any]
    expected_costs: Array | None
    sets: list[tuple[str, ...]] | None

    @staticmethod
    def of(blocks: Sequence[Decided], classes: NDArray[Any]) -> Decisions:
        """Of consecutive rows."""
        names = np.array([*classes, None], dtype=object)  # ABSTAINED is the last
        labels = [names[block.codes] for block in blocks]
        costs = [block.expected_costs for block in blocks if block.expected_costs is not None]
        members = [block.members for block in blocks if block.members is not None]
        sets = [tuple(classes[row]) for one in members for row in one.T]
        return Decisions(
            np.concatenate(labels) if labels else classes[:0],
            np.concatenate(costs) if costs else None,
            sets if members else None,
        )


class Model:
    """A classifier, made by `fit` or `load`; it does not change.

    classes_: the labels (K,), as text, in the order of the columns of `predict_proba`. class_name: the column that is
    predicted. feature_names_in_: the columns that the model looks at. report: what `fit --json` would have said; None
    for a model that was loaded.
    """

    def __init__(self, model: engine.Model, report: dict[str, Any] | None = None) -> None:
        self._model = model
        self.report = report
        self.class_name = model.schema.class_name
        self.classes_: NDArray[Any] = np.array(model.schema.labels, dtype=object)
        self.feature_names_in_: NDArray[Any] = np.array(ScoredRows(model).needed, dtype=object)

    def predict_proba(
        self,
        table: Any,
        *,
        prior: Mapping[str, float] | Literal["training"] | None = None,
        threads: int = 1,
        allow_missing_columns: bool = False,
        **said: Any,
    ) -> Array:
        """Return P(y | x_t), shape (N, K): a row of the table per row, a label a column.

        prior: class frequencies to score under, a probability a label; `training`: those of the data, class weights
        undone; None: those learnt under. Columns that the model does not look at are left aside; one that it needs and
        the table lacks is an error, or unknown in every row. Here and wherever rows are scored can be said `unseen`,
        `missing` and of a file `format`, `delimiter`, `encoding`, `on_bad_row`, as to `fit` (rows that are skipped are
        not in the result); without them the model says what is missing or unseen. Raises BncliError.
        """
        shift = None if prior is None else prior_shift(self._model, prior)
        found = [np.exp(shifted(p, shift)).T for p, _ in self._scored(table, 0, threads, allow_missing_columns, said)]
        return np.concatenate(found) if found else np.empty((0, len(self.classes_)))

    def predict(
        self, table: Any, *, threads: int = 1, allow_missing_columns: bool = False, **said: Any
    ) -> NDArray[Any]:
        """Return the most probable label of every row (N,), the first of equals."""
        scores = self._scored(table, 0, threads, allow_missing_columns, said)
        found = [self.classes_[log_p.argmax(axis=0)] for log_p, _ in scores]
        return np.concatenate(found) if found else self.classes_[:0]

    def decide(self, table: Any, *, threads: int = 1, allow_missing_columns: bool = False, **instead: Any) -> Decisions:
        """Return what to do about every row, as the model says or as is said here `instead`.

        costs (`{true: {decision: cost}}`, text or a file), threshold, abstain_below, sets, sets_by: as the options of
        `bncli score`; prior: as in `predict_proba`. Raises BncliError where neither says what to decide.
        """
        prior = instead.pop("prior", None)
        said = {key: instead.pop(key) for key in (*SCORED, "unseen") if key in instead}
        wanted = decision_options_of(instead)
        with in_python(), watching(None) as watch:
            rule = rule_to_score(self._model, wanted, prior is not None, watch)
            if rule is None:
                hint = "say costs, a threshold, abstain_below or sets"
                raise UsageError("the model does not say what to decide", hint=hint)
            shift = None if prior is None else prior_shift(self._model, prior)
            decider = Decider.of(rule, tuple(self.classes_))
            blocks, highest = list[Decided](), -math.inf
            for p, _ in self._scored(table, 0, threads, allow_missing_columns, said):
                log_p = shifted(p, shift)
                highest = max(highest, float(log_p[1].max()))
                blocks.append(decider.decide(log_p))
            warn_about_threshold(rule, tuple(self.classes_), highest, watch)
        return Decisions.of(blocks, self.classes_)

    def explain(
        self, table: Any, n: int = 3, *, threads: int = 1, allow_missing_columns: bool = False, **said: Any
    ) -> list[Reasons]:
        """Return why each row got its label: the n largest contributions, by falling size; UsageError for n below 1."""
        if not isinstance(n, int) or n < 1:
            raise UsageError(f"n is {n!r}, and should be a whole number from 1 on: that many contributions are told")
        return [
            reasons
            for log_p, why in self._scored(table, n, threads, allow_missing_columns, said)
            for reasons in self._reasons(log_p, why)
        ]

    def _scored(
        self, table: Any, explain: int, threads: int, allow_missing_columns: bool, said: Mapping[str, Any]
    ) -> Iterator[tuple[Array, Explanation | None]]:
        """Yield log P(y | x_t), (K, rows), of consecutive rows, and why."""
        rows = ScoredRows(self._model, explain=explain)
        for _, log_p, why, _ in self._blocks(table, rows, threads, allow_missing_columns, said):
            yield log_p, why

    def _blocks(
        self, table: Any, rows: ScoredRows, threads: int, allow_missing_columns: bool, said: Mapping[str, Any]
    ) -> Iterator[ScoredBlock]:
        of_source = source_options({key: value for key, value in said.items() if key != "unseen"}, SCORED)
        of_source |= {"allow_missing_columns": True} if allow_missing_columns else {}
        schema, run = self._model.schema, run_of(threads)
        with in_python(), one_thread(), source_of(table, **of_source) as source:
            rows.strict = (one_of("unseen", said.get("unseen")) or schema.unseen) == "error"
            with Batches(source, schema, rows.needed, texts=rows.texts_wanted(), run=run) as batches:
                rows.absent = batches.absent
                for batch in batches:
                    if rows.strict:
                        rows.refuse_unseen(batch, batches.kept_names)
                    yield from rows.score(batch)

    def _reasons(self, log_p: Array, why: Explanation | None) -> Iterator[Reasons]:
        assert why is not None
        predicted, wordings = self.classes_[log_p.argmax(axis=0)], why.wordings
        for t, label in enumerate(predicted):
            places = [(i, k) for i, k in enumerate(why.reasons[:, t]) if k >= 0]
            found = (
                Contribution(wordings[k].attributes, wordings[k].values, float(why.contributions[i, t]))
                for i, k in places
            )
            numbers = float(why.log_odds[t]), float(why.base[t])
            yield Reasons(label, *numbers, tuple(found), float(why.rest[t]))

    def what_if(
        self, table: Any, changes: Mapping[str, Any], *, allow_missing_columns: bool = False, **said: Any
    ) -> Array:
        """Return P(y | x_t) with the values `changes` (by column; None: missing) in every row, shape (N, K)."""
        texts = tuple((name, "" if value is None else str(value)) for name, value in changes.items())
        answers = self._asked(table, WhatIfQuestions(changes=texts), allow_missing_columns, said)
        found = [np.exp(np.stack(columns[1:], axis=1)) for columns in answers]
        return np.concatenate(found) if found else np.empty((0, len(self.classes_)))

    def flip(
        self,
        table: Any,
        columns: Iterable[str] = (),
        changes: int = 2,
        *,
        allow_missing_columns: bool = False,
        **said: Any,
    ) -> list[str]:
        """Return the fewest values (`A=v; B=w`) that, if changed, change the decision, row by row; empty: none.

        Decided is by the rule of the model, or where it has none for the most probable label. At most `changes` values
        of these columns, none: of all, may change.
        """
        asked = WhatIfQuestions(flip=True, flip_columns=tuple(columns), flip_changes=changes)
        return [str(text) for (texts,) in self._asked(table, asked, allow_missing_columns, said) for text in texts]

    def next_best(self, table: Any, *, allow_missing_columns: bool = False, **said: Any) -> list[str]:
        """Return the missing column of each row whose value is expected to tell most of the class; empty: none."""
        answers = self._asked(table, WhatIfQuestions(next_best=True), allow_missing_columns, said)
        return [str(text) for (texts,) in answers for text in texts]

    def surprise(self, table: Any, *, allow_missing_columns: bool = False, **said: Any) -> Array:
        """Return -ln P(x_t) in nats, (N,); ModelError where the model is no network with probabilities."""
        found = [
            column for (column,) in self._asked(table, WhatIfQuestions(surprise=True), allow_missing_columns, said)
        ]
        return np.concatenate(found) if found else np.empty(0)

    def monitor(
        self, table: Any, *, threads: int = 1, allow_missing_columns: bool = False, **said: Any
    ) -> dict[str, Any]:
        """Return what `score --monitor` would write of these rows: drift against training, predictions, ln P(x)."""
        rows = ScoredRows(self._model)
        rows.watch(self._model)
        for _ in self._blocks(table, rows, threads, allow_missing_columns, said):
            pass
        watcher = rows.watcher
        assert watcher is not None
        return monitor_json(Monitor(monitored_model(self._model), watcher.tally, watcher.no_log_p))

    def _asked(
        self, table: Any, questions: WhatIfQuestions, allow_missing_columns: bool, said: Mapping[str, Any]
    ) -> Iterator[tuple[Any, ...]]:
        """Yield the columns of the answers, block by block."""
        rows = ScoredRows(self._model)
        rows.ask(self._model, questions, self._model.rule)
        for block in self._blocks(table, rows, 1, allow_missing_columns, said):
            yield block.added

    def effects(self) -> tuple[NamedEffect, ...]:
        """Return what the attributes do to the log-odds of the classes, by falling share of the score's variance.

        Of each: `attributes`, `share`, `values` (a value of the attributes an axis, the classes the last), and `names`,
        what the values along an axis stand for.
        """
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
        **said: Any,
    ) -> dict[str, Any]:
        """Return how well the model predicts the rows of a labelled table: what `bncli evaluate --model --json` says.

        `by`, `reliability`: as in `bncli.evaluate`. Of the table can be said `class_`, `weights`, `missing`,
        `drop_unlabelled`, `on_bad_row`, `positive` and of a file how to read it, as to `fit`; of decisions what
        `decide` takes instead of those of the model. Raises BncliError.
        """
        from bncli.steps.evaluate.evaluate import EvaluateOutputs, evaluate_learnt

        words = (*LABELLED, "positive")
        of_source = source_options({key: said.pop(key) for key in words if key in said}, words)
        of_source |= {"allow_missing_columns": True} if allow_missing_columns else {}
        outputs = EvaluateOutputs(by=(by,) if isinstance(by, str) else tuple(by), reliability=reliability)
        wanted = decision_options_of(said)
        with in_python(), one_thread(), watching(None) as watch, source_of(table, **of_source) as source:
            run = run_of(threads, watch)
            schema = self._model.schema
            model = replace(self._model, schema=replace(schema, unseen=one_of("unseen", unseen) or schema.unseen))
            return evaluate_learnt(model, source, outputs=outputs, decisions=wanted, run=run).as_json()

    def calibrate(
        self,
        table: Any,
        method: str = "temperature",
        *,
        threads: int = 1,
        allow_missing_columns: bool = False,
        **columns: Any,
    ) -> Model:
        """Return a model of the same tables whose probabilities are corrected by rows that it was not learnt from.

        method: temperature, isotonic or per-class (see `bncli help calibration`). Of the table can be said `class_`,
        `weights`, `missing`, `drop_unlabelled` and of a file how to read it, as to `fit`. Raises BncliError.
        """
        from bncli.steps.calibrate import calibrate_model

        said = source_options(columns, LABELLED) | ({"allow_missing_columns": True} if allow_missing_columns else {})
        with in_python(), one_thread(), source_of(table, **said) as source:
            return Model(calibrate_model(self._model, source, method, run=run_of(threads)), self.report)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model file, the same bytes as those of `bncli fit`."""
        from bncli.files.atomic import write_bytes

        write_bytes(os.fspath(path), dump_model(self._model))

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (dump_model(self._model), self.report)

    def __repr__(self) -> str:
        recipe = self._model.recipe
        methods = " ".join(dict.fromkeys([recipe.structure, recipe.param]))
        return (
            f"<bncli.Model {self.class_name} ({', '.join(self.classes_[:5])}): {methods}, {self._model.n_rows:,} rows>"
        )

    def _repr_html_(self) -> str:
        """For notebooks: the network, and the strongest effects."""
        bars = "".join(_bar(effect) for effect in self.effects()[:_SHOWN])
        return f"<div><p><b>{escape(repr(self))}</b></p><p>{self._network_html()}</p><table>{bars}</table></div>"

    def _network_html(self) -> str:
        structure = name_structure(self._model.structure, self._model.schema)
        if not isinstance(structure, NamedDag):
            return f"regions of {len(structure.nodes):,} attributes"
        arcs = [f"{escape(p)} &rarr; {escape(child)}" for child, parents in structure.parents.items() for p in parents]
        more = f", and {len(arcs) - _SHOWN * 4:,} more arcs" if len(arcs) > _SHOWN * 4 else ""
        return ", ".join(arcs[: _SHOWN * 4]) + more


def load(path: str | os.PathLike[str]) -> Model:
    """Return the model in a file; ModelError where it is damaged or none."""
    return Model(read_model(os.fspath(path)))


def _bar(effect: NamedEffect) -> str:
    width = max(1, round(200 * effect.share))
    bar = f'<svg width="{width}" height="10"><rect width="{width}" height="10" fill="#0072b2"/></svg>'
    return f"<tr><td>{escape(' × '.join(effect.attributes))}</td><td>{effect.share:.1%}</td><td>{bar}</td></tr>"


def _restored(content: bytes, report: dict[str, Any] | None) -> Model:
    with tempfile.TemporaryDirectory(prefix="bncli-") as folder:
        path = Path(folder, "model.bnc")
        path.write_bytes(content)
        return Model(read_model(str(path)), report)
