"""The manual as a static web site: `bncli help --html DIR`.

There is a page per topic, `TOPIC.html`, a page per command, `bncli-COMMAND.html`, and `index.html`. All share one
style sheet and one script, which searches titles, headings, options and methods. Nothing is loaded from elsewhere.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any, NamedTuple

import click
from markdown_it import MarkdownIt

from bncli import __version__
from bncli.cli.command import HelpfulCommand
from bncli.cli.commands import BY_WORD, COMMANDS, EXAMPLES, group, load_command
from bncli.cli.topics import FOLDER, TOPIC_GROUPS, TOPICS, read_topic, subject_of, topics_by_synonym

MARK = "written by bncli help --html"
"""Text in the first line of every file, by which the files of an earlier run are recognized."""

_POINTER = re.compile(r"bncli help ([a-z-]+)")


class _Page(NamedTuple):
    """A page: its file, its title, a line about it, its content, and its headings with their anchors."""

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
    entries = [entry for page in pages for entry in _search_entries(page)]
    entries += _option_entries()
    index = ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in dict.fromkeys(entries))
    synonyms = json.dumps({word: f"{topic}.html" for word, topic in topics_by_synonym().items()})
    files["manual.css"] = f"/* {MARK} */\n{_read('site.css')}"
    files["manual.js"] = f"// {MARK}\nconst ENTRIES = [\n{index}\n];\nconst SYNONYMS = {synonyms};\n{_read('site.js')}"
    return files


def _topic_page(topic: str) -> _Page:
    """Return the page of a topic, rendered from its Markdown."""
    headings: list[tuple[str, str]] = []
    title = read_topic(topic).partition("\n")[0].removeprefix("# ").partition(": ")[0]
    content = _renderer(headings).render(read_topic(topic))
    return _Page(f"{topic}.html", title, subject_of(topic), content, headings)


def _renderer(headings: list[tuple[str, str]]) -> MarkdownIt:
    """Return a renderer of Markdown that links `bncli help X`, and that adds the headings of the page to a list."""
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")

    def open_heading(_self: Any, tokens: Any, i: int, _options: Any, _env: Any) -> str:
        text, level = tokens[i + 1].content.replace("`", ""), tokens[i].tag
        if level == "h1":
            return "<h1>"
        anchor = _anchor(text, [taken for _, taken in headings])
        headings.append((text, anchor))
        return f'<{level} id="{anchor}">'

    def show_code(_self: Any, tokens: Any, i: int, _options: Any, _env: Any) -> str:
        words = re.sub(r"\S*-\S*", r"<span>\g<0></span>", escape(tokens[i].content))
        file = _file_about(tokens[i].content)
        return f'<a href="{file}"><code>{words}</code></a>' if file else f"<code>{words}</code>"

    def show_block(_self: Any, tokens: Any, i: int, _options: Any, _env: Any) -> str:
        return _console(tokens[i].content)

    markdown.add_render_rule("heading_open", open_heading)
    markdown.add_render_rule("code_inline", show_code)
    markdown.add_render_rule("fence", show_block)
    markdown.add_render_rule("code_block", show_block)
    markdown.add_render_rule("table_open", lambda *_: '<div class="scroll" tabindex="0"><table>\n')
    markdown.add_render_rule("table_close", lambda *_: "</table></div>\n")
    return markdown


def _anchor(text: str, taken: Sequence[str]) -> str:
    """Return an anchor for a heading that no other heading of the page has."""
    anchor = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "part"
    n_same = sum(re.fullmatch(rf"{anchor}(-\d+)?", other) is not None for other in taken)
    return f"{anchor}-{n_same + 1}" if n_same else anchor


def _file_about(code: str) -> str:
    """Return the file of the page about a command that the text mentions, or "" if there is none."""
    words = code.split()
    if words[:2] == ["bncli", "help"] and len(words) == 3:
        return f"{words[2]}.html" if words[2] in TOPICS else f"bncli-{words[2]}.html" if words[2] in BY_WORD else ""
    return f"bncli-{words[1]}.html" if words[:1] == ["bncli"] and len(words) > 1 and words[1] in BY_WORD else ""


def _console(text: str) -> str:
    """Return a block of code, in which the lines that are typed after a prompt are set apart."""
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
    """Return text of the help as HTML, with links where it says `bncli help TOPIC`."""
    return _POINTER.sub(
        lambda match: f'<a href="{match[1]}.html">{match[0]}</a>' if match[1] in TOPICS else match[0], escape(text)
    )


def command_context(word: str) -> click.Context:
    """Return the click context in which the help of a command is written."""
    return click.Context(load_command(word), info_name=word, parent=click.Context(group, info_name="bncli"))


def option_groups(word: str) -> dict[str, list[tuple[str, str, list[tuple[str, str]]]]]:
    """Return all options of a command by group: how each is typed, its help, and the words that it accepts."""
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
    """Return the long flag in a row of the help such as `-o, --output FILE`; for a row about a figure, its name."""
    flags = re.findall(r"(?<!\S)--[\w-]+", typed)
    return flags[0] if flags else typed.split(",")[0]


def _contents_page(pages: dict[str, _Page]) -> _Page:
    """Return the first page: what bncli is, all topics, and all commands."""
    parts = [
        "<h1>The manual of bncli</h1>\n<p>Bayesian network classifiers on the command line: learn them from tables, "
        "score with them, look inside. New here? Begin with the "
        '<a href="quick-start.html">quick start</a>.</p>',
        _console("".join(f"$ {line}\n" for line in EXAMPLES.splitlines())),
    ]
    for heading, files in _contents():
        rows = "".join(
            f'<dt><a href="{file}">{_short_title(file)}</a></dt><dd>{escape(pages[file].subject)}</dd>'
            for file in files
        )
        parts.append(f"<h2>{escape(heading)}</h2>\n<dl>{rows}</dl>")
    return _Page("index.html", "Manual", "", "\n".join(parts))


def _contents() -> Iterator[tuple[str, list[str]]]:
    """Yield the headings of the table of contents, each with its files."""
    for heading, topics in TOPIC_GROUPS:
        yield heading, [f"{topic}.html" for topic in topics]
    for task in dict.fromkeys(command.task for command in COMMANDS):
        words = [command.word for command in COMMANDS if command.task == task]
        yield f"Commands: {task}", [f"bncli-{word}.html" for word in words]


def _short_title(file: str) -> str:
    return re.sub(r"^bncli-", "bncli ", file.removesuffix(".html"))


def _document(page: _Page) -> str:
    parts = [f'<p><a href="index.html"{_current(page.file == "index.html")}>All topics and commands</a></p>']
    for heading, files in _contents():
        parts.append(f"<h2>{escape(heading)}</h2>\n<ul>")
        for file in files:
            inner = ""
            if file == page.file:
                inner = "".join(f'<li><a href="#{anchor}">{escape(text)}</a></li>' for text, anchor in page.headings)
            inner = f"<ul>{inner}</ul>" if inner else ""
            link = f'<a href="{file}"{_current(file == page.file)}>{_short_title(file)}</a>'
            parts.append(f"<li>{link}{inner}</li>")
        parts.append("</ul>")
    contents = "\n".join(parts)
    subject = f'<meta name="description" content="{escape(page.subject)}">\n' if page.subject else ""
    return f"""<!DOCTYPE html><!-- {MARK} -->
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


