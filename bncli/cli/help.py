"""`bncli help`: the manual, whose topics are the Markdown files in `bncli/manual`, and a search in it.

The table of contents is made from the first line of each file, `# Title: what it is about`. On a terminal a topic is
rendered by rich and shown in the pager of the variable PAGER; otherwise it is printed as Markdown.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple

import click

from bncli.catalogue import CHOICES
from bncli.cli import options
from bncli.cli.command import declare
from bncli.cli.commands import BY_WORD
from bncli.cli.console import Console
from bncli.cli.options import output_flag
from bncli.errors import BncliError, UsageError
from bncli.files.atomic import write_bytes
from bncli.files.paths import reason_of

TOPIC_GROUPS = (
    ("Begin here", ("tasks", "quick-start", "which-one", "step-by-step", "pitfalls", "glossary")),
    ("Data", ("describe", "data", "discretize", "missing-values", "large", "counts")),
    ("Structure", ("structures", "structure-scores", "regions", "interactions", "auto", "knowledge")),
    ("Parameters", ("parameters", "penalties", "monotone", "optimizers", "edit")),
    ("Using a model", ("score", "intervals", "explain", "decisions", "what-if", "monitor", "export", "simulate")),
    (
        "Judging a model",
        ("evaluate", "validation", "groups", "calibration", "compare", "verify", "properties", "dossier"),
    ),
    ("Beyond the command line", ("report", "python", "web-service", "install")),
    ("Reference", ("options", "files", "json", "exit-codes", "shell", "speed", "cluster", "internals", "sources")),
)
"""The table of contents; the topics of each command are listed in `bncli.cli.commands`."""

TOPICS = tuple(topic for _, topics in TOPIC_GROUPS for topic in topics)
_REFERENCE = TOPIC_GROUPS[-1][1]
FOLDER = os.path.join(os.path.dirname(os.path.dirname(__file__)), "manual")

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
"""The maximum width of a rendered page in characters; longer lines are hard to read."""
_MOST_POINTERS = 5
"""The maximum number of topics to which the page of a method refers."""


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
    """Show a topic, or the table of contents; with --html or --man, write the whole manual."""
    if typed["html"] or typed["man"]:
        if typed["topic"]:
            flag = "--html" if typed["html"] else "--man"
            raise UsageError(
                f"{flag} writes the whole manual, so it takes no topic", hint=f"leave out {typed['topic'][0]}"
            )
        if typed["html"] is not None:
            from bncli.cli.manual_pages import SITE_MARK, make_site

            _write_files(typed["html"], make_site(), SITE_MARK)
            first = os.path.join(typed["html"], "index.html")
            Console().summary([f"written     {first}, the first page of the manual"])
        if typed["man"] is not None:
            from bncli.cli.manual_pages import MAN_MARK, make_man_pages

            _write_files(typed["man"], make_man_pages(), MAN_MARK)
            Console().summary([f"written     {os.path.join(typed['man'], 'bncli.1')}, the first of the man pages"])
    elif typed["topic"]:
        page = _page(" ".join(typed["topic"]))
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
            hint = "set PAGER=cat to print without a pager"
            raise UsageError(f"PAGER is not a command: {error}", hint=hint) from error
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
    """Write `files` (contents by name) into a folder, which is created if needed.

    Raises UsageError if the path is not a folder, or if a file would be replaced that does not contain `mark` in its
    first 200 bytes; BncliError if the folder cannot be created.
    """
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
        raise BncliError(f"cannot make the folder: {reason_of(error)}", where=folder) from error
    for name, text in files.items():
        write_bytes(os.path.join(folder, name), text.encode())


def _page(word: str) -> str:
    """Return Markdown about a word: its topic, command or method or, for other words, where the manual mentions it.

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
    """Return a Markdown page with a title, some lines, and a list of topics."""
    listed = [f"- `bncli help {topic}`: {subject_of(topic)}" for topic in topics]
    return "\n".join([f"# {title}", "", *lines, "", *listed, ""])


