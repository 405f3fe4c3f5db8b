"""API-1.19, section 8: errors."""

import warp as wp
from probing import floats, launched, still_open


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


@still_open("section 8")
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


@still_open("section 8")
def message_names_attribute_and_type():
    def kernel(out: wp.array(dtype=float)):
        v = wp.vec3(1.0, 2.0, 3.0)
        out[0] = v.foo

    text = _message(kernel, floats(0.0))
    return "foo" in text, "vec3f" in text, "kernel" in text, "errors.py" in text


def lambda_in_a_kernel():
    def kernel(out: wp.array(dtype=float)):
        f = lambda x: x  # noqa: E731
        out[0] = f(1.0)

    launched(kernel, 1, floats(0.0))


@still_open("section 8")
def absent_cuda_device():
    return wp.get_device("cuda:0")


def cuda_without_cuda():
    return wp.get_device("cuda")


def unknown_device():
    return wp.get_device("tpu")


def constant_of_a_tuple():
    return wp.constant((1, 2))


@still_open("section 8")
def array_on_an_absent_device():
    return wp.zeros(3, device="cuda:0")


@still_open("section 8")
def classes_of_compile_errors():
    names = ("Error", "AttributeError", "KeyError", "TypeError", "IndexError", "ValueError")
    return [issubclass(getattr(wp, f"WarpCodegen{name}"), RuntimeError) for name in names]
