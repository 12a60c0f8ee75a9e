"""Tables and trees to look at, drawn with rich: attributes with their cuts or levels, structures, numbers.

Decisions as text: what a rule says, what came of it, and how every threshold would have done.

Bins of probabilities beside the shares that were found, and the parts of the Brier score.

The figures of groups as tables: the groups whose error lies farthest from that of all rows come first.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from rich import box
from rich.cells import cell_len
from rich.table import Table
from rich.tree import Tree

from bncli.cli.console import page_width
from bncli.engine.data.number_formats import DateForm, NumberForm
from bncli.engine.data.schema import Attribute, NumericAttribute
from bncli.engine.kernels.arrays import Array
from bncli.errors import printable

if TYPE_CHECKING:
    from rich.table import Table

    from bncli.engine.evaluation.curves import Calibration
    from bncli.engine.evaluation.groups import Fairness, Group, GroupGap, Rate
    from bncli.steps.evaluate.report import EvaluateReport

_SHOWN = 12
_MOST_NODES = 200
_MOST_LEVELS = 16
_GAP = 3
"""Blanks between two columns."""


class TextColumn(NamedTuple):
    """A heading and the cells below it; aligned to the right unless `number` is False."""

    heading: str
    cells: Sequence[str]
    number: bool = True


_EVERY = 10
"""Of the lines of thresholds that are shown, which JSON has all of."""
MOST_LABELS = 4
MOST_SHOWN = 12
_NAMES = {
    "selection_rate": "selected",
    "true_positive_rate": "true positives",
    "false_positive_rate": "false positives",
    "equalized_odds": "equalized odds",
}
_FIGURES = ("log_loss", "auc", "ece")


def plain_table(title: str, *headings: str, numbers: Sequence[int] = ()) -> Table:
    """Return an empty table with these headings; the columns at the positions `numbers` are aligned to the right."""
    table = Table(title=printable(title), box=box.SIMPLE_HEAD, pad_edge=False)
    for i, heading in enumerate(headings):
        table.add_column(printable(heading), justify="right" if i in numbers else "left", overflow="fold")
    return table


def add_row(table: Table, *cells: str) -> None:
    """Add a row to the table; control characters in names are escaped."""
    table.add_row(*map(printable, cells))


def fitted_tables(title: str, names: TextColumn, columns: Sequence[TextColumn], further: str = "") -> Iterator[Table]:
    """Yield tables without wrapped cells: columns that do not fit follow in further tables, with `names`.

    Names and headings get at most a third of the page, with an ellipsis in the middle; in full, wrapped between words,
    where they could not be told apart.
    """
    most = page_width() // 3
    names = TextColumn(names.heading, _all_shortened(names.cells, most), number=False)
    headings = _all_shortened([column.heading for column in columns], most)
    columns = [column._replace(heading=heading) for column, heading in zip(columns, headings, strict=True)]
    # The columns in as few runs as fit into the room, at least one a run, and if possible as many in each.
    room = page_width() - _width(names)
    full = _runs(columns, room, len(columns))
    even = _runs(columns, room, math.ceil(len(columns) / max(1, len(full))))
    for block in even if len(even) == len(full) else full:
        shown = [names, *block]
        table = plain_table(
            title, *(column.heading for column in shown), numbers=[i for i, each in enumerate(shown) if each.number]
        )
        for column in table.columns[_width(names) > most :]:
            column.no_wrap = True
        for cells in zip(*(column.cells for column in shown), strict=True):
            add_row(table, *cells)
        yield table
        title = f"{title}, {further}" if further and not title.endswith(further) else title


def _all_shortened(texts: Sequence[str], width: int) -> list[str]:
    """Return the texts shortened, so that those that differ still do; whole where that cannot be."""
    for shorten in (shortened, _cut):
        told = [shorten(text, width) for text in texts]
        if len(set(told)) == len(set(texts)):
            return told
    return list(texts)


def _cut(text: str, width: int) -> str:
    """Its beginning and its end about an ellipsis."""
    if cell_len(text) <= width:
        return text
    head, tail = text[: (width - 1) // 2], text[-(width // 2) :] if width > 1 else ""
    while head and cell_len(f"{head}…{tail}") > width:
        head, tail = head[:-1], tail[1:]
    return f"{head}…{tail}"


def _width(column: TextColumn) -> int:
    return max(map(cell_len, (column.heading, *column.cells)))


def _runs(columns: Sequence[TextColumn], room: int, most: int) -> list[list[TextColumn]]:
    runs: list[list[TextColumn]] = []
    left = 0
    for column in columns:
        width = _width(column) + _GAP
        if not runs or width > left or len(runs[-1]) == most:
            runs.append([])
            left = room - _GAP
        runs[-1].append(column)
        left -= width
    return runs


def shortened(text: str, width: int) -> str:
    """Return the text in at most `width` letters of a terminal: as few letters as possible, in whole words, make way.

    An ellipsis stands where they were. Where not even the first word has room, letters do.
    """
    if cell_len(text) <= width:
        return text
    words = text.split()
    if len(words) > width:  # a word and its blank take two letters: what is beyond has no room, nor time
        words = [*words[: width - 1], words[-1]]
    told = [
        " ".join([*words[:first], "…", *words[last:]])
        for first in range(1, len(words))
        for last in range(first + 1, len(words) + 1)
    ]
    return max((each for each in told if cell_len(each) <= width), key=cell_len, default=_cut(text, width))


def attribute_table(attributes: Iterable[Attribute], of_rows: bool = True) -> Table:
    """Return one line an attribute: type, number of values, and its cuts or levels.

    Without rows (`of_rows`) it is not known whether values are missing, so nor whether an attribute is of use.
    """
    table = plain_table("Attributes", "name", "type", "values", "cuts or levels", numbers=(2,))
    for attribute in attributes:
        numeric = isinstance(attribute, NumericAttribute)
        parts = [f"{cut:.6g}" for cut in attribute.cuts] if numeric else list(attribute.levels)  # type: ignore[union-attr]
        text = ", ".join(parts[:_SHOWN]) + (f", ... ({len(parts) - _SHOWN} more)" if len(parts) > _SHOWN else "")
        text += " + missing" if attribute.missing and text else ""
        uncut = "no cut: present or missing" if attribute.missing else "no cut: not used" if of_rows else "no cut"
        add_row(table, attribute.name, _kind(attribute) + _way(attribute), str(attribute.cardinality), text or uncut)
    return table


def _kind(attribute: Attribute) -> str:
    """Return the type; of a part of dates also the column that it is made from, of a number how it is written."""
    if not isinstance(attribute, NumericAttribute):
        return "categorical"
    form = attribute.form
    if isinstance(form, DateForm):
        return f"numeric, {form.part} of {form.source}"
    if isinstance(form, NumberForm):
        parts = [*([form.affix] if form.affix else []), *(f"'{word}' is missing" for word in form.words)]
        decimal = "decimal comma" if form.decimal == "," else "decimal point" if form.affix or not parts else ""
        return ", ".join(part for part in ("numeric", decimal, *parts) if part)
    return "numeric"


def _way(attribute: Attribute) -> str:
    """In which direction the log-odds of a label go along it, where that was asked for."""
    direction = attribute.direction if isinstance(attribute, NumericAttribute) else 0
    return {1: ", increasing", -1: ", decreasing"}.get(direction, "")


def structure_trees(class_name: str | None, parents: Mapping[str, Sequence[str]]) -> list[str | Tree]:
    """Return a structure as trees: the class above the attributes that depend on it alone, others below an attribute.

    A node hangs from its first-listed attribute parent, and its other attribute parents stand in brackets; a node with
    neither an attribute nor the class as a parent begins a tree. What lies too deep goes on in a tree of its own.
    """
    below = _children_by_node(class_name, parents)
    roots = deque((name, "") for name in below[None])
    by_class = "" if class_name is None else "the class and on "
    lines: list[str | Tree] = [(f"Structure: a name depends on {by_class}what it hangs from")]
    shown: set[str] = set()
    while roots and len(shown) < _MOST_NODES:
        name, before = roots.popleft()
        tree = Tree(before + _label(name, class_name, parents.get(name, ())))
        deep = _grow(tree, name, below, shown, lambda node: _label(node, class_name, parents[node]))
        roots.extend((node, "... ") for node in deep)
        lines.append(tree)
    hidden = sum(map(len, below.values())) - len(shown)
    return [*lines, f"... and {hidden:,} more"] if hidden else lines


def _children_by_node(class_name: str | None, parents: Mapping[str, Sequence[str]]) -> dict[str | None, list[str]]:
    """Return the nodes that hang from each node, and under None those that begin a tree, the class first."""
    nodes = dict.fromkeys([*([] if class_name is None else [class_name]), *parents])
    nodes.update(dict.fromkeys(name for listed in parents.values() for name in listed))
    below: dict[str | None, list[str]] = {None: []}
    for node in nodes:
        listed = parents.get(node, ()) if node != class_name else ()
        # False sorts before True: an attribute is preferred to the class.
        hook = min(listed, key=lambda name: name == class_name, default=None)
        below.setdefault(hook, []).append(node)
    return below


def _label(node: str, class_name: str | None, listed: Sequence[str]) -> str:
    """Return the name and, in brackets, what its place does not tell of its parents."""
    others = [name for name in listed if name != class_name]
    if node == class_name:
        remarks = [f"depends on {', '.join(others)}"] if others else []
    else:
        remarks = [f"and on {', '.join(others[1:])}"] if others[1:] else []
        remarks += ["not on the class"] if others and class_name not in (None, *listed) else []
    return printable(f"{node} ({'; '.join(remarks)})" if remarks else node)


def _grow(
    tree: Tree, root: str, below: Mapping[str | None, list[str]], shown: set[str], label: Callable[[str], str]
) -> list[str]:
    """Hangs what is below the root into its tree, while there is room; returns the nodes too deep to go on from."""
    shown.add(root)
    deep: list[str] = []
    pending = [(tree, child, 1) for child in reversed(below.get(root, []))]
    while pending and len(shown) < _MOST_NODES:
        upper, node, depth = pending.pop()
        shown.add(node)
        ends = depth == _MOST_LEVELS and node in below
        branch = upper.add(label(node) + (" ..." if ends else ""))
        if ends:
            deep.append(node)
        else:
            pending.extend((branch, child, depth + 1) for child in reversed(below.get(node, [])))
    return deep


def fact_table(title: str, facts: Mapping[str, object]) -> Table:
    """Return names and values below each other."""
    table = Table(title=printable(title), box=box.SIMPLE_HEAD, pad_edge=False)
    table.show_header = False
    table.add_column("name")
    table.add_column("value", overflow="fold")
    for name, value in facts.items():
        add_row(table, name, ", ".join(value) if isinstance(value, tuple) else str(value))
    return table


def number_table(attributes: Sequence[Attribute], labels: Sequence[str], values: Array) -> Table:
    """Return the scores that a family adds: a line per cell, a column per class; no attributes: the class alone."""
    names = [attribute.name for attribute in attributes]
    title = f"Scores of {', '.join(names)}" if names else "Scores of the class alone"
    table = plain_table(title, *names, *labels, numbers=range(len(names), len(names) + len(labels)))
    texts = [_value_texts(attribute) for attribute in attributes]
    for cell in np.ndindex(values.shape[:-1]):
        place = [texts[i][code] for i, code in enumerate(cell)]
        add_row(table, *place, *(f"{score:.4f}" for score in values[cell]))
    return table


def _value_texts(attribute: Attribute) -> list[str]:
    """Return what each code of an attribute stands for, to read."""
    if isinstance(attribute, NumericAttribute):
        cuts = [f"{cut:.6g}" for cut in attribute.cuts]
        texts = [f"<= {cut}" for cut in cuts] + [f"> {cuts[-1]}" if cuts else "any"]
    else:
        texts = list(attribute.levels)
    return [*texts, "missing"]


def decision_tables(report: EvaluateReport) -> Iterator[Table]:
    """Figures of the decisions where there were any, and with a threshold or costs what other thresholds give."""

    found = report.decisions
    if not found.figures:
        return
    spread = bool(found.std)
    columns = ("figure", "mean" if spread else "value", *(["std"] if spread else []))
    table = plain_table("Decisions", *columns, numbers=range(1, len(columns)))
    for name, value in found.figures.items():
        add_row(
            table,
            name.replace("_", "-"),
            _count_text(value),
            *([_count_text(found.std.get(name))] if spread else []),
        )
    for label, coverage in zip(report.labels, found.class_coverage, strict=False):
        add_row(table, f"coverage of {label}", _count_text(coverage), *([""] if spread else []))
    yield table
    if found.thresholds and found.figures.keys() & {"cost", "threshold"}:
        names = [name for name in found.thresholds[0] if name != "balanced_accuracy"]
        headings = [name.replace("_", "-") for name in names]
        shown = plain_table(f"Thresholds on p_{report.labels[1]}", *headings, numbers=range(len(names)))
        for line in found.thresholds[::_EVERY]:
            add_row(shown, f"{line['threshold']:.1f}", *(_count_text(line[name]) for name in names[1:]))
        yield shown


def _count_text(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def reliability_tables(figures: Calibration) -> Iterator[str | Table]:
    """Yield a table per label, of many labels the first; then the figures of all."""
    labels = list(dict.fromkeys(one.label for one in figures.bins))
    for label in labels[:MOST_LABELS]:
        title = f"Reliability of P({label})"
        table = plain_table(title, "from", "to", "rows", "mean P", "share", "95 %", numbers=range(6))
        for one in figures.bins:
            if one.label == label:
                numbers = [f"{value:.4f}" for value in (one.mean_p, one.frequency)]
                ends = [f"{value:.4f}" for value in (one.low, one.high)]
                add_row(table, *ends, f"{one.rows:,.10g}", *numbers, f"{one.low95:.4f} - {one.high95:.4f}")
        yield table
    if len(labels) > MOST_LABELS:
        yield f"... and {len(labels) - MOST_LABELS:,} more labels; --json has them"
    table = plain_table("The Brier score in parts", "part", "value", numbers=(1,))
    for name, value in figures.brier_parts._asdict().items():
        add_row(table, name.replace("_", " "), f"{value + 0.0:.4f}")
    add_row(table, "ece, equal mass", f"{figures.ece_equal_mass:.4f}")
    yield table


def group_tables(report: EvaluateReport) -> Iterator[str | Table]:
    """Yield a table per column, of many groups the first.

    With two classes the rates of the second label, and their gaps.
    """
    assert report.groups is not None
    total = sum(sum(row) for row in report.confusion) or 1.0
    error = 1 - sum(row[c] for c, row in enumerate(report.confusion)) / total
    columns = dict.fromkeys(group.by for group in report.groups.groups)
    for by in columns:
        own = [group for group in report.groups.groups if group.by == by]
        order = sorted(own, key=lambda group: -abs((group.metrics["error"] or 0.0) - error))
        decided = report.decisions.rows is not None
        yield from _of_column(by, order[:MOST_SHOWN], error, len(report.labels) == 2)
        if (hidden := len(own) - MOST_SHOWN) > 0:
            yield f"... and {hidden:,} more groups nearer to all rows; --json has them"
        fairness = [one for one in report.groups.fairness if one.by == by]
        if len(fairness) == 1:
            yield from _gaps(fairness[0], "Rates of decisions" if decided else "Rates")


def _of_column(by: str, groups: Sequence[Group], error: float, two: bool) -> Iterator[str | Table]:
    shown = [
        TextColumn("rows", [f"{group.rows:,}" for group in groups]),
        TextColumn("error", [_rate_text(group.metrics["error"]) for group in groups]),
        TextColumn("95 %", [_interval(group) for group in groups]),
        TextColumn("gap", [f"{(group.metrics['error'] or 0.0) - error:+.4f}" for group in groups]),
        *(TextColumn(n.replace("_", "-"), [_rate_text(group.metrics[n]) for group in groups]) for n in _FIGURES),
    ]
    shown += [
        TextColumn(name.replace("_", "-"), [_rate_text(group.decisions[name]) for group in groups])
        for name in groups[0].decisions
    ]
    if two:
        from bncli.engine.evaluation.groups import RATES

        rates = [next(iter(group.rates.values())) for group in groups]
        shown += [TextColumn(_NAMES[name], [_share(rate[name]) for rate in rates]) for name in RATES]
    names = TextColumn(by, ["missing" if group.value is None else group.value for group in groups])
    yield from fitted_tables(f"By {by}, the largest gaps of the error first", names, shown)


def _rate_text(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _interval(group: Group) -> str:
    bounds = group.intervals["error"]
    return "-" if bounds is None else f"{bounds[0]:.4f} - {bounds[1]:.4f}"


def _share(rate: Rate | None) -> str:
    return "-" if rate is None else f"{rate.share:.4f}"


def _gaps(fairness: Fairness, what: str) -> Iterator[str | Table]:
    """Yield the gaps of the rates of the second label."""
    gaps = {**fairness.gaps, "equalized_odds": fairness.equalized_odds}
    names = TextColumn(f"of {fairness.label}", [_NAMES[name] for name in gaps])
    columns = [
        TextColumn("highest - lowest", [_gap(gap, "difference") for gap in gaps.values()]),
        TextColumn("lowest / highest", [_gap(gap, "ratio") for gap in gaps.values()]),
    ]
    yield from fitted_tables(f"{what} over the groups of {fairness.by}", names, columns)


def _gap(gap: GroupGap | None, name: str) -> str:
    return "-" if gap is None else _rate_text(getattr(gap, name))
