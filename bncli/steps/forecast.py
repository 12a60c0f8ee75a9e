"""Forecast a fit without running it: the recipe, the tables, and the memory and time that it would take.

Only the beginning or the footer of a file is read. The exception is gbn, which does not limit the number of parents of
an attribute, so that its tables may have any size: its search is run if the table is small.

The seconds are rough, and only distinguish minutes from hours. They are based on measurements on one core with tables
of 30 columns (tests/published/past_memory.md). The memory is within a factor of 2 of the measured peak for short, long,
narrow and wide tables (tests/steps/test_forecast.py).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from bncli.engine.counting.counts import PAIR_ENTRIES_KEPT
from bncli.engine.counting.table_batches import ROUND
from bncli.engine.learn import COMPARED_ROWS, MOST_ATTRIBUTES, learn_structure
from bncli.engine.parameters.costs import fitting_memory
from bncli.engine.parameters.penalty_choice import MOST_CELLS
from bncli.engine.structure_learners.dependence import FEW_SEARCHED, MOST_SEARCHED, WIDE
from bncli.engine.structures.named_structure import NamedDag
from bncli.engine.structures.structure import Dag
from bncli.files.artifacts.codes import read_codes
from bncli.files.reading.column_roles import assign_roles, is_codes_table
from bncli.files.reading.source import Source
from bncli.files.reading.table import TableHead, read_head
from bncli.files.reading.training_rows import BUDGET, SAMPLE_ROWS
from bncli.recipe import Recipe
from bncli.steps.learning_inputs import SuppliedFiles, read_and_cut
from bncli.watch import Run

BASE_BYTES = 105 << 20
"""The memory of the interpreter, the program and its libraries, in bytes."""
VALUE_BYTES = 4.5
"""The memory of a value in the narrowest type, in bytes, averaged over numeric and categorical columns."""
COLUMN_BYTES, COMPARED_COLUMN_BYTES = 45_000, 85_000
"""Bytes per column, regardless of its length; the second if structures are compared (see `expected_memory`)."""
PARSING_BYTES = 40 << 20
"""The maximum memory, in bytes, of the blocks that are being parsed."""
OPTIMIZER_BYTES, CANDIDATES_BYTES = 55 << 20, 20 << 20
"""Bytes of memory: for the libraries, tables and vectors of an optimizer, and for the candidates of `auto`."""
FOLD_ROWS, FOLD_BYTES = 100_000, 24
"""The maximum number of rows in held-out folds, and the bytes per value for the folds and the current pass."""
PAIR_CELLS = 2_000
"""The maximum number of cells of a table over two attributes and the class, on average over the pairs."""
READING, COUNTING, PASSING = 7e-8, 2.6e-9, 3e-9
"""Seconds of one core per value: to read and cut it, to count it for a structure, and to look it up in a pass."""
FEW_PASSES, PASSES = 8, 150
"""The number of passes of an optimizer with its preconditioner: for naive Bayes, and for other structures."""
SEARCHED_ROWS, SEARCHED_ATTRIBUTES = 20_000, 30
"""The maximum size of a table on which the gbn search is run for a forecast; it then takes seconds."""
FITTING, CHOOSING = 1e-5, 5e-5
"""Seconds of an optimizer per entry of the tables, for a given penalty and for a penalty that is to be chosen."""
PENALTY_ROWS, PENALTY_PASSES = 50_000, 900
"""The maximum number of rows on which a penalty is chosen, and the number of passes over them."""
SAMPLED_ROWS, FALL = 9_000_000, 1.6
"""Above SAMPLED_ROWS rows, most of the optimization uses samples, and cuts are learned from a sample.

