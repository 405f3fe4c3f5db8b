"""Kernels so large that their functions stay functions: the same results as with every call inlined."""

import linecache

import numpy as np
import pytest
import warp as wp

N = 23


@wp.struct
class Body:
    position: wp.vec3d
    turn: wp.quatd
    weights: wp.array[wp.float64]
    kind: wp.int8
    active: wp.bool


@wp.struct
class Answer:
    place: wp.vec3d
    inertia: wp.types.matrix((2, 3), wp.float64)
    half: wp.float16
    number: wp.int64
    found: wp.bool


@wp.func
def polynomial(x: wp.float64):
    # Long enough to be worth a call, also after simplification.
    total = x
    for i in range(3):
        k = wp.float64(i)
        total = total * x * wp.float64(0.25) + wp.sin(total + k) - wp.cos(x * k)
        total = wp.max(total, wp.float64(-3.0)) + wp.min(x, total) * wp.float64(0.125)
        total = wp.abs(total) + wp.sqrt(wp.abs(x) + wp.float64(1.0)) - total / (wp.float64(2.0) + k)
        total = wp.where(total > wp.float64(2.0), total * wp.float64(0.5), total + wp.float64(0.25))
        total = total + wp.floor(x) * wp.float64(0.01) - wp.ceil(total) * wp.float64(0.02)
        total = wp.clamp(total, wp.float64(-8.0), wp.float64(8.0)) + wp.exp(-wp.abs(x)) * wp.float64(0.5)
    return total


@wp.func
def polynomials(x: wp.float64):
    total = polynomial(x)
    for _ in range(2):
        total = polynomial(total) + polynomial(total * wp.float64(0.5)) - polynomial(-total)
    return total + polynomial(total - x) * wp.float64(0.5) + polynomial(x * wp.float64(0.25))


@wp.func
def search(values: wp.array[wp.float64], wanted: wp.float64, counts: wp.array[int], first: wp.ref[int]):
    first = -1
    for i in range(values.shape[0]):
        wp.atomic_add(counts, i % 4, 1)
        if values[i] > wanted:
            first = i
            return polynomials(values[i])
    values[-1] = values[-1] + wp.float64(1.0)
    return wp.float64(-1.0)


@wp.func
def look(body: Body, x: wp.float64, counts: wp.array[int]):
    answer = Answer()
    if not body.active:
        return answer, wp.float64(0.0)
    own = wp.zeros(shape=(4,), dtype=wp.float64)
    for i in range(4):
        own[i] = polynomials(x + wp.float64(i))
    first = int(0)
    found = search(body.weights, x, counts, first)
    answer.place = wp.quat_rotate(body.turn, body.position) * (own[0] + own[-1])
    answer.inertia[1, 2] = own[1] + wp.float64(body.kind)
    answer.half = wp.float16(own[2])
    answer.number = wp.int64(first) * wp.int64(1 << 40)
    answer.found = first >= 0
    return answer, found


@wp.func
def look_often(body: Body, x: wp.float64, counts: wp.array[int]):
    answer, found = look(body, x, counts)
    other, more = look(body, found * wp.float64(0.125), counts)
    if answer.found and not other.found:
        return answer, found + more
    third, last = look(body, more + x, counts)
    return third, polynomials(last) + polynomials(more) + found


def large(
    bodies: wp.array[Body],
    xs: wp.array[wp.float64],
    counts: wp.array[int],
    answers: wp.array[Answer],
    out: wp.array[wp.float64],
):
    i = wp.tid()
    body = bodies[i]
    total = wp.float64(0.0)
    for k in range(2):
        answer, found = look_often(body, xs[i] * wp.float64(k + 1), counts)
        total += found
        answers[i] = answer
    if i % 3 == 0:
        answer, found = look_often(body, total * wp.float64(0.01), counts)
        more, last = look_often(body, found - xs[i], counts)
        total += polynomials(found) + last
        answers[i].place += more.place + answer.place
    out[i] += total + polynomials(total) + polynomials(xs[i])


