"""`bncli help`: the manual, a topic a Markdown file of `bncli/manual`.

On a terminal a topic is drawn by rich and shown in the pager that PAGER names; through a pipe it is Markdown.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from typing import Any

import click

from bncli.catalogue import CHOICES
from bncli.cli import options
from bncli.cli.command import declare
from bncli.cli.commands import COMMANDS
from bncli.cli.console import Console
from bncli.cli.topics import GROUPS, OF_COMMANDS, TOPICS
from bncli.errors import UsageError

EXAMPLES = """\
bncli help                   the topics
bncli help quick-start       one of them
bncli help kdb               what a word means, and the topics that tell more
bncli help imbalanced        where the manual speaks of it
bncli help files | less      Markdown, as it stands
"""
FOLDER = os.path.join(os.path.dirname(os.path.dirname(__file__)), "manual")

_WIDEST = 120
"""Columns of a page; longer lines are hard to read."""
_MOST = 5
_FEWEST_LETTERS = 2
_MOST_TOPICS, _MOST_LINES = 8, 3
"""Of what is found by a search."""


def _complete(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    return [topic for topic in TOPICS if topic.startswith(incomplete)]


@declare(
    "help",
    EXAMPLES,
    (click.argument("topic", metavar="[TOPIC|WORD...]", nargs=-1, shell_complete=_complete),),
    (options.DEBUG,),
    more="TOPIC may also be a command or a method; without it the topics are listed. Other words are searched for in "
    "the manual.",
)
def command(**typed: Any) -> None:
    """Show a topic, or which there are."""
    word = " ".join(typed["topic"])
    if not typed["topic"]:
        Console().text(_contents())
    else:
        _show(_page(word))


def _contents() -> str:
    """Return the topics in their groups, with a line about each."""
    parts = [
        "The manual. 'bncli help TOPIC' shows a topic, 'bncli COMMAND --help' the options of a command\n"
        "that are used every day, 'bncli COMMAND --help-all' every one of them.\n"
    ]
    for title, topics in GROUPS:
        lines = [f"  {topic:16}  {_about(topic)}\n" for topic in topics]
        parts += ["\n", f"{title}:\n", *lines]
    return "".join(parts)


def _about(topic: str) -> str:
    """Return what stands after the colon in the title of a topic."""
    title = _read(topic).partition("\n")[0]
    return title.partition(": ")[2]


def _read(topic: str) -> str:
    """Return the Markdown of a topic, without comments, which are for those who write it."""
    with open(os.path.join(FOLDER, f"{topic}.md"), encoding="utf-8") as file:
        return re.sub(r"^<!--.*-->\n", "", file.read(), flags=re.MULTILINE)


def _page(word: str) -> str:
    """Markdown about a word: its topic, else what it is and the topics about it."""
    if word.lower() in TOPICS:
        return _read(word.lower())
    if command := next((command for command in COMMANDS if command.word == word), None):
        lines = [command.summary, "", f"`bncli {word} --help` shows how to use it, `--help-all` every option. Topics:"]
        return _pointers(f"bncli {word}", lines, OF_COMMANDS[word])
    if methods := [(choice.flag, m) for choice in CHOICES for m in choice.methods if m.word == word]:
        lines = [f"- `{flag} {word}`: {m.summary}{_taking(m.options)}" for flag, m in methods]
        return _pointers(word, [*lines, "", "Topics:"], _mentioning(word))
    if found := _search(word):
        return found
    raise _unknown(word)


def _search(word: str) -> str:
    """Return the lines of the manual that hold the word, in any case, by topic, those with most of them first.

    Empty where there is none. A line is shown with the heading above it.
    """
    wanted = word.strip().lower()
    if len(re.findall(r"\w", wanted)) < _FEWEST_LETTERS:
        return ""
    found: dict[str, list[str]] = {}
    for topic in TOPICS:
        heading, lines = "", list[str]()
        for line in _read(topic).splitlines():
            heading = line.lstrip("# ") if line.startswith("#") else heading
            if wanted in line.lower():
                lines.append(line.lstrip("# ") if line.startswith("#") else f"{heading}: {line.strip()}")
        if lines:
            found[topic] = lines
    if not found:
        return ""
    parts = [f"# {word} in the manual", ""]
    order = sorted(found, key=lambda topic: -len(found[topic]))
    for topic in order[:_MOST_TOPICS]:
        parts += [f"`bncli help {topic}`: {_about(topic)}", ""]
        parts += [f"- {line}" for line in found[topic][:_MOST_LINES]]
        more = len(found[topic]) - _MOST_LINES
        parts += [*([f"- and {more} more line{'s' * (more > 1)}"] if more > 0 else []), ""]
    if len(order) > _MOST_TOPICS:
        parts += [f"Also in: {', '.join(order[_MOST_TOPICS:])}", ""]
    return "\n".join(parts)


def _taking(flags: Iterable[str]) -> str:
    listed = ", ".join(f"`{flag}`" for flag in flags)
    return f"; takes {listed}" if listed else ""


def _pointers(title: str, lines: Iterable[str], topics: Iterable[str]) -> str:
    listed = [f"- `bncli help {topic}`: {_about(topic)}" for topic in topics]
    return "\n".join([f"# {title}", "", *lines, "", *listed, ""])


def _mentioning(word: str) -> list[str]:
    """Return the topics that mention a word most often, at most five, ties as in the contents.

    A heading that has it, and a line of a table about it, count as ten.
    """
    mention = rf"(?<![\w-]){re.escape(word)}(?![\w-])"
    about = rf"^(?:#.*{mention}|\| (?:\*\*)?`{re.escape(word)}`(?:\*\*)? \|)"
    pages = {topic: _read(topic) for topic in TOPICS}
    counts = {
        topic: len(re.findall(mention, page)) + 9 * len(re.findall(about, page, flags=re.MULTILINE))
        for topic, page in pages.items()
    }
    return sorted((topic for topic in TOPICS if counts[topic]), key=lambda topic: -counts[topic])[:_MOST]


def _unknown(word: str) -> UsageError:
    from difflib import get_close_matches

    known = [*TOPICS, *(command.word for command in COMMANDS), *(w for choice in CHOICES for w in choice.words)]
    near = [topic for topic in TOPICS if word and word.lower() in topic] or get_close_matches(word.lower(), known, n=1)
    hint = f"did you mean 'bncli help {near[0]}'?" if near else "'bncli help' lists them"
    return UsageError(f"the manual has no topic {word!r}", hint=hint)


def _show(page: str) -> None:
    """Print a page: rendered and in a pager on a terminal, otherwise unchanged."""
    if sys.stdout is None or not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
        Console().text(page)
        return
    # As git does: colours pass, a page that fits the screen is just printed.
    os.environ.setdefault("LESS", "-FRX")
    try:
        click.echo_via_pager(_rendered(page))
    except ValueError as error:
        raise UsageError(f"PAGER is no command: {error}", hint="PAGER=cat prints without a pager") from error


def _rendered(page: str) -> str:
    """Markdown as rich draws it; NO_COLOR leaves bold and underlined."""
    from rich.console import Console as RichConsole
    from rich.markdown import Markdown

    out = RichConsole(force_terminal=True)
    out.width = min(out.width, _WIDEST)
    with out.capture() as capture:
        out.print(Markdown(page, code_theme="ansi_dark", hyperlinks=False))
    return "".join(f"{line.rstrip()}\n" for line in capture.get().splitlines())