The number of passes over all rows is then inversely proportional to the power FALL of the number of rows.
"""


@dataclass(frozen=True)
class ExpectedTable:
    """A table of parameters.

    attributes: their names, the child first. cells: the number of cells, or None if the cuts are not known.
    """

    attributes: tuple[str, ...]
    cells: int | None


@dataclass(frozen=True)
class Forecast:
    """The expected result of a fit, and what the fit would cost.

    rows_exact: whether the number of rows is exact rather than an estimate. tables: None for regions, and for a
    structure that has yet to be learned. bytes: size of the table. rounds: how often the table would be read, 0 for a
    `.codes` file. memory: in bytes. seconds: on one core.
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
        """Return an object with the single key `dry_run`, which contains every field by name."""
        fields = {"class" if name == "class_name" else name: value for name, value in asdict(self).items()}
        if self.tables is not None:
            fields["tables"] = [{"attributes": list(t.attributes), "cells": t.cells} for t in self.tables]
        return {"dry_run": fields}


def forecast(source: Source, recipe: Recipe, supplied: SuppliedFiles = SuppliedFiles()) -> Forecast:
    """Forecast the fit to the table `source`; raise UsageError for a table that can be read only once."""
    recipe = supplied.update_recipe(recipe)
    if is_codes_table(source.paths):
        header = read_codes(source.paths[0]).header
        row_bytes = sum(np.dtype(kind).itemsize for _, kind, _ in header.columns)
        head = TableHead(tuple(name for name, _, _ in header.columns), header.rows, True, header.rows * row_bytes)
        class_name = header.cuts.class_name
        names = [attribute.name for attribute in header.cuts.attributes]
        sizes = {name: n_codes for name, _, n_codes in header.columns}
    else:
        head = read_head(source)
        cuts = supplied.cuts
        roles = assign_roles(source, head.names, source.paths[0], cuts, head.nested)
        class_name = str(roles.class_name) if cuts is None else cuts.class_name
        names = list(roles.attributes) if cuts is None else [attribute.name for attribute in cuts.attributes]
        sizes = {} if cuts is None else {a.name: a.n_values + a.missing for a in cuts.attributes}
    values = head.n_rows * len(names) * VALUE_BYTES
    rounds = 0 if is_codes_table(source.paths) else 2 if values > BUDGET else 1
    tables, table_bytes, entries = _expected_tables(names, recipe, supplied, sizes), 0, 0
    is_small = head.n_rows <= SEARCHED_ROWS and len(names) <= SEARCHED_ATTRIBUTES
    if recipe.structure == "gbn" and supplied.structure is None and is_small:
        tables, table_bytes, entries = _learn_tables(source, recipe, supplied)
    seconds = expected_seconds(head.n_rows, len(names), rounds, recipe)
    if recipe.optimizer is not None:
        seconds = round(seconds + entries * (CHOOSING if recipe.penalty == "cv" else FITTING), 1)
    return Forecast(
        recipe={key: value for key, value in recipe.as_dict().items() if value is not None},
        class_name=class_name,
        rows=head.n_rows,
        rows_exact=head.exact,
        attributes=len(names),
        tables=tables,
        bytes=head.n_bytes,
        rounds=rounds,
        memory=expected_memory(head.n_rows, len(names), values, rounds, recipe) + table_bytes,
        seconds=seconds,
    )


def _learn_tables(
    source: Source, recipe: Recipe, supplied: SuppliedFiles
) -> tuple[tuple[ExpectedTable, ...], int, int]:
    """Learn the structure; return its tables, the memory in bytes to learn them, and their total number of entries."""
    counts = read_and_cut(source, recipe, supplied, Run())
    structure, schema = learn_structure(counts, recipe), counts.schema
    assert isinstance(structure, Dag)
    names = [attribute.name for attribute in schema.attributes]
    families = structure.families(schema.cardinalities, all_factors=schema.marginalizes)
    tables = tuple(ExpectedTable(tuple(names[i] for i in f.attributes), f.n_cells) for f in families)
    entries = len(schema.labels) * sum(family.n_cells for family in families)
    return tables, fitting_memory(structure, schema, recipe), entries


