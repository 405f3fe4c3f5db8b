"""Attempts of hostile programs: none ends the process, and each gets an answer."""

import os
import subprocess
import sys
import textwrap
from typing import Any

import numpy as np
import pytest
import warp as wp

PROGRAM = """
import warp as wp

@wp.func
def twice(a: float):
    return a * 2.0

@wp.kernel
def k(x: wp.array[float]):
    i = wp.tid()
    x[i] = twice(x[i]) + 1.0

x = wp.ones(100)
wp.launch(k, dim=100, inputs=[x])
assert (x.numpy() == 3.0).all()
print(k.compile()["from_cache"])
"""


@pytest.fixture
def program(tmp_path):
    """Starts a program in a process of its own, with a cache of its own; gives what runs it."""

    def start(text=PROGRAM, cache=tmp_path / "cache", **environment):
        path = tmp_path / "program.py"
        if not path.exists() or path.read_text() != textwrap.dedent(text):  # others may be reading it
            path.write_text(textwrap.dedent(text))
        variables = {**os.environ, "WARP_CACHE_PATH": str(cache), **environment}
        return subprocess.Popen(
            [sys.executable, str(path)], env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def run(*arguments, **keywords):
        process = start(*arguments, **keywords)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, f"exit code {process.returncode}\n{out}\n{err}"
        return out.strip()

    run.start = start
    return run


def entries(cache):
    return sorted(path for path in cache.rglob("*") if path.is_file())


# ---- the disk cache ----


def test_sixteen_processes_start_cold_on_one_cache(program, tmp_path):
    processes = [program.start() for _ in range(16)]
    for process in processes:
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
    assert program() == "True"
    assert not [path for path in entries(tmp_path / "cache") if "tmp" in path.name]


def test_the_cache_key_does_not_depend_on_the_process(program, tmp_path):
    assert program(PYTHONHASHSEED="1") == "False"
    before = entries(tmp_path / "cache")
    assert program(PYTHONHASHSEED="2") == "True"
    assert entries(tmp_path / "cache") == before


DAMAGES = {
    "empty": lambda data: b"",
    "half": lambda data: data[: len(data) // 2],
    "one byte short": lambda data: data[:-1],
    "one byte longer": lambda data: data + b"x",
    "one bit flipped": lambda data: data[:200] + bytes([data[200] ^ 1]) + data[201:],
    "garbage": lambda data: bytes(range(256)) * (len(data) // 256),
}


def test_damaged_entries_are_rebuilt(program, tmp_path):
    program()
    # on GPUs what the driver made of the kernel, too
    good = {entry: entry.read_bytes() for entry in entries(tmp_path / "cache")}
    for name, damage in DAMAGES.items():
        for entry, data in good.items():
            entry.write_bytes(damage(data))
        assert program() == "False", name
        assert program() == "True", name


def test_a_file_where_the_cache_folder_should_be(program, tmp_path):
    (tmp_path / "cache").write_text("a file")
    assert program() == "False"
    assert (tmp_path / "cache").read_text() == "a file"


def test_a_cache_folder_that_cannot_be_made(program):
    assert program(cache="/proc/weft") == "False"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_cache_folder(program, tmp_path):
    (tmp_path / "cache").mkdir(mode=0o555)
    assert program() == "False"


def test_a_cache_folder_deleted_while_running(program):
    assert program(
        PROGRAM
        + """
import os, shutil

shutil.rmtree(os.environ["WARP_CACHE_PATH"])

@wp.kernel
def later(x: wp.array[float]):
    x[wp.tid()] = 7.0

wp.launch(later, dim=100, inputs=[x])
assert (x.numpy() == 7.0).all()
shutil.rmtree(os.environ["WARP_CACHE_PATH"], ignore_errors=True)
wp.clear_kernel_cache()
wp.launch(k, dim=100, inputs=[x])
"""
    ).startswith("False")


# ---- source text ----


def test_source_of_a_module_in_a_zip_file(program):
    program("""
        import os, sys, tempfile, zipfile
        import warp as wp

        path = os.path.join(tempfile.mkdtemp(), "modules.zip")
        with zipfile.ZipFile(path, "w") as file:
            text = "import warp as wp\\n@wp.kernel\\ndef k(x: wp.array[float]):\\n    x[wp.tid()] = 4.0\\n"
            file.writestr("zipped.py", text)
        sys.path.insert(0, path)
        import zipped

        x = wp.zeros(2)
        wp.launch(zipped.k, dim=2, inputs=[x])
        assert x.numpy().tolist() == [4.0, 4.0]
    """)


# ---- large and strange kernels ----


def kernel_from(text, name):
    import linecache

    file = f"<test {name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    scope = {"wp": wp, "__name__": "robustness"}
    exec(compile(text, file, "exec"), scope)
    return scope["k"]


def run_body(body, name):
    k = kernel_from(
        f"@wp.kernel\ndef k(x: wp.array[float], n: int):\n    i = wp.tid()\n{textwrap.indent(body, '    ')}\n", name
    )
    x = wp.array(np.arange(8), dtype=float)
    wp.launch(k, dim=8, inputs=[x, 3])
    return x.numpy()


def nested(head, depth, innermost):
    lines = [" " * level + head.format(level=level) for level in range(depth)]
    return "\n".join([*lines, " " * depth + innermost])


def test_sixty_nested_branches():
    assert (run_body(nested("if n > -{level} - 1:", 60, "x[i] = 5.0"), "ifs") == 5.0).all()


def test_fifteen_nested_loops():
    x = run_body(nested("for a{level} in range(n - 2):", 15, "x[i] += 1.0"), "loops")
    np.testing.assert_array_equal(x, np.arange(8) + 1.0)


def test_nested_constant_loops_do_not_multiply_without_bound():
    x = run_body(nested("for a{level} in range(16):", 4, "x[i] += 1.0"), "unrolled")
    np.testing.assert_array_equal(x, np.arange(8) + 16.0**4)


def test_an_expression_of_500_terms():
    np.testing.assert_array_equal(run_body("x[i] = " + " + ".join(["x[i]"] * 500), "terms"), np.arange(8) * 500.0)


def test_an_expression_of_190_parentheses():
    x = run_body("x[i] = " + "(" * 190 + "x[i]" + " + 1.0)" * 190, "parentheses")
    np.testing.assert_array_equal(x, np.arange(8) + 190.0)


def test_a_kernel_of_a_thousand_lines():
    x = run_body("\n".join(["x[i] = x[i] + 1.0"] * 1000), "lines")
    np.testing.assert_array_equal(x, np.arange(8) + 1000.0)


def test_a_hundred_parameters_and_none():
    names = [f"a{i}" for i in range(100)]
    parameters = ", ".join(f"{name}: wp.array[float]" for name in names)
    body = "".join(f"    {name}[i] += {i}.0\n" for i, name in enumerate(names))
    arrays = [wp.zeros(4) for _ in names]
    wp.launch(kernel_from(f"@wp.kernel\ndef k({parameters}):\n    i = wp.tid()\n{body}", "many"), dim=4, inputs=arrays)
    assert [a.numpy()[3] for a in arrays] == list(range(100))
    wp.launch(kernel_from("@wp.kernel\ndef k():\n    pass\n", "none"), dim=4)


def test_names_that_are_long_and_not_ascii():
    name = "größe_" + "q" * 5000
    assert (run_body(f"{name} = 2.0\nx[i] = {name}", "names") == 2.0).all()


def test_a_constant_keeps_the_value_of_the_first_launch():
    k = kernel_from("C = 1.0\n@wp.kernel\ndef k(x: wp.array[float]):\n    x[0] = C\n", "constant")
    x = wp.zeros(1)
    wp.launch(k, dim=1, inputs=[x])
    k.func.__globals__["C"] = 2.0
    wp.launch(k, dim=1, inputs=[x])
    assert x.numpy()[0] == 1.0


def test_a_failed_compile_is_tried_again_once_its_cause_is_gone():
    k = kernel_from("@wp.kernel\ndef k(x: wp.array[float]):\n    x[0] = later\n", "later")
    x = wp.zeros(1)
    for _ in range(2):
        with pytest.raises(wp.CompileError, match="'later' is not defined"):
            wp.launch(k, dim=1, inputs=[x])
    k.func.__globals__["later"] = 3.0
    wp.launch(k, dim=1, inputs=[x])
    assert x.numpy()[0] == 3.0


def test_exceptions_that_are_no_mistakes_pass_through_a_static_expression():
    with pytest.raises(SystemExit):
        run_body("y = wp.static(exit(3))", "exit")


def test_what_is_no_function_cannot_become_a_kernel():
    k = kernel_from("@wp.kernel\ndef k(x: float):\n    pass\n", "twice")
    for wrong in (k, len, dict, 3):
        with pytest.raises(wp.UsageError, match="expected a Python function"):
            wp.kernel(wrong)


def test_a_kernel_object_without_its_constructor(program):
    program("""
        import warp as wp
        try:
            wp.launch(wp.Kernel.__new__(wp.Kernel), dim=1)
        except wp.UsageError:
            pass
    """)


# ---- numbers ----


@pytest.mark.parametrize(
    "expression, expected",
    [
        ("10 / (n - 3)", 0),
        ("10 % (n - 3)", 0),
        ("10 // (n - 3)", 0),
        ("(-2147483647 - (n - 2)) / (n - 4)", 0),
        ("(-2147483647 - (n - 2)) % (n - 4)", 0),
        ("n << (n + 60)", -(2**31)),
        ("int(wp.sqrt(-1.0 * float(n)))", 0),
        ("int(1.0e30 * float(n))", 2**31 - 1),
    ],
)
def test_integer_operations_without_a_result_do_not_trap(expression, expected):
    assert run_body(f"x[i] = float({expression})", expression).tolist() == [float(np.float32(expected))] * 8


@pytest.mark.parametrize("shape", [2**60, (2**31, 2**31, 2**31), 2**62])
def test_absurd_sizes_are_memory_errors(shape):
    for make in (wp.zeros, wp.empty, lambda shape: wp.full(shape, 1.0)):
        with pytest.raises(MemoryError) as caught:
            make(shape)
        assert isinstance(caught.value, wp.UsageError)


def test_dim_as_a_numpy_array():
    k = kernel_from("@wp.kernel\ndef k(x: wp.array2d[float]):\n    i, j = wp.tid()\n    x[i, j] = 1.0\n", "dim")
    x = wp.zeros((2, 3))
    wp.launch(k, dim=np.array([2, 3]), inputs=[x])
    assert (x.numpy() == 1.0).all()


# ---- debug mode ----

DEBUG = {
    "x[i] = x[i + 5]": IndexError,
    "x[i + 5] = 1.0": IndexError,
    "x[i - 9] = 1.0": IndexError,
    "y = 1 / i": None,
    "assert i < 2, 'i must be small: 100%d %s %n'": None,
}


@pytest.mark.parametrize("statement", DEBUG)
def test_debug_mode_raises_at_the_line(statement):
    head = "@wp.kernel(module_options={'mode': 'debug'})\ndef k(x: wp.array[float]):\n    i = wp.tid()\n"
    text = f"{head}    {statement}\n"
    if "1 / i" in statement:
        text += "    x[i] = float(y)\n"
    with pytest.raises(RuntimeError) as caught:
        wp.launch(kernel_from(text, statement), dim=8, inputs=[wp.zeros(8)])
    message = str(caught.value)
    assert statement in message and ":4:" in message, message
    if DEBUG[statement]:
        assert isinstance(caught.value, DEBUG[statement])


# ---- printing ----


@pytest.mark.host_memory("prints come when the device is synchronized", on="cuda")
def test_prints_go_to_the_sys_stdout_of_the_launch(capsys):
    run_body("print(i, n, wp.vec3(1.0), True, wp.int64(-3), wp.uint8(200), 'text')", "print")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 8 and all(line.endswith("text") for line in lines)


@pytest.mark.host_memory("prints come when the device is synchronized", on="cuda")
def test_printed_bytes_that_are_no_utf_8_are_escaped(capsys):
    run_body(r'wp.printf("%c%c|%c|%c\n", 0xC3, 0xA9, 0xFF, 0)', "bytes")
    assert capsys.readouterr().out == "\u00e9|\\xff|\0\n" * 8


@pytest.mark.host_memory("prints come when the device is synchronized", on="cuda")
def test_prints_into_a_stdout_that_is_closed_or_broken(program):
    program("""
        import sys
        import warp as wp

        @wp.kernel
        def k():
            print("text")

        class Broken:
            def write(self, text):
                raise OSError("no room")

        closed = open("/dev/null", "w")
        closed.close()
        for stdout, error in ((Broken(), OSError), (closed, ValueError), (None, None)):
            sys.stdout = stdout
            try:
                wp.launch(k, dim=1)
                raised = None
            except Exception as e:
                raised = type(e)
            assert raised is error, raised
    """)


# ---- types made from the length of data ----

LONG = np.zeros(1 << 24, np.float32)
# Longer than 32 bits count, in four bytes of memory.
LONGER = np.broadcast_to(np.float32(1.0), ((1 << 32) + 3,))


@pytest.mark.parametrize(
    "make, error",
    [
        (lambda: wp.full(3, LONG), "an element has 65536 components at most"),
        (lambda: wp.full(3, LONGER), "an element has 65536 components at most"),
        (lambda: wp.full(3, np.broadcast_to(LONGER[:3], (1 << 16, 3))), "an element has 65536 components at most"),
        (lambda: wp.full(3, wp.array(LONG)), "an element has 65536 components at most"),
        (lambda: wp.full(3, [0.0] * 70_000), "an element has 65536 components at most"),
        (lambda: wp.full(3, LONGER, dtype=wp.vec3), "cannot fill an array of vec3f"),
        (lambda: wp.full_like(wp.zeros(3), LONG), "cannot fill an array of float32"),
        (lambda: wp.zeros(3, dtype=wp.vec3).fill_(LONGER), "cannot fill an array of vec3f"),
        (lambda: wp.from_numpy(np.zeros((1, 1 << 24), np.float32)), "65536 components at most"),
        (lambda: wp.from_numpy(np.broadcast_to(LONGER[:1], (0, (1 << 32) + 3))), "65536 components at most"),
        (lambda: wp.from_numpy(np.broadcast_to(LONGER[:1], (1, 1 << 16, 1 << 16))), "65536 components at most"),
        (lambda: wp.vec3(LONG), r"vec3f\(\)"),
        (lambda: wp.vec3(*[0.0] * 70_000), "got 70000 arguments"),
        (lambda: wp.quat(LONG), r"quatf\(\)"),
        (lambda: wp.transform(p=LONG), r"transformf\(\)"),
        (lambda: wp.vector(*[0.0] * 70_000), "from 1 to 65536, got 70000"),
        (lambda: wp.matrix(*[0.0] * 70_000, shape=(70, 1000)), "at most 65536 components"),
        (lambda: wp.dot(LONG, LONG), "no builtin takes"),
        (lambda: wp.zeros(1 << 17).view(wp.types.vector(1 << 16, wp.float64)), "65536"),
        (lambda: wp.array(np.zeros(2, dtype=[("v", "<f4", 1 << 17)])), "no element type"),
        (lambda: wp.dtype_from_numpy(np.dtype(("<f4", (1 << 17,)))), "no Weft type"),
        (lambda: wp.constant(LONG), "of type ndarray"),
    ],
)
def test_data_that_are_too_long_for_a_type_are_refused(make, error):
    with pytest.raises(wp.UsageError, match=error):
        make()


def test_data_as_long_as_the_longest_type_are_taken():
    longest = np.arange(1 << 16, dtype=np.float32)
    assert wp.full(1, longest).dtype is wp.types.vector(1 << 16, wp.float32)
    assert np.array_equal(wp.full(1, longest).numpy()[0], longest)
    assert wp.from_numpy(longest.reshape(1, 256, 256)).dtype is wp.types.matrix((256, 256), wp.float32)


MANY = (0.0,) * ((1 << 16) + 1)


def test_kernels_make_no_longer_types_either():
    @wp.kernel
    def unpacked(x: wp.array[float]):
        v = wp.vector(*MANY)
        x[0] = v[0]

    @wp.kernel
    def product(x: wp.array[float]):
        a = wp.matrix(1.0, shape=(300, 1)) * wp.matrix(1.0, shape=(1, 300))
        x[0] = a[0, 0]

    with pytest.raises(wp.CompileError, match=r"wp.vector\(\) makes at most 65536 components"):
        unpacked.compile()
    with pytest.raises(wp.CompileError, match="does not take matrix"):
        product.compile()


@wp.kernel
def first_of_any(v: wp.array(dtype=wp.types.matrix(shape=(Any, Any), dtype=float)), x: wp.array[float]):
    x[0] = v[0][0, 0]


@pytest.mark.parametrize("shape", [(1, 1 << 16, 1 << 16), (1, (1 << 32) + 2, 2), (1, 2, 1 << 16)])
@pytest.mark.host_memory("shows more numbers than a device has memory for")
def test_the_element_of_an_open_annotation_is_no_longer_type(shape):
    with pytest.raises(wp.UsageError, match="expected array"):
        wp.launch(first_of_any, dim=1, inputs=[np.broadcast_to(np.float32(1.0), shape), wp.zeros(1)])
