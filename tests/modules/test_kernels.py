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
@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 255, 256, 257, 1000, 100_003])
def test_any_number_of_threads(count):
    @wp.kernel
    def fill(x: wp.array[int]):
        i = wp.tid()
        x[i] = i + 1

    a = wp.zeros(count + 1, dtype=int)
    wp.launch(fill, dim=count, inputs=[a])
    np.testing.assert_array_equal(a.numpy(), [*range(1, count + 1), 0])


def adjoint_of(kernel):
    """The addition of the backward version of `kernel(x, y)` to the gradient of x, for a gradient of 2 of y."""
    x, y, adj_x, adj_y = wp.full(3, 5.0), wp.zeros(3), wp.ones(3), wp.full(3, 2.0)
    launch = {"dim": 3, "inputs": [x], "outputs": [y], "adj_inputs": [adj_x], "adj_outputs": [adj_y]}
    wp.launch(kernel, adjoint=True, **launch)
    return adj_x.numpy().tolist()


def squares(**options):
    @wp.kernel(module="unique", **options)
    def square(x: wp.array[float], y: wp.array[float]):
        i = wp.tid()
        y[i] = x[i] * x[i]

    return square


@pytest.mark.seed("S-KRN-005")
def test_every_kernel_gets_a_backward_version_by_default():
    assert squares().enable_backward
    assert adjoint_of(squares()) == [1.0 + 2.0 * 5.0 * 2.0] * 3


def left_out_of_the_configuration():
    wp.config.enable_backward = False
    try:
        return squares()
    finally:
        wp.config.enable_backward = True


@pytest.mark.seed("S-KRN-014")
@pytest.mark.parametrize(
    "make",
    [
        lambda: squares(enable_backward=False),
        lambda: squares(module_options={"enable_backward": False}),
        left_out_of_the_configuration,
    ],
    ids=["kernel", "module", "configuration"],
)
def test_the_backward_version_can_be_left_out(make):
    kernel = make()
    x, y = wp.full(3, 5.0), wp.zeros(3)
    wp.launch(kernel, dim=3, inputs=[x, y])
    assert not kernel.enable_backward and y.numpy().tolist() == [25.0] * 3
    with pytest.raises(RuntimeError, match="'square'.*enable_backward=False"):
        adjoint_of(kernel)


@pytest.mark.seed("S-KRN-014")
def test_the_options_of_a_module_leave_the_backward_version_out(tmp_path, monkeypatch):
    text = "import warp as wp\nwp.set_module_options({'enable_backward': False})\n"
    for name, option in (("first", ""), ("second", "(enable_backward=True)")):
        text += f"@wp.kernel{option}\ndef {name}(x: wp.array[float], y: wp.array[float]):\n"
        text += "    i = wp.tid()\n    y[i] = x[i] * x[i]\n"
    (tmp_path / "forward_only.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    import forward_only

    with pytest.raises(RuntimeError, match="'first'.*enable_backward"):
        adjoint_of(forward_only.first)
    assert adjoint_of(forward_only.second) == [21.0] * 3


some_list = [1, 2, 3]
some_dict = {"a": 1}
some_set = {1, 2}
some_numbers = np.zeros(3)
some_array = wp.zeros(3)
SCALE = 3.0
DIRECTION = wp.vec3(1.0, 2.0, 3.0)


def some_function(x):
    return x


@pytest.mark.seed("S-KRN-006")
def test_globals_other_than_constants_are_an_error():
    @wp.kernel
    def reads_constant(x: wp.array[float]):
        x[0] = SCALE

    @wp.kernel
    def reads_vector(x: wp.array[float]):
        x[0] = DIRECTION[1]

    @wp.kernel
    def reads_numbers(x: wp.array[float]):
        x[0] = float(some_numbers[0])

    @wp.kernel
    def reads_array(x: wp.array[float]):
        x[0] = some_array[0]

    @wp.kernel
    def calls(x: wp.array[float]):
        x[0] = some_function(1.0)

    @wp.kernel
    def reads_set(x: wp.array[float]):
        x[0] = some_set

    @wp.kernel
    def stores_dictionary(x: wp.array[float]):
        x[0] = some_dict

    a = wp.zeros(1)
    wp.launch(reads_constant, dim=1, inputs=[a])
    assert a.numpy()[0] == 3.0
    wp.launch(reads_vector, dim=1, inputs=[a])
    assert a.numpy()[0] == 2.0
    for kernel, name in ((reads_numbers, "some_numbers"), (reads_array, "some_array"), (calls, "some_function")):
        with pytest.raises(wp.CompileError, match=f"kernels cannot use '{name}'"):
            wp.launch(kernel, dim=1, inputs=[a])
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


@pytest.mark.seed("S-KRN-007")
def test_tid_is_used_inline_and_more_than_once():
    @wp.kernel
    def inline(geometry: wp.array[float], out: wp.array2d[float]):
        out[wp.tid(), 0] = 2.0 * geometry[wp.tid()]
        i = wp.tid()
        out[i, 1] = float(i - wp.tid())

    geometry, out = wp.array([3.0, 4.0, 5.0], dtype=float), wp.full((3, 2), -1.0)
    wp.launch(inline, dim=3, inputs=[geometry, out])
    assert out.numpy().tolist() == [[6.0, 0.0], [8.0, 0.0], [10.0, 0.0]]


@pytest.mark.seed("S-KRN-009")
def test_names_that_shadow_python_builtins():
    @wp.kernel
    def sum(input: wp.array(dtype=float), l: wp.array(dtype=float), max: int):
        f = wp.tid()
        sum = float(0.0)
        for n in range(max):
            sum += input[f] + float(n)
        t = sum * 2.0
        len = t + 1.0
        l[f] = len

    a, b = wp.array([1.0, 2.0], dtype=float), wp.zeros(2)
    wp.launch(sum, dim=2, inputs=[a, b, 3])
    assert b.numpy().tolist() == [13.0, 19.0]


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
            m = int(1)
        else:
            m = 2.0
        x[0] = float(m)

    with pytest.raises(wp.CompileError) as error:
        wp.launch(bad, dim=1, inputs=[wp.zeros(1)])
    text = str(error.value)
    assert "m = int(1)" in text and "m = 2.0" in text and "int32" in text and "float literal" in text


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


# fmt: off
@pytest.mark.seed("S-KRN-013")
def test_a_bare_ellipsis_does_nothing():
    @wp.func
    def twice(x: float):
        ...
        return 2.0 * x

    @wp.kernel
    def sketch(x: wp.array[float]):
        ...
        i = wp.tid()
        if i == 1:
            ...
        elif i == 2:
            x[i] = 7.0
            ...
        else:
            for k in range(i + 1):
                ...
            x[i] = twice(float(i) + 1.0)
        ...

    @wp.kernel
    def nothing(x: wp.array[float]):
        ...

    x = wp.full(4, -1.0, requires_grad=True)
    wp.launch(sketch, dim=4, inputs=[x])
    wp.launch(nothing, dim=4, inputs=[x])
    assert x.numpy().tolist() == [2.0, -1.0, 7.0, 8.0]
# fmt: on


def test_source_that_python_cannot_give_is_a_clear_error():
    namespace = {"wp": wp}
    exec("@wp.kernel\ndef k(x: wp.array[float]):\n    x[0] = 1.0\n", namespace)
    with pytest.raises(wp.UsageError, match="source"):
        wp.launch(namespace["k"], dim=1, inputs=[wp.zeros(1)])
