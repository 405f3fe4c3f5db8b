"""The stub in editors and type checkers: mypy and pyright over the forms of annotations, over a file of
typical mistakes and over the examples."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import warp as wp

ROOT = Path(__file__).resolve().parents[2]
ANNOTATIONS = """import warp as wp

@wp.struct
class Particle:
    x: wp.vec3
    neighbours: wp.array[int]
    m: float = 1.0

@wp.func
def twice(x: float) -> float:
    return x * 2.0

@wp.func
def both(v: wp.vec3, q: wp.quatd) -> tuple[float, float]:
    return v[0], float(q.w)

@wp.kernel
def k(
    a: float,
    n: int,
    flag: bool,
    b: wp.float16,
    c: wp.uint8,
    v: wp.vec3,
    m: wp.mat33d,
    q: wp.quat,
    t: wp.transform,
    s: wp.spatial_vector,
    x: wp.array[float],
    y: wp.array2d[wp.vec3],
    z: wp.array3d[wp.float64],
    w: wp.array4d[wp.mat22],
    p: wp.array[Particle],
):
    i = wp.tid()
    local: wp.vec3 = wp.vec3(1.0, 2.0, 3.0)
    x[i] = twice(x[i]) + wp.dot(local, v) * a
    u, sigma, vt = wp.svd3(m)
    axis = wp.vec3()
    angle = float(0.0)
    wp.quat_to_axis_angle(q, axis, angle)
    state = wp.rand_init(n, i)
    x[i] += wp.noise(state, wp.vec2(1.0, 2.0)) + wp.randf(state)
    y[i, 0] = y[i, 1] * 2.0 - local
    p[i].x += local
    z[i, 0, 0] = m[0, 0]
    x[i] = wp.where(flag, x[i], wp.max(x[i], 0.0))

out = wp.zeros(10, dtype=wp.vec3)
wp.launch(k, dim=10, inputs=[out], device="cpu")
try:
    wp.get_device("nowhere")
except wp.UsageError as error:
    print(error)
print(out.numpy().shape, wp.pi, wp.config.mode)
"""
CALLS = """import warp as wp

vec5d = wp.types.vector(length=5, dtype=wp.float64)

@wp.kernel
def k(x: wp.array(dtype=float), y: wp.array(dtype=wp.vec3, ndim=2), z: wp.array2d(dtype=wp.mat33), v: vec5d):
    i = wp.tid()
    x[i] = 1.0
"""


TYPES = """import warp as wp

@wp.struct
class Body:
    place: wp.vec3
    weight: float = 1.0

v, m, q = wp.vec3(1.0, 2.0, 3.0), wp.mat33(), wp.quat()
a = wp.zeros(3, dtype=wp.vec3)
reveal_type(wp.length(v))  # float32
reveal_type(wp.dot(wp.vec3d(), wp.vec3d()))  # float64
reveal_type(2.0 * v + wp.cross(v, v) / 2.0)  # _Vector[Literal[3], float32]
reveal_type(m @ v)  # _Vector[Literal[3], float32]
reveal_type(wp.transpose(m))  # _Matrix[Literal[3], Literal[3], float32]
reveal_type(wp.quat_rotate(q, v))  # _Vector[Literal[3], float32]
reveal_type(wp.quat_identity(dtype=wp.float64))  # _Quaternion[float64]
reveal_type(wp.quat_to_axis_angle(q))  # tuple[_Vector[Literal[3], float32], float32]
reveal_type(wp.max(wp.length(v), 0.0))  # float32
reveal_type(wp.max(1, 2))  # int
reveal_type(v[0])  # float32
reveal_type(m[0])  # _Vector[Literal[3], float32]
reveal_type(a)  # array[_Vector[Literal[3], float32]]
reveal_type(a[0].x)  # float32
reveal_type(wp.clone(a))  # array[_Vector[Literal[3], float32]]
reveal_type(wp.zeros((2, 3)))  # array[float]
reveal_type(wp.full(3, 1, dtype=wp.float64))  # array[float64]
reveal_type(wp.array([1, 2], dtype=int))  # array[int]
reveal_type(wp.array([1, 2], dtype=Body))  # array[Body]
reveal_type(Body(place=v).weight)  # float
"""

# One mistake a line, and a part of what mypy says.
MISTAKES = """import warp as wp

@wp.struct
class Body:
    place: wp.vec3
    weight: float = 1.0

@wp.func
def twice(x: float) -> float:
    return 2.0 * x

@wp.kernel
def k(x: wp.array[float]):
    x[wp.tid()] = 1.0

