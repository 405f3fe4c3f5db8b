"""Structs of dataclasses: the properties that @dataclass gives hold in Python and in kernels, or are refused."""

import copy
import dataclasses
import inspect
import pickle
from dataclasses import KW_ONLY, InitVar, dataclass, field
from typing import ClassVar

import numpy as np
import pytest
import warp as wp


@wp.struct
@dataclass
class Ball:
    radius: float
    mass: float = 2.0
    area: float = field(init=False)
    counted: ClassVar[int] = 7

    def __post_init__(self):
        self.area = self.radius * self.radius

    @classmethod
    def unit(cls, mass: float):
        return cls(1.0, mass)

    @staticmethod
    def doubled(x: float):
        return 2.0 * x

    @property
    def density(self):
        return self.mass / self.area


@wp.struct
@dataclass(frozen=True)
class Fixed:
    x: float
    v: wp.vec3 = field(default_factory=lambda: wp.vec3(1.0, 2.0, 3.0))

    def moved(self, by: float):
        return Fixed(self.x + by, self.v)


@wp.struct
@dataclass(order=True)
class Named:
    a: int
    _: KW_ONLY
    b: int = 3
    c: int = field(default=4, compare=False)


def test_post_init_runs():
    ball = Ball(3.0)
    assert ball.area == 9.0 and ball.mass == 2.0 and ball.density == 2.0 / 9.0
    assert Ball.unit(5.0).mass == 5.0 and Ball.unit(5.0).area == 1.0 and Ball.doubled(4.0) == 8.0
    assert Ball.counted == 7

    @wp.kernel
    def k(out: wp.array2d[float]):
        i = wp.tid()
        x = float(i)
        a = Ball(x + 1.0)
        b = Ball.unit(x)
        c = Ball(mass=1.0, radius=2.0)
        out[i, 0] = a.area
        out[i, 1] = b.mass + b.area
        out[i, 2] = c.density + Ball.doubled(x) + a.unit(3.0).mass

    out = wp.zeros((3, 3))
    wp.launch(k, dim=3, inputs=[out])
    x = np.arange(3.0)
    assert np.array_equal(out.numpy(), np.stack([(x + 1) ** 2, x + 1, 0.25 + 2 * x + 3], axis=1).astype(np.float32))


