"""What a search went through before it chose, as a person is told of it: moves, penalties, candidates.

Models of regions to look at: how many regions in a line, and the path that led to them as a table.

Effects to look at: the share of every set of attributes, then its numbers, curves as bars.

Conventions: bars have one scale for all curves, so that they can be compared. Of two classes the log-odds of the second
are shown; the most important effects in full, of what is too wide the strongest entries. Pairs are heat maps of shaded
cells, with their numbers where there is room for these; of several classes for the one that they move most.
"""

from __future__ import annotations

import itertools
import math
import string
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

    from bncli.engine.calibration import Calibration
    from bncli.engine.counting.counted_rows import CountedRows
    from bncli.engine.kernels.arrays import Array
    from bncli.engine.model import ChosenPenalty, HeldOutLoss, Restarts, Shrinkage, TriedArcs, TriedCandidate
    from bncli.engine.parameters.network_scores import ScoredNetwork
    from bncli.engine.structures.named_structure import NamedRegions
    from bncli.steps.effects_and_regions import EffectsReport, NamedEffect, NamedStep, RegionsReport
    from bncli.steps.run import NamedMove

_OF_A_CANDIDATE = ("candidate", "penalty", "log-loss", "error", "weight")
_ARCS = {"class": "class alone", "none": "none", "supported": "supported by BIC", "all": "all"}
MOST_LISTED = 200
"""Regions of a model; of more only the numbers are told."""
CUTS = "In parentheses: the intervals that an attribute has in this region, cut where that gains most."
GAINS = "A gain estimates what a region adds to the log-likelihood of the classes, in nats, beyond the smaller regions."
_LISTED = 30
_SHOWN = 12
_STRONGEST = 8
_MOST_COLUMNS = 8
_MOST_LINES = 60
_BAR = 16
"""Characters on either side of zero."""
_MOST_SHADED = 26
"""Columns of a heat map, which are told by a letter each."""
_ABOVE, _BELOW = " ░▒▓█", " ·∘○●"
_LEGEND = "Cells of pairs: ░▒▓█ above 0, ·∘○● below, in quarters of the largest number of a table."


def move_lines(moves: Sequence[NamedMove]) -> list[str]:
    """Return how many, then one aligned line each with its gain; nothing where nobody searched."""
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


def score_lines(scored: ScoredNetwork) -> list[str]:
    """Return the scores of a network, a line each."""
    cells = [(name, "-" if value is None else f"{value:,.4f}") for name, value in scored.scores._asdict().items()]
    width = max(len(text) for _, text in cells)
    heads = ["scores", *[""] * (len(cells) - 1)]
    lines = [f"{head:<12}{name:<5}{text:>{width}}" for head, (name, text) in zip(heads, cells, strict=True)]
    if scored.acll_relative_error is not None:
        lines[-1] += f", {acll_error_text(scored.acll_relative_error)}"
    return lines


def acll_error_text(error: float) -> str:
    """Return how far the approximation is off."""
    return f"{100 * error:.4g} % off the CLL of the same parameters"


def held_out_text(held_out: HeldOutLoss) -> str:
    """Return how good the model was on rows kept back, beside what can be had without a model."""
    base = f"{held_out.base_log_loss:.4g} by the class frequencies alone"
    return f"log-loss {held_out.log_loss:.4g} on rows kept back, {base} (lower is better)"


def chosen_text(penalty: ChosenPenalty) -> str:
    """Return the penalty and what it was chosen from; one at an end of those tried is worth a second look."""
    if not penalty.tried:
        return f"{penalty.penalty:g}, for there are too few rows to choose it by cross-validation"
    if len(penalty.tried) == 1:
        return f"{penalty.penalty:g}"
    most, least = (pick(one.penalty for one in penalty.tried) for pick in (max, min))
    which = f" between {least:g} and {most:g}"
    if penalty.penalty in (most, least):
        which = f", the {'largest' if penalty.penalty == most else 'smallest'} of those tried"
    return f"{penalty.penalty:g}, chosen by cross-validation{which}"


def shrinkage_text(shrinkage: Shrinkage) -> str:
    """Return what is left of what the tables say."""
    left = f"to {shrinkage.factor:g} of the log-odds, towards those of the class frequencies"
    return f"{left}: rows held out support no more"


