"""How a model was fitted, as JSON: its recipe, the penalties tried by cross-validation, and the random starts.

Recipe: one key per option of `fit`, read and written according to the option's kind in the catalogue.

Penalty chosen by cross-validation: `{"chosen": 3.0, "tried": [{"lambda": 10.0, "log_loss": 0.7}, ...]}`. Three keys are
present only if something else was chosen on the same held-out rows:

- `arcs`, the sets of arcs that were compared, from few arcs to many:
  `[{"arcs": "none", "n_arcs": 0, "lambda": 3.0, "log_loss": 0.6}, ...]`
- `structures`, the structures that were compared:
  `[{"structure": "tan", "lambda": 3.0, "log_loss": 0.6}, ...]`
- `shrunk`, the factor by which the log-odds of the tables were multiplied to shrink them towards the class frequencies:
  `{"factor": 0.4, "log_loss": 0.6}`

Random starts: `{"objectives": [-67.33, -67.32], "kept": 1, "best": -67.32, "spread": 0.01, "rows": "training"}`. The
usual start comes first; `kept` is the index of the best start.
"""

from __future__ import annotations

from typing import Any

from bncli.catalogue import DISCRETIZERS, KEYS, LEARNING, OMITTED_IF_NONE, STRUCTURES
from bncli.catalogue.choices import Choice, Option, key_of
from bncli.catalogue.option_kinds import ColumnNames, Integer, NumberChoice, Real, Switch
from bncli.engine.model import ARC_SETS, ChosenPenalty, Restarts, Shrinkage, TriedArcs, TriedPenalty, TriedStructure
from bncli.files.json_documents import Node
from bncli.recipe import Recipe

_ALWAYS_PRESENT = ("discretize", "structure", "param")
"""Keys that the recipe of every version has."""
_ENTRIES: dict[str, Choice | Option] = {key_of(entry.flag): entry for entry in LEARNING}
_ROWS = ("training", "held-out")


def recipe_json(recipe: Recipe) -> dict[str, Any]:
    """Return the options of a recipe by name.

    An option that takes floats is always written as a float, even if its value is whole, so that equal recipes give
    equal text.
    """
    written: dict[str, Any] = {}
    for key, value in recipe.as_dict().items():
        if value is None and key in OMITTED_IF_NONE:
            continue
        if isinstance(value, tuple):
            written[key] = list(value)
        elif isinstance(value, int | float) and not isinstance(value, bool) and _takes_floats(key):
            written[key] = float(value)
        else:
            written[key] = value
    return written


def _takes_floats(key: str) -> bool:
    kind = getattr(_ENTRIES.get(key), "kind", None)
    return isinstance(kind, Real) or (isinstance(kind, NumberChoice) and kind.type is float)


def read_recipe(node: Node) -> Recipe:
    """Return the recipe of a model; an option that did not exist when the model was written is None."""
    members = node.fields(_ALWAYS_PRESENT, [key for key in KEYS if key not in _ALWAYS_PRESENT])
    return Recipe.recorded(
        {
            key: None if member.value is None and key not in _ALWAYS_PRESENT else read_option(key, member)
            for key, member in members.items()
        }
    )


def read_option(key: str, node: Node) -> Any:
    """Return the value of the option `key`, checked against the option's kind; an unknown option is an integer."""
    entry = _ENTRIES.get(key)
    if isinstance(entry, Choice):
        word = node.text()
        if entry.method(word.split(":")[0]) is None and entry not in (DISCRETIZERS, STRUCTURES):
            node.fail(f"{word!r} is not one of {', '.join(map(repr, entry.words))}")
        return word
    kind = Integer() if entry is None else entry.kind
    value: Any
    if isinstance(kind, Real | Integer) and node.value in kind.words:
        value = node.value
    elif _takes_floats(key):
        value = node.number()
    elif isinstance(kind, Integer | NumberChoice):
        value = node.integer()
    elif isinstance(kind, ColumnNames):
        value = node.texts()
    else:
        value = node.flag() if isinstance(kind, Switch) else node.text()
    try:
        kind.parse(value)
    except ValueError as error:
        node.fail(str(error))
    return value


def penalty_json(penalty: ChosenPenalty) -> dict[str, Any]:
    """Return the chosen penalty and what was tried on the held-out rows, in the order of the trials."""
    arcs = {"arcs": arcs_json(penalty)} if penalty.arcs else {}
    shrunk = {} if penalty.shrinkage is None else {"shrunk": shrinkage_json(penalty)}
    structures = {"structures": structures_json(penalty)} if penalty.structures else {}
    return {"chosen": penalty.penalty, "tried": tried_json(penalty), **arcs, **structures, **shrunk}


