"""API-1.19, section 9: utilities."""

import numpy as np
import warp as wp
from probing import floats, ints


def pairs_sorted_by_some_bits():
    keys, values = ints(0x13, 0x21, 0x12, 0x03, 0, 0, 0, 0), ints(0, 1, 2, 3, 0, 0, 0, 0)
    wp.utils.radix_sort_pairs(keys, values, 4, begin_bit=0, end_bit=4)
    return keys.numpy()[:4], values.numpy()[:4]


def pairs_sorted_by_floats():
    keys, values = floats(3.0, -1.0, 2.0, 0.0, 0.0, 0.0), ints(0, 1, 2, 0, 0, 0)
    wp.utils.radix_sort_pairs(keys, values, 3)
    return keys.numpy()[:3], values.numpy()[:3]


def sum_is_a_number_of_the_type():
    return wp.utils.array_sum(floats(1.0, 2.0, 3.0)), wp.utils.array_sum(wp.array([1.0, 2.0], dtype=wp.float64))


def sum_of_vectors():
    return wp.utils.array_sum(wp.array([(1.0, 2.0, 3.0), (1.0, 1.0, 1.0)], dtype=wp.vec3))


def sum_along_an_axis():
    return wp.utils.array_sum(wp.array([[1.0, 2.0], [3.0, 4.0]], dtype=float), axis=-1)


def sum_along_an_axis_that_is_not_there():
    return wp.utils.array_sum(wp.array([[1.0, 2.0], [3.0, 4.0]], dtype=float), axis=2)


def inner_product():
    return wp.utils.array_inner(floats(1.0, 2.0), floats(3.0, 4.0))


def cast_of_an_array():
    out = wp.zeros(2, dtype=int)
    wp.utils.array_cast(floats(1.5, 2.5), out)
    return out


def cast_to_another_size():
    wp.utils.array_cast(floats(1.5, 2.5), wp.zeros(3, dtype=int))


def scans():
    a, out = ints(1, 2, 3), ints(0, 0, 0)
    wp.utils.array_scan(a, out, inclusive=True)
    inclusive = out.numpy().tolist()
    wp.utils.array_scan(a, out, inclusive=False)
    return inclusive, out.numpy().tolist()


def scan_to_another_size():
    wp.utils.array_scan(ints(1, 2, 3), ints(0, 0), inclusive=True)


def run_lengths():
    values, lengths = ints(0, 0, 0, 0), ints(0, 0, 0, 0)
    n = wp.utils.runlength_encode(ints(1, 1, 2, 2), values, lengths)
    return n, values.numpy()[:n], lengths.numpy()[:n]


def mapped_function():
    @wp.func
    def f(x: float, y: float):
        return x + 2.0 * y

    return wp.map(f, floats(1.0, 2.0), floats(3.0, 4.0))


def mapped_builtin_with_a_number():
    return wp.map(wp.max, floats(1.0, 5.0), 3.0)


def map_with_several_results():
    @wp.func
    def f(x: float):
        return x + 1.0, 2.0 * x

    results = wp.map(f, floats(1.0, 2.0))
    return type(results), results


def map_without_arrays():
    return wp.map(wp.max, 1.0, 2.0)


def map_into_a_wrong_shape():
    return wp.map(wp.max, floats(1.0, 5.0), 3.0, out=floats(0.0, 0.0, 0.0))


def map_returns_its_kernel():
    return type(wp.map(wp.max, floats(1.0, 5.0), 3.0, return_kernel=True))


def colours_of_a_path():
    edges = wp.array([[0, 1], [1, 2], [2, 3]], dtype=int)
    colors = wp.zeros(4, dtype=int)
    count = wp.utils.graph_coloring_assign(edges, colors, wp.utils.GraphColoringAlgorithm.GREEDY)
    c = colors.numpy()
    return count, c[0] != c[1], c[1] != c[2], c[2] != c[3]


def groups_of_colours():
    return [group.numpy().tolist() for group in wp.utils.graph_coloring_get_groups(ints(0, 1, 0, 1), 2, device="cpu")]


def timer():
    with wp.ScopedTimer("name", print=False) as timer:
        pass
    return timer.elapsed >= 0.0, wp.ScopedTimer.enabled


def diagnostics_are_a_dict():
    return type(wp.print_diagnostics())


