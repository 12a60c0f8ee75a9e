"""`bncli fit`: learn a classifier from a table and write a model file."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bncli.catalogue.option_kinds import Integer
from bncli.cli import learning_options as learning
from bncli.cli import options
from bncli.cli.command import declare
from bncli.cli.config import refuse_cluster
from bncli.cli.console import Console
from bncli.cli.model_text import (
    CANDIDATE_HEADINGS,
    calibration_facts,
    candidate_cells,
    first_names,
    intervals_text,
    move_lines,
    penalty_text,
    regions_text,
    rule_lines,
    seconds_text,
    shrinkage_text,
    split_text,
)
from bncli.cli.options import KindType, output_flag, settings_of_run
from bncli.errors import UsageError

if TYPE_CHECKING:
    from bncli.engine.model import TriedCandidate
    from bncli.files.reading.source import Source
    from bncli.steps.fit import FitReport

EXAMPLES = """\
bncli fit data.csv                                      writes data.bnc
zcat train.csv.gz | bncli fit - --class diagnosis --ignore id -o m.bnc --json
"""
TRACE = output_flag(
    "--trace", everyday=False, metavar="FILE", help="Write a CSV row for each iteration of the optimizer."
)
QUANTILES = output_flag(
    "--log-p-quantiles",
    everyday=False,
    setting=False,
    is_flag=True,
    help="Networks: store quantiles of ln P(x) of the training rows (at most 10,000 of them), for score --monitor "
    "and --surprise.",
)
INTERVALS = output_flag(
    "--intervals",
    everyday=False,
    setting=False,
    is_flag=True,
    help="Store the uncertainty of the parameters in the model, for score --interval.",
)
ALTERNATIVES = output_flag(
    "--alternatives",
    everyday=False,
    setting=False,
    type=KindType(Integer(1, 100)),
    metavar="N",
    default_text="none",
    help="Also list at most N other cards whose held-out log-loss is within 1 % of the card's, each without one of "
    "its columns.",
)
DRY_RUN = output_flag(
    "--dry-run",
    everyday=False,
    is_flag=True,
    help="Do not learn: read only the beginnings and footers of files, and report what would be learned and how much "
    "memory and time it would take.",
)


@declare(
    "fit",
    EXAMPLES,
    (options.data_or_counts,),
    learning.ALL,
    (*options.TABLE, *options.SPLIT, options.POSITIVE, learning.FROM_COUNTS),
    options.UNSEEN,
    (options.output("The model file [NAME.bnc beside DATA]."), options.REPORT, TRACE, QUANTILES, INTERVALS),
    (ALTERNATIVES, DRY_RUN),
    (options.CLUSTER,),
    (*options.RUNNING, options.VERBOSE),
    more="Defaults are in brackets.",
)
def command(**typed: Any) -> None:
    """Learn a model, write it, and print a summary; with --dry-run, print what would be learned."""
    counts = learning.counts_file(typed)
    if counts is not None:
        refuse_cluster(typed, "--from-counts, which has no rows to distribute")
    resolved = learning.resolve_learning_options(typed)
    source = None if counts is not None else options.source(typed, typed["data"])
    if typed["report"] and typed["dry_run"]:
        raise UsageError("--report has no effect with --dry-run: nothing is learned", hint="leave one of them out")
    if typed["log_p_quantiles"] and counts is not None:
        what = "--log-p-quantiles has no effect with --from-counts, which has no rows"
        raise UsageError(what, hint="leave one of them out")
    if typed["alternatives"] is not None:
        if resolved.recipe.param != "points":
            what = f"--alternatives has no effect with --structure {resolved.recipe.structure}"
            raise UsageError(what, hint="use it with --structure card")
        if typed["dry_run"]:
            raise UsageError("--alternatives has no effect with --dry-run", hint="leave one of them out")
    if typed["intervals"]:
        refuse_cluster(typed, "--intervals, which are computed on this machine")
        if typed["dry_run"]:
            raise UsageError(
                "--intervals has no effect with --dry-run: nothing is learned", hint="leave one of them out"
            )
    options.check_page(typed, typed["output"])
    from bncli.steps.fit import fit, fit_counts
    from bncli.watch import Run

    with Console(quiet=typed["quiet"], as_json=typed["as_json"]) as console:
        console.notes(resolved.notes)
        if typed["dry_run"]:
            _print_forecast(source, resolved, console)
            return
        cluster, setting = typed["cluster"], settings_of_run().get("cluster")
        if setting is not None and source is not None:
            from bncli.steps.cluster.fitting import refuse_on_cluster

            try:
                refuse_on_cluster(source, resolved.recipe, resolved.supplied)
            except UsageError as reason:
                console.notes([f"{setting.where} is ignored: {reason}"])
                cluster = None
        arguments: dict[str, Any] = {
            "output": options.output_path(typed["output"]),
            "supplied": resolved.supplied,
            "unseen": typed["unseen"] or "average",
            "run": Run(
                options.threads(typed),
                watch=console.watch,
                cluster=cluster,
                advise=typed["arcs"] is None,
                intervals=typed["intervals"],
                alternatives=typed["alternatives"] or 0,
                keep_predictions=bool(typed["report"]),
            ),
        }
        if source is None:
            report = fit_counts(str(counts), resolved.recipe, **arguments)
        else:
            trace = options.output_path(typed["trace"])
            report = fit(source, resolved.recipe, trace=trace, log_p_quantiles=typed["log_p_quantiles"], **arguments)
        if typed["report"]:
            from bncli.steps.report.report import fit_page, write_page

            write_page(typed["report"], fit_page(report))
        console.finish(report, _summary(report, resolved.supplied.structure_path, verbose=typed["verbose"]))


def _print_forecast(source: Source | None, resolved: learning.LearningOptions, console: Console) -> None:
    """Print to the standard output what would be learned, and the memory and time that it would take.

    Raises UsageError if `source` is None, as with --from-counts.
    """
    from bncli.engine.parameters.costs import about_memory
    from bncli.steps.forecast import forecast

    if source is None:
        raise UsageError("--dry-run has no effect with --from-counts, which reads no rows", hint="leave it out")
    report = forecast(source, resolved.recipe, resolved.supplied)
    if console.as_json:
        console.json(report)
        return
    tables = "to be learned" if report.tables is None else f"{len(report.tables):,}"
    cells = [table.cells for table in report.tables or () if table.cells is not None]
    reading = {0: "memory-mapped, as codes", 1: "read once", 2: "read twice, with cuts from a sample"}[report.rounds]
    recipe = ((key, ",".join(value) if isinstance(value, tuple) else value) for key, value in report.recipe.items())
    lines = [
        f"class       {report.class_name}",
        f"rows        {'' if report.rows_exact else 'about '}{report.rows:,}, {report.attributes:,} attributes",
        f"data        {report.bytes:,} bytes, {reading}",
        f"recipe      {' '.join(f'{key}={value}' for key, value in recipe)}",
        f"tables      {tables}{f', with {sum(cells):,} cells per class' if cells else ''}",
        f"memory      {about_memory(report.memory, in_gib=True)}",
        f"seconds     about {report.seconds:,.0f} on one core",
    ]
    console.text("\n".join(lines) + "\n")


def _summary(report: FitReport, structure_file: str | None, *, verbose: bool) -> list[str]:
    """Format the summary of a fit as lines: the held-out log-loss, what was learned, and the model file.

    structure_file: the file that supplied the structure, if any. verbose: whether to include how the parameters were
    found.
    """
    from bncli.engine.learn import COMPARED_ROWS
    from bncli.engine.parameters.penalty_choice import most_rows_to_choose

    lines = []
    if (held_out := report.held_out) is not None:
        rows = "" if held_out.rows is None else f" on {held_out.rows:,} rows"
        groups = "group" if held_out.units == 1 else "groups"
        of_units = (
            f" of {held_out.units:,} {groups}" if report.split is not None and "group" in report.split.kind else ""
        )
        base = f"class frequencies alone: {held_out.base_log_loss:.4g}; lower is better"
        lines.append(f"held-out    log-loss {held_out.log_loss:.4g}{rows}{of_units} ({base})")
    lines.append(f"class       {report.class_name} ({first_names(report.labels)})")
    lines.append(f"rows        {report.rows:,}")
    if report.split is not None and report.split.kind != "rows":
        lines.append(f"split by    {split_text(report.split)}")
    if report.class_weights is not None:
        weights = first_names([f"{label} {weight:.4g}" for label, weight in report.class_weights.items()])
        lines.append(f"weights     {weights}; the probabilities assume these weights, see score --prior")
    unused = {
        "not informative": report.uninformative,
        f"not in {structure_file}": () if structure_file is None else report.unnamed,
        "left out by the structure": [name for name in report.left_out if name not in report.unnamed],
    }
    reasons = "; ".join(f"{reason}: {first_names(names)}" for reason, names in unused.items() if names)
    because = f" ({reasons})" if reasons else ""
    lines.append(f"attributes  {report.used:,} of {report.attributes:,} used{because}")
    if report.calibration is not None:
        facts = calibration_facts(report.calibration, report.labels)
        lines += [f"{name:<12}{text}" for name, text in facts.items()]
    if report.missing_policy == "marginalize":
        share = report.holes / max(report.rows * (report.attributes - len(report.uninformative)), 1)
        used = " of the attributes used" if report.uninformative else ""
        plural = "" if report.holes == 1 else "s"
        lines.append(f"missing     {report.holes:,} value{plural} ({100 * share:.3g} %){used}, marginalized")
    if verbose:
        lines.append(f"cuts        {report.cuts:,}")

    # The structure of the model, or of the component with the largest weight of an ensemble.
    heaviest = max(report.trials, key=lambda trial: trial.weight).name if report.trials else ""
    lines.append(f"structure   {report.structure_learned}")
    if verbose:
        lines += move_lines(report.moves)
    if report.regions is not None:
        of_component = f", in component {heaviest!r}, which has the largest weight" if heaviest else ""
        lines.append(f"regions     {regions_text(report.regions)}{of_component}")
    lines += report.card_lines()
    lines.append(f"parameters  {report.parameters:,} ({report.param})")
    if report.intervals is not None:
        lines.append(f"intervals   {intervals_text(report.intervals)}")
    lines += [f"decides     {line}" for line in rule_lines(report.decisions or {}, report.labels)]

    # Settings that were chosen on held-out rows.
    if (penalty := report.penalty_cv) is not None:
        lines.append(f"penalty     {penalty_text(penalty)}")
        if penalty.shrinkage is not None and report.parameters > report.classes:
            lines.append(f"shrunk      {shrinkage_text(penalty.shrinkage)}")
        if penalty.structures:
            losses = ", ".join(f"{tried.structure} {tried.log_loss:.4g}" for tried in penalty.structures)
            of_all = {penalty.log_loss, None if report.held_out is None else report.held_out.log_loss}
            where = "" if of_all.intersection(tried.log_loss for tried in penalty.structures) else " on the first folds"
            where = " on a sample" if report.rows >= COMPARED_ROWS else where
            lines.append(f"compared    held-out log-loss{where}: {losses}")
        if penalty.arcs and penalty.arcs[-1].n_arcs:
            on_sample = " on a sample" if report.rows > most_rows_to_choose(report.rows, report.classes) else ""
            # how many arcs are kept, and the held-out loss without arcs, with all, and with those kept
            n_learned = penalty.arcs[-1].n_arcs
            shown = {"none": "without arcs", "all": f"with all {n_learned:,}"}
            of_choices = ", ".join(
                f"{choice.log_loss:.4g} {shown.get(choice.arcs) or f'with {choice.n_arcs:,}'}"
                for choice in penalty.arcs
                if choice.arcs in shown or (choice.n_arcs == report.arcs and report.arcs)
            )
            kept = f"{report.arcs:,} of {n_learned:,} kept" if report.arcs else "none kept"
            lines.append(f"arcs        {kept}: held-out log-loss{on_sample} {of_choices}")
    lines += candidate_lines(report.trials)
    lines += _optimization_lines(report, heaviest, verbose=verbose)
    return [*lines, f"model       {report.model}"]


def _optimization_lines(report: FitReport, heaviest: str, *, verbose: bool) -> list[str]:
    """Format the time of the fit and, if `verbose` or if the optimization stopped too early, its result."""
    from bncli.engine.model import StoppedBy

    lines = []
    converged = report.stopped_by in (StoppedBy.TOLERANCE, StoppedBy.GRADIENT)
    iterations = f"after {report.iterations:,} iteration{'' if report.iterations == 1 else 's'}"
    # A sum that rounds to zero is printed without a sign, hence + 0.0.
    log_loss = f"(log-loss {report.log_loss:.4g} per training row)"
    if report.stopped_by is StoppedBy.CLOSED_FORM:
        if verbose and math.isnan(report.cll):
            lines.append("CLL         unknown, because counts do not contain the rows")
        elif verbose:
            lines.append(f"CLL         {report.cll + 0.0:.6g} {log_loss}, parameters in closed form")
    else:
        if verbose:
            lines.append(f"CLL         {report.cll_start + 0.0:.6g} -> {report.cll + 0.0:.6g} {log_loss}")
        if converged and verbose:
            lines.append(f"converged   {iterations}")
        elif not converged and (verbose or report.stopped_by is not StoppedBy.CROSS_TUNING):
            reason = report.stopped_by.value
            if report.stopped_by is StoppedBy.MAX_ITERATIONS and heaviest == "boosted":
                reason = "the effort or the time limit stopped the boosting; more trees might predict better"
            lines.append(f"stopped     {iterations}: {reason}")
    if verbose:
        return [*lines, f"seconds     {seconds_text(report.seconds)}"]
    return [*lines, f"time        {report.seconds['total']:.1f} s"]


def candidate_lines(candidates: Sequence[TriedCandidate]) -> list[str]:
    """Return a title and an aligned line per candidate of an ensemble, or an empty list without candidates."""
    if not candidates:
        return []
    rows = [CANDIDATE_HEADINGS, *map(candidate_cells, candidates)]
    name_width, *widths = (max(map(len, column)) for column in zip(*rows, strict=True))
    lines = [f"candidates  {len(candidates):,}, with held-out losses and ensemble weights"]
    for name, *cells in rows:
        numbers = (f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
        lines.append(f"{'':12}{'  '.join([f'{name:<{name_width}}', *numbers])}")
    return lines
