"""API-1.19, section 9: utilities."""

import warp as wp
from probing import floats, ints, still_open


@still_open("section 9")
def pairs_sorted_by_some_bits():
    keys, values = ints(0x13, 0x21, 0x12, 0x03, 0, 0, 0, 0), ints(0, 1, 2, 3, 0, 0, 0, 0)
    wp.utils.radix_sort_pairs(keys, values, 4, begin_bit=0, end_bit=4)
    return keys.numpy()[:4], values.numpy()[:4]


def pairs_sorted_by_floats():
    keys, values = floats(3.0, -1.0, 2.0, 0.0, 0.0, 0.0), ints(0, 1, 2, 0, 0, 0)
    wp.utils.radix_sort_pairs(keys, values, 3)
    return keys.numpy()[:3], values.numpy()[:3]


@still_open("section 9")
def sum_is_a_number_of_the_type():
    return wp.utils.array_sum(floats(1.0, 2.0, 3.0)), wp.utils.array_sum(wp.array([1.0, 2.0], dtype=wp.float64))


@still_open("section 9")
def sum_of_vectors():
    return wp.utils.array_sum(wp.array([(1.0, 2.0, 3.0), (1.0, 1.0, 1.0)], dtype=wp.vec3))


def sum_along_an_axis():
    return wp.utils.array_sum(wp.array([[1.0, 2.0], [3.0, 4.0]], dtype=float), axis=-1)


@still_open("section 9")
def sum_along_an_axis_that_is_not_there():
    return wp.utils.array_sum(wp.array([[1.0, 2.0], [3.0, 4.0]], dtype=float), axis=2)


@still_open("section 9")
def inner_product():
    return wp.utils.array_inner(floats(1.0, 2.0), floats(3.0, 4.0))


def cast_of_an_array():
    out = wp.zeros(2, dtype=int)
    wp.utils.array_cast(floats(1.5, 2.5), out)
    return out


@still_open("section 9")
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


@still_open("section 9")
def map_with_several_results():
    @wp.func
    def f(x: float):
        return x + 1.0, 2.0 * x

    results = wp.map(f, floats(1.0, 2.0))
    return type(results), results


@still_open("section 9")
def map_without_arrays():
    return wp.map(wp.max, 1.0, 2.0)


@still_open("section 9")
def map_into_a_wrong_shape():
    return wp.map(wp.max, floats(1.0, 5.0), 3.0, out=floats(0.0, 0.0, 0.0))


def map_returns_its_kernel():
    return type(wp.map(wp.max, floats(1.0, 5.0), 3.0, return_kernel=True))


@still_open("section 9")
def colours_of_a_path():
    edges = wp.array([[0, 1], [1, 2], [2, 3]], dtype=int)
    colors = wp.zeros(4, dtype=int)
    count = wp.utils.graph_coloring_assign(edges, colors, wp.utils.GraphColoringAlgorithm.GREEDY)
    c = colors.numpy()
    return count, c[0] != c[1], c[1] != c[2], c[2] != c[3]


@still_open("section 9")
def groups_of_colours():
    return [group.numpy().tolist() for group in wp.utils.graph_coloring_get_groups(ints(0, 1, 0, 1), 2, device="cpu")]


def timer():
    with wp.ScopedTimer("name", print=False) as timer:
        pass
    return timer.elapsed >= 0.0, wp.ScopedTimer.enabled


@still_open("section 9")
def diagnostics_are_a_dict():
    return type(wp.print_diagnostics())