def _topics_mentioning(word: str) -> list[str]:
    """Return at most _MOST_POINTERS topics that mention a word, the most relevant first.

    Topics whose heading contains the word or its plural and that have a table row explaining it come first, then topics
    with one of the two, then the others. Within each group they are ordered by the number of mentions. Topics of the
    reference, which explain every word, count as others. Ties are in the order of the table of contents.
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


_SYNONYMS = {
    "auto": "automl ensemble ensembles stacking blending",
    "calibration": "calibrated miscalibrated overconfident platt isotonic temperature probability reliability",
    "cluster": "dask distributed parallel spark",
    "counts": "federated incremental retrain update",
    "data": "csv tsv parquet arrow excel xlsx date dates header delimiter encoding utf-8 gzip gz compressed zip",
    "decisions": "threshold thresholds cutoff cut-off cost costs imbalance imbalanced unbalanced utility profit "
    "abstain reject conformal prior oversampling smote",
    "describe": "profile profiling woe iv quality eda identifier",
    "discretize": "bin bins binning binned cut cuts quantile quantiles",
    "dossier": "tripod sr11-7 sr26-2 annex regulation regulator validator audit auditor auditors documentation "
    "compliance governance model-card",
    "edit": "override",
    "evaluate": "auc roc auroc accuracy f1 precision recall sensitivity specificity confusion mcc gini ks lift gains "
    "metric metrics cross-validation crossvalidation cv folds bootstrap confidence significance logloss "
    "brier",
    "explain": "importance importances explainability explanation explanations interpretability interpretable "
    "interpretation shap lime contribution contributions reason reasons why effect effects coefficient coefficients",
    "export": "scorecard scorecards onnx sql postgresql postgres mysql sqlite duckdb snowflake bigquery database "
    "databases javascript js pmml bif deploy deployment production",
    "files": "format formats",
    "groups": "fairness fair unfair bias biased discrimination disparity parity equity equal-opportunity protected "
    "gender race subgroup subgroups refused refuse refusal",
    "install": "pip pipx docker podman offline conda air-gapped",
    "interactions": "gam gams ebm additive curves shape",
    "intervals": "uncertainty uncertain credible posterior sure",
    "knowledge": "expert constraint constraints forbid forbidden require required whitelist blacklist causal tiers",
    "large": "memory ram out-of-core larger-than-memory",
    "missing-values": "missing na nan null nulls imputation impute incomplete",
    "monitor": "drift drifted shift psi stability covariate",
    "monotone": "monotonic monotonicity increasing decreasing",
    "optimizers": "converge converged gradient iterations",
    "parameters": "smoothing generative",
    "penalties": "overfitting overfit overfitted regularization regularisation l2 ridge lambda shrinkage penalty",
    "pitfalls": "leakage leak leaks leaking leaky mistakes",
    "properties": "prove proof guarantee guarantees robustness robust adversarial formal",
    "python": "sklearn scikit-learn scikit pandas polars dataframe numpy api jupyter notebook",
    "report": "html dashboard page chart charts plot plots picture",
    "score": "predict prediction predictions predicting inference",
    "shell": "pipe pipes bash makefile configuration settings defaults environment",
    "simulate": "synthetic generate sampling",
    "speed": "slow duration benchmark",
    "structures": "dag graph network tree naive naive-bayes",
    "validation": "customer customers patient patients visits repeated grouped holdout temporal time-series series "
    "forecasting",
    "verify": "reproducible reproducibility privacy disclosure gdpr checksum",
    "web-service": "rest http server fastapi flask latency service real-time realtime",
    "what-if": "counterfactual counterfactuals recourse flip anchors sufficient-reason",
    "which-one": "recommend recommendation xgboost lightgbm catboost boosting comparison",
}
"""Words that users may search for to find a topic, whether or not its page contains them."""

_MOST_HITS, _MOST_PER_TOPIC = 10, 3
"""The maximum number of hits of a search, in total and per topic."""
_LONGEST_CONTEXT = 110
"""The approximate maximum number of characters of text that a hit shows."""


class Hit(NamedTuple):
    """A search result: its topic, the heading above the passage ("" for the topic itself), and a line of text."""

    topic: str
    heading: str
    line: str


@cache
def read_topic(topic: str) -> str:
    """Load the Markdown of a topic, without comments."""
    with open(os.path.join(FOLDER, f"{topic}.md"), encoding="utf-8") as file:
        return re.sub(r"^<!--.*-->\n", "", file.read(), flags=re.MULTILINE)


def subject_of(topic: str) -> str:
    """Return the part of a topic's title after the colon."""
    return read_topic(topic).partition("\n")[0].partition(": ")[2]


def topics_by_synonym() -> dict[str, str]:
    return {word: topic for topic, words in _SYNONYMS.items() for word in words.split()}


