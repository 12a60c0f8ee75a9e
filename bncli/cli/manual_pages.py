"""The manual as a static web site, `bncli help --html DIR`, and as man pages, `bncli help --man DIR`.

The site has a page per topic, `TOPIC.html`, a page per command, `bncli-COMMAND.html`, and `index.html`. All pages share
one style sheet and one script, which searches titles, headings, options and methods. Nothing is loaded from elsewhere.

The man page `bncli.1` lists the commands and topics, `bncli-COMMAND.1` describes a command with all of its options, and
`bncli-TOPIC.7` is a topic. The pages use the macros of man(7), and tbl(1) for tables.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import click
from markdown_it import MarkdownIt
from markdown_it.token import Token

from bncli import __version__
from bncli.cli.command import HelpfulCommand
from bncli.cli.commands import BY_WORD, COMMANDS, EXAMPLES, group, load_command
from bncli.cli.help import FOLDER, TOPIC_GROUPS, TOPICS, read_topic, subject_of, topics_by_synonym

SITE_MARK = "written by bncli help --html"
"""Text in the first line of every file, which identifies files written by an earlier run."""

_POINTER = re.compile(r"bncli help ([a-z-]+)")


class _Page(NamedTuple):
    """A page: its file name, title, one-line description and HTML content, and its headings with their anchors."""

    file: str
    title: str
    subject: str
    content: str
    headings: Sequence[tuple[str, str]] = ()


def make_site() -> dict[str, str]:
    """Return the content of every file of the site, keyed by file name."""
    pages = [*map(_topic_page, TOPICS), *(_command_page(command.word) for command in COMMANDS)]
    by_file = {page.file: page for page in pages}
    files = {page.file: _document(page) for page in (_contents_page(by_file), *pages)}
    # The entries of the search: a text, its link, and the subject or title above it.
    entries: list[tuple[str, str, str]] = []
    for page in pages:
        entries.append((page.title, page.file, page.subject))
        if not page.file.startswith("bncli-"):
            entries += [(text, f"{page.file}#{anchor}", page.title) for text, anchor in page.headings]
    # Each option, and each word that it accepts, is listed once per meaning, with the commands that have it.
    owners: dict[tuple[str, str], list[str]] = {}
    for command in COMMANDS:
        for rows in option_groups(command.word).values():
            for typed, text, words in rows:
                flag = _flag_of(typed)
                owners.setdefault((flag, re.split(r"(?<=\w)[.;] ", text)[0]), []).append(command.word)
                for word, meaning in words:
                    owners.setdefault((f"{flag} {word}", meaning), []).append(command.word)
    for (name, meaning), commands in owners.items():
        link = f"bncli-{commands[0]}.html#{name.partition(' ')[0]}"
        entries.append((name, link, f"{', '.join(dict.fromkeys(commands))}: {meaning}"))
    index = ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in dict.fromkeys(entries))
    synonyms = json.dumps({word: f"{topic}.html" for word, topic in topics_by_synonym().items()})
    style, script = (Path(FOLDER, name).read_text("utf-8") for name in ("site.css", "site.js"))
    files["manual.css"] = f"/* {SITE_MARK} */\n{style}"
    files["manual.js"] = f"// {SITE_MARK}\nconst ENTRIES = [\n{index}\n];\nconst SYNONYMS = {synonyms};\n{script}"
    return files


def _topic_page(topic: str) -> _Page:
    """Return the page of a topic, rendered from its Markdown, in which commands link to their pages."""
    headings: list[tuple[str, str]] = []
    title = read_topic(topic).partition("\n")[0].removeprefix("# ").partition(": ")[0]
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")

    def open_heading(_self: Any, tokens: Any, i: int, _options: Any, _env: Any) -> str:
        text, level = tokens[i + 1].content.replace("`", ""), tokens[i].tag
        if level == "h1":
            return "<h1>"
        anchor = _anchor(text, [taken for _, taken in headings])
        headings.append((text, anchor))
        return f'<{level} id="{anchor}">'

    def show_code(_self: Any, tokens: Any, i: int, _options: Any, _env: Any) -> str:
        """Return inline code, as a link if it is a command or `bncli help` with a topic or a command."""
        shown = re.sub(r"\S*-\S*", r"<span>\g<0></span>", escape(tokens[i].content))
        first, *words = tokens[i].content.split() or [""]
        file = ""
        if first == "bncli" and len(words) == 2 and words[0] == "help":
            file = f"{words[1]}.html" if words[1] in TOPICS else f"bncli-{words[1]}.html" if words[1] in BY_WORD else ""
        elif first == "bncli" and words and words[0] in BY_WORD:
            file = f"bncli-{words[0]}.html"
        return f'<a href="{file}"><code>{shown}</code></a>' if file else f"<code>{shown}</code>"

    markdown.add_render_rule("heading_open", open_heading)
    markdown.add_render_rule("code_inline", show_code)
    for block in ("fence", "code_block"):
        markdown.add_render_rule(block, lambda _self, tokens, i, *_: _console(tokens[i].content))
    markdown.add_render_rule("table_open", lambda *_: '<div class="scroll" tabindex="0"><table>\n')
    markdown.add_render_rule("table_close", lambda *_: "</table></div>\n")
    return _Page(f"{topic}.html", title, subject_of(topic), markdown.render(read_topic(topic)), headings)


def _anchor(text: str, taken: Sequence[str]) -> str:
    """Return an anchor for a heading, different from all anchors in `taken`."""
    anchor = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "part"
    n_same = sum(re.fullmatch(rf"{anchor}(-\d+)?", other) is not None for other in taken)
    numbered = f"{anchor}-{n_same + 1}" if n_same else anchor
    while numbered in taken:
        n_same += 1
        numbered = f"{anchor}-{n_same + 1}"
    return numbered


def _console(text: str) -> str:
    """Return a block of code as HTML, with the commands after a prompt marked as input."""
    lines: list[str] = []
    typed = False
    for line in text.rstrip("\n").split("\n"):
        typed = line.startswith("$ ") or (typed and lines[-1].endswith("\\</kbd>"))
        gap = re.search(r"(?<=\S)   +(?=\S)", line)  # before a remark
        end = gap.start() if gap else len(line)
        lines.append(f"<kbd>{escape(line[:end])}</kbd>{escape(line[end:])}" if typed else escape(line))
    text = "\n".join(lines)
    return f'<pre tabindex="0">{text}</pre>\n'


def _linked(text: str) -> str:
    """Return a string from the help as HTML, with a link for each `bncli help TOPIC`."""
    return _POINTER.sub(
        lambda match: f'<a href="{match[1]}.html">{match[0]}</a>' if match[1] in TOPICS else match[0], escape(text)
    )


def command_context(word: str) -> click.Context:
    """Return a click context for writing the help of a command."""
    return click.Context(load_command(word), info_name=word, parent=click.Context(group, info_name="bncli"))


def option_groups(word: str) -> dict[str, list[tuple[str, str, list[tuple[str, str]]]]]:
    """Return all options of a command by group: the option with its placeholder, its help, and the accepted words."""
    context = command_context(word)
    assert isinstance(context.command, HelpfulCommand)
    groups: dict[str, list[tuple[str, str, list[tuple[str, str]]]]] = {}
    for name, rows in context.command.option_groups(context, show_all=True).items():
        for typed, text in rows:
            if typed.startswith("    "):
                groups[name][-1][2].append((typed.strip(), text))
            else:
                groups.setdefault(name, []).append((typed, text, []))
    return groups


def _command_page(word: str) -> _Page:
    """Return the page of a command, made from its help."""
    context = command_context(word)
    command = context.command
    assert isinstance(command, HelpfulCommand)
    _, _, more = (command.help or "").partition("\n")
    parts = [
        f"<h1>bncli {word}</h1>\n<p>{_linked(BY_WORD[word].summary)} {_linked(more)}</p>",
        _console(context.get_usage()),
        '<h2 id="examples">Examples</h2>',
        _console("".join(f"$ {line}\n" for line in command.examples.splitlines())),
    ]
    headings = [("Examples", "examples")]
    options: list[str] = []
    for name, rows in option_groups(word).items():
        anchor = _anchor(name, [taken for _, taken in headings])
        headings.append((name, anchor))
        parts.append(f'<h2 id="{anchor}">{escape(name)}</h2>\n<dl>')
        for typed, text, words in rows:
            flag = _flag_of(typed)
            anchored = f' id="{flag}"' if flag not in options else ""
            options.append(flag)
            inner = "".join(f"<dt><code>{escape(w)}</code></dt><dd>{_linked(meaning)}</dd>" for w, meaning in words)
            inner = f"<dl>{inner}</dl>" if inner else ""
            parts.append(f"<dt{anchored}><code>{escape(typed)}</code></dt><dd>{_linked(text)}{inner}</dd>")
        parts.append("</dl>")
    listed = "".join(f'<li><a href="{t}.html">{t}</a>: {escape(subject_of(t))}</li>' for t in BY_WORD[word].topics)
    parts.append(f'<h2 id="more">More</h2>\n<ul>{listed}</ul>')
    headings.append(("More", "more"))
    return _Page(f"bncli-{word}.html", f"bncli {word}", BY_WORD[word].summary, "\n".join(parts), headings)


def _flag_of(typed: str) -> str:
    """Return the long flag in a row of the help such as `-o, --output FILE`, or the first name in a row of metrics."""
    flags = re.findall(r"(?<!\S)--[\w-]+", typed)
    return flags[0] if flags else typed.split(",")[0]


def _contents_page(pages: dict[str, _Page]) -> _Page:
    """Return the first page: what bncli is, examples, all topics, and all commands."""
    parts = [
        "<h1>The manual of bncli</h1>\n<p>Bayesian network classifiers on the command line: learn them from tables, "
        "score with them, look inside. New here? Begin with the "
        '<a href="quick-start.html">quick start</a>.</p>',
        _console("".join(f"$ {line}\n" for line in EXAMPLES.splitlines())),
    ]
    for heading, files in _contents():
        rows = "".join(
            f'<dt><a href="{file}">{title}</a></dt><dd>{escape(pages[file].subject)}</dd>'
            for file, title in files.items()
        )
        parts.append(f"<h2>{escape(heading)}</h2>\n<dl>{rows}</dl>")
    return _Page("index.html", "Manual", "", "\n".join(parts))


def _contents() -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the headings of the table of contents, each with its files and their short titles."""
    for heading, topics in TOPIC_GROUPS:
        yield heading, {f"{topic}.html": topic for topic in topics}
    for task in dict.fromkeys(command.task for command in COMMANDS):
        words = [command.word for command in COMMANDS if command.task == task]
        yield f"Commands: {task}", {f"bncli-{word}.html": f"bncli {word}" for word in words}


