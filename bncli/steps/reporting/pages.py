"""Whole pages: of a model, of what came of learning one, of an evaluation."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from bncli.engine.chosen_penalty import HeldOut
from bncli.engine.model import Model
from bncli.files.atomic import write_bytes
from bncli.files.formats.report.blocks import Block, Grid, Page, Picture, Prose, Section
from bncli.files.formats.report.page import html_page
from bncli.files.formats.svg.learning_curve_plots import learning_curve_drawing
from bncli.files.model import read_model
from bncli.files.paths import check_outputs, refuse_ending
from bncli.recipe import Recipe
from bncli.steps.effects import effects_report
from bncli.steps.evaluating.pictures import learning_curve_panels
from bncli.steps.evaluating.report import EvaluateReport
from bncli.steps.fit import FitReport
from bncli.steps.reporting.beside import Beside
from bncli.steps.reporting.construction import construction_section
from bncli.steps.reporting.effects import effects_section
from bncli.steps.reporting.groups import group_blocks
from bncli.steps.reporting.held_out import held_out_section
from bncli.steps.reporting.making import evaluation_making, making_section
from bncli.steps.reporting.reliance import Scored, reliance_section, seems_trained_on
from bncli.steps.reporting.trying import MOST_BYTES, trying_sections
from bncli.steps.reporting.words import count, figure

_MOST_FOLDS = 50


@dataclass(frozen=True)
class Told:
    """What is known of a model beside itself: rows it was tried on and their files, what learning said of it,
    other models on the same rows.
    """

    scored: Scored | None = None
    data: Sequence[str] = ()
    warnings: Sequence[str] = ()
    held_out: HeldOut | None = None
    beside: Sequence[Beside] = ()


def check_page(path: str | None, inputs: Sequence[str | None]) -> None:
    """Before any work: an error where no page can be written there."""
    if path is not None:
        refuse_ending(path, (), "the page is written as plain text")
        check_outputs((path,), inputs)


def write_page(path: str, page: Page) -> None:
    """The file."""
    write_bytes(path, html_page(page).encode())


def fit_page(report: FitReport) -> Page:
    """Of a model that was just written, with what learning warned of."""
    return model_page(read_model(report.model), report.model, Told(warnings=report.warnings, held_out=report.held_out))


def model_page(model: Model, path: str, told: Told) -> Page:
    """All sections, in the order of a reader's questions."""
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
    after = (reliance_section(model, told.scored, told.warnings), making_section(model, files, [again]))
    title = f"{os.path.basename(path)}: {schema.class_name}"
    labels = " or ".join(schema.labels) if len(schema.labels) <= 6 else count(len(schema.labels), "label")
    learnt = f"learnt from {count(model.n_rows, 'row')} ({model.recipe.structure}, {model.recipe.param})"
    summary = (
        f"A model that tells {schema.class_name} ({labels}) from {count(len(model.attributes), 'column')}, {learnt}."
    )
    pages = (
        Page(title, summary, (*before, trying.section, *after), trying.program)
        for trying in trying_sections(model, path, effects)
    )
    return _with_room(pages)


def _with_room(pages: Iterator[Page]) -> Page:
    """The first that is small enough, else the last."""
    for page in pages:
        if len(html_page(page).encode()) <= MOST_BYTES:
            break
    return page


def _good(model: Model, told: Told) -> Section:
    """With a warning where the rows look like those of training."""
    if told.scored is None:
        return held_out_section(None, told.held_out)
    section = held_out_section(told.scored.report, told.held_out, told.beside)
    if not seems_trained_on(model, told.scored):
        return section
    same = "These rows have every value as often as the training rows, and are as many: they look like these themselves"
    warning = Prose(f"{same}, on which a model looks better than it is. Give rows that it has not seen.", "warning")
    return replace(section, blocks=(warning, *section.blocks))


def evaluation_page(
    report: EvaluateReport, data: Sequence[str], recipe: Recipe | None, beside: Sequence[Beside] = ()
) -> Page:
    """Of an evaluation; `recipe` None: of a model, which was not learnt here; other models `beside` on its rows."""
    sections = [held_out_section(report, beside=beside)]
    if report.folds is not None or report.learning_curve:
        sections.append(Section("sure", "How sure is that?", tuple(_spread(report))))
    if report.groups is not None:
        sections.append(Section("groups", "For whom is it good?", tuple(group_blocks(report))))
    sections.append(evaluation_making(data, recipe))
    names = ", ".join(os.path.basename(one) for one in data)
    summary = f"How well {count(report.rows, 'row')} are told, {len(report.labels):,} labels: {report.protocol}."
    return Page(f"Evaluation on {names}", summary, sections)


def _spread(report: EvaluateReport) -> Iterator[Block]:
    """The folds, and the learning curve."""
    folds = report.folds or ()
    losses = [fold.metrics["log_loss"] for fold in folds]
    known = [loss for loss in losses if loss is not None]
    if known:
        yield Prose(f"Over {count(len(folds), 'fold')} the log-loss runs from {min(known):.4f} to {max(known):.4f}.")
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
        title, panels = learning_curve_panels(report.learning_curve)
        drawing = learning_curve_drawing(title, panels)
        yield Picture("learning-curve", "Learning curve.", sentence, drawing, wide=True)
