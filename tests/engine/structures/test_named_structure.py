"""Regions by name: what is refused, and what becomes of them under a schema."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.data.schema import CategoricalAttribute, NumericAttribute, Schema
from bncli.engine.structures.named_structure import NamedDag, NamedRegions, name_structure
from bncli.engine.structures.structure import Dag, Family, Regions, SearchTrace
from bncli.errors import BncliError


def schema_of(*names: str, constant: tuple[str, ...] = ()) -> Schema:
    levels = {name: ("u",) if name in constant else ("u", "v") for name in names}
    return Schema("y", ("n", "p"), tuple(CategoricalAttribute(a, False, (1.0,) * len(v), v) for a, v in levels.items()))


ABC = schema_of("a", "b", "c")
TRACE = SearchTrace((1, 2, 3, 4), (-9.0, -7.0, -6.0, -5.0), (-10.0, -9.0, -8.5, -8.75), 2)
FOUND = NamedRegions("y", (("b",), ("a",), ("b", "a")), TRACE, "kikuchi", {"theta": 1.0})


def test_names_become_ascending_indices_in_the_order_added() -> None:
    assert FOUND.resolve(ABC) == Regions(((1,), (0,), (0, 1)), TRACE, "kikuchi", {"theta": 1.0})


def test_the_best_step_decides_what_is_chosen() -> None:
    assert FOUND.chosen == (("b",), ("a",))
    assert replace(FOUND, trace=None).chosen == (("b", "a"),)
    assert FOUND.nodes == ("b", "a")


def test_without_statistics_a_region_inside_an_earlier_one_is_dropped() -> None:
    listed = NamedRegions("y", (("c", "a"), ("a",), ("b",), ("a", "c"), ("a", "b")))
    assert listed.resolve(ABC).regions == ((0, 2), (1,), (0, 1))


def test_uninformative_attributes_drop_out_and_the_statistics_with_them() -> None:
    resolved = FOUND.resolve(schema_of("a", "b", constant=("a",)))
    assert resolved == Regions(((1,),), None, "kikuchi", {"theta": 1.0})
    assert FOUND.resolve(schema_of("a", "b", "c", constant=("c",))).trace == TRACE
    assert FOUND.resolve(schema_of("a", "b", constant=("a", "b"))).regions == ()


@given(
    st.lists(st.lists(st.sampled_from("abcd"), min_size=1, unique=True).map(tuple), max_size=6),
    st.sets(st.sampled_from("abcd")),
)
def test_what_comes_out_is_what_regions_are(regions: list[tuple[str, ...]], constant: set[str]) -> None:
    resolved = NamedRegions("y", tuple(regions)).resolve(schema_of(*"abcd", constant=tuple(constant)))
    sets = [set(region) for region in resolved.regions]
    assert all(list(region) == sorted(region) for region in resolved.regions)
    assert not any(later <= earlier for j, later in enumerate(sets) for earlier in sets[:j])
    left = [{"abcd".index(name) for name in region if name not in constant} for region in regions]
    assert all(any(part <= region for region in sets) for part in left if part)
    assert all(region in left for region in sets)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"regions": (("a",), ())}, r"regions\[1\] is empty, f.json; list at least one"),
        ({"regions": (("a", "b", "a"),)}, r"regions\[0\] names 'a' twice"),
        ({"regions": (("a",), ("a", "y"))}, r"regions\[1\] names the class 'y'"),
        ({"regions": (tuple(f"x{i}" for i in range(17)),)}, r"regions\[0\] has 17 attributes, .*at most 16"),
        ({"trace": replace(TRACE, df=(1, 2, 3))}, "df has 3 values for 3 regions, .*one for the class alone"),
        ({"trace": replace(TRACE, log_likelihood=())}, "log_likelihood has 0 values for 3 regions"),
        ({"trace": replace(TRACE, log_posterior=(0.0,) * 5)}, "log_posterior has 5 values for 3 regions"),
        (
            {"trace": replace(TRACE, map_step=4)},
            "map_step is 4, f.json; it must be the number of regions in the best model, from 0 to 3",
        ),
        ({"trace": replace(TRACE, map_step=-1)}, "map_step is -1"),
        ({"regions": (("a",), ("a", "b"), ("b",))}, r"regions\[2\] is inside an earlier region"),
        ({"bins": (None, 1)}, r"bins\[1\] is 1, f.json; .* 2 intervals"),
        ({"bins": (2,) * 17}, r"bins has 17 entries, f.json; give at most 16"),
        ({"gains": (1.0, 2.0)}, r"gains has 2 values for 3 regions, f.json; give one for each"),
        ({"gains": (1.0, 2.0, float("nan"))}, r"gains\[2\] is nan, f.json; give a finite number"),
    ],
)
def test_what_is_no_list_of_regions_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(BncliError, match=message):
        replace(FOUND, where="f.json", **changes)


def test_names_that_the_schema_does_not_have() -> None:
    listed = NamedRegions("y", (("petal",),), where="f.json")
    with pytest.raises(BncliError, match=r"unknown attribute 'petal', f\.json; did you mean 'petals'"):
        listed.resolve(schema_of("petals"))
    with pytest.raises(BncliError, match=r"for the class 'z', not for 'y', f\.json; add --class z"):
        replace(listed, class_name="z").resolve(ABC)


def test_there_and_back_in_schema_order() -> None:
    named = name_structure(FOUND.resolve(ABC), ABC)
    assert named == replace(FOUND, regions=(("b",), ("a",), ("a", "b")))
    assert named.resolve(ABC) == FOUND.resolve(ABC)
    assert name_structure(Dag(((), (), ()), (0,)), ABC) == NamedDag("y", {"a": ("y",)})


def test_bins_become_the_groupings_of_the_schema() -> None:
    numeric = NumericAttribute("n", True, (9.0, 1.0, 1.0, 1.0, 5.0), (0.5, 1.5, 2.5))
    schema = replace(ABC, attributes=(numeric, *ABC.attributes))
    named = NamedRegions("y", (("n",), ("n", "a"), ("a",)), bins=(None, 2))
    resolved = named.resolve(schema)
    assert resolved.groupings == ((None,) * 4, ((0, 1, 1, 1, 2), None, None, None))
    assert resolved.chosen == resolved.regions == ((0,), (0, 1), (1,)), (
        "regions of other bins are no part of each other"
    )
    assert resolved.families(schema.cardinalities)[1] == Family((0, 1), (3, 2), None, groupings=((0, 1, 1, 1, 2), None))
    assert name_structure(resolved, schema) == named
    assert named.chosen == named.regions
    assert replace(named, bins=(2,)).resolve(schema).regions == ((0,), (0, 1))


def test_gains_stay_with_their_regions() -> None:
    named = NamedRegions("y", (("b",), ("a", "b"), ("a",)), gains=(3.0, 2.0, 1.0))
    assert named.resolve(ABC).gains == (3.0, 2.0), "the third is inside the second"
    whole = replace(named, regions=(("b",), ("a",), ("a", "b")))
    assert whole.resolve(ABC).gains == whole.gains
    assert name_structure(whole.resolve(ABC), ABC) == whole
    dull = replace(ABC, attributes=(CategoricalAttribute("a", False, (1.0,), ("only",)), *ABC.attributes[1:]))
    assert whole.resolve(dull).gains == (), "a region that lost an attribute is another one"


def _cut_schema(*, constant: tuple[str, ...] = ()) -> Schema:
    schema = schema_of("a", "b", "c", constant=constant)
    attributes = tuple(
        NumericAttribute(a.name, a.name == "b", (1.0,) * (4 + (a.name == "b")), (1.0, 2.0, 3.5)) if a.name != "c" else a
        for a in schema.attributes
        if a.name not in constant
    )
    others = tuple(a for a in schema.attributes if a.name in constant)
    return replace(schema, attributes=attributes + others)


CUT = NamedRegions(
    "y", (("a",), ("b", "a"), ("c", "b"), ("a", "b")), cuts=((None,), ((2.0,), ()), (None, (1.0, 3.5)), ((), (2.0,)))
)


def test_cuts_become_groupings_and_come_back() -> None:
    resolved = CUT.resolve(_cut_schema())
    assert resolved.regions == ((0,), (0, 1), (1, 2))  # the last is the second once more, and cut alike
    assert resolved.binnings == ((None,), ((0, 0, 0, 0), (0, 0, 1, 1, 2)), ((0, 1, 1, 2, 3), None))
    assert resolved.chosen == resolved.regions  # a single attribute as it is cut is no part of a pair with other cuts
    shapes = [family.shape for family in resolved.families(_cut_schema().cardinalities)]
    assert shapes == [(4,), (1, 3), (4, 2)]
    named = name_structure(resolved, _cut_schema())
    assert isinstance(named, NamedRegions)
    assert named.cuts == ((None,), ((), (2.0,)), ((1.0, 3.5), None))
    assert named.resolve(_cut_schema()) == resolved


def test_all_cuts_are_none_at_all() -> None:
    listed = NamedRegions("y", (("a",),), cuts=(((1.0, 2.0, 3.5),),))
    assert listed.resolve(_cut_schema()).binnings == ((None,),)


def test_cuts_of_what_drops_out() -> None:
    schema = _cut_schema(constant=("a",))
    assert CUT.resolve(schema).regions == ((0,), (0, 1))
    assert CUT.resolve(schema).binnings == (((0, 0, 1, 1, 2),), ((0, 1, 1, 2, 3), None))


@pytest.mark.parametrize(
    ("regions", "cuts", "message"),
    [
        (
            (("a",),),
            (((2.5,),),),
            r"cuts\[0\] cuts 'a' at 2.5, which is not a cut of this attribute in the table, .*cuts file",
        ),
        ((("b",), ("c",)), ((None,), ((1.0,),)), r"cuts\[1\] cuts 'c', which is not a numeric column"),
    ],
)
def test_cuts_that_the_data_do_not_have(regions: Any, cuts: Any, message: str) -> None:
    with pytest.raises(BncliError, match=message):
        NamedRegions("y", regions, cuts=cuts, where="f.json").resolve(_cut_schema())


@pytest.mark.parametrize(
    ("cuts", "message"),
    [
        (((None,),), "cuts must have 2 entries, one per region, but has 1"),
        (((None,), ((2.0, 1.0),)), r"cuts\[1\] of 'b' are not increasing"),
        (((None,), ((math.nan,),)), r"cuts\[1\] of 'b' has a cut that is not a finite number"),
    ],
)
def test_cuts_that_are_none(cuts: Any, message: str) -> None:
    with pytest.raises(BncliError, match=message):
        NamedRegions("y", (("a",), ("b",)), cuts=cuts)
