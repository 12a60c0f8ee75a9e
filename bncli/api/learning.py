"""The functions `fit`, `evaluate`, `compare` and `simulate` of the Python interface."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from bncli.api.arguments import check_integer, check_real
from bncli.api.calls import (
    COLUMN_OPTIONS,
    FILE_OPTIONS,
    SPLIT_OPTIONS,
    ProgressOption,
    check_word,
    make_run,
    python_call,
    source_of,
    source_options,
)
from bncli.api.models import Model
from bncli.catalogue.option_kinds import Integer
from bncli.cli.command import meant_options
from bncli.cli.learning_options import LearningOptions, parse_learner, resolve_learning_options, typed_options
from bncli.engine.data.schema import Unseen
from bncli.engine.evaluation.cross_validation import Protocol
from bncli.errors import BncliError, UsageError
from bncli.files.artifacts.model import read_model
from bncli.files.atomic import temporary_folder
from bncli.files.option_files import resolve_costs, resolve_knowledge, resolve_label_numbers
from bncli.steps import fit as fitting
from bncli.steps import simulate as simulating
from bncli.steps.compare import compare as comparing
from bncli.steps.evaluate import evaluate as evaluating


def fit(
    table: Any, *, unseen: Unseen = "average", threads: int = 1, progress: ProgressOption = None, **options: Any
) -> Model:
    """Learn a model from a table: a path, a data frame, or a dictionary of columns.

    The options are those of `bncli fit`, with `_` for `-`:

    - about learning: `structure`, `param`, `k`, `penalty`, `seed`, ...; `structure` may also be the path of a structure
      file; `cuts` is the path of a cuts file; `log_p_quantiles=True`; `intervals=True` for `model.predict_interval`;
      `alternatives=N` to report up to N other cards
    - about the table: `class_` (the column to predict; by default the column `class`, or the last one), `ignore`,
      `categorical`, `numeric`, `use` (lists of columns; `use` are the only columns to learn from), `weights` (a
      column), `missing` (strings that mean a missing value), `dates`, `decimal`, `schema` (a file), `drop_unlabelled`,
      `drop_incomplete`, `positive` (the label that is the event), `on_bad_row`
    - about rows that belong together: `group` (a column, or a list of columns), `time` (a column), `gap`, `window`;
      `bncli help validation` explains them
    - about a file: `format`, `delimiter`, `encoding`, `names` (of the columns, if the file has no header)

    unseen: how the model treats values not seen in training, `average` or `error`.
    progress: a function that is called with every event (`bncli.watch`). By default notes are issued as Python warnings
        (`UserWarning`), and with True there is also a progress bar.

    The same rows and options give the same bytes as the command, on any number of threads. Raises BncliError, whose
    message states what is wrong, where, and what to do; TypeError for an unknown option.
    """
    with python_call():
        quantiles = bool(options.pop("log_p_quantiles", False))
        intervals = bool(options.pop("intervals", False))
        alternatives = Integer().parse(options.pop("alternatives", 0))
        reading, words = _split_options(options)
        chosen = _parse_learning(words)
        if alternatives and chosen.recipe.param != "points":
            raise UsageError("--alternatives has no effect without a card", hint="use --structure card")
        check_word("unseen", unseen)
    with python_call(progress) as watch, source_of(table, **reading) as source, temporary_folder() as folder:
        path = str(Path(folder, "model.bnc"))
        report = fitting.fit(
            source,
            chosen.recipe,
            output=path,
            supplied=chosen.supplied,
            unseen=unseen,
            log_p_quantiles=quantiles,
            run=make_run(threads, watch)._replace(intervals=intervals, alternatives=int(alternatives)),
        )
        content = report.as_json()
        del content["model"]
        return Model(read_model(path), content)


def evaluate(
    table: Any,
    *,
    test: Any = None,
    folds: int = 5,
    repeats: int = 1,
    by: str | Iterable[str] = (),
    threads: int = 1,
    progress: ProgressOption = None,
    **options: Any,
) -> dict[str, Any]:
    """Return the predictive performance on unseen rows, with the fields of `bncli evaluate --json`.

    The default is cross-validation with `folds` folds; with `test`, a model is learned from `table` and tested on
    `test`. The options are those of `fit` except `log_p_quantiles`, `intervals` and `alternatives`. `by` names columns:
    results are also given for each of their values. `reliability=True` compares predicted probabilities with observed
    frequencies. To test a fitted model, use `model.evaluate`. Raises BncliError, and TypeError for an unknown option.
    """
    with python_call():
        reliability = bool(options.pop("reliability", False))
        unseen = check_word("unseen", options.pop("unseen", "average"))
        reading, words = _split_options(options)
        chosen = _parse_learning(words)
        folds, repeats = check_integer("folds", folds, 2), check_integer("repeats", repeats, 1)
    outputs = evaluating.EvaluateOutputs(by=(by,) if isinstance(by, str) else tuple(by), reliability=reliability)
    with python_call(progress) as watch, ExitStack() as files:
        run = make_run(threads, watch)
        how: dict[str, Any] = {"supplied": chosen.supplied, "outputs": outputs, "run": run, "unseen": unseen}
        source = files.enter_context(source_of(table, **reading))
        if test is not None:
            of_test = {key: value for key, value in reading.items() if key not in SPLIT_OPTIONS}
            test_source = files.enter_context(source_of(test, **of_test))
            return evaluating.evaluate_on(source, test_source, chosen.recipe, **how).as_json()
        by_time, window = source.time is not None, source.window
        protocol = Protocol(
            folds, repeats, chosen.recipe.seed or words.get("seed") or 0, by_time=by_time, window=window
        )
        source = replace(source, window=None)
        return evaluating.evaluate(source, chosen.recipe, protocol, **how).as_json()


def compare(
    tables: Iterable[str | os.PathLike[str]],
    learners: Mapping[str, str],
    *,
    folds: int = 5,
    repeats: int = 1,
    seed: int = 0,
    threads: int = 1,
    progress: ProgressOption = None,
    **columns: Any,
) -> dict[str, Any]:
    """Return a comparison of learners on the same folds of several files, with the fields of `bncli compare --json`.

    learners: the options of each learner, keyed by its name: {"tree": "--structure tan --param map"}. `unseen` and the
    options about tables and files are as in `fit`. Raises BncliError, and TypeError for an unknown option.
    """
    folds, repeats = check_integer("folds", folds, 2), check_integer("repeats", repeats, 1)
    seed = check_integer("seed", seed, 0)
    chosen = [parse_learner(f"{name}={options}", seed) for name, options in learners.items()]
    unseen = check_word("unseen", columns.pop("unseen", "average"))
    reading, words = _split_options(columns)
    if words:
        raise TypeError(f"compare() got an unexpected keyword argument {next(iter(words))!r}")
    with python_call(progress) as watch, ExitStack() as files:
        sources = []
        for table in tables:
            if not isinstance(table, (str, os.PathLike)):  # the results name the tables by their files
                what = f"compare needs the path of a table, not an object of type {type(table).__name__}"
                raise UsageError(what, hint="write the table to a file and give its path")
            sources.append(files.enter_context(source_of(table, **reading)))
        run = make_run(threads, watch)
        by_time, window = reading.get("time") is not None, reading.get("window")
        protocol = Protocol(folds, repeats, seed, by_time=by_time, window=window)
        sources = [replace(source, window=None) for source in sources]
        return comparing.compare(sources, chosen, protocol, unseen=unseen, run=run).as_json()


def _split_options(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split options into fields of a `Source` and options about learning."""
    of_table = (*COLUMN_OPTIONS, *FILE_OPTIONS)
    reading = source_options({key: value for key, value in options.items() if key in of_table})
    return reading, {key: value for key, value in options.items() if key not in of_table}