def kernel_with(**options):
    return wp.kernel(large, enable_backward=False, module="unique", module_options=options)


def results(kernel):
    rng = np.random.default_rng(4)
    bodies, weights = [], []
    for i in range(N):
        body = Body()
        body.position = wp.vec3d(*rng.normal(size=3))
        body.turn = wp.normalize(wp.quatd(*rng.normal(size=4)))
        body.weights = wp.array(rng.normal(size=6) * 3.0, dtype=wp.float64)
        body.kind, body.active = i - 10, i % 5 != 4
        bodies.append(body)
        weights.append(body.weights)
    xs = wp.array(rng.normal(size=N), dtype=wp.float64)
    counts, answers, out = wp.zeros(4, dtype=int), wp.zeros(N, dtype=Answer), wp.zeros(N, dtype=wp.float64)
    wp.launch(kernel, dim=N, inputs=[wp.array(bodies, dtype=Body), xs, counts, answers, out])
    fields = answers.numpy()
    return [counts.numpy(), out.numpy(), *(a.numpy() for a in weights), *(fields[name] for name in fields.dtype.names)]


@pytest.fixture(scope="module")
def expected():
    inlined = kernel_with(mode="debug")
    assert "call @" not in inlined.listing("ir")
    found = results(inlined)
    assert np.count_nonzero(found[1]) > N // 2 and found[0].min() > 0
    return found


@pytest.mark.parametrize(
    "options, shares", [({}, True), ({"lineinfo": True}, True), ({"lanes": 1}, True), ({"lanes": 4}, False)]
)
def test_functions_of_a_large_kernel_stay_functions_unless_it_runs_on_lanes(options, shares, expected):
    kernel = kernel_with(**options)
    assert ("call @polynomial" in kernel.listing("ir")) == shares
    for got, wanted in zip(results(kernel), expected, strict=True):
        np.testing.assert_array_equal(got, wanted)


Long = wp.types.vector(24, wp.float64)


@wp.struct
class Holder:
    values: wp.array[wp.float64]


def made_from(text, name, names):
    """A function with this text, which sees these names."""
    path = f"<{name} {len(linecache.cache)}>"
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    exec(compile(text, path, "exec"), names)
    return wp.func(names[name])


def often(function):
    """A kernel that calls the function from so many places that it would stay a function."""

    @wp.func
    def few(holders: wp.array[Holder], a: wp.array[wp.float64], x: wp.float64):
        return function(holders, a, x) + function(holders, a, x + wp.float64(1.0)) * polynomials(x) * polynomials(-x)

    @wp.func
    def more(holders: wp.array[Holder], a: wp.array[wp.float64], x: wp.float64):
        return few(holders, a, x) + few(holders, a, -x) + few(holders, a, x * x) + few(holders, a, x + x)

    @wp.kernel(enable_backward=False, module="unique")
    def kernel(holders: wp.array[Holder], a: wp.array[wp.float64], out: wp.array[wp.float64]):
        out[0] = more(holders, a, out[0]) + more(holders, a, out[1]) + more(holders, a, out[2])

    return kernel


@wp.func
def reads(holders: wp.array[Holder], a: wp.array[wp.float64], x: wp.float64):
    v = Long()
    for i in range(24):
        v[i] = a[i] + a[-i] * x
    return v[3] + polynomial(v[4]) + polynomial(v[5]) - a[2] * a[3] * v[6] * v[7]


@wp.func
def follows(holders: wp.array[Holder], a: wp.array[wp.float64], x: wp.float64):
    return reads(holders, holders[1].values, x) + holders[2].values[3]


@wp.func
def keeps(holders: wp.array[Holder], a: wp.array[wp.float64], x: wp.float64):
    holder = Holder()
    holder.values = a
    holders[0] = holder
    return reads(holders, a, x)


@wp.func
def refuses(holders: wp.array[Holder], a: wp.array[wp.float64], x: wp.float64):
    if x != x:
        raise ValueError("not a number")
    return reads(holders, a, x)


