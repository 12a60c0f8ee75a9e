"""greiner.md: the figures of Greiner et al. (2004) beside those measured here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bncli.engine.evaluation.significance import PairedT, win_draw_loss
from tests.published import greiner, greiner_curves, greiner_studies
from tests.published.greiner import BAD, INCOMPLETE, WAYS, Case, Figures, compare, measured, printed
from tests.published.greiner_remarks import COMPARISONS, COMPLEX, HOLDS, INTRODUCTION, NETWORKS, SHARES, SIMPLER
from tests.published.greiner_studies import TRUTHS, mean_errors
from tests.published.pages import read_csv, table
from tests.published.targets import FILES

PAGE = Path(__file__).with_name("greiner.md")
PRINTED_CLAIMS = Path(__file__).with_name("greiner_claims.csv")
CLASSES = ("all", "good", "bad")
"""Tables by what the paper's general networks are on them."""


class Claim(NamedTuple):
    """`first` is more accurate than `second`, with the p-value that the paper prints, and where it does."""

    where: str
    tables: str
    rows: str
    first: str
    second: str
    p: float | None


OWN = (
    *(Claim("", "all", "holes", first, "x+OFE", None) for first in ("x+ELR", "x+EM")),
    *(Claim("", "all", "everywhere", "x+ELR", second, None) for second in ("x+OFE", "x+APN", "x+EM")),
    Claim("", "all", "everywhere", "x+EM", "x+OFE", None),
    Claim("", "good", "complete", "x+ELR", "x+OFE", None),
    Claim("", "bad", "complete", "x+ELR", "x+OFE", None),
)
"""What the paper has no p-value of: what summing out gains over available cases, the same where predicted rows have
holes, and all structures where its general networks are good and bad."""


def printed_claims() -> list[Claim]:
    """The p-values of the paper's Tables 4 and 5 and of its text; first is whom the arrow points to."""
    return [
        Claim(where, tables, rows, first, second, float(p))
        for where, tables, rows, first, second, p in read_csv(PRINTED_CLAIMS)[1:]
    ]


def of_tables(figures: Figures, tables: str) -> Figures:
    """The figures of all tables, or of those on which the paper's general networks are good, or bad."""
    return {key: value for key, value in figures.items() if tables in ("all", "bad" if key[0] in BAD else "good")}


def page_of_records() -> str:
    """greiner.md from the files of figures."""
    curves = greiner_curves.section(greiner_curves.recorded())
    return page(greiner.recorded(), greiner_studies.recorded(), greiner.recorded_shares(), curves)


def page(
    found: Sequence[Case],
    studies: Sequence[greiner_studies.Case],
    shares: Mapping[float, Sequence[Case]],
    curves: Sequence[str],
) -> str:
    """greiner.md; `curves` are the paragraphs of Figure 2."""
    claims = [*printed_claims(), *OWN]
    of_text = [claim for claim in claims if claim.tables == "all" and not claim.where.startswith("Table")]
    by_network = [claim for claim in claims if claim.tables != "all"]
    parts = [INTRODUCTION, "## What holds here", HOLDS, "## Who is more accurate", COMPARISONS]
    for where, title in (("Table 4", "Complete rows, Table 4"), ("Table 5", "Rows with holes, Table 5")):
        parts += [f"### {title}", _claims(found, [claim for claim in claims if claim.where == where])]
    parts += ["### All structures at once, and the text", _claims(found, of_text)]
    parts += ["## Good and bad general networks (Figure 10)", NETWORKS]
    parts += [table(("learner", *_MEANS), _means(found)), _claims(found, by_network)]
    parts += ["## Ever more missing values (Figure 7b)", SHARES]
    for rows in ("holes", "everywhere"):
        parts += [f"### {_TITLES[rows]}", table(("missing", *INCOMPLETE), _shares(found, shares, rows))]
    parts += curves
    for rows, ways in WAYS.items():
        parts += [f"## Accuracy in percent: {_TITLES[rows]}", table(("table", *ways), _accuracies(found, rows))]
    return "\n\n".join([*parts, *_studied(studies)]) + "\n"


_TITLES = {
    "complete": "complete rows",
    "holes": "values missing from the rows that are learned from",
    "everywhere": "and from those that are predicted",
}
_BRIEF = {"complete": "", "holes": ", holes", "everywhere": ", holes everywhere"}
_CLAIM_HEADER = (
    "first against second",
    "paper: p",
    "from its table: mean difference",
    "p",
    "here: mean difference",
    "p",
    "better-same-worse",
    "log-loss, nats",
    "p",
)


def _claims(found: Sequence[Case], claims: Sequence[Claim]) -> str:
    accuracy, loss, theirs = measured(found), {case[:3]: case.log_loss for case in found}, printed()
    return table(_CLAIM_HEADER, (_line(claim, accuracy, loss, theirs) for claim in claims))


def _line(claim: Claim, accuracy: Figures, loss: Figures, theirs: Figures) -> list[str]:
    where, tables, rows, first, second, p = claim
    ours, lower, paper = (
        compare(of_tables(figures, tables), rows, first, second) for figures in (accuracy, loss, theirs)
    )
    title = f"{first} {second}{_BRIEF[rows]}" + ("" if tables == "all" else f", {tables}")
    line = [title, "" if p is None else f"{p:g}" + ("" if where.startswith("Table") else f" ({where})")]
    line += _test(paper) if paper.n else ["", ""]
    counted = win_draw_loss(*greiner.pairs(of_tables(accuracy, tables), rows, first, second))
    line += [*_test(ours), f"{counted.wins}-{counted.draws}-{counted.losses}"]
    return [*line, f"{lower.mean:+.4f}", f"{lower.p_lower:.2g}"]


