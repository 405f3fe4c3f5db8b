"""Arrays from data of any shape."""

import numpy as np
import pytest
import warp as wp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

pytestmark = pytest.mark.protected


@given(st.lists(st.integers(1, 3), max_size=4), st.sampled_from([wp.vec2, wp.vec3d, wp.mat22, wp.quat, wp.transform]))
def test_data_of_any_shape_fit_where_numpy_can_split_them(shape, dtype):
    """Against a rule in words: inner dimensions last; or a last one that is a multiple; ones at the end are dropped."""
    numbers = np.arange(np.prod(shape), dtype=np.float64).reshape(shape)
    inner, components = dtype._shape_, int(np.prod(dtype._shape_))

    def outer_of(rest):
        if rest[len(rest) - len(inner) :] == inner:
            return rest[: len(rest) - len(inner)]
        if rest and rest[-1] % components == 0:
            return rest[:-1] + ((rest[-1] // components,) if rest[-1] > components or len(rest) == 1 else ())
        return outer_of(rest[:-1]) if len(rest) > 1 and rest[-1] == 1 else None

    outer = outer_of(tuple(shape))
    if outer is None:
        with pytest.raises(RuntimeError, match="does not fit elements"):
            wp.array(numbers, dtype=dtype)
    else:
        a = wp.array(numbers, dtype=dtype)
        assert a.shape == (outer or (1,))
        assert np.array_equal(a.numpy().ravel(), numbers.ravel())


@pytest.mark.seed("S-ARR-017")
@given(
    hnp.arrays(st.sampled_from([np.float32, np.int16, np.bool_]), hnp.array_shapes(min_dims=1, max_dims=4, max_side=4))
)
def test_from_numpy_makes_rows_vectors_and_matrices(numbers):
    a = wp.from_numpy(numbers)
    assert a.dtype is {
        1: lambda s: s,
        2: lambda s: wp.types.vector(numbers.shape[1], s),
        3: lambda s: wp.types.matrix(numbers.shape[1:], s),
        4: lambda s: s,
    }[numbers.ndim](wp.dtype_from_numpy(numbers.dtype))
    assert a.shape == (numbers.shape if numbers.ndim == 4 else numbers.shape[:1])
    assert a.numpy().tobytes() == numbers.tobytes()
    scalars = wp.from_numpy(numbers, dtype=wp.float64)
    assert scalars.shape == numbers.shape and np.array_equal(scalars.numpy(), numbers, equal_nan=True)
