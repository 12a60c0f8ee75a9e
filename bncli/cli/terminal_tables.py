"""Tables and trees for the terminal, drawn by rich: general tables, attributes, structures, and effects.

rich is imported inside functions, so that the modules of commands can import this one without slowing down their help.
"""

from __future__ import annotations

import itertools
import math
import string
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from bncli.cli.console import page_width
from bncli.errors import printable

if TYPE_CHECKING:
    from rich.table import Table
    from rich.tree import Tree

    from bncli.engine.data.schema import Attribute
    from bncli.steps.effects_and_regions import EffectsReport, NamedEffect

_MOST_PARTS = 12
"""The maximum number of cuts or levels listed in a row about an attribute."""
_MOST_NODES = 200
"""The maximum number of nodes of a structure that are shown."""
_MOST_LEVELS = 16
"""The maximum depth of a tree."""
_COLUMN_GAP = 3
"""The number of spaces between two columns."""


class TextColumn(NamedTuple):
    """A column of a table: its heading and its cells, which are right-aligned if `is_number` is true."""

    heading: str
    cells: Sequence[str]
    is_number: bool = True


def plain_table(title: str, *headings: str, numbers: Sequence[int] = ()) -> Table:
    """Return a table without rows; the columns at the positions `numbers` are right-aligned."""
    from rich import box
    from rich.table import Table

    table = Table(title=printable(title), box=box.SIMPLE_HEAD, pad_edge=False)
    for i, heading in enumerate(headings):
        table.add_column(printable(heading), justify="right" if i in numbers else "left", overflow="fold")
    return table


def add_row(table: Table, *cells: str) -> None:
    """Add a row to a table; control characters, which names may contain, are replaced by `?`."""
    table.add_row(*map(printable, cells))


def filled_table(
    title: str, headings: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[int] = ()
) -> Table:
    """Return a table with rows; the columns at the positions `numbers` are right-aligned."""
    table = plain_table(title, *headings, numbers=numbers)
    for row in rows:
        add_row(table, *row)
    return table


def fact_table(title: str, facts: Mapping[str, object]) -> Table:
    """Return a table of facts, one name and value per row, without headings."""
    table = filled_table(
        title,
        ("name", "value"),
        ((name, ", ".join(value) if isinstance(value, tuple) else str(value)) for name, value in facts.items()),
    )
    table.show_header = False
    table.columns[0].overflow = "ellipsis"
    return table


def fitted_tables(title: str, names: TextColumn, columns: Sequence[TextColumn], further: str = "") -> Iterator[Table]:
    """Split the columns into as many tables as the width of the page requires, and yield these.

    Each table begins with the column `names`, and the titles of all but the first end with `further`. Names and
    headings that are longer than a third of the page are shortened, unless different ones would become equal. Cells are
    not wrapped, except names that are still longer.
    """
    most = page_width() // 3
    names = TextColumn(names.heading, _shortened_texts(names.cells, most), is_number=False)
    headings = _shortened_texts([column.heading for column in columns], most)
    columns = [column._replace(heading=heading) for column, heading in zip(columns, headings, strict=True)]
    # Use as few tables as possible, and if that takes no more of them, give each about the same number of columns.
    width = page_width() - _width(names)
    full = _split_columns(columns, width, len(columns))
    even = _split_columns(columns, width, math.ceil(len(columns) / max(1, len(full))))
    for block in even if len(even) == len(full) else full:
        shown = [names, *block]
        table = plain_table(
            title, *(column.heading for column in shown), numbers=[i for i, c in enumerate(shown) if c.is_number]
        )
        for column in table.columns[_width(names) > most :]:
            column.no_wrap = True
        for cells in zip(*(column.cells for column in shown), strict=True):
            add_row(table, *cells)
        yield table
        title = f"{title}, {further}" if further and not title.endswith(further) else title


def _shortened_texts(texts: Sequence[str], width: int) -> list[str]:
    """Shorten strings between words or, if necessary, inside words; keep them if different ones would become equal."""
    for shorten in (shortened, _truncated):
        short = [shorten(text, width) for text in texts]
        if len(set(short)) == len(set(texts)):
            return short
    return list(texts)


def _width(column: TextColumn) -> int:
    from rich.cells import cell_len

    return max(map(cell_len, (column.heading, *column.cells)))


def _split_columns(columns: Sequence[TextColumn], available: int, most: int) -> list[list[TextColumn]]:
    """Split the columns into blocks of at most `available` characters and `most` columns; wider columns stand alone."""
    blocks: list[list[TextColumn]] = []
    left = 0
    for column in columns:
        width = _width(column) + _COLUMN_GAP
        if not blocks or width > left or len(blocks[-1]) == most:
            blocks.append([])
            left = available - _COLUMN_GAP
        blocks[-1].append(column)
        left -= width
    return blocks


