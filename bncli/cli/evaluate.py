"""`bncli evaluate`: how well the learning options, or a model, predict rows not seen in training."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from bncli.catalogue import DECISION_KEYS
from bncli.catalogue.choices import key_of
from bncli.cli import learning_options as learning
from bncli.cli import options, pages
from bncli.cli.command import declare
from bncli.cli.console import Console
from bncli.cli.options import SizesType, flag, whole
from bncli.cli.settings import refuse_cluster
from bncli.errors import UsageError

if TYPE_CHECKING:
    from rich.table import Table

    from bncli.engine.parameters.network_scores import ScoredNetwork
    from bncli.engine.prediction.decision_rules import DecisionOptions
    from bncli.files.pictures.page import Page
    from bncli.files.reading.source import Source
    from bncli.recipe import Recipe
    from bncli.steps.evaluate.evaluate import EvaluateOutputs
    from bncli.steps.evaluate.report import EvaluateReport

EXAMPLES = """\
bncli evaluate data.csv                                     5-fold cross-validation
bncli evaluate data.csv --structure kdb --k 2 --folds 10 --repeats 3 --json
bncli evaluate train.csv --test test.csv --param map        learn on one table, test on another
bncli evaluate test.csv --model data.bnc                    test a model
bncli evaluate data.csv --ignore sex --by sex,age           figures by group
"""
_PROTOCOL = "Protocol"
_LABELS_SHOWN = 12
PROTOCOL = (
    flag("--folds", group=_PROTOCOL, metavar="N", type=whole(2), default_text="5", help="Number of folds, stratified."),
    flag(
        "--repeats",
        group=_PROTOCOL,
        metavar="N",
        type=whole(1),
        default_text="1",
        help="Do it so often, with new random folds.",
    ),
    flag(
        "--train-rows",
        group=_PROTOCOL,
        metavar="N,N,...",
        type=SizesType(),
        setting=False,
        help="A learning curve: learn from so many of the rows too, ascending; the last may be all.",
    ),
    flag("--test", group=_PROTOCOL, metavar="FILE", help="Learn on DATA, test on FILE."),
    flag(
        "--model",
        group=_PROTOCOL,
        metavar="FILE",
        help="Test this model on DATA; nothing is learnt. Decisions are its own, or those that are typed.",
    ),
)
PREDICTIONS = flag(
    "--predictions",
    group="Output",
    metavar="FILE",
    help="Write a row of predictions for every row tested, in their order, each from the fold that had not seen it "
    "(with --repeats that of the first repeat). Rows of weight 0 and dropped unlabelled rows are left out.",
)
RELIABILITY = flag(
    "--reliability",
    group="Output",
    is_flag=True,
    everyday=False,
    help="Also whether probabilities may be taken at their word: bins of equal weight with intervals, the parts of the "
    "Brier score, the calibration error over such bins.",
)
PICTURES = flag(
    "--svg",
    group="Output",
    metavar="DIR",
    help="Draw ROC, precision-recall and reliability curves into this folder (roc.svg, precision_recall.svg, "
    "reliability.svg), each label against all others, from all rows tested together; with --train-rows also "
    "learning_curve.svg.",
)
CURVE = flag(
    "--csv", group="Output", metavar="FILE", help="Write the learning curve of --train-rows, a line a size and fold."
)
FIGURES = (
    ("accuracy, error", "Share of rows whose most probable class is right, and wrong."),
    ("log-loss", "Mean of -ln P(true class), in nats."),
    ("rmse", "Root mean square of 1 - P(true class)."),
    ("brier", "Mean over rows of the squared differences between P and 0 or 1, summed over the classes."),
    ("auc", "Area under the ROC curve; with more classes the mean over their pairs."),
    ("ece", "Expected calibration error: how far confidence and accuracy lie apart."),
    ("cll", "Conditional log-likelihood: the sum of ln P(true class) over the rows tested."),
    ("balanced-accuracy", "Mean over the labels of the share of their rows that is found (recall)."),
    ("mcc", "Matthews' correlation of true and predicted labels: 1 perfect, 0 no better than guessing."),
    (
        "base",
        "The class frequencies of the rows learnt from (with --model: tested) as a classifier, beside the figures.",
    ),
    ("skill-score", "1 - log-loss / that of the base: 1 is perfect, 0 no better than the class frequencies."),
    ("precision", "Of the rows predicted as a label, the share that are; f1 is its harmonic mean with recall."),
)


@declare(
    "evaluate",
    EXAMPLES,
    (options.data,),
    PROTOCOL,
    learning.ALL,
    (*options.TABLE, options.POSITIVE),
    options.UNSEEN,
    options.MISSING_COLUMNS,
    (options.BY, RELIABILITY, PREDICTIONS, PICTURES, CURVE, pages.REPORT, pages.BESIDE, options.SCORES),
    (options.CLUSTER,),
    options.RUNNING,
    more="Cuts and structure are learnt anew inside every fold. "
    "std is the standard deviation over the folds of all repeats. Figures of single labels are those of the confusion "
    "matrix, which is summed over the folds.",
    notes=("Figures", FIGURES, FIGURES),
)
def command(**typed: Any) -> None:
    """Measures, and shows the figures."""
    _refuse_idle(typed)
    decisions = _decisions_of_model(typed)
    chosen = learning.learning(typed if decisions is None else typed | dict.fromkeys(DECISION_KEYS))
    if typed["model"]:
        typed |= dict.fromkeys(("categorical", "numeric", "ignore", "use"), ()) | {
            "drop_incomplete": False
        }  # what is set of these is for learning
    source = options.source(typed, typed["data"])
    test = _test_source(typed)
    with Console(quiet=typed["quiet"], as_json=typed["as_json"]) as console:
        console.notes(chosen.notes)
        pages.check_page(typed, typed["test"], typed["model"], typed["predictions"], typed["csv"])
        if decisions is not None:
            # The model of --model on DATA.
            from bncli.steps.evaluate.evaluate import evaluate_model
            from bncli.watch import Run

            run = Run(options.threads(typed), watch=console.watch)
            outputs, unseen = _outputs(typed), typed["unseen"]
            report = evaluate_model(
                typed["model"], source, outputs=outputs, unseen=unseen, decisions=decisions, run=run
            )
        else:
            report = _measured(typed, chosen, source, test, console)
        pages.write_page(typed, lambda: _page(typed, report, chosen.recipe, test or source, console))
        if console.as_json:
            console.json(report)
        else:
            from bncli.cli.tables import decision_tables

            tables: list[str | Table] = [
                f"{report.rows:,} rows; {report.protocol}",
                _figures(report),
                *decision_tables(report),
                *_curve(report),
                *_per_label(report),
            ]
            if report.calibration is not None:
                from bncli.cli.tables import reliability_tables

                tables += reliability_tables(report.calibration)
            if report.groups is not None:
                from bncli.cli.tables import group_tables

                tables += group_tables(report)
            if report.scored is not None:
                tables += _scores(report.scored)
            if len(report.labels) <= _LABELS_SHOWN:
                tables += _confusion(report)
            console.tables(*tables)


def _refuse_idle(typed: Mapping[str, Any]) -> None:
    """Raise UsageError for options that the protocol does not use."""
    from bncli.cli.settings import settings_of_run

    settings = settings_of_run()
    of_protocol = ("--folds", "--repeats", "--test", "--train-rows", "--csv")
    names = (*of_protocol, "--categorical", "--numeric", "--ignore", "--use", "--drop-incomplete")
    keys = {name: name[2:].replace("-", "_") for name in names}
    given = [name for name, key in keys.items() if typed[key] and key not in settings]
    if typed["scores"] and (typed["model"] or typed["test"]):
        why = "a model file keeps no rows to score" if typed["model"] else "--test has no folds"
        hint = "leave one of them out; learn-structure --scores tells them of one table"
        raise UsageError(f"--scores goes with cross-validation: {why}", hint=hint)
    protocol, columns = ([name for name in given if (name in of_protocol) is wanted] for wanted in (True, False))
    if typed["model"]:
        learnt = [name for name in learning.typed_learning_flags(typed) if key_of(name) not in DECISION_KEYS]
        idle, why = [*learnt, *protocol, *columns], "--model: nothing is learnt"
    elif typed["test"]:
        drawn = [] if typed["train_rows"] else ["--repeats"]  # without samples there is nothing to repeat
        idle, why = [name for name in protocol if name in ("--folds", *drawn)], "--test"
    else:
        idle, why = (
            ["--allow-missing-columns"] * (typed["allow_missing_columns"] and "allow_missing_columns" not in settings),
            "cross-validation: all rows are of DATA",
        )
    if typed["model"] or typed["test"]:
        refuse_cluster(typed, f"{'--model' if typed['model'] else '--test'}: its tasks are folds")
    _refuse_unused_models(typed)
    if typed["csv"] and not typed["train_rows"] and not idle:
        raise UsageError("--csv has no effect without --train-rows", hint="it is the file of the learning curve")
    if idle:
        raise UsageError(f"{idle[0]} has no effect with {why}", hint="leave one of them out")


def _refuse_unused_models(typed: Mapping[str, Any]) -> None:
    """UsageError where other models are named for no page, or would be tested on rows that they may have learnt."""
    if not typed["beside"]:
        return
    if not typed["report"]:
        raise UsageError("--beside has no effect without --report", hint="its figures stand on the page: --report FILE")
    if not (typed["model"] or typed["test"]):
        hint = "name rows that no model has seen: --test FILE, or --model FILE; compare has learners side by side"
        raise UsageError("--beside has no effect with cross-validation: a model has learnt its rows", hint=hint)
    from bncli.steps.report.other_models import check_other_models

    check_other_models(typed["beside"], (typed["test"],) if typed["test"] else typed["data"])


def _decisions_of_model(typed: Mapping[str, Any]) -> DecisionOptions | None:
    """Return what is typed of decisions instead of those that the model of --model records; None without --model."""
    if not typed["model"]:
        return None
    from bncli.cli.settings import settings_of_run
    from bncli.engine.prediction.decision_rules import DecisionOptions

    settings = settings_of_run()  # what is set rather than typed is for learning
    return DecisionOptions(*(None if key in settings else typed[key] for key in DECISION_KEYS))


def _test_source(typed: Mapping[str, Any]) -> Source | None:
    """Return the table of --test, read like DATA."""
    if typed["test"] is None:
        return None
    if typed["test"] == "-" and "-" in typed["data"]:
        raise UsageError("DATA and --test cannot both be the standard input")
    if typed["on_bad_row"] not in ("fail", "skip"):
        raise UsageError("--on-bad-row FILE would be written twice with --test", hint="say fail or skip")
    return options.source(typed, (typed["test"],))


def _outputs(typed: Mapping[str, Any]) -> EvaluateOutputs:
    from bncli.steps.evaluate.evaluate import EvaluateOutputs

    return EvaluateOutputs(typed["predictions"], typed["svg"], by=tuple(typed["by"]), reliability=typed["reliability"])


def _measured(
    typed: Mapping[str, Any], chosen: learning.Learning, source: Source, test: Source | None, console: Console
) -> EvaluateReport:
    from dataclasses import replace

    from bncli.engine.evaluation.cross_validation import Protocol
    from bncli.steps.evaluate.evaluate import evaluate, evaluate_on
    from bncli.steps.evaluate.learning_curve import Samples
    from bncli.watch import Run

    run = Run(options.threads(typed), watch=console.watch, cluster=typed["cluster"])
    samples = Samples(typed["train_rows"] or (), typed["repeats"] or 1, typed["seed"])
    outputs = replace(_outputs(typed), samples=samples, csv=options.named(typed["csv"]))
    how: dict[str, Any] = {"outputs": outputs, "unseen": typed["unseen"] or "average", "run": run}
    if test is not None:
        return evaluate_on(source, test, chosen.recipe, supplied=chosen.supplied, **how)
    protocol = Protocol(typed["folds"] or 5, typed["repeats"] or 1, typed["seed"], typed["scores"])
    return evaluate(source, chosen.recipe, protocol, supplied=chosen.supplied, **how)


def _page(typed: Mapping[str, Any], report: EvaluateReport, recipe: Recipe, tested: Source, console: Console) -> Page:
    """Return the page, with what other models say of the rows tested."""
    from bncli.steps.report.other_models import score_other_models
    from bncli.steps.report.report import evaluation_page
    from bncli.watch import Run

    run = Run(options.threads(typed), watch=console.watch)
    beside = score_other_models(typed["beside"], tested.class_name, report.labels, tested, run)
    return evaluation_page(report, tested.paths, None if typed["model"] else recipe, beside)


def _figures(report: EvaluateReport) -> Table:
    """Return each figure, beside that of the class frequencies where they have one."""
    from bncli.cli.tables import add_row, plain_table

    base: dict[str, float | None] = {**report.base._asdict(), "error": 1 - report.base.accuracy}
    spread = report.std is not None
    table = plain_table("", "figure", "mean" if spread else "value", *(["std"] if spread else []), "base")
    for column in table.columns[1:]:
        column.justify = "right"
    for name, value in report.metrics.items():
        std = [_number((report.std or {}).get(name))] if spread else []
        add_row(table, name.replace("_", "-"), _number(value), *std, _number(base[name]) if name in base else "")
    add_row(table, "skill-score", _number(report.skill_score))
    for stage, seconds in report.seconds.items():
        if seconds is not None:
            add_row(table, f"seconds, {stage}", f"{seconds:.3f}")
    return table


def _number(value: float | None) -> str:
    """Return four decimals, fewer for large numbers; a dash where the figure is not defined."""
    if value is None:
        return "-"
    return f"{round(value, 4) + 0.0:.4f}" if abs(value) < 100 else f"{value:.1f}"


def _curve(report: EvaluateReport) -> Iterator[Table]:
    """Yield a line per size, of the figures that are looked at most."""
    from bncli.cli.tables import add_row, plain_table

    if not report.learning_curve:
        return
    shown = ("error", "log_loss", "auc")
    headings = [heading for name in shown for heading in (name.replace("_", "-"), "std")]
    table = plain_table("Learning curve", "rows learnt from", *headings, numbers=range(7))
    for point in report.learning_curve:
        cells = [_number(figures[name]) for name in shown for figures in (point.metrics, point.std)]
        add_row(table, f"{point.rows:,}", *cells)
    yield table


def _per_label(report: EvaluateReport) -> Iterator[Table | str]:
    """Precision, recall, f1 and support of the labels, of many labels those with the most rows."""
    from bncli.cli.tables import TextColumn, fitted_tables

    figures = report.per_label
    shown = sorted(sorted(range(len(figures)), key=lambda c: -figures[c].support)[:_LABELS_SHOWN])
    columns = [
        TextColumn(name, [_number(getattr(figures[c], name)) for c in shown]) for name in ("precision", "recall", "f1")
    ]
    support = TextColumn("support", [f"{figures[c].support:,.10g}" for c in shown])
    names = TextColumn("label", [report.labels[c] for c in shown])
    yield from fitted_tables("Each label against all others", names, [*columns, support])
    if hidden := len(figures) - len(shown):
        yield f"... and {hidden:,} more labels with fewer rows; --json has them"


def _scores(scored: ScoredNetwork) -> Iterator[str | Table]:
    """Yield what the networks learnt in the folds are worth on average, in nats."""
    from bncli.cli.model_tables import acll_error_text
    from bncli.cli.tables import add_row, plain_table

    title = "Scores of the network learnt in a fold, on the rows it was learnt from, in nats: means"
    table = plain_table(title, "score", "nats", numbers=(1,))
    for name, value in scored.scores._asdict().items():
        add_row(table, name, "-" if value is None else f"{value:,.4f}")
    yield table
    if scored.acll_relative_error is not None:
        yield f"acll is {acll_error_text(scored.acll_relative_error)}, on average"
        yield ""


def _confusion(report: EvaluateReport) -> Iterator[Table]:
    from bncli.cli.tables import TextColumn, fitted_tables

    columns = [
        TextColumn(label, [f"{count:,.10g}" for count in counts])
        for label, counts in zip(report.labels, zip(*report.confusion, strict=True), strict=True)
    ]
    title = "Confusion (rows true, columns predicted)"
    yield from fitted_tables(title, TextColumn("", report.labels), columns, "further labels")