def search(text: str) -> list[Hit]:
    """Return at most ten places in the manual that mention a string, the most relevant topic first.

    Topics for which the string, or one of its words, is a synonym come first. They are followed by topics with the
    string in their title, with the string in a heading, and by those that mention it most often in their prose. Matches
    in examples count least. If the whole string does not occur outside of examples, a place must contain all of its
    words. Case is ignored. A string with fewer than two letters or digits has no matches.
    """
    phrase = " ".join(text.lower().split())
    if len(re.findall(r"\w", phrase)) < 2 or not text.isprintable():
        return []
    synonyms = topics_by_synonym()
    meant = {synonyms.get(word) for word in (phrase, *phrase.split())}
    for words in ([phrase], [word for word in phrase.split() if len(word) > 1] or [phrase]):
        patterns = [
            (word, re.compile(rf"(?<!\w){re.escape(word)}" if word[0].isalnum() else re.escape(word))) for word in words
        ]
        found = [_search_topic(topic, patterns, topic in meant) for topic in TOPICS]
        if any(any(value[1:]) for value, _ in found):
            break
    return [hit for _, hits in sorted(found, key=lambda pair: pair[0], reverse=True) for hit in hits][:_MOST_HITS]


def _search_topic(
    topic: str, patterns: list[tuple[str, re.Pattern[str]]], is_meant: bool
) -> tuple[tuple[int, ...], list[Hit]]:
    """Return a sort key for how well a topic matches, and its best passages that match all patterns, the best first."""

    def position(text: str) -> int:
        """Return the position at which the first pattern matches, or -1 unless all patterns match."""
        lower = text.lower()
        if not all(word in lower for word, _ in patterns):
            return -1
        matches = [pattern.search(lower) for _, pattern in patterns]
        return matches[0].start() if matches[0] and all(matches) else -1

    in_title = position(read_topic(topic).partition("\n")[0]) >= 0
    n_headings = n_prose = 0
    passages: list[tuple[tuple[bool, ...], Hit]] = []
    for heading, line, is_code in _passages(topic):
        in_heading, start = position(heading) >= 0, position(line)
        if in_heading or start >= 0:
            n_headings += in_heading
            n_prose += not is_code
            passages.append(((in_heading, not is_code, start >= 0), Hit(topic, heading, _context(line, max(start, 0)))))
    hits = [Hit(topic, "", subject_of(topic))] if in_title or is_meant else []
    shown = set[str]()
    for (in_heading, is_prose, _), hit in sorted(passages, key=lambda place: place[0], reverse=True):
        if hit.heading not in shown and (in_heading or is_prose or not n_prose):  # one line of each part
            shown.add(hit.heading)
            hits.append(hit)
    return (is_meant, in_title, n_headings > 0, n_prose), hits[:_MOST_PER_TOPIC]


@cache
def _passages(topic: str) -> list[tuple[str, str, bool]]:
    """Return the paragraphs, list items, table rows and lines of examples of a topic.

    Each is a tuple (heading above it, or "" before the first heading; text; whether it belongs to an example).
    """
    passages: list[tuple[str, str, bool]] = []
    heading, paragraph, in_block = "", "", False
    for line in [*read_topic(topic).splitlines()[1:], ""]:
        is_fence = line.startswith("```")
        begins = (
            is_fence or in_block or not line.strip() or line.startswith(("#", "|")) or re.match(r"\s*(-|\d+\.) ", line)
        )
        if begins and paragraph:
            passages.append((heading, paragraph, False))
            paragraph = ""
        if is_fence:
            in_block = not in_block
        elif in_block or line.startswith("    "):
            passages.append((heading, line.strip(), True))
        elif line.startswith("#"):
            heading = line.lstrip("# ").replace("`", "")
        elif line.startswith("|"):
            cells = (cell.strip() for cell in re.split(r"(?<!\\)\|", line) if cell.strip(" -:"))
            passages.append((heading, ": ".join(cells), False))
        else:
            paragraph = f"{paragraph} {re.sub(r'^(-|[0-9]+[.]) ', '', line.strip())}".strip()
    return passages


def _context(text: str, start: int) -> str:
    """Return the sentence of `text` at the position `start`, shortened to a line around it."""
    begin = max((match.end() for match in re.finditer(r"[.:;] ", text[:start])), default=0)
    end = next((match.end() for match in re.finditer(r"[.;](?= |$)", text) if match.end() > start), len(text))
    line = text[begin:end].removesuffix(";")
    if len(line) > _LONGEST_CONTEXT:
        first = line.rfind(" ", 0, max(start - begin - _LONGEST_CONTEXT // 2, 0)) + 1
        last = line.rfind(" ", start - begin, first + _LONGEST_CONTEXT)
        last = len(line) if last < 0 or last > len(line) - 10 else last
        line = f"{'... ' if first else ''}{line[first:last]}{' ...' if last < len(line) else ''}"
    line = line.replace("**", "").replace("\\|", "|")
    return line.replace("`", "") if line.count("`") % 2 else line
