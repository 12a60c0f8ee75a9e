"""TOML files of domain knowledge; `bncli.catalogue.knowledge` describes their content."""

from __future__ import annotations

import os
from typing import Any

from bncli.errors import BncliError
from bncli.files.json_documents import decode_utf8
from bncli.files.paths import cannot_read


def resolve_knowledge(value: Any) -> Any:
    """Return the content of the TOML file `value`, or `value` itself if it is not a path (a mapping, or JSON text).

    Raises BncliError if the file cannot be read, or is not TOML.
    """
    if not isinstance(value, str | os.PathLike) or (isinstance(value, str) and value.lstrip().startswith("{")):
        return value
    import tomllib

    path = os.fspath(value)
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise cannot_read(path, error) from error
    try:
        return tomllib.loads(decode_utf8(data, path))
    except tomllib.TOMLDecodeError as error:
        hint = 'a knowledge file is TOML, as in forbid = [["a", "b"]]'
        raise BncliError(f"the file is not valid TOML: {error}", where=path, hint=hint) from None
