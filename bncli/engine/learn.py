"""From columns to a model: cut and encode, structure, parameters. Read this file first.

    columns --cutting--> schema and coded rows --counts--> structure --> (penalty) --> parameters --> Model

Methods are looked up by the word the user types: `--structure tan` is `structure_learners/tan.py`.

What speaks against a model that has just been learnt: no attribute used, nothing gained, more numbers than rows.

Each doubt is one line for whoever learns: what is wrong, of which column, and what to do. It is told as a warning.

Conventions. More parameters than rows are usual with many attributes or classes, and harmless where a penalty holds
them down. They are a doubt where one column of more than MANY values makes most of them, and where they are more than
FAR times the rows without a penalty. An ensemble chose its tables by rows held out, and is only judged by these. A
held-out loss within a share NOISE of that of the class frequencies is no gain.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from bncli import __version__
from bncli.catalogue import DECISION_KEYS, DISCRETIZERS, MARGINALIZED, OPTIMIZERS, PARAMETERS, STRUCTURES
from bncli.catalogue.choices import Choice, Method
from bncli.engine.coding import coded
from bncli.engine.counting.counts import Counts, StoredTables
from bncli.engine.data.class_weights import apply_class_weights, parse_class_weights
from bncli.engine.data.columns import Columns, Origin
from bncli.engine.data.dataset import Dataset
from bncli.engine.data.schema import CategoricalAttribute, Cuts, NumericAttribute, ReadingRules
from bncli.engine.model import ChosenPenalty, Ensemble, HeldOutLoss, Model, Parameters
from bncli.engine.parameters.arc_cv import choose_arcs, loss_of, naive_bayes_loss
from bncli.engine.parameters.memory_estimate import refuse_large, refuse_wide
from bncli.engine.parameters.monotone import check_directions
from bncli.engine.parameters.nested_samples import Growth
from bncli.engine.parameters.optimization import OptimizerSettings, Space
from bncli.engine.parameters.penalty_cv import (
    HeldOutFold,
    folds_with_own_cuts,
    held_out_base,
    held_out_folds,
    penalty_path,
    sample_of,
    shrink_parameters,
)
from bncli.engine.parameters.restarts import Starts
from bncli.engine.prediction.decision_rules import DecisionOptions, rule_of
from bncli.engine.prediction.held_out_rows import learn_with_rule
from bncli.engine.prediction.monitoring import plain_frequencies
from bncli.engine.structures.named_structure import NamedStructure
from bncli.engine.structures.structure import Dag, Regions, Structure
from bncli.errors import BncliError
from bncli.recipe import Recipe
from bncli.watch import Note, Run, Stage, TimeLimit, Watch, silent

MANY = 20
FAR = 50
NOISE = 1e-3


@dataclass(frozen=True)
class SuppliedParts:
    """What is supplied instead of being learnt; None: it is learnt.

    It is taken as it is, but for a recipe whose `arcs` are to be chosen among those of the structure.
    """

    cuts: Cuts | None = None
    structure: NamedStructure | None = None


@dataclass(frozen=True)
class FittedModel:
    """A model, and how its parameters were reached.

    `missing` counts the missing values of informative attributes that are marginalized.
    """

    model: Model
    parameters: Parameters
    missing: int


_FOUND_ONCE = ("gbn", "kikuchi", "auto")
CAPPED = 100
"""Who allows fewer iterations asks for those of a path, and not for the optimum."""


def learn(
    columns: Columns,
    recipe: Recipe,
    *,
    given: SuppliedParts = SuppliedParts(),
    reading: ReadingRules = ReadingRules(),
    run: Run = Run(),
) -> FittedModel:
    """Learn a model from labelled rows; where cuts or a structure are given, the recipe names what made them.

    What speaks against the model is told as warnings. Raises BncliError where there are no rows to learn from, or
    where the network would take more than `run.memory`.
    """
    # Only where parameters are the probabilities of a network can anything be marginalized.
    if recipe.missing_policy == "marginalize" and recipe.param not in MARGINALIZED:
        what = f"missing values cannot be marginalized with the parameters {recipe.param!r}, which are no probabilities"
        raise BncliError(what, hint=f"use --param {', '.join(MARGINALIZED)}, or --missing-policy level")
    rows = [columns]  # popped, so that nothing holds the table here
    del columns
    wanted = DecisionOptions(*(getattr(recipe, key) for key in DECISION_KEYS))
    if wanted == DecisionOptions():
        return _weighted(rows, recipe, given, reading, run)

    def fit(some: Columns, watch: Watch) -> FittedModel:
        return _weighted([some], recipe, given, reading, run._replace(watch=watch))

    learnt, rule = learn_with_rule(rows.pop(), wanted, fit, seed=recipe.seed or 0, watch=run.watch)
    return replace(learnt, model=replace(learnt.model, rule=rule))


def _weighted(
    rows: list[Columns], recipe: Recipe, given: SuppliedParts, reading: ReadingRules, run: Run
) -> FittedModel:
    """Return what is learnt from the only table of the list, its rows weighing as the recipe says of their classes."""
    class_weights = parse_class_weights(recipe.class_weights, rows[0])
    if class_weights is None:
        return _calibrated(rows, recipe, given, reading, run)
    columns = rows.pop()
    learnt = _calibrated([apply_class_weights(columns, class_weights)], recipe, given, reading, run)
    plain, weights = plain_frequencies(learnt.model, columns), tuple(class_weights.tolist())
    return replace(learnt, model=replace(learnt.model, class_weights=weights, plain_frequencies=plain))


def _calibrated(
    rows: list[Columns], recipe: Recipe, given: SuppliedParts, reading: ReadingRules, run: Run
) -> FittedModel:
    """Return the model learned from the only table of the list, calibrated on held-out rows if requested."""
    if recipe.calibrate is None:
        return _learn(rows.pop(), recipe, given, reading, run)
    # they load scipy.optimize, which takes longer than a small fit
    from bncli.engine.calibration import refuse_directed
    from bncli.engine.prediction.held_out_rows import calibrated_out_of_fold

    columns = rows.pop()
    if columns.label is not None and (recipe.increasing or recipe.decreasing):
        refuse_directed(recipe.calibrate, len(columns.label.levels))
    learnt = _learn(columns, recipe, given, reading, run)
    quiet = run._replace(watch=silent, place=None)

    def fit(some: Columns) -> Model:
        return _learn(some, recipe, given, reading, quiet).model

    return replace(learnt, model=calibrated_out_of_fold(learnt.model, columns, fit, run.watch))


def _learn(columns: Columns, recipe: Recipe, given: SuppliedParts, reading: ReadingRules, run: Run) -> FittedModel:
    sampled = _sampled_rows(columns, given.cuts)
    if recipe.param == "auto":
        from bncli.engine.ensembles.auto import learn_auto  # many modules that no other method needs

        model, parameters = learn_auto(columns, recipe, reading, run)
        return _add_warnings(FittedModel(_recorded(model, sampled), parameters, missing=0), run.watch)
    data = coded(columns, recipe, given.cuts, reading, run)
    data = data if run.place is None else run.place(data)
    sample = _sample(columns, recipe, given.cuts)
    del columns  # codes, and the rows that folds are made of, are all that is needed from here
    counts = Counts(data)
    run.watch(Stage("structure"))
    structure = (
        learn_structure(counts, recipe, run) if given.structure is None else _supplied_structure(given, counts, recipe)
    )
    refuse_large(structure, data.schema, recipe, run.memory)
    folds = _folds(data, sample, structure, recipe, reading, run)
    del sample
    if folds or recipe.penalty == "cv":
        structure, penalty = _choose(counts, structure, folds, recipe, run)
    else:
        penalty = None
    return _fitted_parameters(counts, structure, recipe, penalty, sampled, run.watch)


def _sampled_rows(columns: Columns, cuts: Cuts | None) -> int | None:
    """Of how many rows the cuts are, where these are not all."""
    if cuts is not None:
        return cuts.sampled_rows
    return None if columns.origin is None else columns.origin.sampled_rows


def _add_warnings(learnt: FittedModel, watch: Watch) -> FittedModel:
    check_directions(learnt.model)
    for doubt in warnings_about(learnt.model, learnt.parameters):
        watch(Note(doubt, warning=True))
    return learnt


def _recorded(model: Model, sampled: int | None) -> Model:
    """Return the model, which says of how many rows its cuts are, and how levels were pooled only where some are."""
    recipe = model.recipe if model.schema.pooled else model.recipe.replaced(group_levels=None)
    return replace(model, recipe=recipe, sampled_rows=sampled)


def _sample(columns: Columns, recipe: Recipe, cuts: Cuts | None) -> Columns | None:
    """Return the rows that folds are made of, as they were read.

    None where none are wanted, or where there are only codes.
    """
    if not _holds_out(recipe) or not (cuts is None or cuts.method in DISCRETIZERS.words):
        return None
    seed = recipe.seed or 0
    return sample_of(columns, seed) if columns.origin is None else _drawn(columns.origin, seed)


def _drawn(origin: Origin, seed: int) -> Columns | None:
    rows = origin.drawn(seed)
    return rows if rows is None or origin.seed is not None else sample_of(rows, seed)


def _supplied_structure(given: SuppliedParts, counts: Counts, recipe: Recipe) -> Structure:
    """Return the structure that was given.

    Regions that no search on these rows finds are handwork, whatever they began as.
    """
    assert given.structure is not None
    structure = given.structure.resolve(counts.schema)
    if not isinstance(structure, Regions) or structure.method != "interactions" or recipe.penalty != "cv":
        return structure
    found = learn_structure(counts, recipe)
    same = isinstance(found, Regions) and found.regions == structure.regions and found.binnings == structure.binnings
    return structure if same else replace(structure, method="file")


def _folds(
    data: Dataset, sample: Columns | None, structure: Structure, recipe: Recipe, reading: ReadingRules, run: Run
) -> list[HeldOutFold]:
    """Return the folds by whose held-out rows penalty and arcs are chosen; none where neither is to be chosen."""
    if not _holds_out(recipe):
        return []
    run.watch(Stage("penalty"))
    seed = recipe.seed or 0
    if sample is None or not isinstance(structure, Dag):
        return held_out_folds(data, seed)
    quiet = run._replace(watch=silent)
    return folds_with_own_cuts(sample, lambda columns: coded(columns, recipe, None, reading, quiet), seed)


def _holds_out(recipe: Recipe) -> bool:
    """Return whether held-out rows are to choose the penalty or the arcs."""
    return "cv" in (recipe.penalty, recipe.arcs)


def _choose(
    counts: Counts, structure: Structure, folds: list[HeldOutFold], recipe: Recipe, run: Run
) -> tuple[Structure, ChosenPenalty]:
    """Return the structure with the arcs, and the penalty, that held-out rows prefer, as far as the recipe asks.

    A structure that keeps all its arcs is compared with naive Bayes on the same rows where `run.advise` asks for it.
    """
    method = _method(PARAMETERS, recipe.param)
    space = partial(_module(PARAMETERS, recipe.param).space, **recipe.options(method))
    search = _search(structure, recipe, run)
    path = partial(penalty_path, center=float(recipe.penalty_center), watch=run.watch)
    if recipe.penalty == "cv":
        path = partial(path, shrink=not method.probabilities)
    else:
        path = partial(path, grid=(float(recipe.penalty),))
    if recipe.arcs == "cv" and isinstance(structure, Dag) and folds:
        return choose_arcs(counts, structure, search, space, folds=folds, path=path)

    def space_of(counts: Counts) -> Space:
        return space(counts, search(counts))  # type: ignore[no-any-return]

    chosen = path(folds, space_of)
    if run.advise and run.watch is not silent and folds and isinstance(structure, Dag) and structure.n_arcs:
        alone = naive_bayes_loss(search, space, folds=folds, path=path, near=chosen.penalty)
        best = loss_of(chosen)
        if alone < best:
            told = f"log-loss {alone:.4g} of held-out rows, {best:.4g} with all {structure.n_arcs:,} arcs of"
            told = f"naive Bayes predicts better here: {told} {structure.method}; --arcs cv lets held-out rows choose"
            run.watch(Note(told))
    return structure, chosen


def _method(choice: Choice, word: str) -> Method:
    method = choice.method(word)
    assert method is not None, f"{choice.flag} {word}"
    return method


def _module(choice: Choice, word: str) -> Any:
    return importlib.import_module(choice.module_of(word))


def _search(structure: Structure, recipe: Recipe, run: Run) -> Callable[[Counts], Any]:
    """Return how the structure is found in the rows of a fold: as in all rows, unless it is handwork or takes too long.

    Regions are found anew where they have cuts of their own, which follow the rows closely.
    """
    uncut = isinstance(structure, Regions) and not any(any(one) for one in structure.binnings)
    if structure.method in _FOUND_ONCE or structure.method not in STRUCTURES.words or uncut:
        return lambda _: structure
    return lambda counts: learn_structure(counts, recipe, run._replace(watch=silent))


def _fitted_parameters(
    counts: Counts,
    structure: Structure,
    recipe: Recipe,
    penalty: ChosenPenalty | None,
    sampled: int | None,
    watch: Watch,
) -> FittedModel:
    parameters = learn_parameters(counts, structure, recipe, watch, chosen=penalty)
    found, n_rows = parameters.predictor, counts.source.n_rows
    model = Model(counts.schema, structure, found, recipe, n_rows, __version__, penalty, parameters.restarts)
    return _add_warnings(FittedModel(_recorded(model, sampled), parameters, sum(counts.source.n_missing)), watch)


def warnings_about(model: Model, parameters: Parameters) -> Iterator[str]:
    """Yield every doubt in a line, the gravest first."""
    if not model.attributes:
        yield _uses_nothing(model)
    elif parameters.held_out is not None and gains_nothing(parameters.held_out):
        yield _gains_nothing(model, parameters.held_out)
    if model.attributes and not isinstance(model.predictor, Ensemble) and parameters.n_parameters > model.n_rows:
        yield from _exceed(model, parameters.n_parameters)


def _uses_nothing(model: Model) -> str:
    schema = model.schema
    n = len(schema.attributes)
    which = "the only attribute" if n == 1 else f"any of the {n:,} attributes"
    what = f"the model does not use {which}: every row gets the class frequencies of {schema.class_name!r}"
    if any(a.informative for a in schema.attributes):
        return f"{what}, which were better on rows held out; is it the class that you mean (--class)?"
    uncut = any(isinstance(a, NumericAttribute) and not a.informative for a in schema.attributes)
    cut = (
        "--discretize equal-frequency cuts numbers all the same; " if uncut and model.recipe.discretize == "mdl" else ""
    )
    return f"{what}; {cut}is it the class that you mean (--class)?"


def _gains_nothing(model: Model, held_out: HeldOutLoss) -> str:
    losses = f"log-loss {held_out.log_loss:.4g} a row, theirs {held_out.base_log_loss:.4g}"
    other = "" if isinstance(model.predictor, Ensemble) else "try --structure auto, or "
    return (
        f"on rows held out the model is no better than the class frequencies alone ({losses}); "
        f"{other}look for attributes that tell more about {model.schema.class_name!r}"
    )


def _exceed(model: Model, n_parameters: int) -> Iterator[str]:
    """Name the column whose families hold the most cells (ties: the first) or, if none is to blame, the largest."""
    families, schema = model.predictor.families, model.schema
    cells = [0] * len(schema.attributes)
    for family in families:  # not attribute by attribute: there may be very many
        for i in family.attributes:
            cells[i] += family.n_cells
    most = max(range(len(cells)), key=cells.__getitem__)
    share = cells[most] / sum(family.n_cells for family in families)
    what = f"{n_parameters:,} parameters from {model.n_rows:,} rows"
    nb = "" if model.recipe.structure == "nb" else " or learn --structure nb"
    is_category = isinstance(schema.attributes[most], CategoricalAttribute)
    if is_category and schema.cardinalities[most] > MANY and 2 * share > 1:
        name, n_values = schema.attributes[most].name, schema.cardinalities[most]
        advice = f"leave it out (--ignore {name!r}){',' if nb else ' or'} pool its values (--group-levels){nb}"
        yield f"{what}: {100 * share:.0f} % of them are about {name!r} and its {n_values:,} values; {advice}"
    elif n_parameters > FAR * model.n_rows and not model.penalty:
        largest = max(families, key=lambda f: f.n_cells).attributes
        names = ", ".join(repr(schema.attributes[i].name) for i in largest)
        held_down = "--param discriminative" if model.recipe.penalty is None else "--penalty cv"
        yield f"{what}, and no penalty: the largest table is over {names}; learn with {held_down}{nb}"


def gains_nothing(held_out: HeldOutLoss) -> bool:
    """Return whether the class frequencies do as well."""
    return held_out.log_loss >= held_out.base_log_loss * (1 - NOISE)


def learn_from_counts(
    tables: StoredTables, recipe: Recipe, *, given: SuppliedParts = SuppliedParts(), run: Run = Run()
) -> FittedModel:
    """Return the model that `learn` makes of the rows behind these tables, under the same recipe and structure.

    Raises BncliError where the tables do not hold what the structure needs, or what is asked for takes the rows.
    """
    counts = Counts(tables)
    run.watch(Stage("structure"))
    structure = (
        learn_structure(counts, recipe, run) if given.structure is None else _supplied_structure(given, counts, recipe)
    )
    refuse_large(structure, tables.schema, recipe, run.memory)
    sampled = None if given.cuts is None else given.cuts.sampled_rows
    learnt = _fitted_parameters(counts, structure, recipe, None, sampled, run.watch)
    wanted = DecisionOptions(*(getattr(recipe, key) for key in DECISION_KEYS))
    rule = rule_of(wanted, tables.schema.labels, tables.schema.class_name)
    return replace(learnt, model=replace(learnt.model, rule=rule))


def learn_structure(counts: Counts, recipe: Recipe, run: Run = Run()) -> Structure:
    """Return the structure that the recipe asks for; BncliError where its search would take more than `run.memory`."""
    refuse_wide(counts.schema, recipe, run.memory)
    method = _method(STRUCTURES, recipe.structure)
    options = recipe.options(method)
    if options.get("max_seconds") is not None:
        options["max_seconds"] = TimeLimit(options["max_seconds"], run.clock)
    return _module(STRUCTURES, recipe.structure).learn(counts, watch=run.watch, **options)  # type: ignore[no-any-return]


def learn_parameters(
    counts: Counts,
    structure: Structure,
    recipe: Recipe,
    watch: Watch = silent,
    *,
    chosen: ChosenPenalty | None = None,
) -> Parameters:
    """Return the parameters that the recipe asks for; `chosen` is the penalty where that is `cv`."""
    method, module = _method(PARAMETERS, recipe.param), _module(PARAMETERS, recipe.param)
    watch(Stage("parameters"))
    settings: dict[str, Any] = {} if recipe.optimizer is None else {"settings": _settings(recipe, chosen)}
    if recipe.optimizer is None and recipe.restarts:
        settings["starts"] = Starts(recipe.restarts, recipe.seed)
    parameters: Parameters = module.learn(counts, structure, watch=watch, **recipe.options(method), **settings)
    if chosen is not None and chosen.shrinkage is not None:
        parameters = shrink_parameters(parameters, counts, chosen.shrinkage)
    return replace(parameters, penalty_cv=chosen, held_out=_held_out(counts, chosen, recipe))


def _settings(recipe: Recipe, chosen: ChosenPenalty | None) -> OptimizerSettings:
    """Return how to optimize; what parameters with an optimizer have no use for is left at zero."""
    return OptimizerSettings(
        init=str(recipe.init),
        penalty=float(recipe.penalty or 0.0) if chosen is None else chosen.penalty,
        penalty_center=float(recipe.penalty_center or 0.0),
        optimizer=recipe.optimizer,
        tolerance=recipe.tolerance,
        max_iterations=recipe.max_iterations,
        early_stop=recipe.early_stop or "none",
        seed=recipe.seed or 0,
        restarts=recipe.restarts or 0,
        options=recipe.options(_method(OPTIMIZERS, recipe.optimizer)),
        growth=Growth() if _grows(recipe) else None,
    )


def _grows(recipe: Recipe) -> bool:
    """Whether the optimum alone is asked for, by the default method, and not a path that other options tell of."""
    options = recipe.options(_method(OPTIMIZERS, recipe.optimizer))
    default = recipe.optimizer == OPTIMIZERS.default and options.get("preconditioner", "on") == "on"
    paths = recipe.restarts or (recipe.early_stop or "none") != "none"
    return default and not paths and (recipe.max_iterations or 0) >= CAPPED


def _held_out(counts: Counts, chosen: ChosenPenalty | None, recipe: Recipe) -> HeldOutLoss | None:
    """Return what the search for the penalty told of rows held out, beside the class frequencies on the same rows."""
    if chosen is None or chosen.log_loss is None:
        return None
    base = held_out_base(counts.data, recipe.seed or 0)
    return None if base is None else HeldOutLoss(chosen.log_loss, base)
