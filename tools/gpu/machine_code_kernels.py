"""The kernels of compare_machine_code.py; by the same names, but for types, bench/gpu/reference.cu has those in CUDA
C++."""

from dataclasses import dataclass

import warp as wp


def make_saxpy(real):
    @wp.kernel
    def saxpy(a: real, x: wp.array(dtype=real), y: wp.array(dtype=real)):
        i = wp.tid()
        y[i] = a * x[i] + y[i]

    return saxpy


@wp.kernel
def stencil_2d(u: wp.array2d(dtype=float), result: wp.array2d(dtype=float)):
    ti, tj = wp.tid()
    i = ti + 1
    j = tj + 1
    result[i, j] = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j]


@wp.kernel
def stencil_3d(u: wp.array3d(dtype=float), result: wp.array3d(dtype=float)):
    i, j, k = wp.tid()
    if i > 0 and i < u.shape[0] - 1 and j > 0 and j < u.shape[1] - 1 and k > 0 and k < u.shape[2] - 1:
        along = u[i - 1, j, k] + u[i + 1, j, k] + u[i, j - 1, k] + u[i, j + 1, k]
        result[i, j, k] = along + u[i, j, k - 1] + u[i, j, k + 1] - 6.0 * u[i, j, k]


@wp.kernel
def particles(dt: float, gravity: wp.vec3, x: wp.array(dtype=wp.vec3), v: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    velocity = v[i] + gravity * dt
    v[i] = velocity
    x[i] = x[i] + velocity * dt


@wp.kernel
def chain(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = wp.log(2.0 + wp.cos(wp.sqrt(wp.exp(wp.sin(x[i])))))


@wp.kernel
def nbody(n: int, softening: float, x: wp.array(dtype=wp.vec3), force: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    p = x[i]
    total = wp.vec3()
    for j in range(n):
        d = x[j] - p
        inverse = 1.0 / wp.sqrt(wp.dot(d, d) + softening)
        total = total + d * (inverse * inverse * inverse)
    force[i] = total


@wp.kernel
def mandelbrot(left: float, bottom: float, pixel: float, iterations: int, counts: wp.array2d(dtype=wp.int32)):
    row, column = wp.tid()
    cx = left + float(column) * pixel
    cy = bottom + float(row) * pixel
    x = wp.float32(0.0)
    y = wp.float32(0.0)
    count = wp.int32(0)
    while count < iterations and x * x + y * y <= 4.0:
        next = x * x - y * y + cx
        y = 2.0 * x * y + cy
        x = next
        count += 1
    counts[row, column] = count


@wp.kernel
def inverse(a: wp.array(dtype=wp.mat33), result: wp.array(dtype=wp.mat33)):
    i = wp.tid()
    result[i] = wp.inverse(a[i])


@wp.kernel
def noise(state: wp.uint32, x: wp.array(dtype=wp.vec3), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = wp.noise(state, x[i])


@wp.kernel
def random_numbers(seed: int, y: wp.array(dtype=float)):
    i = wp.tid()
    state = wp.rand_init(seed, i)
    y[i] = wp.randf(state)


@wp.kernel
def spmv(
    offsets: wp.array(dtype=wp.int32),
    columns: wp.array(dtype=wp.int32),
    values: wp.array(dtype=float),
    x: wp.array(dtype=float),
    y: wp.array(dtype=float),
):
    row = wp.tid()
    total = wp.float32(0.0)
    for i in range(offsets[row], offsets[row + 1]):
        total += values[i] * x[columns[i]]
    y[row] = total


@wp.kernel
def sum_of_all(x: wp.array(dtype=float), total: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(total, 0, x[i])


@wp.kernel
def histogram(bins: float, x: wp.array(dtype=float), counts: wp.array(dtype=wp.int32)):
    i = wp.tid()
    wp.atomic_add(counts, int(x[i] * bins), 1)


@wp.kernel
def smooth_chain(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    v = x[i]
    a = wp.sin(v) * v
    b = wp.exp(-a * a)
    y[i] = wp.sqrt(b + 1.0) * wp.cos(b)


@wp.kernel
def rollout(x: wp.array(dtype=wp.vec3), v: wp.array(dtype=wp.vec3), end: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    p = x[i]
    speed = v[i]
    for _ in range(100):
        speed = speed + (p * (-1.0 / (wp.dot(p, p) + 0.1)) - speed * 0.1) * 0.02
        p = p + speed * 0.02
    end[i] = p


@wp.kernel
def scale(x: wp.array(dtype=float), s: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = s[0] * x[i]


@dataclass
class Row:
    name: str
    kernel: wp.Kernel
    reference: str
    unit: str = "STG"  # an instruction that each element executes, a regular expression
    per_element: int = 1
    per_reference_element: int | None = None  # the same for CUDA C++, if it is another number
    loops: int = 0  # innermost loops that an element takes part in; 0: the whole function
    adjoint: bool = False
    element: str = "element"


ROWS = [
    Row("saxpy f32", make_saxpy(wp.float32), "saxpy_f32"),
    Row("saxpy f64", make_saxpy(wp.float64), "saxpy_f64"),
    Row("stencil 2-D", stencil_2d, "stencil_2d"),
    Row("stencil 3-D", stencil_3d, "stencil_3d"),
    Row("particles vec3", particles, "particles", per_element=6),
    Row("chain of functions", chain, "chain"),
    Row("n-body", nbody, "nbody", unit="MUFU.RSQ", loops=1, element="pair"),
    Row("Mandelbrot", mandelbrot, "mandelbrot", unit="FSETP", loops=1, element="iteration"),
    Row("inverse of mat33", inverse, "inverse", per_element=9),
    Row("noise 3-D", noise, "noise"),
    Row("randf", random_numbers, "random_numbers"),
    Row("CSR product", spmv, "spmv", unit="LDG", per_element=3, loops=1, element="entry"),
    Row("sum into one cell", sum_of_all, "sum_of_all", unit="LDG", loops=1),
    Row("histogram of 256", histogram, "histogram", unit="ATOMS", loops=1),
    # An adjoint also sets the gradient of y to zero.
    Row("adjoint of a chain", smooth_chain, "chain_adjoint", per_element=2, per_reference_element=1, adjoint=True),
    Row("adjoint of a rollout", rollout, "rollout_adjoint", unit="MUFU.RCP", loops=2, adjoint=True, element="step"),
    Row("adjoint by a factor", scale, "scale_adjoint", unit="LDG", per_element=3, loops=1, adjoint=True),
]
