"""The self-test in a model file: there and back, in the narrowest type, and refused where it is forged."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bncli.engine.data.schema import CategoricalAttribute
from bncli.engine.prediction.verification import with_self_test
from bncli.errors import ModelError
from bncli.files.artifacts.archive import npy_bytes, pack
from bncli.files.artifacts.model import dump_model, format_version, read_model
from tests.files.archives import damaged_inside, forged, members, read
from tests.files.artifacts.test_model import BYTES, MODEL, SCHEMA, model_of

TESTED = with_self_test(MODEL)
CONTENT = dump_model(TESTED)
CODES, SAID = "self_test/codes.npy", "self_test/probabilities.npy"


def test_it_comes_back(tmp_path: Path) -> None:
    again = read(tmp_path, CONTENT)
    assert TESTED.self_test is not None
    assert again.self_test is not None
    np.testing.assert_array_equal(again.self_test.codes, TESTED.self_test.codes)
    np.testing.assert_array_equal(again.self_test.probabilities, TESTED.self_test.probabilities)
    assert dump_model(again) == CONTENT
    assert format_version(str(tmp_path / "m.bnc")) == 6
    assert list(members(CONTENT)) == [*members(BYTES), CODES, SAID]


def test_files_without_one_keep_their_version_and_bytes(tmp_path: Path) -> None:
    assert read(tmp_path, BYTES).self_test is None
    assert format_version(str(tmp_path / "m.bnc")) == 4
    assert b"self_test" not in BYTES
    older = read_model(str(Path(__file__).with_name("version_1.bnc")))
    assert older.self_test is None


@pytest.mark.parametrize(("levels", "descr"), [(200, "|u1"), (300, "<u2"), (255, "|u1"), (256, "<u2")])
def test_codes_are_in_the_narrowest_type(tmp_path: Path, levels: int, descr: str) -> None:
    many = CategoricalAttribute("colour", False, (1.0,) * levels, tuple(f"l{i}" for i in range(levels)))
    attributes = (SCHEMA.attributes[0], many, *SCHEMA.attributes[2:])
    content = dump_model(with_self_test(model_of(replace(SCHEMA, attributes=attributes), MODEL.structure)))
    assert f"'descr': '{descr}'".encode() in members(content)[CODES]
    assert dump_model(read(tmp_path, content)) == content


def without(name: str) -> bytes:
    return pack([(member, data) for member, data in members(CONTENT).items() if member != name])


def with_codes(codes: np.ndarray) -> bytes:
    return pack({**members(CONTENT), CODES: npy_bytes(codes)}.items())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (without(CODES), "its members are not those that it describes"),
        (without(SAID), "its members are not those that it describes"),
        (forged(CONTENT, lambda d: d.pop("self_test")), "its members are not those that it describes"),
        (forged(CONTENT, lambda d: d.update(self_test=10**15)), "codes.npy has not the size"),
        (forged(CONTENT, lambda d: d.update(self_test=0)), "self_test"),
        (with_codes(np.full((2, 32), 200, np.uint8)), "does not hold codes of the attributes"),
        (with_codes(np.zeros((32, 2), np.uint8)), "does not hold codes of the attributes"),
        (with_codes(np.zeros((2, 32), np.uint16)), "codes.npy has not the size"),
        (pack({**members(CONTENT), SAID: npy_bytes(np.full((3, 32), np.nan))}.items()), "finite float64"),
        (pack({**members(BYTES), "x.npy": b"", "y.npy": b""}.items()), "its members are not those"),
    ],
)
def test_a_forged_one_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        read(tmp_path, content)


@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_damage_inside_is_an_error_or_a_model(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Under a forged checksum numbers may change; nothing but a ModelError may come of anything else."""
    content = data.draw(damaged_inside(CONTENT))
    with contextlib.suppress(ModelError):
        assert read(tmp_path_factory.getbasetemp(), content).self_test is not None
