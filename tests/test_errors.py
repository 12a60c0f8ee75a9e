"""An error is one line."""

from bncli.errors import BncliError, ModelError, UsageError


def test_the_line_says_what_where_and_what_to_do() -> None:
    assert str(BncliError("no rows", where="a.csv, line 3", hint="add some")) == "no rows, a.csv, line 3; add some"
    assert str(BncliError("no rows")) == "no rows"


def test_names_out_of_a_file_neither_break_the_line_nor_steer_the_terminal() -> None:
    assert str(BncliError("unknown 'a\nb\x1b[31m\x9bé'")) == "unknown 'a?b?[31m?é'"


def test_every_kind_has_its_exit_code() -> None:
    assert (BncliError.exit_code, UsageError.exit_code, ModelError.exit_code) == (1, 2, 3)
