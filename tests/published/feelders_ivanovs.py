"""The experiment of Feelders & Ivanovs (2006), "Discriminative scoring of Bayesian network classifiers".

Nine ways to the highest conditional log-likelihood (CLL): three parameter spaces, each climbed by three optimisers, all
from the generative model with Laplace's rule. For each, the iterations and the flops until

    CLL >= CLL_max - 5 % (CLL_max - CLL_start),    CLL_max the highest that any of the nine found in 200 iterations,

divided by the smallest of the nine. A tenth way is the product's own optimiser on free tables.

`BNCLI_DATA=FOLDER python -m tests.published.feelders_ivanovs` measures what is not in the files yet, a trial after the
other, and writes the page.
"""

from __future__ import annotations

import csv
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bncli.engine.counting.counts import Counts
from bncli.engine.data.cutting import cuts_of, learn_dataset
from bncli.engine.data.dataset import Dataset
from bncli.engine.data.schema import Attribute, NumericAttribute
from bncli.engine.learn import learn_structure
from bncli.engine.networks.simulation import random_network, sample
from bncli.engine.parameter_learners.conditional import (
    build_space_discriminative,
    build_space_extended,
    build_space_lr,
    build_space_lr_roos,
)
from bncli.engine.parameters.costs import Flops
from bncli.engine.structure_learners import nb
from bncli.engine.structures.structure import Dag
from tests.performance.results import machine
from tests.performance.workloads import real_columns
from tests.published.climbs import Climb, Moment, climb, one_thread
from tests.published.pages import read_csv, write_csv
from tests.published.presets import preset

Array = NDArray[np.float64]

PAGE = Path(__file__).with_name("feelders_ivanovs.md")
RUNS = PAGE.with_suffix(".csv")
"""Every run: set, draw, way, iterations and flops to the paper's threshold, processor seconds and arrival at both."""
SETS, ARCS, CURVES = (PAGE.with_name(f"feelders_ivanovs_{name}.csv") for name in ("sets", "arcs", "curves"))
"""Facts of the real sets, the arcs between their attributes, and the curves on pima."""
MDL = PAGE.with_name("feelders_ivanovs_mdl.csv")
"""satimage with all its cuts, one run, each line over its smallest of the nine (times: over `ours`); `climbs` of
"satimage, MDL cuts" runs it again, in minutes."""
MACHINE = PAGE.with_name("feelders_ivanovs_machine.txt")
"""What the seconds were taken on."""
TABLE_2 = PAGE.with_name("feelders_ivanovs_table2.csv")
LEARNERS = {"LR": "lr", "LR_Roos": "roos", "BN": "bn"}
"""The spaces, and the words of the preset's learners."""
SPACES = tuple(LEARNERS)
OPTIMIZERS = ("cg", "cgb", "bfgs")
WAYS = tuple(f"{space} {optimizer.upper()}" for space in SPACES for optimizer in OPTIMIZERS)
OWN = "ours"
DRAWS = {
    "1.5.2-3.100": 10,
    "2.5.2-3.100": 10,
    "3.5.2-3.100": 10,
    "1.5.2-3.1000": 10,
    "2.5.2-3.1000": 10,
    "3.5.2-3.1000": 10,
    "1.30.2-3.1000": 5,
    "2.30.2-3.1000": 5,
    "3.30.2-3.1000": 3,
    "1.5.5.1000": 5,
    "2.5.5.1000": 5,
    "3.5.5.1000": 3,
}
"""How many sets are drawn of each kind, each from a network of its own."""
SEARCHED = {"glass": "glass", "pima": "pima", "tic-tac-toe": "tic_tac_toe", "voting": "house_votes_84"}
"""Sets of the paper whose structure is searched for, and the files they are in."""
REAL = dict.fromkeys(("glass", "pima", "satimage", "tic-tac-toe", "voting"), 1)
ALL_SETS = REAL | DRAWS
SHARES = (0.05, 0.001)
"""Of CLL_max - CLL_start, still missing at the threshold: the paper's, and one that tells arrival from approach."""


class Run(NamedTuple):
    """What a way took to the threshold: iterations and flops to the first; processor seconds to both, or all that were
    spent, and whether it arrived there."""

    iterations: float
    flops: float
    seconds: tuple[float, ...]
    arrived: tuple[bool, ...]


@dataclass(frozen=True)
class Trial:
    """The ten ways on one data set, as the file has them."""

    runs: Mapping[str, Run]

    def iterations(self, way: str) -> float:
        return self.runs[way].iterations

    def flops(self, way: str) -> float:
        return self.runs[way].flops

    def seconds(self, way: str, share: float) -> tuple[float, bool]:
        """Until the threshold and True, or all that was spent and False."""
        at = SHARES.index(share)
        return self.runs[way].seconds[at], self.runs[way].arrived[at]