def _test(found: PairedT) -> list[str]:
    return [f"{100 * found.mean:+.2f}", f"{found.p_higher:.2g}"]


_MEANS = tuple(f"{tables}{holes}" for holes in ("", ", holes") for tables in CLASSES)


def _means(found: Sequence[Case]) -> Iterator[list[str]]:
    """Ours, and the paper's in parentheses."""
    ours, theirs = measured(found), printed()
    for way in INCOMPLETE:
        cells = []
        for rows in ("complete", "holes"):
            for tables in CLASSES:
                here, paper = (_mean(of_tables(figures, tables), rows, way) for figures in (ours, theirs))
                cells.append(here + (f" ({paper})" if paper else ""))
        yield [way, *cells]


def _mean(figures: Figures, rows: str, way: str) -> str:
    chosen = [value for key, value in figures.items() if key[1:] == (rows, way)]
    return f"{100 * np.mean(chosen):.1f}" if chosen else ""


def by_share(
    found: Sequence[Case], shares: Mapping[float, Sequence[Case]], rows: str
) -> Iterator[tuple[float, dict[str, float]]]:
    """Accuracy by way, complete rows first."""
    of_table = [case for case in found if case.name == greiner.SHARES_TABLE]
    yield 0.0, {case.way: case.accuracy for case in of_table if case.rows == "complete"}
    for share, cases in sorted([(greiner.SHARE, of_table), *shares.items()]):
        yield share, {case.way: case.accuracy for case in cases if case.rows == rows}


def _shares(found: Sequence[Case], shares: Mapping[float, Sequence[Case]], rows: str) -> Iterator[list[str]]:
    for share, accuracy in by_share(found, shares, rows):
        yield [f"{share:.0%}", *(f"{100 * accuracy[way]:.1f}" if way in accuracy else "" for way in INCOMPLETE)]


def _accuracies(found: Sequence[Case], rows: str) -> Iterator[list[str]]:
    """Ours, and the paper's in parentheses."""
    ours, theirs = measured(found), printed()
    for name in FILES:
        cells = []
        for way in WAYS[rows]:
            paper = theirs.get((name, rows, way))
            beside = "" if paper is None else f" ({100 * paper:.1f})"
            cells.append(f"{100 * ours[name, rows, way]:.1f}{beside}")
        yield [name, *cells]
    means = [np.mean([100 * ours[name, rows, way] for name in FILES]) for way in WAYS[rows]]
    yield ["mean", *(f"{mean:.2f}" for mean in means)]


def _studied(studies: Sequence[greiner_studies.Case]) -> Iterator[str]:
    yield from ("## A structure that is ever more wrong", SIMPLER, table(_SIMPLER_HEADER, _simpler(studies)))
    yield from ("## Structures that say too much", COMPLEX)
    for truth in TRUTHS[6:]:
        title = f"{truth.study}, {truth.setting}" if truth.study == "single" else truth.study
        yield from (f"### {title}", table(_CURVE_HEADER, _curves(studies, truth)))
    yield from ("### Tests over all runs and sizes", table(_TEST_HEADER, _tests(studies)))


_COLUMNS = (
    ("OFE", False, "OFE"),
    ("ELR", False, "ELR"),
    ("OFE, holes", True, "OFE"),
    ("ELR, holes", True, "ELR"),
    ("APN, holes", True, "APN"),
    ("EM, holes", True, "EM"),
)
_SIMPLER_HEADER = ("", *(title for title, *_ in _COLUMNS), "least possible")
_CURVE_HEADER = ("rows", *(title for title, *_ in _COLUMNS), "least possible")
_TEST_HEADER = ("study", "", "mean error of the second less that of the first", "p that the first is better")


def _simpler(studies: Sequence[greiner_studies.Case]) -> Iterator[list[str]]:
    errors = [mean_errors(studies, "simpler", holes=holes, way=way) for _, holes, way in _COLUMNS]
    for truth in TRUTHS[:6]:
        cells = [f"{100 * e[truth.setting, greiner_studies.SIMPLER_SIZE]:.2f}" for e in errors]
        yield [truth.setting, *cells, f"{100 * truth.best_error:.2f}"]


def _curves(studies: Sequence[greiner_studies.Case], truth: greiner_studies.Truth) -> Iterator[list[str]]:
    errors = [mean_errors(studies, truth.study, holes=holes, way=way) for _, holes, way in _COLUMNS]
    for size in greiner_studies.SIZES:
        cells = [f"{100 * e[truth.setting, size]:.2f}" for e in errors]
        yield [str(size), *cells, f"{100 * truth.best_error:.2f}"]


def _tests(studies: Sequence[greiner_studies.Case]) -> Iterator[list[str]]:
    for study, setting in (("simpler", ""), ("single", "100%"), ("single", "98%"), ("chain", "")):
        for holes, first, second in _PAIRS[study]:
            found = greiner_studies.compare(studies, study, holes=holes, ways=(first, second), setting=setting)
            title = f"{first} against {second}" + (", holes" if holes else "")
            yield [f"{study} {setting}".strip(), title, f"{100 * found.mean:+.3f}", f"{found.p_higher:.2g}"]


_DESCRIBING = (
    (False, "OFE", "ELR"),
    (True, "APN", "ELR"),
    (True, "EM", "ELR"),
    (True, "EM", "APN"),
    (True, "EM", "OFE"),
)
_PAIRS = {
    "simpler": ((False, "ELR", "OFE"), (True, "ELR", "OFE"), (True, "ELR", "APN"), (True, "ELR", "EM")),
    "single": ((False, "OFE unsmoothed", "ELR unsmoothed"), *_DESCRIBING),
    "chain": _DESCRIBING,
}
