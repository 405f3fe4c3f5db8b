"""f-strings and format() in print(), and as messages of raise and of assert."""

import pytest
import warp as wp


@wp.kernel
def shown(n: int, x: float, v: wp.vec2):
    print("{} and {:.2f}, {{}}".format(n, x))
    print("{1:3d}|{0:<6.1f}|{1}".format(x, n), "{v} {name:+d}".format(name=n + 1, v=v), sep="; ")
    print("no field".format(), "100 %: {}%".format(n))


def test_format_shows_what_pythons_does(capfd):
    wp.launch(shown, dim=1, inputs=[7, 1.25, wp.vec2(0.5, 2.0)])
    wp.synchronize()
    lines = capfd.readouterr().out.splitlines()
    assert lines[-3] == "{} and {:.2f}, {{}}".format(7, 1.25)
    assert lines[-2] == "{1:3d}|{0:<6.1f}|{1}; 0.5 2 {2:+d}".format(1.25, 7, 8)
    assert lines[-1] == "no field 100 %: 7%"


@pytest.mark.parametrize("mode", ["release", "debug"])
def test_format_is_the_message_of_an_exception(mode):
    @wp.kernel(module_options={"mode": mode})
    def limited(most: int):
        i = wp.tid()
        if i > most:
            raise IndexError("{} is more than {most}".format(i, most=most))

    with pytest.raises(IndexError, match=r"IndexError: 3 is more than 2, in kernel 'limited', thread \(3,\)"):
        wp.launch(limited, dim=4, inputs=[2])
        wp.synchronize()


@wp.kernel(module_options={"mode": "debug"})
def counted(x: wp.array[float], out: wp.array[int], done: wp.array[int]):
    i = wp.tid()
    for k in range(3):
        assert x[i] * float(k) < 4.0, f"x[{i}] is {x[i]:.2f}, {k} times"
        out[i] += 1
    assert out[i] == 3, "{} of {}".format(out[i], 3)
    done[i] = 1


def test_a_failed_assert_shows_values():
    x, out, done = wp.array([1.0, 1.5, 2.0, 2.5], dtype=float), wp.zeros(4, dtype=int), wp.zeros(4, dtype=int)
    with pytest.raises(AssertionError, match=r"x\[2\] is 2.00, 2 times, in kernel 'counted', thread \(2,\)"):
        wp.launch(counted, dim=4, inputs=[x, out, done])
    # The thread does nothing after it.
    assert out.numpy()[:3].tolist() == [3, 3, 2] and done.numpy()[:3].tolist() == [1, 1, 0]
    out = wp.array([0, 5], dtype=int)
    with pytest.raises(AssertionError, match=r"8 of 3, in kernel 'counted', thread \(1,\)"):
        wp.launch(counted, dim=2, inputs=[x, out, done])


def test_an_assert_in_a_function_ends_what_called_it():
    @wp.func
    def root(x: float):
        assert x >= 0.0, f"{x} has no root"
        return wp.sqrt(x)

    @wp.kernel(module_options={"mode": "debug"})
    def roots(x: wp.array[float]):
        i = wp.tid()
        x[i] = root(x[i])

    x = wp.array([4.0, -9.0], dtype=float)
    with pytest.raises(AssertionError, match=r"-9 has no root"):
        wp.launch(roots, dim=2, inputs=[x])
    assert x.numpy().tolist() == [2.0, -9.0]


def test_release_builds_have_no_code_for_it():
    @wp.kernel
    def unchecked(x: wp.array[float]):
        i = wp.tid()
        assert x[i] < 0.0, f"{x[i]} is not negative"
        x[i] += 1.0

    x = wp.zeros(3, dtype=float)
    wp.launch(unchecked, dim=3, inputs=[x])
    assert x.numpy().tolist() == [1.0] * 3
    assert "raise" not in unchecked.listing("ir")
