"""Makes the files of sample_data/: from their definitions, or from the copies that ship with scikit-learn.

    python tests/make_sample_data.py [FOLDER]

Nothing is drawn at random: which values wine_holes.csv lacks follows from a hash of the place of the cell, and
visits.csv, credit.csv, clinic.csv and churn.csv from hashes of the numbers of their rows.
"""

import csv
import datetime
import hashlib
import io
import itertools
import json
import math
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from sklearn.datasets import load_breast_cancer, load_iris, load_wine

Row = tuple[str, ...]

RANKS, FILES = ("top", "middle", "bottom"), ("left", "middle", "right")
SQUARES = tuple(f"{rank}-{file}-square" for rank in RANKS for file in FILES)
LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))
MISSING_SHARE = 0.1


def main(folder: Path) -> None:
    for name, content in sample_data().items():
        (folder / name).write_bytes(content)


ASTHMA = """\
// Made up for the manual: what a physician might write down. The numbers are no medical facts.
network asthma { }
variable smoker { type discrete [ 2 ] { yes, no }; }
variable pollen { type discrete [ 3 ] { low, medium, high }; }
variable attack { type discrete [ 2 ] { no, yes }; property bncli_role = class ; }
variable wheezing { type discrete [ 2 ] { no, yes }; }
variable peak_flow { type discrete [ 3 ] { "(-inf,250]", "(250,400]", "(400,inf)" }; }
probability ( smoker ) { table 0.2, 0.8; }
probability ( pollen ) { table 0.6, 0.3, 0.1; }
probability ( attack | smoker, pollen ) {
  (yes, low) 0.90, 0.10; (yes, medium) 0.80, 0.20; (yes, high) 0.60, 0.40;
  (no, low) 0.97, 0.03; (no, medium) 0.94, 0.06; (no, high) 0.80, 0.20;
}
probability ( wheezing | attack, smoker ) {
  (no, yes) 0.85, 0.15; (no, no) 0.95, 0.05; (yes, yes) 0.10, 0.90; (yes, no) 0.20, 0.80;
}
probability ( peak_flow | attack ) { (no) 0.05, 0.25, 0.70; (yes) 0.55, 0.35, 0.10; }
"""


def sample_data() -> dict[str, bytes]:
    """The content of every file by its name."""
    wine_names, wine_rows = wine()
    return {
        "tic_tac_toe.csv": table((*SQUARES, "class"), tic_tac_toe()),
        "monks1.csv": table(("a1", "a2", "a3", "a4", "a5", "a6", "class"), monks1()),
        "monks1.schema.json": schema("class", ["a1", "a2", "a3", "a4", "a5", "a6"]),
        "balance_scale.csv": table(
            ("left_weight", "left_distance", "right_weight", "right_distance", "class"), balance_scale()
        ),
        "iris.csv": table(("sepal_length", "sepal_width", "petal_length", "petal_width", "class"), iris()),
        "wine.csv": table(wine_names, wine_rows),
        "wine_holes.csv": table(wine_names, with_missing(wine_rows)),
        "tumours.csv": table(
            ("radius", "texture", "smoothness", "size", "outline", "symmetry", "worst_area", "diagnosis"), tumours()
        ),
        "visits.csv": table(("patient", "visit", "age", "weight", "pressure", "smoker", "readmitted"), visits()),
        "asthma.bif": ASTHMA.encode(),
        "credit.csv": table(("opened", "region", "age", "income", "debt_ratio", "employment", "defaulted"), credit()),
        "clinic.csv": table(("admitted", "hospital", "age", "pulse", "oxygen", "diabetes", "readmitted"), clinic()),
        "churn.csv": table(("month", "plan", "tenure", "calls", "price", "churned"), churn()),
    }