v = wp.vec3()
a = wp.zeros(3, dtype=wp.vec3)
wp.dott(v, v)  # has no attribute "dott"
wp.dot(v)  # dot
wp.dot(v, "a")  # dot
wp.dot(v, wp.vec2())  # "dot"
wp.dot(v, wp.vec3d())  # "dot"
wp.length(2.0)  # length
wp.quat_rotate(v, v)  # quat_rotate
wp.mat33() @ wp.vec4()  # operand
v + 1.0  # operand
v.q  # has no attribute "q"
x: str = wp.length(v)  # str
wp.zeros("a")  # zeros
wp.zeros(3, dtyp=float)  # zeros
wp.launch("k", dim=3)  # launch
wp.launch(k, dim="3")  # launch
wp.launch(k, 3, input=[a])  # launch
wp.launch(k, 3, a)  # launch
Body(plaice=v)  # plaice
twice("a")  # twice
b: wp.array[float] = a  # array
wp.get_device("cpu", "gpu")  # get_device
wp.Mesh(points=a, indices=a, colour=1)  # colour
"""
# NumPy's own stubs take seconds to read and say nothing about ours. Checkers take a struct for a dataclass, and would
# have every field without a default in the call: Water() is a complaint there, and the way of the examples.
CONFIGURATION = """[mypy]
check_untyped_defs = True
[mypy-numpy.*]
follow_imports = skip
[mypy-calls]
disable_error_code = valid-type
[mypy-gallery.*]
disable_error_code = call-arg, var-annotated
[mypy-trimesh.*,meshio.*]
ignore_missing_imports = True
"""
FILES = {"annotations.py": ANNOTATIONS, "calls.py": CALLS, "types_of.py": TYPES, "mistakes.py": MISTAKES}


def expected(text):
    """{line: the text behind '#' in it}"""
    found = {number: line.partition("  # ")[2] for number, line in enumerate(text.splitlines(), 1)}
    return {number: words for number, words in found.items() if words}


def write_files(folder):
    for name, text in FILES.items():
        (folder / name).write_text(text)
    (folder / "gallery").mkdir()
    for path in [*ROOT.glob("python/warp/examples/*.py")]:
        shutil.copy(path, folder / "gallery" / path.name)


@pytest.fixture(scope="module")
def complaints(tmp_path_factory):
    """The messages of mypy about all files, in one run: {file: {line: text}}, and "gallery" for the examples."""
    folder = tmp_path_factory.mktemp("mypy")
    write_files(folder)
    (folder / "mypy.ini").write_text(CONFIGURATION)
    result = subprocess.run(
        [sys.executable, "-m", "mypy", *FILES, "gallery"],
        cwd=folder,
        capture_output=True,
        text=True,
        env={"PATH": "", "MYPYPATH": str(Path(wp.__file__).parents[1])},
    )
    assert result.stderr == "", result.stderr
    found = {name: {} for name in [*FILES, "gallery"]}
    for line in result.stdout.splitlines():
        match = re.match(r"(gallery|[\w.]+)(?:/\w+\.py)?:(\d+): ", line)
        if match and match[1] in found:
            found[match[1]].setdefault(line if match[1] == "gallery" else int(match[2]), line)
    return found


@pytest.mark.needs("mypy")
@pytest.mark.parametrize("file", ["annotations.py", "calls.py"])
def test_mypy_accepts_every_annotation_form(complaints, file):
    assert complaints[file] == {}


@pytest.mark.needs("mypy")
def test_mypy_knows_the_types_of_results(complaints):
    found = complaints["types_of.py"]
    wanted = expected(TYPES)
    assert found.keys() == wanted.keys()
    for line, words in wanted.items():
        text = found[line].replace("warp._Results.", "").replace("warp.", "").replace("types_of.", "")
        assert text.endswith(f'Revealed type is "{words}"'), text


@pytest.mark.needs("mypy")
def test_mypy_refuses_typical_mistakes(complaints):
    found = complaints["mistakes.py"]
    wanted = expected(MISTAKES)
    assert found.keys() == wanted.keys()
    for line, words in wanted.items():
        assert ": error: " in found[line] and words in found[line], found[line]


@pytest.mark.needs("mypy")
def test_mypy_accepts_the_examples(complaints):
    assert complaints["gallery"] == {}


@pytest.mark.needs("basedpyright")
def test_pyright_says_the_same(tmp_path):
    write_files(tmp_path)
    configuration = {"typeCheckingMode": "standard", "extraPaths": [str(Path(wp.__file__).parents[1])]}
    # Of the examples: empty structs, as above, and what is about NumPy and matplotlib.
    rules = "CallIssue ArgumentType PossiblyUnbound PossiblyUnboundVariable MissingImports MissingModuleSource"
    rules = [*rules.split(), "AttributeAccessIssue"]
    gallery = {"root": "gallery", **{f"report{rule}": False for rule in rules}}
    configuration["executionEnvironments"] = [{**gallery, "extraPaths": configuration["extraPaths"]}, {"root": "."}]
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(configuration))
    result = subprocess.run(
        [sys.executable, "-m", "basedpyright", "--outputjson"], cwd=tmp_path, capture_output=True, text=True
    )
    report = json.loads(result.stdout)
    found = {name: {} for name in [*FILES, *(path.name for path in (tmp_path / "gallery").iterdir())]}
    for complaint in report["generalDiagnostics"]:
        line = complaint["range"]["start"]["line"] + 1
        found[Path(complaint["file"]).name].setdefault(line, complaint)
    errors = {name: {n: c for n, c in lines.items() if c["severity"] == "error"} for name, lines in found.items()}
    assert {c["rule"] for c in errors.pop("calls.py").values()} == {"reportInvalidTypeForm"}
    assert errors.pop("mistakes.py").keys() == expected(MISTAKES).keys()
    assert not any(errors.values()), errors
    for line, words in expected(TYPES).items():
        assert words.replace("tuple", "") in found["types_of.py"][line]["message"].replace("tuple", ""), line
