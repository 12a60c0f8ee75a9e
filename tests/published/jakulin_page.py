"""What the experiment of Jakulin & Rish gave, as a page to read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bncli.engine.evaluation.significance import average_ranks
from tests.published import jakulin_prior
from tests.published import jakulin_remarks as remarks
from tests.published.jakulin import FITTED, LR, PENALTIES, RANKED, SETS, Facts, Loss, printed
from tests.published.pages import table

Array = NDArray[np.float64]
RANKS_IN_PAPER = {"log-loss": (3.68, 2.54, 3.95, 2.88, 1.95), "error": (2.98, 3.34, 3.20, 2.87, 2.62)}
"""Over its 46 sets."""


@dataclass(frozen=True)
class Figures:
    """Everything that was measured; `thetas` are log-losses by set, theta and classifier, in that order."""

    losses: Sequence[Loss]
    facts: Sequence[Facts]
    thetas: Sequence[tuple[str, float, str, float]]

    def mean(self, way: str, figure: str, repeats: Sequence[int] | None = None) -> dict[str, float]:
        """By set, over the replications, or over these."""
        found: dict[str, list[float]] = {}
        for loss in self.losses:
            if loss.way == (LR if way == "LR" else way) and (repeats is None or loss.repeat in repeats):
                found.setdefault(loss.name, []).append(loss.log_loss if figure == "log-loss" else loss.error)
        return {name: float(np.mean(found[name])) for name in SETS if name in found}

    def ranks(self, figure: str) -> Array:
        """Average rank of the paper's five classifiers over the sets."""
        return mean_ranks([list(self.mean(way, figure).values()) for way in RANKED])

    def ranks_with_chosen_penalty(self, figure: str) -> Array:
        """The same in the first replication, the penalty of LR chosen inside the fold."""
        ways = ["LR cv" if way == "LR" else way for way in RANKED]
        return mean_ranks([list(self.mean(way, figure, (0,)).values()) for way in ways])


def mean_ranks(by_way: ArrayLike) -> Array:
    """Of figures (n_ways, n_sets), lowest first."""
    return np.asarray(average_ranks(np.asarray(by_way, np.float64).T).mean(axis=0))


def ranks_printed(names: Sequence[str]) -> Array:
    """Average ranks of the log-losses that the paper prints, in two digits, over these sets."""
    return mean_ranks([[printed()[name].log_loss[way] for name in names] for way in RANKED])


def distances(figures: Figures, way: str, column: str) -> Array:
    """ln of our log-loss over the paper's in the first replication, both at least 0.005; see `comparable`."""
    ours = figures.mean(way, "log-loss", (0,))
    names = comparable(figures)
    theirs = [printed()[name].log_loss[column] for name in names]
    return np.asarray(np.log(np.maximum([ours[name] for name in names], 0.005) / np.maximum(theirs, 0.005)))


def comparable(figures: Figures) -> list[str]:
    """Sets of the same rows on which every penalty of LR was tried."""
    return [name for name in figures.mean("LR 0", "log-loss") if name not in remarks.FEWER_ROWS]


def page(figures: Figures) -> str:
    parts = [
        remarks.INTRODUCTION,
        "## Average ranks",
        _ranks(figures),
        remarks.RANKS,
        "## Log-loss",
        _log_losses(figures),
    ]
    parts += ["## Error", _errors(figures), "## Degrees of freedom and seconds", _facts(figures)]
    parts += ["## What stands for LR", remarks.LR, _penalties(figures)]
    parts += ["## Theta", _thetas(figures), remarks.THETA]
    parts += ["## Figure 1: the prior beside the bootstrap", remarks.FIGURE_1, jakulin_prior.comparison()]
    parts += [f"![Figure 1]({jakulin_prior.DRAWING.name})", remarks.FIGURE_1_VERDICT]
    parts += [
        "## Degrees of freedom of the prior",
        remarks.DEGREES,
        jakulin_prior.degrees_table(),
        remarks.DEGREES_VERDICT,
    ]
    parts += [
        "## Fitting the tables of the regions",
        remarks.FITTED,
        _fitted(figures),
        _verdict(figures),
        remarks.FITTED_VERDICT,
    ]
    return "\n\n".join([*parts, "## Differences", remarks.DIFFERENCES]) + "\n"


