"""Tables of the README and the manual that follow from the program or from what was measured, and stand in the text.

A table stands between two comments: `<!-- NAME: made from SOURCE -->` and `<!-- end of NAME -->`. `renewed` writes all
tables of a text as they are to be; with BNCLI_UPDATE=1 the tests put them there.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable, Iterable, Sequence

from bncli.catalogue import CHOICES, NETWORKS, OPTIONS
from bncli.catalogue.choices import Choice, Method
from bncli.cli.help import TOPIC_GROUPS
from bncli.cli.learning_options import PAPERS
from bncli.cli.options import kind_metavar
from bncli.engine.model import StoppedBy
from bncli.files.exports import EXPORTS
from tests.performance import growth, passes
from tests.performance.results import read as measured
from tests.published import (
    anchors,
    classifiers,
    defaults,
    exports,
    exports_page,
    penalty_center,
    references,
    report_sizes,
)
from tests.published.anchors_evidence import anchored
from tests.published.anchors_short import in_a_paragraph, in_short
from tests.published.classifiers_evidence import Evidence, evidence
from tests.published.classifiers_page import manual_table, readme_table
from tests.published.references import recorded
from tests.transcripts import ROOT

MANUAL = ROOT / "bncli" / "manual"
SURVEYED = ("adult", "connect_4", "covertype", "letter", "nursery", "shuttle", "satimage", "spambase")


def renewed(text: str) -> str:
    """The text with every marked table made anew."""
    return re.sub(
        r"^(<!-- (.+?): made from .+? -->\n)(.*?)(<!-- end of \2 -->)$",
        lambda match: match[1] + made(match[2]) + match[4],
        text,
        flags=re.MULTILINE | re.DOTALL,
    )


def made(name: str) -> str:
    """The table of this name."""
    kind, _, flag = name.partition(" of ")
    if kind == "words":
        return words_table(next(choice for choice in (*CHOICES, NETWORKS) if choice.flag == flag))
    return TABLES[name]()


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown: columns of numbers to the right, columns without an entry left out."""
    columns = [column for column in zip(headings, *rows, strict=True) if any(column[1:])]
    numbers = [all(re.fullmatch(r"(over )?[0-9][0-9., +]*", cell) for cell in column[1:]) for column in columns]
    heading, *lines = zip(*columns, strict=True)
    rule = ["---:" if number else "---" for number in numbers]
    return "".join(f"| {' | '.join(line)} |\n" for line in (heading, rule, *lines))


def words_table(choice: Choice) -> str:
    rows = [(_word(choice, method), method.summary, _taken(method)) for method in choice.methods]
    return table((f"`{choice.flag}`", "meaning", "takes"), rows)


def methods_table() -> str:
    """Every word of every choice, the default in bold, with the options that it takes."""
    rows = [
        (f"`{choice.flag}`", _word(choice, method), method.summary, _taken(method))
        for choice in CHOICES
        for method in choice.methods
    ]
    return table(("option", "word (default in bold)", "meaning", "takes"), rows)


def _word(choice: Choice, method: Method) -> str:
    return f"**`{method.word}`**" if method.word == choice.default else f"`{method.word}`"


def _taken(method: Method) -> str:
    return ", ".join(f"`{flag}`" for flag in method.options)


def options_table() -> str:
    values = [o.metavar or kind_metavar(o.kind) for o in OPTIONS]
    shown = [f"`{value}`".replace("|", "\\|") if value else "" for value in values]
    rows = [(f"`{o.flag}`", value, o.default_text, o.summary) for o, value in zip(OPTIONS, shown, strict=True)]
    return table(("option", "value", "default", "meaning"), rows)


def other_defaults_table() -> str:
    methods = [method for choice in CHOICES for method in choice.methods]
    other = [(method.word, flag, value) for method in methods for flag, value in method.defaults]
    rows = [(f"`{word}`", f"`{flag}`", f"`{value}`") for word, flag, value in other]
    return table(("with", "option", "default"), rows)


def stopping_table() -> str:
    return table(("word", "meaning"), [(f"`{reason.word}`", reason.value) for reason in StoppedBy])


def topics_table() -> str:
    """The groups of the manual, and the topics of each."""
    return table(("about", "topics"), [(title, ", ".join(f"`{t}`" for t in topics)) for title, topics in TOPIC_GROUPS])


def rooms_table() -> str:
    rows = [(f"`{name}.py`", _said(f"bncli.{name}")) for name in _inside("bncli", False)]
    rows += [(f"`{name}/`", _said(f"bncli.{name}")) for name in _inside("bncli", True)]
    return table(("in `bncli/`", "what it is"), rows)


def engine_rooms_table() -> str:
    rows = [(f"`{name}/`", _said(f"bncli.engine.{name}")) for name in _inside("bncli.engine", True)]
    return table(("in `bncli/engine/`", "what it is"), rows)


def _inside(package: str, folders: bool) -> list[str]:
    paths = importlib.import_module(package).__path__
    return sorted(one.name for one in pkgutil.iter_modules(paths) if one.ispkg == folders)


def _said(module: str) -> str:
    """The first paragraph of a docstring."""
    docstring = importlib.import_module(module).__doc__
    assert docstring
    return " ".join(docstring.split("\n\n")[0].split()).replace("|", "\\|")


