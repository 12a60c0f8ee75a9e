"""An option that would have no effect is an error: proved over the whole catalogue by running it.

Every method of every choice stands in some recipes, made by `recipes_with`. With each of them, each learning option
is typed with the values that its kind suggests: either `Recipe.of` refuses them all, or two models differ, on some
small table, in what scores (cuts, structure or numbers) or decides. What a recipe records plays no part. There are no
exceptions but one rule: where an option is refused with every value but the one that it has anyway, that one may be
typed. Limits of time are kept by a clock that counts how often it is asked. A new method or option is examined
without a new test.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from bncli.catalogue import (
    CHOICES,
    LEARNING,
    MARGINALIZED,
    MISSING_POLICIES,
    OPTIMIZERS,
    OPTIONS,
    PARAMETERS,
    SCORES,
    STRUCTURES,
)
from bncli.catalogue.choices import Choice, Method, Option, key_of
from bncli.catalogue.option_kinds import (
    ClassPairPrior,
    ClassWeights,
    ColumnNames,
    Costs,
    DomainKnowledge,
    Integer,
    Label,
    NumberChoice,
    Real,
    Switch,
    ThresholdRule,
    Word,
)
from bncli.engine.data.columns import CategoricalColumn, Columns, NumericColumn
from bncli.engine.learn import learn
from bncli.engine.model import Ensemble, Model, Path
from bncli.engine.structures.structure import Dag
from bncli.errors import BncliError, UsageError
from bncli.recipe import Recipe
from bncli.watch import Run
from tests.datasets import dense_dataset, random_dataset

FLAGS = tuple(entry.flag for entry in LEARNING)

QUICK = {"penalty": "0.1", "max_iterations": 10}
"""Beside every option but themselves: a penalty by cross-validation takes ten times as long."""


@pytest.fixture(autouse=True, scope="module")
def little_work() -> Iterator[None]:
    """A limit of time is used for more boosted trees: some more are enough to tell, and so are some sweeps of hdp."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bncli.engine.ensembles.auto.MOST_MEMBERS", 3)
        patch.setattr("bncli.engine.parameters.generative.MAX_SWEEPS", 10)
        yield


# --- tables ---------------------------------------------------------------------------------------------------------


def irregular(n_rows: int, n_labels: int, seed: int) -> Columns:
    """Skewed numbers, related categories and missing values of both."""
    rng = np.random.default_rng(seed)
    coded = random_dataset(n_rows, (3, 2, 4), n_labels, seed=seed)
    labels = coded.labels.astype(np.int64)
    columns: dict[str, Any] = {}
    for name, shift in (("age", 1.0), ("dose", 0.4)):
        values = np.round(np.exp(shift * labels + rng.normal(size=n_rows)), 2)
        values[rng.random(n_rows) < 0.1] = np.nan
        columns[name] = NumericColumn(values)
    for i, codes in enumerate(coded.codes):
        kept = np.where(rng.random(n_rows) < 0.1, -1, codes.astype(np.int64))
        columns[f"c{i}"] = CategoricalColumn(kept, tuple("abcd"[: int(codes.max()) + 1]))
    names = tuple(f"y{y}" for y in range(n_labels))
    return Columns(n_rows, columns, "class", CategoricalColumn(labels, names))


def regular() -> Columns:
    """Every combination of three attributes and two classes once."""
    data = dense_dataset((2, 3, 2), 2, copies=1)
    return _categorical([*data.codes], data.labels)


