"""The arrays of a model file are NumPy's own format."""

import io

import numpy as np
import pytest

from bncli.files.artifacts.archive import npy_array, npy_bytes, npy_header

SHAPES = [(), (0,), (1,), (7,), (2, 3), (10**6, 0), (1, 2, 3, 4)]


@pytest.mark.parametrize("shape", SHAPES)
def test_numpy_reads_what_is_written(shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape, dtype=int), dtype=float).reshape(shape)
    again = np.load(io.BytesIO(npy_bytes(array)), allow_pickle=False)
    assert again.dtype == np.dtype("<f8")
    np.testing.assert_array_equal(again, array)
    ours = npy_array(npy_bytes(array), shape)
    assert ours is not None
    np.testing.assert_array_equal(ours, array)


@pytest.mark.parametrize("shape", [*SHAPES, (10**18, 10**18)])
def test_the_numbers_start_at_a_multiple_of_64_bytes(shape: tuple[int, ...]) -> None:
    assert len(npy_header(shape)) % 64 == 0


def test_another_shape_is_refused() -> None:
    assert npy_array(npy_bytes(np.zeros((2, 3))), (3, 2)) is None


def test_layout_and_byte_order_do_not_matter() -> None:
    array = np.arange(6.0).reshape(2, 3)
    for other in (np.asfortranarray(array), array.astype(">f8"), np.stack([array, array])[0], array[:, ::-1][:, ::-1]):
        assert npy_bytes(other) == npy_bytes(array)