def _document(page: _Page) -> str:
    marks = {page.file: ' aria-current="page"'}
    parts = [f'<p><a href="index.html"{marks.get("index.html", "")}>All topics and commands</a></p>']
    for heading, files in _contents():
        parts.append(f"<h2>{escape(heading)}</h2>\n<ul>")
        for file, title in files.items():
            inner = ""
            if file == page.file:
                inner = "".join(f'<li><a href="#{anchor}">{escape(text)}</a></li>' for text, anchor in page.headings)
            inner = f"<ul>{inner}</ul>" if inner else ""
            link = f'<a href="{file}"{marks.get(file, "")}>{title}</a>'
            parts.append(f"<li>{link}{inner}</li>")
        parts.append("</ul>")
    contents = "\n".join(parts)
    subject = f'<meta name="description" content="{escape(page.subject)}">\n' if page.subject else ""
    return f"""<!DOCTYPE html><!-- {SITE_MARK} -->
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(page.title)} - bncli {__version__}</title>
{subject}<link rel="stylesheet" href="manual.css">
<script src="manual.js" defer></script>
</head>
<body>
<a class="skip" href="#main">Skip to the text</a>
<header>
<a class="name" href="index.html">bncli</a> <a class="menu" href="#contents">Contents</a>
<form role="search" hidden>
<input id="search" type="search" aria-label="Search the manual" placeholder="Search" autocomplete="off">
<ul id="results" hidden></ul>
<p id="status" role="status"></p>
</form>
</header>
<div class="columns">
<main id="main">
{page.content}
</main>
<nav id="contents" aria-label="Contents">
{contents}
</nav>
</div>
<footer>bncli {__version__}</footer>
</body>
</html>
"""


