"""Prints the lowest versions that pyproject.toml allows, as constraints for pip: `numpy>=2.0` becomes `numpy==2.0`.

python .ci/lowest.py            those of the package
python .ci/lowest.py sklearn    those of an extra as well
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

PROJECT = tomllib.loads(Path(__file__).parents[1].joinpath("pyproject.toml").read_text(encoding="utf-8"))["project"]


def main(extras: list[str]) -> None:
    wanted = [*PROJECT["dependencies"], *(one for extra in extras for one in PROJECT["optional-dependencies"][extra])]
    for requirement in wanted:
        found = re.fullmatch(r"([\w-]+)>=([\d.]+)", requirement)
        if found is None:
            sys.exit(f"{requirement} has no lowest version")
        print(f"{found[1]}=={found[2]}")


main(sys.argv[1:])
