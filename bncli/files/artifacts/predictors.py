"""Predictors in a model file, a codec a kind: what `model.json` says of one, and how its arrays are laid out.

The key of its codec marks the kind; tables have none. `bias.npy` and `tables/<f>.npy`, one array a family, hold

    tables      the bias (K,), and the tables
    path        the logarithms of the probabilities of the class (K,), and of each region with the class, out of which
                scoring makes its tables
    ensemble    the biases (components, K), and the tables of all components, one component after the other

Conventions: a codec is read in two steps, so that the shape of every array is known before a byte of one is read:
first the description, then, by the function that this leaves behind, the arrays.

An ensemble in a model file, under the key `blend`: how its tables are shared out, and what was tried.

    {"members": [{"name": "pairs", "weight": 0.7, "families": 12}, ...],
     "trials": [{"name": "pairs", "lambda": 3.0, "log_loss": 0.31, "error": 0.14, "weight": 0.7}, ...]}

With `"pool": "logarithmic"`, since version 5, log-odds are added up with the weights in place of probabilities, and the
weights have any sum; models without the key are linear pools, whose weights sum to 1.

The tables of the components (`members`) follow one another in the file, so many families each; `bias.npy` has a row for
each. The heaviest component comes first. Trials are all candidates, those without a weight included.

The steps of a path of regions in a model file.

    {"steps": [{"region": [], "changes": [[-1, 1]], ...}, {"region": ["age"], "changes": [[-1, -1], [0, 1]], ...}]}

Every step has the attributes that it adds, the changes of counting numbers (family of the model, -1 for the class
alone, and by how much), degrees of freedom, log-likelihood, log posterior (null: minus infinity) and its weight in the
average. A step changes only families inside its region, and weights sum to 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from bncli.engine.data.schema import Schema
from bncli.engine.kernels.arrays import Array
from bncli.engine.model import Component, Ensemble, Path, PathStep, Pool, Predictor, Tables, TriedCandidate
from bncli.engine.structures.structure import Dag, Family, Structure
from bncli.files.documents import Node
from bncli.files.exports.structure_json import posterior_json

_ENSEMBLES_ROUNDING = 1e-9
_POOL = "pool"
_HEAVIEST = 1e3


class ComponentShare(NamedTuple):
    """A component without its tables: it has the next `families` of them."""

    name: str
    weight: float
    families: int


def ensemble_json(ensemble: Ensemble) -> dict[str, Any]:
    """Return what `read_ensemble` reads."""
    components = [
        {"name": one.name, "weight": float(one.weight), "families": len(one.tables.families)}
        for one in ensemble.components
    ]
    pool = {} if ensemble.pool is Pool.LINEAR else {_POOL: ensemble.pool.value}
    return {"members": components, "trials": trials_json(ensemble.trials)} | pool


def trials_json(trials: Sequence[TriedCandidate]) -> list[dict[str, Any]]:
    """Return every candidate with its best penalty, its losses there and its weight."""
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


def read_ensemble(node: Node, n_families: int) -> tuple[tuple[ComponentShare, ...], tuple[TriedCandidate, ...], Pool]:
    """Return the components, what was tried, and how the components are combined."""
    fields = node.fields(("members", "trials"), (_POOL,))
    pool = _read_pool(fields[_POOL]) if _POOL in fields else Pool.LINEAR
    shares = tuple(_read_share(item, pool) for item in fields["members"].items())
    weights = [share.weight for share in shares]
    if not shares or any(a < b for a, b in pairwise(weights)):
        fields["members"].fail("there are components, whose weights fall")
    if pool is Pool.LINEAR and abs(sum(weights) - 1.0) > _ENSEMBLES_ROUNDING:
        fields["members"].fail("the weights of components sum to 1")
    if sum(share.families for share in shares) != n_families:
        fields["members"].fail(f"the components do not have the {n_families} families of the model")
    return shares, tuple(_read_trial(item, pool) for item in fields["trials"].items()), pool


def _read_pool(node: Node) -> Pool:
    if node.value != Pool.LOGARITHMIC.value:
        node.fail(f"a pool is {Pool.LOGARITHMIC.value}, or the key is not there")
    return Pool.LOGARITHMIC


def _read_share(node: Node, pool: Pool) -> ComponentShare:
    fields = node.fields(("name", "weight", "families"))
    return ComponentShare(fields["name"].text(), _weight(fields["weight"], pool, 1e-300), fields["families"].integer(0))


def _read_trial(node: Node, pool: Pool) -> TriedCandidate:
    fields = node.fields(("name", "lambda", "log_loss", "error", "weight"))
    penalty = fields["lambda"].number()
    if penalty <= 0:
        fields["lambda"].fail("a penalty is above 0")
    losses = fields["log_loss"].number(), _share(fields["error"])
    return TriedCandidate(fields["name"].text(), penalty, *losses, _weight(fields["weight"], pool))


def _weight(node: Node, pool: Pool, least: float = 0.0) -> float:
    if pool is Pool.LINEAR:
        return _share(node, least)
    number = node.number()
    if not least <= number <= _HEAVIEST:
        node.fail(f"a weight lies between 0 and {_HEAVIEST:g}")
    return number


def _share(node: Node, least: float = 0.0) -> float:
    number = node.number()
    if not least <= number <= 1.0 + _ENSEMBLES_ROUNDING:
        node.fail("a share lies between 0 and 1")
    return number


_STEPS_JSON_ROUNDING = 1e-9
_MOST = 1 << 20
"""No counting number changes by more, where a region has up to 16 attributes."""


def steps_json(steps: Sequence[PathStep], schema: Schema) -> dict[str, Any]:
    """Return the key `steps`."""
    return {"steps": [_step_json(step, schema) for step in steps]}


def _step_json(step: PathStep, schema: Schema) -> dict[str, Any]:
    return {
        "region": [schema.attributes[i].name for i in step.region],
        "changes": [[int(family), int(change)] for family, change in step.changes],
        "df": int(step.df),
        "log_likelihood": float(step.log_likelihood),
        "log_posterior": posterior_json(step.log_posterior),
        "weight": float(step.weight),
    }


def read_steps(node: Node, schema: Schema, families: Sequence[Family]) -> tuple[PathStep, ...]:
    """Return what `steps_json` wrote; `families` are those of the path."""
    listed = node.fields(("steps",))["steps"]
    steps = tuple(_read_step(item, schema, families) for item in listed.items())
    if not abs(math.fsum(step.weight for step in steps) - 1.0) <= _STEPS_JSON_ROUNDING:
        listed.fail("the weights of the steps do not sum to 1")
    return steps


def _read_step(node: Node, schema: Schema, families: Sequence[Family]) -> PathStep:
    fields = node.fields(("region", "changes", "df", "log_likelihood", "log_posterior", "weight"))
    index = {attribute.name: i for i, attribute in enumerate(schema.attributes)}
    names = fields["region"].texts()
    if not all(name in index for name in names):
        fields["region"].fail("a region is made of attributes of the schema")
    region = tuple(index[name] for name in names)
    weight, posterior = fields["weight"].number(), fields["log_posterior"]
    if weight < 0:
        fields["weight"].fail("a weight cannot be negative")
    return PathStep(
        region,
        tuple(_read_change(item, region, families) for item in fields["changes"].items()),
        fields["df"].integer(0),
        fields["log_likelihood"].number(),
        -math.inf if posterior.value is None else posterior.number(),
        weight,
    )


def _read_change(node: Node, region: tuple[int, ...], families: Sequence[Family]) -> tuple[int, int]:
    numbers = [item.integer(-_MOST) for item in node.items()]
    if len(numbers) != 2 or not -1 <= numbers[0] < len(families) or numbers[1] > _MOST:
        node.fail("a change is the number of a family, or -1 for the class, and a small whole number")
    family, change = numbers
    if family >= 0 and not set(families[family].attributes) <= set(region):
        node.fail("a step changes only families inside its region")
    return family, change


CHOSEN = "penalty_cv"
"""A key of models whose penalty was chosen by cross-validation, since version 2."""
RESTARTS = "restarts"
"""A key of models that random starts were tried for."""
_FAR, _PREDICTORS_ROUNDING = 1e4, 1e-6
"""No log probability of a submodel lies so far below 0; their sum may be so far from 1."""


class PredictorHeader(NamedTuple):
    """What a file says before its predictor: the families are those of all its tables, in their order."""

    schema: Schema
    structure: Structure
    families: tuple[Family, ...]


class PredictorPlan(NamedTuple):
    """A predictor without its arrays: the shape of the bias, and what makes the predictor of them.

    `build` takes the bias, the tables, and `fail`, which refuses the archive for a reason.
    """

    bias_shape: tuple[int, ...]
    build: Callable[[Array, tuple[Array, ...], Callable[[str], Any]], Predictor]


class PredictorCodec(NamedTuple):
    """How a kind of predictor is stored: `key` marks it in `model.json` ("": none does) and holds what `to_json` says.

    arrays: the bias, then one array a family. `read` takes all keys of the file and fails for what does not fit.
    """

    key: str
    to_json: Callable[[Any, Schema], dict[str, Any]]
    arrays: Callable[[Any], tuple[Array, ...]]
    read: Callable[[Mapping[str, Node], PredictorHeader], PredictorPlan]


def predictor_json(predictor: Predictor, schema: Schema) -> dict[str, Any]:
    """Return the key that marks the kind, if it has one, with what it holds."""
    codec = CODECS[type(predictor)]
    return {codec.key: codec.to_json(predictor, schema)} if codec.key else {}


def predictor_arrays(predictor: Predictor) -> tuple[Array, ...]:
    """Return the bias, then one array a family."""
    return CODECS[type(predictor)].arrays(predictor)


def read_predictor(fields: Mapping[str, Node], frame: PredictorHeader) -> PredictorPlan:
    """Return what the keys of a file say of its predictor; ModelError where that does not fit the rest."""
    # The last kind first: an ensemble refuses the keys of the others, a path has no such quarrel with tables.
    found = next(codec for codec in reversed(CODECS.values()) if not codec.key or codec.key in fields)
    return found.read(fields, frame)


def _no_json(tables: Tables, schema: Schema) -> dict[str, Any]:
    return {}


def _arrays_of_tables(tables: Tables) -> tuple[Array, ...]:
    return (tables.bias, *tables.weights)


def _read_tables(fields: Mapping[str, Node], frame: PredictorHeader) -> PredictorPlan:
    return PredictorPlan((len(frame.schema.labels),), lambda bias, weights, fail: Tables(bias, frame.families, weights))


def _path_json(path: Path, schema: Schema) -> dict[str, Any]:
    return steps_json(path.steps, schema)


def _arrays_of_path(path: Path) -> tuple[Array, ...]:
    return (path.class_logs, *path.logs)


def _read_path(fields: Mapping[str, Node], frame: PredictorHeader) -> PredictorPlan:
    """Return the steps of a path; its families are regions, ascending like every region."""
    node, families = fields[_PATH.key], frame.families
    if isinstance(frame.structure, Dag):
        node.fail("a Bayesian network does not grow region by region")
    if any(f.child is not None or f.groupings or list(f.attributes) != sorted(f.attributes) for f in families):
        node.fail("the tables of a path are those of regions, their attributes as cut and in the order of the schema")
    steps = read_steps(node, frame.schema, families)

    def build(bias: Array, weights: tuple[Array, ...], fail: Callable[[str], Any]) -> Path:
        for name, array in zip(array_names(len(weights)), (bias, *weights), strict=True):
            if not _are_log_probabilities(array):
                fail(f"{name} does not hold the logarithms of probabilities that sum to 1")
        return Path(bias, families, weights, steps)

    return PredictorPlan((len(frame.schema.labels),), build)


def _are_log_probabilities(array: Array) -> bool:
    """Check log-probabilities before taking exp: forged numbers would overflow."""
    if array.min() < -_FAR or array.max() > _PREDICTORS_ROUNDING:
        return False
    return abs(float(np.exp(array).sum()) - 1.0) <= _PREDICTORS_ROUNDING


def _ensemble_json(ensemble: Ensemble, schema: Schema) -> dict[str, Any]:
    return ensemble_json(ensemble)


def _arrays_of_ensemble(ensemble: Ensemble) -> tuple[Array, ...]:
    biases = np.stack([component.tables.bias for component in ensemble.components])
    return (biases, *(table for component in ensemble.components for table in component.tables.weights))


def _read_ensemble(fields: Mapping[str, Node], frame: PredictorHeader) -> PredictorPlan:
    node = fields[_ENSEMBLE.key]
    if _PATH.key in fields or CHOSEN in fields:
        node.fail("an ensemble has neither steps nor one penalty")
    if frame.schema.marginalizes:
        node.fail("with an ensemble missing values cannot be marginalized")
    shares, trials, pool = read_ensemble(node, len(frame.families))

    def build(biases: Array, weights: Sequence[Array], fail: Callable[[str], Any]) -> Ensemble:
        components, first = [], 0
        for bias, share in zip(biases, shares, strict=True):
            own = slice(first, first + share.families)
            tables = Tables(bias, frame.families[own], tuple(weights[own]))
            components.append(Component(share.weight, tables, share.name))
            first = own.stop
        return Ensemble(tuple(components), trials, pool)

    return PredictorPlan((len(shares), len(frame.schema.labels)), build)


def array_names(n_tables: int) -> list[str]:
    """Return the names of the bias and of so many tables in the archive."""
    return ["bias.npy", *(f"tables/{f}.npy" for f in range(n_tables))]


_PATH = PredictorCodec("path", _path_json, _arrays_of_path, _read_path)
_ENSEMBLE = PredictorCodec("blend", _ensemble_json, _arrays_of_ensemble, _read_ensemble)
CODECS: dict[type, PredictorCodec] = {
    Tables: PredictorCodec("", _no_json, _arrays_of_tables, _read_tables),
    Path: _PATH,
    Ensemble: _ENSEMBLE,
}
"""Every kind of predictor; the keys `path` and `blend` are there since version 4."""
KEYS = tuple(codec.key for codec in CODECS.values() if codec.key)
