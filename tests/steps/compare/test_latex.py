"""Tables for LaTeX: names print as they are, and what is written has balanced braces and as many cells as columns."""

from __future__ import annotations

import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from bncli.steps.compare.outputs import LatexTable, escape, write_tables


def printed(text: str) -> str:
    """What LaTeX makes of text that `escape` wrote."""
    words = {"textbackslash": "\\", "textasciitilde": "~", "textasciicircum": "^", "textless": "<", "textgreater": ">"}
    words |= {"textbar": "|", "textasciigrave": "`"}
    text = re.sub(r"\\([a-z]+)\{\}", lambda found: f"\0{ord(words[found[1]])}\0", text)
    text = re.sub(r"\\([&%$#_{}])", lambda found: f"\0{ord(found[1])}\0", text)
    assert not re.search(r"[\\&%$#_~^<>|`]", text), "a letter that means something to LaTeX"
    text = text.replace("''", '"').replace("{", "").replace("}", "")
    return re.sub("\0([0-9]+)\0", lambda found: chr(int(found[1])), text)


@given(st.text(st.sampled_from('ab-_{}\\&%$#~^<>|`[]*" é'), max_size=12))
def test_names_print_as_they_are(text: str) -> None:
    assert printed(escape(text)) == text
    assert "--" not in escape(text)
    assert not escape(text).startswith(("[", "*"))


def test_control_characters_do_not_get_through() -> None:
    assert escape("a\nb\x1b") == "a?b?"


def test_a_file_of_tables(tmp_path: Path) -> None:
    table = LatexTable(
        "A caption", ["", "a", "b"], [[["x", r"\textbf{1}", "2"], ["y", "3", r"\textit{4}"]], [], [["z", "", ""]]]
    )
    write_tables(str(tmp_path / "t.tex"), [table, table])
    text = (tmp_path / "t.tex").read_text()
    assert text.count(r"\begin{table}") == text.count(r"\end{table}") == 2
    assert text.count(r"\begin{tabular}{lrr}") == text.count(r"\end{tabular}") == 2
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert rows[:4] == [r" & a & b \\", r"x & \textbf{1} & 2 \\", r"y & 3 & \textit{4} \\", r"z &  &  \\"]
    assert text.count(r"\midrule") == 1 + 2 * 2
    assert text.startswith("%")
    assert r"\providecommand{\toprule}{\hline}" in text
