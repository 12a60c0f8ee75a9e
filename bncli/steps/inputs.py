"""A cuts or structure file that stands in for learning: read once, with what it says of how it was made.

Such a file also says which column is the class. Who does not type `--class` may not know that: an error about that
column names the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from bncli.catalogue import STRUCTURES
from bncli.engine.coding import learn_cuts
from bncli.engine.data.columns import Columns, Origin
from bncli.engine.learn import SuppliedParts
from bncli.engine.parameters.penalty_cv import sample_of
from bncli.engine.structures.named_structure import NamedDag, NamedRegions
from bncli.errors import BncliError, UsageError
from bncli.files.artifacts.codes import is_codes, read_codes
from bncli.files.artifacts.cuts import read_cuts
from bncli.files.artifacts.structure import read_structure
from bncli.files.reading.source import Source
from bncli.files.reading.training_rows import SampledTable, read_columns, read_table
from bncli.recipe import Recipe
from bncli.recipe.defaults import kind_of
from bncli.steps.run import limited
from bncli.watch import Note, Run, Stage

T = TypeVar("T")


@dataclass(frozen=True)
class SuppliedFiles(SuppliedParts):
    """What the supplied files hold, and their paths; None: no such file."""

    cuts_path: str | None = None
    structure_path: str | None = None

    @property
    def paths(self) -> tuple[str | None, str | None]:
        """The files, which nothing may be written to."""
        return self.cuts_path, self.structure_path

    @property
    def kind(self) -> str:
        """The method whose parameters go with the structure: kikuchi or interactions; "" for a network or none."""
        if not isinstance(self.structure, NamedRegions):
            return ""
        return "interactions" if self.structure.bins or self.structure.cuts else "kikuchi"

    def recipe(self, recipe: Recipe) -> Recipe:
        """Return the recipe with the methods that made what is supplied.

        Regions have a theta too: that of the recipe, else that of the file, else the default.
        """
        if self.cuts is not None:
            recipe = recipe.with_cuts(self.cuts.method, self.cuts.options)
        structure = self.structure
        if structure is None:
            return recipe
        arcs = structure.arcs if isinstance(structure, NamedDag) else "all"
        recipe = recipe.with_structure(structure.method, structure.options, arcs)
        if self.kind != "kikuchi":
            return recipe
        theta = _THETA if recipe.theta is None else recipe.theta
        if not theta > 0:
            what = f"the structure's option 'theta' is {theta}"
            raise BncliError(what, where=structure.where, hint="it should exceed 0")
        return recipe.replaced(theta=theta)

    def read(self, source: Source, run: Run = Run(), recipe: Recipe | None = None) -> Columns:
        """Return the table to learn from; the recipe says how a table beyond the memory limit is cut.

        Its class is the one that was typed (checked later), else that of the files. No recipe: it is read as it is.
        """
        if isinstance(self.structure, NamedRegions) and self.structure.method == "auto":
            run.watch(Note(f"{self.structure_path} holds the regions of one component of an ensemble: {_PLAIN}"))
        if recipe is None:
            return self._reading(
                source,
                partial(
                    read_columns, threads=run.threads, watch=run.watch, given=self.cuts, memory=limited(run).memory
                ),
            )
        found = self.first_round(source, recipe, run)
        return found if isinstance(found, Columns) else self._coded(found, recipe, run)

    def first_round(self, source: Source, recipe: Recipe, run: Run) -> Columns | SampledTable:
        """Return the table, or what a first reading found in one past the budget."""
        run = run._replace(memory=limited(run).memory)
        return self._reading(source, partial(read_table, given=self.cuts, seed=recipe.seed or 0, run=run))

    def _coded(self, found: SampledTable, recipe: Recipe, run: Run) -> Columns:
        """Its rows in codes, by the supplied cuts or those learnt from the sample."""
        seed = recipe.seed or 0
        cuts = self.cuts or replace(learn_cuts(found.rows, recipe, run), sampled_rows=found.rows.n_rows)
        rows = sample_of(found.rows, seed)
        kept = {attribute.name: rows.attributes[attribute.name] for attribute in cuts.attributes}
        drawn = replace(rows, attributes=kept)
        origin = Origin(found.source.missing_tokens, drawn, seed, sampled_rows=cuts.sampled_rows)
        run.watch(Stage("read"))
        return found.columns(cuts, origin)

    def _reading(self, source: Source, reading: Callable[[Source], T]) -> T:
        """Return what is read, with the class that the files say where none was typed."""
        if source.class_name:
            return reading(source)
        path, class_name = self._class()
        with class_named_by(path, class_name):
            return reading(replace(source, class_name=class_name))

    def _class(self) -> tuple[str | None, str | None]:
        """Return the file that names the class column, and that column: the structure if it does, else the cuts."""
        if self.structure is not None and self.structure.class_name is not None:
            return self.structure.where, self.structure.class_name
        return self.cuts_path, None if self.cuts is None else self.cuts.class_name


_PLAIN = "they are learnt as one sum of tables, without the others; --structure auto learns the ensemble"
_THETA = next(float(dict(method.defaults)["--theta"]) for method in STRUCTURES.methods if method.word == "kikuchi")


@contextmanager
def class_named_by(path: str | None, class_name: str | None) -> Iterator[None]:
    """Inside, a usage error that speaks of the column `class_name` says that the file at `path` (if any) named it."""
    try:
        yield
    except UsageError as error:
        if path is None or class_name is None or f"'{class_name}'" not in error.what:
            raise
        advice = f"; {error.hint}" if error.hint else ""
        hint = f"{path} names it as the class{advice}"
        raise UsageError(error.what, where=error.where, hint=hint) from error


def refuse_scores(recipe: Recipe, supplied: SuppliedFiles) -> None:
    """Raise UsageError where what is learnt is no Bayesian network, whose scores these are."""
    kind = supplied.kind or kind_of(recipe.structure)
    if kind:
        what = f"--scores has no meaning with --structure {kind}: only Bayesian networks have these scores"
        raise UsageError(what, hint="choose another structure, or leave --scores out")


def read_supplied(cuts_path: str | None = None, structure_path: str | None = None) -> SuppliedFiles:
    """Return the content of both files, each checked for itself and read once, so that it may be a pipe."""
    cuts = (
        None
        if cuts_path is None
        else (read_codes(cuts_path).header.cuts if is_codes(cuts_path) else read_cuts(cuts_path))
    )
    structure = None if structure_path is None else read_structure(structure_path)
    return SuppliedFiles(cuts, structure, cuts_path, structure_path)