def _sorted_pairs(dtype, **bits):
    keys, values = wp.array([3, 1, 2, 0, 0, 0], dtype=dtype), ints(0, 1, 2, 0, 0, 0)
    wp.utils.radix_sort_pairs(keys, values, 3, **bits)
    return keys.numpy()[:3].tolist(), values.numpy()[:3].tolist()


def pairs_of_every_type():
    return [_sorted_pairs(dtype) for dtype in (wp.int32, wp.uint32, wp.float32, wp.int64, wp.uint64)]


def pairs_sorted_by_no_bits():
    return _sorted_pairs(wp.int32, begin_bit=4, end_bit=4)


def pairs_sorted_from_a_bit_on():
    return _sorted_pairs(wp.int32, begin_bit=1)


def signed_pairs_sorted_by_the_sign():
    keys, values = ints(5, -1, 3, 0, 0, 0), ints(0, 1, 2, 0, 0, 0)
    wp.utils.radix_sort_pairs(keys, values, 3, begin_bit=31)
    return keys.numpy()[:3].tolist(), values.numpy()[:3].tolist()


def floats_sorted_by_upper_bits():
    keys, values = floats(1.5, -2.0, 0.5, -3.0, 0.0, 0.0, 0.0, 0.0), ints(0, 1, 2, 3, 0, 0, 0, 0)
    wp.utils.radix_sort_pairs(keys, values, 4, begin_bit=16, end_bit=32)
    return keys.numpy()[:4].tolist(), values.numpy()[:4].tolist()


def bits_below_zero():
    return _sorted_pairs(wp.int32, begin_bit=-1)


def bits_above_the_key():
    return _sorted_pairs(wp.int32, end_bit=40)


def bits_the_wrong_way_round():
    return _sorted_pairs(wp.int32, begin_bit=5, end_bit=4)


def _matrix():
    return wp.array(np.arange(12).reshape(3, 4), dtype=float)


def sum_of_the_first_elements():
    return wp.utils.array_sum(_matrix(), value_count=2)


def sum_of_the_first_along_an_axis():
    return wp.utils.array_sum(_matrix(), value_count=2, axis=1), wp.utils.array_sum(_matrix(), value_count=2, axis=0)


def inner_product_of_the_first_along_an_axis():
    return wp.utils.array_inner(_matrix(), _matrix(), count=2, axis=1)


def sum_into_an_array():
    out = floats(0.0)
    wp.utils.array_sum(_matrix(), out=out)
    return out


def sum_of_matrices():
    return wp.utils.array_sum(wp.ones(2, dtype=wp.mat22))


def sum_of_nothing():
    return wp.utils.array_sum(wp.zeros(0, dtype=float))


def inner_product_of_vectors():
    return wp.utils.array_inner(wp.ones(3, dtype=wp.vec3), wp.ones(3, dtype=wp.vec3))


def inner_product_of_other_types():
    wp.utils.array_inner(wp.ones(3, dtype=wp.vec3), wp.ones(3, dtype=float))


def inner_product_of_other_sizes():
    wp.utils.array_inner(floats(1.0, 2.0), floats(1.0))


def cast_of_the_first_elements():
    out = wp.zeros(3, dtype=int)
    wp.utils.array_cast(floats(1.5, 2.5, 3.5), out, 2)
    return out


def cast_to_a_smaller_array():
    wp.utils.array_cast(floats(1.5, 2.5, 3.5), wp.zeros(2, dtype=int))


def cast_of_vectors():
    out = wp.zeros(2, dtype=wp.vec3d)
    wp.utils.array_cast(wp.ones(2, dtype=wp.vec3), out)
    return out.numpy().tolist()


def scan_of_other_types():
    wp.utils.array_scan(floats(1.0, 2.0), ints(0, 0))


def scan_of_wide_numbers():
    out = wp.zeros(3, dtype=wp.int64)
    wp.utils.array_scan(wp.array([1, 2, 3], dtype=wp.int64), out)
    return out


def runs_without_room():
    wp.utils.runlength_encode(ints(1, 1, 2), ints(0), ints(0))


def runs_with_a_count():
    count = ints(0)
    result = wp.utils.runlength_encode(ints(1, 1, 2), ints(0, 0, 0), ints(0, 0, 0), run_count=count)
    return result is count, count


def runs_of_the_first_elements():
    return wp.utils.runlength_encode(ints(1, 1, 2), ints(0, 0, 0), ints(0, 0, 0), value_count=2)