def _parse_learning(words: Mapping[str, Any]) -> LearningOptions:
    """Resolve options about learning into a recipe and supplied files; raise TypeError for an unknown option."""
    known = typed_options()
    for word in words:
        if word not in known and word != "seed":
            options = [*known, "seed", "unseen", "threads", *COLUMN_OPTIONS, *FILE_OPTIONS]
            meant = [{"class": "class_"}.get(option, option.replace("-", "_")) for option in meant_options(word)]
            near = [option for option in meant if option in options] or get_close_matches(word, options, 1)
            hint = f"did you mean {near[0]!r}?" if near else "options have the names of bncli fit, with _ instead of -"
            raise TypeError(f"there is no option {word!r}; {hint}")
    texts = {
        key: os.fspath(words[key])
        for key in ("structure", "cuts", "prior_network")
        if isinstance(words.get(key), os.PathLike)
    }
    if words.get("class_weights") is not None:
        texts["class_weights"] = resolve_label_numbers(words["class_weights"])
    if words.get("costs") is not None:
        texts["costs"] = resolve_costs(words["costs"])
    if words.get("knowledge") is not None:
        texts["knowledge"] = resolve_knowledge(words["knowledge"])
    return resolve_learning_options({**known, "seed": 0, **words, **texts}, settings={})


def simulate(
    model: Model | str | os.PathLike[str], rows: int, *, seed: int = 0, missing: float | None = None
) -> pa.Table:
    """Draw rows, including the class, from a model that is a network; return them as an Arrow table.

    missing: the probability with which each attribute value is removed, or None to remove none.

    Raises UsageError for an invalid number, ModelError for a model that is not a network.
    """
    with python_call(), temporary_folder() as folder:
        rows, seed = check_integer("rows", rows, 1), check_integer("seed", seed, 0)
        missing = None if missing is None else check_real("missing", missing, 0, 1, or_equal=True)
        origin, output = str(Path(folder, "model.bnc")), str(Path(folder, "rows.parquet"))
        if isinstance(model, Model):
            model.save(origin)
        else:
            origin = os.fspath(model)
        try:
            simulating.simulate(origin, rows, simulating.SimulateOutputs(rows=output), seed=seed, missing=missing)
        except BncliError as error:
            raise type(error)(error.what, where=error.where.replace(folder, "").lstrip("/"), hint=error.hint) from error
        return parquet.read_table(output, memory_map=False)
