"""Learning and measuring from Python: the steps of the commands, with tables that need not be files."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from bncli.api.linear_algebra import one_thread
from bncli.api.messages import COLUMNS, FILES, Told, in_python, run_of, watching
from bncli.api.models import Model
from bncli.api.tables import one_of, source_of, source_options
from bncli.cli.learning_options import Learning, learning
from bncli.cli.presets import parse_learner as learner
from bncli.cli.presets import typed_options
from bncli.engine.data.schema import Unseen
from bncli.engine.evaluation.validate import Protocol
from bncli.errors import BncliError, UsageError
from bncli.files.artifacts.model import read_model
from bncli.files.label_numbers import resolve_costs, resolve_label_numbers
from bncli.steps import fit as fitting
from bncli.steps import simulate as simulating
from bncli.steps.compare import compare as comparing
from bncli.steps.evaluate import evaluate as evaluating


@in_python()
def fit(table: Any, *, unseen: Unseen = "average", threads: int = 1, progress: Told = None, **options: Any) -> Model:
    """Learn a model from a table: a path, a data frame, a dictionary of columns.

    Options are those of `bncli fit` by their words with `_` for `-` (`structure`, `param`, `k`, `penalty`, `seed`, ...;
    `structure` may be a file, `cuts` is one; `log_p_quantiles=True`), and of the table: `class_` (the column to
    predict; else one called `class`, else the last), `ignore`, `categorical`, `numeric` (lists of columns), `weights`
    (a column), `missing` (texts that mean a missing value), `dates`, `decimal`, `schema` (a file), `drop_unlabelled`,
    `drop_incomplete`, `use` (the only columns to learn from), `positive` (the label that is the event), `on_bad_row`,
    and of a file `format`, `delimiter`, `encoding`, `names` (of its columns, where it has no header). unseen: what
    `bncli score` does about values that training never saw, `average` or `error`. The same rows and options give the
    same bytes as the command, on any number of threads.

    `progress` is called with every event (`bncli.watch`); without it notes are issued as warnings of Python's kind
    `UserWarning`, and True shows a bar besides. Raises BncliError: one line that says what, where and what to do;
    TypeError for an unknown option.
    """
    quantiles = bool(options.pop("log_p_quantiles", False))
    columns, words = split_options(options)
    chosen = _learning(words)
    one_of("unseen", unseen)
    with ExitStack() as kept:
        kept.enter_context(one_thread())
        source = kept.enter_context(source_of(table, **columns))
        path = str(Path(kept.enter_context(tempfile.TemporaryDirectory(prefix="bncli-")), "model.bnc"))
        run = run_of(threads, kept.enter_context(watching(progress)))
        supplied = chosen.supplied
        report = fitting.fit(
            source, chosen.recipe, output=path, supplied=supplied, unseen=unseen, log_p_quantiles=quantiles, run=run
        )
        told = report.as_json()
        del told["model"]
        return Model(read_model(path), told)


def split_options(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what is said of the table, as fields of a source, and the options of learning."""
    of_table = (*COLUMNS, *FILES)
    said = {key: value for key, value in options.items() if key in of_table}
    return source_options(said), {key: value for key, value in options.items() if key not in of_table}


def _learning(words: Mapping[str, Any]) -> Learning:
    """Return the recipe that the options mean."""
    known = typed_options()
    for word in words:
        if word not in known and word != "seed":
            near = get_close_matches(word, [*known, "seed", "unseen", *COLUMNS, *FILES], 1)
            hint = f"did you mean {near[0]!r}?" if near else "options are the words of bncli fit, with _ for -"
            raise TypeError(f"there is no option {word!r}; {hint}")
    files = {key: os.fspath(words[key]) for key in ("structure", "cuts") if isinstance(words.get(key), os.PathLike)}
    if words.get("class_weights") is not None:
        files["class_weights"] = resolve_label_numbers(words["class_weights"])
    if words.get("costs") is not None:
        files["costs"] = resolve_costs(words["costs"])
    return learning({**known, "seed": 0, **words, **files}, settings={})


