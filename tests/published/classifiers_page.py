"""What the classifiers gave, as a page to read, and as the tables of the manual and the README."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from tests.published.classifiers import CAP, LARGE, LEARNERS, USUAL_CAP
from tests.published.classifiers_evidence import BESIDE, LOSSES, Evidence, Summary
from tests.published.pages import table
from tests.published.references import FOLDS
from tests.published.references import LEARNERS as REFERENCES

SIZES = {
    "under 1,000 rows": (0, 1000),
    "1,000 to 5,000 rows": (1000, LARGE + 1),
    "over 5,000 rows": (LARGE + 1, np.inf),
}
SHOWN = ("log-loss", "error")
LEFT_OUT = ("tan map hdp", "kikuchi kbma")
"""Of the short tables."""
NOT_IN_README = ("HistGradientBoosting", "xgboost", "CategoricalNB", "nb map")


def page(found: Evidence) -> str:
    """classifiers.md."""
    parts = [INTRODUCTION, "## Learners", table(("name", "typed after `bncli fit`"), _words(found))]
    parts += [f"## All {len(found.sets)} tables", table(SUMMARY, map(_summary, found.summaries()))]
    parts += ["## By size", BY_SIZE, table(*_by_size(found))]
    if "auto" in found.learners:
        parts += ["## auto beside the others", beside_the_others(found.among(["auto", *REFERENCES]))]
    parts += [
        f"## Tables of more than {LARGE:,} rows: seconds to fit",
        table(*_seconds(found.sized(LARGE + 1, np.inf))),
    ]
    for figure in SHOWN:
        parts += [f"## {figure[0].upper()}{figure[1:]}, table by table", table(*_losses(found, figure))]
    return "\n\n".join(parts) + "\n"


def _words(found: Evidence) -> Iterator[tuple[str, str]]:
    for learner, words in LEARNERS.items():
        if learner in found.learners:
            yield learner, f"`{words}`"


SUMMARY = (
    *("learner", "log-loss: rank", "error: rank", "RMSE: rank", "log-loss: ratio", "better-same-worse", "p"),
    *("fit: median", "fit: all", "score: median", "score: all"),
)


def _summary(one: Summary) -> list[str]:
    ranks = [f"{rank:.2f}" for rank in one.ranks]
    against = f"{one.against.wins}-{one.against.draws}-{one.against.losses}"
    compared = ["", "", ""] if one.learner == BESIDE else [f"{one.ratio:.3f}", against, f"{one.against.p:.2g}"]
    seconds = [_short(value) for value in (*one.fit, *one.score)]
    return [one.learner, *ranks, *compared, *seconds]


def _short(seconds: float) -> str:
    return f"{seconds:.0f}" if seconds >= 10 else f"{seconds:.1f}" if seconds >= 1 else f"{seconds:.2f}"


def _by_size(found: Evidence) -> tuple[list[str], Iterator[list[str]]]:
    groups = {name: found.sized(*bounds) for name, bounds in SIZES.items()}
    groups = {name: group for name, group in groups.items() if group.sets}
    header = [f"{name}: {figure}" for name in groups for figure in ("rank", "ratio")]
    tables = [f"{len(group.sets)} tables" for group in groups.values()]
    return ["learner", *header], iter(
        [["", *(cell for count in tables for cell in (count, ""))], *_lines_by_size(found, list(groups.values()))]
    )


def _lines_by_size(found: Evidence, groups: Sequence[Evidence]) -> Iterator[list[str]]:
    for summary in found.summaries():
        place = found.learners.index(summary.learner)
        cells: list[str] = []
        for group in groups:
            cells += [f"{group.ranks('log-loss')[place]:.2f}", f"{group.ratio('log-loss', summary.learner):.3f}"]
        yield [summary.learner, *cells]


def beside_the_others(found: Evidence) -> str:
    """Only auto and the references: ranks, auto against each, and how often it is as good as the best of them."""
    ratios = ratios_to_best(found)
    good = int((ratios <= 1).sum())
    told = (
        f"The log-loss of auto is at most that of the best of the {len(found.learners) - 1} others, chosen table by "
        f"table with the rows held out in view, on {good} of {len(ratios)} tables; the median ratio is "
        f"{np.median(ratios):.3f}, the largest {ratios.max():.2f} ({found.sets[int(ratios.argmax())]})."
    )
    header = (*("learner", *(f"{figure}: rank" for figure in LOSSES)), "auto's log-loss: ratio", *SUMMARY[5:7])
    return f"{table(header, _beside(found))}\n\n{told}"


def _beside(found: Evidence) -> Iterator[list[str]]:
    for one in found.summaries():
        line = [one.learner, *(f"{rank:.2f}" for rank in one.ranks)]
        if one.learner == "auto":
            yield [*line, "", "", ""]
            continue
        against = found.against("log-loss", "auto", one.learner)
        wins = f"{against.wins}-{against.draws}-{against.losses}"
        yield [*line, f"{found.ratio('log-loss', 'auto', one.learner):.3f}", wins, f"{against.p:.2g}"]


def ratios_to_best(found: Evidence) -> np.ndarray:
    """The log-loss of auto, set by set, in units of the least of the references'."""
    return found.best("log-loss", ["auto"]) / found.best("log-loss", REFERENCES)


