"""How a model file stores its predictor (tables, a path of regions, or an ensemble), and the families of its tables.

A path is marked by the key `path` of `model.json`, an ensemble by `blend`; a file without either has plain tables.
`bias.npy` and `tables/<f>.npy`, one array per family, contain

    tables      the bias (K,), and the tables
    path        the log-probabilities of the class (K,), and of each region with the class, from which scoring computes
                its tables
    ensemble    the biases (components, K), and the tables of all components, one component after the other

Reading has two steps, so that the shape of every array is known before any of its bytes is read: `read_predictor` reads
the description, `build_predictor` combines it with the arrays.

A path lists the steps of the search. Each step has the attributes of the region that it adds, the degrees of freedom,
the log-likelihood, the log posterior (null for minus infinity) and its weight in the average; the weights sum to 1. Its
`changes` are pairs of the index of a family, or -1 for the class alone, and the change of the counting number. A step
changes only families inside its region.

    {"steps": [{"region": [], "changes": [[-1, 1]], ...}, {"region": ["age"], "changes": [[-1, -1], [0, 1]], ...}]}

An ensemble lists its components (`members`) by decreasing weight, each with its number of families. It also lists all
candidates that were tried (`trials`), including those of weight 0:

    {"members": [{"name": "pairs", "weight": 0.7, "families": 12}, ...],
     "trials": [{"name": "pairs", "lambda": 3.0, "log_loss": 0.31, "error": 0.14, "weight": 0.7}, ...]}

With `"pool": "logarithmic"` (since version 5) the log-odds are added with these weights, which may have any sum.
Without the key the probabilities are averaged, and the weights sum to 1.

The key `families` lists the attributes of each table, and how the table bins their codes:

    {"attributes": ["pulse", "age"], "child": "pulse", "merges": [null, [0, 0, 1, 1, 2]]}

`child` is the first attribute, or null if the table has no child. `merges` is present only if the family bins codes.
For each attribute it lists the coarse code of every code, or has null if the attribute is not binned. Any levels can be
merged, but only neighbouring intervals. The level for missing values, the last code, is never merged. If very many
families bin codes (`is_compact`), they have the shorter key `groups` instead: for intervals the last code of every
group except the last group, for levels the coarse code of each level. The level for missing values is not listed.

    {"attributes": ["pulse", "age", "colour"], "child": null, "groups": [null, [1], [0, 1, 0]]}
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, assert_never

import numpy as np

from bncli.engine.data.schema import Attribute, NumericAttribute, Schema
from bncli.engine.kernels.arrays import Array
from bncli.engine.model import Component, Ensemble, Path, PathStep, Pool, Predictor, Tables, TriedCandidate
from bncli.engine.prediction.edits import parameter_arrays
from bncli.engine.structures.structure import Dag, Family, Grouping, Structure
from bncli.files.exports.structure_json import posterior_json
from bncli.files.json_documents import Node

PENALTY_CV = "penalty_cv"
"""The key of models whose penalty was chosen by cross-validation, since version 2."""
PATH, ENSEMBLE = "path", "blend"
"""Keys that mark the kind of predictor, since version 4."""
_POOL = "pool"
_ROUNDING = 1e-9
"""The tolerance for sums of weights and for fractions above 1."""
_MOST_WEIGHT = 1e3
_MOST_CHANGE = 1 << 20
"""The maximum absolute change of a counting number, enough for regions of up to 16 attributes."""
_LOWEST_LOG_P = -1e4
"""Log-probabilities below this are refused."""
_PROBABILITY_ROUNDING = 1e-6
"""The tolerance for the sum of the probabilities of a region."""
MANY_BINNED = 256
"""With at least this many binned families, files use `groups` and one array for all tables."""
MOST_CODES = 1 << 24
"""The maximum total number of codes in all groupings of a file; a short `groups` list can describe many codes."""
_MERGES, _GROUPS = "merges", "groups"
"""Keys of binned families, since version 4 and version 5 respectively."""


class PredictorDescription(NamedTuple):
    """The description of a predictor in `model.json`: the shape of the bias, and the parts of a path or ensemble.

    A path has `steps`; an ensemble has `components` (name, weight, number of families), `trials` and `pool`.
    """

    bias_shape: tuple[int, ...]
    steps: tuple[PathStep, ...] = ()
    components: tuple[tuple[str, float, int], ...] = ()
    trials: tuple[TriedCandidate, ...] = ()
    pool: Pool = Pool.LINEAR


def predictor_json(predictor: Predictor, schema: Schema) -> dict[str, Any]:
    """Describe a path or an ensemble under the key that marks its kind; the object is empty for plain tables."""
    if isinstance(predictor, Tables):
        return {}
    if isinstance(predictor, Path):
        steps = [
            {
                "region": [schema.attributes[i].name for i in step.region],
                "changes": [[int(family), int(change)] for family, change in step.changes],
                "df": int(step.df),
                "log_likelihood": float(step.log_likelihood),
                "log_posterior": posterior_json(step.log_posterior),
                "weight": float(step.weight),
            }
            for step in predictor.steps
        ]
        return {PATH: {"steps": steps}}
    if isinstance(predictor, Ensemble):
        components = [
            {"name": c.name, "weight": float(c.weight), "families": len(c.tables.families)}
            for c in predictor.components
        ]
        pool = {} if predictor.pool is Pool.LINEAR else {_POOL: predictor.pool.value}
        return {ENSEMBLE: {"members": components, "trials": trials_json(predictor.trials)} | pool}
    assert_never(predictor)


def trials_json(trials: Sequence[TriedCandidate]) -> list[dict[str, Any]]:
    """Return each candidate's name, best penalty, held-out log-loss and error rate at that penalty, and weight."""
    return [
        {
            "name": trial.name,
            "lambda": float(trial.penalty),
            "log_loss": float(trial.log_loss),
            "error": float(trial.error),
            "weight": float(trial.weight),
        }
        for trial in trials
    ]