def _current(is_current: bool) -> str:
    return ' aria-current="page"' if is_current else ""


def _search_entries(page: _Page) -> Iterator[tuple[str, str, str]]:
    """Yield the entries of a page for the search: a text, its link, and the subject or title above it."""
    yield page.title, page.file, page.subject
    for text, anchor in page.headings if not page.file.startswith("bncli-") else ():
        yield text, f"{page.file}#{anchor}", page.title


def _option_entries() -> Iterator[tuple[str, str, str]]:
    """Yield a name, a link, and a text with commands and meaning for each option and each word that it accepts."""
    owners: dict[tuple[str, str], list[str]] = {}
    for command in COMMANDS:
        for rows in option_groups(command.word).values():
            for typed, text, words in rows:
                flag = _flag_of(typed)
                owners.setdefault((flag, re.split(r"(?<=\w)[.;] ", text)[0]), []).append(command.word)
                for word, meaning in words:
                    owners.setdefault((f"{flag} {word}", meaning), []).append(command.word)
    for (name, meaning), commands in owners.items():
        yield (
            name,
            f"bncli-{commands[0]}.html#{name.partition(' ')[0]}",
            f"{', '.join(dict.fromkeys(commands))}: {meaning}",
        )


def _read(name: str) -> str:
    with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
        return file.read()
