// Components of typed values by index: v[-1], m[0, 1], m[0] (a row, which writes through), slices (copies), and the
// rows and columns of matrices by name.
#include <cstring>

#include "bindings/values/value_object.h"

namespace weft::bindings {

void store_component(Value& self, int index, nb::handle value) {
    const Scalar scalar = self.type().scalar();
    if (!write_component(value, scalar, self.data() + index * info(scalar).bytes())) {
        throw UsageError(name_of(self) + "[" + std::to_string(index) + "]",
                         std::string("a component is ") + info(scalar).python + ", got " + describe(value),
                         ErrorCategory::type);
    }
}

nb::object load_component(const Value& self, int index) {
    const Scalar scalar = self.type().scalar();
    if (scalar == Scalar::f32) {  // nearly all values
        float number;
        std::memcpy(&number, self.data() + static_cast<std::size_t>(index) * sizeof number, sizeof number);
        return nb::steal(PyFloat_FromDouble(number));
    }
    return number_to_python(self.component(index), scalar);
}

namespace {

// The places that one index selects on an axis: `count` from `start` in steps; an int drops the axis.
struct Picked {
    Py_ssize_t start = 0, step = 1, count = 1;
    bool is_single = true;
};

Picked pick(const Value& self, nb::handle index, Py_ssize_t size) {
    if (PySlice_Check(index.ptr())) {
        Picked picked{.is_single = false};
        Py_ssize_t stop;
        if (PySlice_Unpack(index.ptr(), &picked.start, &stop, &picked.step) < 0) throw nb::python_error();
        picked.count = PySlice_AdjustIndices(size, &picked.start, &stop, picked.step);
        if (picked.count == 0)
            throw UsageError(name_of(self) + "[]", "the slice has no components", ErrorCategory::index);
        return picked;
    }
    if (!PyIndex_Check(index.ptr())) {
        throw UsageError(name_of(self) + "[]", "an index is an int or a slice, got " + describe(index),
                         ErrorCategory::key);
    }
    Py_ssize_t i = PyNumber_AsSsize_t(index.ptr(), PyExc_IndexError);
    if (i == -1 && PyErr_Occurred()) throw nb::python_error();
    if (i < -size || i >= size) {
        throw UsageError(name_of(self) + "[]",
                         "index " + std::to_string(i) + " is outside 0 to " + std::to_string(size - 1),
                         ErrorCategory::index);
    }
    return {.start = i < 0 ? i + size : i};
}

// An index expression as rows and columns; all types but matrices are one row of columns.
struct Selection {
    Picked rows, cols;
    bool is_matrix;

