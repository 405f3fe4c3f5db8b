"""Compile time of the longest function that real programs have: a kernel of 600 lines with 79 parameters.

Bodies with contacts and springs: loads, vector math, branches, loops over neighbours and calls of seven functions, in
an order drawn from a seed. The text is checked by running it as plain Python on one thread's data.
"""

import random
import types

import numpy as np
import scenario

SCALARS, FLOATS, INTS, VECTORS, RESULTS = 17, 20, 10, 20, 12
"""How many parameters of each kind: numbers, arrays of floats, of ints, of vec3; arrays to write."""
LINES = 600
THREADS = 16

HEAD = """import warp as wp


@wp.func
def penalty(depth: float, stiffness: float, damping: float, speed: float):
    force = float(0.0)
    if depth > 0.0:
        force = stiffness * depth - damping * wp.min(speed, 0.0)
    return force


@wp.func
def friction(velocity: wp.vec3, normal: wp.vec3, load: float, mu: float):
    across = velocity - normal * wp.dot(velocity, normal)
    speed = wp.length(across)
    if speed < 0.001:
        return wp.vec3(0.0, 0.0, 0.0)
    return across * (-mu * load / speed)


@wp.func
def turned(axis: wp.vec3, angle: float, v: wp.vec3):
    c = wp.cos(angle)
    s = wp.sin(angle)
    return v * c + wp.cross(axis, v) * s + axis * (wp.dot(axis, v) * (1.0 - c))


@wp.func
def smooth(x: float, low: float, high: float):
    t = wp.clamp((x - low) / (high - low), 0.0, 1.0)
    return t * t * (3.0 - 2.0 * t)


@wp.func
def nearest_on_segment(a: wp.vec3, b: wp.vec3, p: wp.vec3):
    along = b - a
    t = wp.dot(p - a, along) / (wp.dot(along, along) + 0.001)
    return a + along * wp.clamp(t, 0.0, 1.0)


@wp.func
def spring(a: wp.vec3, b: wp.vec3, rest: float, stiffness: float):
    d = b - a
    length = wp.length(d) + 0.001
    return d * (stiffness * (length - rest) / length)


@wp.func
def limited(v: wp.vec3, most: float):
    length = wp.length(v)
    if length > most:
        return v * (most / length)
    return v


"""

# Blocks of statements. a, b: points; u: a velocity; s, t: numbers; x, w, y: arrays of floats, vectors and ints; n: the
# block's own number. Force and energy are the running results.
BLOCKS = (
    """d{n} = p{a} - p{b}
r{n} = wp.length(d{n}) + 0.01
n{n} = d{n} / r{n}
depth{n} = c{s} - r{n}
if depth{n} > 0.0:
    load{n} = penalty(depth{n}, 1.0 + c{t}, 0.5, wp.dot(v{u}, n{n}))
    force += n{n} * load{n}
    force += friction(v{u}, n{n}, load{n}, c{t})
    energy += 0.5 * depth{n} * depth{n}
else:
    energy += 0.01 / r{n}""",
    """p{a} = p{a} + turned(wp.normalize(v{u} + wp.vec3(0.1, 0.2, 0.3)), c{s}, p{b}) * 0.1
h{n} = x{x}[i] * smooth(p{a}[1], -1.0 - c{t}, 1.0)
if h{n} > c{s}:
    v{u} = v{u} * 0.9
elif h{n} > 0.2:
    v{u} = v{u} + wp.vec3(h{n}, 0.0, c{t})
    energy += h{n} * c{t}
else:
    energy = energy + 0.5 * wp.dot(v{u}, v{u})""",
    """q{n} = nearest_on_segment(p{a}, w{w}[i], p{b})
gap{n} = wp.length(q{n} - p{b})
weight{n} = wp.exp(-gap{n}) * c{s}
force += (q{n} - p{b}) * weight{n}
energy += weight{n} * gap{n}
o{o}[i] = o{o}[i] + weight{n}""",
    """for k in range(y{y}[i]):
    other = w{w}[(i + k) % threads]
    pull = spring(p{a}, other, c{s}, 0.2)
    if wp.dot(pull, pull) > 4.0:
        break
    force += pull
    energy += 0.1 * wp.length(pull)""",
    """side{n} = wp.cross(p{a}, v{u})
turn{n} = wp.dot(side{n}, side{n})
if turn{n} < c{s}:
    o{o}[i] = turn{n} * c{t}
else:
    o{o}[i] = wp.sqrt(turn{n}) + x{x}[i]
p{b} = p{b} + limited(force, 2.0) * 0.05""",
    """if y{y}[i] > 1 and x{x}[i] < c{s}:
    mid{n} = (p{a} + p{b}) * 0.5
    p{a} = mid{n} + (p{a} - mid{n}) * 0.9
    p{b} = mid{n} + (p{b} - mid{n}) * 0.9
    v{u} = limited(v{u} + w{w}[i] * 0.1, 3.0)
    o{o}[i] = wp.max(o{o}[i], mid{n}[2])""",
    """s{n} = x{x}[i] * c{s} + c{t}
e{n} = wp.abs(s{n}) + 0.5
g{n} = wp.log(e{n}) + wp.atan2(s{n}, e{n})
force = limited(force, 5.0 + g{n})
energy += wp.min(g{n}, 1.0)""",
)


