"""Learn a structure, which describes how the attributes depend on each other, and write it to a structure file."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from bncli.engine.counting.counts import Counts
from bncli.engine.data.schema import ReadingRules
from bncli.engine.kikuchi.search_trace import Resampling, with_log_losses
from bncli.engine.learn import learn_structure as search_structure
from bncli.engine.parameters.generative import only_network
from bncli.engine.parameters.network_scores import ScoredNetwork, Strengths, score_network
from bncli.engine.structures.named_structure import NamedDag, NamedRegions, NamedStructure, name_structure
from bncli.engine.structures.structure import Regions, Structure
from bncli.engine.training_data import missing_policy
from bncli.files.artifacts.counts import read_counts
from bncli.files.artifacts.structure import write_structure
from bncli.files.exports.structure_json import content_json
from bncli.files.paths import check_outputs
from bncli.files.reading.source import Source
from bncli.recipe import Recipe
from bncli.steps.effects_and_regions import RegionsReport, search_report
from bncli.steps.evaluate.report import scored_json
from bncli.steps.learning_inputs import SuppliedFiles, read_and_cut, refuse_scores
from bncli.steps.run import NamedMove, Recorder, Stopwatch, with_memory_limit
from bncli.watch import Run, Stage, silent


@dataclass(frozen=True)
class StructureReport:
    """The structure that was learned, and the size of the data from which it was learned.

    structure_file: None if it was not written. rows: number of rows. attributes, used: number of attributes in the
    schema, and in the structure. arcs: number of arcs, including those from or to the class, or None for regions.
    moves: arcs changed by a greedy search, in order. scored: the network with its scores, or None unless requested.
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
        """The report on the regions, or None for a graph."""
        return search_report(self.structure) if isinstance(self.structure, NamedRegions) else None

    def as_json(self) -> dict[str, Any]:
        """Return the fields by name, with the method as `structure`, any scores, and the structure's own keys."""
        moves = [move._asdict() for move in self.moves]
        report = asdict(self) | {"structure": self.structure.method, "moves": moves}
        del report["scored"]
        scores = {} if self.scored is None else scored_json(self.scored)
        return report | scores | content_json(self.structure)


def learn_structure(
    source: Source,
    recipe: Recipe,
    *,
    output: str | None = None,
    supplied: SuppliedFiles = SuppliedFiles(),
    check: Resampling | None = None,
    scores: Strengths | None = None,
    run: Run = Run(),
) -> StructureReport:
    """Learn the recipe's structure from `source`, with supplied or learned cuts, and write it to `output`.

    check: the bootstrap resampling that estimates the log-loss of each step of a search for regions, or None.
    scores: the parameters of the network's scores, or None to compute no scores. Raises UsageError if scores are
    requested for a structure that is not a Bayesian network.
    """
    check_outputs((output,), (*source.paths, source.schema_file, *supplied.paths))
    recipe = supplied.update_recipe(recipe)
    if scores is not None:
        refuse_scores(recipe, supplied)
    recorder = Recorder(run.watch)
    run = run._replace(watch=recorder)
    counts = read_and_cut(source, recipe, supplied, run)
    recorder(Stage("structure"))
    structure = search_structure(counts, recipe, with_memory_limit(run))
    if check is not None and isinstance(structure, Regions):
        recorder(Stage("bootstrap"))
        rows = counts.with_missing_levels(recipe.structure, silent).data
        structure = with_log_losses(rows, structure, float(recipe.theta), check, recorder)
    scored = None if scores is None else score_network(counts, only_network(structure), scores)
    moves = recorder.named_moves(counts.schema)
    return _write_and_report(structure, counts, recipe, output, moves, scored, recorder)


def learn_structure_from_counts(
    path: str, recipe: Recipe, *, output: str | None = None, run: Run = Run()
) -> StructureReport:
    """Learn a structure from the counts in the file `path`, and write it to `output`."""
    check_outputs((output,), (path,))
    stopwatch = Stopwatch(run.watch)
    stopwatch(Stage("read"))
    counted = read_counts(path)
    recipe = SuppliedFiles(cuts=counted.cuts).update_recipe(recipe)
    counts = Counts(counted.stored(missing_policy(recipe), ReadingRules(counted.missing_tokens)))
    stopwatch(Stage("structure"))
    structure = search_structure(counts, recipe, with_memory_limit(run._replace(watch=stopwatch)))
    return _write_and_report(structure, counts, recipe, output, (), None, stopwatch)


def _write_and_report(
    structure: Structure,
    counts: Counts,
    recipe: Recipe,
    output: str | None,
    moves: tuple[NamedMove, ...],
    scored: ScoredNetwork | None,
    stopwatch: Stopwatch,
) -> StructureReport:
    named = name_structure(structure, counts.schema)
    if isinstance(named, NamedDag) and recipe.arcs == "cv":
        named = replace(named, arcs="cv")
    if output is not None:
        write_structure(output, named)
    return StructureReport(
        structure_file=output,
        rows=counts.source.n_rows,
        attributes=len(counts.schema.attributes),
        used=len(set(named.nodes) - {counts.schema.class_name}),
        arcs=sum(map(len, named.parents.values())) if isinstance(named, NamedDag) else None,
        structure=named,
        moves=moves,
        seconds=stopwatch.seconds(),
        scored=scored,
    )
