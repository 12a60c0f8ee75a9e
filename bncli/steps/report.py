"""Gathers what there is to say of a model, and of its predictions for a table, and writes it as one page to look at."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from bncli.engine.data.schema import Unseen
from bncli.engine.evaluation.baseline import class_frequencies
from bncli.engine.model import Model
from bncli.errors import UsageError
from bncli.files.atomic import check_target, write_bytes
from bncli.files.formats.report.blocks import Section
from bncli.files.formats.report.page import html_page
from bncli.files.model import read_model
from bncli.files.paths import check_outputs, refuse_ending
from bncli.files.table import Source
from bncli.steps.evaluating.by_column import attributes_of, carrying, group_columns, with_groups
from bncli.steps.evaluating.testing import read_test, single_report, tested_rows
from bncli.steps.reporting.beside import check_beside, models_beside
from bncli.steps.reporting.pages import Told, model_page
from bncli.steps.reporting.reliance import Scored
from bncli.steps.run import Stopwatch
from bncli.watch import Run, Stage


@dataclass(frozen=True)
class ReportReport:
    """What was written: the page, its bytes and sections, pictures in a folder; `rows` of the data, None without."""

    model: str
    output: str
    bytes: int
    sections: tuple[str, ...]
    pictures: tuple[str, ...]
    rows: int | None
    seconds: dict[str, float]

    def as_json(self) -> dict[str, Any]:
        """Every field by name."""
        lists = {"sections": list(self.sections), "pictures": list(self.pictures)}
        return {**self.__dict__, **lists}


@dataclass(frozen=True)
class Others:
    """Columns whose values make groups of rows with figures of their own; files of models that stand beside."""

    by: Sequence[str] = ()
    beside: Sequence[str] = ()


def report(
    path: str,
    source: Source | None,
    *,
    output: str,
    svg: str | None = None,
    unseen: Unseen | None = None,
    others: Others = Others(),
    run: Run = Run(),
) -> ReportReport:
    """The page on the model at `path`; without a `source` it tells what needs no data. `svg`: a folder of pictures.

    `others`: what is measured on the same rows beside the model as a whole.
    """
    refuse_ending(output, (), "the page is written as plain text")
    inputs = () if source is None else (*source.paths, source.schema_file, *others.beside)
    check_outputs((output,), (path, *inputs))
    check_beside(others.beside, () if source is None else source.paths)
    if svg is not None:
        check_folder(svg)
    watch = Stopwatch(run.watch)
    model = read_model(path)
    if unseen is not None:
        model = replace(model, schema=replace(model.schema, unseen=unseen))
    told = Told() if source is None else _told(model, source, others, run._replace(watch=watch))
    watch(Stage("report"))
    page = model_page(model, path, told)
    watch(Stage("write"))
    pictures = () if svg is None else write_pictures(page.sections, svg)
    text = html_page(page).encode()
    write_bytes(output, text)
    words = tuple(one.word for one in page.sections)
    rows = None if told.scored is None else told.scored.report.rows
    return ReportReport(path, output, len(text), words, pictures, rows, watch.seconds())


def _told(model: Model, source: Source, others: Others, run: Run) -> Told:
    schema = model.schema
    scored = _scored(model, carrying(source, others.by), run)
    beside = models_beside(others.beside, schema.class_name, schema.labels, source, run)
    return Told(scored, source.paths, beside=beside)


def _scored(model: Model, source: Source, run: Run) -> Scored:
    rows = read_test([model], source, run)
    tested = tested_rows(model, rows, source, run)
    frequencies = class_frequencies(tested.codes, len(tested.labels), tested.weights)
    told = single_report("not seen in training, as far as is known here", tested, frequencies, {})
    told = with_groups(told, group_columns(rows, source, lambda: attributes_of(model), run.watch))
    return Scored.of(model, rows, told, allow_missing=source.allow_missing_columns)


def check_folder(folder: str) -> None:
    """UsageError where pictures cannot be put."""
    if folder == "-":
        raise UsageError("--svg draws several pictures, which the standard output cannot take", hint="name a folder")
    if os.path.lexists(folder) and not os.path.isdir(folder):
        raise UsageError(f"--svg needs a folder for its pictures, and {folder!r} is none", hint="name another one")
    if not os.path.isdir(folder):
        check_target(folder.rstrip("/"))


def write_pictures(sections: Sequence[Section], folder: str) -> tuple[str, ...]:
    """Every picture as a file of its own; their names."""
    os.makedirs(folder, exist_ok=True)
    names = []
    for section in sections:
        for picture in section.pictures:
            names.append(f"{section.word}-{picture.name}.svg")
            write_bytes(os.path.join(folder, names[-1]), picture.drawing.source().encode())
    return tuple(names)
