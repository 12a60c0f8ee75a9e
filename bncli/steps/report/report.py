"""Write the report page of a model or of an evaluation, for the commands report, fit and evaluate."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bncli.engine.data.schema import Unseen
from bncli.engine.model import HeldOutLoss, Model
from bncli.engine.prediction.edits import with_positive_label
from bncli.engine.prediction.monitoring import are_training_rows
from bncli.engine.prediction.scoring import compile_scorer
from bncli.errors import UsageError
from bncli.files.artifacts.model import read_model
from bncli.files.atomic import write_bytes
from bncli.files.paths import check_outputs, check_target, refuse_ending
from bncli.files.pictures.page import (
    Block,
    Grid,
    Page,
    Paragraph,
    Picture,
    Section,
    Tile,
    count,
    figure,
    html_page,
    pictures_in,
)
from bncli.files.reading.source import Source
from bncli.recipe import Recipe
from bncli.steps.effects_and_regions import effects_report
from bncli.steps.evaluate.evaluate import read_test_rows, report_on_held_out, report_on_rows
from bncli.steps.evaluate.group_columns import carry_group_columns, group_columns, with_groups
from bncli.steps.evaluate.report import BlockReport, EvaluateReport, draw_blocks, draw_learning_curve
from bncli.steps.fit import FitReport
from bncli.steps.report.effects_section import MOST_BYTES, effects_section, what_if_sections
from bncli.steps.report.performance_section import (
    ComparedModel,
    check_other_models,
    held_out_section,
    performance_tiles,
    score_other_models,
)
from bncli.steps.report.reliability_section import ScoredTable, group_blocks, reliability_section
from bncli.steps.report.structure_section import construction_section, evaluation_provenance, provenance_section
from bncli.steps.run import Stopwatch
from bncli.watch import Run, Stage

_MOST_FOLDS = 50


@dataclass(frozen=True)
class ReportInputs:
    """The inputs of a page besides the model: scored rows, the paths of their files, warnings, and other models.

    - held_out: the log-losses on held-out rows, computed while the model was fitted.
    - evaluated: the evaluation of the predictions for the held-out rows, used if `scored` is None.
    - command: the command line that writes the page, or "" for a `bncli report` command.
    """

    scored: ScoredTable | None = None
    data: Sequence[str] = ()
    warnings: Sequence[str] = ()
    held_out: HeldOutLoss | None = None
    evaluated: EvaluateReport | None = None
    compared_models: Sequence[ComparedModel] = ()
    command: str = ""


@dataclass(frozen=True)
class PageReport:
    """The result of a report: paths of the model and the page, the page's size in bytes, and its sections.

    - pictures: the file names of the pictures that were also written to a folder.
    - rows: the number of scored rows, or None without data.
    - on_training_rows: whether the data have as many rows as the training table, with the same frequencies in every
      column that the model uses; None without data.
    """

    model: str
    output: str
    bytes: int
    sections: tuple[str, ...]
    pictures: tuple[str, ...]
    rows: int | None
    on_training_rows: bool | None
    seconds: dict[str, float]

    def as_json(self) -> dict[str, Any]:
        """Return all fields by name, with tuples as lists."""
        lists = {"sections": list(self.sections), "pictures": list(self.pictures)}
        return {**self.__dict__, **lists}


def report(
    path: str,
    source: Source | None,
    *,
    output: str,
    svg: str | None = None,
    unseen: Unseen | None = None,
    positive: str | None = None,
    by: Sequence[str] = (),
    other_paths: Sequence[str] = (),
    run: Run = Run(),
) -> PageReport:
    """Write the report page of the model at `path` to `output`.

    - source: the rows to score, or None for a page with only the parts that need no data.
    - svg: a folder to which the pictures are also written as separate files, or None.
    - unseen: how values not seen in training are treated, or None for the model's own setting.
    - positive: the positive label, or None for the model's own.
    - by: columns whose values define groups of rows.
    - other_paths: the files of other models to compare with, if there is a source.
    """
    check_page(output, (path, *(() if source is None else (*source.paths, source.schema_file, *other_paths))))
    check_other_models(other_paths, () if source is None else source.paths)
    if svg is not None:
        if svg == "-":
            raise UsageError(
                "--svg writes several files, so it cannot write to the standard output",
                hint="give the path of a folder",
            )
        if os.path.lexists(svg) and not os.path.isdir(svg):
            raise UsageError(
                f"--svg needs a folder for its pictures, but {svg!r} is a file", hint="give the path of a folder"
            )
        if not os.path.isdir(svg):
            check_target(svg.rstrip("/"))
    watch = Stopwatch(run.watch)
    run = run._replace(watch=watch)
    model = with_positive_label(read_model(path), positive)
    if unseen is not None:
        model = replace(model, schema=replace(model.schema, unseen=unseen))
    inputs = ReportInputs()
    if source is not None:
        with_by = carry_group_columns(source, by)
        rows = read_test_rows([model], with_by, run)
        same = are_training_rows(rows, model, compile_scorer(model).used)
        evaluated = report_on_rows(model, rows, with_by, "", run)
        evaluated = replace(evaluated, on_training_rows=same)
        evaluated = with_groups(evaluated, group_columns(rows, with_by, model.schema.attributes, watch), watch)
        scored = ScoredTable.of(model, rows, evaluated, allow_missing=source.allow_missing_columns)
        compared = score_other_models(other_paths, model.schema.class_name, model.schema.labels, source, run)
        inputs = ReportInputs(scored, source.paths, compared_models=compared)
    watch(Stage("report"))
    page = model_page(model, path, inputs)
    watch(Stage("write"))
    pictures: tuple[str, ...] = ()
    if svg is not None:
        os.makedirs(svg, exist_ok=True)
        names = []
        for section in page.sections:
            for picture in pictures_in(section.blocks):
                names.append(f"{picture.name}.svg")
                write_bytes(os.path.join(svg, names[-1]), picture.drawing.source(heading=True).encode())
        pictures = tuple(names)
    text = html_page(page).encode()
    write_bytes(output, text)
    sections = tuple(section.word for section in page.sections)
    n_rows = None if inputs.scored is None else inputs.scored.report.rows
    on_training_rows = None if inputs.scored is None else inputs.scored.report.on_training_rows
    return PageReport(path, output, len(text), sections, pictures, n_rows, on_training_rows, watch.seconds())


def check_page(path: str | None, inputs: Sequence[str | None]) -> None:
    """Raise UsageError or another BncliError if no page can be written to `path`; do nothing if it is None."""
    if path is not None:
        refuse_ending(path, (), "the page can be written only as plain text")
        check_outputs((path,), inputs)


def write_page(path: str, page: Page) -> None:
    write_bytes(path, html_page(page).encode())


def fit_page(report: FitReport) -> Page:
    """Return the page of a model that was just fitted and written, with its warnings and held-out predictions."""
    model, held_out, evaluated = read_model(report.model), report.held_out, None
    if report.held_out_predictions is not None:
        # class weights change the reported log-loss, but not these metrics
        base = held_out.base_log_loss if held_out is not None and report.class_weights is None else None
        evaluated = report_on_held_out(model, report.held_out_predictions, base)
    inputs = ReportInputs(warnings=report.warnings, held_out=held_out, evaluated=evaluated)
    return model_page(model, report.model, inputs)


def model_page(model: Model, path: str, inputs: ReportInputs) -> Page:
    """Return the page of the model at `path`, without the form for entering a row if it would be too large."""
    schema = model.schema
    effects = effects_report(model)
    weight = sum(schema.attributes[0].frequencies) + schema.attributes[0].missing_weight if schema.attributes else 0.0
    with_data = (word for file in inputs.data for word in ("--data", file))
    command = inputs.command or shlex.join(["bncli", "report", path, *with_data, "-o", "report.html"])
    files = [("model", path), *(("data", file) for file in inputs.data)]
    scored = inputs.scored
    evaluated = inputs.evaluated if scored is None else scored.report
    performance = held_out_section(evaluated, inputs.held_out, inputs.compared_models)
    before = (performance, effects_section(effects, schema.labels, weight))
    after = (
        reliability_section(model, scored, inputs.warnings),
        construction_section(model, scored),
        provenance_section(model, files, [command]),
    )
    labels = " or ".join(schema.labels) if len(schema.labels) <= 6 else count(len(schema.labels), "class", "classes")
    fitted = f"fitted to {count(model.n_rows, 'row')} ({model.structure_learned}; {model.recipe.param})"
    summary = f"Predicts {schema.class_name} ({labels}) from {count(len(model.attributes), 'attribute')}; {fitted}."
    if evaluated is not None:
        tiles = performance_tiles(evaluated)
    else:
        names = (
            ("Training rows", model.n_rows),
            ("Attributes used", len(model.attributes)),
            ("Classes", len(schema.labels)),
        )
        tiles = [Tile(name, f"{number:,.10g}") for name, number in names]
        if inputs.held_out is not None:
            base = f"class frequencies: {inputs.held_out.base_log_loss:.4f}"
            tiles.insert(0, Tile("Held-out log-loss", f"{inputs.held_out.log_loss:.4f}", base))
    # the first page that is small enough, or the last one if none is
    for what_if, program in what_if_sections(model, path, effects):
        title = f"{os.path.basename(path)}: {schema.class_name}"
        page = Page(title, summary, (*before, what_if, *after), program, tiles)
        if len(html_page(page).encode()) <= MOST_BYTES:
            break
    return page


def evaluation_page(
    report: EvaluateReport, data: Sequence[str], recipe: Recipe | None, compared_models: Sequence[ComparedModel] = ()
) -> Page:
    """Return the page of an evaluation, including other models evaluated on the same rows.

    `recipe` is the recipe of the fitted models, or None if a model file was evaluated.
    """
    sections = [held_out_section(report, compared_models=compared_models)]
    if (report.folds is not None and not report.blocks) or report.learning_curve:
        sections.append(Section("sure", "Variation between folds", tuple(_spread_blocks(report))))
    if report.blocks:
        sections.append(Section("blocks", "Stability over time", tuple(_time_blocks(report.blocks))))
    if report.groups is not None:
        sections.append(Section("groups", "Groups", tuple(group_blocks(report))))
    sections.append(evaluation_provenance(data, recipe))
    names = ", ".join(os.path.basename(path) for path in data)
    summary = f"{count(report.rows, 'row')}, {count(len(report.labels), 'class', 'classes')}: {report.protocol}."
    return Page(f"Evaluation on {names}", summary, sections, tiles=performance_tiles(report))


def _spread_blocks(report: EvaluateReport) -> Iterator[Block]:
    """Yield the range of the log-loss over the folds, a table of at most _MOST_FOLDS folds, and any learning curve."""
    folds = report.folds or ()
    losses = [fold.metrics["log_loss"] for fold in folds]
    known = [loss for loss in losses if loss is not None]
    if known:
        yield Paragraph(
            f"Over {count(len(folds), 'fold')}, the log-loss is between {min(known):.4f} and {max(known):.4f}."
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
        ends = f"{figure(first.metrics['log_loss'])} with {first.rows:,} rows, {figure(last.metrics['log_loss'])}"
        sentence = f"The log-loss is {ends} with {last.rows:,}."
        drawing = draw_learning_curve(report.learning_curve)
        yield Picture("learning-curve", "Learning curve", sentence, drawing, wide=True)


def _time_blocks(blocks: Sequence[BlockReport]) -> Iterator[Block]:
    """Yield a plot of the log-loss of the blocks in time order, and a table of their metrics."""
    losses = [loss for block in blocks if (loss := block.metrics["log_loss"]) is not None]
    first, last = (figure(block.metrics["log_loss"]) for block in (blocks[0], blocks[-1]))
    sentence = "Each block is predicted by a model fitted to earlier blocks. "
    sentence += f"The log-loss is {first} in the first block and {last} in the last; the highest is {max(losses):.4f}."
    yield Picture("blocks", "Log-loss over time", sentence, draw_blocks(blocks))
    rows = []
    for number, block in enumerate(blocks):
        ends = block.intervals["log_loss"]
        interval = "-" if ends is None else f"{ends[0]:.4f} - {ends[1]:.4f}"
        span = [end if isinstance(end, str) else f"{end:,.10g}" for end in (block.start, block.end)]
        figures = [figure(block.metrics[name]) for name in ("error", "log_loss", "auc")]
        sizes = [f"{block.rows:,}", f"{block.train_rows:,}"]
        rows.append((str(number + 1), *span, *sizes, *figures[:2], interval, *figures[2:]))
    headings = ("block", "from", "to", "rows", "training rows", "error", "log-loss", "95 %", "AUC")
    yield Grid("Blocks", headings, rows, range(3, 9))
