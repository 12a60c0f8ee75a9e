"""Learn cut points, and write a cuts file, the binned table, or both."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from bncli.catalogue import DISCRETIZERS
from bncli.engine.data.cutting import learn_dataset
from bncli.engine.data.schema import Attribute, Cuts, NumericAttribute
from bncli.engine.training_data import cuts_of_schema
from bncli.files.artifacts.cuts import cuts_json, write_binned_table, write_cuts
from bncli.files.paths import check_outputs, refuse_ending
from bncli.files.reading.column_roles import read_schema_file
from bncli.files.reading.source import Source
from bncli.recipe import Recipe
from bncli.steps.learning_inputs import SuppliedFiles
from bncli.steps.run import Stopwatch
from bncli.watch import Run, Stage

_NOT_CSV = (".tsv", ".jsonl", ".ndjson", ".json", ".parquet", ".arrow", ".feather")


@dataclass(frozen=True)
class DiscretizeReport:
    """The cuts, and the files that were written.

    rows: number of rows of the table. cuts_file, table: the paths of the files, or None if not written. attributes: the
    attributes of the cuts, with the frequencies of their values in the table.
    """

    rows: int
    cuts_file: str | None
    table: str | None
    cuts: Cuts
    attributes: tuple[Attribute, ...]
    seconds: dict[str, float]

    @property
    def n_cuts(self) -> int:
        """The total number of cut points of all attributes."""
        return sum(len(a.cuts) for a in self.cuts.attributes if isinstance(a, NumericAttribute))

    def as_json(self) -> dict[str, Any]:
        """Return the content of the cuts file, with the numbers of rows and cut points, the files and the seconds."""
        run = {"rows": self.rows, "cuts": self.n_cuts, "cuts_file": self.cuts_file, "table": self.table}
        return run | {"seconds": self.seconds} | cuts_json(self.cuts)


def discretize(
    source: Source,
    recipe: Recipe,
    *,
    supplied: SuppliedFiles = SuppliedFiles(),
    cuts_out: str | None = None,
    output: str | None = None,
    run: Run = Run(),
) -> DiscretizeReport:
    """Learn the cuts of `source`, or use the supplied ones; write them to `cuts_out` and the binned table to `output`.

    Both outputs are optional.
    """
    refuse_ending(output, _NOT_CSV, "the binned table can be written only as CSV")
    check_outputs((cuts_out, output), (*source.paths, source.schema_file, *supplied.paths))
    stopwatch = Stopwatch(run.watch)
    run = run._replace(watch=stopwatch)
    stopwatch(Stage("read"))
    columns = supplied.read(source, run, recipe)
    stopwatch(Stage("discretize"))
    data = learn_dataset(
        columns,
        discretize=recipe.discretize,
        group_levels=recipe.group_levels,
        cuts=supplied.cuts,
        run=run,
        **recipe.options(DISCRETIZERS.method(recipe.discretize)),
    )
    cuts = supplied.cuts
    if cuts is None:
        sampled_rows = None if columns.origin is None else columns.origin.sampled_rows
        cuts = replace(cuts_of_schema(data.schema, recipe), sampled_rows=sampled_rows)
    if cuts_out is not None:
        write_cuts(cuts_out, cuts)
    if output is not None:
        stopwatch(Stage("write"))
        weights = source.weights or read_schema_file(source).weights or "weight"
        write_binned_table(output, data, weights)
    return DiscretizeReport(data.n_rows, cuts_out, output, cuts, data.schema.attributes, stopwatch.seconds())
