"""Gathers what there is to say of a model, and of its predictions for a table, and writes it as one page to look at.

Whole pages: of a model, of what came of learning one, of an evaluation.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bncli.engine.data.schema import Unseen
from bncli.engine.model import HeldOutLoss, Model
from bncli.engine.prediction.positive_label import with_positive_label
from bncli.errors import UsageError
from bncli.files.artifacts.model import read_model
from bncli.files.atomic import write_bytes
from bncli.files.paths import check_outputs, check_target, refuse_ending
from bncli.files.pictures.page import Block, Grid, Page, Paragraph, Picture, Section, html_page, pictures_in
from bncli.files.reading.source import Source
from bncli.recipe import Recipe
from bncli.steps.effects_and_regions import effects_report
from bncli.steps.evaluate.evaluate import read_test_rows, report_on_rows
from bncli.steps.evaluate.group_columns import carry_group_columns, group_columns, with_groups
from bncli.steps.evaluate.plots import draw_learning_curve
from bncli.steps.evaluate.report import EvaluateReport
from bncli.steps.fit import FitReport
from bncli.steps.report.effects_section import effects_section
from bncli.steps.report.other_models import ComparedModel, check_other_models, score_other_models
from bncli.steps.report.page_text import count, figure
from bncli.steps.report.performance_section import held_out_section
from bncli.steps.report.reliability_section import ScoredTable, group_blocks, reliance_section, seems_trained_on
from bncli.steps.report.structure_section import construction_section, evaluation_provenance, provenance_section
from bncli.steps.report.what_if_section import MOST_BYTES, what_if_sections
from bncli.steps.run import Stopwatch
from bncli.watch import Run, Stage

_MOST_FOLDS = 50


@dataclass(frozen=True)
class ReportInputs:
    """What is known about a model: scored rows and their files, the report of its fit, other models on these rows."""

    scored: ScoredTable | None = None
    data: Sequence[str] = ()
    warnings: Sequence[str] = ()
    held_out: HeldOutLoss | None = None
    beside: Sequence[ComparedModel] = ()


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
        """Return every field by name."""
        lists = {"sections": list(self.sections), "pictures": list(self.pictures)}
        return {**self.__dict__, **lists}


@dataclass(frozen=True)
class Comparisons:
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
    positive: str | None = None,
    others: Comparisons = Comparisons(),
    run: Run = Run(),
) -> ReportReport:
    """Return the page on the model at `path`.

    Without a `source` it tells what needs no data. `svg`: a folder of pictures. `positive`: the label that is the
    event, None: as the model says.

    `others`: what is measured on the same rows beside the model as a whole.
    """
    refuse_ending(output, (), "the page is written as plain text")
    inputs = () if source is None else (*source.paths, source.schema_file, *others.beside)
    check_outputs((output,), (path, *inputs))
    check_other_models(others.beside, () if source is None else source.paths)
    if svg is not None:
        check_folder(svg)
    watch = Stopwatch(run.watch)
    model = with_positive_label(read_model(path), positive)
    if unseen is not None:
        model = replace(model, schema=replace(model.schema, unseen=unseen))
    told = ReportInputs() if source is None else _collect_inputs(model, source, others, run._replace(watch=watch))
    watch(Stage("report"))
    page = model_page(model, path, told)
    watch(Stage("write"))
    pictures = () if svg is None else write_pictures(page.sections, svg)
    text = html_page(page).encode()
    write_bytes(output, text)
    words = tuple(one.word for one in page.sections)
    rows = None if told.scored is None else told.scored.report.rows
    return ReportReport(path, output, len(text), words, pictures, rows, watch.seconds())


def _collect_inputs(model: Model, source: Source, others: Comparisons, run: Run) -> ReportInputs:
    schema = model.schema
    scored = _scored(model, carry_group_columns(source, others.by), run)
    beside = score_other_models(others.beside, schema.class_name, schema.labels, source, run)
    return ReportInputs(scored, source.paths, beside=beside)


def _scored(model: Model, source: Source, run: Run) -> ScoredTable:
    rows = read_test_rows([model], source, run)
    told = report_on_rows(model, rows, source, "not seen in training, as far as is known here", run)
    told = with_groups(told, group_columns(rows, source, model.schema.attributes, run.watch))
    return ScoredTable.of(model, rows, told, allow_missing=source.allow_missing_columns)


def check_page(path: str | None, inputs: Sequence[str | None]) -> None:
    """Before any work: an error where no page can be written there."""
    if path is not None:
        refuse_ending(path, (), "the page is written as plain text")
        check_outputs((path,), inputs)


def write_page(path: str, page: Page) -> None:
    """Write the file."""
    write_bytes(path, html_page(page).encode())


def fit_page(report: FitReport) -> Page:
    """Of a model that was just written, with what learning warned of."""
    return model_page(
        read_model(report.model), report.model, ReportInputs(warnings=report.warnings, held_out=report.held_out)
    )


def model_page(model: Model, path: str, told: ReportInputs) -> Page:
    """Return all sections, in the order of a reader's questions."""
    schema = model.schema
    effects = effects_report(model)
    weight = sum(schema.attributes[0].frequencies) + schema.attributes[0].missing_weight if schema.attributes else 0.0
    again = shlex.join(
        ["bncli", "report", path, *(word for one in told.data for word in ("--data", one)), "-o", "report.html"]
    )
    files = [("model", path), *(("data", one) for one in told.data)]
    before = (
        _good(model, told),
        effects_section(effects, schema.labels, weight),
        construction_section(model, told.scored),
    )
    after = (reliance_section(model, told.scored, told.warnings), provenance_section(model, files, [again]))
    title = f"{os.path.basename(path)}: {schema.class_name}"
    labels = " or ".join(schema.labels) if len(schema.labels) <= 6 else count(len(schema.labels), "label")
    learnt = f"learnt from {count(model.n_rows, 'row')} ({model.structure_learned}; {model.recipe.param})"
    summary = (
        f"A model that tells {schema.class_name} ({labels}) from {count(len(model.attributes), 'column')}, {learnt}."
    )
    pages = (
        Page(title, summary, (*before, trying.section, *after), trying.program)
        for trying in what_if_sections(model, path, effects)
    )
    # The first that is small enough, else the last.
    for page in pages:
        if len(html_page(page).encode()) <= MOST_BYTES:
            break
    return page


