"""What the anchors' figures say together: ratios, wins, the best anchor of every table, by size and by half."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bncli.engine.evaluation.significance import LossKind, WinDrawLoss, geometric_mean_ratio, win_draw_loss
from tests.published.anchor_learners import ANCHORS
from tests.published.anchors import OURS, SMALL, Figure, half

BEFORE = "auto 0.1"
AHEAD = 0.02
"""Log-losses closer than this share are level where tables are listed."""
LEARNERS = ("auto", BEFORE, *(word for word in OURS if word != "auto"), *ANCHORS)
"""In the order of the columns."""
SIZES = (f"under {SMALL:,} rows", f"from {SMALL:,} rows")
NOISELESS = 0.01
"""Nats: a table on which some learner's log-loss is less counts as one without noise."""
HALVES = ("choosing", "judging")


@dataclass(frozen=True)
class Anchored:
    """Figures that came to an end, by table and learner, and all that were tried; tables in rising order of rows."""

    of: dict[str, dict[str, Figure]]
    tried: tuple[Figure, ...]

    @property
    def learners(self) -> tuple[str, ...]:
        """Those that occur."""
        occurring = {figure.learner for figure in self.tried}
        return tuple(learner for learner in LEARNERS if learner in occurring)

    @property
    def auto(self) -> str:
        """`auto` of this program; its forerunner where that is not measured."""
        return "auto" if "auto" in self.learners else BEFORE

    def where(self, size: str = "", part: str = "") -> Anchored:
        """Only the tables of a size, of a half."""
        names = [
            name
            for name, figures in self.of.items()
            if size in ("", size_of(next(iter(figures.values())))) and part in ("", half(name))
        ]
        return Anchored({name: self.of[name] for name in names}, self.tried)

    def noisy(self) -> Anchored:
        """Without the tables that some learner tells nearly all of."""
        least = {name: min(figure.log_loss for figure in figures.values()) for name, figures in self.of.items()}
        return Anchored({name: self.of[name] for name in self.of if least[name] >= NOISELESS}, self.tried)

    def pairs(self, first: str, second: str) -> list[tuple[Figure, Figure]]:
        """The figures of two learners on every table that both came to an end with."""
        return [(figures[first], figures[second]) for figures in self.of.values() if {first, second} <= figures.keys()]

    def ratio(self, first: str, second: str, figure: str = "log_loss", kind: LossKind = "mean") -> float:
        """Geometric mean over these tables."""
        return ratio_of(self.pairs(first, second), figure, kind)

    def best(self, name: str) -> Figure | None:
        """The anchor with the least log-loss on a table; None where no anchor was tried."""
        of_anchors = [figure for word, figure in self.of[name].items() if word in ANCHORS]
        return min(of_anchors, key=lambda figure: figure.log_loss, default=None)

    def beside_best(self, word: str) -> dict[str, tuple[float, str]]:
        """By table: the log-loss of a learner in units of that of the best anchor, and the name of the latter."""
        found = {}
        for name, figures in self.of.items():
            best = self.best(name)
            if word in figures and best is not None:
                found[name] = ratio_of([(figures[word], best)]), best.learner
        return found


def anchored(figures: Sequence[Figure]) -> Anchored:
    """Tables in rising order of rows."""
    of: dict[str, dict[str, Figure]] = {}
    for figure in sorted(figures, key=lambda figure: (figure.size, figure.set)):
        if not figure.outcome:
            of.setdefault(figure.set, {})[figure.learner] = figure
    return Anchored(of, tuple(figures))


def size_of(figure: Figure) -> str:
    """One of SIZES."""
    return SIZES[figure.size >= SMALL]


def ratio_of(pairs: Sequence[tuple[Figure, Figure]], figure: str = "log_loss", kind: LossKind = "mean") -> float:
    """Geometric mean of the first's figures in units of the second's; a loss counts at least as half an error."""
    first, second = ([getattr(pair[i], figure) for pair in pairs] for i in (0, 1))
    return geometric_mean_ratio(first, second, [pair[0].rows for pair in pairs], kind)


def won(pairs: Sequence[tuple[Figure, Figure]]) -> WinDrawLoss:
    """Tables on which the first loses less, as much, more than the second."""
    return win_draw_loss([-pair[0].log_loss for pair in pairs], [-pair[1].log_loss for pair in pairs])


def falling(ratios: Mapping[str, float]) -> list[str]:
    """Names, the largest ratio first."""
    return sorted(ratios, key=lambda name: -ratios[name])
