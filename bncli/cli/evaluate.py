"""`bncli evaluate`: estimate how well a model, or models learned with the given options, predict unseen rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from bncli.catalogue import CHOICES, DECISION_KEYS, OPTIONS
from bncli.catalogue.choices import key_of
from bncli.cli import learning_options as learning
from bncli.cli import options
from bncli.cli.command import declare
from bncli.cli.config import refuse_cluster
from bncli.cli.console import Console
from bncli.cli.model_text import acll_error_text, rule_lines
from bncli.cli.options import SizesType, flag, integer, output_flag, settings_of_run, without_settings
from bncli.cli.terminal_tables import TextColumn, add_row, filled_table, fitted_tables, plain_table
from bncli.errors import UsageError

if TYPE_CHECKING:
    from rich.table import Table

    from bncli.engine.evaluation.curves import CalibrationFigures
    from bncli.engine.evaluation.intervals import Interval
    from bncli.engine.parameters.network_scores import Strengths
    from bncli.files.reading.source import Source
    from bncli.steps.evaluate.report import EvaluateReport

EXAMPLES = """\
bncli evaluate data.csv                               5-fold cross-validation
bncli evaluate data.csv --structure kdb --k 2 --folds 10 --repeats 3 --json
bncli evaluate train.csv --test test.csv --param map  train, then test
bncli evaluate test.csv --model data.bnc              test a model
bncli evaluate data.csv --ignore sex --by sex,age     figures by group
"""
_protocol_flag = partial(flag, group="Protocol")
PROTOCOL = (
    _protocol_flag(
        "--folds", type=integer(2), default_text="5", help="Number of stratified folds; with --time, of blocks."
    ),
    _protocol_flag(
        "--repeats",
        type=integer(1),
        default_text="1",
        help="Repeat N times with new random folds.",
    ),
    _protocol_flag(
        "--train-rows",
        everyday=False,
        metavar="N,N,...",
        type=SizesType(),
        setting=False,
        help="Learning curve: also learn from these numbers of rows, in ascending order; the last one may be all.",
    ),
    _protocol_flag("--test", metavar="FILE", help="Learn from DATA and test on FILE."),
    _protocol_flag(
        "--model",
        metavar="FILE",
        help="Test this model on DATA instead of learning. The model's decision rule applies unless options set "
        "another.",
    ),
)
PREDICTIONS = output_flag(
    "--predictions",
    metavar="FILE",
    help="Write the prediction and the true label of every test row. Rows are in the order of the table; each is "
    "predicted by a model that has not seen it (with --repeats, in the first repeat). Rows of weight 0 and "
    "dropped rows are left out.",
)
RELIABILITY = output_flag(
    "--reliability",
    is_flag=True,
    everyday=False,
    help="Also report calibration: bins of equal weight with intervals, the decomposition of the Brier score, the "
    "calibration error over these bins.",
)
GAINS = output_flag(
    "--gains",
    is_flag=True,
    help="With two labels: report KS, Gini, capture rate and gains by tenths of the rows; also calibration slope and "
    "intercept. Rows are sorted by the probability of the second label, highest first.",
)
NET_BENEFIT = output_flag(
    "--net-benefit",
    is_flag=True,
    everyday=False,
    help="With two labels: report the net benefit at the thresholds 0.01 to 0.99, compared with always and never "
    "choosing the second label.",
)
PICTURES = output_flag(
    "--svg",
    metavar="DIR",
    help="Draw ROC, precision-recall and reliability curves into this folder. The files are roc.svg, "
    "precision_recall.svg and reliability.svg, each label against all others, from all test rows together; "
    "with --train-rows also learning_curve.svg, with --time blocks.svg.",
)
CURVE = output_flag(
    "--csv", everyday=False, metavar="FILE", help="Write the learning curve of --train-rows, one row per size and fold."
)
FIGURES = (
    ("accuracy, error", "Proportions of rows whose most probable class is correct, and wrong."),
    ("log-loss", "Mean of -ln P(true class), in nats."),
    ("rmse", "Root mean square of 1 - P(true class)."),
    ("brier", "Mean over rows of the squared differences between P and 0 or 1, summed over the classes."),
    ("auc", "Area under the ROC curve; with more than two classes, the mean over their pairs."),
    ("ece", "Expected calibration error: the mean difference between confidence and accuracy."),
    ("cll", "Conditional log-likelihood: the sum of ln P(true class) over the test rows."),
    ("balanced-accuracy", "Mean recall over the labels."),
    ("mcc", "Matthews correlation of true and predicted labels: 1 is perfect, 0 is no better than guessing."),
    (
        "base",
        "The class frequencies of the training rows (with --model: of the test rows) used as predictions, for "
        "comparison.",
    ),
    (
        "skill-score",
        "1 - log-loss / log-loss of the class frequencies: 1 is perfect, 0 is no better than the class frequencies.",
    ),
    (
        "precision",
        "Proportion of the rows predicted as a label that have it; f1: harmonic mean of precision and recall.",
    ),
)


@declare(
    "evaluate",
    EXAMPLES,
    (options.data,),
    PROTOCOL,
    learning.ALL,
    (*options.TABLE, *options.SPLIT, options.POSITIVE),
    options.UNSEEN,
    options.MISSING_COLUMNS,
    (
        options.BY,
        RELIABILITY,
        GAINS,
        NET_BENEFIT,
        PREDICTIONS,
        PICTURES,
        CURVE,
        options.REPORT,
        options.BESIDE,
        options.SCORES,
    ),
    (options.CLUSTER,),
    (*options.RUNNING, options.VERBOSE),
    more="Cuts and structure are learned anew inside every fold. "
    "std is the standard deviation over the folds of all repeats. Figures of single labels are those of the confusion "
    "matrix, which is summed over the folds.",
    notes=("Figures", FIGURES),
)
def command(**typed: Any) -> None:
    """Cross-validate, test on another table, or test a model; print the metrics."""
    if typed["time"] and not (typed["model"] or typed["test"]):
        typed = without_settings(typed, "repeats")
    if not typed["time"]:
        typed = without_settings(typed, "window")
    _refuse_options_without_effect(typed)
    learnt = typed | dict.fromkeys(DECISION_KEYS) if typed["model"] else typed
    resolved, strengths = learning.resolve_with_scores(learnt)
    if typed["model"]:
        # Options on the command line about columns and rows have been refused above; settings apply to learning only.
        typed |= dict.fromkeys(("categorical", "numeric", "ignore", "use"), ())
        typed |= {"drop_incomplete": False, "time": None}
    # under cross-validation the protocol has the window
    window = {} if typed["test"] else {"window": None}
    source = options.source(typed | window, typed["data"])
    test = None
    if typed["test"] is not None:
        if typed["test"] == "-" and "-" in typed["data"]:
            raise UsageError("DATA and --test cannot both be the standard input")
        if typed["on_bad_row"] not in ("fail", "skip"):
            what = "--on-bad-row FILE would be written twice with --test"
            raise UsageError(what, hint="use --on-bad-row fail or skip")
        test = options.source(typed | {"time": None, "gap": None, "window": None}, (typed["test"],))
    with Console(quiet=typed["quiet"], as_json=typed["as_json"]) as console:
        console.notes(resolved.notes)
        options.check_page(typed, typed["test"], typed["model"], typed["predictions"], typed["csv"])
        report = _evaluate(typed, resolved, strengths, source, test, console)
        if typed["report"]:
            from bncli.steps.report.performance_section import score_other_models
            from bncli.steps.report.report import evaluation_page, write_page
            from bncli.watch import Run

            tested = test or source
            run = Run(options.threads(typed), watch=console.watch)
            beside = score_other_models(typed["beside"], tested.class_name, report.labels, tested, run)
            page = evaluation_page(report, tested.paths, None if typed["model"] else resolved.recipe, beside)
            write_page(typed["report"], page)
        if console.as_json:
            console.json(report)
        else:
            console.tables(*evaluation_tables(report, verbose=typed["verbose"]))


def _refuse_options_without_effect(typed: Mapping[str, Any]) -> None:
    """Raise UsageError for options on the command line (not settings) that have no effect with the protocol."""
    settings = settings_of_run()
    if typed["model"] == "-":
        options.refuse_standard_input("a model")
    if typed["scores"] and (typed["model"] or typed["test"]):
        why = "a model file stores no rows to score" if typed["model"] else "--test has no folds"
        hint = "leave one of them out; learn-structure --scores prints the scores for one table"
        raise UsageError(f"--scores needs cross-validation: {why}", hint=hint)
    protocol = ("--folds", "--repeats", "--test", "--train-rows", "--csv")
    columns = ("--categorical", "--numeric", "--ignore", "--use", "--drop-incomplete", "--time")
    is_typed = {name: bool(typed[key_of(name)]) and key_of(name) not in settings for name in (*protocol, *columns)}
    if typed["model"]:
        learnt = [*(entry.flag for entry in CHOICES), *(entry.flag for entry in OPTIONS), "--cuts", "--trace"]
        learnt = [name for name in learnt if typed.get(key_of(name)) is not None and key_of(name) not in settings]
        idle = [name for name in learnt if key_of(name) not in DECISION_KEYS]
        idle, why = [*idle, *(name for name in is_typed if is_typed[name])], "--model: nothing is learned"
    elif typed["test"]:
        # With --train-rows, --repeats is the number of samples of each size.
        without_folds = ("--folds",) if typed["train_rows"] else ("--folds", "--repeats")
        idle, why = [name for name in without_folds if is_typed[name]], "--test"
    else:
        is_idle = typed["allow_missing_columns"] and "allow_missing_columns" not in settings
        idle, why = ["--allow-missing-columns"] if is_idle else [], "cross-validation: all rows come from DATA"
        if typed["time"] and (typed["repeats"] or 1) > 1:
            idle, why = ["--repeats"], "--time, because blocks are not drawn at random"
    if typed["model"] or typed["test"]:
        refuse_cluster(
            typed, f"{'--model' if typed['model'] else '--test'}: a cluster runs only the folds of a cross-validation"
        )
    if typed["beside"] and not typed["report"]:
        raise UsageError(
            "--beside has no effect without --report",
            hint="add --report FILE, whose page shows the figures of the other model",
        )
    if typed["beside"] and not (typed["model"] or typed["test"]):
        hint = (
            "give rows that neither model has seen, with --test FILE or --model FILE; bncli compare compares learners"
        )
        raise UsageError("--beside has no effect with cross-validation: the other model has seen these rows", hint=hint)
    if typed["beside"]:
        from bncli.steps.report.performance_section import check_other_models

        check_other_models(typed["beside"], (typed["test"],) if typed["test"] else typed["data"])
    if typed["window"] and not typed["time"] and not idle:
        raise UsageError("--window has no effect without --time", hint="add --time COLUMN")
    if typed["csv"] and not typed["train_rows"] and not idle:
        raise UsageError("--csv writes the learning curve, so it needs --train-rows", hint="add --train-rows N,...")
    if idle:
        raise UsageError(f"{idle[0]} has no effect with {why}", hint="leave one of them out")


def _evaluate(
    typed: Mapping[str, Any],
    resolved: learning.LearningOptions,
    strengths: Strengths | None,
    source: Source,
    test: Source | None,
    console: Console,
) -> EvaluateReport:
    """Evaluate a model file, a learner on a test table, or a learner by cross-validation, as the options request."""
    from dataclasses import replace

    from bncli.engine.evaluation.cross_validation import Protocol
    from bncli.engine.prediction.decision_rules import DecisionOptions
    from bncli.steps.evaluate.evaluate import EvaluateOutputs, Samples, evaluate, evaluate_model, evaluate_on
    from bncli.watch import Run

    outputs = EvaluateOutputs(
        typed["predictions"],
        typed["svg"],
        by=tuple(typed["by"]),
        reliability=typed["reliability"],
        gains=typed["gains"],
        net_benefit=typed["net_benefit"],
    )
    if typed["model"]:
        # Decision options on the command line override the model's rule; settings apply to learning only.
        settings = settings_of_run()
        decisions = DecisionOptions(*(None if key in settings else typed[key] for key in DECISION_KEYS))
        run = Run(options.threads(typed), watch=console.watch)
        return evaluate_model(
            typed["model"], source, outputs=outputs, unseen=typed["unseen"], decisions=decisions, run=run
        )
    samples = Samples(typed["train_rows"] or (), typed["repeats"] or 1, typed["seed"])
    arguments: dict[str, Any] = {
        "supplied": resolved.supplied,
        "outputs": replace(outputs, samples=samples, csv=options.output_path(typed["csv"])),
        "unseen": typed["unseen"] or "average",
        "run": Run(options.threads(typed), watch=console.watch, cluster=typed["cluster"]),
    }
    if test is not None:
        return evaluate_on(source, test, resolved.recipe, **arguments)
    by_time = typed["time"] is not None
    protocol = Protocol(
        typed["folds"] or 5, typed["repeats"] or 1, typed["seed"], strengths, by_time=by_time, window=typed["window"]
    )
    return evaluate(source, resolved.recipe, protocol, **arguments)


_MOST_LABELS = 12
"""The maximum number of labels with metrics of their own; with more labels no confusion matrix is printed."""
_MOST_RELIABILITY_LABELS = 4
_MOST_GROUPS = 12
_THRESHOLD_STEP = 10
"""Every tenth threshold is printed; the JSON contains all of them."""
_CURVE_FIGURES = ("error", "log_loss", "auc")
_GROUP_FIGURES = ("log_loss", "auc", "ece")
_RATE_TITLES = {
    "selection_rate": "selected",
    "true_positive_rate": "true positives",
    "false_positive_rate": "false positives",
    "equalized_odds": "equalized odds",
}


def evaluation_tables(report: EvaluateReport, *, verbose: bool = False) -> Iterator[str | Table]:
    """Yield the tables and lines about an evaluation in the order in which they are printed.

    verbose: whether to include the seconds, and the metrics and penalty of each fold.
    """
    split = report.split
    of_units = ""
    if split is not None and "group" in split.kind and report.units is not None:
        of_units = f" of {len(set(report.units.tolist())):,} groups"
    yield f"{report.rows:,} rows{of_units}; {report.protocol}"
    yield _figure_table(report, verbose=verbose)
    whose = "this model" if report.folds is None else "these models"
    if report.on_training_rows:
        method = report.intervals.method
        yield f"Figures on the training rows are too optimistic; test the model on other rows (95 %: {method})"
    else:
        yield f"95 %: intervals for {whose} on new rows ({report.intervals.method})"
    yield ""

    # The figures of each fold, block of rows and number of training rows, and the decisions.
    if verbose and report.folds is not None:
        folds = (
            (
                *(str(fold.repeat + 1), str(fold.fold + 1), f"{fold.rows:,}"),
                *(_figure(fold.metrics[name]) for name in ("error", "log_loss", "auc")),
                "-" if fold.penalty is None else f"{fold.penalty:g}",
                *(f"{fold.seconds[stage]:.3f}" for stage in ("fit", "score")),
            )
            for fold in report.folds
        )
        headings = ["repeat", "fold", "rows", "error", "log-loss", "auc", "penalty", "fit s", "score s"]
        yield filled_table("Folds", headings, folds, numbers=range(9))
    yield from _decision_tables(report)
    if report.blocks:
        blocks = (
            (
                *(end if isinstance(end, str) else f"{end:,.10g}" for end in (block.start, block.end)),
                *(f"{block.rows:,}", f"{block.train_rows:,}"),
                *(_figure(block.metrics["error"]), _figure(block.metrics["log_loss"])),
                _interval(block.intervals["log_loss"]),
                *(_figure(block.baseline.log_loss), _figure(block.metrics["auc"])),
            )
            for block in report.blocks
        )
        headings = ["from", "to", "rows", "training rows", "error", "log-loss", "95 %", "base", "auc"]
        yield filled_table("Blocks in time order", headings, blocks, numbers=range(2, 9))
    if report.learning_curve:
        headings = [heading for name in _CURVE_FIGURES for heading in (name.replace("_", "-"), "std")]
        points = (
            (f"{point.rows:,}", *(_figure(of[name]) for name in _CURVE_FIGURES for of in (point.metrics, point.std)))
            for point in report.learning_curve
        )
        yield filled_table("Learning curve", ("training rows", *headings), points, numbers=range(7))

    # Parts of the rows: labels, bins of probabilities, and groups.
    yield from _label_tables(report)
    if report.calibration is not None:
        yield from _reliability_tables(report.calibration)
    yield from _two_class_tables(report)
    if report.groups is not None:
        yield from _group_tables(report)

    if report.scored is not None:
        scores = report.scored.scores._asdict().items()
        rows = ((name, "-" if value is None else f"{value:,.4f}") for name, value in scores)
        title = "Scores of the networks on their training rows, in nats: means over the folds"
        yield filled_table(title, ("score", "nats"), rows, numbers=(1,))
        if report.scored.acll_relative_error is not None:
            yield f"acll: {acll_error_text(report.scored.acll_relative_error)}, on average"
            yield ""

    # The confusion matrix.
    if len(report.labels) <= _MOST_LABELS:
        columns = [
            TextColumn(label, [f"{count:,.10g}" for count in counts])
            for label, counts in zip(report.labels, zip(*report.shown_confusion, strict=True), strict=True)
        ]
        undecided = report.decisions.undecided
        if undecided is not None and undecided.any():
            columns.append(TextColumn("no decision", [f"{count:,.10g}" for count in undecided.tolist()]))
        columns_hold = "predicted label" if undecided is None else "decision of the rule"
        title = f"Confusion matrix (a row per true label, a column per {columns_hold})"
        yield from fitted_tables(title, TextColumn("", report.labels), columns, "further labels")


def _figure_table(report: EvaluateReport, *, verbose: bool) -> Table:
    """Return the table of metrics: value or mean, 95 % interval, standard deviation over folds, and baseline.

    The baseline is the metric of the class frequencies, where it is defined. The last rows are the skill score and, if
    `verbose`, the seconds of each stage.
    """
    base: dict[str, float | None] = {**report.baseline._asdict(), "error": 1 - report.baseline.accuracy}
    has_std = report.std is not None
    headings = ("figure", "mean" if has_std else "value", "95 %", *(["std"] if has_std else []), "base")
    table = plain_table("", *headings)
    for column in table.columns[1:]:
        column.justify = "right"
    for name, value in report.metrics.items():
        cells = [_figure(value), _interval(report.intervals.metrics[name])]
        cells += [_figure((report.std or {}).get(name))] if has_std else []
        add_row(table, name.replace("_", "-"), *cells, _figure(base[name]) if name in base else "")
    add_row(table, "skill-score", _figure(report.skill_score))
    for stage, seconds in report.seconds.items():
        if verbose and seconds is not None:
            add_row(table, f"seconds, {stage}", f"{seconds:.3f}")
    return table


def _figure(value: float | None) -> str:
    """Format a number with four decimals, or with one if its absolute value is at least 100; None becomes "-"."""
    if value is None:
        return "-"
    return f"{round(value, 4) + 0.0:.4f}" if abs(value) < 100 else f"{value:.1f}"


def _interval(ends: Interval | None) -> str:
    """Format both ends of an interval, or a dash if there is none."""
    return "-" if ends is None else f"{_figure(ends[0])} - {_figure(ends[1])}"


def _decimals(value: float | None) -> str:
    """Format a number with four decimals, or a dash if it is None."""
    return "-" if value is None else f"{value:.4f}"


def _decision_tables(report: EvaluateReport) -> Iterator[Table]:
    """Yield the metrics of decisions, if any, and with a threshold or costs also the metrics at other thresholds.

    With costs, the first table includes the cost of always choosing the same label, for each label or, with more than
    _MOST_LABELS labels, for the cheapest one; with two labels also the cost at the best threshold.
    """
    decisions = report.decisions
    if not decisions.metrics:
        return
    has_std = bool(decisions.std)
    headings = ("figure", "mean" if has_std else "value", *(["std"] if has_std else []))
    title = "Decisions"
    if decisions.rows is not None:
        from bncli.files.artifacts.model import rule_summary_json

        title += f" ({'; '.join(rule_lines(rule_summary_json(decisions.rows.rule), report.labels))})"
    table = plain_table(title, *headings, numbers=range(1, len(headings)))
    for name, value in decisions.metrics.items():
        std = [_decimals(decisions.std.get(name))] if has_std else []
        add_row(table, name.replace("_", "-"), _decimals(value), *std)
        if name == "cost":
            always = sorted(zip(decisions.constant_costs, report.labels, strict=True), key=lambda pair: pair[0])
            for cost, label in always[: _MOST_LABELS if len(always) <= _MOST_LABELS else 1]:
                add_row(table, f"cost, always {label}", _decimals(cost), *([""] if has_std else []))
            if (best := decisions.best_threshold) is not None:
                words = f"cost, best threshold ({best['threshold']:.2f})"
                add_row(table, words, _decimals(best["cost"]), *([""] if has_std else []))
    for label, coverage in zip(report.labels, decisions.class_coverage, strict=False):
        add_row(table, f"coverage of {label}", _decimals(coverage), *([""] if has_std else []))
    yield table
    if decisions.thresholds and decisions.metrics.keys() & {"cost", "threshold"}:
        names = [name for name in decisions.thresholds[0] if name != "balanced_accuracy"]
        rows = (
            (f"{line['threshold']:.1f}", *(_decimals(line[name]) for name in names[1:]))
            for line in decisions.thresholds[::_THRESHOLD_STEP]
        )
        title = f"Thresholds on p_{report.labels[1]}"
        yield filled_table(title, [name.replace("_", "-") for name in names], rows, numbers=range(len(names)))


def _label_tables(report: EvaluateReport) -> Iterator[Table | str]:
    """Yield precision, recall, F1 and support of each label, or of the most frequent ones if there are many."""
    figures = report.shown_per_label
    shown = sorted(sorted(range(len(figures)), key=lambda c: -figures[c].support)[:_MOST_LABELS])
    columns = []
    for name in ("precision", "recall"):
        columns.append(TextColumn(name, [_figure(getattr(figures[c], name)) for c in shown]))
        columns.append(TextColumn("95 %", [_interval(report.intervals.by_label[c][name]) for c in shown]))
    columns.append(TextColumn("f1", [_figure(figures[c].f1) for c in shown]))
    support = TextColumn("support", [f"{figures[c].support:,.10g}" for c in shown])
    names = TextColumn("label", [report.labels[c] for c in shown])
    title = "Each label against all others"
    if report.decisions.confusion is not None:
        title += ", as decided by the rule"
    yield from fitted_tables(title, names, [*columns, support])
    if hidden := len(figures) - len(shown):
        yield f"... and {hidden:,} more labels with fewer rows; --json prints all"


def _reliability_tables(figures: CalibrationFigures) -> Iterator[str | Table]:
    """Yield the reliability bins of the first labels, then the parts of the Brier score and the calibration error."""
    labels = list(dict.fromkeys(bin_.label for bin_ in figures.bins))
    for label in labels[:_MOST_RELIABILITY_LABELS]:
        rows = (
            (
                *(f"{bin_.low:.4f}", f"{bin_.high:.4f}", f"{bin_.rows:,.10g}"),
                *(f"{bin_.mean_p:.4f}", f"{bin_.frequency:.4f}", f"{bin_.low95:.4f} - {bin_.high95:.4f}"),
            )
            for bin_ in figures.bins
            if bin_.label == label
        )
        headings = ("from", "to", "rows", "mean P", "share", "95 %")
        yield filled_table(f"Reliability of P({label})", headings, rows, numbers=range(6))
    if len(labels) > _MOST_RELIABILITY_LABELS:
        yield f"... and {len(labels) - _MOST_RELIABILITY_LABELS:,} more labels; --json prints all"
    table = plain_table("Decomposition of the Brier score", "part", "value", numbers=(1,))
    for name, value in figures.brier_parts._asdict().items():
        add_row(table, name.replace("_", " "), f"{value + 0.0:.4f}")
    add_row(table, "ece, equal mass", f"{figures.ece_equal_mass:.4f}")
    yield table


def _two_class_tables(report: EvaluateReport) -> Iterator[Table]:
    """Yield the requested tables for two labels: ranking, calibration and gains, then the net benefit."""
    figures = report.two_class
    if figures is None:
        return
    event = report.labels[1]
    if report.shows_gains:
        facts = (
            ("ks", figures.ks),
            ("gini", report.gini),
            ("capture-10", figures.capture_10),
            ("calibration-slope", figures.calibration_slope),
            ("calibration-intercept", figures.calibration_intercept),
            ("calibration-in-the-large", figures.calibration_in_the_large),
        )
        shown = ((name, _figure(value)) for name, value in facts)
        yield filled_table(f"Ranking and calibration of p_{event}", ("figure", "value"), shown, numbers=(1,))
        headings = ("rows, highest first", "rows", "events", "event rate", "lowest p", "captured", "lift", "ks")
        rows = (
            (f"{line.share:.0%}", f"{line.rows:,.6g}", f"{line.events:,.6g}", *map(_decimals, line[3:]))
            for line in figures.gains
        )
        yield filled_table(f"Gains (event: {event})", headings, rows, numbers=range(8))
    if report.shows_net_benefit:
        lines = figures.net_benefit[_THRESHOLD_STEP - 1 :: _THRESHOLD_STEP]
        benefits = ((f"{line.threshold:.1f}", *map(_decimals, line[1:4])) for line in lines)
        columns = ("threshold", "model", f"always {event}", f"never {event}")
        yield filled_table("Net benefit per row", columns, benefits, numbers=range(4))


def _group_tables(report: EvaluateReport) -> Iterator[str | Table]:
    """Yield a table per grouping column; the groups whose error differs most from the overall error come first.

    A table has at most _MOST_GROUPS groups. With two labels it includes the rates of the second label, and a table of
    their gaps between groups follows.
    """
    assert report.groups is not None
    total = sum(sum(row) for row in report.confusion) or 1.0
    error = 1 - sum(row[c] for c, row in enumerate(report.confusion)) / total
    for by in dict.fromkeys(group.by for group in report.groups.groups):
        groups = [group for group in report.groups.groups if group.by == by]
        groups.sort(key=lambda group: -abs((group.metrics["error"] or 0.0) - error))
        shown = groups[:_MOST_GROUPS]
        columns = [
            TextColumn("rows", [f"{group.rows:,}" for group in shown]),
            TextColumn("error", [_decimals(group.metrics["error"]) for group in shown]),
            TextColumn("95 %", [_interval(group.intervals["error"]) for group in shown]),
            TextColumn("gap", [f"{(group.metrics['error'] or 0.0) - error:+.4f}" for group in shown]),
        ]
        columns += [
            TextColumn(name.replace("_", "-"), [_decimals(group.metrics[name]) for group in shown])
            for name in _GROUP_FIGURES
        ]
        columns += [
            TextColumn(name.replace("_", "-"), [_decimals(group.decisions[name]) for group in shown])
            for name in shown[0].decisions
        ]
        if len(report.labels) == 2:
            from bncli.engine.evaluation.groups import RATES

            for name in RATES:
                rates = [next(iter(group.rates.values()))[name] for group in shown]
                shares = [_decimals(None if rate is None else rate.share) for rate in rates]
                columns.append(TextColumn(_RATE_TITLES[name], shares))
        values = TextColumn(by, ["missing" if group.value is None else group.value for group in shown])
        yield from fitted_tables(f"Groups by {by}, largest difference in error first", values, columns)
        if (hidden := len(groups) - _MOST_GROUPS) > 0:
            yield f"... and {hidden:,} more groups whose error is nearer to that of all rows; --json prints all"
        fairness = [entry for entry in report.groups.fairness if entry.by == by]
        if len(fairness) == 1:
            gaps = {**fairness[0].gaps, "equalized_odds": fairness[0].equalized_odds}
            names = TextColumn(f"label {fairness[0].label}", [_RATE_TITLES[name] for name in gaps])
            columns = [
                TextColumn(heading, [_decimals(None if gap is None else getattr(gap, field)) for gap in gaps.values()])
                for heading, field in (("highest - lowest", "difference"), ("lowest / highest", "ratio"))
            ]
            what = "Rates" if report.decisions.rows is None else "Rates of decisions"
            yield from fitted_tables(f"{what} across the groups of {by}", names, columns)
            verb = "predicted as" if report.decisions.rows is None else "decided as"
            label = fairness[0].label
            yield f"selected: share of the rows {verb} {label!r}; true positives: the same share among rows with"
            yield f"the label {label!r}; false positives: the same share among all other rows"
            yield ""
