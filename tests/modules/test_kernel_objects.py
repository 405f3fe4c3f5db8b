"""Kernels, functions and modules as objects: names, identity, options, hashes."""

import concurrent.futures
import inspect
from typing import Any

import pytest
import warp as wp


def value_of(kernel, start=1.0):
    x = wp.full(1, start, dtype=float)
    wp.launch(kernel, dim=1, inputs=[x])
    return x.numpy()[0]


def make(factor, options=None):
    @wp.func
    def scaled(x: float):
        return x * factor

    @wp.kernel(module="unique", module_options=options)
    def scale(x: wp.array[float]):
        x[0] = scaled(x[0]) + wp.static(2.0 * factor)

    return scale


def test_equal_kernels_of_unique_modules_are_one_object():
    first, other = make(2.0), make(3.0)
    assert make(2.0) is first and make(3.0) is other and other is not first
    assert value_of(first) == 6.0 and value_of(other) == 9.0
    assert make(2.0) is first  # also once it is compiled
    assert make(2.0, {"fast_math": True}) is not first
    assert first.module.name != other.module.name and first.module.name.startswith("make__locals__scale_")


class Holder:
    def __init__(self, value):
        self.value = value

    def make(self):
        @wp.kernel(module="unique")
        def held(x: wp.array[float]):
            x[0] = wp.static(self.value)

        return held


def test_a_value_that_changed_makes_another_kernel():
    holder = Holder(2.0)
    first = holder.make()
    assert holder.make() is first
    holder.value = 5.0
    second = holder.make()
    assert second is not first and value_of(second) == 5.0
    # The first was never compiled: its meaning has changed too, and no other kernel may be taken for it.
    holder.value = 2.0
    assert value_of(holder.make()) == 2.0


SCALE = 3.0


def make_with_a_global():
    @wp.kernel(module="unique")
    def scaled_by_global(x: wp.array[float]):
        x[0] = SCALE * x[0]

    return scaled_by_global


def test_a_compiled_kernel_is_not_taken_for_one_with_another_constant(monkeypatch):
    first = make_with_a_global()
    assert value_of(first) == 3.0
    monkeypatch.setitem(globals(), "SCALE", 4.0)
    second = make_with_a_global()
    assert second is not first and value_of(second) == 4.0
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    assert make_with_a_global() is first


def test_generic_kernels_are_one_where_their_captured_values_are_plain():
    def make(factor, values=None):
        @wp.kernel(module="unique")
        def generic(x: wp.array(dtype=Any)):
            x[0] = x[0] * x.dtype(factor)
            if wp.static(values is not None):
                x[0] = x[0] + x.dtype(wp.static(values[0]))

        return generic

    assert make(2.0) is make(2.0) and make(2.0) is not make(3.0)
    values = [1.0]
    first = make(2.0, values)
    values[0] = 7.0
    assert make(2.0, values) is not first  # a list can change at any time


def test_a_mistake_in_a_unique_kernel_shows_at_its_launch():
    @wp.kernel(module="unique")
    def wrong(x: wp.array[float]):
        x[0] = not_there  # noqa: F821

    with pytest.raises(wp.CompileError, match="not_there"):
        wp.launch(wrong, dim=1, inputs=[wp.zeros(1)])


@wp.kernel
def increment(x: wp.array[float]):
    """Adds one."""
    x[wp.tid()] = x[wp.tid()] + 1.0


def test_what_a_kernel_shows():
    assert (increment.key, increment.__name__, increment.__doc__) == ("increment", "increment", "Adds one.")
    assert increment.__wrapped__ is increment.func and str(inspect.signature(increment.func)).startswith("(x: ")
    assert increment.options == {} and increment.module is wp.get_module(__name__) and not increment.is_generic
    with pytest.raises(NotImplementedError, match=r"wp\.launch\(increment"):
        increment(3)


def plain(x: wp.array[float]):
    x[0] = 2.0


def test_kernels_without_the_decorator():
    kernel = wp.Kernel(plain)
    assert kernel.key == "plain" and kernel.module.name == __name__ and value_of(kernel) == 2.0
    module = wp.get_module("kernels_without_the_decorator")
    named = wp.Kernel(plain, key="other", module=module, options={"enable_backward": False})
    assert module.kernels == {"other": named} and named.options == {"enable_backward": False}
    assert not named.enable_backward and value_of(named) == 2.0
    for wrong, kind in (({"func": 3}, TypeError), ({"key": 3}, TypeError), ({"options": 3}, TypeError)):
        with pytest.raises(kind):
            wp.Kernel(**{"func": plain, **wrong})