def restarts_text(restarts: Restarts) -> str:
    """Return how many starts there were, how far apart they ended, and which one is kept."""
    what = "held-out likelihoods" if restarts.held_out else "objectives"
    n = len(restarts.objectives) - 1
    which = f"random start {restarts.best_start}" if restarts.best_start else "the usual start"
    ends = f"{what} from {min(restarts.objectives):.7g} to {restarts.objectives[restarts.best_start]:.7g} nats"
    return f"{which} kept of the usual one and {n:,} random: {ends}"


def arcs_text(arcs: Sequence[TriedArcs], kept: int) -> str:
    """Return how many of the arcs that were found are kept, and what that is worth on held-out rows."""
    every = arcs[-1]
    rivals = ", ".join(f"{_ARCS[one.arcs]} {one.log_loss:.4g}" for one in arcs)
    return f"{kept:,} of {every.n_arcs:,} kept, chosen by held-out log-loss: {rivals}"


def arcs_table(arcs: Sequence[TriedArcs]) -> Table:
    """Return the held-out log-loss of every choice of arcs."""
    from bncli.cli.tables import add_row, plain_table

    table = plain_table("Arcs", "choice", "arcs", "penalty", "log-loss of held-out rows", numbers=(1, 2, 3))
    for one in arcs:
        add_row(table, _ARCS[one.arcs], f"{one.n_arcs:,}", f"{one.penalty:g}", f"{one.log_loss:.5f}")
    return table


def penalty_table(penalty: ChosenPenalty) -> Table:
    """Return the held-out log-loss of every penalty tried."""
    from bncli.cli.tables import add_row, plain_table

    table = plain_table("Penalties", "penalty", "log-loss of held-out rows", numbers=(0, 1))
    for one in penalty.tried:
        add_row(table, f"{one.penalty:g}", f"{one.log_loss:.5f}")
    return table


