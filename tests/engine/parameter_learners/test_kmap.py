"""The best step alone: the model that the definition makes of its regions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from bncli.engine.counting.counts import Counts
from bncli.engine.parameter_learners import kbma, kmap
from bncli.engine.prediction.scoring import compile_scorer, log_probabilities
from bncli.engine.structures.structure import Dag, Regions, SearchTrace
from bncli.errors import BncliError
from tests import path_oracle
from tests.datasets import random_dataset
from tests.kikuchi_oracle import Slow
from tests.paths import Case, learnt_paths, model_of, path_of


@given(learnt_paths(kmap))
@settings(max_examples=40)
def test_it_is_the_model_of_its_regions(case: Case) -> None:
    data, regions, learnt, theta = case
    present = regions.regions[: len(path_of(learnt).steps) - 1]
    assert [step.weight for step in path_of(learnt).steps] == [*[0.0] * len(present), 1.0]
    expected = Slow(data, theta).step(present)
    assert learnt.n_parameters == expected.df
    assert learnt.cll == pytest.approx(expected.log_likelihood, rel=1e-9, abs=1e-9)
    scorer = compile_scorer(model_of(data, regions, learnt))
    log_p = log_probabilities(scorer, [data.codes[i][:1] for i in scorer.used], 1)[:, 0]
    row = {i: int(codes[0]) for i, codes in enumerate(data.codes)}
    np.testing.assert_allclose(np.exp(log_p), path_oracle.probabilities(data, present, row, theta), rtol=1e-9)


@given(learnt_paths(kmap))
@settings(max_examples=40)
def test_no_other_step_has_a_higher_posterior(case: Case) -> None:
    data, regions, learnt, theta = case
    whole = kbma.learn(Counts(data), regions, theta=theta)
    assert len(path_of(learnt).steps) - 1 == path_of(whole).best
    for one, other in zip(path_of(learnt).steps, path_of(whole).steps, strict=False):
        assert one._replace(weight=0.0) == other._replace(weight=0.0)


def test_the_rows_at_hand_decide_not_the_file() -> None:
    data = random_dataset(400, (2, 2), 2)
    regions = ((0,), (1,), (0, 1))
    told = SearchTrace((1, 2, 3, 4), (-9.0,) * 4, (-9.0, -9.0, -9.0, -9.0), 0)
    one, other = (kmap.learn(Counts(data), Regions(regions, trace), theta=1.0) for trace in (None, told))
    assert path_of(one).steps == path_of(other).steps
    assert len(path_of(one).steps) > 1


def test_a_network_is_refused() -> None:
    with pytest.raises(BncliError, match="use --structure kikuchi"):
        kmap.learn(Counts(random_dataset(9, (2,), 2)), Dag(((),), (0,)), theta=1.0)