def predictor_arrays(predictor: Predictor) -> tuple[Array, ...]:
    """Return the arrays that the file stores: the bias, then one array per family."""
    if isinstance(predictor, Path):
        return (predictor.class_logs, *predictor.logs)
    return tuple(parameter_arrays(predictor))


def array_names(n_tables: int) -> list[str]:
    """Return the names of the members that store the bias and each table."""
    return ["bias.npy", *(f"tables/{f}.npy" for f in range(n_tables))]


def read_predictor(
    fields: Mapping[str, Node], schema: Schema, structure: Structure, families: tuple[Family, ...]
) -> PredictorDescription:
    """Parse the description of the predictor in `model.json`, and check it against the other keys.

    fields: all keys of `model.json`. families: the families of all tables in the file.
    """
    n_labels = len(schema.labels)
    if ENSEMBLE in fields:
        node = fields[ENSEMBLE]
        if PATH in fields or PENALTY_CV in fields:
            node.fail("an ensemble cannot have steps or a single penalty")
        if schema.marginalizes:
            node.fail("missing values cannot be marginalized in an ensemble")
        return _read_ensemble(node, n_labels, len(families))
    if PATH in fields:
        node = fields[PATH]
        if isinstance(structure, Dag):
            node.fail("a Bayesian network cannot have steps of regions")
        if any(f.child is not None or f.groupings or list(f.attributes) != sorted(f.attributes) for f in families):
            node.fail("a table of a path must have no child, and the cuts and the order of attributes of the schema")
        return PredictorDescription((n_labels,), steps=_read_steps(node, schema, families))
    return PredictorDescription((n_labels,))


def _read_ensemble(node: Node, n_labels: int, n_families: int) -> PredictorDescription:
    fields = node.fields(("members", "trials"), (_POOL,))
    pool = Pool.LINEAR
    if _POOL in fields:
        pool = Pool.LOGARITHMIC
        if fields[_POOL].value != pool.value:
            fields[_POOL].fail(f"the only pool is {pool.value}; otherwise leave the key out")
    components = []
    for item in fields["members"].items():
        member = item.fields(("name", "weight", "families"))
        name, weight = member["name"].text(), _read_weight(member["weight"], pool, least=1e-300)
        components.append((name, weight, member["families"].integer(0)))
    weights = [weight for _, weight, _ in components]
    if not components or any(a < b for a, b in pairwise(weights)):
        fields["members"].fail("components must be listed by decreasing weight")
    if pool is Pool.LINEAR and abs(sum(weights) - 1.0) > _ROUNDING:
        fields["members"].fail("the weights of components must sum to 1")
    if sum(n for _, _, n in components) != n_families:
        fields["members"].fail(f"the components do not have the {n_families} families of the model")
    trials = []
    for item in fields["trials"].items():
        trial = item.fields(("name", "lambda", "log_loss", "error", "weight"))
        penalty = trial["lambda"].number()
        if penalty <= 0:
            trial["lambda"].fail("a penalty must be above 0")
        log_loss, error = trial["log_loss"].number(), _read_share(trial["error"])
        name, weight = trial["name"].text(), _read_weight(trial["weight"], pool)
        trials.append(TriedCandidate(name, penalty, log_loss, error, weight))
    return PredictorDescription(
        (len(components), n_labels), components=tuple(components), trials=tuple(trials), pool=pool
    )