def trial_lines(trials: Sequence[TriedCandidate]) -> list[str]:
    """For the end of a run: one aligned line a candidate; nothing where there is no ensemble."""
    if not trials:
        return []
    rows = [_OF_A_CANDIDATE, *map(_cells, trials)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    title = f"candidates  {len(trials):,}, with the losses of held-out rows and the weight in the ensemble"
    return [title] + [
        "            " + "  ".join(f"{cell:<{w}}" if i == 0 else f"{cell:>{w}}" for i, (cell, w) in enumerate(pairs))
        for pairs in (list(zip(row, widths, strict=True)) for row in rows)
    ]


def _cells(trial: TriedCandidate) -> tuple[str, ...]:
    weight = f"{trial.weight:.2f}" if trial.weight else "-"
    return trial.name, f"{trial.penalty:g}", f"{trial.log_loss:.5f}", f"{trial.error:.4f}", weight


def trial_table(trials: Sequence[TriedCandidate]) -> Table:
    """Return the same as a table of its own."""
    from bncli.cli.tables import add_row, plain_table

    table = plain_table("Candidates", *_OF_A_CANDIDATE, numbers=(1, 2, 3, 4))
    for trial in trials:
        add_row(table, *_cells(trial))
    return table


def regions_text(report: RegionsReport) -> str:
    """Return the regions of the best model, and how it was reached."""
    text = orders_text(report.orders)
    if report.steps is None:
        return text
    return f"{text}; step {report.best_step} of {report.steps:,}, weight {report.weight:.3g}"


def orders_text(orders: Mapping[str, int]) -> str:
    """Return how many regions there are of each order."""
    counts = [f"{count:,} of order {order}" for order, count in orders.items()]
    return f"{', '.join(counts)} (attributes and the class)" if counts else "none, so the class alone"


def path_table(steps: Sequence[NamedStep], best: int) -> Table:
    """Return every step on a line, the best one marked."""
    from bncli.cli.tables import add_row, plain_table

    checked = any(step.bootstrap_log_loss is not None for step in steps)
    headings = ("step", "", "region", "df", "log likelihood", "log posterior", "weight")
    table = plain_table("Path", *headings, *(("bootstrap log-loss",) if checked else ()), numbers=(0, 3, 4, 5, 6, 7))
    for number, step in enumerate(steps):
        mark, region = "*" if number == best else "", ", ".join(step.region) or "the class alone"
        logs = (f"{step.log_likelihood:.4f}", f"{step.log_posterior:.4f}")
        loss = () if step.bootstrap_log_loss is None else (f"{step.bootstrap_log_loss:.4f}",)
        add_row(table, str(number), mark, region, f"{step.df:,}", *logs, f"{step.weight:.4f}", *loss)
    return table


def region_table(structure: NamedRegions, *, chosen: bool) -> Table:
    """Return regions without a path; with the gain that each was chosen for, where anything is known of that.

    An attribute that the region has in few intervals has their number beside it. `chosen`: those of the model alone.
    """
    from bncli.cli.tables import add_row, plain_table

    headings = ("step", "region", "gain") if structure.gains else ("step", "region")
    table = plain_table("Regions", *headings, numbers=(0, 2))
    for number, position in enumerate(structure.chosen_positions if chosen else range(len(structure.regions)), 1):
        cuts = structure.cuts[position] if structure.cuts else (None,) * len(structure.regions[position])
        members = [
            name if some is None else f"{name} ({len(some) + 1})"
            for name, some in zip(structure.regions[position], cuts, strict=True)
        ]
        gain = (f"{structure.gains[position]:.4f}",) if structure.gains else ()
        add_row(table, str(number), ", ".join(members), *gain)
    return table


def region_counts(regions: Sequence[tuple[str, ...]]) -> Table:
    """Return how many regions there are of each size, where they are too many to list."""
    from bncli.cli.tables import add_row, plain_table

    table = plain_table(f"{len(regions):,} regions", "attributes", "regions", numbers=(0, 1))
    for size, n in sorted(Counter(map(len, regions)).items()):
        add_row(table, str(size), f"{n:,}")
    return table


def meaning(param: str | None) -> list[str]:
    """Return what the path says of P(class | attributes); `param` None: no parameters are there yet."""
    use = {
        None: "kbma averages the models of all steps by these weights; kmap is the best step alone, marked *.",
        "kmap": "The model is that of the best step alone, marked *.",
    }.get(param, "The model averages those of all steps by these weights; the best is marked *.")
    return ["Each step adds a region: attributes that are looked up together with the class.", use]


def bins_text(bins: Sequence[int | None]) -> str:
    """Return how many intervals of an attribute the regions of each size have."""
    *smaller, rest = ["as cut" if most is None else f"at most {most:,}" for most in bins]
    kinds = [f"{kind} in regions of {size}" for size, kind in enumerate(smaller, 1)]
    return f"Intervals of an attribute: {', '.join([*kinds, f'{rest} in larger ones' if smaller else rest])}."


def effect_tables(report: EffectsReport, labels: Sequence[str]) -> list[str | Table]:
    """Return how to read them, the shares, and the numbers of the first."""
    if not report.effects:
        return [*_preface(report, labels), "No attribute has an effect."]
    tables: list[str | Table] = [*_preface(report, labels), _shares(report.effects)]
    count, share = report.left_out or (0, 0.0)
    hidden = report.effects[_LISTED:]
    if hidden:
        together = _percent(share + sum(effect.share for effect in hidden))
        tables += [f"... and {count + len(hidden):,} more with {together} together", ""]
    shown = [effect for effect in report.effects[:_SHOWN] if effect.values.any()]
    scale = max((_largest(effect.values) for effect in shown if len(effect.attributes) == 1), default=0.0)
    if any(len(effect.attributes) == 2 for effect in shown):
        tables += [_LEGEND, ""]
    tables += itertools.chain.from_iterable(_numbers(effect, labels, scale) for effect in shown)
    return [*tables, *(_nomogram(report, labels[1]) if len(labels) == 2 else ())]


def _preface(report: EffectsReport, labels: Sequence[str]) -> list[str]:
    if len(labels) == 2:
        lines = [f"Log-odds of {labels[1]} against {labels[0]}: base {_signed(report.base[1])}, plus these effects"]
    else:
        bases = ", ".join(f"{label} {_signed(b)}" for label, b in zip(labels, report.base, strict=True))
        lines = ["Log-odds of a class against the geometric mean of the others: a base, plus these effects"]
        lines.append(f"Base: {bases}")
    if report.models > 1:
        lines.append(f"Effects on the average score of {report.models:,} models; their probabilities are averaged.")
    return lines


def _signed(number: float) -> str:
    return f"{number + 0.0:+.3f}"


def _shares(effects: Sequence[NamedEffect]) -> Table:
    rows = ((_percent(e.share), ", ".join(e.attributes), "█" * round(2 * _BAR * e.share)) for e in effects[:_LISTED])
    return _table("Shares of the score's variance", ("share", "effect", ""), rows, (0,))


def _percent(share: float) -> str:
    return f"{100 * share:.1f}%"


def _table(title: str, headings: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[int]) -> Table:
    from bncli.cli.tables import add_row, plain_table

    table = plain_table(title, *headings, numbers=numbers)
    for row in rows:
        add_row(table, *row)
    return table


def _largest(values: Array) -> float:
    return float(abs(values).max(initial=0.0))


def _numbers(effect: NamedEffect, labels: Sequence[str], scale: float) -> list[str | Table]:
    """Return a curve, a grid, a heat map, or what is strongest."""
    two = len(labels) == 2
    order, n_lines = len(effect.attributes), effect.values.shape[0]
    if order == 1 and two and n_lines <= _MOST_LINES:
        return [_curve(effect, scale)]
    if order == 1 and len(labels) <= _MOST_COLUMNS and n_lines <= _MOST_LINES:
        return [_grid(effect, effect.values, labels)]
    if order == 2 and n_lines <= _MOST_LINES and effect.values.shape[1] <= _MOST_SHADED:
        return _heat_map(effect, labels)
    return [_strongest(effect, labels)]


def _curve(effect: NamedEffect, scale: float) -> Table:
    numbers = zip(effect.names[0], effect.values[:, 1].tolist(), strict=True)
    rows = ((name, _signed(value), _bar(value / scale)) for name, value in numbers)
    return _table(_title(effect), (effect.attributes[0], "log-odds", ""), rows, (1,))


def _bar(share: float) -> str:
    """To the left of the line where negative, to the right where positive."""
    length = round(_BAR * abs(share))
    left, right = (0, length) if share >= 0 else (length, 0)
    return " " * (_BAR - left) + "█" * left + "|" + "█" * right


def _title(effect: NamedEffect) -> str:
    averaged = ", averages" if effect.averaged else ""
    return f"{' by '.join(effect.attributes)} ({_percent(effect.share)}{averaged})"


def _grid(effect: NamedEffect, values: Array, columns: Sequence[str]) -> Table:
    """Return a line for each value of the first attribute, a column for each of `columns`."""
    lines = zip(effect.names[0], values.tolist(), strict=True)
    rows = ((name, *map(_signed, numbers)) for name, numbers in lines)
    return _table(_title(effect), (effect.attributes[0], *columns), rows, range(1, len(columns) + 1))


def _heat_map(effect: NamedEffect, labels: Sequence[str]) -> list[str | Table]:
    """Of two classes with numbers in the cells where these have room, else of the class moved most, in shades alone."""
    label = 1 if len(labels) == 2 else int(abs(effect.values).max(axis=(0, 1)).argmax())
    title = _title(effect) if len(labels) == 2 else f"{_title(effect)}, of {labels[label]}"
    values, (down, across) = effect.values[:, :, label], effect.attributes
    most = _largest(values) or 1.0
    marks = [[_mark(value / most) for value in row] for row in values.tolist()]
    if len(labels) == 2 and values.shape[1] <= _MOST_COLUMNS:
        told = (map(_signed, row) for row in values.tolist())
        cells = (map(" ".join, zip(*row, strict=True)) for row in zip(marks, told, strict=True))
        rows = ((name, *row) for name, row in zip(effect.names[0], cells, strict=True))
        return [_table(title, (down, *effect.names[1]), rows, range(1, values.shape[1] + 1))]
    letters = string.ascii_lowercase[: values.shape[1]]
    shaded = ((name, "".join(2 * mark for mark in row)) for name, row in zip(effect.names[0], marks, strict=True))
    key = ", ".join(f"{letter} {name}" for letter, name in zip(letters, effect.names[1], strict=True))
    return [_table(title, (down, " ".join(letters)), shaded, ()), f"{across}: {key}; the largest is {most:.3f}", ""]


def _mark(share: float) -> str:
    """Return a cell of a heat map, of a number between -1 and 1."""
    return (_ABOVE if share >= 0 else _BELOW)[math.ceil(4 * abs(share) - 0.5)]


def _strongest(effect: NamedEffect, labels: Sequence[str]) -> Table:
    """Return the entries of largest absolute size, ties to the first; of two classes the second alone."""
    hidden = int(len(labels) == 2)
    values = effect.values[..., hidden:]
    cells = sorted(itertools.product(*map(range, values.shape)), key=lambda cell: -abs(float(values[cell])))
    axes = (*effect.names, labels[hidden:])
    rows = (
        (*(names[code] for names, code in zip(axes, cell, strict=True)), _signed(float(values[cell])))
        for cell in cells[:_STRONGEST]
    )
    headings = (*effect.attributes, "class", "log-odds")
    return _table(f"{_title(effect)}, strongest", headings, rows, (len(headings) - 1,))


def _nomogram(report: EffectsReport, label: str) -> list[str | Table]:
    """Return the points of each value, and the probability of the label by their sum."""
    from bncli.steps.report.effects_section import nomogram_points, nomogram_scales

    single = nomogram_scales(report)
    if not single:
        return []
    points = nomogram_points(report, single)
    rows = [
        (one.name, ", ".join(f"{name} {at:.0f}" for name, at in sorted(one.values, key=lambda pair: pair[1])))
        for one in points.scales
    ]
    sums = [(f"{sum_:.0f}", f"{p:g}") for p, sum_ in points.sums if 0 <= sum_ <= points.total]
    tables: list[str | Table] = [_table("Nomogram: points to add up", ("attribute", "points of its values"), rows, ())]
    return tables + ([_table("", ("sum of points", f"P({label})"), sums, (0, 1))] if sums else [])


def calibration_facts(calibration: Calibration, labels: tuple[str, ...]) -> dict[str, str]:
    """Return the calibration in two lines, by what they are about."""
    from bncli.engine.calibration import Isotonic, Temperature

    found, rows = calibration.map, f"{calibration.rows:,} row{'s' * (calibration.rows != 1)}"
    if isinstance(found, Temperature):
        told = f"temperature {found.temperature:.4g}"
    elif isinstance(found, Isotonic):
        names = labels if len(found.knots) > 1 else labels[1:]
        counts = zip(names, found.knots, strict=True)
        told = "isotonic, " + _listed([f"{label} by {len(one.at):,} knots" for label, one in counts])
    else:
        pairs = zip(labels, found.scales, found.shifts, strict=True)
        told = "per-class, " + _listed([f"{label} x {a:.4g} {b:+.4g}" for label, a, b in pairs])
    change = f"{calibration.before:.4f} before, {calibration.after:.4f} after, on the {rows} it was learnt from"
    return {"calibration": told, "log-loss": change}


def _listed(texts: list[str]) -> str:
    more = f" and {len(texts) - 5:,} more labels" if len(texts) > 5 else ""
    return ", ".join(texts[:5]) + more


def rule_lines(rule: Mapping[str, Any], labels: Sequence[str]) -> list[str]:
    """Return what a rule says, as `bncli.files.artifacts.model.rule_summary_json` has it, a line each."""
    lines = []
    if "costs" in rule:
        lines.append("the label of the least expected cost")
    if "threshold" in rule:
        value, chosen = rule["threshold"]["value"], rule["threshold"]["chosen"]
        lines.append(f"{labels[1]} from a probability of {value:.4g} on{f' ({chosen})' if chosen else ''}")
    if "abstain_below" in rule:
        lines.append(f"none where no label has a probability of {rule['abstain_below']:g}")
    if "sets" in rule:
        whose = "each class's" if rule["sets"]["by"] == "class" else "all"
        lines.append(f"sets that miss the true label in at most {rule['sets']['alpha']:.3g} of {whose} rows")
    return lines


def of_counts(counted: CountedRows) -> list[str]:
    """Return what counts are of."""
    weight = counted.class_counts.sum().item()
    weighted = "" if weight == counted.n_rows else f", which weigh {weight:,.10g}"
    tables = "all pairs" if counted.requested is None else "those of a structure"
    return [
        f"class       {counted.cuts.class_name} ({len(counted.labels):,} labels)",
        f"rows        {counted.n_rows:,}{weighted}",
        f"attributes  {len(counted.cuts.attributes):,}",
        f"tables      {tables}, {len(counted.numbers):,} {'sums that decay' if counted.is_decayed else 'numbers'}",
    ]
