"""Model files read from bytes, taken apart, changed at random, and sealed again as a forger would."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from bncli.engine.model import Model
from bncli.files.artifacts.archive import pack
from bncli.files.artifacts.model import read_model

SEAL = 64
"""Bytes of the checksum at the end."""


def read(folder: Path, content: bytes) -> Model:
    (folder / "m.bnc").write_bytes(content)
    return read_model(str(folder / "m.bnc"))


def members(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def sealed(content: bytes) -> bytes:
    """The same archive with the right checksum: what a forger would make."""
    return content[:-SEAL] + hashlib.sha256(content[:-SEAL]).hexdigest().encode()


def forged(content: bytes, change: Callable[[dict[str, Any]], object]) -> bytes:
    """A well-sealed model whose description was changed."""
    parts = members(content)
    description = json.loads(parts["model.json"])
    change(description)
    return pack({**parts, "model.json": json.dumps(description).encode()}.items())


@st.composite
def damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """One byte changed, gone or too many."""
    place, how = draw(st.integers(0, len(content) - 1)), draw(st.sampled_from(["change", "delete", "insert"]))
    new = b"" if how == "delete" else draw(st.binary(min_size=1, max_size=1))
    return content[:place] + new + content[place + (how != "insert") :]


@st.composite
def damaged_inside(draw: st.DrawFn, content: bytes) -> bytes:
    """Up to three other bytes under the right checksum, mostly in the ZIP's own records at the end."""
    changed = bytearray(content)
    last = len(content) - SEAL - 1
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, last) | st.integers(last - 435, last))
        changed[place] = draw(st.integers(0, 255))
    return sealed(bytes(changed))
