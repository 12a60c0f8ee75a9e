"""Write a table as codes, in a file that the learning commands accept in place of the table."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any

from bncli.catalogue import DISCRETIZERS
from bncli.engine.data.columns import Columns
from bncli.engine.data.cutting import learn_dataset
from bncli.engine.data.schema import Cuts, NumericAttribute
from bncli.engine.parameters.penalty_choice import MOST_CELLS, rows_to_keep
from bncli.engine.training_data import cuts_of_schema
from bncli.errors import UsageError
from bncli.files.artifacts.codes import CodedRows, CodesHeader, Fingerprint, Sample, write_codes
from bncli.files.paths import check_outputs, default_output_path, refuse_ending
from bncli.files.reading.byte_streams import TABLE_SUFFIXES, find_inputs
from bncli.files.reading.column_roles import is_codes_table, read_schema_file
from bncli.files.reading.rows_by_cuts import SampledTable
from bncli.files.reading.source import Source
from bncli.recipe import Recipe
from bncli.steps.cluster.tasks import reading_on_cluster
from bncli.steps.learning_inputs import SuppliedFiles
from bncli.steps.run import Stopwatch
from bncli.watch import Note, Run, Stage, Watch

_NOT_CODES = (*(suffix for suffix in TABLE_SUFFIXES if suffix != ".arrow"), ".json", ".bnc", ".counts")


@dataclass(frozen=True)
class EncodeReport:
    """The result of encoding a table.

    codes: the path of the file. cuts: number of cut points of all attributes. sampled_rows: number of rows from which
    the cuts were learned, or None for all rows. bytes: size of the file.
    """

    codes: str
    rows: int
    attributes: int
    classes: int
    cuts: int
    sampled_rows: int | None
    bytes: int
    seconds: dict[str, float]

    def as_json(self) -> dict[str, Any]:
        """Return every field by name."""
        return dict(self.__dict__)


def encode(
    source: Source,
    recipe: Recipe,
    *,
    output: str | None = None,
    supplied: SuppliedFiles = SuppliedFiles(),
    run: Run = Run(),
) -> EncodeReport:
    """Encode the table `source` with the supplied cuts, or with cuts learned from it, and write a `.codes` file.

    Raises UsageError if the rows are codes already.
    """
    path = default_output_path(source.paths, ".codes") if output is None else output
    refuse_ending(output, _NOT_CODES, "the output must be a codes file with the extension .codes")
    if is_codes_table(source.paths):
        raise UsageError("these rows are already codes", where=source.paths[0])
    check_outputs((path, source.bad_rows_file), (*source.paths, source.schema_file, *supplied.paths))
    recipe = supplied.update_recipe(recipe)
    stopwatch = Stopwatch(run.watch)
    run = run._replace(watch=stopwatch)
    stopwatch(Stage("read"))
    with reading_on_cluster(source, run) as run:
        table = supplied.read_or_sample(source, recipe, run)
        columns = table if isinstance(table, Columns) else table.rows
        run.watch(Stage("discretize"))
        data = learn_dataset(
            columns,
            discretize=recipe.discretize,
            group_levels=recipe.group_levels,
            cuts=supplied.cuts,
            run=run,
            **recipe.options(DISCRETIZERS.method(recipe.discretize)),
        )
        cuts = supplied.cuts or cuts_of_schema(data.schema, recipe)
        sample = _draw_sample(columns, cuts, recipe.seed or 0, run.watch)
        # A fingerprint requires files that can be read a second time.
        inputs = find_inputs(source.paths, keep=False)
        are_files = all(table_file.is_regular for table_file in inputs)
        weights = source.weights or read_schema_file(source).weights or "weight"
        header = CodesHeader(
            cuts,
            data.schema.labels,
            data.n_rows,
            missing=tuple(attribute.name for attribute in data.schema.attributes if attribute.missing),
            missing_tokens=source.missing_tokens,
            weights=None if data.weights is None else weights,
            sources=Fingerprint.of([table_file.path for table_file in inputs]) if are_files else None,
        )
        run.watch(Stage("write"))
        if isinstance(table, SampledTable):
            sample = None if sample is None else replace(sample, seed=recipe.seed or 0)
            cuts = cuts if supplied.cuts else replace(cuts, sampled_rows=columns.n_rows)
            header = replace(header, cuts=cuts, rows=table.count(cuts))
            write_codes(path, header, table.row_blocks(cuts), sample)
        else:
            blocks = (CodedRows(block.codes, block.labels, block.weights) for block in data.row_blocks())
            write_codes(path, header, blocks, sample)
    return EncodeReport(
        codes=path,
        rows=header.rows,
        attributes=len(header.cuts.attributes),
        classes=len(header.labels),
        cuts=sum(len(a.cuts) for a in header.cuts.attributes if isinstance(a, NumericAttribute)),
        sampled_rows=header.cuts.sampled_rows,
        bytes=os.stat(path).st_size,
        seconds=stopwatch.seconds(),
    )


def _draw_sample(columns: Columns, cuts: Cuts, seed: int, watch: Watch) -> Sample | None:
    """Return the rows that learning needs with their original values: all, or those on which a penalty is chosen.

    Returns None if the cuts were not learned by a discretizer, or if the sample would be too large to store.
    """
    if cuts.method not in DISCRETIZERS.words:
        return None
    attributes = {attribute.name: columns.attributes[attribute.name] for attribute in cuts.attributes}
    rows = rows_to_keep(replace(columns, attributes=attributes), seed)
    if rows.n_rows * (len(attributes) + 1) > MOST_CELLS:
        what = f"{rows.n_rows:,} rows of {len(attributes):,} attributes are too many to keep all original values"
        watch(Note(f"{what}: the penalty will be chosen with these codes in all folds"))
        return None
    return Sample(rows, None if rows.n_rows == columns.n_rows else seed)