def _expected_tables(
    names: list[str], recipe: Recipe, supplied: SuppliedFiles, sizes: Mapping[str, int]
) -> tuple[ExpectedTable, ...] | None:
    """Return the tables of naive Bayes or of a supplied graph, or None for any other structure.

    sizes: the number of codes of each attribute, empty if they are not known.
    """
    if isinstance(supplied.structure, NamedDag):
        known = set(names)
        nodes = [name for name in supplied.structure.nodes if name in known]
        parents = supplied.structure.parents
        families = [(name, *(p for p in parents.get(name, ()) if p in known)) for name in nodes]
    elif supplied.structure is None and recipe.structure == "nb":
        families = [(name,) for name in names]
    else:
        return None
    return tuple(
        ExpectedTable(family, math.prod(sizes[name] for name in family) if sizes else None) for family in families
    )


def expected_memory(n_rows: int, n: int, value_bytes: float, rounds: int, recipe: Recipe) -> int:
    """Return the expected peak memory, in bytes, of fitting n attributes to n_rows rows.

    It is the memory of the program and its columns, plus the memory of reading or of learning, whichever is larger.
    value_bytes: memory of all values as they are read. rounds: as in `Forecast`. Reading needs the values or a sample
    of them, their codes, and blocks of the file. Learning needs the codes, the tables of the structure search, and for
    an optimizer fused codes and held-out folds. The codes in a `.codes` file (rounds = 0) count only while all of them
    are read, because the pages of the file can be dropped.
    """
    codes = n_rows * (n + 2.0)
    reading = 0.0
    if rounds:
        reading = min(value_bytes, BUDGET + 2.0 * SAMPLE_ROWS * n * VALUE_BYTES) + min(value_bytes, PARSING_BYTES)
    learning = codes if rounds else n_rows * 2.0
    if recipe.optimizer is not None:
        learning += n_rows * (n + 18.0)
    if rounds == 1:  # the values are kept until the end
        reading, learning = reading + codes, reading + learning
    compares = recipe.structure in ("interactions", "auto") or _has_alternative(n_rows, n, rounds, recipe)
    always = n * (COMPARED_COLUMN_BYTES if compares else COLUMN_BYTES)
    if recipe.structure in MOST_SEARCHED:  # the tables of pairs that the search keeps, and those being counted
        searched = min(n, max(n_rows, FEW_SEARCHED), MOST_SEARCHED[recipe.structure]) if n > WIDE else n
        entries = searched * (searched - 1) // 2 * min(n_rows, PAIR_CELLS)
        always += 8 * min(entries, PAIR_ENTRIES_KEPT + ROUND)
    if recipe.optimizer is not None or recipe.structure == "auto":
        always += OPTIMIZER_BYTES + min(n_rows, FOLD_ROWS) * n * FOLD_BYTES
    if recipe.structure == "auto":
        always += CANDIDATES_BYTES
    return round(BASE_BYTES + always + max(reading, codes, learning))


def expected_seconds(n_rows: int, n: int, rounds: int, recipe: Recipe) -> float:
    """Return the expected seconds on one core to fit n attributes to n_rows rows; the table is read `rounds` times."""
    values = float(n_rows * n)
    passes = PASSES * min(1.0, SAMPLED_ROWS / max(n_rows, 1)) ** FALL
    pairs, passes = (1, FEW_PASSES) if recipe.structure == "nb" else (max(n / 2, 1), passes)
    seconds = 1.0 + values * (READING * rounds + COUNTING * pairs + PASSING)
    if recipe.optimizer is not None:
        seconds += passes * PASSING * values
        if recipe.penalty == "cv":
            seconds += PENALTY_PASSES * PASSING * min(n_rows, PENALTY_ROWS) * n
        if _has_alternative(n_rows, n, rounds, recipe):
            seconds += PENALTY_PASSES * PASSING * min(n_rows, COMPARED_ROWS) * n
    return round(seconds, 1)


def _has_alternative(n_rows: int, n: int, rounds: int, recipe: Recipe) -> bool:
    """Return whether the structure would be compared with its alternative, as far as is known without the labels."""
    return recipe.alternative is not None and rounds < 2 and n <= MOST_ATTRIBUTES and n_rows * (n + 1) <= MOST_CELLS
