"""Declaring kernels: decorators, annotations, tid(), names (S-KRN)."""

import numpy as np
import pytest
import warp
import warp as wp


@pytest.mark.seed("S-KRN-001")
def test_kernel_decorator_under_both_module_names():
    @wp.kernel
    def one(x: wp.array[float]):
        x[wp.tid()] = 1.0

    @warp.kernel
    def two(x: wp.array[float]):
        x[wp.tid()] = 2.0

    a = wp.zeros(3)
    wp.launch(one, dim=2, inputs=[a])
    warp.launch(two, dim=1, inputs=[a])
    assert a.numpy().tolist() == [2.0, 1.0, 0.0]


@pytest.mark.seed("S-KRN-002")
def test_kernel_decorator_with_empty_parentheses():
    @wp.kernel()
    def one(x: wp.array[float]):
        x[wp.tid()] = 1.0

    a = wp.zeros(2)
    wp.launch(one, dim=2, inputs=[a])
    assert a.numpy().tolist() == [1.0, 1.0]


@pytest.mark.seed("S-KRN-003")
def test_every_kind_of_annotation():
    @wp.kernel
    def mixed(
        i8: wp.int8,
        u64: wp.uint64,
        n: int,
        x: float,
        d: wp.float64,
        b: wp.bool,
        v: wp.vec3,
        m: wp.mat22,
        out: wp.array(dtype=wp.float64),
    ):
        out[0] = wp.float64(i8)
        out[1] = wp.float64(u64)
        out[2] = wp.float64(n)
        out[3] = wp.float64(x)
        out[4] = d
        if b:
            out[5] = wp.float64(1.0)
        out[6] = wp.float64(v[2])
        out[7] = wp.float64(m[1, 0])

    out = wp.zeros(8, dtype=wp.float64)
    wp.launch(
        mixed, dim=1, inputs=[-3, 2**40, 7, 0.5, 1e-300, True, wp.vec3(1.0, 2.0, 3.0), ((1.0, 2.0), (3.0, 4.0)), out]
    )
    assert out.numpy().tolist() == [-3.0, 2.0**40, 7.0, 0.5, 1e-300, 1.0, 3.0, 3.0]


def test_missing_annotation_names_the_parameter():
    @wp.kernel
    def bad(x, y: wp.array[float]):
        y[0] = 1.0

    with pytest.raises(wp.CompileError, match=r"parameter 'x' of kernel 'bad' has no type"):
        wp.launch(bad, dim=1, inputs=[1.0, wp.zeros(1)])


@pytest.mark.seed("S-KRN-004")
@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 1000, 100_003])
def test_any_number_of_threads(count):
    @wp.kernel
    def fill(x: wp.array[int]):
        i = wp.tid()
        x[i] = i + 1

    a = wp.zeros(count + 1, dtype=int)
    wp.launch(fill, dim=count, inputs=[a])
    np.testing.assert_array_equal(a.numpy(), [*range(1, count + 1), 0])


@pytest.mark.seed("S-KRN-005")
def test_backward_is_on_by_default_and_can_be_switched_off():
    @wp.kernel
    def a(x: wp.array[float]):
        x[0] = 1.0

    @wp.kernel(enable_backward=False)
    def b(x: wp.array[float]):
        x[0] = 1.0

    assert a.enable_backward and not b.enable_backward


some_list = [1, 2, 3]
some_dict = {"a": 1}
some_set = {1, 2}
SCALE = 3.0


@pytest.mark.seed("S-KRN-006")
def test_globals_other_than_constants_are_an_error():
    @wp.kernel
    def reads_constant(x: wp.array[float]):
        x[0] = SCALE

    @wp.kernel
    def reads_set(x: wp.array[float]):
        x[0] = some_set

    @wp.kernel
    def stores_dictionary(x: wp.array[float]):
        x[0] = some_dict

    a = wp.zeros(1)
    wp.launch(reads_constant, dim=1, inputs=[a])
    assert a.numpy()[0] == 3.0
    with pytest.raises(wp.CompileError, match="some_set"):
        wp.launch(reads_set, dim=1, inputs=[a])
    with pytest.raises(wp.CompileError, match="the value stored here is a dict"):
        wp.launch(stores_dictionary, dim=1, inputs=[a])


