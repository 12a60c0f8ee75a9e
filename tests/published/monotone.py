"""What directions cost and what they lose, on tables whose directions are known: `python -m tests.published.monotone`.

The directions were written down from what is known of the columns before anything was measured; whether a table follows
them was not looked at. Each learner learns from four folds of five with and without them, cuts and penalty included.
Figures are added to the CSV as they come, and what stands there is not measured again.
"""

from __future__ import annotations

import csv
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bncli.engine.data.splits import stratified_folds
from bncli.engine.evaluation.cross_validation import predict_and_measure
from bncli.engine.learn import learn
from bncli.recipe import Recipe
from tests.performance.workloads import real_columns
from tests.published.pages import read_csv, table

PAGE = Path(__file__).with_name("monotone.md")
FIGURES = PAGE.with_suffix(".csv")
UNFINISHED = PAGE.with_name("monotone_unfinished.csv")
FOLDS = 5
HOW = ("free", "directed")


class Directions(NamedTuple):
    """Columns along which a label gets likelier, those along which it gets less likely, and what the label means.

    towards: the label as the table has it; None: the second of two.
    """

    increasing: tuple[str, ...]
    decreasing: tuple[str, ...] = ()
    meaning: str = ""
    towards: str | None = None


TABLES = {
    "haberman": Directions(("Age", "Positive_nodes"), (), "died within five years"),
    "hepatitis": Directions(("ALBUMIN", "PROTIME"), ("AGE", "BILIRUBIN"), "lives"),
    "heart_cleveland_2class": Directions(("age", "trestbps", "chol", "oldpeak", "ca"), ("thalach",), "ill"),
    "saheart": Directions(("a1", "a2", "a3", "a9"), (), "ill; pressure, tobacco, LDL, age"),
    "pima": Directions(("preg", "plas", "mass", "pedi", "age"), (), "diabetes"),
    "breast_cancer_wisconsin": Directions(
        (
            "Clump_Thickness",
            "Uniformity_of_Cell_Size",
            "Uniformity_of_Cell_Shape",
            "Marginal_Adhesion",
            "Single_Epithelial_Cell_Size",
            "Bare_Nuclei",
            "Bland_Chromatin",
            "Normal_Nucleoli",
            "Mitoses",
        ),
        (),
        "malignant",
    ),
    "wdbc": Directions(
        ("radius_mean", "area_mean", "concavity_mean", "radius_worst", "area_worst", "concave_points_worst"),
        (),
        "malignant",
    ),
    "german": Directions(("duration", "credit_amount", "installment_rate"), ("age",), "bad credit"),
    "adult": Directions(("education-num", "capital-gain", "hours-per-week"), (), "earns more than 50,000"),
    "balance_scale": Directions(
        ("left-weight", "left-distance"), ("right-weight", "right-distance"), "the left side is heavier", "L"
    ),
    "iris": Directions(("petal_length", "petal_width"), (), "Iris virginica", "Iris-virginica"),
    "new_thyroid": Directions(
        ("Basal_TSH", "Max_difference_TSH"),
        ("T3_resin_uptake", "Total_serum_thyroxin", "Total_serum_triiodothyronine"),
        "hypothyroidism",
        "3",
    ),
    "heart_cleveland": Directions(("thalach",), ("age", "trestbps", "chol", "oldpeak", "ca"), "healthy", "0"),
}
NB = {"param": "discriminative", "coding": "thermometer", "discretize": "equal-frequency", "bins": 20}
LEARNERS = {
    "tan weighted": {"structure": "tan"},
    "nb thermometer": {"structure": "nb", **NB},
    "interactions": {"structure": "interactions"},
    "auto": {"structure": "auto"},
}


class Case(NamedTuple):
    """A table and a learner, `free` or `directed`: losses a row, seconds of the processor and passes, all folds."""

    name: str
    learner: str
    how: str
    log_loss: float
    error: float
    seconds: float
    passes: int


class Fold(NamedTuple):
    """One fold of a case: sums of losses over its rows."""

    name: str
    learner: str
    how: str
    fold: int
    rows: int
    log_loss: float
    error: float
    seconds: float
    passes: int


def cases(name: str, learner: str) -> Iterator[Case]:
    """Without directions, and with them."""
    for how in HOW:
        yield case_of([measured(name, learner, how, fold) for fold in range(FOLDS)])


def measured(name: str, learner: str, how: str, fold: int) -> Fold:
    """What is learned from the other folds, tested on this one."""
    columns, known = real_columns(name), TABLES[name]
    assert columns.label is not None
    fold_of = stratified_folds(columns.label.codes, FOLDS, (0, 0))
    directions: dict[str, Any] = {"increasing": known.increasing, "decreasing": known.decreasing}
    directions |= {} if known.towards is None else {"towards": known.towards}
    recipe = Recipe.of(**LEARNERS[learner], **(directions if how == "directed" else {}))
    begun = time.process_time()
    learnt = learn(columns.take(np.flatnonzero(fold_of != fold)), recipe)
    seconds = time.process_time() - begun
    test = columns.take(np.flatnonzero(fold_of == fold))
    found = predict_and_measure(learnt.model, test).metrics
    losses = (test.n_rows * found.log_loss, test.n_rows * found.error)
    return Fold(name, learner, how, fold, test.n_rows, *losses, seconds, learnt.parameters.passes)


