"""Every kind of predictor is served wherever something depends on the kind."""

from __future__ import annotations

from typing import get_args

import pytest

from bncli.engine.model import Ensemble, Path, Predictor
from bncli.engine.prediction.mixtures import mixture_of
from bncli.engine.prediction.scoring import compile_predictor
from bncli.files.artifacts.predictors import CODECS, KEYS
from tests.files.artifacts.test_model import MODEL


@pytest.mark.parametrize("kind", get_args(Predictor))
def test_a_kind_is_compiled_explained_and_stored(kind: type) -> None:
    assert kind in CODECS
    for function in (compile_predictor, mixture_of):
        assert function.dispatch(kind) is not function.dispatch(object)


def test_the_keys_of_old_files_stay() -> None:
    assert KEYS == ("path", "blend")
    assert {kind: codec.key for kind, codec in CODECS.items() if codec.key} == {Path: "path", Ensemble: "blend"}


def test_another_kind_is_an_error_of_the_programmer() -> None:
    for function in (compile_predictor, mixture_of):
        with pytest.raises(TypeError, match="dict"):
            function({}, MODEL.schema)