def _ranks(figures: Figures) -> str:
    names = list(figures.mean("kBMA", "log-loss"))
    lines: list[tuple[str, Iterable[float]]] = [
        (f"log-loss, {len(names)} sets, here", figures.ranks("log-loss")),
        (f"log-loss, {len(names)} sets, figures of the paper", ranks_printed(names)),
        ("the same, here, LR cv for LR", figures.ranks_with_chosen_penalty("log-loss")),
        (f"log-loss, {len(printed())} sets, paper", RANKS_IN_PAPER["log-loss"]),
        (f"error, {len(names)} sets, here", figures.ranks("error")),
        ("the same, LR cv for LR", figures.ranks_with_chosen_penalty("error")),
        (f"error, {len(printed())} sets, paper", RANKS_IN_PAPER["error"]),
    ]
    return table(("", *RANKED), [[name, *(f"{rank:.2f}" for rank in ranks)] for name, ranks in lines])


def _log_losses(figures: Figures) -> str:
    ours = [figures.mean(way, "log-loss") for way in RANKED]
    header = ("set", "rows", "rows in the paper", *RANKED, *(f"paper: {way}" for way in RANKED))
    return table(
        header,
        _by_set(
            figures,
            lambda name: [
                *(f"{each[name]:.3f}" for each in ours),
                *(f"{printed()[name].log_loss[way]:.2f}" for way in RANKED),
            ],
        ),
    )


def _by_set(figures: Figures, cells: Callable[[str], list[str]]) -> Iterator[list[str]]:
    n_rows = {fact.name: fact.n_rows for fact in figures.facts}
    for name in figures.mean("kBMA", "log-loss"):
        yield [name, str(n_rows[name]), str(printed()[name].n_rows), *cells(name)]


def _errors(figures: Figures) -> str:
    ours = [figures.mean(way, "error") for way in RANKED]
    return table(("set", *RANKED), [[name, *(f"{each[name]:.3f}" for each in ours)] for name in ours[0]])


def _facts(figures: Figures) -> str:
    order = list(SETS)
    found = sorted(figures.facts, key=lambda fact: order.index(fact.name))
    lines = [
        [f.name, str(f.df), str(printed()[f.name].df), f"{f.seconds:.2f}", f"{printed()[f.name].seconds:.2f}"]
        for f in found
    ]
    return table(("set", "df", "paper: df", "seconds", "paper: seconds"), lines)


def _penalties(figures: Figures) -> str:
    ways = [*(f"LR {penalty:g}" for penalty in PENALTIES), "LR cv"]
    lines = []
    for way in ways:
        apart = distances(figures, way, "LR")
        lines.append([way, str(len(apart)), f"{np.exp(apart.mean()):.2f}", f"{np.median(abs(apart)):.2f}"])
    return table(("", "sets", "mean ratio to the paper's", "median of abs(ln ratio)"), lines)


def _thetas(figures: Figures) -> str:
    value = {(name, theta, way): loss for name, theta, way, loss in figures.thetas}
    names = list(dict.fromkeys(name for name, *_ in figures.thetas))
    lines = []
    for way, theta in dict.fromkeys((way, theta) for _, theta, way, _ in figures.thetas):
        ours = np.log([value[name, theta, way] for name in names])
        apart = ours - np.log([printed()[name].log_loss[way] for name in names])
        numbers = (np.exp(ours.mean()), np.exp(apart.mean()), np.median(abs(apart)))
        lines.append([way, f"{theta:g}", *(f"{number:.2f}" for number in numbers)])
    lines.sort(key=lambda line: RANKED.index(line[0]))
    header = ("", "theta", "mean log-loss (geometric)", "mean ratio to the paper's", "median of abs(ln ratio)")
    return table(header, lines)


def _fitted(figures: Figures) -> str:
    ways = ("kMAP", "kBMA", FITTED, "LR cv")
    ours = [figures.mean(way, "log-loss", (0,)) for way in ways]
    errors = [figures.mean(way, "error", (0,)) for way in ways]
    lines = [
        [name, *(f"{each[name]:.3f}" for each in ours), *(f"{each[name]:.3f}" for each in errors)]
        for name in figures.mean(FITTED, "log-loss", (0,))
    ]
    return table(("set", *ways, *(f"{way}: error" for way in ways)), lines)


def _verdict(figures: Figures) -> str:
    fitted, averaged = (figures.mean(way, "log-loss", (0,)) for way in (FITTED, "kBMA"))
    better = [name for name in fitted if fitted[name] < averaged[name]]
    ratio = np.exp(np.mean([np.log(fitted[name] / averaged[name]) for name in fitted]))
    return f"Fitted tables have the lower log-loss on {len(better)} of {len(fitted)} sets; mean ratio {ratio:.2f}."
