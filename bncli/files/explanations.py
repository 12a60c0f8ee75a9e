"""Explanations of predictions as columns.

    log_odds = base + explain_1 + ... + explain_N + rest

`explain_k` is text, `size=large:+1.23`, `age<=27.5&colour=red:-0.4`, or in JSON lines an object
`{"attributes": ["size"], "values": ["large"], "contribution": 1.23}`; missing in a row with fewer contributions.

Conventions: with fewer decimals every number is rounded for itself but `rest`, which takes what rounding leaves, so
that the printed numbers add up as well.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bncli.engine.explanation.contributions import Explanation
from bncli.engine.explanation.wording import Wording
from bncli.engine.kernels.arrays import Array
from bncli.files.decimals import shortest


def explanation_names(most: int) -> tuple[str, ...]:
    """The columns of at most so many contributions; none at all for 0."""
    return ("log_odds", "base", *(f"explain_{k}" for k in range(1, most + 1)), "rest") if most else ()


def rounded(explanation: Explanation, digits: int | None) -> Explanation:
    """With so many decimals (None: all), the sum kept."""
    if digits is None:
        return explanation
    log_odds, base = np.round(explanation.log_odds, digits), np.round(explanation.base, digits)
    contributions = np.round(explanation.contributions, digits)
    rest = np.round(log_odds - base - contributions.sum(axis=0), digits)
    return replace(explanation, log_odds=log_odds, base=base, rest=rest, contributions=contributions)


def contribution_texts(explanation: Explanation) -> list[pa.Array]:
    """Each `explain_k` as text, null where there is none."""
    return [
        pc.binary_join_element_wise(_worded(explanation, k, _phrase), _signs(numbers), shortest(numbers), "")
        for k, numbers in enumerate(explanation.contributions)
    ]


def contribution_objects(explanation: Explanation) -> list[pa.Array]:
    """Each `explain_k` as a JSON object, `null` where there is none."""
    return [
        pc.binary_join_element_wise(_worded(explanation, k, _object), shortest(numbers), "}", "").fill_null("null")
        for k, numbers in enumerate(explanation.contributions)
    ]


def _worded(explanation: Explanation, k: int, words: Callable[[Wording], str]) -> pa.Array:
    """What stands before the number."""
    reasons = explanation.reasons[k]
    distinct, places = np.unique(reasons, return_inverse=True)
    texts = [None if reason < 0 else words(explanation.wordings[reason]) for reason in distinct.tolist()]
    return pa.array(texts, pa.string()).take(pa.array(places.ravel()))


def _phrase(wording: Wording) -> str:
    seen = zip(wording.attributes, wording.values, strict=True)
    return "&".join(name + value if value[:1] in "<>" else f"{name}={value}" for name, value in seen) + ":"


def _object(wording: Wording) -> str:
    names, values = (json.dumps(texts, ensure_ascii=False, separators=(",", ":")) for texts in wording)
    return f'{{"attributes":{names},"values":{values},"contribution":'


def _signs(numbers: Array) -> pa.Array:
    return pa.array(["", "+"]).take(pa.array((numbers >= 0).astype(np.int8)))
