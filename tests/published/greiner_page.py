"""greiner.md: the figures of Greiner et al. (2004) beside those measured here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bncli.engine.evaluation.significance import PairedT, win_draw_loss
from tests.published import greiner, greiner_studies
from tests.published.greiner import WAYS, Case, compare, measured, printed
from tests.published.greiner_studies import RUNS, TRUTHS, mean_errors
from tests.published.pages import table
from tests.published.targets import FILES

PAGE = Path(__file__).with_name("greiner.md")


class Claim(NamedTuple):
    """`first` is more accurate than `second`, with the p-value that the paper prints."""

    rows: str
    first: str
    second: str
    p: float | None


CLAIMS = (
    Claim("complete", "NB+ELR", "NB+OFE", 0.005),
    Claim("complete", "TAN+ELR", "TAN+OFE", 0.025),
    Claim("complete", "GBN+ELR", "GBN+OFE", 0.2),
    Claim("complete", "x+ELR", "x+OFE", 0.0015),
    Claim("complete", "NB+ELR", "TAN+OFE", 0.45),
    Claim("complete", "TAN+ELR", "NB+ELR", 0.2),
    Claim("complete", "TAN+OFE", "NB+OFE", 0.002),
    Claim("complete", "NB+ELR", "GBN+ELR", 0.01),
    Claim("complete", "TAN+ELR", "GBN+ELR", 0.008),
    Claim("complete", "TAN+OFE", "GBN+OFE", 0.02),
    Claim("complete", "NB+ELR", "GBN+OFE", 0.03),
    Claim("complete", "TAN+ELR", "GBN+OFE", 0.008),
    Claim("complete", "TAN+OFE", "GBN+ELR", 0.04),
    Claim("complete", "TAN+ELR", "NB+OFE", 0.006),
    Claim("complete", "GBN+ELR", "NB+OFE", 0.36),
    Claim("complete", "NB+OFE", "GBN+OFE", 0.46),
    Claim("holes", "NB+ELR", "NB+APN", 0.025),
    Claim("holes", "NB+ELR", "NB+EM", 0.015),
    Claim("holes", "TAN+ELR", "TAN+APN", 0.32),
    Claim("holes", "TAN+ELR", "TAN+EM", 0.25),
    Claim("holes", "GBN+ELR", "GBN+APN", 0.05),
    Claim("holes", "GBN+ELR", "GBN+EM", 0.09),
    Claim("holes", "x+ELR", "x+APN", 0.0015),
    Claim("holes", "x+ELR", "x+EM", 0.0015),
    Claim("holes", "TAN+ELR", "NB+ELR", 0.4),
    Claim("holes", "NB+ELR", "GBN+ELR", 0.02),
    Claim("holes", "TAN+ELR", "GBN+ELR", 0.015),
    Claim("holes", "NB+APN", "NB+EM", 0.2),
    Claim("holes", "TAN+APN", "TAN+EM", 0.5),
    Claim("holes", "x+ELR", "x+OFE", None),
    Claim("holes", "x+EM", "x+OFE", None),
    Claim("everywhere", "x+ELR", "x+OFE", None),
    Claim("everywhere", "x+ELR", "x+APN", None),
    Claim("everywhere", "x+ELR", "x+EM", None),
    Claim("everywhere", "x+EM", "x+OFE", None),
)
"""What the paper compares (complete: all pairs of its Table 4, and x); what summing out gains over available cases; the
same where predicted rows have holes."""


def page(found: Sequence[Case], studies: Sequence[greiner_studies.Case]) -> str:
    """greiner.md."""
    parts = [
        INTRODUCTION,
        "## What holds here",
        HOLDS,
        "## Who is more accurate",
        COMPARISONS,
        table(_CLAIM_HEADER, _claims(measured(found))),
    ]
    parts += ["## The same in log-loss", LOSSES, table(_LOSS_HEADER, _losses(found))]
    for rows, ways in WAYS.items():
        parts += [f"## Accuracy in percent, {_TITLES[rows]}", table(("table", *ways), _accuracies(found, rows))]
    parts += ["## A structure that is ever more wrong", SIMPLER, table(_SIMPLER_HEADER, _simpler(studies))]
    parts += ["## Structures that say too much", COMPLEX]
    for truth in TRUTHS[6:]:
        title = f"{truth.study}, {truth.setting}" if truth.study == "single" else truth.study
        parts += [f"### {title}", table(_CURVE_HEADER, _curves(studies, truth))]
    parts += ["### Tests over all runs and sizes", table(_TEST_HEADER, _tests(studies))]
    return "\n\n".join(parts) + "\n"


_TITLES = {
    "complete": "complete rows",
    "holes": "a quarter of the values missing from the rows that are learnt from",
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
)
_LOSS_HEADER = (
    "first against second",
    "mean difference of log-loss, nats",
    "p that first is lower",
    "lower-same-higher",
)


def _claims(ours: Mapping[tuple[str, str, str], float]) -> Iterator[list[str]]:
    theirs = printed()
    for claim in CLAIMS:
        rows, first, second, p = claim
        line = [f"{first} {second}{_BRIEF[rows]}", "" if p is None else f"{p:g}"]
        line += ["", ""] if p is None else _test(compare(theirs, rows, first, second))
        yield [*line, *_test(compare(ours, rows, first, second)), _counts(ours, claim)]


def _test(found: PairedT) -> list[str]:
    return [f"{100 * found.mean:+.2f}", f"{found.p_higher:.2g}"]


def _counts(ours: Mapping[tuple[str, str, str], float], claim: Claim) -> str:
    one, other = greiner.pairs(ours, claim.rows, claim.first, claim.second)
    counted = win_draw_loss(one, other)
    return f"{counted.wins}-{counted.draws}-{counted.losses}"


def _losses(found: Sequence[Case]) -> Iterator[list[str]]:
    loss = {case[:3]: case.log_loss for case in found}
    for rows, first, second, _ in CLAIMS:
        lower = compare(loss, rows, first, second)
        counted = win_draw_loss(*greiner.pairs(loss, rows, first, second))
        title = f"{first} {second}{_BRIEF[rows]}"
        yield [title, f"{lower.mean:+.4f}", f"{lower.p_lower:.2g}", f"{counted.losses}-{counted.draws}-{counted.wins}"]


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

INTRODUCTION = """# Probabilities learnt to classify, on complete rows and on rows with holes

