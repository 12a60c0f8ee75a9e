"""Learns which attributes depend on which, and writes it as a structure file."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from bncli.engine.counts import Counts
from bncli.engine.cutting import learn_schema
from bncli.engine.dataset import Dataset
from bncli.engine.encoding import encode
from bncli.engine.learn import learn_structure as learn_dag
from bncli.engine.learn import missing_policy
from bncli.engine.schema import Cuts
from bncli.engine.structure import NamedDag, name_dag
from bncli.files.cuts import read_cuts
from bncli.files.paths import check_outputs
from bncli.files.structure import dump_structure, write_structure
from bncli.files.table import Source, read_columns
from bncli.recipe import Recipe
from bncli.steps.memory import free_memory
from bncli.steps.moves import Moves, NamedMove
from bncli.stopwatch import Stopwatch
from bncli.watch import Stage, Watch, silent


@dataclass(frozen=True)
class StructureReport:
    """The structure learnt, and from what; `structure_file` is None where it was not written.

    `attributes` counts those of the schema, of which `used` are nodes of the network. `moves` are those of a greedy
    search, in the order they were made.
    """

    structure_file: str | None
    rows: int
    attributes: int
    used: int
    arcs: int
    structure: NamedDag
    moves: tuple[NamedMove, ...]
    seconds: dict[str, float]

    def as_json(self) -> dict[str, Any]:
        """Every field by name."""
        parents = {child: list(names) for child, names in self.structure.parents.items()}
        moves = [move._asdict() for move in self.moves]
        return asdict(self) | {"structure": self.structure.method, "parents": parents, "moves": moves}

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
    dag = name_dag(learn_dag(Counts(data), recipe, free_memory(), moves), schema)
    if output is not None:
        write_structure(output, dag)
    arcs = sum(len(parents) for parents in dag.parents.values())
    used = len(set(dag.nodes) - {schema.class_name})
    found = (data.n_rows, len(schema.attributes), used, arcs, dag)
    return StructureReport(output, *found, moves.named(schema), stopwatch.seconds())


def _rows(source: Source, recipe: Recipe, given: Cuts | None, threads: int, watch: Watch) -> Dataset:
    """The rows in codes."""
    watch(Stage("read"))
    columns = read_columns(source, threads=threads, watch=watch, given=given)
    watch(Stage("discretize"))
    schema = learn_schema(
        columns,
        discretize=recipe.discretize,
        bins=recipe.bins,
        given=given,
        missing_policy=missing_policy(recipe),
        threads=threads,
        watch=watch,
    )
    return encode(columns, schema, threads=threads)