MAN_MARK = "Written by bncli help --man"
"""Text in the first lines of every file, which identifies files written by an earlier run."""

_TABLE_WIDTH = 70
"""The maximum width of a table in characters, if its words are short enough."""
_BREAK = r"(?<=\w)(\\?[-|/,_=])(?=[^\W\d])"
"""A pattern for characters after which a word in a narrow column may be broken, in plain text and in roff."""
_EXIT_STATUS = (
    ".SH EXIT STATUS",
    *(".TP", "0", "The command succeeded."),
    *(".TP", "1", "The data or the computation failed."),
    *(".TP", "2", "The command line or the configuration is wrong."),
    *(".TP", "3", "A model file is unreadable, or the data do not fit the model."),
    *(".TP", "4", "The rows differ from those the model was trained on."),
)


def make_man_pages() -> dict[str, str]:
    """Return the roff source of every page, keyed by file name."""
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
    pages = {"bncli.1": [*lines, *_EXIT_STATUS]}
    pages |= {f"bncli-{command.word}.1": _man_page_of_command(command.word) for command in COMMANDS}
    for topic in TOPICS:
        lines = [*_head(f"bncli-{topic}", 7, subject_of(topic)), ".SH DESCRIPTION"]
        tokens = MarkdownIt("commonmark", {"html": False}).enable("table").parse(read_topic(topic))
        lines += _blocks(tokens[3:])  # without the title; the text before the first heading is the description
        owners = [_bold(f"bncli-{command.word}") + "(1)" for command in COMMANDS if topic in command.topics]
        pages[f"bncli-{topic}.7"] = [*lines, ".SH SEE ALSO", ",\n".join([r"\fBbncli\fR(1)", *owners])]
    return {name: "\n".join([*lines, ""]) for name, lines in pages.items()}


