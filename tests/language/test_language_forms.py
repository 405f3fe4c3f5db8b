"""Forms of Python in kernels: prints of bools, f-strings, lambdas over loop variables, parameters behind a star,
comparisons of numbers of different types, objects whose attributes are read."""

import ctypes
import itertools
import math
import operator

import numpy as np
import pytest
import warp as wp


def test_prints_of_bools_are_words(capfd, device):
    @wp.kernel
    def k(x: wp.array[float], b: wp.array[bool]):
        print(True)
        print(x[0] > 0.0, x[0] < 0.0, not b[0])
        print(f"{b[0]} {x[0] > 0.0}{x[0] < 0.0}.", False)

    wp.launch(k, dim=1, inputs=[wp.ones(1, device=device), wp.array([True], dtype=bool, device=device)], device=device)
    wp.synchronize()
    assert capfd.readouterr().out == "True\nTrue False False\nTrue TrueFalse. False\n"


def test_f_strings_show_expressions(capfd, device):
    name = 'it\'s "x"'

    @wp.kernel
    def k(x: wp.array[float], n: int):
        i = wp.tid()
        print(f"{x[i]=} {n = } {n+1=:4d}|{x[i] = :.2f}")
        print(f"{n!r} {n!s} {n!a} {name!r} {name} {'a'!r}")

    wp.launch(k, dim=1, inputs=[wp.full(1, 2.5, device=device), 7], device=device)
    wp.synchronize()
    n = 7
    expected = f"x[i]=2.5 {n = } {n+1=:4d}|x[i] = 2.50\n{n!r} {n!s} {n!a} {name!r} {name} {'a'!r}\n"
    assert capfd.readouterr().out == expected


def test_lambdas_see_the_last_value_of_a_loop_variable_as_in_python():
    def by_python(x):
        late = [lambda v: v * float(i) for i in range(3)]
        early = [lambda v, i=i: v * float(i) for i in range(3)]
        fs = []
        for j in range(3):
            fs.append(lambda v: v + float(j))
        return [*(f(x) for f in late), *(f(x) for f in early), *(f(x) for f in fs)]

    @wp.kernel
    def k(x: wp.array[float], out: wp.array2d[float]):
        n = wp.tid()
        late = [lambda v: v * float(i) for i in range(3)]
        early = [lambda v, i=i: v * float(i) for i in range(3)]
        fs = []
        for j in range(3):
            fs.append(lambda v: v + float(j))
        for m in range(3):
            out[n, m] = late[m](x[n])
            out[n, 3 + m] = early[m](x[n])
            out[n, 6 + m] = fs[m](x[n])

    x, out = wp.array([1.5, -2.0], dtype=float), wp.zeros((2, 9))
    wp.launch(k, dim=2, inputs=[x, out])
    assert out.numpy().tolist() == [by_python(1.5), by_python(-2.0)]


@wp.func
def limited(x: float, *, most: float = 1.0, least: float):
    return wp.clamp(x, least, most)


@wp.func
def sum_of(*, a: int, b: int):
    return a + 10 * b


def test_parameters_behind_a_star_are_given_by_name():
    @wp.kernel
    def k(x: wp.array[float], out: wp.array2d[float]):
        i = wp.tid()
        f = lambda v, *, by=2.0: v * by  # noqa: E731

        def g(v: float, *, by: float):
            return v / by

        out[i, 0] = limited(x[i], least=0.0)
        out[i, 1] = limited(least=-1.0, x=x[i], most=0.5)
        out[i, 2] = f(x[i]) + f(x[i], by=3.0)
        out[i, 3] = g(x[i], by=4.0)
        out[i, 4] = float(sum_of(b=1, a=2))

    x, out = wp.array([-3.0, 0.25, 7.0], dtype=float), wp.zeros((3, 5))
    wp.launch(k, dim=3, inputs=[x, out])
    v = x.numpy()
    expected = [np.clip(v, 0, 1), np.clip(v, -1, 0.5), 5 * v, v / 4, np.full(3, 12.0)]
    assert np.array_equal(out.numpy(), np.stack(expected, axis=1))
    assert limited.input_types == {"x": float, "most": float, "least": float} and limited.defaults == {"most": 1.0}


INTEGERS = [t for n in (8, 16, 32, 64) for t in (getattr(wp, f"int{n}"), getattr(wp, f"uint{n}"))]
OPERATORS = (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne)


