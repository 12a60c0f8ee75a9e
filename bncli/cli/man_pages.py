"""The manual as man pages: `bncli help --man DIR`.

`bncli.1` lists the commands, `bncli-COMMAND.1` describes one with all of its options, and `bncli-TOPIC.7` is a topic of
the manual. The pages use the macros of man(7), and tbl(1) for tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from markdown_it import MarkdownIt
from markdown_it.token import Token

from bncli import __version__
from bncli.cli.command import HelpfulCommand
from bncli.cli.commands import BY_WORD, COMMANDS, EXAMPLES
from bncli.cli.manual_site import command_context, option_groups
from bncli.cli.topics import TOPIC_GROUPS, TOPICS, read_topic, subject_of

MARK = "Written by bncli help --man"
"""Text in the first lines of every file, by which the files of an earlier run are recognized."""

_TABLE_WIDTH = 70
"""The width of a table in characters."""
_BREAK = r"(?<=\w)(\\?[-|/,_=])(?=[^\W\d])"
"""A pattern of characters after which a word in a narrow column may be broken, in text and in source."""
_EXIT_STATUS = (
    ("0", "The command succeeded."),
    ("1", "The data or the computation failed."),
    ("2", "The command line or the configuration is wrong."),
    ("3", "A model file is unreadable, or the data do not fit the model."),
    ("4", "The rows differ from those the model was trained on."),
)


def make_man_pages() -> dict[str, str]:
    """Return the source of every page, keyed by file name."""
    pages = {"bncli.1": _first_page()}
    pages |= {f"bncli-{command.word}.1": _command_page(command.word) for command in COMMANDS}
    return pages | {f"bncli-{topic}.7": _topic_page(topic) for topic in TOPICS}


def _first_page() -> str:
    lines = [*_head("bncli", 1, "Bayesian network classifiers on the command line")]
    lines += [".SH SYNOPSIS", r"\fBbncli\fR \fICOMMAND\fR ..."]
    lines += [".SH DESCRIPTION", "Learn Bayesian network classifiers from tables, score with them, and inspect them."]
    lines += [".SH EXAMPLES", *_block(EXAMPLES), ".SH COMMANDS"]
    for task in dict.fromkeys(command.task for command in COMMANDS):
        lines.append(f".SS {_quoted(task)}")
        for command in COMMANDS:
            if command.task == task:
                lines += [".TP", _bold(f"bncli-{command.word}") + "(1)", _text(command.summary)]
    lines.append(".SH TOPICS")
    for heading, topics in TOPIC_GROUPS:
        lines.append(f".SS {_quoted(heading)}")
        for topic in topics:
            lines += [".TP", _bold(f"bncli-{topic}") + "(7)", _text(subject_of(topic))]
    return _joined([*lines, *_exit_status()])


def _command_page(word: str) -> str:
    """Return the page of a command, made from its help."""
    context = command_context(word)
    command = context.command
    assert isinstance(command, HelpfulCommand)
    summary = BY_WORD[word].summary
    lines = _head(f"bncli-{word}", 1, summary[0].lower() + summary[1:].removesuffix("."))
    lines += [".SH SYNOPSIS", _text(context.get_usage().removeprefix("Usage: "))]
    lines += [".SH DESCRIPTION", _text(" ".join((command.help or "").split()))]
    lines += [".SH EXAMPLES", *_block(command.examples), ".SH OPTIONS"]
    for name, rows in option_groups(word).items():
        lines.append(f".SS {_quoted(name)}")
        for typed, text, words in rows:
            lines += [".TP", _bold(typed), _text(text)]
            if words:
                lines += [".RS", *(line for row in words for line in (".TP", _bold(row[0]), _text(row[1]))), ".RE"]
    lines += _exit_status()
    others = [r"\fBbncli\fR(1)", *(_bold(f"bncli-{topic}") + "(7)" for topic in BY_WORD[word].topics)]
    return _joined([*lines, ".SH SEE ALSO", ",\n".join(others)])


def _topic_page(topic: str) -> str:
    """Return the page of a topic; the text before its first heading is the description."""
    subject = subject_of(topic)
    lines = [*_head(f"bncli-{topic}", 7, subject), ".SH DESCRIPTION"]
    tokens = MarkdownIt("commonmark", {"html": False}).enable("table").parse(read_topic(topic))
    lines += _blocks(tokens[3:])  # without the title
    owners = [_bold(f"bncli-{command.word}") + "(1)" for command in COMMANDS if topic in command.topics]
    return _joined([*lines, ".SH SEE ALSO", ",\n".join([r"\fBbncli\fR(1)", *owners])])


def _blocks(tokens: Sequence[Token]) -> list[str]:
    """Return the lines of a sequence of blocks of Markdown."""
    lines: list[str] = []
    numbers: list[int | None] = []  # the number of the next item in each open list; None for a bulleted list
    cells: list[list[Token]] = []
    is_first = False  # whether the next paragraph begins an item
    for i, token in enumerate(tokens):
        if token.type == "heading_open":
            lines.append(f"{'.SH' if token.tag == 'h2' else '.SS'} {_quoted(tokens[i + 1].content.replace('`', ''))}")
        elif token.type == "paragraph_open" and not is_first:
            lines.append(".IP" if numbers else ".PP")
        elif token.type in ("bullet_list_open", "ordered_list_open"):
            lines += [".RS 2"] if numbers else []
            numbers.append(int(token.attrs.get("start", 1)) if token.type.startswith("ordered") else None)
        elif token.type in ("bullet_list_close", "ordered_list_close"):
            numbers.pop()
            lines += [".RE"] if numbers else []
        elif token.type == "list_item_open":
            number = numbers[-1]
            lines.append(r".IP \(bu 2" if number is None else f".IP {number}. 4")
            numbers[-1] = None if number is None else number + 1
            is_first = True
        elif token.type == "inline" and tokens[i - 1].type in ("th_open", "td_open"):
            cells[-1].append(token)
        elif token.type == "inline" and tokens[i - 1].type == "paragraph_open":
            lines.append(_inline(token))
            is_first = False
        elif token.type in ("fence", "code_block"):
            lines += _block(token.content)
        elif token.type == "tr_open":
            cells.append([])
        elif token.type == "table_close":
            lines += _table(cells)
            cells = []
    return lines


def _inline(token: Token) -> str:
    """Return the source of a paragraph or a cell."""
    parts = []
    for child in token.children or ():
        if child.type == "text":
            parts.append(_escaped(child.content))
        elif child.type == "code_inline":
            parts.append(_bold(child.content))
        elif child.type in ("strong_open", "em_open"):
            parts.append(r"\fB" if child.type == "strong_open" else r"\fI")
        elif child.type in ("strong_close", "em_close"):
            parts.append(r"\fR")
        elif child.type == "link_close":
            parts.append(_escaped(f" ({next(c.attrs['href'] for c in token.children or () if c.type == 'link_open')})"))
        elif child.type in ("softbreak", "hardbreak"):
            parts.append("\n")
    return "\n".join(map(_guarded, "".join(parts).split("\n")))


def _table(rows: Sequence[Sequence[Token]]) -> list[str]:
    """Return a table for tbl; if the lines would be too long, the long cells become blocks of text."""
    texts = [["".join(child.content for child in cell.children or ()) for cell in row] for row in rows]
    columns = list(zip(*texts, strict=True))
    widths = [max(map(len, column)) for column in columns]
    least = [max(map(len, re.sub(_BREAK, r"\1 ", " ".join(column)).split())) for column in columns]
    gap = 2 if sum(least) + 2 * (len(least) - 1) <= _TABLE_WIDTH else 1
    while sum(widths) + gap * (len(widths) - 1) > _TABLE_WIDTH and widths != least:
        widest = max(range(len(widths)), key=lambda column: (widths[column] > least[column]) * widths[column])
        widths[widest] -= 1
    formats = [f"lw({width}n){gap}" for width in widths]
    formats[-1] = formats[-1][:-1]  # no gap behind the last
    lines = [".PP", ".TS", " ".join(form.replace("l", "lB") for form in formats), f"{' '.join(formats)}."]
    for row, plain in zip(rows, texts, strict=True):
        cells = [re.sub(_BREAK, r"\1\:", _inline(cell)) for cell in row]
        fits = [len(text) <= width for text, width in zip(plain, widths, strict=True)]
        lines.append("\t".join(cell if fit else f"T{{\n{cell}\nT}}" for cell, fit in zip(cells, fits, strict=True)))
    return [*lines, ".TE"]


def _block(text: str) -> list[str]:
    """Return the lines of a block whose line breaks are kept."""
    lines = [_guarded(_escaped(line)) for line in text.rstrip("\n").split("\n")]
    return [".PP", ".RS 2", ".nf", *lines, ".fi", ".RE"]


def _head(name: str, section: int, summary: str) -> list[str]:
    """Return the lines at the start of a page."""
    return [
        "'\\\" t",
        f'.\\" {MARK}',
        f'.TH {_escaped(name.upper())} {section} "" "bncli {__version__}" "bncli manual"',
        ".nh",
        ".ad l",
        ".SH NAME",
        f"{_escaped(name)} \\- {_escaped(summary)}",
    ]


def _exit_status() -> list[str]:
    return [".SH EXIT STATUS", *(line for code, text in _EXIT_STATUS for line in (".TP", code, _text(text)))]


def _joined(lines: Iterable[str]) -> str:
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """Return the text as a quoted argument of a macro."""
    return '"' + _escaped(text).replace('"', "\\(dq") + '"'


def _bold(text: str) -> str:
    return _guarded(f"\\fB{_escaped(text)}\\fR")


def _text(text: str) -> str:
    return _guarded(_escaped(text))


def _escaped(text: str) -> str:
    """Return text in which nothing is a command of roff; hyphens can be copied as they were typed."""
    return (
        text.replace("\\", "\\(rs")
        .replace("-", "\\-")
        .replace("^", "\\(ha")
        .replace("~", "\\(ti")
        .replace("`", "\\(ga")
    )


def _guarded(line: str) -> str:
    """Return a line that does not begin with a control character of roff."""
    return f"\\&{line}" if line.startswith((".", "'")) else line
