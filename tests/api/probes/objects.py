"""API-1.19, section 5: kernels, functions and modules as objects."""

import inspect

import warp as wp
from probing import floats, still_open


def _made(factor):
    @wp.kernel(module="unique")
    def scale(a: wp.array(dtype=float)):
        a[wp.tid()] *= wp.static(factor)

    return scale


@wp.kernel
def _increment(a: wp.array(dtype=float)):
    """Adds one."""
    a[wp.tid()] += 1.0


@wp.func
def _twice(x: float, times: int = 2):
    return x * float(times)


@still_open("section 5")
def equal_kernels_of_unique_modules_are_one():
    return _made(1.0) is _made(1.0), _made(1.0) is _made(2.0), _made(1.0).module.name == _made(2.0).module.name


@still_open("section 5")
def name_of_a_kernel():
    @wp.kernel(name="another")
    def kernel(a: wp.array(dtype=float)):
        a[0] = 1.0

    return kernel.key


@still_open("section 5")
def name_that_is_no_identifier():
    @wp.kernel(name="not a name")
    def kernel(a: wp.array(dtype=float)):
        a[0] = 1.0


@still_open("section 5")
def module_options_without_unique_module():
    @wp.kernel(module_options={"fast_math": True})
    def kernel(a: wp.array(dtype=float)):
        a[0] = 1.0


def unknown_module_option():
    @wp.kernel(module="unique", module_options={"no_option": True})
    def kernel(a: wp.array(dtype=float)):
        a[0] = 1.0


def module_options_of_a_wrong_type():
    @wp.kernel(module="unique", module_options=[])
    def kernel(a: wp.array(dtype=float)):
        a[0] = 1.0


def cuda_arguments_are_accepted():
    @wp.kernel(launch_bounds=(256, 2), grid_stride=True, module="unique")
    def kernel(a: wp.array(dtype=float)):
        a[0] = 1.0

    wp.launch(kernel, dim=1, inputs=[a := floats(0.0)])
    return a


@still_open("section 5")
def launch_bounds_of_a_wrong_type():
    @wp.kernel(launch_bounds="many")
    def kernel(a: wp.array(dtype=float)):
        a[0] = 1.0


def members_of_a_kernel():
    return _increment.key, _increment.func.__name__, _increment.is_generic, _increment.__doc__, type(_increment.module)


@still_open("section 5")
def kernel_without_decorator():
    def plain(a: wp.array(dtype=float)):
        a[wp.tid()] = 2.0

    kernel = wp.Kernel(plain)
    wp.launch(kernel, dim=1, inputs=[a := floats(0.0)])
    return kernel.key, kernel.module.name == __name__, a


@still_open("section 5")
def calling_a_kernel():
    return _increment(floats(0.0))


@still_open("section 5")
def members_of_a_function():
    return _twice.key, _twice.func.__name__, _twice.is_builtin(), list(_twice.input_types), _twice.defaults


@still_open("section 5")
def builtins_are_functions():
    return isinstance(wp.sin, wp.Function), wp.sin.is_builtin(), wp.sin.key


def signature_of_a_function():
    return str(inspect.signature(_twice))


@still_open("section 5")
def module_of_this_file():
    module = wp.get_module(__name__)
    return module.name == __name__, type(module.kernels), type(module.functions), "_increment" in module.kernels


@still_open("section 5")
def options_of_a_module():
    return sorted(wp.get_module("options_of_a_module").options)


@still_open("section 5")
def unset_mode():
    return wp.get_module("unset_mode").options["mode"]


@still_open("section 5")
def hash_of_a_module():
    return type(wp.get_module(__name__).hash_module())