def _good(model: Model, told: ReportInputs) -> Section:
    """With a warning where the rows look like those of training."""
    if told.scored is None:
        return held_out_section(None, told.held_out)
    section = held_out_section(told.scored.report, told.held_out, told.beside)
    if not seems_trained_on(model, told.scored):
        return section
    same = "These rows have every value as often as the training rows, and are as many: they look like these themselves"
    warning = Paragraph(f"{same}, on which a model looks better than it is. Give rows that it has not seen.", "warning")
    return replace(section, blocks=(warning, *section.blocks))


def evaluation_page(
    report: EvaluateReport, data: Sequence[str], recipe: Recipe | None, beside: Sequence[ComparedModel] = ()
) -> Page:
    """Of an evaluation; `recipe` None: of a model, which was not learnt here; other models `beside` on its rows."""
    sections = [held_out_section(report, beside=beside)]
    if report.folds is not None or report.learning_curve:
        sections.append(Section("sure", "How sure is that?", tuple(_spread(report))))
    if report.groups is not None:
        sections.append(Section("groups", "For whom is it good?", tuple(group_blocks(report))))
    sections.append(evaluation_provenance(data, recipe))
    names = ", ".join(os.path.basename(one) for one in data)
    summary = f"How well {count(report.rows, 'row')} are told, {len(report.labels):,} labels: {report.protocol}."
    return Page(f"Evaluation on {names}", summary, sections)


def _spread(report: EvaluateReport) -> Iterator[Block]:
    """Yield the folds, and the learning curve."""
    folds = report.folds or ()
    losses = [fold.metrics["log_loss"] for fold in folds]
    known = [loss for loss in losses if loss is not None]
    if known:
        yield Paragraph(
            f"Over {count(len(folds), 'fold')} the log-loss runs from {min(known):.4f} to {max(known):.4f}."
        )
    names = ("error", "log_loss", "auc")
    rows = [
        (f"{fold.repeat + 1}.{fold.fold + 1}", f"{fold.rows:,}", *(figure(fold.metrics[name]) for name in names))
        for fold in folds[:_MOST_FOLDS]
    ]
    if rows:
        yield Grid("Folds", ("fold", "rows", "error", "log-loss", "AUC"), rows, (1, 2, 3, 4))
    if report.learning_curve:
        first, last = report.learning_curve[0], report.learning_curve[-1]
        ends = f"{figure(first.metrics['log_loss'])} from {first.rows:,} rows, {figure(last.metrics['log_loss'])}"
        sentence = f"The log-loss is {ends} from {last.rows:,}."
        drawing = draw_learning_curve(report.learning_curve)
        yield Picture("learning-curve", "Learning curve.", sentence, drawing, wide=True)


def check_folder(folder: str) -> None:
    """Raise UsageError where pictures cannot be put."""
    if folder == "-":
        raise UsageError("--svg draws several pictures, which the standard output cannot take", hint="name a folder")
    if os.path.lexists(folder) and not os.path.isdir(folder):
        raise UsageError(f"--svg needs a folder for its pictures, and {folder!r} is none", hint="name another one")
    if not os.path.isdir(folder):
        check_target(folder.rstrip("/"))


def write_pictures(sections: Sequence[Section], folder: str) -> tuple[str, ...]:
    """Return every picture as a file of its own; their names."""
    os.makedirs(folder, exist_ok=True)
    names = []
    for section in sections:
        for picture in pictures_in(section.blocks):
            names.append(f"{section.word}-{picture.name}.svg")
            write_bytes(os.path.join(folder, names[-1]), picture.drawing.source().encode())
    return tuple(names)