def _seconds(found: Evidence) -> tuple[list[str], Iterator[list[str]]]:
    """A fold's fit, and how many times as long as that of early-stopped boosting."""
    ours = [learner for learner in found.learners if learner in LEARNERS]
    return ["table", "rows", BESIDE, *(cell for learner in ours for cell in (learner, "times"))], _times(found, ours)


def _times(found: Evidence, ours: Iterable[str]) -> Iterator[list[str]]:
    for i, name in enumerate(found.sets):
        unit = found.of("fit", BESIDE)[i]
        line = [name, f"{found.sizes[i]:,}", _short(unit)]
        for learner in ours:
            seconds = found.of("fit", learner)[i]
            line += ["-", "-"] if np.isnan(seconds) else [_short(seconds), f"{seconds / unit:.2g}"]
        yield line


def _losses(found: Evidence, figure: str) -> tuple[list[str], Iterator[list[str]]]:
    """The least in bold, as far as the digits show."""
    return ["table", "rows", *found.learners], _loss_lines(found, figure)


def _loss_lines(found: Evidence, figure: str) -> Iterator[list[str]]:
    for name, size, losses in zip(found.sets, found.sizes, found.values[figure], strict=True):
        cells = ["-" if np.isnan(loss) else f"{loss:.4f}" for loss in losses]
        least = min(cell for cell in cells if cell != "-")
        yield [name, f"{size:,}", *(f"**{cell}**" if cell == least else cell for cell in cells)]


def manual_table(found: Evidence) -> str:
    """Twelve lines or so: ranks, ratio of the log-loss, seconds, with what is typed."""
    return _short_table(found, (), lambda learner: f"**{learner}** `{LEARNERS[learner]}`")


def readme_table(found: Evidence) -> str:
    """Fewer learners, without what is typed; the ranks are those among the learners of the manual's table."""
    return _short_table(found, NOT_IN_README, lambda learner: f"**{learner}**")


def _short_table(found: Evidence, left_out: Iterable[str], named: Callable[[str], str]) -> str:
    header = ("learner", "rank by log-loss", "rank by error", "log-loss, ratio", "fit, seconds", "score, seconds")
    lines = []
    for one in found.among(x for x in found.learners if x not in LEFT_OUT).summaries():
        if one.learner in left_out:
            continue
        name = named(one.learner) if one.learner in LEARNERS else one.learner
        ranks = [f"{rank:.1f}" for rank in one.ranks[:2]]
        lines.append([name, *ranks, f"{one.ratio:.2f}", _short(one.fit[1]), _short(one.score[1])])
    return table(header, lines) + "\n"


INTRODUCTION = f"""# Classifiers beside each other

Written by `BNCLI_UPDATE=1 BNCLI_DATA=FOLDER pytest -m slow tests/published/test_classifiers.py` from `classifiers.csv`
(`python -m tests.published.classifiers`: learners of bncli) and `references.csv` (`python -m
tests.published.references`: scikit-learn and xgboost), which hold every fold. The tables are UCI's, each as it is
read, none left out but copies. {FOLDS} stratified folds, the same for all, everything learned inside the fold, one
setting a learner for all tables; covertype: the first fold. Log-loss in nats, RMSE of the true class's probability;
seconds of the processor a fold, one thread.

Ranks are averages over the tables, 1 for the best. Ratios are geometric means of log-losses in units of those of
{BESIDE} (400 trees at most, stopped by rows held out), a loss counting at least as half an error; better-same-worse
and the two-tailed sign test are against it too. A learner was stopped that took more than {USUAL_CAP} seconds for a
fold (auto: {CAP["auto"]}): it has the last rank there and is left out of the ratios (-)."""

BY_SIZE = "Average rank and mean ratio of the log-loss."
