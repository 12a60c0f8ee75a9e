"""Learns which attributes depend on which, and writes it as a structure file."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, replace
from typing import Any

from bncli.catalogue import DISCRETIZERS
from bncli.engine.counting.counts import Counts
from bncli.engine.data.cutting import learn_schema
from bncli.engine.data.dataset import Dataset
from bncli.engine.data.encoding import encode
from bncli.engine.data.schema import Cuts
from bncli.engine.learn import learn_structure as search
from bncli.engine.learn import missing_policy
from bncli.engine.structures.named_structure import NamedDag, NamedRegions, NamedStructure, name_structure
from bncli.files.cuts import read_cuts
from bncli.files.graphs import content_json
from bncli.files.paths import check_outputs
from bncli.files.structure import dump_structure, write_structure
from bncli.files.table import Source, read_columns
from bncli.recipe import Recipe
from bncli.steps.memory import free_memory
from bncli.steps.moves import Moves, NamedMove
from bncli.steps.regions import RegionsReport, report_of_search
from bncli.steps.stopwatch import Stopwatch
from bncli.watch import Stage, Watch, silent


@dataclass(frozen=True)
class StructureReport:
    """The structure learnt, and from what; `structure_file` is None where it was not written.

    `attributes` counts those of the schema, of which `used` are in the structure. `arcs` counts those of a graph: None
    for regions. `moves` are those of a greedy search for a graph, in the order they were made.
    """

    structure_file: str | None
    rows: int
    attributes: int
    used: int
    arcs: int | None
    structure: NamedStructure
    moves: tuple[NamedMove, ...]
    seconds: dict[str, float]

    @property
    def regions(self) -> RegionsReport | None:
        """What there is to tell of the best regions; None for a graph."""
        return report_of_search(self.structure) if isinstance(self.structure, NamedRegions) else None

    def as_json(self) -> dict[str, Any]:
        """Every field by name; the structure as its method, and its content by the keys of the structure file."""
        moves = [move._asdict() for move in self.moves]
        report = asdict(self) | {"structure": self.structure.method, "moves": moves}
        return report | content_json(self.structure)

    def text(self) -> str:
        """The text of the structure file."""
        return dump_structure(self.structure)


def learn_structure(
    source: Source,
    recipe: Recipe,
    *,
    output: str | None = None,
    cuts: str | None = None,
    threads: int = 1,
    watch: Watch = silent,
) -> StructureReport:
    """Learns the recipe's structure from `source`, on learnt cuts or those of the file `cuts`; `output` is written."""
    check_outputs((output,), (*source.paths, source.schema_file, cuts))
    given = read_cuts(cuts) if cuts else None
    if given is not None:
        source = replace(source, class_name=source.class_name or given.class_name)
        recipe = recipe.with_cuts(given.method, given.options)
    stopwatch = Stopwatch(watch)
    data = _rows(source, recipe, given, threads, stopwatch)
    schema = data.schema
    stopwatch(Stage("structure"))
    moves = Moves(stopwatch)
    structure = name_structure(search(Counts(data), recipe, free_memory(), moves, time.monotonic), schema)
    if output is not None:
        write_structure(output, structure)
    arcs = sum(map(len, structure.parents.values())) if isinstance(structure, NamedDag) else None
    used = len(set(structure.nodes) - {schema.class_name})
    found = (data.n_rows, len(schema.attributes), used, arcs, structure)
    return StructureReport(output, *found, moves.named(schema), stopwatch.seconds())


def _rows(source: Source, recipe: Recipe, given: Cuts | None, threads: int, watch: Watch) -> Dataset:
    """The rows in codes."""
    watch(Stage("read"))
    columns = read_columns(source, threads=threads, watch=watch, given=given)
    watch(Stage("discretize"))
    schema = learn_schema(
        columns,
        discretize=recipe.discretize,
        given=given,
        missing_policy=missing_policy(recipe),
        threads=threads,
        watch=watch,
        **recipe.options(DISCRETIZERS.method(recipe.discretize)),
    )
    return encode(columns, schema, threads=threads)