def passes_table() -> str:
    """Passes to the optimum, of the larger tables, at both penalties."""
    found = {(line.table, line.structure, line.penalty): line for line in passes.recorded()}
    rows = []
    for name in SURVEYED:
        for structure in ("NB", "TAN"):
            one, low = found[name, structure, 1.0], found[name, structure, 0.01]
            rows.append([name, f"{one.rows:,}", structure, f"{one.parameters:,}", *_passes(one), *_passes(low)])
    penalties = ("`--penalty 1`", "L-BFGS-B", "`--penalty 0.01`", "L-BFGS-B")
    return table(("table", "rows", "structure", "parameters", *penalties), rows)


def _passes(line: passes.Line) -> list[str]:
    other = f"{line.peer:.0f}" if line.peer < passes.CAP else f"over {passes.CAP}"
    return [f"{line.own:.0f} + {line.own_setup:.0f}", other]


def mean_passes_table() -> str:
    """Geometric means of passes at every penalty, over all tables and over the large ones."""
    lines, rows = passes.recorded(), []
    for penalty in passes.PENALTIES:
        for least, which in ((0, "all"), (passes.MANY_ROWS, f"over {passes.MANY_ROWS:,}")):
            found = passes.means(lines, penalty, least)
            numbers = [f"{number:.0f}" for number in (found.passes, found.total, found.peer)]
            rows.append([f"{penalty:g}", which, str(found.problems), *numbers, str(found.late), str(found.peer_late)])
    ours = ("passes", "with preconditioners")
    late = (f"over {passes.CAP}", f"L-BFGS-B over {passes.CAP}")
    return table(("`--penalty`", "rows", "problems", *ours, "L-BFGS-B", *late), rows)


def missing_passes_table() -> str:
    """What a pass over incomplete rows takes, and how many table entries it works on."""
    found = [figure for figure in measured().figures if figure.section.startswith("Rows with holes")]
    rows = []
    for figure in found:
        entries = re.search(r"([0-9,]+) entries", figure.detail)
        assert entries is not None
        rows.append((figure.what.split()[1].rstrip(","), f"{figure.measured:.3g}", entries[1]))
    return table(("structure", "times a complete pass", "table entries"), rows)


def single_rows_table() -> str:
    """What one row in Python takes, and how many of them a core answers per second."""
    section = "One row in Python: a scorer, a table of one row, and a web service"
    rows = []
    for figure in measured().figures:
        if figure.section == section:
            per_second = 1e6 / figure.measured
            shown = f"{per_second:,.0f}" if figure.unit == "microseconds" else ""
            rows.append((figure.what, f"{figure.measured:.3g} {figure.unit}", shown))
    return table(("work", "CPU time", "per second and core"), rows)


def growth_table() -> str:
    """CPU seconds of each command on the smallest, a middle and the largest table of the picture."""
    points = {(point.command, point.rows, point.columns): point for point in growth.recorded()}
    sizes = [(10_000, 30), (100_000, 30), (1_000_000, 30), (200, 1_000), (200, 20_000)]
    rows = []
    for command in growth.COMMANDS:
        own = [points.get((command, *size)) for size in sizes]
        rows.append((f"`bncli {command}`", *("" if p is None else f"{p.cpu:.3g} s, {p.peak_mb:,.0f} MB" for p in own)))
    return table(("command", *(f"{n:,} x {d:,}" for n, d in sizes)), rows)


def _figures() -> Evidence:
    return evidence(recorded(classifiers.FIGURES) + recorded(references.FIGURES))


def exports_table() -> str:
    """Every format of `bncli export`."""
    formats = {word: importlib.import_module(f"bncli.files.exports.{word}").FORMAT for word in EXPORTS}
    return table(("format", "content"), [(f"`{word}`", one.summary) for word, one in formats.items()])


def report_sizes_table() -> str:
    """Size and CPU seconds of the report pages of several models."""
    head = "| table | columns | labels | table entries | MB | row by hand | s |\n|---|---:|---:|---:|---:|---|---:|\n"
    return head + report_sizes.page_rows(report_sizes.recorded())


def papers_table() -> str:
    """The learners of the presets of papers, without what all of them have."""
    rows = [(one.name, f"`{one.options}`", one.sections) for _, ones in PAPERS.values() for one in ones]
    return table(("learner", "options", "sections"), rows)


TABLES: dict[str, Callable[[], str]] = {
    "methods": methods_table,
    "options": options_table,
    "other defaults": other_defaults_table,
    "stopping": stopping_table,
    "topics": topics_table,
    "rooms": rooms_table,
    "engine rooms": engine_rooms_table,
    "papers": papers_table,
    "passes": passes_table,
    "mean passes": mean_passes_table,
    "missing passes": missing_passes_table,
    "single rows": single_rows_table,
    "growth": growth_table,
    "from one to another": lambda: penalty_center.center_table(penalty_center.recorded()),
    "settings": lambda: defaults.settings_table(defaults.recorded()),
    "chosen penalties": lambda: defaults.penalties_table(defaults.recorded()),
    "export formats": exports_table,
    "export speeds": lambda: exports_page.speeds(exports.recorded()).rstrip("\n") + "\n",
    "report sizes": report_sizes_table,
    "results": lambda: manual_table(_figures()),
    "results in short": lambda: readme_table(_figures()),
    "anchors": lambda: in_short(anchored(anchors.recorded())),
    "anchors in short": lambda: in_a_paragraph(anchored(anchors.recorded())),
}
