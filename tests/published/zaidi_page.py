"""What the experiments of Zaidi et al. gave, as a page to read with drawings: from the files of figures alone."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.published.climbs import Moment
from tests.published.pages import table
from tests.published.zaidi_figures import figures
from tests.published.zaidi_runs import (
    AFTER,
    GAPS,
    IN_UNITS,
    SHARES,
    SPACES,
    STARTS,
    STRUCTURES,
    Case,
    Way,
    at,
    by_case,
    recorded,
)
from tests.published.zaidi_words import CONDITIONING, ENDS, INTRODUCTION, LAGS, PRECISE, TIMES, VERDICT, WORLDS

PAGE = Path(__file__).with_name("zaidi.md")
LEAST = {"seconds": 1e-3, "iteration": 1}
"""Less is counted as this: a start may be beyond the threshold."""
OURS = Way("d", "generative", "newton")


@dataclass(frozen=True)
class Measured:
    """Cases of the largest sets, of all others (short), of some to the paper's end, of some to the optimum.

    In `conditioning` a set is an exponent and a structure is a draw.
    """

    large: list[Case]
    small: list[Case]
    ends: list[Case]
    optimum: list[Case]
    conditioning: list[Case]

    @property
    def all_sets(self) -> list[Case]:
        return [*self.large, *self.small]


def measured() -> Measured:
    """What the files say of sets that are measured with every structure."""
    return Measured(*(_whole(by_case(recorded(study))) for study in Measured.__annotations__))


def _whole(cases: Sequence[Case]) -> list[Case]:
    parts = Counter(case.name for case in cases)
    return [case for case in cases if parts[case.name] >= len(STRUCTURES)]


def write() -> None:
    """The page and its drawings."""
    found = measured()
    PAGE.write_text(page(found))
    for name, text in figures(found.large, found.all_sets).items():
        PAGE.with_name(name).write_text(text)


def page(found: Measured) -> str:
    told = claimed(found)
    parts = (
        INTRODUCTION.format(**told),
        "## Curves: NLL at the start, and of w / d / e after 5, 20 and 100 iterations",
        _curves(found.large),
        f"## Iterations after the fifth until d and e are where w was after {AFTER}",
        _lags(found.large, found.small),
        LAGS,
        "## Both worlds: iterations to 1 %, over those of w by the published optimiser",
        _worlds(found.large),
        WORLDS,
        "## Processor time to 1 % and to 0.1 %, over that of w",
        _times(found.large),
        TIMES,
        "## To the end: the paper's own stopping rule",
        _ends(found.ends),
        ENDS,
        "## To the optimum, from the generative model: passes to within 1e-3 / 1e-6 of the lowest NLL",
        _precise(found.optimum),
        PRECISE,
        "## The conditioning experiment (naive Bayes, from 0)",
        _conditioning(found.conditioning),
        CONDITIONING,
        "## What holds, and what does not",
        VERDICT.format(**told),
    )
    return "\n\n".join(parts) + "\n"


def of(cases: Sequence[Case], structure: str) -> list[Case]:
    return [case for case in cases if case.structure == structure]


def _curves(large: Sequence[Case]) -> str:
    lines = []
    for case in large:
        for start in STARTS:
            runs = [case.climbs[Way(space, start, "plain")] for space in SPACES]
            after = [" / ".join(_number(-at(run, k)) for run in runs) for k in (5, 20, 100)]
            lines.append(
                [f"{case.name} {case.structure}", start, _number(-runs[0].start), *after, _number(case.lowest)]
            )
    return table(("data set", "start", "at the start", "after 5", "after 20", "after 100", "lowest found"), lines)


def _number(nll: float) -> str:
    return f"{nll:,.0f}" if nll >= 1000 else f"{nll:.3g}"


def lags(cases: Sequence[Case], structure: str, way: Way) -> list[int]:
    return [case.lag(way) for case in of(cases, structure)]


def _lags(large: Sequence[Case], small: Sequence[Case]) -> str:
    ways = [(space, optimizer) for optimizer in ("plain", "lbfgs") for space in ("d", "e")]
    lines = []
    for label, cases in (("the largest", large), ("the others", small)):
        for structure in STRUCTURES:
            for start in STARTS:
                found = [lags(cases, structure, Way(space, start, optimizer)) for space, optimizer in ways]
                lines.append([f"{label} ({len(found[0])}), {structure}", start, *map(_lag, found)])
    return table(("data sets", "start", "d", "e", "d, preconditioned", "e, preconditioned"), lines)


def _lag(found: Sequence[int]) -> str:
    return f"{np.mean(found):.1f} ({np.median(found):.0f}; {ahead(found)}, {sum(lag < 0 for lag in found)})"


def ahead(found: Sequence[int]) -> int:
    """On how many sets w is ahead."""
    return sum(lag > 0 for lag in found)


def ratio(cases: Sequence[Case], way: Way, share: float, figure: str) -> float:
    """Geometric mean of a run's `seconds` or `iteration` at the threshold over those of w by the published way."""
    w = Way("w", way.start, "plain")
    return geometric([_spent(case, way, share, figure) / _spent(case, w, share, figure) for case in cases])


