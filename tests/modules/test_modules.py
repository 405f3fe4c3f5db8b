"""Modules and options of kernels, closures that share code, functions defined anew."""

import enum
import linecache
import types

import pytest
import warp as wp


class Mode(enum.IntEnum):
    OFF = 0
    ON = 7


def run(text, name, **names):
    """A module as a notebook would make it: its text can be read again."""
    module = types.ModuleType(name)
    module.wp = wp
    module.__dict__.update(names)
    run_in(module, text)
    return module


def run_in(module, text):
    path = f"<cell {len(linecache.cache)} of {module.__name__}>"
    linecache.cache[path] = (len(text), None, text.splitlines(True), path)
    exec(compile(text, path, "exec"), module.__dict__)


KERNEL = "@wp.kernel\ndef k(x: wp.array[float]):\n    x[0] = f(x[0])\n"


def value_of(kernel):
    x = wp.ones(1)
    wp.launch(kernel, dim=1, inputs=[x])
    return x.numpy()[0]


def test_a_function_defined_again_is_used_by_kernels_launched_before():
    module = run("@wp.func\ndef f(x: float):\n    return x + 1.0\n" + KERNEL, "notebook_a")
    assert value_of(module.k) == 2.0
    run_in(module, "@wp.func\ndef f(x: float):\n    return x + 41.0\n")
    assert value_of(module.k) == 42.0


def test_a_kernel_defined_again_is_another_kernel():
    module = run("@wp.kernel\ndef k(x: wp.array[float]):\n    x[0] = 2.0\n", "notebook_b")
    first = module.k
    run_in(module, "@wp.kernel\ndef k(x: wp.array[float]):\n    x[0] = 3.0\n")
    assert (value_of(first), value_of(module.k)) == (2.0, 3.0)
    assert wp.get_module("notebook_b").kernels == {"k": module.k}


def test_recorded_launches_outlive_a_redefinition():
    module = run("@wp.func\ndef f(x: float):\n    return x + 1.0\n" + KERNEL, "notebook_c")
    x = wp.ones(1)
    command = wp.launch(module.k, dim=1, inputs=[x], record_cmd=True)
    run_in(module, "@wp.func\ndef f(x: float):\n    return 10.0 * x\n")
    assert value_of(module.k) == 10.0
    command.launch()
    assert x.numpy()[0] == 2.0


def make(factor, function=None):
    @wp.kernel(module="unique")
    def k(x: wp.array[float]):
        i = wp.tid()
        x[i] = factor * x[i] + wp.static(2.0 * factor)
        if wp.static(function is not None):
            x[i] = function(x[i])

    return k


@pytest.mark.host_memory("asks about the CPU's code", on="cuda")
def test_closures_with_equal_values_share_their_code():
    x = wp.ones(1)
    found = []
    for factor in [2.0, 3.0, 2.0, 3.0, 2.0]:
        x.fill_(1.0)
        wp.launch(make(factor), dim=1, inputs=[x])
        found.append(float(x.numpy()[0]))
    assert found == [6.0, 9.0, 6.0, 9.0, 6.0]
    again = make(3.0)
    assert again.compile()["shared"] and not make(-1.5).compile()["shared"]


@pytest.mark.host_memory("asks about the CPU's code", on="cuda")
def test_closures_over_different_functions_do_not_share():
    def shifted(by):
        @wp.func
        def shift(x: float):
            return x + by

        return shift

    assert [value_of(make(0.0, shifted(by))) for by in (1.0, 2.0, 1.0)] == [1.0, 2.0, 1.0]
    assert make(0.0, shifted(1.0)).compile()["shared"]
    assert not make(0.0, shifted(5.0)).compile()["shared"]


def test_closures_over_different_types_and_objects_do_not_share():
    def convert(dtype, holder):
        @wp.kernel
        def k(x: wp.array(dtype=dtype)):
            x[0] = dtype(7) / dtype(2) + dtype(holder.shift)

        return k

    def result(dtype, shift):
        x = wp.zeros(1, dtype=dtype)
        wp.launch(convert(dtype, types.SimpleNamespace(shift=shift)), dim=1, inputs=[x])
        return float(x.numpy()[0])

    assert [result(*case) for case in [(wp.float64, 0), (wp.int32, 0), (wp.float64, 1), (wp.float64, 0)]] == [
        3.5,
        3.0,
        4.5,
        3.5,
    ]


def test_enumerations_and_class_attributes_are_constants():
    class Settings:
        count = 3
        mode = Mode.ON

        class Inner:
            weight = 0.5

    @wp.kernel
    def k(mode: Mode, out: wp.array[float]):
        if mode == Mode.ON:
            out[0] = float(Settings.count) + Settings.Inner.weight
        out[1] = float(int(Settings.mode))
        out[2] = float(Mode.ON.value + Settings.mode.value)

    out = wp.zeros(3)
    wp.launch(k, dim=1, inputs=[Mode.ON, out])
    assert out.numpy().tolist() == [3.5, 7.0, 14.0]


# ---- options ----


