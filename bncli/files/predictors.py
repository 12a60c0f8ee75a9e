"""Predictors in a model file, a codec a kind: what `model.json` says of one, and how its arrays are laid out.

The key of its codec marks the kind; tables have none. `bias.npy` and `tables/<f>.npy`, one array a family, hold

    tables      the bias (K,), and the tables
    path        the logarithms of the probabilities of the class (K,), and of each region with the class, out of which
                scoring makes its tables
    ensemble    the biases (components, K), and the tables of all components, one component after the other

Conventions: a codec is read in two steps, so that the shape of every array is known before a byte of one is read:
first the description, then, by the function that this leaves behind, the arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bncli.engine.data.schema import Schema
from bncli.engine.kernels.arrays import Array
from bncli.engine.model import Component, Ensemble, Path, Predictor, Tables
from bncli.engine.structures.structure import Dag, Family, Structure
from bncli.files.documents import Node
from bncli.files.ensembles import ensemble_json, read_ensemble
from bncli.files.steps_json import read_steps, steps_json

CHOSEN = "penalty_cv"
"""A key of models whose penalty was chosen by cross-validation, since version 2."""
RESTARTS = "restarts"
"""A key of models that random starts were tried for."""
_FAR, _ROUNDING = 1e4, 1e-6
"""No log probability of a submodel lies so far below 0; their sum may be so far from 1."""


class Frame(NamedTuple):
    """What a file says before its predictor: the families are those of all its tables, in their order."""

    schema: Schema
    structure: Structure
    families: tuple[Family, ...]


class Pending(NamedTuple):
    """A predictor without its arrays: the shape of the bias, and what makes the predictor of them.

    `build` takes the bias, the tables, and `fail`, which refuses the archive for a reason.
    """

    bias_shape: tuple[int, ...]
    build: Callable[[Array, tuple[Array, ...], Callable[[str], Any]], Predictor]


class Codec(NamedTuple):
    """How a kind of predictor is stored: `key` marks it in `model.json` ("": none does) and holds what `to_json` says.

    arrays: the bias, then one array a family. `read` takes all keys of the file and fails for what does not fit.
    """

    key: str
    to_json: Callable[[Any, Schema], dict[str, Any]]
    arrays: Callable[[Any], tuple[Array, ...]]
    read: Callable[[Mapping[str, Node], Frame], Pending]


def predictor_json(predictor: Predictor, schema: Schema) -> dict[str, Any]:
    """The key that marks the kind, if it has one, with what it holds."""
    codec = CODECS[type(predictor)]
    return {codec.key: codec.to_json(predictor, schema)} if codec.key else {}


def predictor_arrays(predictor: Predictor) -> tuple[Array, ...]:
    """The bias, then one array a family."""
    return CODECS[type(predictor)].arrays(predictor)


def read_predictor(fields: Mapping[str, Node], frame: Frame) -> Pending:
    """What the keys of a file say of its predictor; ModelError where that does not fit the rest."""
    # The last kind first: an ensemble refuses the keys of the others, a path has no such quarrel with tables.
    found = next(codec for codec in reversed(CODECS.values()) if not codec.key or codec.key in fields)
    return found.read(fields, frame)


def _no_json(tables: Tables, schema: Schema) -> dict[str, Any]:
    return {}


def _arrays_of_tables(tables: Tables) -> tuple[Array, ...]:
    return (tables.bias, *tables.weights)


def _read_tables(fields: Mapping[str, Node], frame: Frame) -> Pending:
    return Pending((len(frame.schema.labels),), lambda bias, weights, fail: Tables(bias, frame.families, weights))


def _path_json(path: Path, schema: Schema) -> dict[str, Any]:
    return steps_json(path.steps, schema)


def _arrays_of_path(path: Path) -> tuple[Array, ...]:
    return (path.class_logs, *path.logs)


def _read_path(fields: Mapping[str, Node], frame: Frame) -> Pending:
    """The steps of a path; its families are regions, ascending like every region."""
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

    return Pending((len(frame.schema.labels),), build)


def _are_log_probabilities(array: Array) -> bool:
    """Checked before exp is taken of it: forged numbers would overflow."""
    if array.min() < -_FAR or array.max() > _ROUNDING:
        return False
    return abs(float(np.exp(array).sum()) - 1.0) <= _ROUNDING


def _ensemble_json(ensemble: Ensemble, schema: Schema) -> dict[str, Any]:
    return ensemble_json(ensemble)


def _arrays_of_ensemble(ensemble: Ensemble) -> tuple[Array, ...]:
    biases = np.stack([component.tables.bias for component in ensemble.components])
    return (biases, *(table for component in ensemble.components for table in component.tables.weights))


def _read_ensemble(fields: Mapping[str, Node], frame: Frame) -> Pending:
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

    return Pending((len(shares), len(frame.schema.labels)), build)


def array_names(n_tables: int) -> list[str]:
    """The names of the bias and of so many tables in the archive."""
    return ["bias.npy", *(f"tables/{f}.npy" for f in range(n_tables))]


_PATH = Codec("path", _path_json, _arrays_of_path, _read_path)
_ENSEMBLE = Codec("blend", _ensemble_json, _arrays_of_ensemble, _read_ensemble)
CODECS: dict[type, Codec] = {
    Tables: Codec("", _no_json, _arrays_of_tables, _read_tables),
    Path: _PATH,
    Ensemble: _ENSEMBLE,
}
"""Every kind of predictor; the keys `path` and `blend` are there since version 4."""
KEYS = tuple(codec.key for codec in CODECS.values() if codec.key)
