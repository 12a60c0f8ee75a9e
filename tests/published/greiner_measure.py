"""Measures what the files of figures of Greiner et al. (2004) lack, and writes greiner.md.

Run `BNCLI_DATA=FOLDER python -m tests.published.greiner_measure`. Every table, study and share of missing values is
written as soon as it is there, so that a run that was stopped goes on; to measure one again, delete its lines. With
nothing to measure no data are needed.
"""

from __future__ import annotations

from collections.abc import Iterable

from tests.published import greiner, greiner_studies
from tests.published.greiner import INCOMPLETE, SHARES, SHARES_TABLE, STRUCTURES
from tests.published.greiner_page import PAGE, page_of_records
from tests.published.greiner_studies import TRUTHS
from tests.published.pages import write_csv
from tests.published.targets import FILES


def main() -> None:
    _measure_tables()
    _measure_studies()
    _measure_shares()
    PAGE.write_text(page_of_records())


def _measure_tables() -> None:
    found: dict[str, list[greiner.Case]] = {}
    for case in greiner.recorded() if greiner.FIGURES.exists() else ():
        found.setdefault(case.name, []).append(case)
    for name in FILES:
        if name not in found:
            found[name] = list(greiner.cases(name))
            lines = [line for known in FILES for line in _figures(found.get(known, ()))]
            write_csv(greiner.FIGURES, [greiner.Case._fields, *lines])


def _measure_studies() -> None:
    found: dict[tuple[str, str], list[greiner_studies.Case]] = {}
    for case in greiner_studies.recorded() if greiner_studies.FIGURES.exists() else ():
        found.setdefault((case.study, case.setting), []).append(case)
    keys = [(truth.study, truth.setting) for truth in TRUTHS]
    for key, truth in zip(keys, TRUTHS, strict=True):
        if key not in found:
            found[key] = list(greiner_studies.cases(truth))
            known = [case for each in keys for case in found.get(each, ())]
            lines = [(*case[:5], " ".join(f"{error:.6g}" for error in case.errors)) for case in known]
            write_csv(greiner_studies.FIGURES, [greiner_studies.Case._fields, *lines])


def _measure_shares() -> None:
    """Naive Bayes at every share first: it costs least."""
    found: dict[tuple[float, str], list[greiner.Case]] = {}
    for share, cases in greiner.recorded_shares().items() if greiner.SHARES_FIGURES.exists() else ():
        for case in cases:
            found.setdefault((share, case.way.split("+")[0]), []).append(case)
    for structure in STRUCTURES:
        ways = [way for way in INCOMPLETE if way.startswith(f"{structure}+")]
        for share in SHARES:
            if (share, structure) not in found:
                found[share, structure] = list(greiner.cases_with_holes(SHARES_TABLE, share, ways))
                known = [(each, found.get((each, other), ())) for each in SHARES for other in STRUCTURES]
                lines = [(each, *line[1:]) for each, cases in known for line in _figures(cases)]
                write_csv(greiner.SHARES_FIGURES, [("share", *greiner.Case._fields[1:]), *lines])


def _figures(cases: Iterable[greiner.Case]) -> list[tuple[str, ...]]:
    return [(*case[:3], f"{case.accuracy:.6f}", f"{case.log_loss:.6f}") for case in cases]


if __name__ == "__main__":
    main()
