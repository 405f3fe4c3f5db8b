"""API-1.19, section 5: kernels, functions and modules as objects."""

import inspect
from typing import Any

import warp as wp
from probing import differs, floats, still_open


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
def _plain(a: wp.array(dtype=float)):
    a[wp.tid()] = 2.0


def _plain_function(x: float):
    return x


@wp.kernel
def _doubled(a: wp.array(dtype=Any)):
    a[0] = a[0] + a[0]


@wp.overload
def _doubled(a: wp.array(dtype=wp.float64)) -> None: ...


def equal_kernels_of_unique_modules_are_one():
    return _made(1.0) is _made(1.0), _made(1.0) is _made(2.0), _made(1.0).module.name == _made(2.0).module.name


def name_of_a_kernel():
    @wp.kernel(name="another")
    def kernel(a: wp.array(dtype=float)):
        a[0] = 1.0

    return kernel.key


def name_that_is_no_identifier():
    @wp.kernel(name="not a name")
    def kernel(a: wp.array(dtype=float)):
        a[0] = 1.0


@differs("None")
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


@differs("raises ValueError")
def launch_bounds_of_a_wrong_type():
    @wp.kernel(launch_bounds="many")
    def kernel(a: wp.array(dtype=float)):
        a[0] = 1.0


def members_of_a_kernel():
    return _increment.key, _increment.func.__name__, _increment.is_generic, _increment.__doc__, type(_increment.module)


def kernel_without_decorator():
    def plain(a: wp.array(dtype=float)):
        a[wp.tid()] = 2.0

    kernel = wp.Kernel(plain)
    wp.launch(kernel, dim=1, inputs=[a := floats(0.0)])
    return kernel.key, kernel.module.name == __name__, a


def calling_a_kernel():
    return _increment(floats(0.0))


def members_of_a_function():
    return _twice.key, _twice.func.__name__, _twice.is_builtin(), list(_twice.input_types), _twice.defaults


def builtins_are_functions():
    return isinstance(wp.sin, wp.Function), wp.sin.is_builtin(), wp.sin.key


def signature_of_a_function():
    return str(inspect.signature(_twice))


def module_of_this_file():
    module = wp.get_module(__name__)
    return module.name == __name__, type(module.kernels), type(module.functions), "_increment" in module.kernels


@differs(
    "list('block_dim', 'compile_time_trace', 'cpu_compiler_flags', 'cuda_output', 'default_grid_stride', "
    "'deterministic', 'deterministic_max_records', 'enable_backward', 'enable_mathdx_fft', "
    "'enable_mathdx_gemm', 'enable_mathdx_solver', 'extra_build_options', 'fast_math', 'fuse_fp', "
    "'lineinfo', 'max_unroll', 'mode', 'optimization_level', 'programmatic_launch', 'strip_hash')"
)
def options_of_a_module():
    return sorted(wp.get_module("options_of_a_module").options)


def unset_mode():
    return wp.get_module("unset_mode").options["mode"]


def hash_of_a_module():
    return type(wp.get_module(__name__).hash_module())


def identity_follows_static_values():
    class Holder:
        value = 1.0

        def make(self):
            @wp.kernel(module="unique")
            def kernel(a: wp.array(dtype=float)):
                a[0] = wp.static(self.value)

            return kernel

    holder = Holder()
    first, second = holder.make(), holder.make()
    holder.value = 2.0
    return first is second, first is holder.make()


def identity_follows_module_options():
    def make(fast):
        @wp.kernel(module="unique", module_options={"fast_math": fast})
        def kernel(a: wp.array(dtype=float)):
            a[0] = a[0] * a[0] + 1.0

        return kernel

    return make(True) is make(True), make(True) is make(False)


def identity_of_generic_kernels():
    def make(factor):
        @wp.kernel(module="unique")
        def kernel(a: wp.array(dtype=Any)):
            a[0] = a[0] * a.dtype(factor)

        return kernel

    return make(1.0) is make(1.0), make(1.0) is make(2.0)