def test_names_and_options_of_the_decorator():
    named = wp.kernel(plain, name="renamed", enable_backward=False, launch_bounds=(256, 2), cluster_dim=1)
    assert named.key == named.__name__ == "renamed"
    assert named.options == {"enable_backward": False, "launch_bounds": (256, 2), "cluster_dim": 1}
    assert (named.launch_bounds, named.cuda_max_registers, named.cluster_dim) == ((256, 2), None, 1)
    assert wp.get_module(__name__).kernels["renamed"] is named and value_of(named) == 2.0
    for wrong, kind in (
        ({"name": "a b"}, ValueError),
        ({"name": 3}, TypeError),
        ({"cuda_max_registers": 0}, ValueError),
        ({"cuda_max_registers": "many"}, TypeError),
        ({"cluster_dim": (2, 1)}, TypeError),
        ({"enable_cuda_smem_spilling": 1}, TypeError),
        ({"grid_stride": "yes"}, TypeError),
        ({"entry_point_abi": "other"}, ValueError),
        ({"module_options": {"no_option": 1}}, ValueError),
        ({"module_options": []}, TypeError),
    ):
        with pytest.raises(kind, match=r"kernel\(\): "):
            wp.kernel(plain, **wrong)


@wp.kernel
def doubled(x: wp.array(dtype=Any)):
    x[0] = x[0] + x[0]


def test_overloads_of_a_generic_kernel():
    kernel = wp.kernel(doubled.func)
    assert kernel.overloads == {} and kernel.get_overload([wp.array(dtype=float)]) is None
    made = kernel.add_overload([wp.array(dtype=float)])
    assert made is kernel.get_overload([wp.array(dtype=float)]) and not made.is_generic
    assert list(kernel.overloads.values()) == [made] and "float32" in next(iter(kernel.overloads))
    (found,) = kernel.infer_argument_types([wp.zeros(2, dtype=wp.vec3)])
    assert found.dtype is wp.vec3 and found.ndim == 1
    assert increment.add_overload([wp.array(dtype=float)]) is increment
    with pytest.raises(wp.UsageError, match="takes 1"):
        increment.infer_argument_types([])


renamed_doubled = wp.kernel(doubled.func, name="doubled_by_another_name")


@wp.overload
def doubled_by_another_name(x: wp.array(dtype=wp.float64)) -> None: ...


def test_a_stub_finds_a_kernel_by_its_key():
    assert doubled_by_another_name is renamed_doubled and len(renamed_doubled.overloads) == 1


@wp.func
def twice(x: float, times: int = 2):
    """Several times x."""
    return x * float(times)


def test_what_a_function_shows():
    assert (twice.key, twice.func.__name__, twice.is_builtin()) == ("twice", "twice", False)
    assert twice.input_types == {"x": float, "times": int} and twice.defaults == {"times": 2}
    assert str(inspect.signature(twice)) == str(twice.signature) == "(x: float, times: int = 2)"
    assert twice.module is wp.get_module(__name__) and twice.module.functions["twice"] is twice
    assert twice(1.5) == 3.0
    assert isinstance(twice, wp.Function) and isinstance(wp.sin, wp.Function) and not isinstance(3, wp.Function)
    assert wp.sin.is_builtin() and wp.sin.key == "sin" and wp.sin.func is None


def test_hints_and_names_of_functions():
    def f(x: float):
        return x

    assert wp.func(f, name="other").key == "other" and wp.func(f, inline=True).inline_hint is True
    assert wp.func(f, module="functions_of_their_own").module.name == "functions_of_their_own"
    for wrong, kind in (({"inline": 3}, TypeError), ({"name": "a b"}, ValueError), ({"module": 3}, TypeError)):
        with pytest.raises(kind, match=r"func\(\): "):
            wp.func(f, **wrong)


