"""Write the dossier of a model: one page and one JSON file.

    {"format": "bncli-dossier", "version": 1, "model": "m.bnc", "about": {"intended_use": null, ...},
     "checklists": {"tripod_ai": [{"item": "1", "title": ..., "status": "not provided", ...}, ...], ...},
     "evaluation": {...}, "periods": [...], "monitor": {...}, "sensitivity": {...}, "challengers": [...],
     "verification": {...}, "data": {...}, "specification": {...}, "files": [{"kind", "path", "sha256"}, ...]}

`evaluation` has the keys of `evaluate --json`, `monitor` those of `monitor --json`, `verification` those of
`verify --json`, and `specification` those of `inspect --json`.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from bncli import __version__
from bncli.errors import UsageError
from bncli.files.artifacts.monitors import expected_json
from bncli.files.atomic import write_bytes
from bncli.files.json_documents import dump_json
from bncli.files.paths import check_outputs, check_target
from bncli.files.pictures.page import html_page
from bncli.steps.dossier.about import FIELDS, About, read_about
from bncli.steps.dossier.checklists import CHECKLISTS, STATUSES, Answer
from bncli.steps.dossier.facts import facts_of
from bncli.steps.dossier.findings import DossierSources, Findings, find_all
from bncli.steps.dossier.page import dossier_page
from bncli.steps.evaluate.report import GroupsReport, intervals_json
from bncli.steps.report.performance_section import paired_difference
from bncli.watch import Run, Stage

VERSION = 1


class DossierReport(NamedTuple):
    """What was written: two files, and per checklist how many items have each status."""

    model: str
    page: str
    json: str
    rows: int
    unlabelled_rows: int
    items: dict[str, dict[str, int]]
    properties_refuted: int

    def as_json(self) -> dict[str, Any]:
        """Return every field by name."""
        return self._asdict()


def dossier(model_path: str, sources: DossierSources, *, output: str, run: Run = Run()) -> DossierReport:
    """Write `dossier.html` and `dossier.json` about the model at `model_path` to the folder `output`."""
    page_path, json_path = (os.path.join(output, f"dossier.{ending}") for ending in ("html", "json"))
    source = sources.source
    _check_folder(output)
    check_outputs(
        (page_path, json_path) if os.path.isdir(output) else (),
        (model_path, *source.paths, source.schema_file, sources.about, *sources.beside),
    )
    about = About() if sources.about is None else read_about(sources.about)
    found = find_all(model_path, sources, about, run)
    run.watch(Stage("write"))
    facts = facts_of(found)
    answers = {checklist.word: checklist.answer(about, facts) for checklist in CHECKLISTS}
    content = dump_json(_content(found, model_path, about, answers)).encode()
    page = html_page(dossier_page(found, model_path, sources, about, answers)).encode()
    os.makedirs(output, exist_ok=True)
    write_bytes(json_path, content)
    write_bytes(page_path, page)
    counts = {word: Counter(answer.status for answer in own) for word, own in answers.items()}
    return DossierReport(
        model=model_path,
        page=page_path,
        json=json_path,
        rows=found.scored.report.rows,
        unlabelled_rows=found.unlabelled,
        items={word: {status.replace(" ", "_"): own[status] for status in STATUSES} for word, own in counts.items()},
        properties_refuted=sum(one.holds is False for one in found.verified.properties or ()),
    )


def _check_folder(folder: str) -> None:
    """Raise UsageError if two files cannot be written to the folder."""
    if folder == "-" or (os.path.lexists(folder) and not os.path.isdir(folder)):
        raise UsageError(f"-o needs a folder for two files, which {folder!r} is not", hint="name a folder")
    if not os.path.isdir(folder):
        check_target(folder.rstrip("/"))


def _content(
    found: Findings, model_path: str, about: About, answers: Mapping[str, Sequence[Answer]]
) -> Mapping[str, Any]:
    """Return the content of the JSON file; it does not depend on when or how fast it was made."""
    evaluated = found.scored.report
    evaluation = evaluated.as_json()
    if evaluated.two_class is not None:
        lines = evaluated.two_class.net_benefit
        evaluation["net_benefit"] = [line._asdict() | {"ci": [*line.ci]} for line in lines]
        evaluation["gains"] = [line._asdict() for line in evaluated.two_class.gains]
    del evaluation["seconds"]
    groups = GroupsReport(tuple(period.group for period in found.periods if period.group is not None), ())
    known = {group["value"]: group for group in groups.as_json()["groups"]}
    periods = []
    for period in found.periods:
        unknown = dict.fromkeys(next(iter(known.values()))) | {"ci": {}, "rows": 0, "weight": 0.0}
        group = known.get(period.name, unknown) | {"by": found.time, "value": period.name}
        ends = {} if period.figures is None else period.figures.intervals
        names = _CALIBRATION if len(evaluated.labels) == 2 else ()
        periods.append(
            group
            | {name: getattr(period.figures, name, None) for name in names}
            | {"ci": group["ci"] | intervals_json({name: ends.get(name) for name in names})}
            | {"unlabelled_rows": period.rows - group["rows"], "expected": expected_json(period.expected)}
        )
    challengers = []
    for other in found.beside:
        mean, error = paired_difference(evaluated, other)
        difference = {"mean": mean, "low": mean - error, "high": mean + error}
        intervals = intervals_json(other.report.intervals.metrics)
        challengers.append(
            {"name": other.name, **other.report.metrics, "ci": intervals, "log_loss_difference": difference}
        )
    return {
        "format": "bncli-dossier",
        "version": VERSION,
        "bncli_version": __version__,
        "model": model_path,
        "rows": evaluated.rows,
        "unlabelled_rows": found.unlabelled,
        "about": {name: about.fields.get(name) for name in FIELDS},
        "checklists": {word: [answer.as_json() for answer in own] for word, own in answers.items()},
        "evaluation": evaluation,
        "periods": periods,
        "monitor": found.monitored.as_json(),
        "sensitivity": {
            "rows": found.sensitivity_rows,
            "attributes": [{"name": name} | own._asdict() for name, own in found.sensitivities.items()],
        },
        "challengers": challengers,
        "verification": found.verified.as_json(),
        "data": found.data,
        "specification": found.specification,
        "files": [{"kind": kind, "path": path, "sha256": digest} for kind, path, digest in found.files],
    }


_CALIBRATION = ("calibration_slope", "calibration_intercept", "calibration_in_the_large")
