"""Mistakes around launches: each text names the value found, the expected one and a remedy."""

import sys
import types

import numpy as np
import pytest
import warp as wp


@wp.kernel
def plain(a: wp.array[float], b: float, c: int):
    a[wp.tid()] = b + float(c)


def defined(fields):
    """The struct P of a cell that is run again, with these fields."""
    scope = {"wp": wp, "__name__": "a_notebook"}
    exec(f"@wp.struct\nclass P:\n    {fields}", scope)
    return scope["P"]


AGAIN = r"P was defined again, with other fields: run the definitions that use it again \(in a notebook, their cells\)"


def test_a_struct_that_was_defined_again():
    First, Second = defined("x: float"), defined("x: float; y: float = 2.0")

    @wp.kernel
    def of_one(p: First, out: wp.array[float]):
        out[0] = p.x

    @wp.kernel
    def of_many(p: wp.array(dtype=First)):
        p[0].x = 1.0

    @wp.func
    def x_of(p: First):
        return p.x

    @wp.kernel
    def calls(p: Second, out: wp.array[float]):
        out[0] = x_of(p)

    @wp.struct
    class Holder:
        p: First
        many: wp.array(dtype=First)

    out = wp.zeros(1)
    with pytest.raises(TypeError, match=rf"argument 1 'p' of kernel 'of_one' is .*P, expected P: {AGAIN}"):
        wp.launch(of_one, dim=1, inputs=[Second(), out])
    with pytest.raises(
        TypeError, match=rf"argument 1 'p' of kernel 'of_many' is array\[P\], expected array\[P\]: {AGAIN}"
    ):
        wp.launch(of_many, dim=1, inputs=[wp.zeros(1, dtype=Second)])
    with pytest.raises(wp.CompileError, match=rf"argument 'p' of 'x_of' is P, expected P(.|\n)*help: {AGAIN}"):
        wp.launch(calls, dim=1, inputs=[Second(), out])
    with pytest.raises(TypeError, match=rf"Holder.p: expected P, got P: {AGAIN}"):
        Holder().p = Second()
    with pytest.raises(TypeError, match=rf"Holder.many: expected array\[P\], got array\[P\]: {AGAIN}"):
        Holder().many = wp.zeros(1, dtype=Second)
    wp.launch(of_one, dim=1, inputs=[defined("x: float")(4.0), out])  # with the same fields it is the same
    assert out.numpy()[0] == 4.0


def test_two_structs_of_one_name():
    scope = {"wp": wp, "__name__": "another_module"}
    exec("@wp.struct\nclass P:\n    x: float", scope)
    First = defined("x: float")

    @wp.kernel
    def of_one(p: First):
        pass

    with pytest.raises(TypeError, match="these are two structs of one name, another_module:P and a_notebook:P"):
        wp.launch(of_one, dim=1, inputs=[scope["P"]()])


def test_too_few_arguments_name_the_first_that_is_missing():
    with pytest.raises(TypeError, match="got 1 argument .* takes 3: 'b' is the first that is missing"):
        wp.launch(plain, dim=1, inputs=[wp.zeros(1)])
    with pytest.raises(TypeError, match="got 4 arguments .* takes 3: there is no parameter for argument 4"):
        wp.launch(plain, dim=1, inputs=[wp.zeros(1), 1.0, 2, 3])

    @wp.kernel
    def generic(a: wp.array(dtype=wp.types.Any), b: float):
        pass

    with pytest.raises(TypeError, match="got 1 argument .* takes 2: 'b' is the first that is missing"):
        wp.launch(generic, dim=1, inputs=[wp.zeros(1)])


def test_brackets_behind_a_kernel():
    with pytest.raises(
        TypeError, match=r"plain\[4\]: a kernel is launched by wp\.launch\(plain, dim=4, inputs=\[\.\.\.\]\)"
    ):
        plain[4](wp.zeros(4), 1.0, 2)
    with pytest.raises(
        TypeError, match=r"plain\[\(4, 32\)\]: .*wp\.launch\(plain, dim=n, .*; n is the number of threads"
    ):
        plain[4, 32](wp.zeros(4), 1.0, 2)


def test_complex_numbers_are_pairs():
    for name, vector in (("complex64", wp.vec2f), ("complex128", wp.vec2d)):
        x = np.array([[1 + 2j, 3 - 4j]], dtype=name)
        with pytest.raises(TypeError, match="kernels have no complex numbers") as caught:
            wp.array(x, device="cpu")
        shown = str(caught.value).split("its memory: ")[1]
        a = eval(shown, {"wp": wp, "x": x})  # the remedy of the message works
        assert a.dtype is vector and a.shape == (1, 2)
        assert a.numpy().tolist() == [[[1.0, 2.0], [3.0, -4.0]]]


def test_operators_of_a_struct_of_another_module(tmp_path):
    path = tmp_path / "dual_numbers.py"
    path.write_text(
        "import warp as wp\n\n@wp.struct\nclass Dual:\n    x: float\n    dx: float\n\n"
        "@wp.func\ndef mul(a: Dual, b: Dual):\n    return Dual(a.x * b.x, a.x * b.dx + a.dx * b.x)\n"
    )
    module = types.ModuleType("dual_numbers")
    module.__file__ = str(path)
    sys.modules["dual_numbers"] = module
    try:
        exec(compile(path.read_text(), str(path), "exec"), vars(module))
        Dual, mul = module.Dual, module.mul

        @wp.kernel
        def without(out: wp.array[float]):
            d = Dual(3.0, 1.0) * Dual(2.0, 0.0)
            out[0] = d.x

        out = wp.zeros(1)
        text = "'*' does not take Dual and Dual(.|\n)*help: .* write 'from dual_numbers import mul'"
        with pytest.raises(wp.CompileError, match=text):
            wp.launch(without, dim=1, inputs=[out])

        def scope():
            mul = module.mul

            @wp.kernel
            def seen(out: wp.array[float]):
                d = Dual(3.0, 1.0) * Dual(2.0, 0.0)
                out[0] = d.dx + 0.0 * mul(d, d).x

            return seen

        wp.launch(scope(), dim=1, inputs=[out])
        assert out.numpy()[0] == 2.0 and mul is module.mul
    finally:
        del sys.modules["dual_numbers"]


def test_an_array_of_another_rank_names_the_parameter_of_the_function():
    @wp.func
    def corner(grid: wp.array2d[float]):
        return grid[0, 0]

    @wp.kernel
    def k(a: wp.array[float]):
        a[0] = corner(a)

    with pytest.raises(
        wp.CompileError, match=r"argument 'grid' of 'corner' is array\[float32\], expected array2d\[float32\]"
    ):
        wp.launch(k, dim=1, inputs=[wp.zeros(1)])
