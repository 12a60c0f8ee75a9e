"""An ensemble in a model file, under the key `blend`: how its tables are shared out, and what was tried.

    {"members": [{"name": "pairs", "weight": 0.7, "families": 12}, ...],
     "trials": [{"name": "pairs", "lambda": 3.0, "log_loss": 0.31, "error": 0.14, "weight": 0.7}, ...]}

With `"pool": "logarithmic"`, since version 5, log-odds are added up with the weights in place of probabilities, and the
weights have any sum; models without the key are linear pools, whose weights sum to 1.

The tables of the components (`members`) follow one another in the file, so many families each; `bias.npy` has a row for
each. The heaviest component comes first. Trials are all candidates, those without a weight included.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from bncli.engine.model import Ensemble, Pool, TriedCandidate
from bncli.files.documents import Node

_ROUNDING = 1e-9
_POOL = "pool"
_HEAVIEST = 1e3


class Share(NamedTuple):
    """A component without its tables: it has the next `families` of them."""

    name: str
    weight: float
    families: int


def ensemble_json(ensemble: Ensemble) -> dict[str, Any]:
    """What `read_ensemble` reads."""
    components = [
        {"name": one.name, "weight": float(one.weight), "families": len(one.tables.families)}
        for one in ensemble.components
    ]
    pool = {} if ensemble.pool is Pool.LINEAR else {_POOL: ensemble.pool.value}
    return {"members": components, "trials": trials_json(ensemble.trials)} | pool


def trials_json(trials: Sequence[TriedCandidate]) -> list[dict[str, Any]]:
    """Every candidate with its best penalty, its losses there and its weight."""
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


def read_ensemble(node: Node, n_families: int) -> tuple[tuple[Share, ...], tuple[TriedCandidate, ...], Pool]:
    """The components, which have so many families in all, what was tried, and how the components are combined."""
    fields = node.fields(("members", "trials"), (_POOL,))
    pool = _read_pool(fields[_POOL]) if _POOL in fields else Pool.LINEAR
    shares = tuple(_read_share(item, pool) for item in fields["members"].items())
    weights = [share.weight for share in shares]
    if not shares or any(a < b for a, b in pairwise(weights)):
        fields["members"].fail("there are components, whose weights fall")
    if pool is Pool.LINEAR and abs(sum(weights) - 1.0) > _ROUNDING:
        fields["members"].fail("the weights of components sum to 1")
    if sum(share.families for share in shares) != n_families:
        fields["members"].fail(f"the components do not have the {n_families} families of the model")
    return shares, tuple(_read_trial(item, pool) for item in fields["trials"].items()), pool


def _read_pool(node: Node) -> Pool:
    if node.value != Pool.LOGARITHMIC.value:
        node.fail(f"a pool is {Pool.LOGARITHMIC.value}, or the key is not there")
    return Pool.LOGARITHMIC


def _read_share(node: Node, pool: Pool) -> Share:
    fields = node.fields(("name", "weight", "families"))
    return Share(fields["name"].text(), _weight(fields["weight"], pool, 1e-300), fields["families"].integer(0))


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
    if not least <= number <= 1.0 + _ROUNDING:
        node.fail("a share lies between 0 and 1")
    return number
