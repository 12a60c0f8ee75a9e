"""Tables for LaTeX in the style of the package booktabs; without the package its rules become plain lines.

A file of tables is a fragment, to be pasted or read by \\input between \\begin{document} and \\end{document}. Letters
beyond ASCII are written as they are, since UTF-8 is LaTeX's default encoding (since 2018).
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
    """A caption, column headings and blocks of rows, all LaTeX text; the first `names` columns are left-aligned."""

    caption: str
    header: Sequence[str]
    blocks: Sequence[Sequence[Sequence[str]]]
    names: int = 1


def write_tables(path: str, tables: Iterable[LatexTable]) -> None:
    """Write a file of tables."""
    text = _HEAD
    for table in tables:
        columns = "l" * table.names + "r" * (len(table.header) - table.names)
        lines = [
            r"\begin{table}",
            r"\centering",
            r"\footnotesize",
            rf"\caption{{{table.caption}}}",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            _row(table.header),
        ]
        for block in table.blocks:
            if block:
                lines += [r"\midrule", *map(_row, block)]
        lines += [r"\bottomrule", r"\end{tabular}", r"\end{table}"]
        text += "\n" + "\n".join(lines) + "\n"
    write_bytes(path, text.encode("utf-8", "replace"))


def _row(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


def escape(text: str) -> str:
    """Return LaTeX that prints the text as it is; two hyphens do not become a dash."""
    return "".join(_SPECIAL.get(letter, letter) for letter in printable(text)).replace("--", "-{}-{}")


def bold(text: str) -> str:
    return rf"\textbf{{{text}}}"


def italic(text: str) -> str:
    return rf"\textit{{{text}}}"
