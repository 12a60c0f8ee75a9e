"""What a fit would do, told from heads and footers: the recipe as resolved, the tables, memory and seconds expected.

Bytes and seconds are rough, by figures of tables with 30 columns (tests/published/past_memory.md) on one core: they
tell minutes from hours, and what fits from what does not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from bncli.engine.structures.named_structure import NamedDag
from bncli.files.artifacts.codes import CodesHeader, read_codes
from bncli.files.reading.column_roles import assign_roles, is_codes_table
from bncli.files.reading.source import Source
from bncli.files.reading.table import TableHead, read_head
from bncli.files.reading.training_rows import BUDGET, SAMPLE_ROWS
from bncli.recipe import Recipe
from bncli.steps.supplied_files import SuppliedFiles

BASE_BYTES = 250 << 20
"""Of the program and its libraries."""
VALUE_BYTES = 4.5
"""Of a value as it is kept in the narrowest type, of numbers and names together."""
READING, COUNTING, PASSING = 7e-8, 2.6e-9, 3e-9
"""Seconds of one core a value: read and cut, counted for a structure, looked up in a pass."""
FEW_PASSES, PASSES, PENALTY_ROWS, PENALTY_PASSES = 8, 150, 50_000, 900
"""Passes of an optimizer with its preconditioners, naive Bayes and others; rows that choose a penalty, their passes."""
SAMPLED_ROWS, FALL = 9_000_000, 1.6
"""Of more rows samples do most of the work, and cuts, which are then a sample's, are fewer: passes of others over all
rows fall with this power of their number."""


@dataclass(frozen=True)
class ExpectedTable:
    """A table of parameters: its attributes, the child first, and its cells; None where no cuts tell them yet."""

    attributes: tuple[str, ...]
    cells: int | None


@dataclass(frozen=True)
class Forecast:
    """What would be learnt, and what that would take; `rows_exact`: footers tell the rows. Of one core the `seconds`.

    `tables` is None where the structure is yet to be learnt; `rounds`: how often the table would be read.
    """

    recipe: dict[str, Any]
    class_name: str
    rows: int
    rows_exact: bool
    attributes: int
    tables: tuple[ExpectedTable, ...] | None
    bytes: int
    rounds: int
    memory: int
    seconds: float

    def as_json(self) -> dict[str, Any]:
        """Return one object under the key `dry_run`."""
        fields = {"class" if name == "class_name" else name: value for name, value in asdict(self).items()}
        tables = None if self.tables is None else [asdict(table) for table in self.tables]
        listed = None if tables is None else [t | {"attributes": list(t["attributes"])} for t in tables]
        return {"dry_run": fields | {"tables": listed}}


def forecast(source: Source, recipe: Recipe, supplied: SuppliedFiles = SuppliedFiles()) -> Forecast:
    """Return what `fit` would do with these; nothing but heads and footers is read."""
    recipe = supplied.update_recipe(recipe)
    coded = read_codes(source.paths[0]).header if is_codes_table(source.paths) else None
    cuts = supplied.cuts if coded is None else coded.cuts
    head = read_head(source) if coded is None else _head_of_codes(coded)
    roles = assign_roles(source, head.names, source.paths[0], cuts, head.nested) if coded is None else None
    sizes = {} if cuts is None else {a.name: a.n_values + a.missing for a in cuts.attributes}
    if coded is not None:
        sizes = {name: n for name, _, n in coded.columns}
    names = [a.name for a in cuts.attributes] if cuts is not None else list(roles.attributes if roles else ())
    values = head.n_rows * len(names) * VALUE_BYTES
    rounds = 0 if coded is not None else 2 if values > BUDGET else 1
    return Forecast(
        {key: value for key, value in recipe.as_dict().items() if value is not None},
        cuts.class_name if cuts is not None else str(roles.class_name if roles else ""),
        head.n_rows,
        head.exact,
        len(names),
        _tables(names, recipe, supplied, sizes),
        head.n_bytes,
        rounds,
        expected_memory(head.n_rows, len(names), values, rounds, recipe),
        expected_seconds(head.n_rows, len(names), rounds, recipe),
    )


def _head_of_codes(header: CodesHeader) -> TableHead:
    names = tuple(name for name, _, _ in header.columns)
    width = sum(np.dtype(kind).itemsize for _, kind, _ in header.columns)
    return TableHead(names, header.rows, True, header.rows * width)


def _tables(
    names: list[str], recipe: Recipe, supplied: SuppliedFiles, sizes: Mapping[str, int]
) -> tuple[ExpectedTable, ...] | None:
    """Known for naive Bayes and for a graph from a file; `sizes`: the codes of each attribute, empty if not known."""
    if isinstance(supplied.structure, NamedDag):
        own = set(names)
        nodes = [name for name in supplied.structure.nodes if name in own]
        parents = supplied.structure.parents
        families = [(name, *(p for p in parents.get(name, ()) if p in own)) for name in nodes]
    elif supplied.structure is None and recipe.structure == "nb":
        families = [(name,) for name in names]
    else:
        return None
    cells = [math.prod(sizes[name] for name in family) if sizes else None for family in families]
    return tuple(ExpectedTable(*pair) for pair in zip(families, cells, strict=True))


def expected_memory(rows: int, n: int, values: float, rounds: int, recipe: Recipe) -> int:
    """Return bytes: values or the sample of them, the codes, and fused codes where a likelihood is computed.

    Codes of a file (no rounds) count while all of them are read, and no longer: its pages are let go.
    """
    kept = 0.0 if not rounds else min(values, BUDGET + 2.0 * SAMPLE_ROWS * n * VALUE_BYTES)
    codes = rows * (n + 2.0)
    fused = 0.0 if recipe.optimizer is None else rows * (n + 18.0)
    later = (codes if rounds else rows * 2.0) + fused
    return round(BASE_BYTES + max(kept + codes if rounds == 1 else kept, codes, later))


def expected_seconds(rows: int, n: int, rounds: int, recipe: Recipe) -> float:
    """Of one core."""
    values = float(rows * n)
    passes = PASSES * min(1.0, SAMPLED_ROWS / max(rows, 1)) ** FALL
    pairs, passes = (1, FEW_PASSES) if recipe.structure == "nb" else (max(n / 2, 1), passes)
    seconds = 1.0 + values * (READING * rounds + COUNTING * pairs + PASSING)
    if recipe.optimizer is not None:
        seconds += passes * PASSING * values
        if recipe.penalty == "cv":
            seconds += PENALTY_PASSES * PASSING * min(rows, PENALTY_ROWS) * n
    return round(seconds, 1)
