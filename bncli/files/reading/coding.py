"""Columns of a row block as a model's schema reads them: types and levels are the schema's, never guessed."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bncli.engine.data.columns import MISSING, UNSEEN, CategoricalColumn, Column
from bncli.engine.data.forms import Form, NumberForm
from bncli.engine.data.schema import Attribute, CategoricalAttribute, NumericAttribute
from bncli.files.reading.forms import column_read, in_form, want_in_form
from bncli.files.reading.numerals import to_numbers
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
    """A column as it is asked for, and the attributes that it codes: one, or several made from the same dates.

    `forms` has one for every name, None for plain numbers and for text; `vocabulary` is None for numbers.
    """

    want: Want
    vocabulary: Vocabulary | None
    names: tuple[str, ...]
    forms: tuple[Form | None, ...] = (None,)

    @staticmethod
    def of(attribute: Attribute, tokens: Tokens) -> Coded:
        """The attribute read from a column of its own name."""
        if isinstance(attribute, CategoricalAttribute):
            vocabulary = Vocabulary.of(tuple(attribute.code_of), tokens)
            return Coded(Want(attribute.name, Kind.TEXT), vocabulary, (attribute.name,))
        form = attribute.form if isinstance(attribute.form, NumberForm) else None
        return Coded(want_in_form(attribute.name, form), None, (attribute.name,), (form,))

    @staticmethod
    def all_of(attributes: Iterable[Attribute], names: Collection[str], tokens: Tokens) -> list[Coded]:
        """The attributes as they are read from a table with columns of these names, each column once."""
        coded: list[Coded] = []
        dates: dict[str, list[NumericAttribute]] = {}
        for attribute in attributes:
            source = column_read(attribute, names)
            if source != attribute.name and isinstance(attribute, NumericAttribute):
                dates.setdefault(source, []).append(attribute)
            else:
                coded.append(Coded.of(attribute, tokens))
        for source, parts in dates.items():
            forms = tuple(attribute.form for attribute in parts)
            coded.append(Coded(want_in_form(source, forms[0]), None, tuple(part.name for part in parts), forms))
        return coded

    def columns(self, values: Values) -> dict[str, Column]:
        """The values of a row block as columns: float64 with NaN where missing, or codes into the levels."""
        if self.vocabulary is None:
            return {name: in_form(values, form) for name, form in zip(self.names, self.forms, strict=True)}
        return {self.names[0]: CategoricalColumn(self.vocabulary.encode(values), self.vocabulary.levels)}


def coded_label(name: str, labels: tuple[str, ...], tokens: Tokens) -> Coded:
    """The class in the column `name`, coded into these labels."""
    return Coded(Want(name, Kind.TEXT), Vocabulary.of(labels, tokens_of_class(labels, tokens)), (name,))


def tokens_of_class(labels: tuple[str, ...], tokens: Tokens) -> Tokens:
    """Where all labels are numbers the missing tokens are those of numbers, as in the table that was learnt from."""
    _, wrong = to_numbers(pa.array(labels, pa.string()), ())
    return Tokens(tokens.number, tokens.number) if wrong is None else tokens
