"""The manual's table of contents: its topics in groups, and those that concern a command. Strings only.

A topic is a Markdown file of `bncli/manual`. Its first line, `# Title: what it is about`, is its line in the contents.
"""

from __future__ import annotations

GROUPS = (
    ("Begin here", ("quick-start", "which-one", "step-by-step", "pitfalls", "glossary")),
    ("Data", ("describe", "data", "discretize", "missing-values", "large", "counts")),
    ("Structure", ("structures", "structure-scores", "regions", "interactions", "auto")),
    ("Parameters", ("parameters", "smoothing", "penalties", "monotone", "optimizers")),
    (
        "Using a model",
        ("score", "explain", "decisions", "what-if", "monitor", "inspect", "export", "verify", "simulate"),
    ),
    ("Judging a model", ("evaluate", "groups", "calibration", "compare", "convergence")),
    ("Out of the shell", ("report", "python", "install")),
    ("Reference", ("options", "files", "json", "exit-codes", "shell", "speed", "cluster", "internals", "sources")),
)
"""Every topic, as a reader may want to meet them."""

TOPICS = tuple(topic for _, topics in GROUPS for topic in topics)

OF_COMMANDS = {
    "describe": ("describe", "data", "pitfalls", "glossary"),
    "discretize": ("discretize", "data", "step-by-step", "files"),
    "encode": ("large", "discretize", "data", "files", "cluster"),
    "learn-structure": ("structures", "structure-scores", "regions", "interactions", "step-by-step"),
    "count": ("counts", "discretize", "structures"),
    "merge": ("counts", "files"),
    "fit": (
        *("quick-start", "which-one", "structures", "parameters"),
        *("decisions", "python"),
    ),
    "score": ("score", "monitor", "explain", "what-if", "decisions", "missing-values", "data", "shell", "cluster"),
    "monitor": ("monitor", "score", "json"),
    "evaluate": ("evaluate", "groups", "calibration", "compare", "which-one", "decisions", "json", "cluster"),
    "calibrate": ("calibration", "evaluate", "score"),
    "compare": ("compare", "evaluate", "which-one", "cluster"),
    "convergence": ("convergence", "optimizers", "parameters"),
    "inspect": ("inspect", "explain", "files"),
    "report": ("report", "evaluate", "explain", "inspect"),
    "diff": ("verify", "inspect"),
    "verify": ("verify", "export", "files"),
    "export": ("export", "verify", "files"),
    "simulate": ("simulate", "evaluate"),
    "help": ("quick-start", "glossary"),
    "config": ("shell", "options", "json"),
    "completion": ("shell", "install"),
}
"""What `bncli COMMAND --help` points to, the nearest first."""