def test_gradients_pass_through_post_init():
    @wp.kernel
    def k(x: wp.array[wp.float64], y: wp.array[wp.float64]):
        i = wp.tid()
        s = Square(x[i])
        y[i] = s.area * s.side

    x = wp.array(np.array([0.5, -2.0]), requires_grad=True)
    y = wp.zeros(2, dtype=wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(k, dim=2, inputs=[x, y])
    tape.backward(grads={y: wp.ones(2, dtype=wp.float64)})
    assert np.allclose(x.grad.numpy(), 3 * x.numpy() ** 2, rtol=1e-15)


@wp.struct
@dataclass
class Square:
    side: wp.float64
    area: wp.float64 = field(init=False)

    def __post_init__(self):
        self.area = self.side * self.side


def test_python_sees_a_dataclass():
    assert dataclasses.is_dataclass(Ball) and dataclasses.is_dataclass(Ball(1.0))
    assert [f.name for f in dataclasses.fields(Ball)] == ["radius", "mass", "area"]
    assert dataclasses.replace(Fixed(1.0), x=5.0).x == 5.0
    assert dataclasses.asdict(Named(1)) == {"a": 1, "b": 3, "c": 4}
    assert list(inspect.signature(Ball.__init__).parameters) == ["self", "radius", "mass"]
    assert repr(Named(1)) == "Named(a=1, b=3, c=4)"
    assert Ball.__match_args__ == ("radius", "mass")


def test_a_field_without_a_default_must_be_given():
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'radius'"):
        Ball()
    with pytest.raises(TypeError, match="unexpected keyword argument 'area'"):
        Ball(1.0, area=2.0)
    with pytest.raises(TypeError, match="positional"):
        Named(1, 2)

    @wp.kernel
    def missing(out: wp.array[float]):
        out[0] = Ball(mass=1.0).area

    @wp.kernel
    def computed(out: wp.array[float]):
        out[0] = Ball(1.0, 2.0, 3.0).area

    @wp.kernel
    def by_keyword(out: wp.array[int]):
        out[0] = Named(1, 2).b

    for kernel, out, text in (
        (missing, wp.zeros(1), "'radius' of Ball is missing, and it has no default"),
        (computed, wp.zeros(1), "Ball takes 2 arguments by position, got more"),
        (by_keyword, wp.zeros(1, dtype=int), "Named takes 1 argument by position, got more"),
    ):
        with pytest.raises(wp.CompileError, match=text):
            wp.launch(kernel, dim=1, inputs=[out])


def test_frozen_fields_are_not_assigned():
    fixed = Fixed(1.0)
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'x'"):
        fixed.x = 2.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        del fixed.x
    assert fixed.x == 1.0 and fixed.moved(2.0).x == 3.0 and hash(Named) and isinstance(hash(Fixed(1.0).x), int)

    @wp.kernel
    def assigns(a: wp.array[Fixed]):
        f = a[0]
        f.x = 2.0

    @wp.kernel
    def adds(a: wp.array[Fixed]):
        a[0].x += 2.0

    @wp.kernel
    def makes(a: wp.array[Fixed]):
        a[0] = a[0].moved(4.0)

    a = wp.zeros(1, dtype=Fixed)
    for kernel in (assigns, adds):
        with pytest.raises(wp.CompileError, match="field 'x' of Fixed cannot be assigned: the dataclass is frozen"):
            wp.launch(kernel, dim=1, inputs=[a])
    wp.launch(makes, dim=1, inputs=[a])
    assert a.numpy()["x"].tolist() == [4.0]


def test_a_frozen_dataclass_may_fill_itself():
    @wp.struct
    @dataclass(frozen=True)
    class Sum:
        a: float
        total: float = field(init=False)

        def __post_init__(self):
            object.__setattr__(self, "total", self.a + 1.0)

    assert Sum(2.0).total == 3.0


def test_instances_are_equal_field_by_field():
    assert Named(1, b=2) == Named(1, b=2, c=9) and Named(1) != Named(2) and Named(1) < Named(2)
    assert Fixed(1.0) == Fixed(1.0) and Fixed(1.0) != Fixed(1.0, wp.vec3(0.0, 0.0, 0.0))
    with pytest.raises(TypeError, match="unhashable"):
        hash(Named(1))

    @wp.kernel
    def k(n: wp.array[Named], f: wp.array[Fixed], out: wp.array[bool]):
        out[0] = n[0] == n[1]
        out[1] = n[0] != n[2]
        out[2] = f[0] == f[1]
        out[3] = f[0] == Fixed(1.0, wp.vec3(1.0, 2.0, 4.0))

    n = wp.array([Named(1), Named(1, c=9), Named(2)], dtype=Named)
    f = wp.array([Fixed(1.0), Fixed(1.0)], dtype=Fixed)
    out = wp.zeros(4, dtype=bool)
    wp.launch(k, dim=1, inputs=[n, f, out])
    assert out.numpy().tolist() == [True, True, True, False]

    @wp.struct
    @dataclass(eq=False)
    class Same:
        x: float

    same = Same(1.0)
    assert same == same and Same(1.0) != Same(1.0)

    @wp.kernel
    def compares(out: wp.array[bool]):
        out[0] = Same(1.0) == Same(1.0)

    with pytest.raises(wp.CompileError, match="'==' cannot compare Same and Same"):
        wp.launch(compares, dim=1, inputs=[out])


@wp.struct
@dataclass
class Factory:
    v: wp.vec3 = field(default_factory=lambda: wp.vec3(1.0, 2.0, 3.0))
    inner: Named = field(default_factory=lambda: Named(8))
    data: wp.array(dtype=float) = field(default_factory=lambda: wp.ones(3, device="cpu"))
    n: int = 1


def test_factories_run_for_each_instance():
    first, second = Factory(), Factory()
    assert tuple(first.v) == (1.0, 2.0, 3.0) and first.inner.a == 8 and first.data.numpy().tolist() == [1.0] * 3
    assert first.data is not second.data
    first.v.x = 9.0
    assert Factory().v.x == 1.0

    @wp.kernel
    def takes_default(out: wp.array[float]):
        out[0] = Factory().v.x

    @wp.kernel
    def gives_all(f: Factory, out: wp.array[float]):
        g = Factory(inner=Named(2), data=f.data)
        out[0] = g.v[1] + float(g.inner.a) + g.data[2] + float(g.n)

    out = wp.zeros(1, device="cpu")
    with pytest.raises(wp.CompileError, match="'inner' of Factory is missing, and it has no default in kernels"):
        wp.launch(takes_default, dim=1, inputs=[out], device="cpu")
    wp.launch(gives_all, dim=1, inputs=[first, out], device="cpu")
    assert out.numpy()[0] == 2 + 2 + 1 + 1


def test_variables_of_init_reach_post_init():
    @wp.struct
    @dataclass
    class Scaled:
        x: float
        scale: InitVar[float]
        y: float = 1.0

        def __post_init__(self, scale: float):
            self.x = self.x * scale

    assert Scaled(2.0, 3.0).x == 6.0

    @wp.kernel
    def k(out: wp.array[float]):
        s = Scaled(2.0, 4.0, 5.0)
        out[0] = s.x + s.y

    out = wp.zeros(1)
    wp.launch(k, dim=1, inputs=[out])
    assert out.numpy()[0] == 13.0


def test_derived_dataclasses_take_the_arguments_of_both():
    @wp.struct
    @dataclass
    class Base:
        a: float
        b: float = 2.0

    @wp.struct
    @dataclass
    class Derived(Base):
        c: float = 3.0

    derived = Derived(1.0, c=5.0)
    assert (derived.a, derived.b, derived.c) == (1.0, 2.0, 5.0) and isinstance(derived, Base)

    @wp.kernel
    def k(out: wp.array[float]):
        d = Derived(1.0, 7.0)
        out[0] = d.a + 10.0 * d.b + 100.0 * d.c

    out = wp.zeros(1)
    wp.launch(k, dim=1, inputs=[out])
    assert out.numpy()[0] == 371.0

    with pytest.raises(wp.UsageError, match="Plain is derived from the dataclass Base and is none itself"):

        @wp.struct
        class Plain(Base):
            d: float

    @wp.struct
    class Old:
        e: float

    with pytest.raises(wp.UsageError, match="New is a dataclass, and its base Old is none"):

        @wp.struct
        @dataclass
        class New(Old):
            f: float

    with pytest.raises(wp.UsageError, match="NoInit is a dataclass with init=False"):

        @wp.struct
        @dataclass(init=False)
        class NoInit:
            f: float


def test_a_data_class_with_slots_is_a_struct():
    @wp.struct
    @dataclass(slots=True)
    class Slotted:
        a: float
        b: float = 2.0

    slotted = Slotted(1.0)
    assert (slotted.a, slotted.b) == (1.0, 2.0)
    assert wp.array([slotted], dtype=Slotted, device="cpu").numpy().tolist() == [(1.0, 2.0)]


def test_copies_are_made_without_init():
    ball = Ball(3.0)
    ball.area = 1.0
    for other in (copy.copy(ball), copy.deepcopy(ball), pickle.loads(pickle.dumps(ball))):
        assert (other.radius, other.area) == (3.0, 1.0) and other is not ball
    fixed = pickle.loads(pickle.dumps(Fixed(4.0)))
    assert fixed == Fixed(4.0)


def test_arrays_of_dataclasses_have_their_elements_back():
    a = wp.array([Ball(1.0), Ball(2.0)], dtype=Ball)
    assert [ball.area for ball in a.list()] == [1.0, 4.0]
    assert wp.zeros(1, dtype=Ball).numpy()["mass"][0] == 0.0  # zeros, no defaults


def test_a_dataclass_that_compares_can_be_recorded():
    @wp.struct
    @dataclass
    class State:
        x: wp.array(dtype=float)

    @wp.kernel
    def k(s: State, out: wp.array[float]):
        i = wp.tid()
        out[i] = s.x[i] * s.x[i]

    x, out = wp.array([1.0, 3.0], dtype=float, requires_grad=True), wp.zeros(2, requires_grad=True)
    state = State(x)
    with wp.Tape() as tape:
        wp.launch(k, dim=2, inputs=[state, out])
    tape.backward(grads={out: wp.ones(2)})
    assert x.grad.numpy().tolist() == [2.0, 6.0]


def test_a_struct_tells_its_fields_and_its_layout():
    import ctypes

    @wp.struct
    class Mixed:
        flag: wp.bool
        v: wp.vec3d
        m: wp.types.matrix((2, 3), wp.float16)
        a: wp.array(dtype=float)
        inner: Named

    assert Mixed.__annotations__ == {
        "flag": wp.bool,
        "v": wp.vec3d,
        "m": wp.types.matrix((2, 3), wp.float16),
        "a": Mixed.__annotations__["a"],
        "inner": Named,
    }
    assert Mixed.__name__ == "Mixed" and Mixed.__qualname__.endswith("<locals>.Mixed")
    assert isinstance(Mixed.hash, bytes) and Mixed.hash != Named.hash and Mixed.hash is Mixed.hash
    assert Mixed.native_name.isidentifier() and Mixed.native_name != Named.native_name
    layout = Mixed.numpy_dtype()
    assert issubclass(Mixed.ctype, ctypes.Structure) and ctypes.sizeof(Mixed.ctype) == layout["itemsize"]
    for name, offset in zip(layout["names"], layout["offsets"], strict=True):
        assert getattr(Mixed.ctype, name).offset == offset, name

    a = wp.array([4.0], dtype=float, device="cpu")
    value = Mixed(flag=True, v=wp.vec3d(1.0, 2.0, 3.0), a=a, inner=Named(7))
    block = wp.array([value], dtype=Mixed, device="cpu")
    read = Mixed.ctype.from_address(block.ptr)
    assert read.flag and list(read.v) == [1.0, 2.0, 3.0] and read.inner.a == 7 and read.a.data == a.ptr