def shortened(text: str, width: int) -> str:
    """Shorten a string to at most `width` characters on a terminal.

    An ellipsis replaces as few characters as possible, as whole words after the first word. If not even the first word
    fits, letters are replaced.
    """
    from rich.cells import cell_len

    if cell_len(text) <= width:
        return text
    words = text.split()
    if len(words) > width:
        # A word and its blank take at least two characters, so more words cannot fit, and trying them would take long.
        words = [*words[: width - 1], words[-1]]
    candidates = [
        " ".join([*words[:first], "…", *words[last:]])
        for first in range(1, len(words))
        for last in range(first + 1, len(words) + 1)
    ]
    fitting = (candidate for candidate in candidates if cell_len(candidate) <= width)
    return max(fitting, key=cell_len, default=_truncated(text, width))


def _truncated(text: str, width: int) -> str:
    """Shorten a string to its beginning and its end around an ellipsis, in at most `width` characters on a terminal."""
    from rich.cells import cell_len

    if cell_len(text) <= width:
        return text
    head, tail = text[: (width - 1) // 2], text[-(width // 2) :] if width > 1 else ""
    while head and cell_len(f"{head}…{tail}") > width:
        head, tail = head[:-1], tail[1:]
    return f"{head}…{tail}"


def attribute_table(attributes: Iterable[Attribute], has_rows: bool = True) -> Table:
    """Return a table with the type, the number of values, and the cuts or levels of each attribute.

    has_rows: whether the attributes were learned from rows. If not, it is not known whether values are missing, and
    therefore whether an attribute without a cut is used.
    """
    from bncli.engine.data.schema import DateForm, NumberForm, NumericAttribute

    rows = []
    for attribute in attributes:
        if isinstance(attribute, NumericAttribute):
            parts, form = [f"{cut:.6g}" for cut in attribute.cuts], attribute.form
            kind = "numeric"
            if isinstance(form, DateForm):
                kind = f"numeric, {form.part} of {form.source}"
            elif isinstance(form, NumberForm):
                marks = [*([form.affix] if form.affix else []), *(f"'{word}' is missing" for word in form.words)]
                decimal = "decimal comma" if form.decimal == "," else "decimal point" if form.affix or not marks else ""
                kind = ", ".join(part for part in ("numeric", decimal, *marks) if part)
            kind += {1: ", increasing", -1: ", decreasing"}.get(attribute.direction, "")
        else:
            parts, kind = list(attribute.levels), "categorical"
        text = ", ".join(parts[:_MOST_PARTS])
        if len(parts) > _MOST_PARTS:
            text += f", ... ({len(parts) - _MOST_PARTS} more)"
        if not text:
            text = "no cut: present or missing" if attribute.missing else "no cut: not used" if has_rows else "no cut"
        elif attribute.missing:
            text += " + missing"
        rows.append((attribute.name, kind, str(attribute.cardinality), text))
    return filled_table("Attributes", ("name", "type", "values", "cuts or levels"), rows, numbers=(2,))


def structure_trees(class_name: str | None, parents: Mapping[str, Sequence[str]]) -> list[str | Tree]:
    """Return a network as trees; `parents` contains the parents of each attribute.

    An attribute is placed below its first attribute parent, with its other attribute parents in parentheses, or below
    the class if that is its only parent. A node without parents is the root of a tree. Branches that are too deep
    continue in a tree of their own. At most _MOST_NODES nodes are shown.
    """
    from rich.tree import Tree

    # The nodes below each node, and under the key None the nodes that begin a tree, the class first.
    nodes = dict.fromkeys([*([] if class_name is None else [class_name]), *parents])
    nodes.update(dict.fromkeys(name for names in parents.values() for name in names))
    below: dict[str | None, list[str]] = {None: []}
    for node in nodes:
        names = parents.get(node, ()) if node != class_name else ()
        # False sorts before True, so an attribute is preferred to the class.
        upper = min(names, key=lambda name: name == class_name, default=None)
        below.setdefault(upper, []).append(node)
    roots = deque((name, "") for name in below[None])
    by_class = "" if class_name is None else "the class and on "
    lines: list[str | Tree] = [f"Structure: each attribute depends on {by_class}the one above it"]
    shown: set[str] = set()
    while roots and len(shown) < _MOST_NODES:
        name, prefix = roots.popleft()
        tree = Tree(prefix + _node_label(name, class_name, parents))
        shown.add(name)
        pending = [(tree, child, 1) for child in reversed(below.get(name, []))]
        while pending and len(shown) < _MOST_NODES:
            branch, node, depth = pending.pop()
            shown.add(node)
            continues = depth == _MOST_LEVELS and node in below
            branch = branch.add(_node_label(node, class_name, parents) + (" ..." if continues else ""))
            if continues:
                roots.append((node, "... "))
            else:
                pending.extend((branch, child, depth + 1) for child in reversed(below.get(node, [])))
        lines.append(tree)
    hidden = sum(map(len, below.values())) - len(shown)
    return [*lines, f"... and {hidden:,} more"] if hidden else lines


def _node_label(node: str, class_name: str | None, parents: Mapping[str, Sequence[str]]) -> str:
    """Return the name of a node and, in parentheses, the parents that its place in the tree does not show."""
    names = parents.get(node, ())
    attributes = [name for name in names if name != class_name]
    if node == class_name:
        remarks = [f"depends on {', '.join(attributes)}"] if attributes else []
    else:
        remarks = [f"and on {', '.join(attributes[1:])}"] if attributes[1:] else []
        remarks += ["not on the class"] if attributes and class_name not in (None, *names) else []
    return printable(f"{node} ({'; '.join(remarks)})" if remarks else node)


_MOST_SHARES, _MOST_EFFECTS, _MOST_STRONGEST = 30, 12, 8
"""The maximum numbers of effects whose fractions are listed, of effects with values, and of strongest entries."""
_MOST_LINES, _MOST_COLUMNS = 60, 8
"""The maximum numbers of rows of a curve or grid, and of columns with values."""
_MOST_SHADED = 26
"""The maximum number of columns of a heat map without values, whose columns are named by letters."""
_BAR_WIDTH = 16
"""The maximum length of a bar on either side of zero, in characters."""
_POSITIVE_SHADES, _NEGATIVE_SHADES = " ░▒▓█", " ·∘○●"
_LEGEND = "Cells of pairs: ░▒▓█ positive, ·∘○● negative, in steps of a quarter of the table's largest absolute value."


def effect_tables(report: EffectsReport, labels: Sequence[str]) -> list[str | Table]:
    """Return tables and lines that show the effects of attributes on the log-odds of a model.

    An explanation comes first, then the fraction of the score's variance that is due to each effect, for at most 30
    effects. They are followed by the values of at most 12 effects and, for two classes, a nomogram. The effect of a
    single attribute is shown as a curve, with the same scale in all curves, or as a grid for several classes. The
    effect of a pair is a heat map of shaded cells, with values if they fit. Other effects are listed by their strongest
    entries. Neighbouring intervals with the same log-odds share a row.

    With two classes, the log-odds are for the second class. With more, a heat map shows the class that the pair affects
    most.
    """
    report = report.with_equal_intervals_joined()
    lines: list[str | Table] = []
    if len(labels) == 2:
        towards = f"Log-odds of {labels[1]}, the positive label, against {labels[0]}"
        lines.append(f"{towards}: base {signed(report.base[1])}, plus these effects")
    else:
        bases = ", ".join(f"{label} {signed(b)}" for label, b in zip(labels, report.base, strict=True))
        lines.append("Log-odds of each class against the geometric mean of the others: a base, plus these effects")
        lines.append(f"Base: {bases}")
    if report.models > 1:
        lines.append(f"Effects on the average score of {report.models:,} models; their probabilities are averaged.")
    if not report.effects:
        return [*lines, "No attribute has an effect."]

    rows = (
        (f"{effect.share:.1%}", ", ".join(effect.attributes), "█" * round(2 * _BAR_WIDTH * effect.share))
        for effect in report.effects[:_MOST_SHARES]
    )
    lines.append(filled_table("Shares of the score's variance", ("share", "effect", ""), rows, (0,)))
    n_left_out, share_left_out = report.left_out or (0, 0.0)
    if hidden := report.effects[_MOST_SHARES:]:
        together = f"{share_left_out + sum(effect.share for effect in hidden):.1%}"
        lines += [f"... and {n_left_out + len(hidden):,} more effects with {together} in total", ""]

    shown = [effect for effect in report.effects[:_MOST_EFFECTS] if effect.values.any()]
    scale = max((float(abs(effect.values).max()) for effect in shown if len(effect.attributes) == 1), default=0.0)
    if any(len(effect.attributes) == 2 for effect in shown):
        lines += [_LEGEND, ""]
    for effect in shown:
        lines += _tables_of_effect(effect, labels, scale)
    if len(labels) != 2:
        return lines

    # The points of each value, and the probability of the label by the sum of the points.
    from bncli.steps.report.effects_section import nomogram_effects, nomogram_points

    if scales := nomogram_effects(report):
        points = nomogram_points(report, scales)
        of_values = [(one.name, sorted(one.values, key=lambda pair: pair[1])) for one in points.scales]
        cells = [(name, ", ".join(f"{value} {at:.0f}" for value, at in values)) for name, values in of_values]
        lines.append(filled_table("Nomogram: points to add up", ("attribute", "points by value"), cells))
        sums = [(f"{total:.0f}", f"{p:g}") for p, total in points.sums if 0 <= total <= points.total]
        if sums:
            lines.append(filled_table("", ("sum of points", f"P({labels[1]})"), sums, (0, 1)))
    return lines


def signed(number: float) -> str:
    return f"{number + 0.0:+.3f}"


def _tables_of_effect(effect: NamedEffect, labels: Sequence[str], scale: float) -> list[str | Table]:
    """Return the values of one effect as a curve, a grid, a heat map, or a list of the strongest entries.

    scale: the log-odds, in nats, for which the bar of a curve has its full length.
    """
    order, n_lines = len(effect.attributes), effect.values.shape[0]
    averaged = ", averages" if effect.averaged else ""
    title = f"{' by '.join(effect.attributes)} ({effect.share:.1%}{averaged})"
    if order == 1 and len(labels) == 2 and n_lines <= _MOST_LINES:
        rows: Iterable[Sequence[str]] = (
            (name, signed(value), bar(value / scale))
            for name, value in zip(effect.names[0], effect.values[:, 1].tolist(), strict=True)
        )
        if effect.margins is not None:
            margins = effect.margins[:, 1].tolist()
            rows = ((*row[:2], f"± {margin:.3f}", row[2]) for row, margin in zip(rows, margins, strict=True))
            return [filled_table(title, (effect.attributes[0], "log-odds", "90 %", ""), rows, (1,))]
        return [filled_table(title, (effect.attributes[0], "log-odds", ""), rows, (1,))]
    if order == 1 and len(labels) <= _MOST_COLUMNS and n_lines <= _MOST_LINES:
        lines = zip(effect.names[0], effect.values.tolist(), strict=True)
        rows = ((name, *map(signed, numbers)) for name, numbers in lines)
        return [filled_table(title, (effect.attributes[0], *labels), rows, range(1, len(labels) + 1))]
    if order == 2 and n_lines <= _MOST_LINES and effect.values.shape[1] <= _MOST_SHADED:
        return _heat_map(effect, labels, title)
    return [_strongest_entries(effect, labels, title)]


def bar(share: float) -> str:
    """Draw a bar for a number between -1 and 1, to the left of the line if it is negative."""
    length = round(_BAR_WIDTH * abs(share))
    left, right = (0, length) if share >= 0 else (length, 0)
    return " " * (_BAR_WIDTH - left) + "█" * left + "|" + "█" * right


def _heat_map(effect: NamedEffect, labels: Sequence[str], title: str) -> list[str | Table]:
    """Return the effect of a pair as a heat map, with values if there are two classes and few columns."""
    label = 1 if len(labels) == 2 else int(abs(effect.values).max(axis=(0, 1)).argmax())
    title = title if len(labels) == 2 else f"{title}, log-odds of {labels[label]}"
    values, (down, across) = effect.values[:, :, label], effect.attributes
    most = float(abs(values).max(initial=0.0)) or 1.0
    shares = [[value / most for value in row] for row in values.tolist()]
    shades = [
        [(_POSITIVE_SHADES if x >= 0 else _NEGATIVE_SHADES)[math.ceil(4 * abs(x) - 0.5)] for x in row] for row in shares
    ]
    if len(labels) == 2 and values.shape[1] <= _MOST_COLUMNS:
        rows: Iterable[Sequence[str]] = (
            (name, *(f"{shade} {signed(value)}" for shade, value in zip(row_shades, row, strict=True)))
            for name, row_shades, row in zip(effect.names[0], shades, values.tolist(), strict=True)
        )
        return [filled_table(title, (down, *effect.names[1]), rows, range(1, values.shape[1] + 1))]
    letters = string.ascii_lowercase[: values.shape[1]]
    rows = ((name, "".join(2 * shade for shade in row)) for name, row in zip(effect.names[0], shades, strict=True))
    key = ", ".join(f"{letter} {name}" for letter, name in zip(letters, effect.names[1], strict=True))
    table = filled_table(title, (down, " ".join(letters)), rows)
    return [table, f"{across}: {key}; the largest absolute value is {most:.3f}", ""]


def _strongest_entries(effect: NamedEffect, labels: Sequence[str], title: str) -> Table:
    """Return a table of the entries with the largest absolute values; for two classes, only of the second class."""
    first_label = int(len(labels) == 2)
    values = effect.values[..., first_label:]
    cells = sorted(itertools.product(*map(range, values.shape)), key=lambda cell: -abs(float(values[cell])))
    axes = (*effect.names, labels[first_label:])
    rows = (
        (*(names[code] for names, code in zip(axes, cell, strict=True)), signed(float(values[cell])))
        for cell in cells[:_MOST_STRONGEST]
    )
    headings = (*effect.attributes, "class", "log-odds")
    return filled_table(f"{title}, strongest effects", headings, rows, (len(headings) - 1,))