def test_options_of_a_module_hold_for_its_kernels():
    text = "@wp.kernel\ndef k(x: wp.array[float]):\n    assert x[0] > 5.0\n    x[0] = 1.0\n"
    module = run(text, "checked")
    value_of(module.k)
    wp.set_module_options({"mode": "debug"}, module)
    with pytest.raises(RuntimeError):
        value_of(module.k)
    assert wp.get_module_options("checked")["mode"] == "debug"
    assert wp.get_module("checked").options["mode"] == "debug"
    wp.set_module_options({"mode": "release"}, "checked")
    assert value_of(module.k) == 1.0


def test_options_of_a_kernel_go_before_those_of_its_module():
    module = wp.Module("options_of_kernels", {"enable_backward": False, "max_unroll": 4})

    @wp.kernel(module=module)
    def plain(x: wp.array[float]):
        x[0] = 1.0

    @wp.kernel(module=module, enable_backward=True)
    def own(x: wp.array[float]):
        x[0] = 1.0

    assert (plain.enable_backward, own.enable_backward) == (False, True)
    wp.set_module_options({"enable_backward": True}, module)
    assert plain.enable_backward and own.module is module


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"module_options": {"speed": 3}}, "no module option 'speed'"),
        ({"module_options": {"mode": "fast"}}, "expected 'debug' or 'release'"),
        ({"module_options": {"optimization_level": 9}}, "from 0 to 3"),
        ({"module_options": {"fast_math": "yes"}}, "expected True or False"),
        ({"launch_bounds": 5000}, "launch_bounds is 5000"),
        ({"launch_bounds": (128, 2, 3)}, "launch_bounds"),
        ({"launch_bounds": "many"}, "launch_bounds"),
        ({"grid_stride": 1}, "grid_stride is 1"),
        ({"module": 4}, r"kernel\(\): module is 4"),
        ({"enable_backward": "no"}, "enable_backward is 'no'"),
    ],
)
def test_wrong_options_are_named(options, words):
    with pytest.raises(wp.UsageError, match=words):

        @wp.kernel(**options)
        def k(x: wp.array[float]):
            x[0] = 1.0


def test_wrong_options_of_a_module_change_nothing():
    module = wp.Module("wrong_options")
    before = dict(module.options)
    for options in ({"fast_math": "yes"}, {"max_unroll": -1}, {"fast_math": True, "mode": "quick"}):
        with pytest.raises(wp.UsageError, match=r"set_module_options\(\)"):
            wp.set_module_options(options, module)
    assert module.options == before
    wp.set_module_options(wp.get_module_options(module), module)


def test_options_for_cuda_are_kept():
    @wp.kernel(launch_bounds=(256, 2), grid_stride=False, module_options={"block_dim": 64})
    def k(x: wp.array[float]):
        x[0] = 1.0

    assert (k.launch_bounds, k.grid_stride) == ((256, 2), False)
    assert value_of(k) == 1.0


# ---- loading ----


def test_loading_compiles_all_kernels_and_says_what_is_wrong():
    text = "".join(f"@wp.kernel\ndef k{i}(x: wp.array[float]):\n    x[0] = wp.sin(x[0]) + {i}.5\n" for i in range(4))
    module = run(text, "loaded.part")
    wp.load_module("loaded", recursive=True)
    assert len(wp.get_module("loaded.part").kernels) == 4
    wp.force_load(modules=[module])
    run_in(module, "@wp.kernel\ndef wrong(x: wp.array[float]):\n    x[0] = missing\n")
    with pytest.raises(wp.CompileError, match="missing"):
        wp.load_module(module)
    with pytest.raises(wp.UsageError, match="no module 'unheard_of'"):
        wp.load_module("unheard_of")
    with pytest.raises(wp.UsageError, match="expected its name"):
        wp.load_module(3)


def test_a_first_launch_needs_no_other_kernel_of_the_module():
    text = "@wp.kernel\ndef wrong(x: wp.array[float]):\n    x[0] = missing\n"
    module = run(text + "@wp.kernel\ndef right(x: wp.array[float]):\n    x[0] = 2.0\n", "half_wrong")
    x = wp.zeros(1)
    wp.launch(module.right, dim=1, inputs=[x])
    assert x.numpy()[0] == 2.0
    with pytest.raises(wp.CompileError, match="missing"):
        wp.launch(module.wrong, dim=1, inputs=[x])


# ---- gradients of functions, declared ----


@wp.func
def root(x: float):
    return wp.sqrt(x)


def test_declared_gradients_are_kept_with_their_function():
    @wp.func_grad(root)
    def root_gradient(x: float, adj_ret: float):
        pass

    @wp.func_replay(root)
    def root_replay(x: float):
        return wp.sqrt(x)

    assert root.custom_grad_func is root_gradient and root.custom_replay_func is root_replay


def test_declared_gradients_must_fit_their_function():
    with pytest.raises(wp.UsageError, match="must begin with those of 'root'"):

        @wp.func_grad(root)
        def wrong_gradient(y: float):
            pass

    with pytest.raises(wp.UsageError, match="must be the same"):

        @wp.func_replay(root)
        def wrong_replay(x: float, y: float):
            pass

    with pytest.raises(wp.UsageError, match="made with @wp.func"):
        wp.func_grad(3)