@wp.func
def tells(holders: wp.array[Holder], a: wp.array[wp.float64], x: wp.float64):
    wp.printf("%g of %d\n", x, a.shape[0])
    return reads(holders, a, x)


@pytest.mark.parametrize("function", [reads, keeps, follows, refuses, tells], ids=lambda function: function.key)
def test_functions_that_keep_arrays_or_need_the_thread_are_inlined(function):
    text = often(function).listing("ir")
    assert "call @polynomial" in text
    assert ("call @few" in text) == (function in (reads, refuses, tells))


def test_arrays_of_structs_in_memory_that_are_none_are_errors_in_large_kernels_too():
    a, out = wp.ones(24, dtype=wp.float64), wp.ones(3, dtype=wp.float64)
    holders = wp.zeros(24, dtype=Holder)
    with pytest.raises(wp.UsageError, match="None"):
        wp.launch(often(follows), dim=1, inputs=[holders, a, out])
        wp.synchronize()


@wp.func
def may_read(holder: Holder, x: wp.float64):
    total = polynomials(x)
    if x > wp.float64(30.0):
        total += holder.values[1]  # of None
    return total + polynomial(total)


@wp.func
def may_read_more(holder: Holder, x: wp.float64):
    total = may_read(holder, x) + may_read(holder, -x) * polynomials(x) - may_read(holder, x * wp.float64(0.5))
    while total <= wp.float64(0.0):  # for ever, if a function that has ended went on with zero
        total = may_read(holder, x) * may_read(holder, x)
    return total


@wp.func
def may_read_most(holder: Holder, x: wp.float64):
    total = x
    for k in range(12):  # long enough by itself
        total = wp.sin(total * wp.float64(k)) + wp.cos(x + total) * wp.float64(0.5) + wp.sqrt(wp.abs(total) + x * x)
        total = wp.clamp(total, wp.float64(-2.0), wp.float64(2.0)) - wp.floor(total) * wp.float64(0.01)
    return may_read_more(holder, x) + may_read_more(holder, x * wp.float64(0.5)) * polynomials(x) + total


@wp.kernel(enable_backward=False)
def reads_none(x: wp.array[wp.float64], out: wp.array[wp.float64]):
    i = wp.tid()
    holder = Holder()
    total = may_read_most(holder, x[i])
    for k in range(3):
        total += may_read_most(holder, x[i] - wp.float64(k)) + may_read_most(holder, -x[i])
        total += may_read_most(holder, x[i] * wp.float64(0.25)) - may_read_most(holder, total * wp.float64(0.01))
    out[i] = total


@pytest.mark.host_memory("threads of a GPU come in no order", on="cuda")
def test_arrays_that_are_none_are_errors_in_functions_that_stay():
    text = reads_none.listing("ir")
    assert "call @may_read_most" in text and "call @may_read_more" in text
    in_debug = wp.kernel(reads_none.func, enable_backward=False, module_options={"mode": "debug"})
    x = wp.array(np.linspace(-2.0, 2.0, 9), dtype=wp.float64)
    out, plain = wp.zeros(9, dtype=wp.float64), wp.zeros(9, dtype=wp.float64)
    wp.launch(reads_none, dim=9, inputs=[x, out])  # it is not indexed here
    wp.launch(in_debug, dim=9, inputs=[x, plain])
    np.testing.assert_allclose(out.numpy(), plain.numpy(), rtol=1e-12)
    assert np.any(out.numpy() != 0.0)
    x[6:7].fill_(35.0)
    for kernel, what in ((reads_none, "'holder.values' is None"), (in_debug, "index 1 is out of bounds")):
        with pytest.raises(wp.UsageError, match=what + r".*thread \(6,\)") as error:
            wp.launch(kernel, dim=9, inputs=[x, out])
        assert "# of None" in str(error.value)


