"""The inputs of learning: the training table, its check, and supplied files of cuts, a structure or a prior network.

Cuts or a structure from a supplied file are not learned again. The file records the methods that made them, and the
recipe adopts these methods. The file also names the class column, so an error about that column names the file unless
`--class` is given.

The check warns about findings that make held-out metrics misleading. Columns that learning leaves out, such as
identifiers and columns named by --ignore, are read for the check as well, because they may identify rows that belong
together. They are not read in these cases:

- the table is a `.codes` file, can be read only once, or has more than MOST_ROWS rows
- --group or --drop-incomplete is given
- more than MOST_COLUMNS columns are left out
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from bncli.catalogue import DISCRETIZERS, STRUCTURES
from bncli.engine.counting.counts import Counts
from bncli.engine.data.columns import Column, Columns, KnownCuts, NumericColumn, Origin
from bncli.engine.data.cutting import learn_dataset
from bncli.engine.data.schema import DateForm
from bncli.engine.evaluation.table_checks import TableCheck, check_table
from bncli.engine.learn import SuppliedParts
from bncli.engine.networks.network import network_of
from bncli.engine.networks.prior_network import PriorNetwork
from bncli.engine.parameters.penalty_choice import sample_of
from bncli.engine.structures.named_structure import NamedDag, NamedRegions
from bncli.engine.training_data import keep_needed, learn_cuts, missing_policy
from bncli.errors import BncliError, ModelError, UsageError
from bncli.files.artifacts.codes import is_codes, read_codes
from bncli.files.artifacts.cuts import read_cuts
from bncli.files.artifacts.model import read_model
from bncli.files.artifacts.structure import read_structure
from bncli.files.reading.column_roles import is_codes_table
from bncli.files.reading.rows_by_cuts import SampledTable, read_table
from bncli.files.reading.source import Source
from bncli.files.reading.table import read_column_names
from bncli.files.reading.training_rows import read_columns
from bncli.recipe import Recipe
from bncli.recipe.defaults import kind_of
from bncli.steps.run import with_memory_limit
from bncli.watch import Note, Run, Stage

_DEFAULT_THETA = next(
    float(dict(method.defaults)["--theta"]) for method in STRUCTURES.methods if method.word == "kikuchi"
)
MOST_ROWS, MOST_COLUMNS = 200_000, 20
"""The maximum number of rows of a table, and of columns left out, for these columns to be read for the check."""


@dataclass(frozen=True)
class SuppliedFiles(SuppliedParts):
    """The contents and paths of the supplied files; None if a file is not supplied."""

    cuts_path: str | None = None
    structure_path: str | None = None
    prior_path: str | None = None
    prior_record: str | None = None
    """The file name and checksum of the prior network, as the recipe records them."""

    @property
    def paths(self) -> tuple[str | None, ...]:
        """The paths of the supplied files, which no output may overwrite."""
        return self.cuts_path, self.structure_path, self.prior_path

    def with_prior(self, path: str, n_rows: float) -> SuppliedFiles:
        """Return these files with the network in the model file `path` as a prior with the weight of `n_rows` rows.

        With 0 rows no prior is added. Raises ModelError if the file does not contain a network with all its
        probabilities.
        """
        model = read_model(path)
        try:
            network = network_of(model)
        except ModelError as error:
            raise ModelError(error.what, where=path, hint="to make a model from a network, use bncli import") from None
        if n_rows == 0:
            return self
        record = f"{Path(path).name} sha256:{sha256(Path(path).read_bytes()).hexdigest()[:16]}"
        return replace(self, prior=PriorNetwork(network, n_rows, path), prior_path=path, prior_record=record)

    @property
    def region_method(self) -> str:
        """`interactions` if the supplied regions have bins or cuts, `kikuchi` if they have none, "" without regions."""
        if not isinstance(self.structure, NamedRegions):
            return ""
        return "interactions" if self.structure.bins or self.structure.cuts else "kikuchi"

    def update_recipe(self, recipe: Recipe) -> Recipe:
        """Return the recipe updated with the methods and options recorded in the supplied files.

        For Kikuchi regions, theta is taken from the recipe, otherwise from the file, otherwise it is the default.
        Raises BncliError for an invalid option in a file.
        """
        if self.cuts is not None:
            recipe = recipe.with_cuts(self.cuts.method, self.cuts.options)
        elif self.prior is not None:
            recipe = recipe.with_cuts("file", {})
        if self.prior is not None:
            recipe = recipe.replaced(prior_network=self.prior_record)
        structure = self.structure
        if structure is None:
            return recipe
        arcs = structure.arcs if isinstance(structure, NamedDag) else "all"
        recipe = recipe.with_structure(structure.method, structure.options, arcs)
        if self.region_method != "kikuchi":
            return recipe
        theta = _DEFAULT_THETA if recipe.theta is None else recipe.theta
        if not theta > 0:
            what = f"the structure's option 'theta' is {theta}"
            raise BncliError(what, where=structure.where, hint="it must be above 0")
        return recipe.replaced(theta=theta)

    def read(self, source: Source, run: Run, recipe: Recipe) -> Columns:
        """Read the training table; if it exceeds the memory limit, return its rows as codes with an uncoded sample.

        The codes use the supplied cuts, the cuts of the prior network or, without either, cuts learned from the sample.
        If `source` does not name the class column, the supplied files do.
        """
        if isinstance(self.structure, NamedRegions) and self.structure.method == "auto":
            plain = "they are learned as a single sum of tables; --structure auto learns the whole ensemble"
            run.watch(Note(f"{self.structure_path} contains the regions of one component of an ensemble: {plain}"))
        table = self.read_or_sample(source, recipe, run)
        if isinstance(table, Columns):
            return table
        seed = recipe.seed or 0
        cuts = self.with_cuts_of_prior(table.rows).cuts
        cuts = cuts or replace(learn_cuts(table.rows, recipe, run), sampled_rows=table.rows.n_rows)
        rows = sample_of(table.rows, seed)
        used = {attribute.name: rows.attributes[attribute.name] for attribute in cuts.attributes}
        sample = replace(rows, attributes=used)
        origin = Origin(table.source.missing_tokens, sample, seed, sampled_rows=cuts.sampled_rows)
        run.watch(Stage("read"))
        return table.columns(cuts, origin)

    def read_or_sample(self, source: Source, recipe: Recipe, run: Run) -> Columns | SampledTable:
        """Read the training table, or a sample of it if it exceeds the memory limit."""
        path, class_name = None, source.class_name
        if not class_name and self.structure is not None and self.structure.class_name is not None:
            path, class_name = self.structure.where, self.structure.class_name
        elif not class_name and self.cuts is not None:
            path, class_name = self.cuts_path, self.cuts.class_name
        run = run._replace(memory=with_memory_limit(run).memory)
        with explain_class_origin(path, class_name):
            return read_table(replace(source, class_name=class_name), cuts=self.cuts, seed=recipe.seed or 0, run=run)


@contextmanager
def explain_class_origin(path: str | None, class_name: str | None) -> Iterator[None]:
    """Add a hint that the file `path` names the class to any UsageError about `class_name` raised within the block."""
    try:
        yield
    except UsageError as error:
        if path is None or class_name is None or f"'{class_name}'" not in error.what:
            raise
        advice = f"; {error.hint}" if error.hint else ""
        hint = f"{path} uses it as the class{advice}"
        raise UsageError(error.what, where=error.where, hint=hint) from error


def refuse_scores(recipe: Recipe, supplied: SuppliedFiles) -> None:
    """Raise UsageError unless the structure is a network, because only Bayesian networks have these scores."""
    method = supplied.region_method or kind_of(recipe.structure)
    if method:
        what = f"--scores has no effect with --structure {method}: only Bayesian networks have these scores"
        raise UsageError(what, hint="choose another structure, or leave --scores out")


def read_supplied(cuts_path: str | None = None, structure_path: str | None = None) -> SuppliedFiles:
    """Load a cuts file (or the cuts in a `.codes` file) and a structure file; either path may be None or a pipe."""
    cuts = structure = None
    if cuts_path is not None:
        cuts = read_codes(cuts_path).header.cuts if is_codes(cuts_path) else read_cuts(cuts_path)
    if structure_path is not None:
        structure = read_structure(structure_path)
    return SuppliedFiles(cuts, structure, cuts_path=cuts_path, structure_path=structure_path)


def read_and_cut(source: Source, recipe: Recipe, supplied: SuppliedFiles, run: Run) -> Counts:
    """Read a table, cut it with the supplied cuts or with cuts learned as the recipe says, and return its counts."""
    run.watch(Stage("read"))
    columns = supplied.read(source, run, recipe)
    run.watch(Stage("discretize"))
    data = learn_dataset(
        keep_needed(columns, recipe, run),
        discretize=recipe.discretize,
        group_levels=recipe.group_levels,
        cuts=supplied.cuts,
        missing_policy=missing_policy(recipe),
        run=run,
        **recipe.options(DISCRETIZERS.method(recipe.discretize)),
    )
    return Counts(data)


def check_training_table(
    table: Columns, source: Source, run: Run, *, known_cuts: KnownCuts | None = None
) -> TableCheck | None:
    """Check a table, and send a warning for each finding; return the check, or None if the table cannot be checked.

    known_cuts: as in `check_table`.
    """
    check = check_table(table, _read_left_out(table, source, run), run.threads, known_cuts=known_cuts)
    for finding in () if check is None else check.findings:
        run.watch(Note(finding.message, warning=True))
    return check


def is_read_twice(source: Source) -> bool:
    """Return whether every path of the table is a file or folder, which can be read a second time."""
    return all(os.path.isfile(path) or os.path.isdir(path) for path in source.paths)


def _read_left_out(table: Columns, source: Source, run: Run) -> Mapping[str, Column]:
    if (
        table.n_rows > MOST_ROWS
        or source.group
        or source.drop_incomplete
        or is_codes_table(source.paths)
        or not is_read_twice(source)
    ):
        return {}
    dates = {
        column.form.source
        for column in table.as_read.values()
        if isinstance(column, NumericColumn) and isinstance(column.form, DateForm)
    }
    known = {*table.attributes, *dates, table.class_name, source.weights, source.time}
    try:
        names = tuple(name for name in read_column_names(source) if name not in known)
        if not 0 < len(names) <= MOST_COLUMNS:
            return {}
        policy = "skip" if source.bad_rows_file is not None else source.on_bad_row
        again = replace(
            source, use=names, carried=names, categorical=names, numeric=(), ignore=(), on_bad_row=policy,
            class_name=table.class_name, group=(), time=None, gap=None, window=None,
        )  # fmt: skip
        rows = read_columns(again, threads=run.threads)
    except BncliError:  # a failed check must not end the run
        return {}
    return rows.as_read if rows.n_rows == table.n_rows else {}