def test_options_of_a_module_are_complete():
    module = wp.get_module("options_are_complete")
    assert module.options["mode"] is None and module.options["max_unroll"] == 16 and not module.options["fast_math"]
    assert set(module.options) >= {"block_dim", "fuse_fp", "strip_hash", "cpu_compiler_flags", "deterministic"}
    kernel = wp.Kernel(plain, module=module)
    module.options["enable_backward"] = False
    assert not kernel.enable_backward and module.options["enable_backward"] is False
    wp.set_module_options({"max_unroll": 4, "my_option": "kept"}, module)
    assert wp.get_module_options(module)["max_unroll"] == 4 and module.options["my_option"] == "kept"
    assert not wp.get_module_options(module)["enable_backward"]
    with pytest.raises(ValueError, match="mode is 'fast'"):
        wp.set_module_options({"mode": "fast"}, module)


def test_hashes_change_with_what_is_compiled_and_with_nothing_else():
    kernels = []  # a module does not keep its kernels

    def module_of(factor, body):
        @wp.func
        def f(x: float):
            return x * factor

        if body:

            def k(x: wp.array[float]):
                x[0] = f(x[0])
        else:

            def k(x: wp.array[float]):
                renamed = f(x[0])  # the same work under another name
                x[0] = renamed

        kernels.append(wp.kernel(k, module="unique"))
        return kernels[-1].module

    first = module_of(2.0, True)
    assert first.hash_module() == first.hash_module() == first.get_module_hash(256)
    assert module_of(2.0, True) is first and module_of(2.0, False).hash_module() == first.hash_module()
    assert module_of(3.0, True).hash_module() != first.hash_module()
    assert first.get_module_identifier().startswith("wp_")
    before = first.hash_module()
    first.options["fast_math"] = True
    assert first.hash_module() != before


def test_the_hash_of_a_kernel_is_known_once_it_is_compiled():
    def k(x: wp.array[float]):
        x[0] = 21.5

    kernel = wp.kernel(k, module="hash_of_a_kernel")
    assert kernel.hash is None
    value_of(kernel)
    assert isinstance(kernel.hash, bytes) and len(kernel.hash) == 32


def test_compiled_code_can_be_forgotten():
    kernel = make(11.0)
    for forget in (kernel.module.unload, kernel.module.mark_modified):
        assert value_of(kernel) == 33.0
        forget()
    assert value_of(kernel) == 33.0 and kernel.module.load("cpu") and kernel.module.load(None, block_dim=64)


def test_a_kernel_with_a_mistake_leaves_the_others_of_its_module():
    module = wp.get_module("one_of_them_is_wrong")

    def wrong(x: wp.array[float]):
        x[0] = not_there  # noqa: F821

    good, bad = wp.Kernel(plain, module=module), wp.Kernel(wrong, module=module)
    with pytest.raises(wp.CompileError):
        wp.load_module(module, device=["cpu"], max_workers=1)
    assert good.hash is not None and bad.hash is None and value_of(good) == 2.0
    assert len(module.hash_module()) == 32


@pytest.mark.parametrize(
    ("count", "asked", "option", "expected"),
    [(3, 2, 0, 2), (3, 1, 2, 1), (3, -1, 0, 1), (2, 5, 0, 2), (3, None, 2, 2), (3, 0, 1, 1)],
)
def test_a_program_says_how_many_kernels_are_compiled_at_a_time(monkeypatch, count, asked, option, expected):
    threads = []

    class Pool(concurrent.futures.ThreadPoolExecutor):
        def __init__(self, max_workers):
            super().__init__(max_workers)
            threads.append(max_workers)

    monkeypatch.setattr(concurrent.futures, "ThreadPoolExecutor", Pool)
    monkeypatch.setattr(wp.config, "load_module_max_workers", option)
    module = wp.Module("several_at_a_time")
    kernels = [wp.Kernel(plain, key=f"plain{i}", module=module) for i in range(count)]
    wp.load_module(module, max_workers=asked)
    wp.force_load(modules=[module], max_workers=asked)
    assert threads == [expected] * 2 and all(kernel.hash is not None for kernel in kernels)