def _man_page_of_command(word: str) -> list[str]:
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
    lines += _EXIT_STATUS
    others = [r"\fBbncli\fR(1)", *(_bold(f"bncli-{topic}") + "(7)" for topic in BY_WORD[word].topics)]
    return [*lines, ".SH SEE ALSO", ",\n".join(others)]


def _blocks(tokens: Sequence[Token]) -> list[str]:
    """Convert the tokens of Markdown blocks to lines of roff."""
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
    """Return the roff source of a paragraph or a table cell."""
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
    """Return a table for tbl; if its rows would be too long, columns are narrowed and their long cells wrapped."""
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
    """Return the roff lines of a block whose line breaks are kept."""
    lines = [_guarded(_escaped(line)) for line in text.rstrip("\n").split("\n")]
    return [".PP", ".RS 2", ".nf", *lines, ".fi", ".RE"]


def _head(name: str, section: int, summary: str) -> list[str]:
    """Return the lines at the start of a page."""
    return [
        "'\\\" t",
        f'.\\" {MAN_MARK}',
        f'.TH {_escaped(name.upper())} {section} "" "bncli {__version__}" "bncli manual"',
        ".nh",
        ".ad l",
        ".SH NAME",
        f"{_escaped(name)} \\- {_escaped(summary)}",
    ]


def _quoted(text: str) -> str:
    """Return `text` as a quoted argument of a macro."""
    return '"' + _escaped(text).replace('"', "\\(dq") + '"'


def _bold(text: str) -> str:
    return _guarded(f"\\fB{_escaped(text)}\\fR")


def _text(text: str) -> str:
    return _guarded(_escaped(text))


def _escaped(text: str) -> str:
    """Escape the characters that are special in roff; hyphens are escaped so that they can be copied as hyphens."""
    return (
        text.replace("\\", "\\(rs")
        .replace("-", "\\-")
        .replace("^", "\\(ha")
        .replace("~", "\\(ti")
        .replace("`", "\\(ga")
    )


def _guarded(line: str) -> str:
    """Return the line, prefixed if it would begin with a control character of roff."""
    return f"\\&{line}" if line.startswith((".", "'")) else line
