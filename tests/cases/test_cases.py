"""Whole commands against what they printed before: every `.console` file here is a transcript.

BNCLI_UPDATE=1 writes the output anew (see tests/transcripts.py).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.transcripts import UPDATING, replay, settled, without_times, workplace

CASES = sorted(Path(__file__).parent.glob("*.console"))
LONG_CASES = {"compare", "penalties"}
"""Cases whose commands take many seconds; they are replayed with the slow tests."""


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=pytest.mark.slow if case.stem in LONG_CASES else ()) for case in CASES],
    ids=lambda path: path.stem,
)
def test_the_commands_print_what_they_did(case: Path, tmp_path: Path) -> None:
    written = case.read_text()
    played = replay(written, workplace(tmp_path))
    assert "internal error" not in played, "what went wrong must not become what is expected"
    if UPDATING:
        case.write_text(played)
    else:
        assert without_times(settled(played, written)) == without_times(written)
