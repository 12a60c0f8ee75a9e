"""A structure by column names as JSON, the same in structure files, models and reports.

A graph has the key `parents`: every column with the list of those it depends on. A list of regions has the key
`regions`: attributes that are looked up together with the class, in the order in which a search added them.

- `df`, `log_likelihood` and `log_posterior` have one number more than there are regions, for step 0, the class alone;
  `map_step` is the number of regions of the best model. A log posterior of null is minus infinity.
- `bootstrap_log_loss`, as long as these, is there where it was asked for.
- `bins` is there where regions see attributes more coarsely than they were cut: the most intervals that an attribute
  has in regions of 1, 2, 3, ... attributes, the last for larger ones (null: as cut).
- `cuts` is there in place of `bins` where regions have cuts of their own: for each region an object with the cuts of
  its numeric columns, a subset of those in the cuts file (a column that is left out: all).
- `arcs` is `cv` in the file of a graph that was learnt without a word for its method: `fit` then lets held-out rows
  choose among its arcs, as it does without a structure; `all`, or no such key: it keeps them.
- `gains` has the candidate gain of each region when it was chosen, in nats, where the search reports it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from bncli.engine.structures.named_structure import NamedDag, NamedRegions, NamedStructure
from bncli.engine.structures.structure import SearchTrace
from bncli.errors import BncliError
from bncli.files.documents import Node, dump_json, parse_json

VERSION = 1
ARCS = ("cv", "all")
_STEPS = ("df", "log_likelihood", "log_posterior", "map_step")
_CHECK = "bootstrap_log_loss"


def structure_json(structure: NamedStructure) -> dict[str, Any]:
    """Return the content of the structure file."""
    arcs = {"arcs": structure.arcs} if isinstance(structure, NamedDag) and structure.arcs != "all" else {}
    return {"format": "bncli-structure", "version": VERSION, **graph_json(structure), **arcs}


def dump_structure(structure: NamedStructure) -> str:
    """Return the text of the structure file."""
    return dump_json(structure_json(structure))


def graph_json(structure: NamedStructure) -> dict[str, Any]:
    """Class, method, options, and the parents of every column or the regions with what a search says of them."""
    return {
        "class": structure.class_name,
        "method": structure.method,
        "options": dict(sorted(structure.options.items())),
        **content_json(structure),
    }


def content_json(structure: NamedStructure) -> dict[str, Any]:
    """Return the parents, or the regions and what a search says of them."""
    if isinstance(structure, NamedDag):
        return {"parents": {child: list(parents) for child, parents in structure.parents.items()}}
    regions = {"regions": [list(region) for region in structure.regions]}
    bins = {"bins": list(structure.bins)} if structure.bins else {}
    gains = {"gains": [float(gain) for gain in structure.gains]} if structure.gains else {}
    named = zip(structure.regions, structure.cuts, strict=False)
    cuts = {"cuts": [_cuts_json(*one) for one in named]} if structure.cuts else {}
    return regions | bins | cuts | gains | ({} if structure.trace is None else _search_json(structure.trace))


def _cuts_json(region: tuple[str, ...], cuts: tuple[tuple[float, ...] | None, ...]) -> dict[str, list[float]]:
    pairs = zip(region, cuts, strict=True)
    return {name: [float(cut) for cut in listed] for name, listed in pairs if listed is not None}


def _search_json(trace: SearchTrace) -> dict[str, Any]:
    checked = {_CHECK: [float(value) for value in trace.bootstrap_log_loss]} if trace.bootstrap_log_loss else {}
    return {
        "df": [int(df) for df in trace.df],
        "log_likelihood": [float(value) for value in trace.log_likelihood],
        "log_posterior": [posterior_json(value) for value in trace.log_posterior],
        "map_step": int(trace.map_step),
        **checked,
    }


def posterior_json(value: float) -> float | None:
    """Return the value for JSON, which has no infinity: None for a model that the prior forbids."""
    return None if value == -math.inf else float(value)


def parse_structure(data: bytes, path: str) -> NamedStructure:
    """Return the structure in the text of the structure file."""
    document = parse_json(data, path)
    document.check_format("structure", VERSION)
    found = read_graph(document, besides=("format", "version"), also=("arcs",))
    arcs = document.members().get("arcs")
    if arcs is None or not isinstance(found, NamedDag):
        return found
    if arcs.value not in ARCS:
        arcs.fail(f"'arcs' is {arcs.value!r}", hint=f"it should be one of {', '.join(ARCS)}")
    return replace(found, arcs=arcs.text())


def read_graph(node: Node, besides: tuple[str, ...] = (), also: tuple[str, ...] = ()) -> NamedStructure:
    """Return the structure in an object that has the keys above and those `besides`.

    Method and options may be left out; a graph may have the keys of `also`.
    """
    members = node.members()
    content = "regions" if "regions" in members else "parents"
    if "regions" in members and "parents" in members:
        node.fail(
            "the structure has both 'parents' and 'regions'", hint="a structure is either a graph or a list of regions"
        )
    optional = ("bins", "cuts", "gains", *_STEPS, _CHECK) if content == "regions" else also
    fields = node.fields((*besides, "class", content), ("method", "options", *optional))
    class_name = fields["class"].text()
    method = fields["method"].text() if "method" in fields else "file"
    options = fields["options"].members() if "options" in fields else {}
    scalars = {name: option.scalar() for name, option in options.items()}
    make: Callable[..., NamedStructure]
    if content == "parents":
        make = partial(NamedDag, class_name, _read_parents(fields["parents"]))
    else:
        bins = (
            tuple(None if item.value is None else item.integer() for item in fields["bins"].items())
            if "bins" in fields
            else ()
        )
        gains = tuple(item.number() for item in fields["gains"].items()) if "gains" in fields else ()
        found = (
            tuple(tuple(item.text() for item in names.items()) for names in fields["regions"].items()),
            _read_search(node, fields),
        )
        cuts = _read_cuts(fields["cuts"], found[0]) if "cuts" in fields else ()
        make = partial(NamedRegions, class_name, *found, bins=bins, gains=gains, cuts=cuts)
    try:
        return make(method=method, options=scalars)
    except BncliError as error:
        node.fail(error.what, hint=error.hint)


def _read_parents(node: Node) -> dict[str, tuple[str, ...]]:
    return {child: tuple(item.text() for item in names.items()) for child, names in node.members().items()}


def _read_search(node: Node, fields: Mapping[str, Node]) -> SearchTrace | None:
    """Return what a search says of the steps: all of it or nothing."""
    missing = [key for key in _STEPS if key not in fields]
    if len(missing) == len(_STEPS) and _CHECK not in fields:
        return None
    if missing:
        node.fail(f"the key '{missing[0]}' is missing", hint=f"give {', '.join(_STEPS)}, or none of them")
    df, log_likelihood, log_posterior, map_step = (fields[key] for key in _STEPS)
    return SearchTrace(
        tuple(item.integer(0) for item in df.items()),
        tuple(item.number() for item in log_likelihood.items()),
        tuple(-math.inf if item.value is None else item.number() for item in log_posterior.items()),
        map_step.integer(),
        tuple(item.number() for item in fields[_CHECK].items()) if _CHECK in fields else (),
    )


def _read_cuts(node: Node, regions: tuple[tuple[str, ...], ...]) -> tuple[tuple[tuple[float, ...] | None, ...], ...]:
    """For each region the cuts of its columns, None for those that the object leaves out."""
    items = node.items()
    if len(items) != len(regions):
        node.fail(f"{len(items)} entries for {len(regions)} regions", hint="give an object for each region")
    found = []
    for item, region in zip(items, regions, strict=True):
        fields = item.fields((), region)
        cuts = {name: tuple(one.number() for one in listed.items()) for name, listed in fields.items()}
        found.append(tuple(cuts.get(name) for name in region))
    return tuple(found)
