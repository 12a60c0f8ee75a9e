"""Stages hold every change up to the last weight once, in tables of the largest regions."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.parameter_learners.kikuchi_bayes import learn_kbma, learn_kmap
from bncli.engine.prediction.factors import LEAST_WEIGHT, stages_of
from tests.datasets import random_dataset
from tests.paths import Case, learnt_on, learnt_paths, path_of, reweighed


@given(learnt_paths(), st.data())
def test_changes_add_up(case: Case, draw: st.DataObject) -> None:
    path = path_of(case[2])
    shares = draw.draw(
        st.lists(st.sampled_from([0.0, 1e-30, 0.5, 1.0]), min_size=len(path.steps), max_size=len(path.steps))
    )
    path = reweighed(path, shares if any(share > 0.1 for share in shares) else [1.0] * len(shares))
    with_weight = [s for s, step in enumerate(path.steps) if step.weight >= LEAST_WEIGHT]
    stages = stages_of(path)
    assert [stage.weight for stage in stages] == [path.steps[s].weight for s in with_weight]
    found: Counter[int] = Counter()
    for s, stage in zip(with_weight, stages, strict=True):
        found[-1] += stage.class_change
        for host, changes in stage.hosts:
            home = set(path.families[host].attributes)
            assert host in dict(changes)
            for family, change in changes:
                assert change
                assert family < 0 or set(path.families[family].attributes) <= home
                found[family] += change
        expected: Counter[int] = Counter()
        for step in path.steps[: s + 1]:
            expected.update(dict(step.changes))
        assert {f: c for f, c in found.items() if c} == {f: c for f, c in expected.items() if c}


def test_a_single_model_has_one_table_for_each_largest_region() -> None:
    regions = ((0,), (1,), (2,), (0, 1), (1, 2), (3,))
    data = random_dataset(400, (2, 2, 2, 2), 2)
    path = path_of(learnt_on(data, regions, learn_kmap))
    assert path is not None
    [stage] = stages_of(path)
    kept = {step.region for step in path.steps}
    largest = {r for r in kept if r and not any(set(r) < set(other) for other in kept)}
    assert {path.families[host].attributes for host, _ in stage.hosts} == largest
    assert stage.class_change == 0


def test_the_class_alone_has_no_table() -> None:
    path = path_of(learnt_on(random_dataset(9, (2,), 2), (), learn_kbma))
    assert path is not None
    [stage] = stages_of(path)
    assert (stage.class_change, stage.hosts) == (1, ())