    Selection(const Value& self, nb::handle index) : is_matrix(self.type().is_matrix()) {
        const Type type = self.type();
        const bool is_tuple = PyTuple_Check(index.ptr());
        const Py_ssize_t given = is_tuple ? static_cast<Py_ssize_t>(nb::len(index)) : 1;
        if (given > (is_matrix ? 2 : 1) || given == 0) {
            throw UsageError(name_of(self) + "[]",
                             "takes " + std::string(is_matrix ? "one or two indices" : "one index") + ", got " +
                                 std::to_string(given),
                             ErrorCategory::key);
        }
        nb::object first = is_tuple ? nb::object(index[0]) : nb::borrow(index);
        if (!is_matrix) {
            cols = pick(self, first, type.components());
            return;
        }
        rows = pick(self, first, type.rows());
        cols = given == 2 ? pick(self, nb::object(index[1]), type.cols())
                          : Picked{.count = type.cols(), .is_single = false};
    }
    bool is_scalar() const { return rows.is_single && cols.is_single; }
    int component_at(Py_ssize_t r, Py_ssize_t c, int width) const {
        return static_cast<int>((rows.start + r * rows.step) * width + cols.start + c * cols.step);
    }
    Type type(Scalar scalar) const {
        const auto r = static_cast<int>(rows.count), c = static_cast<int>(cols.count);
        if (!rows.is_single && !cols.is_single) return Type::matrix(scalar, r, c);
        return Type::vector(scalar, r * c);
    }
};

int width_of(const Value& self) { return self.type().is_matrix() ? self.type().cols() : self.type().components(); }

// A row is a view, so that `m[0][1] = x` writes into the matrix; other parts are copies.
nb::object get_item(nb::handle handle, nb::handle index) {
    const Value& self = value_of_object(handle.ptr());
    const Selection selection(self, index);
    const int width = width_of(self);
    if (selection.is_scalar()) return load_component(self, selection.component_at(0, 0, width));
    const Type type = selection.type(self.type().scalar());
    if (selection.is_matrix && selection.rows.is_single && selection.cols.step == 1) {
        const int bytes = info(self.type().scalar()).bytes();
        return new_view(type, self.data() + selection.component_at(0, 0, width) * bytes, handle);
    }
    nb::object made = new_value(type);
    Value& result = *value_pointer(made);
    int next = 0;
    for (Py_ssize_t r = 0; r < selection.rows.count; ++r) {
        for (Py_ssize_t c = 0; c < selection.cols.count; ++c) {
            result.set_component(next++, self.component(selection.component_at(r, c, width)));
        }
    }
    return made;
}

void set_item(nb::handle handle, nb::handle index, nb::handle value) {
    Value& self = value_of_object(handle.ptr());
    const Selection selection(self, index);
    const int width = width_of(self);
    if (selection.is_scalar()) return store_component(self, selection.component_at(0, 0, width), value);
    // Converted first, so that a value that does not fit changes nothing.
    Value part(selection.type(self.type().scalar()));
    alignas(8) std::byte splat[8];
    if (write_component(value, self.type().scalar(), splat)) {
        for (int i = 0; i < part.type().components(); ++i)
            part.set_component(i, read_scalar(self.type().scalar(), splat));
    } else if (!write_components(value, part.type(), part.data(), true)) {
        throw UsageError(name_of(self) + "[]",
                         "the part is a " + part.type().python_name() + ", got " + describe(value),
                         misfit_category(value, part.type()));
    }
    int next = 0;
    for (Py_ssize_t r = 0; r < selection.rows.count; ++r) {
        for (Py_ssize_t c = 0; c < selection.cols.count; ++c) {
            self.set_component(selection.component_at(r, c, width), part.component(next++));
        }
    }
}

// A component of a vector, quaternion or transform by a plain int: the common case.
int quick_index(const Value& self, PyObject* index) {
    if (!PyLong_CheckExact(index) || self.type().is_matrix()) return -1;
    const Py_ssize_t i = PyLong_AsSsize_t(index);
    if (i == -1 && PyErr_Occurred()) {
        PyErr_Clear();  // the slow path reports the error
        return -1;
    }
    const int size = self.type().rows();
    return i >= 0 && i < size ? static_cast<int>(i) : i < 0 && i >= -size ? static_cast<int>(i) + size : -1;
}

}  // namespace

namespace {

// m[i] or m[:, j] as an index.
nb::object line_index(bool is_row, nb::handle index, const char* api) {
    if (!PyIndex_Check(index.ptr()))
        throw UsageError(api, "an index is an int, got " + describe(index), ErrorCategory::type);
    if (is_row) return nb::borrow(index);
    return nb::make_tuple(nb::steal(PySlice_New(nullptr, nullptr, nullptr)), index);
}

template <bool is_row>
PyObject* get_line(PyObject* self, PyObject* index) {
    return guarded([&] {
        const nb::object line = get_item(self, line_index(is_row, index, is_row ? "get_row()" : "get_col()"));
        const Value& found = *value_pointer(line);
        nb::object made = new_value(found.type());
        std::memcpy(value_pointer(made)->data(), found.data(), static_cast<std::size_t>(found.type().size_bytes()));
        return made.release().ptr();
    });
}

template <bool is_row>
PyObject* set_line(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
    return guarded([&]() -> PyObject* {
        static const Signature<2> signature(is_row ? "set_row()" : "set_col()", {"index", "value"}, 2);
        const auto given = signature.parse(args, count, keywords);
        set_item(self, line_index(is_row, given[0], signature.api()), given[1]);
        Py_RETURN_NONE;
    });
}

template <class Function>
PyMethodDef setter(const char* name, Function* function, const char* doc) {
    return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(function)), METH_FASTCALL | METH_KEYWORDS, doc};
}

}  // namespace

PyMethodDef kMatrixMethods[] = {
    {"get_row", get_line<true>, METH_O, "get_row($self, index)\n--\n\nA copy of a row."},
    {"get_col", get_line<false>, METH_O, "get_col($self, index)\n--\n\nA copy of a column."},
    setter("set_row", set_line<true>, "set_row($self, index, value)\n--\n\nAssigns a row: numbers, or one for all."),
    setter("set_col", set_line<false>,
           "set_col($self, index, value)\n--\n\nAssigns a column: numbers, or one for all."),
    {},
};

PyObject* value_subscript(PyObject* self, PyObject* index) {
    return guarded([&] {
        const int component = quick_index(value_of_object(self), index);
        return (component >= 0 ? load_component(value_of_object(self), component) : get_item(self, index))
            .release()
            .ptr();
    });
}

PyObject* value_item(PyObject* self, Py_ssize_t index) {
    nb::object key = nb::steal(PyLong_FromSsize_t(index));
    return key.is_valid() ? value_subscript(self, key.ptr()) : nullptr;
}

int value_assign_subscript(PyObject* self, PyObject* index, PyObject* value) {
    return guarded(
        [&] {
            if (!value)
                throw UsageError(name_of(value_of_object(self)) + "[]", "components cannot be deleted",
                                 ErrorCategory::type);
            const int component = quick_index(value_of_object(self), index);
            if (component >= 0)
                store_component(value_of_object(self), component, value);
            else
                set_item(self, index, value);
            return 0;
        },
        -1);
}

}  // namespace weft::bindings
