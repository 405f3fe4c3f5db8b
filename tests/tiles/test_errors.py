"""Mistakes in kernels with tiles: an error when it is compiled, with the function, the shapes or the types."""

import numpy as np
import pytest
import warp as wp

pytestmark = pytest.mark.cpu_only("is about errors of the compiler")

CASES = {}


@wp.struct
class Body:
    mass: float


@wp.func
def pair(x: float):
    return x, x


@wp.func
def add(x: float, y: float):
    return x + y


@wp.func
def total(t: wp.tile[float, 4]):
    return wp.tile_sum(t)


def case(kinds, message):
    """An error of one of these kinds whose text has a match of `message`."""

    def register(function):
        CASES[function.__name__.replace("_", " ")] = (function, kinds, message)
        return function

    return register


VALUE, TYPE, OVERLOAD = ValueError, TypeError, (wp.WarpCodegenError, ValueError, TypeError)


@case(VALUE, "compile.time constant")
def a_shape_of_an_argument(a: wp.array[float], n: int):
    wp.tile_store(a, wp.tile_zeros(shape=n, dtype=float))


@case(VALUE, "compile.time constant")
def a_shape_of_lanes(a: wp.array[float], n: int):
    wp.tile_store(a, wp.tile_zeros(shape=wp.block_dim(), dtype=float))


@case(VALUE, "compile.time constant")
def a_shape_of_an_array(a: wp.array[float], n: int):
    wp.tile_store(a, wp.tile_zeros(shape=a.shape[0], dtype=float))


@case(VALUE, "storage.*global")
def another_storage(a: wp.array[float], n: int):
    wp.tile_store(a, wp.tile_zeros(shape=4, dtype=float, storage="global"))


@case(TYPE, "tile_ones")
def ones_of_structs(a: wp.array[float], n: int):
    t = wp.tile_ones(shape=4, dtype=Body)


@case(TYPE, "tile_full.*vec3")
def a_vector_as_a_scalar(a: wp.array[float], n: int):
    wp.tile_store(a, wp.tile_full(shape=4, value=wp.vec3(1.0, 1.0, 1.0), dtype=float))


@case(VALUE, "tile_arange")
def an_empty_range(a: wp.array[float], n: int):
    wp.tile_store(a, wp.tile_arange(5, 2))


@case(VALUE, "tile_arange.*step")
def a_range_with_a_step_of_zero(a: wp.array[float], n: int):
    wp.tile_store(a, wp.tile_arange(0, 5, 0))


@case(VALUE, "tile_arange.*int32")
def a_range_of_fractions_of_integers(a: wp.array[float], n: int):
    t = wp.tile_arange(0.0, 2.0, 0.5, dtype=int)


@case(TYPE, "start")
def a_range_by_keyword(a: wp.array[float], n: int):
    wp.tile_store(a, wp.tile_arange(start=0, stop=5))


@case(VALUE, "untile.*5")
def untile_of_another_extent(a: wp.array[float], n: int):
    a[0] = wp.untile(wp.tile_zeros(shape=5, dtype=float))


@case(VALUE, "tile_load.*2.*1")
def a_load_of_another_rank(a: wp.array[float], n: int):
    t = wp.tile_load(a, shape=(2, 2))


@case(OVERLOAD, "tile_load")
def an_offset_of_another_rank(a: wp.array[float], n: int):
    t = wp.tile_load(a, shape=2, offset=(1, 1))


@case(TYPE, "tile_store.*float32.*int32")
def a_store_of_another_type(a: wp.array[float], n: int):
    wp.tile_store(a, wp.tile_zeros(shape=4, dtype=int))


@case(VALUE, "tile_store.*1.*2")
def a_store_of_another_rank(a: wp.array[float], n: int):
    wp.tile_store(a, wp.tile_zeros(shape=(2, 2), dtype=float))


@case(VALUE, "indices")
def too_few_indices(a: wp.array[float], n: int):
    t = wp.tile_load_indexed(a, wp.tile_arange(3, dtype=int), shape=(4,))


@case(IndexError, "index 4.*4 elements")
def an_element_past_the_end(a: wp.array[float], n: int):
    t = wp.tile_zeros(shape=4, dtype=float)
    a[0] = t[4]


@case(IndexError, "-5")
def an_element_before_the_start(a: wp.array[float], n: int):
    t = wp.tile_zeros(shape=4, dtype=float)
    a[0] = t[-5]


@case(IndexError, "known at compile time")
def a_slice_with_a_computed_bound(a: wp.array[float], n: int):
    t = wp.tile_zeros(shape=4, dtype=float)
    wp.tile_store(a, t[n:4])


@case(VALUE, "empty")
def an_empty_slice(a: wp.array[float], n: int):
    t = wp.tile_zeros(shape=4, dtype=float)
    wp.tile_store(a, t[3:3])


@case(VALUE, "tile_view")
def a_view_that_ends_outside(a: wp.array[float], n: int):
    t = wp.tile_zeros(shape=4, dtype=float)
    wp.tile_store(a, wp.tile_view(t, offset=(2,), shape=(4,)))