@pytest.mark.parametrize("a_type, b_type", list(itertools.permutations(INTEGERS, 2)))
def test_integers_of_different_types_are_compared_by_value(a_type, b_type):
    @wp.kernel(module="unique")
    def k(a: wp.array(dtype=a_type), b: wp.array(dtype=b_type), out: wp.array2d[bool]):
        i = wp.tid()
        out[i, 0] = a[i] < b[i]
        out[i, 1] = a[i] <= b[i]
        out[i, 2] = a[i] > b[i]
        out[i, 3] = a[i] >= b[i]
        out[i, 4] = a[i] == b[i]
        out[i, 5] = a[i] != b[i]

    def edges(dtype):
        info = np.iinfo(wp.dtype_to_numpy(dtype))
        return sorted({info.min, info.min + 1, 0, 1, 2, 127, info.max - 1, info.max, *([-1] if info.min else [])})

    pairs = list(itertools.product(edges(a_type), edges(b_type)))
    a = np.array([p[0] for p in pairs], dtype=wp.dtype_to_numpy(a_type))
    b = np.array([p[1] for p in pairs], dtype=wp.dtype_to_numpy(b_type))
    out = wp.zeros((len(pairs), 6), dtype=bool, device="cpu")
    wp.launch(k, dim=len(pairs), inputs=[a, b, out], device="cpu")
    assert out.numpy().tolist() == [[f(x, y) for f in OPERATORS] for x, y in pairs]


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
def test_floats_are_compared_with_integers_and_other_floats_by_value(device):
    @wp.kernel
    def k(
        f: wp.array[float], d: wp.array[wp.float64], h: wp.array[wp.float16], n: wp.array[int], out: wp.array2d[bool]
    ):
        i = wp.tid()
        out[i, 0] = f[i] < d[i]
        out[i, 1] = f[i] == h[i]
        out[i, 2] = n[i] >= f[i]
        out[i, 3] = n[i] < 0.5
        out[i, 4] = n[i] in (f[i], d[i])
        out[i, 5] = (n[i] > 0) == n[i]

    numbers = [0.1, 16777217.0, math.nan, -0.0, math.inf, 1.0]
    f, d, h = (np.array(numbers, dtype=t) for t in ("float32", "float64", "float16"))
    n = np.array([0, 16777217, 1, 0, -5, 1], dtype=np.int32)
    out = wp.zeros((len(numbers), 6), dtype=bool, device=device)
    arrays = [wp.array(a, device=device) for a in (f, d, h, n)]
    wp.launch(k, dim=len(numbers), inputs=[*arrays, out], device=device)
    with np.errstate(invalid="ignore"):
        f64, h64 = f.astype("float64"), h.astype("float64")
        expected = [f64 < d, f64 == h64, n >= f64, n < 0.5, (n == f64) | (n == d), (n > 0) == n]
    assert np.array_equal(out.numpy(), np.stack(expected, axis=1))


def test_attributes_of_objects_that_can_be_called_are_read():
    class Model:
        gravity = -10.0
        size = wp.vec3(1.0, 2.0, 3.0)

        def __call__(self, x):
            return x

    model = Model()

    @wp.kernel
    def k(out: wp.array[float]):
        out[0] = model.gravity + model.size[1]

    out = wp.zeros(1)
    wp.launch(k, dim=1, inputs=[out])
    assert out.numpy()[0] == -8.0

    @wp.kernel
    def calls(out: wp.array[float]):
        out[0] = model(1.0)

    with pytest.raises(wp.CompileError, match="an object of the class 'Model' cannot be called in kernels"):
        wp.launch(calls, dim=1, inputs=[out])


@wp.struct
class Meters:
    value: float

    @classmethod
    def of(cls, value: float):
        return cls(value)

    @classmethod
    def twice(cls, other: float):
        return cls.of(2.0 * other)


@wp.struct
class Feet(Meters):
    scale: float = 0.3


def test_class_methods_make_instances_of_the_class_that_they_are_called_on():
    assert Meters.twice(2.0).value == 4.0 and type(Feet.of(1.0)) is Feet

    @wp.kernel
    def k(out: wp.array[float]):
        a = Meters.of(3.0)
        b = Feet.twice(4.0)
        c = b.of(5.0)
        out[0] = a.value + 100.0 * b.value + 10000.0 * c.scale

    out = wp.zeros(1)
    wp.launch(k, dim=1, inputs=[out])
    assert out.numpy()[0] == 3.0 + 800.0 + 3000.0


def test_overloads_with_vectors_of_any_length():
    @wp.func
    def total(v: wp.types.vector(length=wp.types.Any, dtype=float)):
        s = float(0.0)
        for i in range(len(v)):
            s += v[i]
        return s

    @wp.func
    def total(v: float):  # noqa: F811
        return -v

    @wp.kernel
    def k(out: wp.array[float]):
        out[0] = total(wp.vec3(1.0, 2.0, 3.0))
        out[1] = total(5.0)

    out = wp.zeros(2)
    wp.launch(k, dim=1, inputs=[out])
    assert out.numpy().tolist() == [6.0, -5.0]
    pattern = wp.types.vector(length=wp.types.Any, dtype=float)
    assert (
        pattern.__eq__(int) is NotImplemented
        and (pattern == 3) is False
        and pattern == wp.types.vector(length=wp.types.Any, dtype=float)
    )