def related() -> Columns:
    """One attribute tells whether two others differ, another follows three; of a further two some are missing."""
    rng = np.random.default_rng(1)
    a, b, c = rng.integers(0, 2, (3, 200))
    d = np.where(rng.random(200) < 0.1, rng.integers(0, 2, 200), a ^ b)
    e = np.where(rng.random(200) < 0.1, rng.integers(0, 2, 200), (a + b + c) // 2)
    labels = np.where(rng.random(200) < 0.4, rng.integers(0, 2, 200), d | c)
    f = rng.integers(0, 2, 200)
    g = np.where(rng.random(200) < 0.1, 1 - f, f)
    known = [np.where(rng.random(200) < 0.15, -1, codes) for codes in (f, g)]
    return _categorical([a, b, c, d, e, *known], labels)


def _categorical(codes: list[Any], labels: Any) -> Columns:
    levels = [tuple(map(str, range(int(c.max()) + 1))) for c in codes]
    columns = {f"a{i}": CategoricalColumn(c.astype(np.int64), levels[i]) for i, c in enumerate(codes)}
    return Columns(len(labels), columns, "class", CategoricalColumn(labels.astype(np.int64), ("no", "yes")))


def falling() -> Columns:
    """The first table with its numbers turned round: where the class is the second they are low."""
    columns = irregular(120, 2, 3)
    turned = {name: NumericColumn(-c.values) for name, c in columns.attributes.items() if isinstance(c, NumericColumn)}
    return replace(columns, attributes={**columns.attributes, **turned})


def lone(sign: float) -> Columns:
    """One numeric attribute, with which the second class gets more frequent (sign 1) or rarer (-1)."""
    one = stairs()
    codes = one.attributes["a0"].codes
    return replace(one, attributes={"dose": NumericColumn(sign * codes)}, label=replace(one.label, levels=("y0", "y1")))


def stairs() -> Columns:
    """One attribute of five levels; in each, another share of the rows is of the second class: the rows of a card."""
    codes = np.repeat(np.arange(5), 60)
    labels = np.arange(300) % 60 < np.repeat([2, 15, 30, 45, 58], 60)
    return _categorical([codes], labels)


TABLES = (irregular(120, 2, 3), related(), irregular(90, 3, 5), regular(), falling(), stairs(), lone(1.0), lone(-1.0))


# --- values that follow from the kind of an option ------------------------------------------------------------------


def values_of(entry: Choice | Option) -> list[Any]:
    """Some values of an option, those far from the default first."""
    if isinstance(entry, Choice):
        numbered = [f"{m.word}:{7 * float(m.number):g}" for m in entry.methods if m.number]
        return [*numbered, *entry.words]
    kind = entry.kind
    if isinstance(kind, Word):
        return list(kind.words)
    if isinstance(kind, NumberChoice):
        return list(kind.numbers)
    if isinstance(kind, Switch):
        return [True]
    if isinstance(kind, Costs):
        return ["y0:y1=1,y1:y0=5", "0:1=1,1:0=5"]
    if isinstance(kind, ThresholdRule):
        return ["0.9", *kind.words]
    if isinstance(kind, ClassWeights):
        return list(kind.words)
    if isinstance(kind, ClassPairPrior):
        return ["1,1000", "3,0.5", "beta,2,5:1000"]
    if isinstance(kind, Real):
        tried = [100.0, 1.0, 0.1, 1e-3, 0.0, *kind.words]
        return [value for value in tried if _is_parsed(kind, value)]
    if isinstance(kind, ColumnNames):
        return ["dose", ["age", "dose"]]
    if isinstance(kind, DomainKnowledge):
        return [{"no_interaction": [["a0", "*"], ["a2", "*"]]}, {"max_parents": 0}, {"max_parents": 1}]
    if isinstance(kind, Label):
        return ["y0", "y2"]
    if kind.words:
        return [kind.least, *kind.words, kind.least + 1]
    if entry.flag == "--rows":
        return [4, 100]  # fewer are for cards without --columns
    usual = int(entry.default or kind.least)
    tried = [kind.least, usual + 1, usual - 1, kind.least + 1, 2 * usual, usual, min(kind.most, 100)]
    return [value for value in dict.fromkeys(tried) if _is_parsed(kind, value)]


def _is_parsed(kind: Integer | Real, value: object) -> bool:
    try:
        kind.parse(value)
    except ValueError:
        return False
    return True


# --- recipes that hold a method -------------------------------------------------------------------------------------


def recipes_with(choice: Choice, method: Method) -> list[dict[str, Any]]:
    """The words of recipes in which `method` has a part: it alone, and with methods that it has to go with."""
    word = {key_of(choice.flag): method.word}
    if choice is STRUCTURES:
        return [word, *(word | {"param": param} for param in method.params[1:]), *at_the_least(word, method)]
    if choice is PARAMETERS and not method.networks:
        return [{"structure": s.word} | word for s in STRUCTURES.methods if method.word in s.params]
    if choice is PARAMETERS and "--penalty" in method.options:
        return [word, *([word | {"init": "generative"}] if method.start_options else []), word | {"penalty": "0"}]
    if choice is SCORES:
        takers = [s.word for s in STRUCTURES.methods if SCORES.flag in s.options]
        return [{"structure": taker, "param": "map"} | word for taker in takers]
    if choice is OPTIMIZERS:
        takers = [p.word for p in PARAMETERS.methods if OPTIMIZERS.flag in p.options]
        first, step = (
            choice.methods.index(method),
            len(choice.methods),
        )  # all parameters beside one optimizer or another
        return [word | {"param": param} for param in takers[first % len(takers) :: step]]
    if choice is MISSING_POLICIES and method.word == "marginalize":
        return [word | {"param": param} for param in MARGINALIZED]
    return [word]


def at_the_least(word: dict[str, Any], method: Method) -> list[dict[str, Any]]:
    """The method with each whole number of its own at the lower bound and above it, where others may lose their effect.

    The default is not repeated.
    """
    recipes = []
    for entry in OPTIONS:
        if entry.flag in method.keyword_options and isinstance(entry.kind, Integer):
            both = (entry.kind.least, entry.kind.least + 1)
            recipes += [word | {key_of(entry.flag): n} for n in both if str(n) != entry.default]
    return recipes


def is_refused(words: Mapping[str, Any]) -> bool:
    try:
        Recipe.of(**words)
    except UsageError:
        return True
    return False


def cases_with(choice: Choice, method: Method) -> list[Any]:
    """Every method beside whatever it goes with is a sweep: one recipe of each is enough in the usual run.

    So are the structures and the parameters, which have most options of their own, and the first of everything else.
    Structures that take longest are a sweep too.
    """
    recipes = [words for words in recipes_with(choice, method) if not is_refused(words)]
    usual = [words for words in recipes if words.get("param") == PARAMETERS.default] or recipes
    is_usual = choice in (STRUCTURES, PARAMETERS) or method is choice.methods[0]
    is_usual = is_usual and not (choice is STRUCTURES and method.word in ("auto", "gbn", "interactions", "skdb"))
    return [case(words, is_sweep=not is_usual or words is not usual[0]) for words in recipes]


def case(words: Mapping[str, Any], is_sweep: bool = False) -> Any:
    marks = [pytest.mark.slow] if is_sweep else []
    return pytest.param(words, id=" ".join(f"{key}={value}" for key, value in words.items()), marks=marks)


DEAR = {"--arcs", "--increasing", "--decreasing", "--towards", "--time-limit"}
"""Cross-validation, optima under constraints and bags of trees: tried in the sweep, beside the learners."""


CASES = [one for choice in CHOICES for method in choice.methods for one in cases_with(choice, method)]
LEARNERS = [
    one for choice in (STRUCTURES, PARAMETERS) for method in choice.methods for one in cases_with(choice, method)
]
PAIRS = [case({"structure": one, "param": other}) for one in STRUCTURES.words for other in PARAMETERS.words]


# --- the proof ------------------------------------------------------------------------------------------------------


def accepted(words: Mapping[str, Any], entry: Choice | Option) -> list[Recipe]:
    """The recipes with a value of the option that are not refused."""
    key = key_of(entry.flag)
    recipes = []
    for value in values_of(entry):
        try:
            recipes.append(quick({**words, key: value}))
        except UsageError:
            continue
    return recipes


def quick(words: dict[str, Any]) -> Recipe:
    """The recipe, with a penalty that is typed and few iterations where it takes them."""
    typed = found = Recipe.of(**words)
    for key, value in QUICK.items():
        takes = getattr(typed, key) is not None and not (key == "penalty" and typed.early_stop == "cv")
        if takes and key not in words:
            with suppress(UsageError):
                found = Recipe.of(**words, **{key: value})
                words = words | {key: value}
    return found


def has_effect(recipes: list[Recipe], first: int = 0) -> bool:
    """Whether two of the recipes give models that differ in what scores, on the `first` table or one of the others."""
    if len({*recipes}) < 2:
        return False
    recipes = sorted(recipes, key=lambda recipe: recipe.structure == "auto")  # which takes longest
    for table in sorted(range(len(TABLES)), key=lambda table: table != first):
        found: dict[Recipe, Any] = {}
        for recipe in recipes:
            outcome = scorer(recipe, table)
            if outcome is not None and any(not same(outcome, other) for other in found.values()):
                return True
            if outcome is not None:
                found[recipe] = outcome
    return False


@cache
def scorer(recipe: Recipe, table: int) -> Any:
    """What scores: cuts, structure and numbers; None where the rows do not allow such a model."""
    seconds = itertools.count()
    try:
        model = learn(TABLES[table], recipe, run=Run(clock=lambda: float(next(seconds)))).model
    except BncliError:
        return None
    return _content(model)


def _content(model: Model) -> tuple[Any, list[np.ndarray]]:
    cut = tuple((a.name, a.missing, getattr(a, "cuts", ()), getattr(a, "levels", ())) for a in model.schema.attributes)
    graph = model.structure
    nodes = (graph.parents, graph.class_children, graph.class_parents) if isinstance(graph, Dag) else graph.regions
    shape = (nodes, model.rule)
    predictor = model.predictor
    if isinstance(predictor, Ensemble):
        return (cut, shape), [np.concatenate([[one.weight], *_flat(one.tables)]) for one in predictor.components]
    if isinstance(predictor, Path):
        steps = np.array([step.weight for step in predictor.steps])
        return (cut, shape), [steps, predictor.class_logs, *(logs.ravel() for logs in predictor.logs)]
    return (cut, shape, predictor.families), _flat(predictor)


def _flat(tables: Any) -> list[np.ndarray]:
    return [tables.bias, *(w.ravel() for w in tables.weights)]


def same(one: Any, other: Any) -> bool:
    """Equal but for rounding."""
    (shape, arrays), (other_shape, other_arrays) = one, other
    if shape != other_shape or [a.shape for a in arrays] != [a.shape for a in other_arrays]:
        return False
    return all(np.allclose(a, b, rtol=1e-12, atol=1e-12) for a, b in zip(arrays, other_arrays, strict=True))


PROVED_ELSEWHERE = {"--restarts", "--calibrate", "--prior-network"}
"""The first changes the model only where the usual start misses the best optimum
(tests/engine/parameters/test_optimization), the second takes every model and changes no table
(tests/engine/prediction/test_out_of_fold), the third takes a file (tests/cli/test_prior_network)."""


TELLING = {"--forest": 3, "--knowledge": 1, "--increasing": 4, "--rows": 5}
"""The table on which an option shows soonest, where it is not the first."""


def verdicts(words: Mapping[str, Any], flags: Collection[str] = FLAGS) -> Iterator[tuple[str, bool]]:
    """The options among `flags` that are not refused beside `words`, and whether they have an effect."""
    for entry in LEARNING:
        if key_of(entry.flag) in words or entry.flag not in flags or entry.flag in PROVED_ELSEWHERE:
            continue
        typed, untyped = accepted(words, entry), quick(dict(words))
        if typed and typed != [untyped]:  # where every other value is refused, the one that it has may be typed
            # what is untyped is learned once for all options
            yield entry.flag, has_effect(list(dict.fromkeys([untyped, *typed])), TELLING.get(entry.flag, 0))


@pytest.mark.parametrize("words", CASES)
def test_every_option_is_refused_or_has_an_effect(words: dict[str, Any]) -> None:
    idle = {flag for flag, effective in verdicts(words, {*FLAGS} - DEAR) if not effective}
    assert idle == set()


@pytest.mark.slow
@pytest.mark.parametrize("words", LEARNERS)
def test_every_dear_option_is_refused_or_has_an_effect(words: dict[str, Any]) -> None:
    idle = {flag for flag, effective in verdicts(words, DEAR) if not effective}
    assert idle == set()


@pytest.mark.parametrize("words", PAIRS)
def test_a_structure_and_parameters_are_refused_or_fit_and_so_is_every_option_of_the_two(words: dict[str, Any]) -> None:
    if is_refused(words):
        return
    assert any(scorer(quick(words), table) is not None for table in range(len(TABLES)))
    method = PARAMETERS.method(words["param"])
    assert method is not None
    flags = {*method.keyword_options} - (DEAR if words["structure"] == "auto" else set())  # the pair is a case above
    idle = {flag for flag, effective in verdicts(words, flags) if not effective}
    assert idle == EXCEPTIONS.get((words["structure"], words["param"]), set())


EXCEPTIONS = {("nb", "em"): {"--tolerance", "--max-iterations"}}
"""Naive Bayes starts at the fixed point of em, for the class is always known; who changes the structure alone should
not have to take options away. Listed are all: one that has an effect after all is an error too.
"""


@pytest.mark.parametrize(
    "param",
    [
        pytest.param(method.word, marks=[pytest.mark.slow] if method.word == "auto" else [])
        for method in PARAMETERS.methods
        if "--towards" in method.options
    ],
)
def test_the_label_of_directions_has_an_effect_beside_them(param: str) -> None:
    """Alone it is refused, so that the proof above never meets it."""
    structures = {"auto": {"structure": "auto", "effort": 1}, "points": {"structure": "card"}}
    words = {"param": param} | structures.get(param, {"structure": "nb"})
    assert is_refused(words | {"towards": "y0"})
    column = "age" if param == "points" else "dose"  # a card looks at few columns
    recipes = [quick(words | {"increasing": [column], "towards": label}) for label in ("y0", "y2")]
    assert has_effect(recipes, 2)  # the table of three labels


@pytest.mark.parametrize(
    ("param", "key", "values"),
    [
        ("discriminative", "smoothing", ("laplace:50", "mle")),
        ("lr", "smoothing", ("laplace:50", "mle")),
        ("weighted", "penalty_center", (0.0, 1.0)),
    ],
)
def test_the_proof_finds_an_option_without_effect(param: str, key: str, values: tuple[Any, ...]) -> None:
    penalty = "0" if key == "penalty_center" else "0.1"
    recipe = Recipe.of(structure="nb", param=param, penalty=penalty, init="zero", max_iterations=5)
    assert not has_effect([recipe.replaced(**{key: value}) for value in values])
    assert has_effect([recipe, recipe.replaced(max_iterations=1)])
