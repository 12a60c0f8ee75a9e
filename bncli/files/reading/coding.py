"""Columns of a row block as a model's schema reads them: types and levels are the schema's, never guessed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bncli.engine.data.columns import MISSING, UNSEEN, CategoricalColumn, Column, NumericColumn
from bncli.engine.data.schema import Attribute, CategoricalAttribute
from bncli.files.reading.row_blocks import Kind, Values, Want
from bncli.files.reading.source import Tokens
from bncli.files.reading.vocabulary import SignedCodes, codes_of, narrow_codes


@dataclass(frozen=True)
class Vocabulary:
    """What texts mean: codes[i] is the code of texts[i]; a text that is not there is looked at without its blanks."""

    levels: tuple[str, ...]
    missing: tuple[str, ...]
    texts: pa.Array
    codes: SignedCodes

    @staticmethod
    def of(levels: tuple[str, ...], tokens: Tokens) -> Vocabulary:
        # A missing token wins over a level of the same text.
        levels_only = [(level, code) for code, level in enumerate(levels) if level not in tokens.text]
        texts = pa.array([*tokens.text, *(level for level, _ in levels_only)], pa.string())
        codes = [MISSING] * len(tokens.text) + [code for _, code in levels_only]
        return Vocabulary(levels, tokens.text, texts, narrow_codes(np.array(codes), len(levels)))

    def encode(self, values: pa.Array) -> SignedCodes:
        """The code of every value: a level's, MISSING or UNSEEN."""
        indices = pc.index_in(values, value_set=self.texts)
        if not indices.null_count:
            known: SignedCodes = self.codes[indices.to_numpy()]
            return known
        unknown = pc.is_null(indices)
        codes: SignedCodes = self.codes[indices.fill_null(0).to_numpy()]
        encoded = values.filter(unknown).dictionary_encode()
        found = codes_of(encoded.dictionary, self.levels, self.missing, UNSEEN)
        codes[unknown.to_numpy(zero_copy_only=False)] = found[encoded.indices.to_numpy()]
        return codes


@dataclass(frozen=True)
class Coded:
    """An attribute as it is asked for and coded; `vocabulary` is None for numbers."""

    want: Want
    vocabulary: Vocabulary | None

    @staticmethod
    def of(attribute: Attribute, tokens: Tokens) -> Coded:
        if isinstance(attribute, CategoricalAttribute):
            return Coded(Want(attribute.name, Kind.TEXT), Vocabulary.of(tuple(attribute.code_of), tokens))
        return Coded(Want(attribute.name, Kind.NUMBER, strict=True), None)

    def column(self, values: Values) -> Column:
        """The values of a row block as a column: float64 with NaN where missing, or codes into the levels."""
        if self.vocabulary is None:
            return NumericColumn(np.asarray(values, np.float64))
        return CategoricalColumn(self.vocabulary.encode(values), self.vocabulary.levels)