def test_keys_and_hashes_of_kernels_can_be_set():
    @wp.kernel
    def k(x: wp.array[float]):
        x[0] = 1.0

    k.key = "renamed_0123"
    k.hash = b"0123"
    assert k.key == "renamed_0123" and k.hash == b"0123"
    x = wp.zeros(1)
    wp.launch(k, dim=1, inputs=[x])
    assert x.numpy()[0] == 1.0 and k.hash == b"0123"


def test_scalar_types_have_a_length():
    assert wp.float32._length_ == 1 and wp.int8._length_ == 1 and wp.vec3._length_ == 3


@pytest.mark.needs("torch")
def test_structures_of_tensors_take_their_place_as_vectors():
    import torch

    @wp.kernel
    def k(x: wp.array[wp.vec3], m: wp.array[wp.mat22], out: wp.array[float]):
        i = wp.tid()
        out[i] = x[i][1] + m[i][1, 0]

    x = torch.arange(12, dtype=torch.float32).reshape(4, 3)
    m = torch.arange(16, dtype=torch.float32).reshape(4, 2, 2)
    out = wp.zeros(4, device="cpu")
    structures = [wp.from_torch(x, return_ctype=True), wp.from_torch(m, return_ctype=True)]
    assert all(isinstance(one, ctypes.Structure) for one in structures)
    assert structures[0].data == x.data_ptr() and structures[0].shape[:2] == (4, 3)
    for _ in range(2):
        out.zero_()
        wp.launch(k, dim=4, inputs=[*structures, out], device="cpu")
        assert out.numpy().tolist() == (x[:, 1] + m[:, 1, 0]).tolist()
    command = wp.launch(k, dim=4, inputs=[*structures, out], device="cpu", record_cmd=True)
    y = x + 1
    command.set_param_by_name("x", wp.from_torch(y, return_ctype=True))
    command.launch()
    assert out.numpy().tolist() == (y[:, 1] + m[:, 1, 0]).tolist()

    @wp.kernel
    def pairs(x: wp.array[wp.vec2]):
        x[wp.tid()] = wp.vec2()

    with pytest.raises(TypeError, match="argument 1 'x' of kernel 'pairs' is array2d\\[float32\\]"):
        wp.launch(pairs, dim=4, inputs=[structures[0]], device="cpu")


def test_prints_of_arrays_say_what_they_are(capfd, device):
    @wp.kernel
    def k(a: wp.array[float], m: wp.array2d[wp.vec3]):
        print(a, f"{m} {m[0]}")

    arrays = [wp.zeros(3, device=device), wp.zeros((2, 5), dtype=wp.vec3, device=device)]
    wp.launch(k, dim=1, inputs=arrays, device=device)
    wp.synchronize()
    text = "array(shape=(3,), dtype=float32) array(shape=(2, 5), dtype=vec3f) array(shape=(5,), dtype=vec3f)\n"
    assert capfd.readouterr().out == text


def test_slices_without_components_have_the_length_0():
    @wp.kernel
    def k(out: wp.array[float]):
        v = wp.vec3(1.0, 2.0, 3.0)
        q = wp.quat(1.0, 2.0, 3.0, 4.0)
        m = wp.identity(n=3, dtype=float)
        out[0] = float(len(v[1:1]) + len(q[2:0]) + len(m[3:, 0:2]))
        s = 0.0
        for x in v[5:]:
            s += x
        out[1] = s + sum(v[0:0])

    out = wp.ones(2)
    wp.launch(k, dim=1, inputs=[out])
    assert out.numpy().tolist() == [0.0, 0.0]


def test_kernels_have_keys_of_any_characters(device):
    def body(x: wp.array(dtype=float)):
        x[wp.tid()] = 5.0

    kernel = wp.Kernel(body, key='a<b, "c">::d \u00e9')
    assert kernel.key == 'a<b, "c">::d \u00e9' and wp.get_module(__name__).kernels[kernel.key] is kernel
    x = wp.zeros(2, device=device)
    wp.launch(kernel, dim=2, inputs=[x], device=device)
    assert x.numpy().tolist() == [5.0, 5.0]
    with pytest.raises(TypeError, match="key is 3, expected a string"):
        wp.Kernel(body, key=3)
    with pytest.raises(ValueError, match="expected an identifier"):
        wp.kernel(body, name="a b")
