"""Learns cut points, and writes the cuts file, the binned table, or both."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from bncli.catalogue import DISCRETIZERS
from bncli.engine.data.cutting import cuts_of, learn_schema
from bncli.engine.data.encoding import encode
from bncli.engine.data.schema import Attribute, Cuts, NumericAttribute
from bncli.files.binned import write_binned
from bncli.files.cuts import cuts_json, read_cuts, write_cuts
from bncli.files.paths import check_outputs, refuse_ending
from bncli.files.reading.roles import read_schema_file
from bncli.files.table import Source, read_columns
from bncli.recipe import Recipe
from bncli.steps.stopwatch import Stopwatch
from bncli.watch import Stage, Watch, silent

_NOT_CSV = (".tsv", ".jsonl", ".ndjson", ".json", ".parquet", ".arrow", ".feather")


@dataclass(frozen=True)
class DiscretizeReport:
    """The cuts learnt, and which files were written (None: not asked for).

    `attributes` are those of the cuts, with what is known of the rows.
    """

    rows: int
    cuts_file: str | None
    table: str | None
    cuts: Cuts
    attributes: tuple[Attribute, ...]
    seconds: dict[str, float]

    @property
    def n_cuts(self) -> int:
        """Number of cut points of all attributes together."""
        return sum(len(a.cuts) for a in self.cuts.attributes if isinstance(a, NumericAttribute))

    def as_json(self) -> dict[str, Any]:
        """The content of the cuts file, and what was written."""
        run = {"rows": self.rows, "cuts": self.n_cuts, "cuts_file": self.cuts_file, "table": self.table}
        return run | {"seconds": self.seconds} | cuts_json(self.cuts)


def discretize(
    source: Source,
    recipe: Recipe,
    *,
    cuts: str | None = None,
    cuts_out: str | None = None,
    output: str | None = None,
    threads: int = 1,
    watch: Watch = silent,
) -> DiscretizeReport:
    """Learns the cuts of `source` (or takes those in the file `cuts`); writes them and the binned table where asked."""
    refuse_ending(output, _NOT_CSV, "the binned table is written as CSV")
    check_outputs((cuts_out, output), (*source.paths, source.schema_file, cuts))
    given = read_cuts(cuts) if cuts else None
    if given is not None:
        source = replace(source, class_name=source.class_name or given.class_name)
    stopwatch = Stopwatch(watch)
    stopwatch(Stage("read"))
    columns = read_columns(source, threads=threads, watch=stopwatch, given=given)
    stopwatch(Stage("discretize"))
    method, options = recipe.discretize, recipe.options(DISCRETIZERS.method(recipe.discretize))
    schema = learn_schema(columns, discretize=method, given=given, threads=threads, watch=stopwatch, **options)
    learnt = given or cuts_of(schema, method, options)
    if cuts_out is not None:
        write_cuts(cuts_out, learnt)
    if output is not None:
        stopwatch(Stage("write"))
        weights = source.weights or read_schema_file(source).weights or "weight"
        write_binned(output, encode(columns, schema, threads=threads), weights)
    return DiscretizeReport(columns.n_rows, cuts_out, output, learnt, schema.attributes, stopwatch.seconds())
