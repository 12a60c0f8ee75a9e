"""The topics of the manual: the Markdown files of `bncli/manual`, and a search in them.

The first line of a file, `# Title: what it is about`, is its entry in the table of contents.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

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
"""The table of contents; the topics of a command are listed in `bncli.cli.commands`."""

TOPICS = tuple(topic for _, topics in TOPIC_GROUPS for topic in topics)
FOLDER = os.path.join(os.path.dirname(os.path.dirname(__file__)), "manual")


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
"""Words by which people look for a topic, whether or not its page has them."""

_MOST_HITS, _MOST_PER_TOPIC = 10, 3
"""The number of hits that a search returns, in all and of one topic."""
_LONGEST_CONTEXT = 110
"""The most characters of the text that a hit shows."""


class Hit(NamedTuple):
    """A passage of the manual: the topic, the heading above it ("" for the topic itself), and a line of its text."""

    topic: str
    heading: str
    line: str


@cache
def read_topic(topic: str) -> str:
    """Return the Markdown of a topic, without the comments for its authors."""
    with open(os.path.join(FOLDER, f"{topic}.md"), encoding="utf-8") as file:
        return re.sub(r"^<!--.*-->\n", "", file.read(), flags=re.MULTILINE)


def subject_of(topic: str) -> str:
    """Return the part of a topic's title after the colon."""
    return read_topic(topic).partition("\n")[0].partition(": ")[2]


def topics_by_synonym() -> dict[str, str]:
    return {word: topic for topic, words in _SYNONYMS.items() for word in words.split()}


def search(text: str) -> list[Hit]:
    """Return at most ten places in the manual that mention a text, the most useful topic first.

    Topics come first that have the text, or one of its words, as a synonym, then topics with the text in their title,
    then in a heading, then those that mention it most often in their prose. Matches in examples count least. If the
    whole text occurs nowhere, a place must contain all of its words. Case is ignored.
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
    """Return how well a topic matches the patterns, and its passages that match all of them, the best first."""

    def position(text: str) -> int:
        """Return where the first pattern matches, or -1 if one does not match."""
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
def _passages(topic: str) -> tuple[tuple[str, str, bool], ...]:
    """Return the passages of `_split_passages` as a tuple that can be cached."""
    return tuple(_split_passages(topic))


def _split_passages(topic: str) -> Iterator[tuple[str, str, bool]]:
    """Yield the paragraphs, items, rows of tables and lines of examples of a topic.

    Each comes with the heading above it ("" before the first heading), and with whether it belongs to an example.
    """
    heading, paragraph, in_block = "", "", False
    for line in [*read_topic(topic).splitlines()[1:], ""]:
        is_fence = line.startswith("```")
        begins = (
            is_fence or in_block or not line.strip() or line.startswith(("#", "|")) or re.match(r"\s*(-|\d+\.) ", line)
        )
        if begins and paragraph:
            yield heading, paragraph, False
            paragraph = ""
        if is_fence:
            in_block = not in_block
        elif in_block or line.startswith("    "):
            yield heading, line.strip(), True
        elif line.startswith("#"):
            heading = line.lstrip("# ").replace("`", "")
        elif line.startswith("|"):
            yield heading, ": ".join(cell.strip() for cell in re.split(r"(?<!\\)\|", line) if cell.strip(" -:")), False
        else:
            paragraph = f"{paragraph} {re.sub(r'^(-|[0-9]+[.]) ', '', line.strip())}".strip()


def _context(text: str, start: int) -> str:
    """Return the sentence of a text at a position, shortened to a line around it."""
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