@dataclass(frozen=True)
class Climbs:
    """The ten ways on one data set, moment by moment."""

    climbs: Mapping[str, Climb]
    costs: Mapping[str, Flops]

    @property
    def trial(self) -> Trial:
        return Trial({way: self._run(way) for way in self.climbs})

    def _run(self, way: str) -> Run:
        spent = [self.seconds(way, share) for share in SHARES]
        return Run(self.iterations(way), self.flops(way), *map(tuple, zip(*spent, strict=True)))  # type: ignore[arg-type]

    def threshold(self, share: float) -> float:
        ways = WAYS if share == SHARES[0] else self.climbs
        best = max(self.climbs[way].best for way in ways)
        return best - share * (best - self.climbs[OWN].start)

    def iterations(self, way: str) -> float:
        moment = self.climbs[way].reaching(self.threshold(SHARES[0]))
        return math.nan if moment is None else moment.iteration

    def flops(self, way: str) -> float:
        """By the paper's model; `ours` is outside it: its passes over the rows, its preconditioner left out."""
        moment = self.climbs[way].reaching(self.threshold(SHARES[0]))
        return math.nan if moment is None else self.flops_until(way, moment)

    def flops_until(self, way: str, moment: Moment) -> float:
        costs = self.costs[way]
        if way == OWN:
            return (moment.passes - 1) * (4 * costs.n_parameters + costs.cll + costs.gradient)
        spent = costs.spent(way.split()[1].lower(), moment.iteration, moment.evaluations)
        assert spent is not None
        return spent

    def seconds(self, way: str, share: float) -> tuple[float, bool]:
        """Until the threshold and True, or all that was spent and False."""
        moment = self.climbs[way].reaching(self.threshold(share))
        return (self.climbs[way].end.seconds, False) if moment is None else (moment.seconds, True)


def climbs(name: str, draw: int = 0) -> Climbs:
    """All ways on a set of this name; skips the test if it is a real one that is not at hand."""
    return _climbs(*problem(name, draw))


def problem(name: str, draw: int = 0) -> tuple[Counts, Dag]:
    """The rows and the structure."""
    if name.startswith("satimage"):
        return _satimage(two_values=name == "satimage")
    return _searched(SEARCHED[name]) if name in SEARCHED else _artificial(name, draw)


def _searched(file: str) -> tuple[Counts, Dag]:
    """MDL cuts, a hole being a value of its own, and the structure found."""
    columns = real_columns(file)
    counts = Counts(learn_dataset(columns))
    return counts, found_structure(counts, perfect=True)


def found_structure(counts: Counts, *, perfect: bool) -> Dag:
    """Return what greedy changes of naive Bayes by a penalised generative likelihood find: the preset's structure."""
    found = learn_structure(counts, preset("feelders")["lr cg"].replaced(perfect=perfect))
    assert isinstance(found, Dag)
    return found


def _satimage(two_values: bool) -> tuple[Counts, Dag]:
    """The 4,435 training rows, naive Bayes. Two values an attribute, as Table 1 of the paper says, or all MDL cuts."""
    columns = real_columns("satimage").take(np.arange(4435))
    counts = Counts(learn_dataset(columns))
    schema = counts.data.schema
    if two_values:
        tables = counts.tables([(i,) for i in range(len(schema.attributes))])
        attributes = tuple(_cut_once(a, table) for a, table in zip(schema.attributes, tables, strict=True))
        cuts = cuts_of(replace(schema, attributes=attributes), "mdl", {})
        counts = Counts(learn_dataset(columns, cuts=cuts))
    return counts, nb.learn(counts)


def _cut_once(attribute: Attribute, table: Array) -> Attribute:
    """Only the cut of lowest class entropy, which is the first that is made; table (intervals, K)."""
    assert isinstance(attribute, NumericAttribute)
    left = table.cumsum(axis=0)[:-1]
    best = int(np.argmin(_bits(left) + _bits(table.sum(axis=0) - left)))
    return replace(attribute, cuts=(attribute.cuts[best],))


def _bits(counts: Array) -> Array:
    """Rows times entropy."""
    total = counts.sum(axis=1, keepdims=True)
    return np.asarray((counts * np.log2(total / np.maximum(counts, 1))).sum(axis=1))


def _artificial(name: str, seed: int) -> tuple[Counts, Dag]:
    rng = np.random.default_rng(seed)
    network = random_network(name, rng)
    columns = sample(network, int(name.split(".")[-1]), rng)
    return Counts(learn_dataset(columns)), network.structure


def _climbs(counts: Counts, structure: Dag) -> Climbs:
    recipes = preset("feelders")
    smoothing = recipes["lr cg"].smoothing
    spaces = {
        "LR": build_space_lr(counts, structure, smoothing=smoothing),
        "LR_Roos": build_space_lr_roos(counts, structure, smoothing=smoothing),
        "BN": build_space_extended(counts, structure, smoothing=smoothing),
    }
    found = {}
    for space, optimizer in itertools.product(SPACES, OPTIMIZERS):
        recipe = recipes[f"{LEARNERS[space]} {optimizer}"]
        limits = {"tolerance": recipe.tolerance, "max_iterations": recipe.max_iterations}
        found[f"{space} {optimizer.upper()}"] = climb(spaces[space], optimizer, init=recipe.init, **limits)
    # the same tables in the same passes, priced with class 0 fixed as the paper prices them
    costs = {way: spaces[way.split()[0]].flops for way in WAYS} | {OWN: spaces["LR_Roos"].flops}
    free = build_space_discriminative(counts, structure, smoothing=smoothing)
    found[OWN] = climb(free, "newton", tolerance=1e-10)
    return Climbs(found, {way: c for way, c in costs.items() if c is not None})


