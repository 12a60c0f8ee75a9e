"""`bncli fit`: from a table to a model file."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bncli.cli import learning_options as learning
from bncli.cli import options, pages, settings
from bncli.cli.command import declare
from bncli.cli.console import Console
from bncli.cli.model_tables import (
    arcs_text,
    calibration_facts,
    chosen_text,
    held_out_text,
    move_lines,
    regions_text,
    rule_lines,
    shrinkage_text,
    trial_lines,
)
from bncli.cli.options import flag
from bncli.errors import UsageError

if TYPE_CHECKING:
    from bncli.cli.learning_options import Learning
    from bncli.engine.model import Shrinkage, TriedArcs
    from bncli.files.pictures.page import Page
    from bncli.files.reading.source import Source
    from bncli.steps.fit import FitReport
    from bncli.steps.forecast import Forecast

EXAMPLES = """\
bncli fit data.csv --structure tan --param weighted       writes data.bnc
bncli fit train.csv.gz --structure kdb --k 2 --param map -o small.bnc
bncli fit train.csv --cuts cuts.json --structure tan.json -o m.bnc
zcat train.csv.gz | bncli fit - --class diagnosis --ignore id -o m.bnc --json
"""
TRACE = flag(
    "--trace",
    group="Output",
    everyday=False,
    metavar="FILE",
    help="Write a CSV row for each iteration of the optimizer.",
)
QUANTILES = flag(
    "--log-p-quantiles",
    group="Output",
    everyday=False,
    setting=False,
    is_flag=True,
    help="Keep in the model how probable its training rows were, quantiles of ln P(x) of 10,000 at most, for score "
    "--monitor and --surprise; of networks.",
)
DRY_RUN = flag(
    "--dry-run",
    group="Output",
    everyday=False,
    is_flag=True,
    help="Read only heads and footers; say what would be learnt, and the memory and seconds that it would take.",
)
_NAMED = 8


@declare(
    "fit",
    EXAMPLES,
    (options.data_or_counts,),
    learning.ALL,
    (*options.TABLE, options.POSITIVE, learning.FROM_COUNTS),
    options.UNSEEN,
    (options.output("The model file [NAME.bnc beside DATA]."), pages.REPORT, TRACE, QUANTILES, DRY_RUN),
    (options.CLUSTER,),
    options.RUNNING,
    more="The defaults stand in brackets.",
)
def command(**typed: Any) -> None:
    """Learn a model and says what came of it."""
    counts = learning.counts_file(typed)
    if counts is not None:
        settings.refuse_cluster(typed, "--from-counts: counts have no rows to share out")
    chosen = learning.learning(typed)
    source = None if counts is not None else options.source(typed, typed["data"])
    from bncli.steps.fit import fit, fit_counts
    from bncli.watch import Run

    if typed["report"] and typed["dry_run"]:
        raise UsageError("--report has no effect with --dry-run: nothing is learnt", hint="leave one of them out")
    if typed["log_p_quantiles"] and counts is not None:
        what = "--log-p-quantiles has no effect with --from-counts, which has no rows"
        raise UsageError(what, hint="leave one of them out")
    pages.check_page(typed, typed["output"])

    with Console(quiet=typed["quiet"], as_json=typed["as_json"]) as console:
        console.notes(chosen.notes)
        if typed["dry_run"]:
            _forecast(source, chosen, console)
            return
        how: dict[str, Any] = {
            "output": options.output_path(typed),
            "supplied": chosen.supplied,
            "unseen": typed["unseen"] or "average",
            "run": Run(
                options.threads(typed),
                watch=console.watch,
                cluster=_cluster(typed, source, chosen, console),
                advise=typed["arcs"] is None,
            ),
        }
        if source is None:
            report = fit_counts(str(counts), chosen.recipe, **how)
        else:
            trace, log_p_quantiles = options.named(typed["trace"]), typed["log_p_quantiles"]
            report = fit(source, chosen.recipe, trace=trace, log_p_quantiles=log_p_quantiles, **how)
        pages.write_page(typed, lambda: _page(report))
        console.summary(summary(report, chosen.supplied.structure_path))
        if console.as_json:
            console.json(report)


def _forecast(source: Source | None, chosen: Learning, console: Console) -> None:
    """Print what would be learned to the standard output."""
    from bncli.steps.forecast import forecast

    if source is None:
        raise UsageError("--dry-run has no effect with --from-counts, which reads no rows", hint="leave it out")
    found = forecast(source, chosen.recipe, chosen.supplied)
    if console.as_json:
        console.json(found)
        return
    console.text("\n".join(forecast_lines(found)) + "\n")


def _cluster(typed: Mapping[str, Any], source: Source | None, chosen: Learning, console: Console) -> str | None:
    """Return the cluster typed; one that is set is left aside, with a note, where it can do nothing for this fit."""
    from bncli.cli.settings import settings_of_run
    from bncli.steps.cluster.fitting import refuse_on_cluster

    address: str | None = typed["cluster"]
    setting = settings_of_run().get("cluster")
    if setting is None or source is None:
        return address
    try:
        refuse_on_cluster(source, chosen.recipe, chosen.supplied)
    except UsageError as reason:
        console.notes([f"{setting.where} is left aside: {reason}"])
        return None
    return address


def _page(report: FitReport) -> Page:
    from bncli.steps.report.report import fit_page

    return fit_page(report)


def forecast_lines(found: Forecast) -> list[str]:
    """Return the forecast in a few lines."""
    tables = "to be learnt" if found.tables is None else f"{len(found.tables):,}"
    cells = [table.cells for table in found.tables or () if table.cells is not None]
    reading = {0: "mapped, as codes", 1: "read once", 2: "read in two rounds, cuts from a sample"}[found.rounds]
    return [
        f"class       {found.class_name}",
        f"rows        {'' if found.rows_exact else 'about '}{found.rows:,}, {found.attributes:,} attributes",
        f"data        {found.bytes:,} bytes, {reading}",
        f"recipe      {' '.join(f'{key}={_listed(value)}' for key, value in found.recipe.items())}",
        f"tables      {tables}{f' of {sum(cells):,} cells for each class' if cells else ''}",
        f"memory      about {found.memory / 2**30:.1f} GiB",
        f"seconds     about {found.seconds:,.0f} of one core",
    ]


def _listed(value: object) -> object:
    return ",".join(value) if isinstance(value, tuple) else value


def summary(report: FitReport, structure_file: str | None = None) -> list[str]:
    """Return the end of a fit in a few lines."""
    from bncli.engine.model import StoppedBy

    used = f"attributes  {report.used:,} used of {report.attributes:,}"
    if report.uninformative:
        used += f"; without a cut or left with one value, so not used: {few(report.uninformative)}"
    if report.unnamed and structure_file is not None:
        used += f"; not in {structure_file}, so left out: {few(report.unnamed)}"
    if unhelpful := [name for name in report.left_out if name not in report.unnamed]:
        used += f"; left out by the structure: {few(unhelpful)}"
    closed = report.stopped_by is StoppedBy.CLOSED_FORM
    course = f"CLL         {_number(report.cll_start)} -> {_number(report.cll)} (log-loss {report.log_loss:.4g} a row)"
    known = f"{_number(report.cll)} (log-loss {report.log_loss:.4g} a row)"
    result = f"CLL         {'not known: counts do not tell it' if math.isnan(report.cll) else known}"
    seconds = "  ".join(f"{stage} {value:.2f}" for stage, value in report.seconds.items())
    return [
        *([] if report.held_out is None else [f"held out    {held_out_text(report.held_out)}"]),
        f"class       {report.class_name} ({few(report.labels)})",
        f"rows        {report.rows:,}, {report.classes:,} classes",
        *([] if report.class_weights is None else [f"weighing    {_weighing(report.class_weights)}"]),
        used,
        *_calibration(report),
        *([f"missing     {_missing(report)}"] if report.missing_policy == "marginalize" else []),
        f"cuts        {report.cuts:,}",
        f"structure   {report.structure_learned}",
        *move_lines(report.moves),
        *(
            []
            if report.regions is None
            else [f"regions     {regions_text(report.regions)}{_of_heaviest_component(report)}"]
        ),
        f"parameters  {report.parameters:,} ({report.param}){', in closed form' if closed else ''}",
        *(f"decides     {line}" for line in rule_lines(report.decisions or {}, report.labels)),
        *([] if report.penalty_cv is None else [f"penalty     {chosen_text(report.penalty_cv)}"]),
        *([f"shrunk      {shrinkage_text(shrinkage)}"] if (shrinkage := _shrinkage(report)) else []),
        *([f"arcs        {arcs_text(tried, report.arcs)}"] if (tried := _arcs_tried(report)) else []),
        *trial_lines(report.trials),
        *([result] if closed else [course, f"stopped     {_stopping(report)}"]),
        f"seconds     {seconds}",
        f"model       {report.model}",
    ]


def _number(value: float) -> str:
    """Six digits; a zero without a sign."""
    return f"{value + 0.0:.6g}"


def _weighing(weights: Mapping[str, float]) -> str:
    """By what the rows of each label count, and what comes of it."""
    return f"{few([f'{label} {weight:.4g}' for label, weight in weights.items()])}; so are probabilities, see --prior"


def _calibration(report: FitReport) -> list[str]:
    if report.calibration is None:
        return []
    facts = calibration_facts(report.calibration, report.labels)
    return [f"{name:<12}{text}" for name, text in facts.items()]


def _missing(report: FitReport) -> str:
    """Return how many values are missing, and what comes of it; those of attributes that are left out do not count."""
    share = report.holes / max(report.rows * (report.attributes - len(report.uninformative)), 1)
    of_which = " of the attributes used" if report.uninformative else ""
    return f"{report.holes:,} value{'' if report.holes == 1 else 's'} ({100 * share:.3g} %){of_which}, marginalized"


def _of_heaviest_component(report: FitReport) -> str:
    """Return the words that name the heaviest component of an ensemble, whose regions are shown."""
    return f" in {_heaviest(report)}, the heaviest" if report.trials else ""


def _heaviest(report: FitReport) -> str:
    """Return the name of an ensemble's heaviest component; nothing of other models."""
    return max(report.trials, key=lambda trial: trial.weight).name if report.trials else ""


def _shrinkage(report: FitReport) -> Shrinkage | None:
    """Return None without attributes too: a base that is shrunk tells nobody anything."""
    has_tables = report.parameters > report.classes
    return report.penalty_cv.shrinkage if report.penalty_cv is not None and has_tables else None


def _arcs_tried(report: FitReport) -> Sequence[TriedArcs]:
    """Nothing where there was none to be had."""
    tried = () if report.penalty_cv is None else report.penalty_cv.arcs
    return tried if tried and tried[-1].n_arcs else ()


def _stopping(report: FitReport) -> str:
    from bncli.engine.model import StoppedBy

    iterations = f"{report.iterations:,} iteration{'' if report.iterations == 1 else 's'}"
    if report.stopped_by is StoppedBy.MAX_ITERATIONS and _heaviest(report) == "boosted":
        return f"after {iterations}: the effort, or the time, allowed no more trees; rows held out might gain by more"
    return f"after {iterations}: {report.stopped_by.value}"


def few(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more:,} more" if more > 0 else "")
