"""Makes office tables: made-up tables in the ways in which real exports go wrong, each with a learnable class.

    python tests/office.py [FOLDER]

A maker draws the truth first (numbers, days, names) and the class from it, partly through what only a repaired column
shows: days since a date, its month, the group to which one of hundreds of names belongs. Then it writes every value as
an office would: `€ 60,93`, `03.11.2021`, `01067`, `n/a`. `write` makes the file; `truth` gives the values before they
were spoilt, for another package's own preparation. Both depend on the name, the seed and the number of rows alone.
"""

import csv
import io
import sys
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Values = NDArray[Any]
Kind = Literal["numeric", "categorical", "date", "identifier", "constant"]


class Column(NamedTuple):
    """What a column is, the texts in the file, and the values meant: float64, datetime64[s] or str ("" is missing)."""

    kind: Kind
    texts: list[str]
    values: Values


Sheet = dict[str, Column]


@dataclass(frozen=True)
class Maker:
    """A kind of table. `marks`: the missing values as they are written; `flags`: what a reader must be told."""

    file: str
    class_name: str
    n_rows: int
    make: Callable[[np.random.Generator, int], Sheet]
    delimiter: str = ","
    encoding: str = "utf-8"
    marks: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()


def write(name: str, folder: Path, seed: int = 0, n_rows: int | None = None) -> Path:
    """The table as a raw text file in `folder`."""
    maker = TABLES[name]
    sheet = sheet_of(name, seed, n_rows)
    text = io.StringIO()
    out = csv.writer(text, delimiter=maker.delimiter, lineterminator="\r\n")
    out.writerow(sheet)
    out.writerows(zip(*(column.texts for column in sheet.values()), strict=True))
    path = folder / maker.file
    path.write_bytes(text.getvalue().encode(maker.encoding))
    return path


def truth(name: str, seed: int = 0, n_rows: int | None = None) -> tuple[dict[str, Values], Values]:
    """The values of the attributes as they were meant, and the class."""
    columns = {column: c.values for column, c in sheet_of(name, seed, n_rows).items()}
    return columns, columns.pop(TABLES[name].class_name)


def sheet_of(name: str, seed: int = 0, n_rows: int | None = None) -> Sheet:
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    return TABLES[name].make(rng, n_rows or TABLES[name].n_rows)