@dataclass(frozen=True)
class Row:
    """A line of the table: for each of the ten ways a figure divided by the smallest of the nine, averaged over the
    sets drawn, and the lowest and highest that it was."""

    mean: tuple[float, ...]
    least: tuple[float, ...]
    most: tuple[float, ...]


def scaled(figures: Sequence[Sequence[float]]) -> Row:
    """One line of figures a trial."""
    table = np.array(figures, np.float64)
    table /= np.nanmin(table[:, : len(WAYS)], axis=1, keepdims=True)
    return Row(tuple(table.mean(axis=0)), tuple(table.min(axis=0)), tuple(table.max(axis=0)))


@cache
def published(figure: str) -> dict[str, tuple[float, ...]]:
    """Table 2 of the paper: nine numbers a data set."""
    with TABLE_2.open() as file:
        header, *lines = list(csv.reader(file))
    assert tuple(header[2:]) == WAYS
    return {line[0]: tuple(map(float, line[2:])) for line in lines if line[1] == figure}


def recorded() -> dict[str, list[Trial]]:
    """The file of runs: the trials by set, in the order of the paper."""
    by_trial: dict[tuple[str, int], dict[str, Run]] = {}
    for name, draw, way, iterations, flops, *rest in read_csv(RUNS)[1:] if RUNS.exists() else ():
        seconds, arrived = tuple(map(float, rest[0::2])), tuple(word == "1" for word in rest[1::2])
        run = Run(float(iterations), float(flops), seconds, arrived)
        by_trial.setdefault((name, int(draw)), {})[way] = run
    found = {name: [Trial(by_trial[key]) for key in sorted(by_trial) if key[0] == name] for name in (*REAL, *DRAWS)}
    return {name: each for name, each in found.items() if each}


def words(name: str, draw: int, trial: Trial) -> list[tuple[object, ...]]:
    """A trial's lines of the file."""
    return [
        (name, draw, way, run.iterations, f"{run.flops:.0f}", *_until(run, 0), *_until(run, 1))
        for way, run in trial.runs.items()
    ]


def _until(run: Run, share: int) -> tuple[str, int]:
    return f"{run.seconds[share]:.4f}", int(run.arrived[share])


def measure() -> None:
    """Adds the trials that the file lacks, each as soon as it is run, the first of every set before any second."""
    done = {(line[0], int(line[1])) for line in read_csv(RUNS)[1:]} if RUNS.exists() else set()
    lines: list[Sequence[object]] = [*read_csv(RUNS)] if RUNS.exists() else [HEADER]
    kinds = ALL_SETS
    with one_thread():
        climbs("1.5.2-3.100")  # warms up
        pending = [(draw, name) for draw in range(max(kinds.values())) for name in kinds if draw < kinds[name]]
        for draw, name in pending:
            if (name, draw) not in done:
                lines += words(name, draw, climbs(name, draw).trial)
                write_csv(RUNS, lines)
                print(name, draw, flush=True)
    MACHINE.write_text(machine() + "\n")


HEADER = ("set", "draw", "way", "iterations", "flops", "seconds to 5 %", "arrived", "seconds to 0.1 %", "arrived")


def describe() -> None:
    """Writes the facts of the real sets, the arcs between their attributes, and the curves on pima."""
    found = {name: problem(name) for name in ("glass", "pima", "satimage", "tic-tac-toe", "voting")}
    header = ("set", "rows", "attributes", "classes", "most values")
    write_csv(SETS, [header, *(_facts(name, counts.data) for name, (counts, _) in found.items())])
    arcs = [arc for name, (counts, structure) in found.items() for arc in arcs_of(name, counts.data, structure)]
    write_csv(ARCS, [("set", "parent", "child"), *arcs])
    pima = climbs("pima")
    curves = [
        (way, moment.iteration, f"{moment.cll:.6f}", f"{pima.flops_until(way, moment):.0f}")
        for way in WAYS
        for moment in pima.climbs[way].moments
    ]
    write_csv(CURVES, [("way", "iteration", "cll", "flops"), *curves])


def _facts(name: str, data: Dataset) -> tuple[object, ...]:
    return name, data.n_rows, len(data.codes), data.n_labels, max(data.schema.cardinalities)


def arcs_of(name: str, data: Dataset, structure: Dag) -> list[tuple[str, str, str]]:
    """The lines of the file: set, parent and child, the class left out."""
    names = [attribute.name for attribute in data.schema.attributes]
    return [(name, names[j], names[i]) for i, parents in enumerate(structure.parents) for j in parents]


if __name__ == "__main__":
    describe()
    measure()
