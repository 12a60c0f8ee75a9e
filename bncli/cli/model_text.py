"""Text about models that several commands print: searches, penalties, calibration, decision rules, counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bncli.engine.calibration import Calibration
    from bncli.engine.counting.counted_rows import CountedRows
    from bncli.engine.data.splits import SplitRecord
    from bncli.engine.model import ChosenPenalty, Edit, Shrinkage, TriedCandidate
    from bncli.steps.effects_and_regions import RegionsReport
    from bncli.steps.run import NamedMove

ARC_CHOICES = {"class": "class alone", "none": "none", "supported": "supported by BIC", "all": "all"}
_MOST_EDITED = 20
"""The maximum number of values of an edit that are printed."""
CANDIDATE_HEADINGS = ("candidate", "penalty", "log-loss", "error", "weight")


def move_lines(moves: Sequence[NamedMove]) -> list[str]:
    """Return a line with the number of moves of a search and an aligned line per move, or [] without moves."""
    if not moves:
        return []
    arcs = [f"{move.parent} -> {move.child}" for move in moves]
    gains = [f"{move.gain:,.3f}" for move in moves]
    arc_width, gain_width = max(map(len, arcs)), max(map(len, gains))
    title = f"moves       {len(moves):,} from naive Bayes, with the gain of each in nats"
    return [title] + [
        f"            {move.kind:<7}  {arc:<{arc_width}}  {gain:>{gain_width}}"
        for move, arc, gain in zip(moves, arcs, gains, strict=True)
    ]


def acll_error_text(error: float) -> str:
    """Describe the relative error of the approximate conditional log-likelihood (acll)."""
    return f"relative error {100 * error:.4g} % against the CLL of the same parameters"


def penalty_text(penalty: ChosenPenalty) -> str:
    """Describe the penalty and how it was chosen: from which range, or as the largest or smallest value tried."""
    if not penalty.tried:
        return f"{penalty.penalty:g}, because there are too few rows for cross-validation"
    if len(penalty.tried) == 1:
        return f"{penalty.penalty:g}"
    penalties = [trial.penalty for trial in penalty.tried]
    most, least = max(penalties), min(penalties)
    which = f" between {least:g} and {most:g}"
    if penalty.penalty in (most, least):
        which = f", the {'largest' if penalty.penalty == most else 'smallest'} of the values tried"
    return f"{penalty.penalty:g}, chosen by cross-validation{which}"


def split_text(split: SplitRecord) -> str:
    """Return the names of the columns by which rows were split, with the number of groups if there are groups."""
    columns = ", ".join(split.columns)
    return f"{columns} ({split.units:,} groups)" if "group" in split.kind else columns


def shrinkage_text(shrinkage: Shrinkage) -> str:
    """Describe the factor by which the log-odds of a model were shrunk."""
    left = f"log-odds multiplied by {shrinkage.factor:g}, which shrinks them towards those of the class frequencies"
    return f"{left}; chosen on held-out rows"


def candidate_cells(candidate: TriedCandidate) -> tuple[str, ...]:
    """Format a candidate of an ensemble as the cells of a row with CANDIDATE_HEADINGS."""
    losses = (f"{candidate.log_loss:.5f}", f"{candidate.error:.4f}")
    return candidate.name, f"{candidate.penalty:g}", *losses, f"{candidate.weight:.2f}" if candidate.weight else "-"


def regions_text(report: RegionsReport) -> str:
    """Describe the number of regions of each order and, if search steps are recorded, the best step and its weight."""
    counts = [f"{count:,} of order {order}" for order, count in report.orders.items()]
    text = f"{', '.join(counts)} (attributes and the class)" if counts else "none (class frequencies only)"
    if report.steps is None:
        return text
    return f"{text}; step {report.best_step} of {report.steps:,}, weight {report.weight:.3g}"


def calibration_facts(calibration: Calibration, labels: tuple[str, ...]) -> dict[str, str]:
    """Describe the calibration map and its effect on the log-loss, keyed by `calibration` and `log-loss`."""
    from bncli.engine.calibration import Isotonic, Temperature

    found, rows = calibration.map, f"{calibration.rows:,} row{'s' * (calibration.rows != 1)}"
    if isinstance(found, Temperature):
        text = f"temperature {found.temperature:.4g}"
    elif isinstance(found, Isotonic):
        names = labels if len(found.knots) > 1 else labels[1:]
        knots = zip(names, found.knots, strict=True)
        parts = [f"{label} with {len(of_label.at):,} knots" for label, of_label in knots]
        text = f"isotonic, {first_names(parts, 5, 'labels')}"
    else:
        lines = zip(labels, found.scales, found.shifts, strict=True)
        parts = [f"{label} x {scale:.4g} {shift:+.4g}" for label, scale, shift in lines]
        text = f"per-class, {first_names(parts, 5, 'labels')}"
    change = f"{calibration.before:.4f} before, {calibration.after:.4f} after, on the {rows} used for calibration"
    return {"calibration": text, "log-loss": change}


def rule_lines(rule: Mapping[str, Any], labels: Sequence[str]) -> list[str]:
    """Describe a decision rule, as returned by `files.artifacts.model.rule_summary_json`, with a line per part."""
    lines = []
    if "costs" in rule:
        costs, from_where = rule["costs"], ""
        if len(labels) == 2:
            alarm, miss = costs[0][1] - costs[0][0], costs[1][0] - costs[1][1]
            if alarm > 0 and miss > 0:
                from_where = f": {labels[1]} if its probability is above {alarm / (alarm + miss):.4g}"
        lines.append(f"the label with the lowest expected cost{from_where}")
    if "threshold" in rule:
        value, chosen = rule["threshold"]["value"], rule["threshold"]["chosen"]
        lines.append(f"{labels[1]} if its probability is at least {value:.4g}{f' ({chosen})' if chosen else ''}")
    if "abstain_below" in rule:
        lines.append(f"no label if none has a probability of at least {rule['abstain_below']:g}")
    if "sets" in rule:
        rows = "each class's" if rule["sets"]["by"] == "class" else "all"
        lines.append(f"sets that miss the true label in at most {100 * rule['sets']['alpha']:.3g} % of {rows} rows")
    return lines


def counts_lines(counted: CountedRows) -> list[str]:
    """Format a summary of a counts file as lines: class, rows, attributes and tables."""
    weight = counted.class_counts.sum().item()
    weighted = "" if weight == counted.n_rows else f", with total weight {weight:,.10g}"
    tables = "all pairs" if counted.requested is None else "tables of a structure"
    return [
        f"class       {counted.cuts.class_name} ({len(counted.labels):,} labels)",
        f"rows        {counted.n_rows:,}{weighted}",
        f"attributes  {len(counted.cuts.attributes):,}",
        f"tables      {tables}, {len(counted.numbers):,} {'decayed sums' if counted.is_decayed else 'numbers'}",
    ]


def intervals_text(intervals: Mapping[str, Any]) -> str:
    """Describe the method of the probability intervals, and the number of bytes that they add to the model file."""
    text = {
        "posterior": "posterior of the tables",
        "laplace": "Laplace approximation",
        "laplace-diagonal": "Laplace approximation, treating table entries as independent because there are too many",
        "spread": "spread within and between the components of the ensemble",
    }[intervals["method"]]
    return f"{text}; {intervals['bytes']:,} bytes in the model file"


def seconds_text(seconds: Mapping[str, float]) -> str:
    """Format the seconds of each stage of a run."""
    return "  ".join(f"{stage} {value:.2f}" for stage, value in seconds.items())


def first_names(names: Sequence[str], most: int = 8, noun: str = "") -> str:
    """Join at most `most` names, and say how many more there are; an empty name is written as ''."""
    more = f" and {len(names) - most:,} more{f' {noun}' if noun else ''}" if len(names) > most else ""
    return ", ".join(name or "''" for name in names[:most]) + more


def edit_lines(edit: Edit, labels: Sequence[str]) -> list[str]:
    """Format an edit as lines: the effect and its change, the reason, the author and date, and the cost of a refit.

    At most _MOST_EDITED values are listed. They are log-odds of the edited label, if the edit records one; otherwise of
    the second label if there are two labels, or of each label if there are more.
    """
    shown = [1] if len(labels) == 2 else [*range(len(labels))]
    if edit.label is not None:
        shown = [labels.index(edit.label)]
    lines = [f"{' & '.join(edit.effect)}: {edit.action}{'' if edit.label is None else f', log-odds of {edit.label}'}"]
    for cell, before, after in list(zip(edit.cells, edit.before, edit.values, strict=True))[:_MOST_EDITED]:
        numbers = (", ".join(f"{round(row[label], 4) + 0.0:.4f}" for label in shown) for row in (before, after))
        lines.append(f"  {cell}: {' -> '.join(numbers)}")
    if len(edit.cells) > _MOST_EDITED:
        lines.append(f"  ... and {len(edit.cells) - _MOST_EDITED:,} more values; --json prints all")
    who = "".join(f", {word} {text}" for word, text in (("by", edit.by), ("on", edit.when)) if text)
    lines.append(f"  why: {edit.why}{who}")
    if edit.refit is not None:
        rows, log_loss, before_edit = edit.refit
        lines.append(
            f"  refitted to {rows:,} rows: held-out log-loss {log_loss:.4f}, without the edit {before_edit:.4f}"
        )
    return lines
