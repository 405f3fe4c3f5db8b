"""raise in kernels: a Python exception in every build, from the line that raised."""

import linecache
import re

import numpy as np
import pytest
import warp as wp

N = 37


@wp.func
def root(x: float):
    if x < 0.0:
        raise ValueError(f"{x:.1f} has no root, 100 % sure")
    return wp.sqrt(x)


@wp.kernel
def roots(x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    for j in range(2):
        y[i] += root(x[i] + float(j))


def launched(kernel, dim, inputs):
    wp.launch(kernel, dim=dim, inputs=inputs)
    wp.synchronize()


@pytest.mark.parametrize("options", [{}, {"lanes": 1}, {"lanes": 8}, {"mode": "debug"}], ids=str)
def test_raise_is_an_exception_of_the_launch(options):
    @wp.kernel(module_options=options, module="unique")
    def k(x: wp.array[float], y: wp.array[float]):
        i = wp.tid()
        for j in range(2):
            y[i] += root(x[i] + float(j))
        y[i] += 100.0

    values = np.arange(N, dtype=np.float32)
    y = wp.zeros(N, dtype=float)
    launched(k, N, [wp.array(values), y])
    np.testing.assert_allclose(y.numpy(), np.sqrt(values) + np.sqrt(values + 1) + 100.0, rtol=1e-6)

    values[20] = -3.0
    y.zero_()
    with pytest.raises(
        ValueError, match=r"ValueError: -3\.0 has no root, 100 % sure, in 'root', in kernel 'k'"
    ) as caught:
        launched(k, N, [wp.array(values), y])
    error = caught.value
    assert isinstance(error, wp.UsageError) and "thread (20,)" in str(error)
    assert error.path == __file__ and "raise ValueError" in linecache.getline(__file__, error.line)
    assert y.numpy()[20] == 0.0  # the thread did nothing more
    values[20] = 3.0
    launched(k, N, [wp.array(values), y])  # the kernel is as good as before


@pytest.mark.parametrize(
    "kind",
    [
        ValueError,
        IndexError,
        KeyError,
        LookupError,
        TypeError,
        AttributeError,
        NameError,
        ZeroDivisionError,
        OverflowError,
        ArithmeticError,
        AssertionError,
        MemoryError,
        NotImplementedError,
        RuntimeError,
        Exception,
    ],
)
def test_the_class_is_that_of_python(kind):
    @wp.kernel(module="unique")
    def k(n: int):
        if wp.tid() == n:
            raise kind

    launched(k, 9, [9])
    with pytest.raises(kind, match=f"{kind.__name__}, in kernel 'k', thread \\(8,\\)"):
        launched(k, 9, [8])


def test_messages_hold_values_and_constants(capfd):
    where = "the north"

    @wp.kernel(module="unique")
    def k(x: wp.array[wp.vec3], n: wp.int64):
        i, j = wp.tid()
        if i == 1 and j == 2:
            raise IndexError(f"{where}: {x[j]} at {n:5d}, {n == n and True}")

    x = wp.array([[0, 0, 0], [1, 1, 1], [2.5, -3, 4]], dtype=wp.vec3)
    with pytest.raises(IndexError, match=r"the north: 2\.5 -3 4 at  -700, True, in kernel 'k', thread \(1, 2\)"):
        launched(k, (2, 3), [x, -700])
    assert capfd.readouterr().out == ""


def test_a_long_message_is_cut():
    @wp.kernel(module="unique")
    def k(n: int):
        raise ValueError("0123456789" * n)

    with pytest.raises(wp.CompileError):
        wp.launch(k, dim=1, inputs=[100])

    text = "0123456789" * 100

    @wp.kernel(module="unique")
    def long(n: int):
        raise ValueError(text)

    with pytest.raises(ValueError, match="ValueError: 0123456789.*0123456789") as caught:
        launched(long, 1, [100])
    assert len(str(caught.value)) < 1000


def test_a_path_that_raises_has_no_part_in_types_and_values():
    @wp.func
    def chosen(n: int):
        if n == 0:
            scale = 2.0
        elif n == 1:
            scale = 4.0
        else:
            raise ValueError("no such scale")
        return scale

    @wp.kernel
    def k(n: int, out: wp.array[float]):
        kind = 1
        for j in range(n):
            if j == 7:
                kind = 0.5
                raise IndexError
            out[j] = chosen(j % 2)
        while True:
            if n < 5:
                raise OverflowError("too small")
            if n < 8:
                break
            raise OverflowError("too large")
        out[0] += float(kind)

    out = wp.zeros(8, dtype=float)
    launched(k, 1, [6, out])
    np.testing.assert_array_equal(out.numpy(), [3, 4, 2, 4, 2, 4, 0, 0])
    for n, kind in ((3, OverflowError), (8, IndexError)):
        with pytest.raises(kind):
            launched(k, 1, [n, out])


def test_functions_of_large_kernels_raise():
    """A kernel that is too large for all of its functions to be inlined."""

    @wp.func
    def step(x: float):
        if x > 40.0:
            raise OverflowError(f"{x:.0f} is too large")
        for k in range(16):
            x = x + wp.sin(x * 0.01 + float(k)) * 1.0e-6 * wp.cos(x)
        return x + 0.125

    @wp.kernel
    def k(x: wp.array[float]):
        i = wp.tid()
        v = x[i]
        for _a in range(16):
            for _b in range(16):
                v = step(v)
        x[i] = v

    x = wp.array([1.0, 2.0, 3.0], dtype=float)
    launched(k, 3, [x])
    np.testing.assert_allclose(x.numpy(), [33.0, 34.0, 35.0], rtol=1e-3)
    with pytest.raises(OverflowError, match=r"40 is too large, in 'step', in kernel 'k', thread \((1|2),\)"):
        launched(k, 3, [wp.array([1.0, 9.0, 9.0], dtype=float)])


def test_gradients_of_a_kernel_that_may_raise():
    x = wp.array([1.0, 4.0, 16.0], dtype=float, requires_grad=True)
    y = wp.zeros(3, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(roots, dim=3, inputs=[x, y])
    tape.backward(grads={y: wp.ones(3, dtype=float)})
    values = x.numpy()
    np.testing.assert_allclose(x.grad.numpy(), 0.5 / np.sqrt(values) + 0.5 / np.sqrt(values + 1), rtol=1e-6)


def test_a_launch_that_raises_is_not_on_the_tape():
    """Launches that are waited for: in debug mode on every device."""

    @wp.kernel(module="unique", module_options={} if wp.get_device().is_cpu else {"mode": "debug"})
    def checked(x: wp.array[float], y: wp.array[float]):
        y[wp.tid()] += root(x[wp.tid()])

    x = wp.array([1.0, -4.0], dtype=float, requires_grad=True)
    y = wp.zeros(2, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with pytest.raises(ValueError, match="has no root"), tape:
        wp.launch(checked, dim=2, inputs=[x, y])
    tape.backward(grads={y: wp.ones(2, dtype=float)})
    np.testing.assert_array_equal(x.grad.numpy(), [0.0, 0.0])


def test_a_message_with_more_numbers_than_it_holds_ends_in_dots():
    mat33 = wp.types.matrix((3, 3), wp.int32)
    vec200 = wp.types.vector(200, wp.int32)

    @wp.kernel(module="unique")
    def k(small: wp.array(dtype=mat33), large: wp.array(dtype=vec200), which: int):
        if which == 0:
            raise ValueError(small[0])
        raise ValueError(f"of {large[0][0]}: {large[0]}")

    def message(which):
        numbers = np.arange(200, dtype=np.int32)[None]
        arguments = [wp.array([[[1, 2, 3], [4, 5, 6], [7, 8, 9]]], dtype=mat33), wp.array(numbers, dtype=vec200), which]
        with pytest.raises(ValueError, match="ValueError: ") as caught:
            launched(k, 1, arguments)
        return re.search("ValueError: (.*), in kernel 'k', thread", str(caught.value))[1]

    assert message(0) == "1 2 3 4 5 6 7 8 9"
    whole, cut = "of 0: " + " ".join(str(i) for i in range(200)), message(1)
    assert cut.endswith("...") and whole.startswith(cut[:-3]) and len(cut) > 60