def tried_json(penalty: ChosenPenalty) -> list[dict[str, float]]:
    """Return each penalty tried with its held-out log-loss in nats per row."""
    return [{"lambda": trial.penalty, "log_loss": trial.log_loss} for trial in penalty.tried]


def arcs_json(penalty: ChosenPenalty | None) -> list[dict[str, Any]]:
    """Return the sets of arcs that were compared on held-out rows; empty if there was no such choice."""
    arcs = () if penalty is None else penalty.arcs
    return [{"arcs": a.arcs, "n_arcs": a.n_arcs, "lambda": a.penalty, "log_loss": a.log_loss} for a in arcs]


def structures_json(penalty: ChosenPenalty | None) -> list[dict[str, Any]]:
    """Return the structures that were compared on held-out rows; empty if there was no such choice."""
    structures = () if penalty is None else penalty.structures
    return [{"structure": s.structure, "lambda": s.penalty, "log_loss": s.log_loss} for s in structures]


def shrinkage_json(penalty: ChosenPenalty | None) -> dict[str, float] | None:
    """Return the shrinkage factor and its held-out log-loss, or None if the tables were not shrunk."""
    return None if penalty is None or penalty.shrinkage is None else penalty.shrinkage._asdict()


def read_penalty(node: Node) -> ChosenPenalty:
    """Return the choice of the penalty that `penalty_json` wrote."""
    fields = node.fields(("chosen", "tried"), ("arcs", "structures", "shrunk"))
    tried = []
    for item in fields["tried"].items():
        trial = item.fields(("lambda", "log_loss"))
        tried.append(TriedPenalty(_positive_penalty(trial["lambda"]), trial["log_loss"].number()))
    arcs = []
    for item in fields["arcs"].items() if "arcs" in fields else []:
        choice = item.fields(("arcs", "n_arcs", "lambda", "log_loss"))
        log_loss = choice["log_loss"].number()
        word, n_arcs = choice["arcs"].choice(ARC_SETS), choice["n_arcs"].integer(0)
        arcs.append(TriedArcs(word, n_arcs, _positive_penalty(choice["lambda"]), log_loss))
    structures = []
    for item in fields["structures"].items() if "structures" in fields else []:
        tried_structure = item.fields(("structure", "lambda", "log_loss"))
        log_loss = tried_structure["log_loss"].number()
        word = tried_structure["structure"].choice(STRUCTURES.words)
        structures.append(TriedStructure(word, _positive_penalty(tried_structure["lambda"]), log_loss))
    shrinkage = None
    if "shrunk" in fields:
        shrunk = fields["shrunk"].fields(("factor", "log_loss"))
        factor = shrunk["factor"].number()
        if not 0 < factor < 1:
            shrunk["factor"].fail("a shrinkage factor must be between 0 and 1")
        shrinkage = Shrinkage(factor, shrunk["log_loss"].number())
    return ChosenPenalty(_positive_penalty(fields["chosen"]), tuple(tried), tuple(arcs), shrinkage, tuple(structures))


def _positive_penalty(node: Node) -> float:
    number = node.number()
    if number <= 0:
        node.fail("a penalty must be above 0")
    return number


def restarts_json(restarts: Restarts) -> dict[str, Any]:
    """Return the objective that each start of the optimizer reached, in nats, and which start was kept."""
    return {
        "objectives": list(restarts.objectives),
        "kept": restarts.best_start,
        "best": restarts.objectives[restarts.best_start],
        "spread": max(restarts.objectives) - min(restarts.objectives),
        "rows": _ROWS[restarts.held_out],
    }


def read_restarts(node: Node) -> Restarts:
    """Return the random starts that `restarts_json` wrote; fail if derived values do not follow from the objectives."""
    fields = node.fields(("objectives", "kept", "best", "spread", "rows"))
    objectives = tuple(item.number() for item in fields["objectives"].items())
    if len(objectives) < 2:
        fields["objectives"].fail("expected at least two starts")
    rows = fields["rows"].text()
    if rows not in _ROWS:
        fields["rows"].fail(f"the rows of objectives must be {' or '.join(_ROWS)}")
    restarts = Restarts(objectives, rows == _ROWS[True])
    if restarts_json(restarts) != {key: field.value for key, field in fields.items()}:
        node.fail("the best objective or the spread disagrees with the objectives")
    return restarts
