"""Tables to look at, drawn with rich: attributes with their cuts or levels, parents, numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from rich import box
from rich.table import Table

from bncli.engine.schema import Attribute, NumericAttribute
from bncli.errors import printable

_SHOWN = 12


def plain_table(title: str, *headings: str, numbers: Sequence[int] = ()) -> Table:
    """An empty table with these headings; the columns at the positions `numbers` are aligned to the right."""
    table = Table(title=printable(title), box=box.SIMPLE_HEAD, pad_edge=False)
    for i, heading in enumerate(headings):
        table.add_column(printable(heading), justify="right" if i in numbers else "left", overflow="fold")
    return table


def add_row(table: Table, *cells: str) -> None:
    """A line of the table; names out of a file are shown without control characters."""
    table.add_row(*map(printable, cells))


def attribute_table(attributes: Iterable[Attribute], of_rows: bool = True) -> Table:
    """One line an attribute: type, number of values, and its cuts or levels.

    Without rows (`of_rows`) it is not known whether values are missing, so nor whether an attribute is of use.
    """
    table = plain_table("Attributes", "name", "type", "values", "cuts or levels", numbers=(2,))
    for attribute in attributes:
        numeric = isinstance(attribute, NumericAttribute)
        parts = [f"{cut:.6g}" for cut in attribute.cuts] if numeric else list(attribute.levels)  # type: ignore[union-attr]
        text = ", ".join(parts[:_SHOWN]) + (f", ... ({len(parts) - _SHOWN} more)" if len(parts) > _SHOWN else "")
        text += " + missing" if attribute.missing and text else ""
        uncut = "no cut: present or missing" if attribute.missing else "no cut: not used" if of_rows else "no cut"
        kind = "numeric" if numeric else "categorical"
        add_row(table, attribute.name, kind, str(attribute.cardinality), text or uncut)
    return table


def parent_table(class_name: str, parents: Mapping[str, Sequence[str]]) -> Table:
    """One line a node: what it depends on."""
    table = plain_table("Structure", "node", "depends on")
    for child, names in parents.items():
        add_row(table, child, ", ".join(names) or f"nothing, not even {class_name}")
    return table


def fact_table(title: str, facts: Mapping[str, object]) -> Table:
    """Names and values below each other."""
    table = Table(title=printable(title), box=box.SIMPLE_HEAD, pad_edge=False)
    table.show_header = False
    table.add_column("name")
    table.add_column("value", overflow="fold")
    for name, value in facts.items():
        add_row(table, name, str(value))
    return table


def number_table(attributes: Sequence[Attribute], labels: Sequence[str], values: NDArray[np.float64]) -> Table:
    """The scores that a family adds: a line a cell, a column a class; no attributes: the class alone."""
    names = [attribute.name for attribute in attributes]
    title = f"Scores of {', '.join(names)}" if names else "Scores of the class alone"
    table = plain_table(title, *names, *labels, numbers=range(len(names), len(names) + len(labels)))
    texts = [_value_texts(attribute) for attribute in attributes]
    for cell in np.ndindex(values.shape[:-1]):
        place = [texts[i][code] for i, code in enumerate(cell)]
        add_row(table, *place, *(f"{score:.4f}" for score in values[cell]))
    return table


def _value_texts(attribute: Attribute) -> list[str]:
    """What each code of an attribute stands for, to read."""
    if isinstance(attribute, NumericAttribute):
        cuts = [f"{cut:.6g}" for cut in attribute.cuts]
        texts = [f"<= {cut}" for cut in cuts] + [f"> {cuts[-1]}" if cuts else "any"]
    else:
        texts = list(attribute.levels)
    return [*texts, "missing"]
