"""`bncli help`: the manual, whose topics are the Markdown files of `bncli/manual`.

The first line of a file, `# Title: what it is about`, is its entry in the table of contents. On a terminal a topic is
rendered by rich and shown in the pager of the variable PAGER; through a pipe it is printed as Markdown.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping
from typing import Any

import click

from bncli.catalogue import CHOICES
from bncli.cli import options
from bncli.cli.command import declare
from bncli.cli.commands import BY_WORD
from bncli.cli.console import Console
from bncli.cli.options import output_flag
from bncli.cli.topics import TOPIC_GROUPS, TOPICS, read_topic, search, subject_of
from bncli.errors import BncliError, UsageError

EXAMPLES = """\
bncli help                   the topics
bncli help tasks             "I want to ...": thirty tasks, a command each
bncli help quick-start       one of them
bncli help kdb               the meaning of a word, and the topics about it
bncli help imbalanced        where the manual mentions it
bncli help files | less      the Markdown text
bncli help --html manual     a small web site; begin with manual/index.html
bncli help --man manual      man pages; man -l manual/bncli.1
"""
HTML = output_flag(
    "--html", metavar="DIR", setting=False, help="Write the manual and the options of every command as a web site."
)
MAN = output_flag(
    "--man", metavar="DIR", setting=False, help="Write the manual and the commands as man pages (sections 1 and 7)."
)
_MOST_COLUMNS = 120
"""The width of a rendered page in characters; longer lines are hard to read."""
_REFERENCE = TOPIC_GROUPS[-1][1]
_MOST_POINTERS = 5
"""The number of topics to which the page of a method points."""


TOPIC: options.Decorator = click.argument(
    "topic",
    metavar="[TOPIC|WORD...]",
    nargs=-1,
    shell_complete=lambda _ctx, _param, begun: [topic for topic in TOPICS if topic.startswith(begun)],
)


@declare(
    "help",
    EXAMPLES,
    (TOPIC,),
    (HTML, MAN, options.DEBUG),
    more="TOPIC may also be a command or a method; without it the topics are listed. Other words are searched for in "
    "the manual.",
)
def command(**typed: Any) -> None:
    """Show a topic, or the table of contents; with --html or --man, write all of it."""
    if typed["html"] or typed["man"]:
        if typed["topic"]:
            flag = "--html" if typed["html"] else "--man"
            raise UsageError(
                f"{flag} writes the whole manual, so it takes no topic", hint=f"leave out {typed['topic'][0]}"
            )
        if typed["html"] is not None:
            from bncli.cli import manual_site

            _write_files(typed["html"], manual_site.make_site(), manual_site.MARK)
            first = os.path.join(typed["html"], "index.html")
            Console().summary([f"written     {first}, the first page of the manual"])
        if typed["man"] is not None:
            from bncli.cli import man_pages

            _write_files(typed["man"], man_pages.make_man_pages(), man_pages.MARK)
            Console().summary([f"written     {os.path.join(typed['man'], 'bncli.1')}, the first of the man pages"])
    elif typed["topic"]:
        _show(_page(" ".join(typed["topic"])))
    else:
        parts = [
            "The manual. 'bncli help tasks' has a command for each of the thirty most frequent tasks. 'bncli help "
            "TOPIC'\n"
            "shows a topic, 'bncli help WORD' where a word occurs, 'bncli COMMAND --help' the everyday options of a\n"
            "command, 'bncli COMMAND --help-all' every option.\n"
        ]
        for title, topics in TOPIC_GROUPS:
            parts += ["\n", f"{title}:\n", *(f"  {topic:16}  {subject_of(topic)}\n" for topic in topics)]
        Console().text("".join(parts))


def _write_files(folder: str, files: Mapping[str, str], mark: str) -> None:
    """Write files into a folder, created if needed.

    Raises UsageError if that would replace files that bncli did not write.
    """
    from bncli.files.atomic import write_bytes

    if folder == "-" or (os.path.lexists(folder) and not os.path.isdir(folder)):
        raise UsageError(
            f"the manual consists of many files, but {folder!r} is not a folder", hint="give the path of a folder"
        )
    for name in files:
        path = os.path.join(folder, name)
        try:
            with open(path, "rb") as file:
                is_ours = mark.encode() in file.read(200)
        except OSError:
            continue
        if not is_ours:
            raise UsageError(
                "a file of this name exists and is not part of a manual, so it is not replaced",
                where=path,
                hint="choose another folder, or move the file",
            )
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        from bncli.files.paths import reason_of

        raise BncliError(f"cannot make the folder: {reason_of(error)}", where=folder) from error
    for name, text in files.items():
        write_bytes(os.path.join(folder, name), text.encode())


def _page(word: str) -> str:
    """Return Markdown about a word: a topic, a command, a method, or else where the manual mentions it.

    Raises UsageError if the manual does not mention it.
    """
    if word.lower() in TOPICS:
        return read_topic(word.lower())
    if word in BY_WORD:
        shows = f"`bncli {word} --help` shows how to use it, `--help-all` every option. Topics:"
        return _pointers(f"bncli {word}", [BY_WORD[word].summary, "", shows], BY_WORD[word].topics)
    lines = []
    for choice in CHOICES:
        method = choice.method(word)
        if method is not None:
            takes = ", ".join(f"`{flag}`" for flag in method.options)
            lines.append(f"- `{choice.flag} {word}`: {method.summary}{f'; takes {takes}' if takes else ''}")
    if lines:
        return _pointers(word, [*lines, "", "Topics:"], _topics_mentioning(word))
    singular = word.removesuffix("s")
    if singular != word and any(choice.method(singular) for choice in CHOICES):
        return _page(singular)
    if hits := search(word):
        hit_lines = (f"- `bncli help {hit.topic}`{hit.heading and f', {hit.heading}'}: {hit.line}" for hit in hits)
        return "\n".join([f"# {word} in the manual", "", *hit_lines, ""])
    from difflib import get_close_matches

    known = [*TOPICS, *BY_WORD, *(w for choice in CHOICES for w in choice.words)]
    similar = [topic for topic in TOPICS if word and word.lower() in topic] or get_close_matches(word.lower(), known, 1)
    hint = f"did you mean 'bncli help {similar[0]}'?" if similar else "type 'bncli help' for the list of topics"
    raise UsageError(f"the manual has no topic {word!r}", hint=hint)


def _pointers(title: str, lines: Iterable[str], topics: Iterable[str]) -> str:
    """Return a page with a title, some lines, and a list of topics."""
    listed = [f"- `bncli help {topic}`: {subject_of(topic)}" for topic in topics]
    return "\n".join([f"# {title}", "", *lines, "", *listed, ""])


def _topics_mentioning(word: str) -> list[str]:
    """Return the topics about a word, then those that mention it most often; ties as in the table of contents.

    A topic is about a word if a heading has the word, also in the plural, or if a line of a table explains it. Topics
    of the reference, which explain every word, do not count as being about it.
    """
    mention = rf"(?<![\w-]){re.escape(word)}(?![\w-])"
    heading = rf"^#.*(?<![\w-]){re.escape(word)}s?(?![\w-])"
    row = rf"^\| (?:\*\*)?`{re.escape(word)}`(?:\*\*)? \|"
    fit = {}
    for topic in TOPICS:
        page = read_topic(topic)
        n_about = sum(
            re.search(about, page, flags=re.MULTILINE | re.IGNORECASE) is not None for about in (heading, row)
        )
        fit[topic] = (0 if topic in _REFERENCE else n_about, len(re.findall(mention, page)))
    return sorted(filter(lambda topic: any(fit[topic]), TOPICS), key=fit.__getitem__, reverse=True)[:_MOST_POINTERS]


def _show(page: str) -> None:
    """Print a page: rendered and in a pager on a terminal, otherwise unchanged."""
    if sys.stdout is None or not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
        Console().text(page)
        return
    from rich.console import Console as RichConsole
    from rich.markdown import Markdown

    out = RichConsole(force_terminal=True)  # NO_COLOR still leaves bold and underlined text
    out.width = min(out.width, _MOST_COLUMNS)
    with out.capture() as capture:
        out.print(Markdown(page, code_theme="ansi_dark", hyperlinks=False))
    # The defaults of git: let colours through, and just print a page that fits the screen.
    os.environ.setdefault("LESS", "-FRX")
    try:
        click.echo_via_pager("".join(f"{line.rstrip()}\n" for line in capture.get().splitlines()))
    except ValueError as error:
        raise UsageError(f"PAGER is not a command: {error}", hint="set PAGER=cat to print without a pager") from error
