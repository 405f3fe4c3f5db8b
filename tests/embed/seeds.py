"""The backward passes of seeds.cpp, in Python: they print the same lines, which test_embed.py compares with numbers."""

import warp as wp
from slopes import scaled

COUNT = 3


def numbers(*values, has_gradient=True):
    return wp.array(values, dtype=float, requires_grad=has_gradient, device="cpu")


class Arrays:
    def __init__(self, has_gradients=True):
        self.x, self.y, self.z = (
            numbers(*values, has_gradient=has_gradients) for values in ((1, 2, 3), (4, 5, 6), (7, 8, 9))
        )
        self.seed = numbers(1, 10, 100, has_gradient=False)


def text(array):
    return " none;" if array is None else "".join(f" {number:g}" for number in array.numpy()) + ";"


def show(name, arrays, seed):
    print(name + ":" + "".join(text(one.grad) for one in (arrays.x, arrays.y, arrays.z)) + text(seed))


def launched(a, dim=COUNT):
    with wp.Tape() as tape:
        wp.launch(scaled, dim, [a.x, 3.0, a.y], device="cpu")
    return tape


def from_memory_of_its_own():
    for dim in (COUNT, 2):
        a = Arrays()
        a.y.grad.fill_(7.0)
        tape = launched(a, dim)
        tape.backward(grads={a.y: a.seed})
        show("whole" if dim == COUNT else "a part", a, a.seed)
        tape.backward(grads={a.y: a.seed})
        show("again", a, a.seed)


def in_the_gradient_itself():
    for reversed in (False, True):
        a = Arrays()
        seed = a.y.grad[::-1] if reversed else a.y.grad
        a.y.grad.assign(a.seed)
        launched(a).backward(grads={a.y: seed})
        show("its own gradient, reversed" if reversed else "its own gradient", a, seed)


def in_the_gradient_of_another_array():
    a = Arrays()
    a.z.grad.assign(a.seed)
    launched(a).backward(grads={a.y: a.z.grad})
    show("another gradient", a, a.z.grad)


def of_several_arrays():
    a, of_z = Arrays(), numbers(2, 4, 8, has_gradient=False)
    tape = launched(a)
    with tape:
        wp.launch(scaled, COUNT, [a.y, -2.0, a.z], device="cpu")
    tape.backward(grads={a.y: a.seed, a.z: of_z})
    show("read later", a, a.seed)


def overwritten_later():
    a, b = Arrays(), Arrays()
    tape = launched(a)
    with tape:
        a.y.zero_()
    tape.backward(grads={a.y: a.seed})
    show("overwritten later", a, a.seed)
    tape = launched(b)
    with tape:
        wp.copy(b.y, b.z)
    tape.backward(grads={b.y: b.seed})
    show("copied over later", b, b.seed)


def without_gradients():
    for of_x in (False, True):
        a = Arrays(has_gradients=False)
        tape = launched(a)
        if of_x:
            a.x.requires_grad = True
        tape.backward(grads={a.y: a.seed})
        show("late gradients" if of_x else "a late gradient", a, a.seed)


if __name__ == "__main__":
    from_memory_of_its_own()
    in_the_gradient_itself()
    in_the_gradient_of_another_array()
    of_several_arrays()
    overwritten_later()
    without_gradients()