def case_of(folds: Sequence[Fold]) -> Case:
    """The means over all rows, the sums of what was spent."""
    rows, log_loss, error, seconds, passes = (sum(column) for column in zip(*(one[4:] for one in folds), strict=True))
    return Case(*folds[0][:3], log_loss / rows, error / rows, seconds, passes)


def recorded() -> list[Case]:
    """The file of figures."""
    lines = read_csv(FIGURES)[1:] if FIGURES.exists() else []
    return [Case(*line[:3], *map(float, line[3:6]), int(line[6])) for line in lines]


def page(found: Sequence[Case]) -> str:
    """monotone.md."""
    of = {case[:3]: case for case in found}
    keys = list(dict.fromkeys(case[:2] for case in found if (*case[:2], "directed") in of))
    lines = [_line(*key, of[(*key, "free")], of[(*key, "directed")]) for key in keys]
    header = ("table", "learner", "log-loss", "directed", "change, %", "error", "directed", "CPU", "passes")
    told = [[name, *map(", ".join, known[:2]), _label(known)] for name, known in TABLES.items()]
    parts = [INTRODUCTION, table(header, lines), "## In all", _summary(of, keys)]
    parts += ["## The directions", table(("table", "increasing", "decreasing", "towards"), told)]
    return "\n\n".join(parts) + "\n"


def _label(known: Directions) -> str:
    return f"the second label: {known.meaning}" if known.towards is None else f"{known.towards}: {known.meaning}"


def _line(name: str, learner: str, free: Case, directed: Case) -> list[str]:
    change = 100 * (directed.log_loss / free.log_loss - 1)
    losses = [f"{free.log_loss:.4f}", f"{directed.log_loss:.4f}", f"{change:+.1f}"]
    errors = [f"{free.error:.4f}", f"{directed.error:.4f}"]
    return [name, learner, *losses, *errors, *(f"{ratio:.1f}" for ratio in _cost(free, directed))]


def _cost(free: Case, directed: Case) -> tuple[float, float]:
    return directed.seconds / free.seconds, directed.passes / max(free.passes, 1)


def _summary(of: dict[tuple[str, ...], Case], keys: Sequence[tuple[str, ...]]) -> str:
    lines = []
    for learner in LEARNERS:
        pairs = [(of[(*key, "free")], of[(*key, "directed")]) for key in keys if key[1] == learner]
        if pairs:
            change = np.mean([np.log(b.log_loss / a.log_loss) for a, b in pairs])
            costs = np.exp(np.mean([np.log(_cost(a, b)) for a, b in pairs], axis=0))
            better = sum(b.log_loss < a.log_loss for a, b in pairs)
            loss = [f"{better} of {len(pairs)}", f"{100 * np.expm1(change):+.1f}"]
            lines.append([learner, *loss, *(f"{cost:.1f}" for cost in costs)])
    return table(("learner", "tables where directions lower the log-loss", "mean change, %", "CPU", "passes"), lines)


INTRODUCTION = """# Monotone effects: what they cost and what they lose

Written by `OPENBLAS_NUM_THREADS=1 BNCLI_DATA=FOLDER python -m tests.published.monotone`. Five stratified folds; cuts,
structure and penalty are learned inside the fold, each with `--increasing` and `--decreasing` and without; of three
labels or more `--towards` names one. Log-loss in nats a row, error a share of rows; a change below 0 is a gain. CPU and
passes are ratios, with directions to without: the processor's time of all of learning, and passes over the rows in the
last fit (of `auto`, in those of its members). Where losses are the same the free models kept the directions already.
`auto` on adult was not measured with directions, so its rows are 12 tables."""


def main() -> None:
    """Measures what is missing, fold after fold, and writes the page; folds of an unfinished case are kept aside."""
    if not FIGURES.exists():
        FIGURES.write_text(",".join(Case._fields) + "\n")
    done = {case[:3] for case in recorded()}
    for learner in LEARNERS:
        for name in sys.argv[1:] or TABLES:
            for how in HOW:
                if (name, learner, how) not in done:
                    case = case_of(list(_folds(name, learner, how)))
                    losses = (f"{case.log_loss:.6f}", f"{case.error:.6f}", f"{case.seconds:.2f}")
                    _add(FIGURES, [*case[:3], *losses, case.passes])
    UNFINISHED.unlink(missing_ok=True)
    PAGE.write_text(page(recorded()))


def _folds(name: str, learner: str, how: str) -> Iterator[Fold]:
    lines = read_csv(UNFINISHED) if UNFINISHED.exists() else []
    known = {
        tuple(line[:4]): Fold(*line[:3], *map(int, line[3:5]), *map(float, line[5:8]), int(line[8])) for line in lines
    }
    for fold in range(FOLDS):
        found = known.get((name, learner, how, str(fold)))
        if found is None:
            found = measured(name, learner, how, fold)
            _add(UNFINISHED, found)
        yield found


def _add(path: Path, line: Sequence[object]) -> None:
    with path.open("a", newline="") as file:
        csv.writer(file, lineterminator="\n").writerow(line)


if __name__ == "__main__":
    main()
