"""What programs written from a model have in common: their data, as a text that is Python and JavaScript alike.

    {"class": NAME, "labels": [...],
     "inputs": [{"name": ..., "cuts": [...] or "codes": [[text, code], ...], "missing": code, "frequencies": [...]}],
     "stages": [{"weight": w, "anew": 0 or 1, "shift": [...],
                 "tables": [{"inputs": [p, ...], "digits": [[digit of every code], ...], "shape": [...],
                             "averaged": [0 or 1, ...] or [], "entries": [[number of every cell], ...]}]}]}

with a list of `entries` a score row, of a calibrated model one of

    "calibration": {"powers": [[scale of every label], [shift]]} or {"lines": [[ends, starts, levels, slopes], ...]}

and where the program decides

    "decisions": {"costs": [[of true label and decision], ...], "threshold": p, "abstain_below": p}

with what the rule has of them.

See `bncli.engine.prediction.portable` for what the parts mean. Numbers are written so that they read back as they were;
characters that are not seen are escaped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from bncli.errors import BncliError

if TYPE_CHECKING:
    from bncli.engine.kernels.arrays import Array
    from bncli.engine.model import DecisionRule
    from bncli.engine.prediction.portable import PortableMap, PortableScorer, PortableTable
    from bncli.engine.prediction.portable_effects import PortableEffects


_UNSEEN = re.compile(
    "[\\x7f-\\x9f\\xad\u0600-\u0605\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]"
)


_SECONDS = 3600
"""That a program may take for the rows that it is tried on."""


def _unknown_effects() -> PortableEffects:
    raise TypeError("the target knows no effects")


class ProgramTarget(NamedTuple):
    """What a program is written for: a name for it, the texts that mean a missing value, and options of its format.

    missing: in place of a text; missing_numbers: in place of a number. `effects` finds those of the model over the
    inputs of the program. `rule`: how it decides, None: it does not. What does not concern a format is ignored by it.
    """

    name: str
    missing: tuple[str, ...] = ()
    missing_numbers: tuple[str, ...] = ()
    options: Mapping[str, Any] = MappingProxyType({})
    effects: Callable[..., PortableEffects] = _unknown_effects
    rule: DecisionRule | None = None


def listed(entries: Array) -> list[Any]:
    """Return the entries of a table as numbers."""
    found: list[Any] = entries.tolist()
    return found


def data_text(scorer: PortableScorer, target: ProgramTarget, written: Callable[[Array], list[Any]] = listed) -> str:
    """Return the data, a line per table, whose entries are `written` in this form."""
    inputs = ",\n".join("    " + text_of(one) for one in _inputs(scorer))
    stages = ",\n".join(_stage_text(scorer, s, written) for s in range(len(scorer.stages)))
    fields = [
        f'  "class": {text_of(scorer.class_name)}',
        f'  "labels": {text_of(list(scorer.labels))}',
        f'  "missing_texts": {text_of(list(target.missing))}',
        f'  "missing_numbers": {text_of(list(target.missing_numbers))}',
        f'  "inputs": [\n{inputs}\n  ]',
        f'  "stages": [\n{stages}\n  ]',
        *([] if scorer.calibration is None else [f'  "calibration": {text_of(_calibration(scorer.calibration))}']),
        *([] if target.rule is None else [f'  "decisions": {text_of(_decisions(target.rule))}']),
    ]
    return "{\n" + ",\n".join(fields) + "\n}"


def _calibration(found: PortableMap) -> dict[str, Any]:
    return {"powers": found.powers} if found.powers else {"lines": found.lines}


def decides(text: str) -> bool:
    """Return whether a program with such data decides."""
    return '\n  "decisions": ' in text


def _decisions(rule: DecisionRule) -> dict[str, Any]:
    known = {
        "costs": None if rule.costs is None else [list(row) for row in rule.costs],
        "threshold": None if rule.threshold is None else rule.threshold.value,
        "abstain_below": rule.abstain_below,
    }
    return {key: value for key, value in known.items() if value is not None}


def text_of(value: Any) -> str:
    """Return JSON that is Python and JavaScript too: no `null`, `true` or `false` may be in it."""
    import json

    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return _UNSEEN.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def _inputs(scorer: PortableScorer) -> list[dict[str, Any]]:
    found = []
    for one in scorer.inputs:
        known = {"cuts": list(one.cuts or ())} if one.codes is None else {"codes": list(one.codes.items())}
        found.append({"name": one.name, **known, "missing": one.missing, "frequencies": list(one.frequencies)})
    return found


def _stage_text(scorer: PortableScorer, number: int, written: Callable[[Array], list[Any]]) -> str:
    stage = scorer.stages[number]
    tables = ",\n".join("      " + text_of(_table(table, written)) for table in stage.tables)
    head = f'"weight": {text_of(stage.weight)}, "anew": {int(stage.anew)}, "shift": {text_of(stage.shift.tolist())}'
    return f'    {{{head}, "tables": [\n{tables}\n    ]}}'


def _table(table: PortableTable, written: Callable[[Array], list[Any]]) -> dict[str, Any]:
    return {
        "inputs": list(table.inputs),
        "digits": [list(map(int, digits)) for digits in table.digits],
        "shape": list(table.shape),
        "averaged": [] if table.averages is None else [int(average is not None) for average in table.averages],
        "entries": written(table.entries),
    }


def answers(command: Sequence[str], files: Mapping[str, str], rows: list[dict[str, Any]]) -> list[Any]:
    """Return the JSON output of a program that reads rows from stdin, run in a folder with these files.

    In `command` a word `{}` stands for the folder.
    """
    import json
    import subprocess
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory(prefix="bncli-") as folder:
        for name, text in files.items():
            Path(folder, name).write_text(text, encoding="utf-8")
        words = [word.replace("{}", folder) for word in command]
        try:
            done = subprocess.run(
                words, input=json.dumps(rows), capture_output=True, check=True, encoding="utf-8", timeout=_SECONDS
            )
            found: list[Any] = json.loads(done.stdout)
        except (subprocess.SubprocessError, OSError, ValueError) as error:
            said = (getattr(error, "stderr", "") or str(error)).strip().splitlines()
            reason = next((line for line in reversed(said) if "Error" in line), said[-1] if said else "no answer")
            what = f"what was written could not be run by {Path(command[0]).name}: {reason.strip()}"
            raise BncliError(what, hint="another version of it may do") from error
    return found
