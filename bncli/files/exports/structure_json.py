"""A structure as JSON, with column names, in structure files, models and reports.

A graph has the key `parents`, which maps each column to the list of columns that it depends on. In a structure file it
may also have the key `arcs`. Its value is `cv` if the structure was learned without naming a method; `fit` then chooses
among its arcs by the loss on held-out rows. If it is `all`, or if there is no such key, `fit` keeps all arcs.

A list of regions has the key `regions`: sets of attributes that are looked up together with the class, in the order in
which a search added them. Its optional keys:

- `df`, `log_likelihood`, `log_posterior`: one number per step. The first step is the class alone, so there is one step
  more than regions. A log posterior of null is minus infinity. `map_step` is the number of regions of the best model.
- `bootstrap_log_loss`, one number per step, if it was computed.
- `gains`: the candidate gain of each region when it was chosen, in nats, if the search reports it.
- `bins`, if regions use coarser intervals than the cuts: the maximum number of intervals of an attribute in regions of
  1, 2, 3, ... attributes, where the last number applies to all larger regions (null: no maximum).
- `cuts`, in place of `bins`, if regions have cuts of their own: per region an object with the cuts of its numeric
  columns, which are a subset of the cuts in the cuts file (all of them for a column that is left out).
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
from bncli.files.json_documents import Node, dump_json, parse_json
from bncli.recipe import check_structure_option

VERSION = 1
ARCS = ("cv", "all")
_TRACE_KEYS = ("df", "log_likelihood", "log_posterior", "map_step")
_BOOTSTRAP = "bootstrap_log_loss"


def dump_structure(structure: NamedStructure) -> str:
    """Format a structure as the content of a structure file."""
    return dump_json(structure_json(structure))


def structure_json(structure: NamedStructure) -> dict[str, Any]:
    """Return the content of the structure file as a JSON object."""
    arcs = {"arcs": structure.arcs} if isinstance(structure, NamedDag) and structure.arcs != "all" else {}
    return {"format": "bncli-structure", "version": VERSION, **graph_json(structure), **arcs}


def graph_json(structure: NamedStructure) -> dict[str, Any]:
    """Return the class, the method and its options, and the parents or regions, as a JSON object."""
    return {
        "class": structure.class_name,
        "method": structure.method,
        "options": dict(sorted(structure.options.items())),
        **content_json(structure),
    }


def content_json(structure: NamedStructure) -> dict[str, Any]:
    """Return the parents, or the regions with their optional keys, as a JSON object."""
    if isinstance(structure, NamedDag):
        return {"parents": {child: list(parents) for child, parents in structure.parents.items()}}
    content: dict[str, Any] = {"regions": [list(region) for region in structure.regions]}
    if structure.bins:
        content["bins"] = list(structure.bins)
    if structure.cuts:
        content["cuts"] = [
            {name: [float(cut) for cut in cuts] for name, cuts in zip(region, listed, strict=True) if cuts is not None}
            for region, listed in zip(structure.regions, structure.cuts, strict=False)
        ]
    if structure.gains:
        content["gains"] = [float(gain) for gain in structure.gains]
    if (trace := structure.trace) is not None:
        content["df"] = [int(df) for df in trace.df]
        content["log_likelihood"] = [float(value) for value in trace.log_likelihood]
        content["log_posterior"] = [posterior_json(value) for value in trace.log_posterior]
        content["map_step"] = int(trace.map_step)
        if trace.bootstrap_log_loss:
            content[_BOOTSTRAP] = [float(value) for value in trace.bootstrap_log_loss]
    return content


def posterior_json(value: float) -> float | None:
    """Return a log posterior, or None for minus infinity, which JSON lacks (the prior excludes the model)."""
    return None if value == -math.inf else float(value)


def parse_structure(data: bytes, path: str) -> NamedStructure:
    """Parse the content of a structure file; raise BncliError if it is not valid."""
    document = parse_json(data, path)
    document.check_format("structure", VERSION)
    structure = read_graph(document, file_keys=("format", "version"), graph_keys=("arcs",))
    arcs = document.members().get("arcs")
    if arcs is None or not isinstance(structure, NamedDag):
        return structure
    if arcs.value not in ARCS:
        arcs.fail(f"'arcs' is {arcs.value!r}", hint=f"it should be one of {', '.join(ARCS)}")
    return replace(structure, arcs=arcs.text())


def read_graph(node: Node, file_keys: tuple[str, ...] = (), graph_keys: tuple[str, ...] = ()) -> NamedStructure:
    """Parse a structure from a JSON object, in which the method and its options are optional.

    file_keys: further keys that the object must have. graph_keys: further keys that a graph may have. Raises BncliError
    if the object is not valid.
    """
    members = node.members()
    content = "regions" if "regions" in members else "parents"
    if "regions" in members and "parents" in members:
        hint = "a structure is either a graph or a list of regions"
        node.fail("the structure has both 'parents' and 'regions'", hint=hint)
    optional = ("bins", "cuts", "gains", *_TRACE_KEYS, _BOOTSTRAP) if content == "regions" else graph_keys
    fields = node.fields((*file_keys, "class", content), ("method", "options", *optional))
    class_name = fields["class"].text()
    method = fields["method"].text() if "method" in fields else "file"
    option_nodes = fields["options"].members() if "options" in fields else {}
    options = read_options(option_nodes)
    build: Callable[..., NamedStructure]
    if content == "regions":
        bins: tuple[int | None, ...] = ()
        if "bins" in fields:
            bins = tuple(None if item.value is None else item.integer() for item in fields["bins"].items())
        gains = tuple(item.number() for item in fields["gains"].items()) if "gains" in fields else ()
        regions = tuple(tuple(item.text() for item in names.items()) for names in fields["regions"].items())
        trace = _read_trace(node, fields)
        cuts = []
        if "cuts" in fields:
            entries = fields["cuts"].items()
            if len(entries) != len(regions):
                what = f"expected {len(regions)} entries, found {len(entries)}"
                fields["cuts"].fail(what, hint="give an object for each region")
            for item, region in zip(entries, regions, strict=True):
                columns = item.fields((), region)
                by_name = {name: tuple(cut.number() for cut in listed.items()) for name, listed in columns.items()}
                cuts.append(tuple(by_name.get(name) for name in region))
        build = partial(
            NamedRegions, class_name, regions=regions, trace=trace, bins=bins, gains=gains, cuts=tuple(cuts)
        )
    else:
        items = fields["parents"].members().items()
        build = partial(NamedDag, class_name, {child: tuple(n.text() for n in names.items()) for child, names in items})
    try:
        return build(method=method, options=options)
    except BncliError as error:
        node.fail(error.what, hint=error.hint)


def read_options(nodes: Mapping[str, Node]) -> dict[str, int | float | str | bool]:
    """Parse the options of the method that learned a structure; raise BncliError if a known option is not valid."""
    options = {name: node.scalar() for name, node in nodes.items()}
    for name, value in options.items():
        try:
            check_structure_option(name, value)
        except BncliError as error:
            nodes[name].fail(error.what, hint=error.hint)
    return options


def _read_trace(node: Node, fields: Mapping[str, Node]) -> SearchTrace | None:
    """Parse the statistics per search step, or return None if there are none; raise BncliError if some are missing."""
    missing = [key for key in _TRACE_KEYS if key not in fields]
    if len(missing) == len(_TRACE_KEYS) and _BOOTSTRAP not in fields:
        return None
    if missing:
        node.fail(f"the key '{missing[0]}' is missing", hint=f"give all of {', '.join(_TRACE_KEYS)}, or none of them")
    df, log_likelihood, log_posterior, map_step = (fields[key] for key in _TRACE_KEYS)
    return SearchTrace(
        tuple(item.integer(0) for item in df.items()),
        tuple(item.number() for item in log_likelihood.items()),
        tuple(-math.inf if item.value is None else item.number() for item in log_posterior.items()),
        map_step.integer(),
        tuple(item.number() for item in fields[_BOOTSTRAP].items()) if _BOOTSTRAP in fields else (),
    )