@case(VALUE, "tile_assign.*5.*4")
def an_assignment_that_does_not_fit(a: wp.array[float], n: int):
    t = wp.tile_zeros(shape=4, dtype=float)
    wp.tile_assign(t, wp.tile_zeros(shape=5, dtype=float))


@case(OVERLOAD, r"4.*5")
def a_slice_of_another_shape(a: wp.array[float], n: int):
    t = wp.tile_zeros(shape=(4, 4), dtype=float)
    t[0] = wp.tile_zeros(shape=5, dtype=float)


@case(OVERLOAD, "tile_transpose")
def a_transpose_of_a_line(a: wp.array[float], n: int):
    wp.tile_store(a, wp.tile_transpose(wp.tile_zeros(shape=4, dtype=float)))


@case(VALUE, "tile_reshape.*contiguous")
def another_shape_of_a_strided_view(a: wp.array[float], n: int):
    t = wp.tile_zeros(shape=(4, 4), dtype=float)
    wp.tile_store(a, wp.tile_reshape(t[:, ::2], (8,)))


@case(VALUE, "tile_reshape.*contiguous")
def another_shape_of_a_transpose(a: wp.array[float], n: int):
    t = wp.tile_zeros(shape=(4, 4), dtype=float)
    wp.tile_store(a, wp.tile_reshape(wp.tile_transpose(t), (16,)))


@case(VALUE, "15.*16|16.*15")
def a_shape_of_another_size(a: wp.array[float], n: int):
    t = wp.tile_reshape(wp.tile_zeros(shape=(4, 4), dtype=float), (5, 3))


@case(VALUE, "tile_broadcast.*3.*4")
def a_broadcast_that_does_not_fit(a: wp.array[float], n: int):
    wp.tile_store(a, wp.tile_broadcast(wp.tile_zeros(shape=3, dtype=float), (4,)))


@case(VALUE, "3")
def a_squeeze_of_a_longer_axis(a: wp.array[float], n: int):
    t = wp.tile_squeeze(wp.tile_zeros(shape=(3, 1), dtype=float), axis=(0,))


@case(VALUE, "3.*4")
def a_sum_of_other_shapes(a: wp.array[float], n: int):
    wp.tile_store(a, wp.tile_zeros(shape=3, dtype=float) + wp.tile_zeros(shape=4, dtype=float))


@case(TYPE, "float32.*int32")
def a_sum_of_other_types(a: wp.array[float], n: int):
    wp.tile_store(a, wp.tile_zeros(shape=3, dtype=float) + wp.tile_zeros(shape=3, dtype=int))


@case(TYPE, "vec3")
def a_product_of_vectors(a: wp.array[float], n: int):
    t = wp.tile_zeros(shape=3, dtype=wp.vec3) * wp.tile_zeros(shape=3, dtype=wp.vec3)


@case(OVERLOAD, "tile_matmul")
def the_operator_of_matrices(a: wp.array[float], n: int):
    t = wp.tile_zeros(shape=(3, 3), dtype=float) @ wp.tile_zeros(shape=(3, 3), dtype=float)


@case(OVERLOAD, "tile")
def a_comparison(a: wp.array[float], n: int):
    t = wp.tile_zeros(shape=3, dtype=float) < wp.tile_zeros(shape=3, dtype=float)


@case(OVERLOAD, "tile")
def an_equality(a: wp.array[float], n: int):
    t = wp.tile_zeros(shape=3, dtype=float) == wp.tile_zeros(shape=3, dtype=float)


@case(OVERLOAD, "tile")
def a_condition(a: wp.array[float], n: int):
    t = wp.tile_zeros(shape=3, dtype=float)
    if t:
        a[0] = 1.0


@case(OVERLOAD, "sin")
def a_function_of_scalars(a: wp.array[float], n: int):
    t = wp.sin(wp.tile_zeros(shape=3, dtype=float))


@case(TYPE, "pair")
def a_map_with_two_results(a: wp.array[float], n: int):
    t = wp.tile_map(pair, wp.tile_zeros(shape=3, dtype=float))


@case(VALUE, "tile_map.*3.*4")
def a_map_of_other_shapes(a: wp.array[float], n: int):
    t = wp.tile_map(add, wp.tile_zeros(shape=3, dtype=float), wp.tile_zeros(shape=4, dtype=float))


@case(VALUE, "tile_sum.*-1")
def a_negative_axis(a: wp.array[float], n: int):
    t = wp.tile_sum(wp.tile_zeros(shape=(3, 3), dtype=float), axis=-1)


@case(VALUE, "tile_sum.*2")
def an_axis_past_the_last(a: wp.array[float], n: int):
    t = wp.tile_sum(wp.tile_zeros(shape=(3, 3), dtype=float), axis=2)


@case(VALUE, "tile_sort.*3.*4")
def a_sort_of_other_shapes(a: wp.array[float], n: int):
    wp.tile_sort(wp.tile_zeros(shape=3, dtype=float), wp.tile_zeros(shape=4, dtype=float))