def test_functions_that_stay_print_as_inlined_ones_do(capfd):
    shared = often(tells)
    a = wp.array(np.linspace(-1.0, 1.0, 24), dtype=wp.float64)
    holder = Holder()
    holder.values = a
    holders = wp.array([holder] * 24, dtype=Holder)
    printed = []
    for kernel in (shared, wp.kernel(shared.func, enable_backward=False, module_options={"mode": "debug"})):
        out = wp.array([0.25, 0.5, -0.75], dtype=wp.float64)
        wp.launch(kernel, dim=1, inputs=[holders, a, out])
        wp.synchronize()
        printed.append((capfd.readouterr().out, *out.list()))
    assert printed[0] == printed[1]
    assert len(printed[0][0].splitlines()) == 24 and printed[0][0].startswith("0.25 of 24\n1.25 of 24\n")


def test_functions_that_stay_add_to_what_their_thread_names():
    """The index is the same in a whole launch as far as the function can tell, and another one in each thread."""

    @wp.func
    def spread(x: wp.float64, at: int, sums: wp.array[int]):
        total = x
        for k in range(12):
            total = wp.sin(total * wp.float64(k)) + wp.cos(x + total) * wp.float64(0.5) + wp.sqrt(wp.abs(total) + x * x)
            total = wp.clamp(total, wp.float64(-2.0), wp.float64(2.0)) - wp.floor(total) * wp.float64(0.01)
        wp.atomic_add(sums, at, 1)
        return polynomials(total)

    @wp.kernel(enable_backward=False)
    def kernel(x: wp.array[wp.float64], sums: wp.array[int]):
        i = wp.tid()
        total = x[i]
        for k in range(16):
            total = spread(total, i, sums) + spread(total, (i + 1) % 70, sums) + spread(-total, i, sums)
        x[i] = total

    assert "call @spread" in kernel.listing("ir")
    sums = wp.zeros(70, dtype=int)
    wp.launch(kernel, dim=70, inputs=[wp.ones(70, dtype=wp.float64), sums])
    assert sums.list() == [3 * 16] * 70


@pytest.mark.own_launches("a comparison is in debug mode, where all of its calls are inlined")
def test_functions_that_call_each_other_on_many_levels_are_looked_at_once():
    """Ten calls on each of twelve levels: a walk along all calls would not end."""
    names = {"wp": wp, "level": polynomial}
    for _ in range(12):
        calls = "".join(
            f"    total = level(total + wp.float64({k})) * x + wp.sin(total * wp.float64({k}.5))\n" for k in range(10)
        )
        text = f"def next_level(x: wp.float64):\n    total = x\n{calls}    return total\n"
        names = {"wp": wp, "level": made_from(text, "next_level", names)}
    top = names["level"]

    @wp.kernel(enable_backward=False)
    def kernel(x: wp.array[wp.float64]):
        i = wp.tid()
        if x[i] > wp.float64(5.0):
            x[i] = top(x[i]) + top(x[i] * wp.float64(2.0))

    x = wp.ones(4, dtype=wp.float64)
    wp.launch(kernel, dim=4, inputs=[x])
    assert x.list() == [1.0] * 4