def pairs_sorted_in_segments():
    keys, values = ints(2, 1, 4, 3, 0, 0, 0, 0), ints(0, 1, 2, 3, 0, 0, 0, 0)
    wp.utils.segmented_sort_pairs(keys, values, 4, ints(0, 2, 4))
    return keys.numpy()[:4], values.numpy()[:4]


def map_with_broadcast():
    return wp.map(wp.add, wp.zeros((2, 1), dtype=float), wp.ones((1, 3), dtype=float))


def map_of_shapes_that_do_not_fit():
    wp.map(wp.add, floats(1.0, 2.0), floats(1.0, 2.0, 3.0))


def map_into_another_type():
    wp.map(wp.sin, floats(1.0, 2.0), out=ints(0, 0))


def map_into_too_few_arrays():
    @wp.func
    def f(x: float):
        return x, x

    wp.map(f, floats(1.0, 2.0), out=floats(0.0, 0.0))


def map_into_an_indexed_array():
    target = floats(0.0, 0.0, 0.0)
    wp.map(wp.add, floats(1.0, 2.0), 1.0, out=wp.indexedarray(target, [ints(2, 0)]))
    return target


def map_of_an_indexed_array():
    return wp.map(wp.sin, wp.indexedarray(floats(1.0, 2.0, 3.0), [ints(2, 0)]))


def map_of_a_number():
    wp.map(3, floats(1.0))


def map_of_vectors():
    return wp.map(wp.length, wp.ones(2, dtype=wp.vec3))


def map_with_block_dim():
    return wp.map(wp.abs, floats(-1.0), block_dim=None, device="cpu")


def _are_colored(algorithm):
    edges = np.array([[0, 1], [1, 2], [2, 0], [2, 3], [3, 4]], dtype=np.int32)
    colors = wp.zeros(5, dtype=int)
    count = wp.utils.graph_coloring_assign(wp.array(edges, dtype=int), colors, algorithm)
    c = colors.numpy()
    return count, bool((c[edges[:, 0]] != c[edges[:, 1]]).all()), int(c.max()) + 1 == count


def colours_of_a_graph():
    return [_are_colored(algorithm) for algorithm in wp.utils.GraphColoringAlgorithm]


def members_of_the_colouring_algorithms():
    return [(algorithm.name, int(algorithm)) for algorithm in wp.utils.GraphColoringAlgorithm]


def colours_without_edges():
    return wp.utils.graph_coloring_assign(wp.zeros((0, 2), dtype=int), wp.zeros(4, dtype=int))


def edges_of_a_wrong_shape():
    wp.utils.graph_coloring_assign(wp.zeros(4, dtype=int), wp.zeros(4, dtype=int))


def edges_of_a_wrong_type():
    wp.utils.graph_coloring_assign(wp.zeros((2, 2), dtype=float), wp.zeros(4, dtype=int))


def edges_to_nodes_that_are_not_there():
    wp.utils.graph_coloring_assign(wp.array([[0, 9]], dtype=int), wp.zeros(4, dtype=int))


def balanced_colours():
    edges = wp.array([[0, 1]], dtype=int)
    colors = ints(0, 1, 0, 0, 0, 0)
    ratio = wp.utils.graph_coloring_balance(edges, colors, 2, 1.1)
    return ratio <= 2.0, colors.numpy()[0] != colors.numpy()[1]


def groups_as_numpy():
    groups = wp.utils.graph_coloring_get_groups(ints(0, 1, 0, 1), 2, return_wp_array=False)
    return type(groups), [group.tolist() for group in groups]


def timer_that_is_not_active():
    with wp.ScopedTimer("name", active=False) as timer:
        pass
    return timer.elapsed, timer.active


def timers_switched_off():
    wp.ScopedTimer.enabled = False
    try:
        with wp.ScopedTimer("name") as timer:
            pass
        return timer.active, timer.elapsed
    finally:
        wp.ScopedTimer.enabled = True


def timer_with_a_dict():
    times = {}
    with wp.ScopedTimer("name", dict=times, print=False):
        pass
    return list(times), len(times["name"])


def timed_activities():
    wp.timing_begin()
    return wp.timing_end()


def kinds_of_activities():
    return (
        wp.TIMING_KERNEL,
        wp.TIMING_KERNEL_BUILTIN,
        wp.TIMING_MEMCPY,
        wp.TIMING_MEMSET,
        wp.TIMING_GRAPH,
        wp.TIMING_ALL,
    )
