"""Check optimizations: reports, starts, optimizers, penalty and center, threads, separable rows."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.kernels.passes import MANY_CLASSES
from bncli.engine.model import Parameters, Restarts, StoppedBy
from bncli.engine.optimizers import quasi_newton
from bncli.engine.optimizers.objective import Step
from bncli.engine.parameter_learners.conditional import learn_extended
from bncli.engine.parameter_learners.missing_values import learn_em
from bncli.engine.parameters import likelihood, optimization
from bncli.engine.parameters.costs import free_table_flops, network_flops
from bncli.engine.parameters.effect_coding import EffectCoordinates
from bncli.engine.parameters.optimization import (
    OptimizerSettings,
    ParameterSpace,
    Problem,
    Starts,
    best_start,
    find_optimum,
    find_optimum_from,
    random_point,
    with_tolerance,
)
from bncli.engine.parameters.weighted_samples import Growth
from bncli.engine.structures.structure import Dag
from bncli.watch import Event, Iteration, Note, SelectedRun, silent
from tests.datasets import dataset_of, random_dataset
from tests.incomplete_oracle import with_missing
from tests.spaces import SPACES, catch, fit, how
from tests.sweeps import every_value

TAN = Dag(((), (0,), (0,)), (0, 1, 2))
every_space = pytest.mark.parametrize("name", SPACES)


@every_space
@pytest.mark.parametrize(("init", "center"), [("zero", 0.0), ("generative", 0.0), ("zero", 1.0)])
def test_the_trace_tells_likelihood_and_penalty_apart(name: str, init: str, center: float) -> None:
    data = random_dataset(100, (3, 2, 4), 3)
    caught = catch(name, data, TAN)
    start = np.zeros(caught.space.n_parameters) if init == "zero" else caught.space.generative
    events: list[Any] = []
    learnt = fit(name, data, TAN, watch=events.append, init=init, penalty=0.7, penalty_center=center)
    first = events[0]
    assert isinstance(first, Iteration)
    assert first.iteration == 0
    assert first.cll == pytest.approx(caught.cll(start), rel=1e-12)
    assert first.penalty == pytest.approx(0.35 * np.square(start - center).sum(), rel=1e-12)
    assert [event.iteration for event in events] == list(range(learnt.iterations + 1))
    assert events[-1].cll_evaluations == learnt.evaluations
    assert learnt.n_parameters == caught.space.n_parameters
    assert learnt.cll == events[-1].cll


@every_space
def test_both_starts_reach_the_same_penalised_optimum(name: str) -> None:
    data = random_dataset(150, (3, 2, 4), 3, weighted=True)
    reached = [fit(name, data, TAN, penalty=0.5, init=init) for init in ("zero", "generative")]
    assert reached[0].cll == pytest.approx(reached[1].cll, rel=1e-5)
    np.testing.assert_allclose(reached[0].tables.bias, reached[1].tables.bias, atol=1e-2)
    for one, other in zip(reached[0].tables.weights, reached[1].tables.weights, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-2)


@every_space
def test_weight_two_is_the_row_twice(name: str) -> None:
    data = random_dataset(80, (3, 2, 4), 3)
    times = np.random.default_rng(0).integers(1, 4, 80)
    repeated = data.take(np.repeat(np.arange(80), times))
    weighted = replace(data, weights=times.astype(float))
    one, other = (fit(name, d, TAN, penalty=1.0, max_iterations=5) for d in (repeated, weighted))
    assert one.cll_start == pytest.approx(other.cll_start, rel=1e-9)
    one, other = (fit(name, d, TAN, penalty=1.0) for d in (repeated, weighted))
    assert one.cll == pytest.approx(other.cll, rel=1e-6)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    ("name", "how_many_and_by"), every_value([*SPACES], [*itertools.product((2, 3, 12), ("newton", "lbfgs"))])
)
def test_threads_do_not_change_a_bit(
    monkeypatch: pytest.MonkeyPatch, name: str, how_many_and_by: tuple[int, str]
) -> None:
    n_labels, optimizer = how_many_and_by
    monkeypatch.setattr(quasi_newton, "NEWTON_FROM", 4)
    outcomes = []
    for threads in (1, 3):
        data = random_dataset(1_000, (3, 2, 4), n_labels, weighted=True, threads=threads)
        learnt = fit(name, data, TAN, penalty=1.0, tolerance=1e-6, max_iterations=12, optimizer=optimizer)
        outcomes.append((learnt.cll, learnt.tables.bias.tobytes(), *(w.tobytes() for w in learnt.tables.weights)))
    assert outcomes[0] == outcomes[1]


def automatic(n_rows: int, many_rows: int, penalty: float = 1.0, weighted: bool = False) -> tuple[float, float]:
    """Return the tolerance `auto` on these rows, and the formula of the module."""
    data = random_dataset(n_rows, (3, 2, 4), 3, weighted=weighted)
    caught = catch("discriminative", data, TAN)
    space = ParameterSpace(caught.likelihood, caught.space)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(optimization, "MANY_ROWS", many_rows)
        found = with_tolerance(space, how(penalty=penalty, tolerance=None)).tolerance
    assert found is not None
    weights = np.ones(n_rows) if data.weights is None else data.weights
    entropy = -sum(
        weights[data.labels == y].sum() * np.log(weights[data.labels == y].sum() / weights.sum()) for y in range(3)
    )
    # two of three classes are free
    return found, 1e-3 * (space.coordinates.n_parameters * 2 / 3 / 2) / entropy


@pytest.mark.parametrize("weighted", [False, True])
def test_the_tolerance_of_many_rows_is_a_share_of_the_statistical_error(weighted: bool) -> None:
    found, formula = automatic(2_000, 2_000, weighted=weighted)
    assert 1e-10 < found == pytest.approx(formula)
    found, formula = automatic(50, 50)
    assert found == 1e-4 < formula
    assert automatic(2_000, 2_001)[0] == 1e-10
    assert automatic(2_000, 2_000, penalty=0.0)[0] == 1e-10


def test_a_typed_tolerance_is_kept_and_reaches_the_optimum(monkeypatch: pytest.MonkeyPatch) -> None:
    data = random_dataset(2_000, (3, 2, 4), 3)
    exact = fit("discriminative", data, TAN, penalty=1.0, tolerance=1e-12)
    few = fit("discriminative", data, TAN, penalty=1.0, tolerance=None)
    monkeypatch.setattr(optimization, "MANY_ROWS", 2_000)
    many = fit("discriminative", data, TAN, penalty=1.0, tolerance=None)
    typed = fit("discriminative", data, TAN, penalty=1.0, tolerance=1e-12)
    assert typed.cll == exact.cll
    assert few.cll == pytest.approx(exact.cll, rel=1e-7)
    assert many.iterations < exact.iterations
    assert many.cll == pytest.approx(exact.cll, rel=1e-3)


GROWTH = Growth(many_rows=1_000, rows_per_parameter=4, least_largest=1_000, least=500)


@pytest.mark.parametrize(("name", "weighted"), every_value([*SPACES], [False, True]))
def test_samples_lead_to_the_optimum_of_all_rows(name: str, weighted: bool) -> None:
    data = random_dataset(8_000, (3, 2, 4), 3, weighted=weighted)
    labels = data.labels.copy()
    labels[labels == 2] = 1
    labels[:3] = 2
    data = replace(data, labels=labels)
    events: list[Any] = []
    changed: dict[str, Any] = {"penalty": 1.0, "tolerance": 1e-11, "init": "zero"}
    grown = fit(name, data, TAN, growth=GROWTH, watch=events.append, **changed)
    whole = fit(name, data, TAN, optimizer="newton", **changed)
    assert grown.cll_start == events[0].cll
    # without samples equal rows are merged, which adds up in another order
    assert grown.cll_start == pytest.approx(whole.cll_start, rel=1e-12)
    assert events[0].cll_evaluations == 1
    # a step of samples is a first iteration that costs parts of passes, and no line search of all rows
    assert events[1].cll_evaluations > 2
    assert grown.cll == pytest.approx(whole.cll, rel=1e-6)
    assert events[-1].gradient_norm < 1e-3 * events[0].gradient_norm
    np.testing.assert_allclose(grown.tables.bias, whole.tables.bias, atol=2e-3)
    for one, other in zip(grown.tables.weights, whole.tables.weights, strict=True):
        np.testing.assert_allclose(one, other, atol=2e-3)


@pytest.mark.usefixtures("small_blocks")
@every_space
def test_threads_do_not_change_a_bit_of_what_samples_lead_to(name: str) -> None:
    outcomes = []
    for threads in (1, 2):
        data = random_dataset(8_000, (3, 2, 4), 3, weighted=True, threads=threads)
        learnt = fit(name, data, TAN, penalty=1.0, tolerance=1e-8, growth=GROWTH)
        outcomes.append((learnt.cll, learnt.tables.bias.tobytes(), *(w.tobytes() for w in learnt.tables.weights)))
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("name", ["discriminative", "discriminative with lower orders", "weighted 4"])
def test_samples_lead_from_a_place_nearby_to_the_optimum_of_all_rows(name: str) -> None:
    data = random_dataset(8_000, (3, 2, 4), 3)
    caught = catch(name, data, TAN)
    space = ParameterSpace(caught.likelihood, caught.space)
    settings = how(init="zero", penalty=1.0, tolerance=1e-11)
    whole = find_optimum_from(space, settings, np.full(caught.space.n_parameters, 0.1))
    grown = find_optimum_from(space, replace(settings, growth=GROWTH), whole.point + 0.01)
    assert grown.value == pytest.approx(whole.value, rel=1e-9)
    assert grown.evaluations + grown.products < whole.evaluations
    np.testing.assert_allclose(grown.point, whole.point, atol=2e-3)


@pytest.mark.parametrize("tolerance", [1e-3, 1e-5, 1e-11])
def test_tables_of_other_rows_lead_to_the_optimum_in_a_few_steps(tolerance: float) -> None:
    """The optimum of a sample would be worse than tables fitted to half of the rows: only its curvature is used."""
    data = random_dataset(8_000, (3, 2, 4), 3)
    caught = catch("discriminative with lower orders", data, TAN)
    space = ParameterSpace(caught.likelihood, caught.space)
    settings = how(init="zero", penalty=1.0, tolerance=1e-11)
    whole = find_optimum(space, settings, lambda step, p: None)
    of_half = replace(space, likelihood=space.on(data.take(np.arange(4_000))))
    tables = space.cells(find_optimum(of_half, settings, lambda step, p: None).point)
    steps: list[Step] = []
    near = replace(settings, tolerance=tolerance, growth=GROWTH, near=tables)
    found = find_optimum(space, near, lambda step, p: steps.append(step))
    assert isinstance(space.coordinates, EffectCoordinates)
    start = space.coordinates.point_of(tables)
    assert steps[0].value == Problem(space, settings).value_and_gradient(start)[0]
    assert whole.value * (1 - 1e-12) <= found.value <= whole.value * (1 + tolerance)
    assert all(later.value < earlier.value for earlier, later in itertools.pairwise(steps))
    assert found.iterations <= (3 if tolerance > 1e-6 else 8)
    assert steps[-1].step == 1.0


def test_newton_directions_of_effects_end_with_many_rows_when_they_gain_too_little(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = random_dataset(3_000, (3, 2, 4), 3)
    ends = set()
    for name in ("discriminative", "discriminative with lower orders"):
        caught = catch(name, data, TAN)
        space = ParameterSpace(caught.likelihood, caught.space)
        for most, penalty in itertools.product((2_999, 3_000), (1.0, 0.1, 0.03, 0.0)):
            monkeypatch.setattr(optimization, "FEW_PRODUCTS_ROWS", most)
            if Problem(space, how(penalty=penalty)).objective.ends_products:
                ends.add((name, most, penalty))
    effects = "discriminative with lower orders"
    assert ends == {(effects, 2_999, 1.0), (effects, 2_999, 0.1)}


def test_without_a_penalty_or_with_few_rows_all_rows_are_taken_from_the_first_pass_on() -> None:
    data = random_dataset(2_000, (3, 2, 4), 3)
    for penalty, growth in ((0.0, GROWTH), (1.0, replace(GROWTH, many_rows=2_001))):
        grown = fit("discriminative", data, TAN, penalty=penalty, growth=growth)
        whole = fit("discriminative", data, TAN, penalty=penalty)
        assert (grown.cll, grown.evaluations) == (whole.cll, whole.evaluations)


@every_space
@pytest.mark.parametrize(("init", "penalty"), [("zero", 0.0), ("zero", 1.0), ("generative", 0.0)])
def test_one_class_has_nothing_to_learn(name: str, init: str, penalty: float) -> None:
    learnt = fit(name, random_dataset(20, (3, 2, 4), 1), TAN, penalty=penalty, init=init)
    assert learnt.cll == 0.0
    assert all(np.isfinite(w).all() for w in learnt.tables.weights)


@every_space
def test_no_attributes_leave_the_class_prior(name: str) -> None:
    data = random_dataset(50, (), 3)
    learnt = fit(name, data, Dag((), ()))
    counts = np.bincount(data.labels, minlength=3)
    odds = np.exp(learnt.tables.bias - learnt.tables.bias.max())
    np.testing.assert_allclose(odds / odds.sum(), counts / 50, atol=1e-4)


@every_space
@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_a_class_without_rows_and_a_single_row(name: str, penalty: float) -> None:
    data = random_dataset(60, (3, 2, 4), 2)
    schema = random_dataset(0, (3, 2, 4), 4).schema
    for n_rows in (1, 60):
        rows = data.take(np.arange(n_rows))
        learnt = fit(name, Dataset(schema, rows.codes, rows.labels), TAN, penalty=penalty, tolerance=1e-8)
        assert (-np.inf if penalty else learnt.cll_start) <= learnt.cll <= 0
        assert all(np.isfinite(w).all() for w in learnt.tables.weights)


@pytest.mark.parametrize("weight", [1e-6, 1e6])
def test_the_scale_of_weights_does_not_make_classes_separable(weight: float) -> None:
    data = random_dataset(200, (3, 2, 4), 2)
    learnt = fit("discriminative", replace(data, weights=np.full(200, weight)), TAN, tolerance=1e-10)
    assert learnt.stopped_by is not StoppedBy.SEPARABLE
    assert learnt.cll / weight == pytest.approx(fit("discriminative", data, TAN, tolerance=1e-10).cll, rel=1e-6)


PUBLISHED = ("bfgs", "cg", "cgb")


@every_space
def test_every_optimizer_starts_from_the_cll_of_the_free_tables(name: str) -> None:
    data = random_dataset(150, (3, 2, 4), 3, weighted=True)
    starts = [fit(one, data, TAN, penalty=1.0, max_iterations=1).cll_start for one in (name, "discriminative")]
    assert starts[0] == pytest.approx(starts[1])


@pytest.mark.parametrize(("name", "optimizer"), every_value([*SPACES], PUBLISHED))
def test_every_optimizer_goes_from_the_same_cll_to_the_same_optimum(name: str, optimizer: str) -> None:
    data = random_dataset(150, (3, 2, 4), 3, weighted=True)
    expected = fit(name, data, TAN, penalty=1.0)
    learnt = fit(name, data, TAN, penalty=1.0, optimizer=optimizer, tolerance=1e-10)
    assert learnt.cll_start == expected.cll_start
    np.testing.assert_allclose(learnt.tables.bias, expected.tables.bias, atol=0.02)
    for one, other in zip(learnt.tables.weights, expected.tables.weights, strict=True):
        np.testing.assert_allclose(one, other, atol=0.02)


@pytest.mark.parametrize("optimizer", PUBLISHED)
def test_separable_classes_are_seen_by_every_optimizer(optimizer: str) -> None:
    data = random_dataset(3, (3, 2, 4), 2)
    learnt = fit("discriminative", data, TAN, init="zero", optimizer=optimizer)
    assert learnt.stopped_by is StoppedBy.SEPARABLE


@every_space
@pytest.mark.parametrize("optimizer", ["lbfgs", "newton", *PUBLISHED])
def test_what_iterations_have_cost(monkeypatch: pytest.MonkeyPatch, name: str, optimizer: str) -> None:
    monkeypatch.setattr(quasi_newton, "NEWTON_FROM", 3)
    data = random_dataset(100, (3, 2, 4), 3)
    events: list[Any] = []
    fit(name, data, TAN, watch=events.append, penalty=1.0, optimizer=optimizer, max_iterations=5)
    if optimizer == "lbfgs":
        assert all(event.gradient_evaluations == event.cll_evaluations for event in events)
    elif optimizer == "newton":
        products = [event.gradient_evaluations - event.cll_evaluations for event in events]
        assert products[0] == products[1] == 0
        assert products == sorted(products)
        assert products[-1] > 0
    else:
        assert [event.gradient_evaluations for event in events] == [1, 2, 3, 4, 5, 6]
        assert events[-1].cll_evaluations > 6
    told = [event.flops for event in events]
    if optimizer not in PUBLISHED or name.startswith("weighted") or name.endswith("lower orders"):
        assert told == [None] * len(events)
        return
    assert told[0] == 0
    assert told == sorted(set(told))
    known = {"discriminative": free_table_flops, "extended": network_flops}
    if name in known:
        costs = known[name](TAN.families((3, 2, 4)), 100, 3)
        assert told == [costs.spent(optimizer, event.iteration, event.cll_evaluations) for event in events]


HIDDEN = Dag(((), (0,)), (0,))
"""The class decides attribute 0, which is hardly ever seen, and that decides attribute 1."""


def hidden() -> Dataset:
    """Return 20 rows per class that only attribute 1 separates; 8 rows of tiny weight make attribute 0 useless."""
    rows = [(2, int(y if right else 1 - y), y, 1.0) for y in (0, 1) for right in [True] * 20 + [False] * 2]
    rows += [(a, b, y, 1e-9) for a in (0, 1) for b in (0, 1) for y in (0, 1)]
    a, b, y, weights = np.array(rows).T
    data = dataset_of([a.astype(int), b.astype(int)], y.astype(int), (2, 2), 2, weights)
    return replace(data, schema=replace(data.schema, missing_policy="marginalize"))


ROWS = 44
TRIVIAL = ROWS * np.log(0.5)
"""CLL where attribute 1 tells nothing of the class: a plateau, on which the usual start lies."""
BEST = 40 * np.log(20 / 22) + 4 * np.log(2 / 22)
"""CLL where it tells all that it can."""


def conditionally(restarts: int, watch: Any = silent, **changes: Any) -> Parameters:
    settings = how(restarts=restarts, tolerance=1e-13, **changes)
    return learn_extended(Counts(hidden()), HIDDEN, smoothing="mle", settings=settings, watch=watch)


def jointly(restarts: int, watch: Any = silent) -> Parameters:
    return learn_em(
        Counts(hidden()),
        HIDDEN,
        smoothing="mle",
        tolerance=1e-13,
        max_iterations=2000,
        starts=Starts(restarts),
        watch=watch,
    )


@pytest.mark.parametrize(("learn", "of_class"), [(conditionally, 0.0), (jointly, ROWS * np.log(0.5))])
def test_of_two_known_ends_the_better_one_is_found(learn: Any, of_class: float) -> None:
    """If `jointly`, the two equally frequent labels and the attribute count together: of_class nats more."""
    usual, tried = learn(0), learn(5)
    assert usual.cll == pytest.approx(TRIVIAL, abs=1e-6)
    assert tried.cll == pytest.approx(BEST, abs=1e-4)
    assert tried.restarts is not None
    assert tried.restarts.objectives[0] == pytest.approx(TRIVIAL + of_class, abs=1e-6)
    assert max(tried.restarts.objectives) == pytest.approx(BEST + of_class, abs=1e-4)
    assert max(tried.restarts.objectives) - min(tried.restarts.objectives) >= BEST - TRIVIAL - 1e-4
    assert usual.restarts is None


def test_the_watch_hears_every_run_then_which_is_kept_and_one_note() -> None:
    events: list[Event] = []
    learnt = conditionally(2, watch=events.append)
    assert learnt.restarts is not None
    runs: list[list[Iteration]] = [[]]
    for event in events:
        if isinstance(event, Iteration):
            runs = [*runs, []] if event.iteration == 0 and runs[-1] else runs
            runs[-1].append(event)
    assert len(runs) == 3
    kept = runs[learnt.restarts.best_start]
    assert (kept[-1].iteration, kept[-1].cll, kept[0].cll) == (learnt.iterations, learnt.cll, learnt.cll_start)
    assert [event for event in events if isinstance(event, SelectedRun)] == [SelectedRun(learnt.restarts.best_start)]
    (note,) = (event.text for event in events if isinstance(event, Note))
    assert note.startswith("the default start and 2 random ones reached objectives from -30.49848 to ")


def test_more_starts_do_not_change_those_before_them_and_seeds_do() -> None:
    two, five = conditionally(2).restarts, conditionally(5).restarts
    other = conditionally(2, seed=1).restarts
    assert two is not None
    assert five is not None
    assert other is not None
    assert five.objectives[:3] == two.objectives
    assert other.objectives[0] == two.objectives[0]
    assert other.objectives[1:] != two.objectives[1:]


def test_every_distribution_is_drawn_uniformly() -> None:
    """The first of three values has the mean 1/3 and the variance 1/18 of Dirichlet(1, 1, 1)."""
    beta = random_point(30_000, seed=4, start=2).reshape(-1, 3)
    first = np.exp(beta[:, 0]) / np.exp(beta).sum(axis=1)
    assert first.mean() == pytest.approx(1 / 3, abs=0.01)
    assert first.var() == pytest.approx(1 / 18, abs=0.003)


@pytest.mark.parametrize(
    ("ends", "kept"), [((1.0, 1.0), 0), ((1.0, 2.0, 2.0), 1), ((3.0, 2.0), 0), ((-np.inf, -5.0), 1)]
)
def test_the_first_of_equals_is_kept(ends: tuple[float, ...], kept: int) -> None:
    learnt = conditionally(0, max_iterations=0)
    best = best_start(lambda start: (ends[start], replace(learnt, iterations=start)), len(ends) - 1, silent)
    assert (best.iterations, best.restarts) == (kept, Restarts(ends))
    assert best.restarts is not None
    assert best.restarts.best_start == kept


def test_with_early_stopping_rows_held_out_decide() -> None:
    data = with_missing(random_dataset(60, (3, 2), 2, seed=5), 0.2)
    fitted = [
        learn_extended(
            Counts(data),
            Dag(((), (0,)), (0, 1)),
            smoothing="m-estimate:1",
            settings=how(restarts=n, early_stop="cv", seed=3, max_iterations=30),
        )
        for n in (0, 3)
    ]
    alone, tried = fitted
    assert tried.restarts is not None
    assert tried.restarts.held_out
    assert tried.restarts.best_start == 0
    assert tried.cll == alone.cll


@pytest.mark.parametrize(
    ("objectives", "kept"),
    [((-10.0, -10.0 + 1e-12), 0), ((-10.0, -9.9, -9.9 + 1e-12), 1), ((-10.0, -11.0), 0), ((0.0, -1.0), 0)],
)
def test_what_differs_by_rounding_alone_is_one_end(objectives: tuple[float, ...], kept: int) -> None:
    assert Restarts(objectives).best_start == kept


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("name", "init", "penalty"), [("discriminative", "zero", 1.0), ("weighted 4", "generative", 0.0)]
)
def test_a_condensed_space_has_the_same_optimum(
    monkeypatch: pytest.MonkeyPatch, name: str, init: str, penalty: float, weighted: bool
) -> None:
    """Half of the cells have no rows, and every row occurs three times; parameters of cells without rows stay."""
    once = random_dataset(60, (3, 2, 4), 3, weighted=weighted, seed=4)
    # the third attribute has at most two of its values, by the value of the first
    codes = (once.codes[0], once.codes[1], (once.codes[2] % 2 + (once.codes[0] > 0)).astype(np.uint8))
    data = replace(once, codes=codes).take(np.tile(np.arange(60), 3))
    monkeypatch.setattr(likelihood, "MERGE_WORK", -1e9)
    changed: dict[str, Any] = {"init": init, "penalty": penalty, "tolerance": 1e-12, "max_iterations": 40}
    merged = fit(name, data, TAN, **changed)
    caught = catch(name, data, TAN)
    condensed = ParameterSpace(caught.likelihood, caught.space).condensed
    assert condensed is not None
    assert condensed.likelihood.data.n_rows <= 60
    assert condensed.coordinates.n_parameters < caught.space.n_parameters
    monkeypatch.setattr(ParameterSpace, "condensed", None)
    plain = fit(name, data, TAN, **changed)
    assert merged.n_parameters == plain.n_parameters
    assert merged.cll_start == pytest.approx(plain.cll_start, rel=1e-12)
    assert merged.cll == pytest.approx(plain.cll, rel=1e-7)
    assert merged.point is not None
    assert plain.point is not None
    without = caught.likelihood.cell_weights() == 0
    assert without.any()
    start = np.zeros(len(plain.point)) if init == "zero" else caught.space.generative
    for point in (merged.point, plain.point):
        np.testing.assert_allclose(point.reshape(3, -1)[:, without], start.reshape(3, -1)[:, without], atol=1e-12)
    if penalty:
        np.testing.assert_allclose(merged.point, plain.point, atol=1e-5)


def test_a_space_is_not_condensed_where_parameters_of_cells_without_rows_would_move() -> None:
    data = random_dataset(10, (3, 2, 4), 3)
    changed: dict[str, Any] = {"penalty": 1.0, "tolerance": 1e-12}
    zero, generative = (fit("discriminative", data, TAN, init=init, **changed) for init in ("zero", "generative"))
    assert zero.point is not None
    assert generative.point is not None
    np.testing.assert_allclose(zero.point, generative.point, atol=1e-4)


def test_from_a_point_a_condensed_space_leads_to_the_optimum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(likelihood, "MERGE_WORK", -1e9)
    data = random_dataset(40, (3, 2, 4), 3).take(np.tile(np.arange(40), 3))
    caught = catch("discriminative", data, TAN)
    settings = OptimizerSettings("zero", 1.0, 0.0, "newton", 1e-12, 100)
    space = ParameterSpace(caught.likelihood, caught.space)
    start = np.full(caught.space.n_parameters, 0.1)
    start.reshape(3, -1)[:, caught.likelihood.cell_weights() == 0] = 0.0
    optimum = find_optimum(space, settings, lambda step, p: None)
    from_point = find_optimum_from(space, settings, start)
    assert from_point.point.shape == optimum.point.shape
    assert from_point.value == pytest.approx(optimum.value, rel=1e-9)


def test_the_larger_first_penalty_counts_as_iterations() -> None:
    data = random_dataset(2_000, (3, 2, 4), MANY_CLASSES + 1)
    for most in (1, 2, 4, 5):
        found = fit(
            "discriminative", data, TAN, penalty=0.01, growth=GROWTH, init="zero", max_iterations=most, tolerance=0.0
        )
        assert found.iterations == most
