"""Writes a table as codes, which learning commands take in its place."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bncli.catalogue import DISCRETIZERS
from bncli.engine.coding import cuts_of_schema
from bncli.engine.data.columns import Columns
from bncli.engine.data.cutting import learn_dataset
from bncli.engine.data.dataset import Dataset
from bncli.engine.data.schema import Cuts, NumericAttribute
from bncli.engine.parameters.penalty_cv import sample_of
from bncli.errors import UsageError
from bncli.files.artifacts.codes import CodedRows, CodesHeader, Fingerprint, Sample, write_codes
from bncli.files.paths import check_outputs, default_output_path, refuse_ending
from bncli.files.reading.byte_streams import TABLE_SUFFIXES, find_inputs
from bncli.files.reading.column_roles import is_codes_table, read_schema_file
from bncli.files.reading.source import Source
from bncli.files.reading.training_rows import SampledTable
from bncli.recipe import Recipe
from bncli.steps.cluster.tasks import reading
from bncli.steps.inputs import SuppliedFiles
from bncli.steps.run import Stopwatch
from bncli.watch import Note, Run, Stage, Watch

SAMPLE_CELLS = 1 << 24
"""So many values, rows times columns, are kept as they were read at most."""


_NOT_CODES = (*(suffix for suffix in TABLE_SUFFIXES if suffix != ".arrow"), ".json", ".bnc", ".counts")


@dataclass(frozen=True)
class EncodeReport:
    """What was written: `sampled_rows`, of how many rows the cuts were learnt, None: of all; `bytes` of the file."""

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
    """Return codes `source` by the cuts learnt from it, or those supplied, and writes the `.codes` file."""
    path = default_output_path(source.paths, ".codes") if output is None else output
    refuse_ending(output, _NOT_CODES, "a table is encoded as a file of codes, an Arrow file named .codes")
    if is_codes_table(source.paths):
        raise UsageError("these rows are codes already", where=source.paths[0])
    check_outputs((path, source.bad_rows_file), (*source.paths, source.schema_file, *supplied.paths))
    recipe = supplied.recipe(recipe)
    stopwatch = Stopwatch(run.watch)
    run = run._replace(watch=stopwatch)
    stopwatch(Stage("read"))
    with reading(source, run) as run:
        found = supplied.first_round(source, recipe, run)
        columns = found if isinstance(found, Columns) else found.rows
        run.watch(Stage("discretize"))
        data = learn_dataset(
            columns,
            discretize=recipe.discretize,
            group_levels=recipe.group_levels,
            given=supplied.cuts,
            run=run,
            **recipe.options(DISCRETIZERS.method(recipe.discretize)),
        )
        cuts = supplied.cuts or cuts_of_schema(data.schema, recipe)
        sample = _sample(columns, cuts, recipe.seed or 0, run.watch)
        schema = data.schema
        weights = source.weights or read_schema_file(source).weights or "weight"
        heading = CodesHeader(
            cuts,
            schema.labels,
            data.n_rows,
            missing=tuple(attribute.name for attribute in schema.attributes if attribute.missing),
            missing_tokens=source.missing_tokens,
            weights=None if data.weights is None else weights,
            sources=_fingerprint(source.paths),
        )
        run.watch(Stage("write"))
        if isinstance(found, SampledTable):
            sample = None if sample is None else replace(sample, seed=recipe.seed or 0)
            cuts = cuts if supplied.cuts else replace(cuts, sampled_rows=columns.n_rows)
            heading = replace(heading, cuts=cuts, rows=found.count(cuts))
            write_codes(path, heading, found.row_blocks(cuts), sample)
        else:
            write_codes(path, heading, _blocks(data), sample)
    return _report(path, heading, stopwatch.seconds())


def _sample(columns: Columns, cuts: Cuts, seed: int, watch: Watch) -> Sample | None:
    """Return the rows that choosing a penalty would draw, as they were read.

    None where cuts are made by hand or too many.
    """
    if cuts.method not in DISCRETIZERS.words:
        return None
    attributes = {attribute.name: columns.attributes[attribute.name] for attribute in cuts.attributes}
    rows = sample_of(replace(columns, attributes=attributes), seed)
    if rows.n_rows * (len(attributes) + 1) > SAMPLE_CELLS:
        what = f"{rows.n_rows:,} rows of {len(attributes):,} attributes are too many to be kept as they were read"
        watch(Note(f"{what}: a penalty will be chosen on the codes as they are"))
        return None
    return Sample(rows, None if rows.n_rows == columns.n_rows else seed)


def _fingerprint(paths: Sequence[str]) -> Fingerprint | None:
    """Return None of what can be read only once."""
    inputs = find_inputs(paths, keep=False)
    return Fingerprint.of([one.path for one in inputs]) if all(one.is_regular for one in inputs) else None


def _blocks(data: Dataset) -> Iterator[CodedRows]:
    for block in data.row_blocks():
        yield CodedRows(block.codes, block.labels, block.weights)


def _report(path: str, heading: CodesHeader, seconds: dict[str, float]) -> EncodeReport:
    cuts = sum(len(a.cuts) for a in heading.cuts.attributes if isinstance(a, NumericAttribute))
    return EncodeReport(
        path,
        heading.rows,
        len(heading.cuts.attributes),
        len(heading.labels),
        cuts,
        heading.cuts.sampled_rows,
        os.stat(path).st_size,
        seconds,
    )