def _churn(rng: np.random.Generator, n: int) -> Sheet:
    """A telecom's customers, 1,500 in German spelling; 468 handsets, whose brand matters."""
    brands, models = ("Samsung", "Apple", "Nokia", "Xiaomi", "Sony", "Huawei"), ("S", "A", "Note", "Pro", "Lite", "X")
    handsets = _combined(brands, (f"{m}{k}" for m in models for k in range(1, 14)))
    handset = _long_tail(rng, len(handsets), n)
    signup = _days(rng, n, "2012-01-01", "2024-06-30")
    tenure = (np.datetime64("2024-07-01") - signup).astype(float) / 365
    tariff, area = rng.choice(4, n, p=(0.4, 0.3, 0.2, 0.1)), rng.integers(1, 100, n)
    monthly = (np.array((19.99, 29.99, 44.99, 69.99))[tariff] + rng.gamma(2.0, 6.0, n)).round(2)
    minutes = rng.gamma(2.0, 140.0, n).round(1)
    complaints = rng.poisson(0.7, n).astype(float)
    brand = np.array((0.0, -0.9, 1.1, 0.4, -0.2, 1.4))[handset // (len(handsets) // len(brands))]
    logit = -1.9 - 0.35 * (tenure - 5) + 0.03 * (monthly - 45) + 0.7 * complaints + 1.0 * brand + 0.9 * (area < 20)
    marks = ("NA", "n/a", "-", "")
    return {
        "customer": _names(rng, n),
        "postcode": _text(f"{a:02d}{b:03d}" for a, b in zip(area, rng.integers(0, 8, n) * 17, strict=True)),
        "tariff": _levels(tariff, ("Basis S", "Komfort M", "Komfort L", "Premium XL")),
        "handset": _levels(handset, handsets),
        "signup": _dates(signup, "%d.%m.%Y"),
        "monthly": _blanked(rng, _numbers(monthly, lambda v: f"€ {_german(v, 2)}"), 0.04, marks),
        "minutes": _blanked(rng, _numbers(minutes, lambda v: _german(v, 1)), 0.06, marks),
        "complaints": _blanked(rng, _numbers(complaints, lambda v: f"{v:.0f}"), 0.05, marks),
        "payment": _blanked(rng, _levels(rng.integers(0, 3, n), ("Lastschrift", "Rechnung", "Karte")), 0.03, marks),
        "churn": _levels(_class_of(rng, logit), ("nein", "ja")),
    }


def _clinic(rng: np.random.Generator, n: int) -> Sheet:
    """Admissions: ISO times, hundreds of ICD codes whose chapter matters, laboratory values with `<5`."""
    codes = [f"{chapter}{k:02d}.{d}" for chapter in "ACEFIJKNST" for k in range(10, 31, 3) for d in range(5)]
    icd = _long_tail(rng, len(codes), n)
    chapter = np.array((0.3, 1.3, 0.1, -0.6, 1.0, 0.5, -0.2, 0.1, -0.9, -0.4))[icd // (len(codes) // 10)]
    admitted = _days(rng, n, "2021-01-01", "2023-12-31").astype("datetime64[s]") + rng.integers(0, 86400, n)
    hour = (admitted - admitted.astype("datetime64[D]")).astype(int) // 3600
    age = np.clip(rng.normal(62, 17, n), 18, 99).round()
    crp = np.exp(rng.normal(2.3, 1.2, n)).round(1)
    seen = np.where(crp < 5, 2.5, crp)
    creatinine = np.exp(rng.normal(0, 0.35, n)).round(2)
    logit = -2.2 + chapter + 0.03 * (age - 62) + 0.5 * np.log(crp / 10) + 1.2 * np.log(creatinine)
    logit = logit + 0.7 * ((hour < 7) | (hour > 20))
    return {
        "case_id": Column("identifier", ids := [f"F{2021000000 + 37 * i}" for i in range(n)], np.array(ids)),
        "readmitted": _levels(_class_of(rng, logit), ("no", "yes")),
        "admitted": _dates(admitted, "%Y-%m-%dT%H:%M:%S"),
        "icd": _levels(icd, codes),
        "age": _numbers(age, lambda v: f"{v:.0f}"),
        "sex": _levels(rng.integers(0, 2, n), ("f", "m")),
        "crp": _blanked(rng, _numbers(seen, lambda v: "<5" if v < 5 else f"{v:.1f}"), 0.08, ("", "n.d.")),
        "creatinine": _blanked(rng, _numbers(creatinine, lambda v: f"{v:.2f}"), 0.1, ("", "n.d.")),
        "ward": _levels(rng.integers(0, 12, n), [f"{k:02d}" for k in range(1, 13)]),
        "country": _levels(np.zeros(n, int), ("DE",)),
    }


def _bank(rng: np.random.Generator, n: int) -> Sheet:
    """Loans: thousands marks, percent signs, account numbers, yes and no; three classes."""
    income = np.exp(rng.normal(10.7, 0.5, n)).round()
    loan = (income * rng.uniform(0.1, 3.0, n)).round(-2)
    rate = rng.uniform(1.5, 14.0, n).round(2)
    opened = _days(rng, n, "1998-01-01", "2023-12-31")
    years = (np.datetime64("2024-01-01") - opened).astype(float) / 365
    owner = rng.integers(0, 2, n)
    branch = rng.integers(0, 60, n)
    worry = 0.9 * np.log(loan / income) + 0.2 * (rate - 7) - 0.08 * (years - 13) - 0.6 * owner + 0.8 * (branch < 12)
    logits = np.stack([np.full(n, 1.6), worry, 1.5 * worry - 0.9], axis=1)
    return {
        "account": Column("identifier", ids := [f"DE{i:08d}" for i in rng.permutation(n) * 7919 + 104], np.array(ids)),
        "income": _blanked(rng, _numbers(income, lambda v: f"{v:,.0f}"), 0.07, ("", "N/A")),
        "loan": _numbers(loan, lambda v: f"{v:,.2f}"),
        "rate": _numbers(rate, lambda v: f"{v:.2f}%"),
        "opened": _dates(opened, "%d/%m/%Y"),
        "branch": _text(f"{b:04d}" for b in branch * 13 + 8),
        "home_owner": _levels(owner, ("no", "yes")),
        "online": _levels(rng.integers(0, 2, n), ("FALSE", "TRUE")),
        "status": _levels(_class_of(rng, logits), ("paid", "late", "default")),
    }


def _shop(rng: np.random.Generator, n: int) -> Sheet:
    """Orders: about 600 products whose kind matters, m/d/yyyy, $1,234.50."""
    kinds = ("Desk", "Chair", "Lamp", "Shelf", "Sofa", "Rug", "Mirror", "Vase")
    colours, styles = ("Oak", "Black", "White", "Grey", "Teal"), (f"No. {k}" for k in range(1, 16))
    products = _combined(kinds, _combined(colours, styles))
    product = _long_tail(rng, len(products), n)
    kind = product // (len(products) // len(kinds))
    ordered = _days(rng, n, "2022-01-01", "2023-12-31")
    month = ordered.astype("datetime64[M]").astype(int) % 12 + 1
    price = (np.array((420.0, 160, 60, 180, 1250, 240, 110, 35))[kind] * rng.lognormal(0, 0.35, n)).round(2)
    discount = rng.choice((0.0, 5, 10, 20, 30), n, p=(0.5, 0.15, 0.15, 0.1, 0.1))
    returned = np.array((-0.3, 0.7, -0.5, -0.2, 1.1, 0.9, 0.2, -1.0))[kind] + 0.9 * np.isin(month, (11, 12, 1))
    logit = -2.1 + 1.2 * returned - 0.04 * discount + 0.3 * np.log(price / 200)
    return {
        "order": Column("identifier", ids := [f"{1000451 + i}" for i in range(n)], np.array(ids)),
        "date": _dates(ordered, "%m/%d/%Y", strip_zeros=True),
        "product": _levels(product, products),
        "price": _numbers(price, lambda v: f"${v:,.2f}"),
        "discount": _numbers(discount, lambda v: f"{v:.0f}%"),
        "quantity": _numbers(1.0 + rng.poisson(0.6, n), lambda v: f"{v:.0f}"),
        "zip": _text(f"{z:05d}" for z in rng.choice((501, 2139, 7030, 10001, 30301, 60601, 94103), n)),
        "coupon": _blanked(rng, _levels(rng.integers(0, 4, n), ("SAVE5", "SPRING", "VIP", "FRIEND")), 0.7, ("NULL",)),
        "returned": _levels(_class_of(rng, logit), ("N", "Y")),
    }


def _sensors(rng: np.random.Generator, n: int) -> Sheet:
    """A machine's log: times to the minute, sensor names, columns nearly constant, gaps; failures are rare."""
    time = np.datetime64("2024-03-01T00:00:00") + 300 * np.arange(n)
    hour = (time - time.astype("datetime64[D]")).astype(int) / 3600
    sensor = rng.integers(0, 24, n)
    temperature = (55 + 6 * np.sin(hour / 24 * 2 * np.pi) + rng.normal(0, 3, n)).round(2)
    vibration = rng.gamma(2.0, 0.4, n).round(3)
    pressure = np.where(rng.random(n) < 0.99, 1013.0, 0.0)
    logit = -4.2 + 0.25 * (temperature - 55) + 1.3 * (vibration - 0.8) + 1.5 * (sensor < 4) + 1.2 * (hour >= 22)
    return {
        "timestamp": _dates(time, "%Y-%m-%d %H:%M:%S"),
        "sensor": _levels(sensor, [f"SN-{k:04d}-A" for k in range(24)]),
        "temperature": _blanked(rng, _numbers(temperature, lambda v: f"{v:.2f}"), 0.15, ("NaN", "")),
        "vibration": _blanked(rng, _numbers(vibration, lambda v: f"{v:.3f}"), 0.15, ("NaN", "")),
        "pressure": _numbers(pressure, lambda v: f"{v:.1f}"),
        "firmware": _levels((rng.random(n) < 0.002).astype(int), ("2.1.7", "2.1.8")),
        "unit": _levels(np.zeros(n, int), ("degC",)),
        "state": _levels(_class_of(rng, logit), ("ok", "fault")),
    }


def _survey(rng: np.random.Generator, n: int) -> Sheet:
    """Answers: 40 questions in words of agreement, skipped ones, a free text; four classes."""
    words = ("strongly disagree", "disagree", "neutral", "agree", "strongly agree")
    mood = rng.normal(0, 1, (n, 4))
    answers = np.clip((2 + mood[:, np.arange(40) % 4] * 0.9 + rng.normal(0, 0.8, (n, 40))).round(), 0, 4).astype(int)
    topics, views = (
        ("service", "price", "staff", "parking", "website"),
        ("too slow", "fine", "great", "could be better"),
    )
    remarks = _combined(topics, _combined(views, [f"visit {k}" for k in range(1, 31)]))
    remark = rng.integers(0, len(remarks), n)
    logits = 1.2 * mood + np.array((0.6, 0.0, -0.3, -0.8))
    born = rng.integers(1940, 2005, n)
    return {
        "started": _dates(_days(rng, n, "2024-01-08", "2024-02-04"), "%d-%b-%Y"),
        "born": _blanked(rng, _numbers(born.astype(float), lambda v: f"{v:.0f}"), 0.1, ("prefer not to say",)),
        **{f"q{k + 1:02d}": _blanked(rng, _levels(answers[:, k], words), 0.12, ("", "-")) for k in range(40)},
        "remark": _blanked(rng, _levels(remark, remarks), 0.6, ("",)),
        "segment": _levels(_class_of(rng, logits), ("loyal", "seeker", "sceptic", "passer-by")),
    }


def _staff(rng: np.random.Generator, n: int) -> Sheet:
    """Personnel: job titles with a long tail whose rank matters, hire dates, salaries with thousands marks."""
    ranks, fields = ("Junior", "Senior", "Lead", "Head of"), ("Sales", "Data", "Legal", "Payroll", "Support", "Web")
    titles = _combined(ranks, _combined(fields, ("Analyst", "Engineer", "Manager", "Clerk", "Advisor", "Trainer")))
    title = _long_tail(rng, len(titles), n)
    rank = title // (len(titles) // len(ranks))
    hired = _days(rng, n, "2005-01-01", "2023-12-31")
    years = (np.datetime64("2024-01-01") - hired).astype(float) / 365
    salary = (38000 * 1.25**rank * rng.lognormal(0, 0.18, n)).round(-1)
    overtime = rng.integers(0, 2, n)
    logit = -1.6 + np.array((1.2, 0.3, -0.5, -1.0))[rank] - 0.12 * (years - 9) + 1.0 * overtime
    logit = logit - 2.0 * np.log(salary / (38000 * 1.25**rank))
    return {
        "employee": _names(rng, n),
        "title": _levels(title, titles),
        "hired": _dates(hired, "%Y-%m-%d"),
        "salary": _blanked(rng, _numbers(salary, lambda v: _german(v, 0)), 0.05, ("k. A.", "")),
        "overtime": _levels(overtime, ("No", "Yes")),
        "rating": _numbers(rng.integers(1, 6, n).astype(float), lambda v: f"{v:.0f}"),
        "left": _levels(_class_of(rng, logit), ("No", "Yes")),
    }


def _tickets(rng: np.random.Generator, n: int) -> Sheet:
    """A help desk in UTF-16: agents, categories, times of opening; three classes."""
    agents = _combined(("Jürgen", "Zoë", "André", "Søren", "Łucja"), ("Müller", "Peña", "Åberg", "Šimić", "Öz", "Ng"))
    agent, category = _long_tail(rng, len(agents), n), rng.choice(5, n, p=(0.35, 0.25, 0.2, 0.15, 0.05))
    opened = _days(rng, n, "2023-01-01", "2023-12-31").astype("datetime64[s]") + 60 * rng.integers(420, 1200, n)
    weekday = (opened.astype("datetime64[D]").astype(int) + 3) % 7
    hour = (opened - opened.astype("datetime64[D]")).astype(int) // 3600
    first_reply = rng.gamma(1.5, 40, n).round(1)
    base = np.array((-0.8, 0.1, 0.6, -0.2, 1.4))[category] + 0.008 * (first_reply - 60)
    slow = base + 1.2 * (weekday >= 5) + 0.8 * (hour >= 17) + np.linspace(-1.2, 1.2, len(agents))[agent]
    logits = np.stack([np.full(n, 0.7), slow, 1.3 * slow - 1.5], axis=1)
    return {
        "ticket": Column("identifier", ids := [f"INC{i:07d}" for i in rng.permutation(n) + 4711], np.array(ids)),
        "opened": _dates(opened, "%d.%m.%Y %H:%M"),
        "agent": _levels(agent, agents),
        "category": _levels(category, ("Password", "Network", "Printer", "E-mail", "Hardware")),
        "first_reply_min": _blanked(rng, _numbers(first_reply, lambda v: _german(v, 1)), 0.1, ("NULL", "")),
        "vip": _levels(rng.integers(0, 2, n), ("falsch", "wahr")),
        "outcome": _levels(_class_of(rng, logits), ("solved", "escalated", "reopened")),
    }


def _flights(rng: np.random.Generator, n: int) -> Sheet:
    """Departures: 2,439 routes and 3,501 tail numbers, whose carrier and origin matter."""
    airports = [f"{a}{b}{c}" for a in "ABDJLMOS" for b in "AEO" for c in "NRX"]
    routes = [f"{a}-{b}" for a in airports for b in airports if a != b][:2439]
    tails = [f"N{100 + k}{'ABCDEFGHJ'[k % 9]}{'KLMNPQ'[k % 6]}" for k in range(3501)]
    route, tail = _long_tail(rng, len(routes), n), _long_tail(rng, len(tails), n)
    carrier, origin = tail % 9, np.array([airports.index(name[:3]) for name in routes])[route]
    date, departure = _days(rng, n, "2023-01-01", "2023-12-31"), rng.integers(300, 1380, n)
    month = date.astype("datetime64[M]").astype(int) % 12 + 1
    logit = -1.9 + np.linspace(-0.8, 0.8, 9)[carrier] + np.sin(origin) * 0.7 + 0.0015 * (departure - 840)
    logit = logit + 0.6 * np.isin(month, (6, 7, 12))
    return {
        "date": _dates(date, "%Y-%m-%d"),
        "carrier": _levels(carrier, ("AA", "B6", "DL", "F9", "HA", "NK", "UA", "VX", "WN")),
        "tail": _levels(tail, tails),
        "route": _levels(route, routes),
        "departure": _text(f"{m // 60:02d}:{m % 60:02d}" for m in departure),
        "miles": _numbers((300 + route * 0.9).round(), lambda v: f"{v:.0f}"),
        "delayed": _levels(_class_of(rng, logit), ("0", "1")),
    }


def _sales(rng: np.random.Generator, n: int) -> Sheet:
    """Invoices in German spelling: revenue with `k.A.`, years of two digits, a reminder sent after the outcome."""
    ordered, month = _days(rng, n, "2019-01-01", "2023-12-31"), rng.integers(0, 12, n)
    revenue, discount = np.exp(rng.normal(6.5, 1.1, n)).round(2), rng.integers(0, 16, n).astype(float)
    region = rng.integers(0, 4, n)
    logit = -0.9 + 0.9 * (np.log(revenue) - 6.5) - 0.06 * (discount - 7) + 0.3 * (region == 2)
    late = _class_of(rng, logit)
    reminded = _dates(ordered + 30 + month, "%d.%m.%y")
    sent = (late == 1) & (rng.random(n) < 0.6)
    return {
        "Rechnung": Column("identifier", ids := [f"R-{i:06d}" for i in rng.permutation(n) + 1000], np.array(ids)),
        "Bestellt am": _dates(ordered, "%d.%m.%y"),
        "Umsatz": _blanked(rng, _numbers(revenue, lambda v: _german(v, 2)), 0.05, ("k.A.",)),
        "Rabatt": _numbers(discount, lambda v: f"{v:.0f} %"),
        "Region": _levels(region, ("Nord", "Ost", "Süd", "West")),
        "Mahnung am": Column(
            "date",
            [text if there else "" for text, there in zip(reminded.texts, sent, strict=True)],
            np.where(sent, reminded.values, np.datetime64("NaT", "s")),
        ),
        "verspätet": _levels(late, ("nein", "ja")),
    }


def _class_of(rng: np.random.Generator, logits: Values) -> NDArray[np.int64]:
    """A class a row: (rows, classes) logits, or (rows,) those of the second of two."""
    if logits.ndim == 1:
        logits = np.stack([np.zeros(len(logits)), logits], axis=1)
    return np.asarray((logits + rng.gumbel(size=logits.shape)).argmax(axis=1))


def _long_tail(rng: np.random.Generator, n_levels: int, n: int) -> NDArray[np.int64]:
    """Codes, few common and many rare: each level once while the rows last, the rest by Zipf's law."""
    shares = 1 / (1 + rng.permutation(n_levels))
    once = rng.permutation(n_levels)[:n]
    rest = rng.choice(n_levels, n - len(once), p=shares / shares.sum())
    return rng.permutation(np.concatenate([once, rest]))


def _days(rng: np.random.Generator, n: int, first: str, last: str) -> Values:
    start, end = np.datetime64(first), np.datetime64(last)
    return start + rng.integers(0, (end - start).astype(int) + 1, n)


def _combined(first: Sequence[str], second: Any) -> list[str]:
    rest = list(second)
    return [f"{a} {b}" for a in first for b in rest]


def _names(rng: np.random.Generator, n: int) -> Column:
    """Nearly unique: a person in twenty shares the name of another."""
    given, family = (
        ("Anna", "Ben", "Carla", "David", "Emma", "Finn", "Jörg", "Zoë"),
        ("berg", "mann", "stein", "hoff"),
    )
    people = [f"{a} {b}{c}{k}" for k in ("", "er", "-Vogt") for a in given for b in _STEMS for c in family]
    names = [people[i % len(people)] + " II" * (i // len(people)) for i in rng.permutation(n)]
    for i in rng.choice(n, n // 20, replace=False):
        names[i] = names[i - 1]
    return Column("identifier", names, np.array(names))


_STEMS = [
    f"{a}{b}"
    for a in ("Al", "Bo", "Da", "Eich", "Fels", "Gold", "Hol", "Lin", "Ro", "Wein")
    for b in ("", "ders", "en")
]


def _levels(codes: Values, names: Sequence[str]) -> Column:
    texts = [names[code] for code in codes]
    return Column("constant" if len(names) == 1 else "categorical", texts, np.array(texts))


def _text(values: Any) -> Column:
    texts = list(values)
    return Column("categorical", texts, np.array(texts))


def _numbers(values: Values, spell: Callable[[float], str]) -> Column:
    return Column("numeric", [spell(float(value)) for value in values], values.astype(float))


def _german(value: float, digits: int) -> str:
    return f"{value:,.{digits}f}".translate(str.maketrans(",.", ".,"))


def _dates(values: Values, pattern: str, *, strip_zeros: bool = False) -> Column:
    seconds = values.astype("datetime64[s]")
    texts = [value.strftime(pattern) for value in seconds.tolist()]
    if strip_zeros:
        texts = ["/".join(part.lstrip("0") for part in text.split("/")) for text in texts]
    return Column("date", texts, seconds)


def _blanked(rng: np.random.Generator, column: Column, share: float, marks: Sequence[str]) -> Column:
    """The column with a share of its values missing, written as one mark or another."""
    lost = rng.random(len(column.texts)) < share
    which = rng.integers(0, len(marks), len(lost))
    texts = [marks[k] if gone else text for text, gone, k in zip(column.texts, lost, which, strict=True)]
    nothing = np.nan if column.values.dtype.kind == "f" else ""
    return Column(column.kind, texts, np.where(lost, nothing, column.values))


TABLES: dict[str, Maker] = {
    "churn": Maker("churn.csv", "churn", 1500, _churn, delimiter=";", marks=("", "NA", "n/a", "-")),
    "clinic": Maker("clinic.csv", "readmitted", 3000, _clinic, marks=("", "n.d."), flags=("--class", "readmitted")),
    "bank": Maker("bank.csv", "status", 2500, _bank, marks=("", "N/A")),
    "shop": Maker("shop.csv", "returned", 5000, _shop, marks=("NULL",)),
    "sensors": Maker("sensors.tsv", "state", 4000, _sensors, delimiter="\t", marks=("", "NaN")),
    "survey": Maker("survey.csv", "segment", 1200, _survey, marks=("", "-", "prefer not to say")),
    "staff": Maker("staff.csv", "left", 1000, _staff, delimiter=";", encoding="latin-1", marks=("", "k. A.")),
    "tickets": Maker("tickets.csv", "outcome", 3500, _tickets, delimiter=";", encoding="utf-16", marks=("", "NULL")),
    "sales": Maker("sales.csv", "verspätet", 2000, _sales, delimiter=";", marks=("", "k.A.")),
    "flights": Maker("flights.csv", "delayed", 35_000, _flights),
}
OFFICE = tuple(name for name in TABLES if name != "flights")
"""The nine office tables; flights is the large one beside them."""

if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    folder.mkdir(parents=True, exist_ok=True)
    for name in TABLES:
        print(write(name, folder))