def test_functions_that_stay_raise_for_the_thread_that_called():
    """From a function that another one calls, in a loop; the thread has ended then, and writes nothing."""

    @wp.func
    def limited(x: wp.float64, limit: wp.float64):
        if x > limit:
            raise OverflowError(f"{x:.1f} is more than {limit:.1f}")
        total = x
        for k in range(12):  # long enough by itself
            total = wp.sin(total * wp.float64(k)) + wp.cos(x + total) * wp.float64(0.5) + wp.sqrt(wp.abs(total) + x * x)
            total = wp.clamp(total, wp.float64(-2.0), wp.float64(2.0)) - wp.floor(total) * wp.float64(0.01)
        return polynomials(x) + total

    @wp.func
    def rows(x: wp.float64, limit: wp.float64):
        total = x
        for k in range(12):
            total = wp.sin(total * wp.float64(k)) + wp.cos(x - total) * wp.float64(0.5) + wp.sqrt(wp.abs(total) + x * x)
            total = wp.clamp(total, wp.float64(-2.0), wp.float64(2.0)) - wp.floor(total) * wp.float64(0.01)
        total += limited(x, limit) + limited(-x, limit) * limited(x * wp.float64(0.5), limit)
        while total <= wp.float64(-100.0):
            total = total + limited(x, limit)
        return total

    @wp.kernel(enable_backward=False)
    def kernel(x: wp.array[wp.float64], limit: wp.float64, out: wp.array[wp.float64]):
        i = wp.tid()
        out[i] = wp.float64(-1.0)
        total = wp.float64(0.0)
        for k in range(6):
            total += rows(x[i] + wp.float64(k), limit) - rows(x[i] - wp.float64(k), limit) * polynomials(x[i])
        out[i] = total

    text = kernel.listing("ir")
    assert "call @limited" in text and "call @rows" in text
    x = wp.array(np.linspace(-2.0, 2.0, 9), dtype=wp.float64)
    out, plain = wp.zeros(9, dtype=wp.float64), wp.zeros(9, dtype=wp.float64)
    wp.launch(kernel, dim=9, inputs=[x, 50.0, out])
    in_debug = wp.kernel(kernel.func, enable_backward=False, module_options={"mode": "debug"})
    wp.launch(in_debug, dim=9, inputs=[x, 50.0, plain])
    np.testing.assert_allclose(out.numpy(), plain.numpy(), rtol=1e-12)
    x[6:7].fill_(60.0)
    for one in (kernel, in_debug):
        out.zero_()
        with pytest.raises(
            OverflowError, match=r"60.0 is more than 50.0, in 'limited', in kernel 'kernel', thread \(6,\)"
        ):
            wp.launch(one, dim=9, inputs=[x, 50.0, out])
            wp.synchronize()
        assert out.numpy()[6] in (0.0, -1.0)


@wp.func
def many_polynomials(x: wp.float64, scale: wp.array[wp.float64], i: int):
    total = polynomials(x) * scale[i]
    total += polynomials(total) - polynomials(total * wp.float64(0.5)) * scale[i]
    return total + polynomials(x - total)


@wp.kernel
def graded(x: wp.array[wp.float64], scale: wp.array[wp.float64], out: wp.array[wp.float64]):
    i = wp.tid()
    total = many_polynomials(x[i], scale, i)
    for k in range(2):
        total = many_polynomials(total * wp.float64(0.5), scale, i) - many_polynomials(
            total + x[i], scale, i
        ) * wp.float64(k)
    scale[i] = total
    out[i] = many_polynomials(total, scale, i) + many_polynomials(-total, scale, i) * x[i]


@pytest.mark.large
def test_gradients_of_a_large_kernel_are_those_of_its_differences():
    assert "call @many_polynomials" in graded.listing("ir")
    n, step = 5, 1e-6
    rng = np.random.default_rng(1)
    x, scale = rng.normal(size=n) * 0.3, rng.normal(size=n) * 0.2

    def run(x, scale):
        out = wp.zeros(n, dtype=wp.float64)
        wp.launch(graded, dim=n, inputs=[wp.array(x, dtype=wp.float64), wp.array(scale, dtype=wp.float64), out])
        return out.numpy().sum()

    arrays = [wp.array(v, dtype=wp.float64, requires_grad=True) for v in (x, scale, np.zeros(n))]
    with wp.Tape() as tape:
        wp.launch(graded, dim=n, inputs=arrays)
    tape.backward(grads={arrays[2]: wp.ones(n, dtype=wp.float64)})
    for at, array in enumerate(arrays[:2]):
        for i in range(n):
            moved = [np.array([x, scale]), np.array([x, scale])]
            moved[0][at, i] += step
            moved[1][at, i] -= step
            expected = (run(*moved[0]) - run(*moved[1])) / (2 * step)
            assert array.grad.numpy()[i] == pytest.approx(expected, rel=1e-5, abs=1e-6)