def generate(number):
    """The text of module `number`: functions and a kernel of LINES lines."""
    draw = random.Random(number)
    parameters = ["threads: int"]
    parameters += [f"c{k}: float" for k in range(SCALARS - 1)]
    parameters += [f"x{k}: wp.array(dtype=float)" for k in range(FLOATS)]
    parameters += [f"y{k}: wp.array(dtype=int)" for k in range(INTS)]
    parameters += [f"w{k}: wp.array(dtype=wp.vec3)" for k in range(VECTORS)]
    parameters += [f"o{k}: wp.array(dtype=float)" for k in range(RESULTS)]
    body = ["i = wp.tid()", f"force = wp.vec3(0.0, {number}.0, 0.0)", "energy = float(0.0)"]
    body += [f"p{k} = w{k}[i]" for k in range(8)] + [f"v{k} = w{8 + k}[i]" for k in range(8)]
    end = ["o0[i] = energy", "o1[i] = force[0]", "o2[i] = force[1]", "o3[i] = force[2]"]
    block = 0
    while len(body) + len(end) < LINES:
        a, b = draw.sample(range(8), 2)
        names = {"a": a, "b": b, "u": draw.randrange(8), "n": block, "o": draw.randrange(4, RESULTS)}
        names |= {"s": draw.randrange(SCALARS - 1), "t": draw.randrange(SCALARS - 1)}
        names |= {"x": draw.randrange(FLOATS), "y": draw.randrange(INTS), "w": draw.randrange(VECTORS)}
        body += draw.choice(BLOCKS).format(**names).split("\n")
        block += 1
    lines = "".join(f"    {line}\n" for line in body[: LINES + 20] + end)
    return f"{HEAD}@wp.kernel\ndef longest(\n    " + ",\n    ".join(parameters) + f",\n):\n{lines}"


def inputs():
    numbers = np.random.default_rng(1)
    values = [THREADS] + [float(c) for c in numbers.uniform(0.2, 1.0, SCALARS - 1)]
    values += [numbers.uniform(0, 1, THREADS).astype(np.float32) for _ in range(FLOATS)]
    values += [numbers.integers(0, 4, THREADS, dtype=np.int32) for _ in range(INTS)]
    values += [numbers.uniform(-1, 1, (THREADS, 3)).astype(np.float32) for _ in range(VECTORS)]
    return values + [np.zeros(THREADS, np.float32) for _ in range(RESULTS)]


def launch_warp(wp, loaded):
    values = inputs()
    arguments = [
        wp.array(v, dtype=wp.vec3 if v.ndim == 2 else None, device="cpu") if isinstance(v, np.ndarray) else v
        for v in values
    ]
    wp.launch(loaded.longest, dim=THREADS, inputs=arguments, device="cpu")
    found = [a.numpy() for a in arguments[-RESULTS:]]
    return lambda: check(wp, loaded, values, found)


def check(wp, loaded, values, found):
    """Runs the kernel's text as Python, a thread at a time: names that only kernels have are replaced."""
    host = types.SimpleNamespace(**{name: getattr(wp, name) for name in dir(wp)})
    names = dict(vars(loaded), wp=host)
    for name in ("penalty", "friction", "turned", "smooth", "nearest_on_segment", "spring", "limited"):
        names[name] = types.FunctionType(getattr(loaded, name).func.__code__, names)
    run = types.FunctionType(loaded.longest.func.__code__, names)
    arguments = [
        [wp.vec3(*map(float, row)) for row in v]
        if isinstance(v, np.ndarray) and v.ndim == 2
        else (v.tolist() if isinstance(v, np.ndarray) else v)
        for v in values
    ]
    for thread in range(THREADS):
        host.tid = lambda thread=thread: thread
        run(*arguments)
    for array, expected in zip(found, arguments[-RESULTS:], strict=True):
        np.testing.assert_allclose(array, expected, rtol=2e-3, atol=2e-3)


if __name__ == "__main__":
    scenario.LATER = 2
    scenario.measure_compile(
        "compile longest",
        __doc__,
        {"weft": generate, "peer": generate},
        {"weft": launch_warp, "peer": launch_warp},
    )
