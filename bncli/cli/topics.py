"""The topics of the manual: the Markdown files of `bncli/manual`.

The first line of a file, `# Title: what it is about`, is its entry in the table of contents.
"""

from __future__ import annotations

import os
import re

TOPIC_GROUPS = (
    ("Begin here", ("quick-start", "which-one", "step-by-step", "pitfalls", "glossary")),
    ("Data", ("describe", "data", "discretize", "missing-values", "large", "counts")),
    ("Structure", ("structures", "structure-scores", "regions", "interactions", "auto", "knowledge")),
    ("Parameters", ("parameters", "penalties", "monotone", "optimizers", "edit")),
    (
        "Using a model",
        ("score", "explain", "decisions", "what-if", "monitor", "export", "verify", "properties", "simulate"),
    ),
    ("Judging a model", ("evaluate", "validation", "groups", "calibration", "compare")),
    ("Out of the shell", ("report", "python", "web-service", "install")),
    ("Reference", ("options", "files", "json", "exit-codes", "shell", "speed", "cluster", "internals", "sources")),
)
"""The table of contents; the topics of a command are listed in `bncli.cli.commands`."""

TOPICS = tuple(topic for _, topics in TOPIC_GROUPS for topic in topics)
FOLDER = os.path.join(os.path.dirname(os.path.dirname(__file__)), "manual")


def read_topic(topic: str) -> str:
    """Return the Markdown of a topic, without the comments for its authors."""
    with open(os.path.join(FOLDER, f"{topic}.md"), encoding="utf-8") as file:
        return re.sub(r"^<!--.*-->\n", "", file.read(), flags=re.MULTILINE)


def subject_of(topic: str) -> str:
    """Return the part of a topic's title after the colon."""
    return read_topic(topic).partition("\n")[0].partition(": ")[2]