@pytest.mark.seed("S-KRN-007")
@pytest.mark.seed("S-KRN-008")
def test_tid_in_one_to_four_dimensions():
    @wp.kernel
    def d1(x: wp.array(dtype=int)):
        x[wp.tid()] = 1

    @wp.kernel
    def d2(x: wp.array2d(dtype=int)):
        i, j = wp.tid()
        x[i, j] = 10 * i + j

    @wp.kernel
    def d3(x: wp.array3d(dtype=int)):
        i, j, k = wp.tid()
        x[i, j, k] = 100 * i + 10 * j + k

    @wp.kernel
    def d4(x: wp.array4d(dtype=int)):
        i, j, k, l = wp.tid()
        x[i, j, k, l] = 1000 * i + 100 * j + 10 * k + l

    for kernel, shape in ((d1, (5,)), (d2, (3, 4)), (d3, (2, 3, 5)), (d4, (2, 3, 2, 9))):
        a = wp.zeros(shape, dtype=int)
        wp.launch(kernel, dim=shape, inputs=[a])
        if len(shape) == 1:
            expected = np.ones(shape)
        else:
            grid = np.indices(shape)
            expected = sum(g * 10 ** (len(shape) - 1 - n) for n, g in enumerate(grid))
        np.testing.assert_array_equal(a.numpy(), expected)


@pytest.mark.seed("S-KRN-009")
def test_names_that_shadow_python_builtins():
    @wp.kernel
    def sum(input: wp.array(dtype=float), l: wp.array(dtype=float)):
        f = wp.tid()
        sum = input[f]
        t = sum * 2.0
        n = t + 1.0
        l[f] = n

    a, b = wp.array([1.0, 2.0], dtype=float), wp.zeros(2)
    wp.launch(sum, dim=2, inputs=[a, b])
    assert b.numpy().tolist() == [3.0, 5.0]


@pytest.mark.seed("S-KRN-010")
def test_straight_line_code_may_rebind_a_local_to_another_type():
    @wp.kernel
    def rebind(x: wp.array[float], m55: wp.array[wp.float64]):
        m = wp.matrix(
            wp.float16(1.0),
            wp.float16(2.0),
            wp.float16(3.0),
            wp.float16(4.0),
            wp.float16(5.0),
            wp.float16(6.0),
            shape=(3, 2),
        )
        x[0] = float(m[2, 1])
        m = wp.identity(n=5, dtype=wp.float64)
        m55[0] = m[4, 4]
        m = 7
        x[1] = float(m)

    x, y = wp.zeros(2), wp.zeros(1, dtype=wp.float64)
    wp.launch(rebind, dim=1, inputs=[x, y])
    assert x.numpy().tolist() == [6.0, 7.0] and y.numpy()[0] == 1.0


@pytest.mark.seed("S-KRN-010")
def test_types_that_differ_where_branches_meet_name_both_places():
    @wp.kernel
    def bad(x: wp.array[float]):
        if x[0] > 0.0:
            m = 1
        else:
            m = 2.0
        x[0] = float(m)

    with pytest.raises(wp.CompileError) as error:
        wp.launch(bad, dim=1, inputs=[wp.zeros(1)])
    text = str(error.value)
    assert "m = 1" in text and "m = 2.0" in text and "int32" in text and "float32" in text


@pytest.mark.seed("S-KRN-011")
def test_kernels_in_functions_and_the_same_name_twice():
    def make(value):
        @wp.kernel
        def set_value(x: wp.array[float]):
            x[wp.tid()] = value

        return set_value

    first, second = make(1.0), make(2.0)
    a, b = wp.zeros(2), wp.zeros(2)
    wp.launch(first, dim=2, inputs=[a])
    wp.launch(second, dim=2, inputs=[b])
    assert a.numpy().tolist() == [1.0, 1.0] and b.numpy().tolist() == [2.0, 2.0]


# fmt: off
@pytest.mark.seed("S-KRN-012")
def test_comments_blank_lines_and_odd_indentation():
    @wp.kernel
    def odd(x: wp.array[float]):

       # three spaces

       i = wp.tid()

       if i == 0:
             # deeper
             x[i] = 1.0   # trailing

       else:
         x[i] = 2.0

    a = wp.zeros(2)
    wp.launch(odd, dim=2, inputs=[a])
    assert a.numpy().tolist() == [1.0, 2.0]
# fmt: on


def test_source_that_python_cannot_give_is_a_clear_error():
    namespace = {"wp": wp}
    exec("@wp.kernel\ndef k(x: wp.array[float]):\n    x[0] = 1.0\n", namespace)
    with pytest.raises(wp.UsageError, match="source"):
        wp.launch(namespace["k"], dim=1, inputs=[wp.zeros(1)])