def _spent(case: Case, way: Way, share: float, figure: str) -> float:
    run = case.climbs[way]
    moment = run.reaching(case.target(share)) or run.end
    return float(max(getattr(moment, figure), LEAST[figure]))


def arrived(cases: Sequence[Case], way: Way, share: float) -> int:
    return sum(case.climbs[way].reaching(case.target(share)) is not None for case in cases)


def geometric(ratios: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def _worlds(large: Sequence[Case]) -> str:
    ways = [(space, optimizer) for optimizer in ("plain", "lbfgs") for space in SPACES]
    return _ratios(large, ways, "iteration", SHARES[:1])


def _times(large: Sequence[Case]) -> str:
    ours = [("w", "newton"), ("d", "newton")]
    return _ratios(large, [*((space, "plain") for space in SPACES), *ours], "seconds", SHARES)


def _ratios(large: Sequence[Case], ways: Sequence[tuple[str, str]], figure: str, shares: Sequence[float]) -> str:
    """A column a space and optimiser, where somebody climbed so."""
    lines = []
    for share in shares:
        for structure in STRUCTURES:
            cases = of(large, structure)
            for start in STARTS:
                told = [Way(space, start, optimizer) for space, optimizer in ways]
                cells = [_ratio(cases, way, share, figure) if way in cases[0].climbs else "" for way in told]
                lines.append([f"{share:.1%}, {structure}, {start}", *cells])
    words = {"plain": "", "lbfgs": ", preconditioned", "newton": ", ours"}
    header = [f"share, structure, start (of {len(large) // len(STRUCTURES)})", *(s + words[o] for s, o in ways)]
    return table(header, lines)


def _ratio(cases: Sequence[Case], way: Way, share: float, figure: str) -> str:
    return f"{ratio(cases, way, share, figure):.2f} ({arrived(cases, way, share)})"


def end_ratio(ends: Sequence[Case], structure: str, way: Way, figure: str) -> float:
    """Geometric mean of what a run spent to its end over what w spent."""
    pairs = [(case.climbs[way].end, case.climbs[way._replace(space="w")].end) for case in of(ends, structure)]
    return geometric([getattr(run, figure) / getattr(w, figure) for run, w in pairs])


def _ends(ends: Sequence[Case]) -> str:
    lines = []
    for structure in STRUCTURES:
        for start in STARTS:
            both = [
                [end_ratio(ends, structure, Way(space, start, "plain"), figure) for figure in ("seconds", "iteration")]
                for space in SPACES
            ]
            lines.append([f"{structure}, {start}", *(f"{time:.2f} ({count:.2f})" for time, count in both)])
    return table(("structure, start", *SPACES), lines)


FROM_MODEL = (*(Way(space, "generative", "plain") for space in SPACES), OURS)


def _precise(cases: Sequence[Case]) -> str:
    lines = []
    for case in cases:
        cells = [" / ".join(_passes(case.arrival(way, gap)) for gap in GAPS) for way in FROM_MODEL]
        lines.append([f"{case.name} {case.structure}", *cells])
    for label, figure in (("passes", "passes"), ("processor time", "seconds")):
        ratios = [" / ".join(f"{saved(cases, way, gap, figure):.2f}" for gap in GAPS) for way in FROM_MODEL]
        lines.append([f"{label} over those of w, geometric mean", *ratios])
    return table(("data set", *SPACES, "d, ours"), lines)


def _passes(moment: Moment | None) -> str:
    return "-" if moment is None else str(moment.passes)


def saved(cases: Sequence[Case], way: Way, gap: float, figure: str) -> float:
    """Geometric mean of passes or seconds over those of w; a run that does not arrive counts with all of them."""
    ratios = []
    for case in cases:
        spent, of_w = (
            float(getattr(case.arrival(each, gap) or case.climbs[each].end, figure)) for each in (way, FROM_MODEL[0])
        )
        ratios.append(spent / of_w)
    return geometric(ratios)


def missing(cases: Sequence[Case], exponent: str, space: str, iteration: int) -> float:
    """Share of the whole fall of the NLL that is still to come after so many iterations, averaged over the draws."""
    shares = []
    for case in cases:
        if case.name == exponent:
            run = case.climbs[Way(space, "zero", "plain")]
            shares.append((-case.lowest - at(run, iteration)) / (-case.lowest - run.start))
    return float(np.mean(shares))


def _conditioning(cases: Sequence[Case]) -> str:
    steps = (1, 2, 3, 5, 8)
    lines = [
        [a, *(" / ".join(_tiny(missing(cases, a, space, k)) for space in ("w", "d")) for k in steps)]
        for a in dict.fromkeys(case.name for case in cases)
    ]
    return table(("a", *(f"after {k}" for k in steps)), lines)


def _tiny(share: float) -> str:
    """NLLs are kept to eight digits."""
    return f"{share:.2g}" if share >= 1e-6 else "<1e-6"


def claimed(found: Measured) -> dict[str, str]:
    """The figures in the introduction and the verdict, by the names they have there."""
    both = [(structure, start) for structure in STRUCTURES for start in STARTS]
    wins = [ahead(lags(found.all_sets, s, Way("d", start, "plain"))) for s, start in both]
    units = [
        abs(mean_lag(found.small, s, Way(IN_UNITS, start, "plain"), Way("d", start, "plain"))) for s, start in both
    ]
    means = {
        space + optimizer: _range([mean_lag(found.all_sets, s, Way(space, start, optimizer)) for s, start in both])
        for space in ("d", "e")
        for optimizer in ("plain", "lbfgs")
    }
    large = [mean_lag(found.large, s, Way("d", start, "lbfgs")) for s, start in both]
    times = {
        word: _range([ratio(of(found.large, s), Way(space, start, "plain"), 0.01, "seconds") for s, start in both])
        for word, space in (("times", "d"), ("slow", "e"))
    }
    costs = [spent_a_pass(found.large, s, "e") / spent_a_pass(found.large, s, "w") for s in STRUCTURES]
    ends = {s: [end_ratio(found.ends, s, Way("d", start, "plain"), "seconds") for start in STARTS] for s in STRUCTURES}
    return (
        means
        | times
        | {
            "sets": str(len(found.all_sets) // len(STRUCTURES)),
            "largest": ", ".join(dict.fromkeys(case.name for case in found.large)),
            "wins": f"{min(wins)} to {max(wins)}",
            "units": f"{max(units):.1f}",
            "dlarge": _range(large),
            "first": _range([ratio(of(found.large, s), OURS, 0.01, "seconds") for s in STRUCTURES]),
            "costs": _range(costs),
            "ends_nb": f"{min(ends['NB']):.2f}",
            "ends": f"{max(ends['TAN'] + ends['KDB-1']):.2f}",
            "passes": f"{saved(found.optimum, OURS, GAPS[1], 'passes'):.2f}",
            "seconds": f"{saved(found.optimum, OURS, GAPS[1], 'seconds'):.2f}",
        }
    )


def mean_lag(cases: Sequence[Case], structure: str, way: Way, other: Way | None = None) -> float:
    """Over the sets; less that of another way."""
    less = 0.0 if other is None else mean_lag(cases, structure, other)
    return float(np.mean(lags(cases, structure, way))) - less


def spent_a_pass(cases: Sequence[Case], structure: str, space: str) -> float:
    """Seconds of the published optimiser, geometric mean over the sets."""
    ends = [case.climbs[Way(space, "zero", "plain")].end for case in of(cases, structure)]
    return geometric([end.seconds / end.passes for end in ends])


def _range(values: Sequence[float]) -> str:
    return " to ".join(f"{round(value, 1) + 0.0:.1f}" for value in (min(values), max(values)))
