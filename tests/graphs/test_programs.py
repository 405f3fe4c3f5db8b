"""Random programs in a graph, beside the same programs outside of it."""

import numpy as np
import pytest
import warp as wp
from hypothesis import given, settings
from hypothesis import strategies as st

pytestmark = [pytest.mark.protected, pytest.mark.own_launches("counts launches, orders them or makes them fail")]


@wp.kernel
def grow(x: wp.array[float]):
    x[wp.tid()] += 1.0


@wp.kernel
def mix(share: float, x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    y[i] = y[i] + share * x[i]


@wp.kernel
def turn(left: wp.array[int], turns: wp.array[int]):
    left[0] -= 1
    turns[0] += 1


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "axpy", "copy", "fill", "zero", "assign", "part", "scan", "made", "if", "while"]),
        st.integers(0, 2),
        st.integers(0, 2),
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=60)
@given(STEPS, st.integers(0, 1))
def test_any_sequence_is_what_it_is_outside_of_a_graph(steps, flag):
    def work(arrays, condition, count):
        for what, i, j in steps:
            a, b = arrays[i], arrays[j]
            if what == "add":
                wp.launch(grow, dim=6, inputs=[a])
            elif what == "axpy":
                wp.launch(mix, dim=6, inputs=[0.25, a, b])
            elif what == "copy":
                wp.copy(a[:3], b[3:])
            elif what == "fill":
                a.fill_(float(i + j))
            elif what == "zero":
                a[::2].zero_()
            elif what == "assign":
                a.assign(np.arange(6) + j)
            elif what == "part":
                a[1:4] = [3.0, 4.0, float(j)]
            elif what == "scan":
                wp.utils.array_scan(a, a)
            elif what == "made":
                made = wp.clone(b)
                wp.launch(mix, dim=6, inputs=[0.5, made, a])
            elif what == "if":
                wp.capture_if(condition, lambda x: x.fill_(0.5), lambda x: x.zero_(), x=a)
            else:
                count.fill_(j)
                wp.capture_while(count, body, a=a, count=count)

    def body(a, count):
        wp.launch(grow, dim=6, inputs=[a])
        wp.launch(turn, dim=1, inputs=[count, wp.zeros(1, dtype=int)])

    def make():
        arrays = [wp.array(np.arange(6) * (k + 1), dtype=float) for k in range(3)]
        return arrays, wp.array([flag], dtype=int), wp.zeros(1, dtype=int)

    direct, replayed = make(), make()
    with wp.ScopedCapture() as capture:
        work(*replayed)
    for _ in range(3):
        work(*direct)
        wp.capture_launch(capture.graph)
        for a, b in zip(direct[0], replayed[0], strict=True):
            np.testing.assert_array_equal(b.numpy(), a.numpy())