@case(TYPE, "tile_sort.*float64")
def a_sort_by_doubles(a: wp.array[float], n: int):
    wp.tile_sort(wp.tile_zeros(shape=3, dtype=wp.float64), wp.tile_zeros(shape=3, dtype=float))


@case(VALUE, "tile_matmul")
def a_product_of_matrices_that_do_not_fit(a: wp.array[float], n: int):
    t = wp.tile_matmul(wp.tile_zeros(shape=(3, 4), dtype=float), wp.tile_zeros(shape=(3, 4), dtype=float))


@case(VALUE, "tile_matmul")
def a_result_of_another_shape(a: wp.array[float], n: int):
    left, right = wp.tile_zeros(shape=(3, 4), dtype=float), wp.tile_zeros(shape=(4, 3), dtype=float)
    wp.tile_matmul(left, right, wp.tile_zeros(shape=(4, 4), dtype=float))


@case(OVERLOAD, "tile_matmul.*int32")
def a_product_of_integers(a: wp.array[float], n: int):
    t = wp.tile_matmul(wp.tile_zeros(shape=(3, 3), dtype=int), wp.tile_zeros(shape=(3, 3), dtype=int))


@case(OVERLOAD, "tile_matmul")
def a_product_with_a_line(a: wp.array[float], n: int):
    t = wp.tile_matmul(wp.tile_zeros(shape=(3, 3), dtype=float), wp.tile_zeros(shape=3, dtype=float))


@case(VALUE, "precision.*fast")
def another_precision(a: wp.array[float], n: int):
    t = wp.tile_zeros(shape=(3, 3), dtype=float)
    u = wp.tile_matmul(t, t, precision="fast")


@case(VALUE, "tile_cholesky.*square")
def a_factor_of_a_rectangle(a: wp.array[float], n: int):
    t = wp.tile_cholesky(wp.tile_zeros(shape=(3, 4), dtype=float))


@case(TYPE, "tile_cholesky")
def a_factor_of_halves(a: wp.array[float], n: int):
    t = wp.tile_cholesky(wp.tile_zeros(shape=(3, 3), dtype=wp.float16))


@case(VALUE, "fill_mode")
def another_triangle(a: wp.array[float], n: int):
    t = wp.tile_cholesky(wp.tile_zeros(shape=(3, 3), dtype=float), fill_mode="both")


@case(VALUE, "tile_cholesky_solve.*4.*3|tile_cholesky_solve.*3.*4")
def a_solve_of_another_size(a: wp.array[float], n: int):
    t = wp.tile_cholesky_solve(wp.tile_zeros(shape=(3, 3), dtype=float), wp.tile_zeros(shape=4, dtype=float))


@case(VALUE, "tile_diag_add.*4.*3|tile_diag_add.*3.*4")
def a_diagonal_of_another_size(a: wp.array[float], n: int):
    t = wp.tile_diag_add(wp.tile_zeros(shape=(3, 3), dtype=float), wp.tile_zeros(shape=4, dtype=float))


@case(VALUE, "tile_fft")
def a_transform_of_a_line(a: wp.array[float], n: int):
    t = wp.tile_zeros(shape=8, dtype=wp.vec2f)
    wp.tile_fft(t)


@case(TYPE, "tile_fft.*float32")
def a_transform_of_scalars(a: wp.array[float], n: int):
    t = wp.tile_zeros(shape=(2, 8), dtype=float)
    wp.tile_fft(t)


@case(OVERLOAD, "total.*int32")
def a_parameter_of_another_type(a: wp.array[float], n: int):
    t = total(wp.tile_zeros(shape=4, dtype=int))


@case(OVERLOAD, "total")
def a_parameter_of_another_extent(a: wp.array[float], n: int):
    t = total(wp.tile_zeros(shape=5, dtype=float))


@case(OVERLOAD, "4.*5|5.*4")
def another_shape_after_a_branch(a: wp.array[float], n: int):
    t = wp.tile_zeros(shape=4, dtype=float)
    if n > 0:
        t = wp.tile_zeros(shape=5, dtype=float)
    wp.tile_store(a, t)


@case(VALUE, "tile_stack.*constant")
def a_computed_capacity(a: wp.array[float], n: int):
    s = wp.tile_stack(capacity=n, dtype=int)


@case(OVERLOAD, "tile_load_indexed.*float32")
def indices_of_floats(a: wp.array[float], n: int):
    t = wp.tile_load_indexed(a, wp.tile_arange(4, dtype=float), shape=(4,))


@pytest.mark.parametrize("name", CASES)
def test_an_error_names_what_does_not_fit(name):
    function, kinds, message = CASES[name]
    a = wp.array(np.zeros(16, np.int32 if "integers of" in name else np.float32))
    kernel = wp.kernel(function)
    with pytest.raises(kinds, match=f"(?s){message}"):
        wp.launch_tiled(kernel, dim=[1], inputs=[a, 3], block_dim=1)
    with pytest.raises(kinds, match=f"(?s){message}"):  # again: it is compiled no better the second time
        wp.launch_tiled(kernel, dim=[1], inputs=[a, 3], block_dim=1)