@in_python()
def evaluate(
    table: Any,
    *,
    test: Any = None,
    folds: int = 5,
    repeats: int = 1,
    by: str | Iterable[str] = (),
    threads: int = 1,
    progress: Told = None,
    **options: Any,
) -> dict[str, Any]:
    """Return how well learning predicts rows that it has not seen: what `bncli evaluate --json` says.

    By cross-validation of `folds` folds, or learnt from `table` and tested on `test`; options as in `fit`.
    `by`: columns whose values have figures of their own; `reliability=True`: bins of probabilities; as with these
    flags. A model that is there is tested by `model.evaluate`.
    """
    reliability, unseen = bool(options.pop("reliability", False)), one_of("unseen", options.pop("unseen", "average"))
    columns, words = split_options(options)
    chosen = _learning(words)
    outputs = evaluating.EvaluateOutputs(by=(by,) if isinstance(by, str) else tuple(by), reliability=reliability)
    with one_thread(), watching(progress) as watch, ExitStack() as files:
        how: dict[str, Any] = {"supplied": chosen.supplied, "outputs": outputs, "run": run_of(threads, watch)}
        how["unseen"] = unseen
        source = files.enter_context(source_of(table, **columns))
        if test is not None:
            tested = files.enter_context(source_of(test, **columns))
            return evaluating.evaluate_on(source, tested, chosen.recipe, **how).as_json()
        protocol = Protocol(folds, repeats, chosen.recipe.seed or words.get("seed") or 0)
        return evaluating.evaluate(source, chosen.recipe, protocol, **how).as_json()


def compare(
    tables: Iterable[str | os.PathLike[str]],
    learners: Mapping[str, str],
    *,
    folds: int = 5,
    repeats: int = 1,
    seed: int = 0,
    threads: int = 1,
    progress: Told = None,
    **columns: Any,
) -> dict[str, Any]:
    """Learners beside each other on the files of several tables, on the same folds: what `bncli compare --json` says.

    learners: a name and the options of each as a command line has them, {"tree": "--structure tan --param map"}.
    `unseen` and what is said of the columns: as to `fit`.
    """
    chosen = [learner(f"{name}={options}", seed) for name, options in learners.items()]
    unseen = one_of("unseen", columns.pop("unseen", "average"))
    said, words = split_options(columns)
    if words:
        raise TypeError(f"compare() got an unexpected keyword argument {next(iter(words))!r}")
    with in_python(), one_thread(), watching(progress) as watch, ExitStack() as files:
        sources = [files.enter_context(source_of(table, **said)) for table in map(_path, tables)]
        run = run_of(threads, watch)
        return comparing.compare(sources, chosen, Protocol(folds, repeats, seed), unseen=unseen, run=run).as_json()


def _path(table: Any) -> str:
    """Comparisons name their tables by their files."""
    if not isinstance(table, (str, os.PathLike)):
        raise UsageError(
            f"a table to compare on is a path, and not a {type(table).__name__}", hint="write it to a file"
        )
    return os.fspath(table)


@in_python()
def simulate(
    model: Model | str | os.PathLike[str], rows: int, *, seed: int = 0, missing: float | None = None
) -> pa.Table:
    """Return rows drawn from a model that is a network, the class among them, as a table of Arrow.

    Raises UsageError for fewer rows than 1, ModelError for a model that is no network.
    """
    if rows < 1:
        raise UsageError(f"rows is {rows}, and should be 1 or more")
    with one_thread(), tempfile.TemporaryDirectory(prefix="bncli-") as folder:
        origin, drawn = str(Path(folder, "model.bnc")), str(Path(folder, "rows.parquet"))
        if isinstance(model, Model):
            model.save(origin)
        else:
            origin = os.fspath(model)
        try:
            simulating.simulate(origin, rows, simulating.SimulateOutputs(rows=drawn), seed=seed, missing=missing)
        except BncliError as error:
            raise type(error)(error.what, where=error.where.replace(folder, "").lstrip("/"), hint=error.hint) from error
        return parquet.read_table(drawn, memory_map=False)
