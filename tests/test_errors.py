"""An error is one line."""

from hypothesis import given
from hypothesis import strategies as st

from bncli.errors import BncliError, ModelError, UsageError, printable


def test_the_line_says_what_where_and_what_to_do() -> None:
    assert str(BncliError("no rows", where="a.csv, line 3", hint="add some")) == "no rows, a.csv, line 3; add some"
    assert str(BncliError("no rows")) == "no rows"


def test_names_out_of_a_file_neither_break_the_line_nor_steer_the_terminal() -> None:
    assert str(BncliError("unknown 'a\nb\x1b[31m\x9bé'")) == "unknown 'a?b?[31m?é'"


def test_names_out_of_a_file_do_not_turn_what_follows_about() -> None:
    """Overrides and isolates of direction, separators of lines; letters that are written from right to left stay."""
    assert printable("a\u202eb\u2066c\u200fd\u061ce\u2028f\ufeff") == "a?b?c?d?e?f?"
    assert printable("\u05d0\u0628 \u2013 caf\u00e9 \u2192") == "\u05d0\u0628 \u2013 caf\u00e9 \u2192"


def test_every_kind_has_its_exit_code() -> None:
    assert (BncliError.exit_code, UsageError.exit_code, ModelError.exit_code) == (1, 2, 3)


def test_a_name_of_a_megabyte_does_not_fill_the_terminal() -> None:
    for name in ("x" * 10**6, "x y " * 250_000, "é\n" * 500_000):
        line = str(BncliError(f"there is no column '{name}'", where="a.csv", hint="did you mean 'b'?"))
        assert len(line) < 4100
        assert line.startswith("there is no column 'x" if "x" in name else "there is no column 'é")
        assert line.endswith("'b'?")
        assert "..." in line


@given(st.lists(st.text("ab.é/", min_size=1, max_size=300), max_size=12).map(" ".join))
def test_what_can_be_read_stays_as_it_is(text: str) -> None:
    assert printable(text) == text


@given(st.text())
def test_what_is_printed_once_may_be_printed_again(text: str) -> None:
    assert printable(printable(text)) == printable(text)
