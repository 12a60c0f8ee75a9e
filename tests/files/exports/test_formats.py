"""What holds of every record in the lists of formats."""

from __future__ import annotations

import re

import pytest

from bncli.errors import UsageError
from bncli.files.exports import (
    EXPORTS,
    SCORES,
    ExportFormat,
    ScoreFormat,
    export_format,
    export_formats,
    find_format,
    score_format,
    score_formats,
)


@pytest.mark.parametrize(("words", "records"), [(EXPORTS, export_formats()), (SCORES, score_formats())])
def test_records_are_those_of_their_words(
    words: tuple[str, ...], records: tuple[ExportFormat, ...] | tuple[ScoreFormat, ...]
) -> None:
    assert tuple(record.word for record in records) == words
    endings = [ending for record in records for ending in record.endings]
    assert len(set(endings)) == len(endings)
    assert all(re.fullmatch(r"\.[a-z0-9]+", ending) for ending in endings)
    assert all(find_format(f"a.b{record.endings[0].upper()}", records) == record.word for record in records)


@pytest.mark.parametrize("path", [None, "", "x", ".bif", "x.bif/y", "x.bif.gz"])
def test_no_ending_no_format(path: str | None) -> None:
    assert find_format(path, export_formats()) is None


def test_unknown_words_are_refused() -> None:
    with pytest.raises(UsageError, match="no output format 'csv'; choose one of bif, xmlbif, dot, json"):
        export_format("csv")
    with pytest.raises(UsageError, match="no output format 'formats'; choose one of csv"):
        score_format("formats")
