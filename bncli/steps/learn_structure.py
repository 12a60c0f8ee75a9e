"""Learns which attributes depend on which, and writes it as a structure file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from bncli.catalogue import DISCRETIZERS
from bncli.engine.coding import missing_policy
from bncli.engine.counting.counts import Counts
from bncli.engine.data.cutting import learn_dataset
from bncli.engine.data.dataset import Dataset
from bncli.engine.data.schema import ReadingRules
from bncli.engine.kikuchi.bootstrap import Resampling, with_log_losses
from bncli.engine.learn import learn_structure as search
from bncli.engine.parameters.generative import only_network
from bncli.engine.parameters.network_scores import ScoredNetwork, Strengths, score_network
from bncli.engine.structures.named_structure import NamedDag, NamedRegions, NamedStructure, name_structure
from bncli.engine.structures.structure import Regions, Structure
from bncli.files.artifacts.counts import read_counts
from bncli.files.artifacts.structure import write_structure
from bncli.files.exports.structure_json import content_json, dump_structure
from bncli.files.paths import check_outputs
from bncli.files.reading.source import Source
from bncli.recipe import Recipe
from bncli.steps.evaluate.report import scored_json
from bncli.steps.inputs import SuppliedFiles, refuse_scores
from bncli.steps.model_views import RegionsReport, report_of_search
from bncli.steps.run import Moves, NamedMove, Stopwatch, limited
from bncli.watch import Run, Stage, silent


@dataclass(frozen=True)
class StructureReport:
    """The structure learnt, and from what; `structure_file` is None where it was not written.

    `attributes` counts those of the schema, of which `used` are in the structure. `arcs` counts those of a graph: None
    for regions. `moves` are those of a greedy search for a graph, in the order they were made.
    `scored`: what the network is worth, None unless asked for.
    """

    structure_file: str | None
    rows: int
    attributes: int
    used: int
    arcs: int | None
    structure: NamedStructure
    moves: tuple[NamedMove, ...]
    seconds: dict[str, float]
    scored: ScoredNetwork | None = None

    @property
    def regions(self) -> RegionsReport | None:
        """What there is to tell of the best regions; None for a graph."""
        return report_of_search(self.structure) if isinstance(self.structure, NamedRegions) else None

    def as_json(self) -> dict[str, Any]:
        """Return every field by name.

        The structure as its method, and its content by the keys of the structure file.
        """
        moves = [move._asdict() for move in self.moves]
        report = asdict(self) | {"structure": self.structure.method, "moves": moves}
        del report["scored"]
        scores = {} if self.scored is None else scored_json(self.scored)
        return report | scores | content_json(self.structure)

    def text(self) -> str:
        """Return the text of the structure file."""
        return dump_structure(self.structure)


def learn_structure(
    source: Source,
    recipe: Recipe,
    *,
    output: str | None = None,
    supplied: SuppliedFiles = SuppliedFiles(),
    check: Resampling | None = None,
    scores: bool = False,
    run: Run = Run(),
) -> StructureReport:
    """Learn the recipe's structure from `source`, on learnt cuts or those supplied; `output` is written.

    check: by how many resamples the steps of a search for regions are checked. `scores`: with what the network is worth
    by every score.
    """
    check_outputs((output,), (*source.paths, source.schema_file, *supplied.paths))
    recipe = supplied.recipe(recipe)
    if scores:
        refuse_scores(recipe, supplied)
    stopwatch = Stopwatch(run.watch)
    counts = Counts(_rows(source, recipe, supplied, run._replace(watch=stopwatch)))
    stopwatch(Stage("structure"))
    moves = Moves(stopwatch)
    found = search(counts, recipe, limited(run._replace(watch=moves)))
    if check is not None and isinstance(found, Regions):
        stopwatch(Stage("bootstrap"))
        rows = counts.with_missing_levels(recipe.structure, silent).data
        found = with_log_losses(rows, found, float(recipe.theta), check, stopwatch)
    scored = score_network(counts, only_network(found), Strengths.of(recipe)) if scores else None
    report = _written(found, counts, recipe, output)
    return report(moves=moves.named(counts.schema), seconds=stopwatch.seconds(), scored=scored)


def _rows(source: Source, recipe: Recipe, supplied: SuppliedFiles, run: Run) -> Dataset:
    """Return the rows in codes."""
    run.watch(Stage("read"))
    columns = supplied.read(source, run, recipe)
    run.watch(Stage("discretize"))
    return learn_dataset(
        columns,
        discretize=recipe.discretize,
        group_levels=recipe.group_levels,
        given=supplied.cuts,
        missing_policy=missing_policy(recipe),
        run=run,
        **recipe.options(DISCRETIZERS.method(recipe.discretize)),
    )


def _written(found: Structure, counts: Counts, recipe: Recipe, output: str | None) -> Callable[..., StructureReport]:
    """Return the report without the course of the search; the structure is written where asked."""
    structure = name_structure(found, counts.schema)
    if isinstance(structure, NamedDag) and recipe.arcs == "cv":
        structure = replace(structure, arcs="cv")
    if output is not None:
        write_structure(output, structure)
    arcs = sum(map(len, structure.parents.values())) if isinstance(structure, NamedDag) else None
    used = len(set(structure.nodes) - {counts.schema.class_name})
    return partial(StructureReport, output, counts.source.n_rows, len(counts.schema.attributes), used, arcs, structure)


def learn_structure_from_counts(
    path: str, recipe: Recipe, *, output: str | None = None, run: Run = Run()
) -> StructureReport:
    """Return the structure that `learn_structure` finds in the rows that were counted into the file at `path`."""
    check_outputs((output,), (path,))
    stopwatch = Stopwatch(run.watch)
    stopwatch(Stage("read"))
    counted = read_counts(path)
    recipe = SuppliedFiles(cuts=counted.cuts).recipe(recipe)
    counts = Counts(counted.stored(missing_policy(recipe), ReadingRules(counted.missing_tokens)))
    stopwatch(Stage("structure"))
    found = search(counts, recipe, limited(run._replace(watch=stopwatch)))
    return _written(found, counts, recipe, output)(moves=(), seconds=stopwatch.seconds())