def _read_weight(node: Node, pool: Pool, least: float = 0.0) -> float:
    """Return a candidate's weight, from `least` to 1 in a linear pool and to _MOST_WEIGHT in a logarithmic one."""
    if pool is Pool.LINEAR:
        return _read_share(node, least)
    number = node.number()
    if not least <= number <= _MOST_WEIGHT:
        node.fail(f"a weight must be between 0 and {_MOST_WEIGHT:g}")
    return number


def _read_share(node: Node, least: float = 0.0) -> float:
    number = node.number()
    if not least <= number <= 1.0 + _ROUNDING:
        node.fail("the number must be between 0 and 1")
    return number


def _read_steps(node: Node, schema: Schema, families: Sequence[Family]) -> tuple[PathStep, ...]:
    """Parse the steps of a path; their changes refer to `families` by index."""
    index = {attribute.name: i for i, attribute in enumerate(schema.attributes)}
    listed = node.fields(("steps",))["steps"]
    steps = []
    for item in listed.items():
        fields = item.fields(("region", "changes", "df", "log_likelihood", "log_posterior", "weight"))
        names = fields["region"].texts()
        if not all(name in index for name in names):
            fields["region"].fail("a region must consist of attributes of the schema")
        region = tuple(index[name] for name in names)
        weight, posterior = fields["weight"].number(), fields["log_posterior"]
        if weight < 0:
            fields["weight"].fail("a weight cannot be negative")
        changes = []
        for pair in fields["changes"].items():
            numbers = [number.integer(-_MOST_CHANGE) for number in pair.items()]
            if len(numbers) != 2 or not -1 <= numbers[0] < len(families) or numbers[1] > _MOST_CHANGE:
                what = "a change must be a family number (-1 for the class) and a whole number"
                pair.fail(f"{what} from -{_MOST_CHANGE:,} to {_MOST_CHANGE:,}")
            family, change = numbers
            if family >= 0 and not set(families[family].attributes) <= set(region):
                pair.fail("a step may change only families inside its region")
            changes.append((family, change))
        step = PathStep(
            region,
            tuple(changes),
            fields["df"].integer(0),
            fields["log_likelihood"].number(),
            -math.inf if posterior.value is None else posterior.number(),
            weight,
        )
        steps.append(step)
    if not abs(math.fsum(step.weight for step in steps) - 1.0) <= _ROUNDING:
        listed.fail("the weights of the steps do not sum to 1")
    return tuple(steps)


def build_predictor(
    description: PredictorDescription,
    families: tuple[Family, ...],
    bias: Array,
    tables: tuple[Array, ...],
    fail: Callable[[str], Any],
) -> Predictor:
    """Build the predictor from its description and the arrays of the file.

    bias: (K,), or (components, K) for an ensemble. tables: one array (cells, K) per family. `fail` is called with a
    reason if the arrays of a path are not log-probabilities.
    """
    if description.components:
        components, first = [], 0
        for component_bias, (name, weight, n_families) in zip(bias, description.components, strict=True):
            own = slice(first, first + n_families)
            components.append(Component(weight, Tables(component_bias, families[own], tables[own]), name))
            first = own.stop
        return Ensemble(tuple(components), description.trials, description.pool)
    if description.steps:
        for name, array in zip(array_names(len(tables)), (bias, *tables), strict=True):
            # The range is checked first, so that exp cannot overflow.
            in_range = array.min() >= _LOWEST_LOG_P and array.max() <= _PROBABILITY_ROUNDING
            if not in_range or abs(float(np.exp(array).sum()) - 1.0) > _PROBABILITY_ROUNDING:
                fail(f"{name} does not consist of logarithms of probabilities that sum to 1")
        return Path(bias, families, tables, description.steps)
    return Tables(bias, families, tables)


def is_compact(families: Iterable[Family]) -> bool:
    """Return whether a file stores these families in the compact form: `groups`, and one array for all tables."""
    return sum(1 for family in families if family.groupings) >= MANY_BINNED


