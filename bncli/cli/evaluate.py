"""`bncli evaluate`: estimate how well a model, or models learned with the given options, predict unseen rows."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from bncli.catalogue import DECISION_KEYS
from bncli.catalogue.choices import key_of
from bncli.cli import learning_options as learning
from bncli.cli import options
from bncli.cli.command import declare
from bncli.cli.console import Console
from bncli.cli.evaluation_tables import evaluation_tables
from bncli.cli.options import SizesType, flag, integer, output_flag
from bncli.cli.settings import refuse_cluster, settings_of_run
from bncli.errors import UsageError

if TYPE_CHECKING:
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
    notes=("Figures", FIGURES, FIGURES),
)
def command(**typed: Any) -> None:
    """Cross-validate, test on another table, or test a model; print the figures."""
    _refuse_options_without_effect(typed)
    learnt = typed | dict.fromkeys(DECISION_KEYS) if typed["model"] else typed
    resolved, strengths = learning.resolve_with_scores(learnt)
    if typed["model"]:
        # Typed options for columns and rows have been refused above; those of the settings are for learning.
        typed |= dict.fromkeys(("categorical", "numeric", "ignore", "use"), ())
        typed |= {"drop_incomplete": False, "time": None}
    # under cross-validation the protocol has the window
    window = {} if typed["test"] else {"window": None}
    source = options.source(typed | window, typed["data"])
    test = _test_source(typed)
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
    """Raise UsageError for options that were typed (not set) and have no effect with the protocol."""
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
        learnt = [name for name in learning.typed_learning_flags(typed) if key_of(name) not in DECISION_KEYS]
        idle, why = [*learnt, *(name for name in is_typed if is_typed[name])], "--model: nothing is learned"
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


def _test_source(typed: Mapping[str, Any]) -> Source | None:
    """Return the table of --test, which is read like DATA, or None without --test."""
    if typed["test"] is None:
        return None
    if typed["test"] == "-" and "-" in typed["data"]:
        raise UsageError("DATA and --test cannot both be the standard input")
    if typed["on_bad_row"] not in ("fail", "skip"):
        raise UsageError("--on-bad-row FILE would be written twice with --test", hint="use --on-bad-row fail or skip")
    of_training: dict[str, Any] = {"time": None, "gap": None, "window": None}
    return options.source({**typed, **of_training}, (typed["test"],))


def _evaluate(
    typed: Mapping[str, Any],
    resolved: learning.LearningOptions,
    strengths: Strengths | None,
    source: Source,
    test: Source | None,
    console: Console,
) -> EvaluateReport:
    """Evaluate as the options say: a model file, a learner on a test table, or a learner by cross-validation."""
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
        # Decisions that were typed replace those of the model; those that were set are for learning.
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