def table(header: Row, rows: Iterable[Row]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    return text.getvalue().encode()


def schema(class_name: str, categorical: list[str]) -> bytes:
    return (json.dumps({"class": class_name, "categorical": categorical}) + "\n").encode()


def tic_tac_toe() -> Iterator[Row]:
    """Every board on which a game that x began can have ended; positive: x has won. An empty square is b."""
    ends = {}
    boards = {("b",) * 9}
    for turn in range(10):
        over = {board: winner for board in boards if (winner := winner_of(board)) or turn == 9}
        ends |= over
        boards = {
            (*board[:i], "xo"[turn % 2], *board[i + 1 :])
            for board in boards.difference(over)
            for i in range(9)
            if board[i] == "b"
        }
    for board in sorted(ends, key=lambda board: (ends[board] != "x", ["xob".index(square) for square in board])):
        yield (*board, "positive" if ends[board] == "x" else "negative")


def winner_of(board: Row) -> str:
    return next((board[a] for a, b, c in LINES if board[a] == board[b] == board[c] != "b"), "")


def monks1() -> Iterator[Row]:
    """All robots, in codes; the class is 1 where head and body have one shape (a1 = a2) or a red jacket (a5 = 1)."""
    for robot in itertools.product("123", "123", "12", "123", "1234", "12"):
        yield (*robot, "1" if robot[0] == robot[1] or robot[4] == "1" else "0")


def balance_scale() -> Iterator[Row]:
    """All balances with weights and distances of 1 to 5; the class is the side that goes down (B: neither)."""
    for arms in itertools.product(range(1, 6), repeat=4):
        left, right = arms[0] * arms[1], arms[2] * arms[3]
        yield (*map(str, arms), "L" if left > right else "R" if right > left else "B")


def iris() -> Iterator[Row]:
    data = load_iris()
    for values, label in zip(data.data, data.target, strict=True):
        yield (*map(number, values), str(data.target_names[label]))


def wine() -> tuple[Row, list[Row]]:
    data = load_wine()
    names = [name.replace("/", "_").lower() for name in data.feature_names]
    rows = [(*map(number, x), f"cultivar_{y + 1}") for x, y in zip(data.data, data.target, strict=True)]
    return (*names, "class"), rows


def with_missing(rows: list[Row]) -> Iterator[Row]:
    """The same rows with about a tenth of the values left empty, never the class."""
    for i, row in enumerate(rows):
        yield (*("" if is_missing(i, j) else value for j, value in enumerate(row[:-1])), row[-1])


def is_missing(row: int, column: int) -> bool:
    return hashlib.sha256(f"{row},{column}".encode()).digest()[0] < 256 * MISSING_SHARE


def tumours() -> Iterator[Row]:
    """Four measurements of scikit-learn's breast cancer set as they are and three as named bands."""
    data = load_breast_cancer()
    columns = dict(zip(data.feature_names, data.data.T, strict=True))
    measured = zip(*(columns[name] for name in MEASUREMENTS), strict=True)
    for (radius, texture, smooth, area, concave, symmetry, worst), label in zip(measured, data.target, strict=True):
        size = band(area, ("small", 420), ("medium", 780), "large")
        outline = band(concave, ("smooth", 0.03), ("dented", 0.07), "jagged")
        shape = band(symmetry, ("high", 0.165), ("middle", 0.195), "low")
        diagnosis = str(data.target_names[label])
        yield number(radius), number(texture), number(smooth), size, outline, shape, number(worst), diagnosis


def visits() -> Iterator[Row]:
    """Visits of 200 patients, whose measurements hardly change; whether they were readmitted depends on nothing."""
    for patient in range(200):
        age, weight, pressure = (
            int(low + share(patient, low) * width) for low, width in ((20, 70), (55, 50), (100, 60))
        )
        smoker, readmitted = ("no", "yes")[share(patient, "smoker") < 0.3], ("no", "yes")[share(patient, "y") < 0.4]
        day = datetime.date(2022, 1, 1) + datetime.timedelta(days=int(700 * share(patient, "day")))
        for visit in range(3 + int(6 * share(patient, "visits"))):
            day += datetime.timedelta(days=10 + int(50 * share(patient, visit, "day")))
            kilos = weight + round(share(patient, visit, "weight"), 1)
            now = pressure + int(3 * share(patient, visit, "pressure"))
            yield f"p{patient:03}", str(day), str(age), f"{kilos:.1f}", str(now), smoker, readmitted


def credit() -> Iterator[Row]:
    """Loans of twelve months: risk falls with income, rises with debts, and is higher for the self-employed."""
    for loan in range(900):
        day = datetime.date(2023, 7, 1) + datetime.timedelta(days=366 * loan // 900)
        region = ("coast", "city", "hills")[int(3 * share(loan, "region"))]
        age, income = int(20 + 50 * share(loan, "age")), int(12 + 70 * share(loan, "income") ** 2)
        debt = round(0.9 * share(loan, "debt"), 2)
        work = share(loan, "employment")
        employment = "employed" if work < 0.7 else "self-employed" if work < 0.9 else "none"
        log_odds = -3.2 + 3 * debt - 0.05 * (income - 30) + 0.9 * (employment == "self-employed") - 0.01 * (age - 45)
        yield str(day), region, str(age), str(income), f"{debt:.2f}", employment, occurs(log_odds, loan, "defaulted")


def clinic() -> Iterator[Row]:
    """Stays in three hospitals: who is old, or short of oxygen, which is not always measured, comes back more often."""
    for stay in range(600):
        day = datetime.date(2024, 1, 1) + datetime.timedelta(days=int(0.6 * stay))
        hospital = ("north", "south", "west")[int(3 * share(stay, "hospital") ** 1.3)]
        age, pulse = int(35 + 55 * share(stay, "age")), int(55 + 60 * share(stay, "pulse"))
        oxygen, diabetes = int(86 + 14 * share(stay, "oxygen")), share(stay, "diabetes") < 0.25
        log_odds = -1.0 + 0.05 * (age - 65) - 0.25 * (oxygen - 93) + 0.8 * diabetes
        measured = "" if share(stay, "measured") < 0.08 else str(oxygen)
        outcome = occurs(log_odds, stay, "readmitted")
        yield str(day), hospital, str(age), str(pulse), measured, ("no", "yes")[diabetes], outcome


def churn() -> Iterator[Row]:
    """Customers in eight months: prices rise from the sixth on, and who leaves in the eighth is not yet known."""
    for customer in range(960):
        month = customer // 120
        plan = ("basic", "plus", "family")[int(3 * share(customer, "plan"))]
        tenure = int(72 * share(customer, "tenure"))
        calls = int(6 * share(customer, "calls") ** 2)
        price = int(15 + 20 * share(customer, "price")) + (8 if month >= 5 else 0)
        log_odds = -1.3 - 0.03 * (tenure - 30) + 0.5 * calls + 0.05 * (price - 25) - 0.6 * (plan == "family")
        left = "" if month == 7 else occurs(log_odds, customer, "churned")
        yield f"2024-{month + 1:02}-01", plan, str(tenure), str(calls), str(price), left


def occurs(log_odds: float, *place: object) -> str:
    return ("no", "yes")[share(*place) < 1 / (1 + math.exp(-log_odds))]


def share(*place: object) -> float:
    """A number from 0 to 1 that follows from a place, and looks drawn at random."""
    return int.from_bytes(hashlib.sha256(repr(place).encode()).digest()[:4], "big") / 2**32


MEASUREMENTS = (
    "mean radius",
    "mean texture",
    "mean smoothness",
    "mean area",
    "mean concave points",
    "mean symmetry",
    "worst area",
)


def band(value: float, first: tuple[str, float], second: tuple[str, float], above: str) -> str:
    return next((name for name, bound in (first, second) if value < bound), above)


def number(value: float) -> str:
    """The shortest text of the number, whole numbers without a point."""
    return repr(float(value)).removesuffix(".0")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent / "sample_data")
