"""API-1.19, section 8: errors."""

import traceback

import warp as wp
from probing import differs, floats, launched


def _message(function, *arguments):
    try:
        launched(function, 1, *arguments)
    except Exception as error:
        return str(error)


def unknown_attribute_of_a_vector():
    def kernel(out: wp.array(dtype=float)):
        v = wp.vec3(1.0, 2.0, 3.0)
        out[0] = v.foo

    launched(kernel, 1, floats(0.0))


def unknown_builtin():
    def kernel(out: wp.array(dtype=float)):
        out[0] = wp.not_there(1.0)

    launched(kernel, 1, floats(0.0))


def undefined_symbol():
    def kernel(out: wp.array(dtype=float)):
        out[0] = not_there  # noqa: F821

    launched(kernel, 1, floats(0.0))


def returned_value_of_a_kernel():
    def kernel(out: wp.array(dtype=float)):
        out[0] = 1.0
        return 1.0

    launched(kernel, 1, floats(0.0))


def stored_value_of_a_wrong_type():
    def kernel(out: wp.array(dtype=float)):
        out[0] = wp.vec3(1.0, 2.0, 3.0)

    launched(kernel, 1, floats(0.0))


def no_overload_of_a_builtin():
    def kernel(out: wp.array(dtype=float)):
        out[0] = wp.dot(wp.vec3(1.0, 2.0, 3.0), wp.vec2(1.0, 2.0))

    launched(kernel, 1, floats(0.0))


def message_names_attribute_and_type():
    def kernel(out: wp.array(dtype=float)):
        v = wp.vec3(1.0, 2.0, 3.0)
        out[0] = v.foo

    text = _message(kernel, floats(0.0))
    return "foo" in text, "vec3f" in text, "kernel" in text, "errors.py" in text


@differs("None")
def lambda_in_a_kernel():
    def kernel(out: wp.array(dtype=float)):
        f = lambda x: x  # noqa: E731
        out[0] = f(1.0)

    launched(kernel, 1, floats(0.0))


def absent_cuda_device():
    return wp.get_device("cuda:0")


def cuda_without_cuda():
    return wp.get_device("cuda")


def unknown_device():
    return wp.get_device("tpu")


def constant_of_a_tuple():
    return wp.constant((1, 2))


def array_on_an_absent_device():
    return wp.zeros(3, device="cuda:0")


def classes_of_compile_errors():
    names = ("Error", "AttributeError", "KeyError", "TypeError", "IndexError", "ValueError")
    parents = (RuntimeError, AttributeError, KeyError, TypeError, IndexError, ValueError)
    return [issubclass(getattr(wp, f"WarpCodegen{name}"), parent) for name, parent in zip(names, parents)]


def undefined_symbol_by_its_class():
    def kernel(out: wp.array(dtype=float)):
        out[0] = not_there  # noqa: F821

    try:
        launched(kernel, 1, floats(0.0))
    except wp.WarpCodegenKeyError:
        return "caught"


def unknown_attribute_by_its_class():
    def kernel(out: wp.array(dtype=float)):
        out[0] = out.foo

    try:
        launched(kernel, 1, floats(0.0))
    except wp.WarpCodegenAttributeError:
        return "caught"


def unsupported_syntax_by_its_class():
    def kernel(out: wp.array(dtype=float)):
        with out:
            pass

    try:
        launched(kernel, 1, floats(0.0))
    except wp.WarpCodegenError:
        return "caught"


def text_of_unsupported_syntax():
    def kernel(out: wp.array(dtype=float)):
        with out:
            pass

    try:
        launched(kernel, 1, floats(0.0))
    except RuntimeError as error:
        text = "".join(traceback.format_exception_only(error))
        return "with" in text.lower(), "no detail" in text


def unknown_attribute_of_a_struct():
    @wp.struct
    class S:
        x: float

    def kernel(out: wp.array(dtype=float)):
        s = S()
        out[0] = s.y

    launched(kernel, 1, floats(0.0))


def unknown_name_in_a_module():
    def kernel(out: wp.array(dtype=float)):
        out[0] = wp.types.not_there

    launched(kernel, 1, floats(0.0))


def wrong_number_of_arguments_of_a_function():
    @wp.func
    def f(x: float):
        return x

    def kernel(out: wp.array(dtype=float)):
        out[0] = f(1.0, 2.0)

    launched(kernel, 1, floats(0.0))


def too_many_indices():
    def kernel(out: wp.array(dtype=float)):
        out[0] = out[0, 0]

    launched(kernel, 1, floats(0.0))


def parameter_without_annotation():
    def kernel(out):
        out[0] = 1.0

    launched(kernel, 1, floats(0.0))


@differs("array float32 (1,) ndarray float32 (1,) [1.0]")
def error_in_one_kernel_leaves_the_others():
    @wp.kernel(module="errors_one_of_two")
    def good(out: wp.array(dtype=float)):
        out[0] = 1.0

    out = floats(0.0)
    wp.launch(good, dim=1, inputs=[out])

    @wp.kernel(module="errors_one_of_two")
    def bad(out: wp.array(dtype=float)):
        out[0] = not_there  # noqa: F821

    try:
        wp.launch(bad, dim=1, inputs=[out])
    except Exception:
        out.zero_()
    wp.launch(good, dim=1, inputs=[out])
    return out


def deterministic_errors():
    return issubclass(wp.WarpDeterminismError, RuntimeError)
