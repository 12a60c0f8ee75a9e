"""Tables for LaTeX, as the package booktabs wants them; without the package its rules are plain lines.

A file of tables is a fragment: it compiles where it is pasted, or read by \\input, between \begin{document} and
\\end{document}. Conventions: letters beyond ASCII stay as they are (UTF-8 is LaTeX's own since 2018).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bncli.errors import printable
from bncli.files.atomic import write_bytes

_HEAD = r"""% Tables by bncli compare. In the preamble: \usepackage{booktabs}
\providecommand{\toprule}{\hline}
\providecommand{\midrule}{\hline}
\providecommand{\bottomrule}{\hline}
"""
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",
    "`": r"\textasciigrave{}",
    "[": "{[}",
    "]": "{]}",
    "*": "{*}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}


@dataclass(frozen=True)
class LatexTable:
    """A caption, column heads and blocks of rows, all LaTeX text; after the first `names` columns come numbers."""

    caption: str
    header: Sequence[str]
    blocks: Sequence[Sequence[Sequence[str]]]
    names: int = 1


def write_tables(path: str, tables: Iterable[LatexTable]) -> None:
    """Write a file of tables."""
    text = "\n".join([_HEAD, *map(_table, tables)])
    write_bytes(path, text.encode("utf-8", "replace"))


def _table(table: LatexTable) -> str:
    blocks = [[_row(row) for row in block] for block in table.blocks if block]
    body = [line for block in blocks for line in (r"\midrule", *block)]
    columns = "l" * table.names + "r" * (len(table.header) - table.names)
    lines = [
        r"\begin{table}",
        r"\centering",
        r"\footnotesize",
        rf"\caption{{{table.caption}}}",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        _row(table.header),
        *body,
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _row(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


def escaped(text: str) -> str:
    """Return a text that LaTeX prints as it is; two hyphens stay two."""
    return "".join(_SPECIAL.get(letter, letter) for letter in printable(text)).replace("--", "-{}-{}")


def bold(text: str) -> str:
    return rf"\textbf{{{text}}}"


def italic(text: str) -> str:
    return rf"\textit{{{text}}}"