def identity_follows_functions():
    def make(factor):
        @wp.func
        def f(x: float):
            return x * factor

        @wp.kernel(module="unique")
        def kernel(a: wp.array(dtype=float)):
            a[0] = f(a[0])

        return kernel

    return make(1.0) is make(1.0), make(1.0) is make(2.0)


def mistakes_in_unique_kernels_show_at_the_launch():
    @wp.kernel(module="unique")
    def kernel(a: wp.array(dtype=float)):
        a[0] = not_there  # noqa: F821

    return kernel.key


def key_of_a_nested_kernel():
    return _made(1.0).key


def key_of_a_nested_function():
    @wp.func
    def f(x: float):
        return x

    return f.key


def options_of_a_kernel():
    @wp.kernel(enable_backward=False)
    def kernel(a: wp.array(dtype=float)):
        a[0] = 1.0

    return kernel.options, _increment.options


def module_options_are_those_of_the_module():
    @wp.kernel(module="unique", module_options={"fast_math": True})
    def kernel(a: wp.array(dtype=float)):
        a[0] = 1.0

    return kernel.options, kernel.module.options["fast_math"]


def registers_of_a_wrong_type():
    wp.kernel(_plain, module="unique", cuda_max_registers="many")


def registers_below_one():
    wp.kernel(_plain, module="unique", cuda_max_registers=0)


def spilling_of_a_wrong_type():
    wp.kernel(_plain, module="unique", enable_cuda_smem_spilling=1)


def cluster_of_a_wrong_type():
    wp.kernel(_plain, module="unique", cluster_dim=(2, 1))


def unknown_entry_point():
    wp.kernel(_plain, module="unique", entry_point_abi="other")


def cuda_options_are_kept():
    kernel = wp.kernel(_plain, module="unique", cuda_max_registers=64, cluster_dim=2, enable_cuda_smem_spilling=True)
    return {name: kernel.options[name] for name in ("cuda_max_registers", "cluster_dim", "enable_cuda_smem_spilling")}


def name_of_a_wrong_type():
    wp.kernel(_plain, name=3)


def kernel_of_a_module_by_name():
    return wp.kernel(_plain, module="objects_by_name").module is wp.get_module("objects_by_name")


def kernel_object_with_a_key():
    kernel = wp.Kernel(_plain, key="another", module=wp.get_module("objects_with_key"))
    return kernel.key, list(wp.get_module("objects_with_key").kernels)


def hash_of_a_kernel_before_and_after():
    @wp.kernel(module="unique")
    def kernel(a: wp.array(dtype=float)):
        a[0] = 17.25

    kernel.module.hash_module()
    return type(kernel.hash)


def hash_is_stable():
    module = _made(3.0).module
    return module.hash_module() == module.hash_module(), module.get_module_hash() == module.hash_module()


def hash_follows_the_source():
    return _made(4.0).module.hash_module() == _made(5.0).module.hash_module()


def hash_follows_options():
    module = _made(6.0).module
    before = module.hash_module()
    module.options["fast_math"] = True
    return module.hash_module() == before


def identifier_of_a_module():
    return wp.get_module("objects.identifier").get_module_identifier().rpartition("_")[0]


def overloads_of_a_generic_kernel():
    @wp.kernel(module="unique")
    def kernel(a: wp.array(dtype=Any)):
        a[0] = a[0] + a[0]

    none = kernel.get_overload([wp.array(dtype=float)])
    made = kernel.add_overload([wp.array(dtype=float)])
    again = kernel.get_overload([wp.array(dtype=float)])
    return none, made is again, made.is_generic, len(kernel.overloads), type(kernel.overloads)


def types_of_arguments():
    @wp.kernel(module="unique")
    def kernel(a: wp.array(dtype=Any), b: Any):
        a[0] = a[0] + a[0]

    found = kernel.infer_argument_types([wp.zeros(2, dtype=wp.vec3), 3.0])
    return found[0].dtype, found[0].ndim, found[1]