def families_json(families: Sequence[Family], schema: Schema) -> list[dict[str, Any]]:
    """Return the content of the key `families`, in the form that the module docstring describes."""
    names = [attribute.name for attribute in schema.attributes]
    compact = is_compact(families)
    described: list[dict[str, Any]] = []
    for family in families:
        child = None if family.child is None else names[family.child]
        described.append({"attributes": [names[i] for i in family.attributes], "child": child})
        if not family.groupings:
            continue
        if not compact:
            merges = [None if g is None else [int(code) for code in g] for g in family.groupings]
            described[-1][_MERGES] = merges
            continue
        groups: list[list[int] | None] = []
        for i, grouping in family.binned_attributes:
            attribute = schema.attributes[i]
            if grouping is None:
                groups.append(None)
                continue
            values = [int(code) for code in grouping[: attribute.n_values]]
            if isinstance(attribute, NumericAttribute):
                values = [code for code, (left, right) in enumerate(pairwise(values)) if left != right]
            groups.append(values)
        described[-1][_GROUPS] = groups
    return described


def read_families(node: Node, schema: Schema, structure: Structure) -> tuple[Family, ...]:
    """Parse the families, and check them against the schema.

    In a model that marginalizes missing values, the table of a node that does not have the class as a parent has no
    axis for the class.
    """
    index = {attribute.name: i for i, attribute in enumerate(schema.attributes)}
    dag = structure if schema.marginalizes and isinstance(structure, Dag) else None
    families, n_codes = [], 0
    for item in node.items():
        fields = item.fields(("attributes", "child"), (_MERGES, _GROUPS))
        names = fields["attributes"].texts()
        if not names or not all(name in index and schema.cardinalities[index[name]] for name in names):
            fields["attributes"].fail("every attribute of a table must be in the schema and have at least one value")
        if fields["child"].value not in (None, names[0]):
            fields["child"].fail("the child of a table must be its first attribute or null")
        attributes = tuple(index[name] for name in names)
        child = None if fields["child"].value is None else attributes[0]
        by_class = child is None or dag is None or child in dag.class_children
        groupings = _read_groupings(fields, [schema.attributes[i] for i in attributes])
        n_codes += sum(len(grouping) for grouping in groupings if grouping)
        if n_codes > MOST_CODES:
            item.fail(f"all groupings together have more than {MOST_CODES:,} codes")
        families.append(Family.over(attributes, schema.cardinalities, child, by_class, groupings))
    return tuple(families)


def _read_groupings(fields: Mapping[str, Node], attributes: Sequence[Attribute]) -> tuple[Grouping | None, ...]:
    """Return a grouping or None for each attribute; the tuple is empty if the family bins no attribute."""
    key = _GROUPS if _GROUPS in fields else _MERGES
    if key not in fields:
        return ()
    node = fields[key]
    if _GROUPS in fields and _MERGES in fields:
        node.fail(f"a family has {_GROUPS} or {_MERGES}, not both")
    items = node.items()
    if len(items) != len(attributes):
        node.fail(f"{len(items)} {key} for {len(attributes)} attributes")
    groupings: list[Grouping | None] = []
    for item, attribute in zip(items, attributes, strict=True):
        if item.value is None:
            groupings.append(None)
            continue
        if key == _GROUPS:
            groupings.append(_read_groups(item, attribute))
            continue
        grouping = tuple(code.integer(0) for code in item.items())
        if len(grouping) != attribute.cardinality:
            item.fail(f"{len(grouping)} coarse codes for the {attribute.cardinality} codes of '{attribute.name}'")
        values = grouping[: attribute.n_values]
        if set(grouping) != set(range(len(set(grouping)))):
            item.fail("coarse codes must be numbered from 0 without gaps")
        if isinstance(attribute, NumericAttribute) and any(right < left for left, right in pairwise(values)):
            item.fail("the coarse codes of intervals must not decrease")
        if attribute.missing and any(code >= grouping[-1] for code in values):
            item.fail("the missing level alone must have the last coarse code")
        groupings.append(grouping)
    return tuple(groupings)


def _read_groups(node: Node, attribute: Attribute) -> Grouping:
    """Parse one item of `groups` as the coarse code of every code of the attribute."""
    numbers = [item.integer(0) for item in node.items()]
    if isinstance(attribute, NumericAttribute):
        if any(right <= left for left, right in pairwise(numbers)) or any(n >= attribute.n_values - 1 for n in numbers):
            node.fail(
                f"the last codes of groups must increase and stay below the last of {attribute.n_values} intervals"
            )
        ends = [*numbers, attribute.n_values - 1]
        values = [group for group, (left, right) in enumerate(pairwise([-1, *ends])) for _ in range(right - left)]
    else:
        values = numbers
        if len(values) != attribute.n_values:
            node.fail(f"{len(values)} coarse codes for the {attribute.n_values} levels of '{attribute.name}'")
        if set(values) != set(range(len(set(values)))):
            node.fail("coarse codes must be numbered from 0 without gaps")
    missing = [max(values, default=-1) + 1] * attribute.missing
    return (*values, *missing)