def test_the_source_is_read_when_a_kernel_is_declared(tmp_path):
    import importlib.util

    path = tmp_path / "soon_gone.py"
    path.write_text("import warp as wp\n\n@wp.kernel\ndef k(x: wp.array[float]):\n    x[0] = 5.0\n")
    spec = importlib.util.spec_from_file_location("soon_gone", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    path.write_text("# another text\n" * 10)
    assert value_of(module.k) == 5.0
    path.unlink()
    assert value_of(wp.Kernel(module.k.func, key="again")) == 5.0


def test_keys_of_caches_and_options_of_builds():
    assert wp.get_cpu_kernel_cache_key() == wp.get_cpu_kernel_cache_key(cpu_compiler_flags=None)
    assert wp.get_cpu_kernel_cache_key() != wp.get_cpu_kernel_cache_key(cpu_compiler_flags="-O2")
    assert wp.ModuleBuildOptions(extra_cpu_preamble="x").extra_cpu_preamble == "x"
    assert wp.clear_lto_cache() is None


@wp.func
def of_two_types(x: float):
    return 2.0 * x


@wp.func
def of_two_types(x: wp.vec3):  # noqa: F811
    return 2.0 * x


@wp.kernel
def described(x: wp.array[float], count: int, *, scale: float = 1.0):
    # a line of text
    x[wp.tid()] = of_two_types(x[count]) * scale


def test_a_kernel_tells_its_source_and_its_parameters():
    source = described.adj
    assert source.fun_name == "described" and source.filename == __file__ and source.func is described.func
    assert [argument.label for argument in source.args] == ["x", "count", "scale"]
    assert [argument.type for argument in source.args][1:] == [int, float]
    assert source.arg_types["x"].dtype is wp.float32
    lines = open(__file__).read().splitlines()
    assert source.source_lines[0] == lines[source.fun_lineno - 1] == "@wp.kernel"
    assert "# a line of text" in source.source


def test_a_function_lists_its_definitions_by_their_types():
    overloads = of_two_types.user_overloads
    assert list(overloads) == ["float", "vec3f"]
    assert [one.adj.arg_types["x"] for one in overloads.values()] == [float, wp.vec3]
    assert overloads["float"].adj.fun_lineno < overloads["vec3f"].adj.fun_lineno


def test_annotations_that_are_strings_are_evaluated():
    Vector = wp.vec3

    @wp.kernel
    def generic(x: "wp.array2d[Any]", v: "Vector", n: "Unknown"):  # noqa: F821
        x[0, 0] = x[0, 0] + x.dtype(v[0])

    x, v, n = generic.adj.args
    assert wp.types.is_array(x.type) and x.type.dtype is Any and x.type.ndim == 2
    assert v.type == "Vector" and n.type == "Unknown"  # the kernel does not capture the variable

    @wp.func
    def f(x: "Vector"):
        return Vector(x[0])

    assert f.adj.arg_types == {"x": wp.vec3}


def test_the_name_in_machine_code_changes_with_the_kernel():
    first, other = make(2.0), make(3.0)
    value_of(first), value_of(other)
    names = [kernel.get_mangled_name() for kernel in (first, other)]
    assert names[0] != names[1] and all(name.startswith("make__locals__scale_") for name in names)
    assert names[0] == make(2.0).get_mangled_name()


def test_a_module_gives_every_option_a_value():
    module = wp.get_module("resolved")
    module.options["fast_math"] = True
    options = module.resolve_options(wp.config)
    assert options["fast_math"] is True and options["mode"] == wp.config.mode
    assert set(options) == set(module.options) and module.references == set()


def test_a_module_says_where_it_is_compiled():
    module = wp.get_module("tests_of_execs")

    def double(x: wp.array[float]):
        x[wp.tid()] *= 2.0

    kernel = wp.kernel(double, module=module, name="double")
    other = wp.kernel(double, module=module, name="other")
    assert module.execs == {} and module.hashers == {}
    x = wp.ones(3, dtype=float)
    wp.launch(kernel, dim=3, inputs=[x])
    device = wp.get_device()
    ((key, code),) = module.execs.items()
    assert key == (device.context, 256 if device.is_cuda else 1)
    assert (code.device, code.block_dim, code.kernel_names) == (device, key[1], ["double"])
    assert code.module_hash == module.hash_module()
    ((block_dim, hasher),) = module.hashers.items()
    assert block_dim == key[1] and hasher.get_module_hash() == module.get_module_hash()
    assert hasher.hash_kernel(kernel) == hasher.kernel_hashes[kernel] == kernel.hash
    module.load(device)
    assert module.execs[key].kernel_names == ["double", "other"]
    module.unload()
    assert module.execs == {} and module.hashers == {}
    assert other.compiled_on() == []