def overload_of_a_kernel_that_is_not_generic():
    wp.overload(_increment, [wp.array(dtype=float)])


def overload_by_a_stub():
    wp.launch(_doubled, dim=1, inputs=[a := wp.array([2.0], dtype=wp.float64)])
    return len(_doubled.overloads), a


def generic_kernel_is_generic():
    return _doubled.is_generic


def input_types_of_a_function():
    return [kind.__name__ for kind in _twice.input_types.values()]


def function_with_a_name():
    return wp.func(_plain_function, name="other").key


def function_in_a_module():
    function = wp.func(_plain_function, module="objects_functions")
    return function.module.name, list(wp.get_module("objects_functions").functions)


def inline_of_a_wrong_type():
    wp.func(_plain_function, inline=3)


def inlined_function():
    @wp.func(inline=False)
    def f(x: float):
        return x + 1.0

    @wp.kernel(module="unique")
    def kernel(a: wp.array(dtype=float)):
        a[0] = f(a[0])

    wp.launch(kernel, dim=1, inputs=[a := floats(1.0)])
    return a


def functions_are_called():
    return _twice(1.5), _twice(1.5, times=4)


def unset_options_of_a_module():
    options = wp.get_module("objects_unset").options
    names = "mode optimization_level cpu_compiler_flags cuda_output fast_math fuse_fp strip_hash block_dim max_unroll"
    return {name: options[name] for name in names.split()}


def set_options_of_a_module():
    module = wp.get_module("objects_set_options")
    wp.set_module_options({"max_unroll": 4, "enable_backward": False}, module)
    wp.set_module_options({"fast_math": True}, module)
    options = wp.get_module_options(module)
    return options["max_unroll"], options["enable_backward"], options["fast_math"], options["lineinfo"]


def unknown_options_of_a_module_are_kept():
    module = wp.get_module("objects_unknown_options")
    wp.set_module_options({"my_option": 3}, module)
    return wp.get_module_options(module)["my_option"]


def module_after_unload():
    kernel = _made(7.0)
    a = floats(1.0)
    wp.launch(kernel, dim=1, inputs=[a])
    kernel.module.unload()
    wp.launch(kernel, dim=1, inputs=[a])
    kernel.module.mark_modified()
    wp.launch(kernel, dim=1, inputs=[a])
    return a


def kernel_declared_again():
    def make(value):
        @wp.kernel(module="objects_declared_again")
        def kernel(a: wp.array(dtype=float)):
            a[0] = wp.static(value)

        return kernel

    first, second = make(1.0), make(2.0)
    a, b = floats(0.0), floats(0.0)
    wp.launch(second, dim=1, inputs=[b])
    wp.launch(first, dim=1, inputs=[a])
    return a, b


def loading_of_modules():
    wp.load_module(_made(8.0).module, device=["cpu"], block_dim=256, max_workers=1)
    wp.force_load(device="cpu", modules=[_made(8.0).module], max_workers=2)
    return bool(_made(8.0).module.load("cpu"))


def loading_of_a_module_that_is_not_there():
    wp.load_module("objects.not.there")


def loading_on_a_device_that_is_not_there():
    wp.load_module(_made(8.0).module, device="cuda:0")


def build_options():
    return vars(wp.ModuleBuildOptions())


def key_of_the_kernel_cache():
    return type(wp.get_cpu_kernel_cache_key()), wp.get_cpu_kernel_cache_key() == wp.get_cpu_kernel_cache_key()


def cache_of_link_time_code():
    return wp.clear_lto_cache()


def decorator_on_a_number():
    try:
        wp.kernel(3)
    except Exception:
        return "refused"


def result_annotation_none():
    def kernel(a: wp.array(dtype=float)) -> None:
        a[0] = 2.0

    wp.launch(wp.kernel(kernel, module="unique"), dim=1, inputs=[a := floats(0.0)])
    return a