Written by `BNCLI_UPDATE=1 BNCLI_DATA=FOLDER pytest -m slow tests/published/test_greiner.py`. The paper is Greiner, Su,
Shen & Zhou, *Structural extension to logistic regression* (technical report of 23 April 2004; Machine Learning 59,
2005). OFE: smoothed relative frequencies (`--param map`), on rows with holes those of the rows that have a node and all
its parents. ELR: `--param extended --optimizer cg --early-stop cv`, from OFE. APN and EM: `--param apn` and `em`, from
OFE. At most 60 iterations each, smoothing `m-estimate:1`, MDL cuts; all with `--missing-policy marginalize`.

24 of the paper's 25 tables: `diabetes` is the same table as `pima`. corral and mofn-3-7-10 are written out from their
definitions (`targets.py` says how); rows with missing values are left out, as there. 5 stratified folds, or the rows
held out as in the paper, but of larger tables at most 2,000 rows to learn from and 2,000 to predict: `letter` is learnt
from an eighth of the paper's rows. Each value is removed with probability 0.25, completely at random.

The paper's general networks (GBN) come from PowerConstructor; here they come from `--structure gbn`, tests of
independence too. The threshold starts at its 0.01 bits and doubles until the tables hold at most 20,000 probabilities,
without which many of these networks, from few rows, would have millions. On complete rows the network is learnt from
the rows that are learnt from, on rows with holes once, from all rows before the holes, both as in the paper."""

COMPARISONS = """Paired one-sided t-tests over tables, the paper's test: p that the first is not more accurate. x+
pairs all three structures at once. Left the paper's p as its text or its Table 4, all pairs of which are here, gives
it, then the same test on the means printed in its Tables 2 and 3: they agree in most lines. Not in these: TAN+ELR
against TAN+OFE (0.12, as in its Table 4; 0.025 in the text); NB+ELR against GBN+ELR (0.038, not 0.01); on rows with
holes, TAN+ELR is on average *less* accurate than TAN+APN and TAN+EM in the printed table, and x+ELR beats x+APN and
x+EM at 0.014 and 0.013, not 0.0015. "Holes" are in the rows that are learnt from only; "everywhere", in those that
are predicted too. The paper does not say which it did, but its accuracies (chess, NB+ELR: 95.4 complete, 94.6 with
holes) fit the first."""

LOSSES = "The same comparisons; the paper has no such figures. Negative: the first is better."

SIMPLER = f"""Errors in percent, means of {RUNS} samples of 400 rows, naive Bayes; E1 to Em are copies of one
another. Half the values are missing where it says holes; queries are complete. Errors are exact, over all
combinations of values. (m = 0 and m = 1 are the same distribution.) The paper shows a drawing (Figure 8): ELR stays
close to the best, OFE, APN and EM get ever worse."""

COMPLEX = f"""Errors in percent, means of {RUNS} samples. single: naive Bayes where the class is E1, or agrees with
it in 98% of rows (a correlation of 0.96), and the other attributes are coins. chain: TAN with arcs between
attributes that are independent given the class. A fifth of the values are missing where it says holes; queries are
complete. The paper (Figures 12 and 13, drawings) finds OFE better than ELR in single (p < 0.002; 0.001 for the
correlation of 0.96) and insignificantly so in chain; with holes APN and EM better than ELR (p < 0.02, 0.015), EM
better than APN (p < 0.025)."""

HOLDS = """- ELR is more accurate than OFE on complete rows, over all structures, and with naive Bayes by much; with TAN
  by little, with general networks by next to nothing, as in the paper. Its log-loss is lower with each of the three.
- Learnt from rows with holes, ELR is more accurate than APN and EM, over all structures and with naive Bayes, at much
  the same p as in the paper. Of TAN only the lead over APN is significant; in the paper neither is.
- Where predicted rows have holes too, ELR is no more accurate than EM, though more than OFE; its log-loss is barely
  lower than EM's.
- NB+ELR and TAN+ELR beat general networks, learnt either way; TAN+ELR is not significantly better than NB+ELR.
- An ever more wrong structure hurts OFE, APN and EM ever more, and ELR hardly, until half the values are missing and
  all five attributes are copies: there ELR too is far from the best.
- A structure that says too much: in chain, OFE and EM beat ELR, as in the paper (there insignificantly). In single, OFE
  beats ELR only where E1 agrees with the class in 98% of rows, and only with frequencies as they are (`mle`, the
  paper's OFE). With smoothed ones, which take more rows to trust E1, it is the other way round. Where E1 is the class,
  both unsmoothed ways are equal.
- Not so here: APN is no better than EM. Its likelihood is not smoothed, and in log-loss it is far behind; where it is
  better in the paper, it is insignificantly so. In naive Bayes, EM is OFE: a missing value says nothing of another one.
- EM beats available cases (OFE) a little, in accuracy and in log-loss."""
