"""API-1.19, section 4: types and values outside of kernels."""

import pickle

import numpy as np
import warp as wp
from probing import differs, floats, launched


def names_of_types():
    kinds = (wp.vec3, wp.types.vector(7, float), wp.mat33, wp.array(dtype=float), float)
    return [wp.types.type_repr(kind) for kind in kinds]


def equal_types():
    return wp.types.types_equal(float, wp.float32), wp.types.types_equal(wp.vec3, wp.types.vector(3, float))


def questions_about_types():
    kinds = (float, wp.vec3, wp.mat22, wp.quat, wp.transform, wp.bool, wp.array(dtype=float), "text", 3)
    questions = ("int", "float", "scalar", "vector", "matrix", "quaternion", "transformation", "value", "array")
    return [[bool(getattr(wp.types, f"type_is_{kind}")(dtype)) for kind in questions] for dtype in kinds]


def transform_of_nothing():
    return wp.transform(), wp.transformd()


def filled_transform():
    return wp.transform(1.5)


def quaternion_of_nothing():
    return wp.quat()


def equality_with_sequences():
    v = wp.vec3(1, 2, 3)
    return v == (1, 2, 3), v == [1, 2, 4], wp.mat22(1, 2, 3, 4) == ((1, 2), (3, 4))


def rows_and_columns():
    m = wp.mat22(1, 2, 3, 4)
    m.set_row(0, wp.vec2(5, 6))
    return m.get_row(0), m.get_col(1)


def number_plus_vector():
    return wp.vec3(1, 2, 3) + 1.0, 1.0 - wp.vec3(1, 2, 3)


@differs("type float")
def components_of_wide_vectors():
    return type(wp.vec3d(1, 2, 3)[0])


def components_wrap():
    v = wp.vec3ub()
    v[0] = -1
    return int(v[0])


def text_of_vectors():
    return str(wp.vec3(1, 2, 3)), repr(wp.vec3(1, 2, 3))


def wrong_number_of_components():
    return wp.vec3(1, 2)


def index_of_a_wrong_kind():
    return wp.vec3()[None]


def index_out_of_range():
    return wp.vec3()[3]


def pickled_values():
    return pickle.loads(pickle.dumps(wp.vec3(1, 2, 3)))


def builtin_by_keyword():
    return wp.transform_point(point=wp.vec3(1, 2, 3), mat=wp.mat44(*range(16)))


def builtin_without_a_match():
    return wp.dot(wp.vec3(), wp.vec2())


def numpy_takes_scalar_types():
    return np.zeros(2, dtype=wp.int8), np.dtype(wp.float32).name


def numpy_type_of_a_scalar_type():
    return wp.dtype_to_numpy(wp.int16).__name__


def default_of_a_struct_field():
    @wp.struct
    class S:
        n: wp.int32
        v: wp.vec3

    s = S()
    s.v = (1.0, 2.0, 3.0)
    return type(s.n), s.v


def unknown_field_of_a_struct():
    @wp.struct
    class S:
        n: wp.int32

    s = S()
    s.m = 3


def number_fields_keep_what_was_assigned():
    @wp.struct
    class S:
        n: wp.int32
        f: float
        h: wp.float16
        b: bool
        u: wp.uint8

    s = S()
    s.n, s.f, s.h, s.b, s.u = np.int64(7), 1, 0.1, 2.5, 300
    kept = [(type(x), x) for x in (s.n, s.f, s.h, s.b, s.u)]
    s.f, s.u = wp.float64(0.5), wp.uint8(3)
    return kept, [(type(x), float(x)) for x in (s.f, s.u)]


def none_for_a_struct_field():
    @wp.struct
    class S:
        n: wp.int32
        v: wp.vec3
        m: wp.mat22
        t: wp.transform
        a: wp.array(dtype=float)

    s = S()
    s.n, s.v, s.m, s.a = 3, wp.vec3(1.0, 2.0, 3.0), wp.mat22(1.0, 2.0, 3.0, 4.0), floats(1.0)
    s.n = s.v = s.m = s.t = s.a = None
    return type(s.n), int(s.n), s.v, s.m, s.t, s.a


def single_number_for_a_vector_field():
    @wp.struct
    class S:
        v: wp.vec3

    s = S()
    s.v = 1.0


def too_few_components_for_a_vector_field():
    @wp.struct
    class S:
        v: wp.vec3

    s = S()
    s.v = (1.0, 2.0)


def assigned_struct_field_is_a_copy():
    @wp.struct
    class Inner:
        w: wp.float64

    @wp.struct
    class S:
        inner: Inner

    s, i = S(), Inner()
    i.w = 2
    s.inner = i
    i.w = 3
    return s.inner.w


def struct_without_fields():
    @wp.struct
    class Nothing:
        pass

    @wp.struct
    class Holder:
        nothing: Nothing
        x: float

    def kernel(n: Nothing, h: Holder, many: wp.array(dtype=Nothing), out: wp.array(dtype=float)):
        made = Nothing()
        out[0] = h.x

    h = Holder()
    h.x = 3.0
    many = wp.zeros(3, dtype=Nothing)
    launched(kernel, 1, Nothing(), h, many, floats(0.0))
    return Nothing.vars, many.numpy().tolist(), many.numpy().dtype.itemsize


def numbers_of_structs_from_arrays():
    @wp.struct
    class S:
        n: wp.int32
        h: wp.float16

    return [(s.n, s.h) for s in wp.zeros(2, dtype=S).list()]
