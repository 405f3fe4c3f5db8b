// The Python members of typed values: construction, components, text, buffers, pickling.
#include "bindings/values.h"

#include <nanobind/stl/string.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "bindings/types.h"
#include "support/error.h"

namespace weft::bindings {

Value::Value(Type type) : type_(type), data_(storage_) {
    const auto size = static_cast<std::size_t>(type.size_bytes());
    if (size > kInlineBytes) data_ = new std::byte[size];
    std::memset(data_, 0, size);
}

Value::Value(Type type, std::byte* data, nb::handle owner) : type_(type), data_(data), owner_(owner.ptr()) {
    Py_INCREF(owner_);
}

Value::~Value() {
    if (owner_) {
        Py_DECREF(owner_);
    } else if (data_ != storage_) {
        delete[] data_;
    }
}

Number Value::component(int index) const {
    const Scalar scalar = type_.scalar();
    return read_scalar(scalar, data_ + index * info(scalar).bytes());
}

void Value::set_component(int index, Number number) {
    const Scalar scalar = type_.scalar();
    write_scalar(scalar, number, data_ + index * info(scalar).bytes());
}

namespace {

// All classes have the layout of Value, so one constructor serves every kind.
template <class... Arguments>
nb::object make_instance(Type type, Arguments... arguments) {
    nb::object made = nb::inst_alloc(dtype_to_python(type));
    new (nb::inst_ptr<Value>(made)) Value(type, arguments...);
    nb::inst_mark_ready(made);
    return made;
}

std::string name_of(const Value& value) { return value.type().python_name(); }

// ---- text ----

// The shortest decimal that reads back as the same number of its type, as Python writes floats.
std::string number_text(Number number, Scalar scalar) {
    if (!info(scalar).is_float()) return nb::str(number_to_python(number, scalar)).c_str();
    double shown = number.f;
    if (scalar != Scalar::f64 && std::isfinite(shown)) {
        for (int digits = 1; digits <= 9; ++digits) {
            char text[40];
            std::snprintf(text, sizeof text, "%.*e", digits - 1, number.f);
            shown = std::strtod(text, nullptr);
            if (convert(Number::real(shown), Scalar::f64, scalar).f == number.f) break;
        }
    }
    return nb::repr(nb::float_(shown)).c_str();
}

std::string components_text(const Value& value, int begin, int end) {
    std::string text;
    for (int i = begin; i < end; ++i) {
        text += (i > begin ? ", " : "") + number_text(value.component(i), value.type().scalar());
    }
    return text;
}

std::string rows_text(const Value& value, const char* between) {
    const int cols = value.type().cols();
    std::string text;
    for (int r = 0; r < value.type().rows(); ++r) {
        text.append(r ? between : "[").append("[").append(components_text(value, r * cols, (r + 1) * cols)).append("]");
    }
    return text.append("]");
}

std::string repr_of(const Value& value) {
    const Type type = value.type();
    if (type.is_matrix()) return name_of(value) + "(" + rows_text(value, ", ") + ")";
    if (type.is(Kind::transform)) {
        return name_of(value) + "((" + components_text(value, 0, 3) + "), (" + components_text(value, 3, 7) + "))";
    }
    return name_of(value) + "(" + components_text(value, 0, type.components()) + ")";
}

std::string text_of(const Value& value) {
    const Type type = value.type();
    if (type.is_scalar()) return components_text(value, 0, 1);
    if (type.is_matrix()) return rows_text(value, ",\n ");
    return std::string("[").append(components_text(value, 0, type.components())).append("]");
}

// ---- construction ----

std::string expected_arguments(Type type) {
    const std::string n = std::to_string(type.components());
    const std::string number = type.is_float() || info(type.scalar()).is_float()
                                   ? "numbers"
                                   : std::string("integers in the range of ") + info(type.scalar()).python;
    if (type.is(Kind::quaternion)) return "4 " + number + ", a sequence of 4, or (vector of 3, number)";
    if (type.is(Kind::transform)) return "a position and a rotation, or 7 " + number;
    return "no argument, one number for all components, " + n + " " + number + ", or a sequence of " + n;
}

[[noreturn]] void throw_bad_arguments(Type type, nb::args arguments) {
    const auto count = static_cast<int>(arguments.size());
    std::string found = count == 1 ? describe(arguments[0]) : std::to_string(count) + " arguments";
    if (count == type.components()) {
        for (int i = 0; i < count; ++i) {
            alignas(8) std::byte scratch[8];
            if (write_value(arguments[i], type.scalar_type(), scratch)) continue;
            found = describe(arguments[i]) + " for component " + std::to_string(i);
            break;
        }
    }
    throw UsageError(type.python_name() + "()", "expected " + expected_arguments(type) + "; got " + found,
                     ErrorCategory::type);
}

bool fill_aggregate(Value& self, nb::args arguments) {
    const Type type = self.type();
    if (arguments.size() == 0) return true;
    if (arguments.size() == 1) {
        const bool splats = type.is_vector() || type.is_matrix();
        alignas(8) std::byte first[8];
        if (splats && write_value(arguments[0], type.scalar_type(), first)) {
            const int bytes = info(type.scalar()).bytes();
            for (int i = 0; i < type.components(); ++i) std::memcpy(self.data() + i * bytes, first, bytes);
            return true;
        }
        return write_components(arguments[0], type, self.data(), true);
    }
    if (type.is(Kind::quaternion) && arguments.size() == 2) {
        const Type imaginary = Type::vector(type.scalar(), 3);
        return write_components(arguments[0], imaginary, self.data(), true) &&
               write_value(arguments[1], type.scalar_type(), self.data() + imaginary.size_bytes());
    }
    return write_components(arguments, type, self.data(), true);
}

// Explicit conversion of one number, by the rules of casts in kernels.
bool fill_scalar(Value& self, nb::args arguments) {
    if (arguments.size() == 0) return true;
    Number number;
    Scalar from;
    if (arguments.size() != 1 || !read_number(arguments[0], number, from)) return false;
    self.set_component(0, convert(number, from, self.type().scalar()));
    return true;
}

// transform(p=..., q=...): the missing one is zero, or no rotation.
void fill_transform_keywords(Value& self, nb::args arguments, nb::kwargs keywords) {
    const Type type = self.type();
    const Type p = Type::vector(type.scalar(), 3), q = Type::quaternion(type.scalar());
    self.set_component(6, Number::real(1.0));
    for (auto [key, value] : keywords) {
        const std::string name = nb::cast<std::string>(key);
        const bool is_p = name == "p";
        if (arguments.size() > (is_p ? 0 : 1) || (!is_p && name != "q")) {
            throw UsageError(type.python_name() + "()", "unexpected keyword '" + name + "'; it has p and q",
                             ErrorCategory::type);
        }
        if (!write_components(value, is_p ? p : q, self.data() + (is_p ? 0 : p.size_bytes()), true)) {
            throw UsageError(type.python_name() + "()",
                             name + " must be " + (is_p ? "3" : "4") + " numbers, got " + describe(value),
                             ErrorCategory::type);
        }
    }
    if (arguments.size() == 1 && !write_components(arguments[0], p, self.data(), true))
        throw_bad_arguments(type, arguments);
}

template <class Class>
void construct(nb::pointer_and_handle<Class> self, nb::args arguments, nb::kwargs keywords) {
    const std::optional<Type> type = value_type_of_class(Py_TYPE(self.h.ptr()));
    if (!type) {
        throw UsageError(nb::cast<std::string>(nb::str(self.h.type().attr("__name__"))) + "()",
                         "is the common base of typed values; make one of a type such as wp.vec3 or wp.float64",
                         ErrorCategory::type);
    }
    new (self.p) Class(*type);
    try {
        if (keywords.size() > 0) {
            if (!type->is(Kind::transform)) {
                throw UsageError(type->python_name() + "()", "takes no keyword arguments", ErrorCategory::type);
            }
            fill_transform_keywords(*self.p, arguments, keywords);
        } else if (!(type->is_scalar() ? fill_scalar(*self.p, arguments) : fill_aggregate(*self.p, arguments))) {
            if (!type->is_scalar()) throw_bad_arguments(*type, arguments);
            throw UsageError(
                type->python_name() + "()",
                "expected one number of at most 64 bits, got " +
                    (arguments.size() == 1 ? describe(arguments[0]) : std::to_string(arguments.size()) + " arguments"),
                ErrorCategory::type);
        }
    } catch (...) {
        self.p->~Class();  // nanobind does not destroy what was not constructed to the end
        throw;
    }
}

// ---- components ----

void store_component(Value& self, int index, nb::handle value) {
    const Scalar scalar = self.type().scalar();
    if (!write_value(value, Type::scalar(scalar), self.data() + index * info(scalar).bytes())) {
        throw UsageError(name_of(self) + "[" + std::to_string(index) + "]",
                         std::string("a component is ") + info(scalar).python + ", got " + describe(value),
                         ErrorCategory::type);
    }
}

nb::object load_component(const Value& self, int index) {
    return number_to_python(self.component(index), self.type().scalar());
}

// What one index picks of an axis: `count` places from `start` in steps; an int drops the axis.
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
                         ErrorCategory::type);
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

// An index expression as rows and columns; anything but a matrix is one row of columns.
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
                             ErrorCategory::index);
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
    int place(Py_ssize_t r, Py_ssize_t c, int width) const {
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
    const Value& self = *nb::inst_ptr<Value>(handle);
    const Selection selection(self, index);
    const int width = width_of(self);
    if (selection.is_scalar()) return load_component(self, selection.place(0, 0, width));
    const Type type = selection.type(self.type().scalar());
    if (selection.is_matrix && selection.rows.is_single && selection.cols.step == 1) {
        const int bytes = info(self.type().scalar()).bytes();
        return new_view(type, self.data() + selection.place(0, 0, width) * bytes, handle);
    }
    nb::object made = new_value(type);
    Value& result = *value_pointer(made);
    int next = 0;
    for (Py_ssize_t r = 0; r < selection.rows.count; ++r) {
        for (Py_ssize_t c = 0; c < selection.cols.count; ++c) {
            result.set_component(next++, self.component(selection.place(r, c, width)));
        }
    }
    return made;
}

void set_item(nb::handle handle, nb::handle index, nb::handle value) {
    Value& self = *nb::inst_ptr<Value>(handle);
    const Selection selection(self, index);
    const int width = width_of(self);
    if (selection.is_scalar()) return store_component(self, selection.place(0, 0, width), value);
    // Converted first, so that a value that does not fit changes nothing.
    Value part(selection.type(self.type().scalar()));
    alignas(8) std::byte splat[8];
    if (write_value(value, self.type().scalar_type(), splat)) {
        for (int i = 0; i < part.type().components(); ++i)
            part.set_component(i, read_scalar(self.type().scalar(), splat));
    } else if (!write_components(value, part.type(), part.data(), true)) {
        throw UsageError(name_of(self) + "[]",
                         "the part is a " + part.type().python_name() + ", got " + describe(value),
                         ErrorCategory::type);
    }
    int next = 0;
    for (Py_ssize_t r = 0; r < selection.rows.count; ++r) {
        for (Py_ssize_t c = 0; c < selection.cols.count; ++c) {
            self.set_component(selection.place(r, c, width), part.component(next++));
        }
    }
}

nb::object iterate(nb::handle self) {
    nb::list items;
    const auto count = nb::len(self);
    for (std::size_t i = 0; i < count; ++i) items.append(get_item(self, nb::int_(i)));
    return nb::steal(PyObject_GetIter(items.ptr()));
}

// v.x, and swizzles: v.zyx is a new vector.
nb::object get_letters(nb::handle handle, const std::string& letters) {
    const Value& self = *nb::inst_ptr<Value>(handle);
    std::vector<int> picked;
    for (char letter : letters) {
        const auto place = std::string_view("xyzw").find(letter);
        if (place == std::string_view::npos) break;
        picked.push_back(static_cast<int>(place));
    }
    const bool all = picked.size() == letters.size() && picked.size() >= 2 && picked.size() <= 4;
    for (int place : picked) {
        if (all && place < self.type().components()) continue;
        if (all)
            throw UsageError(name_of(self), "has no component '" + std::string(1, "xyzw"[place]) + "'",
                             ErrorCategory::attribute);
    }
    if (!all) throw UsageError(name_of(self), "has no attribute '" + letters + "'", ErrorCategory::attribute);
    nb::object made = new_value(Type::vector(self.type().scalar(), static_cast<int>(picked.size())));
    for (std::size_t i = 0; i < picked.size(); ++i)
        value_pointer(made)->set_component(static_cast<int>(i), self.component(picked[i]));
    return made;
}

template <int index>
void bind_letter(nb::handle python_class, const char* letter) {
    const auto check = [](const Value& self) {
        if (index < self.type().components()) return;
        throw UsageError(name_of(self), std::string("has no component '") + "xyzw"[index] + "'",
                         ErrorCategory::attribute);
    };
    nb::object get = nb::cpp_function([check](const Value& self) {
        check(self);
        return load_component(self, index);
    });
    nb::object set = nb::cpp_function([check](Value& self, nb::handle value) {
        check(self);
        store_component(self, index, value);
    });
    python_class.attr(letter) = nb::borrow(reinterpret_cast<PyObject*>(&PyProperty_Type))(get, set);
}

void bind_letters(nb::handle python_class) {
    bind_letter<0>(python_class, "x");
    bind_letter<1>(python_class, "y");
    bind_letter<2>(python_class, "z");
    bind_letter<3>(python_class, "w");
}

// ---- memory ----

// PEP 3118: shape (components,) or (rows, cols), in place. bfloat16 has no format.
int get_buffer(PyObject* object, Py_buffer* view, int flags) {
    static constexpr const char* kFormats[] = {"?", "b", "B", "h", "H", "i", "I", "q", "Q", "e", nullptr, "f", "d"};
    static_assert(std::size(kFormats) == static_cast<std::size_t>(Scalar::f64) + 1);
    Value& value = *nb::inst_ptr<Value>(object);
    const Type type = value.type();
    const char* format = kFormats[static_cast<int>(type.scalar())];
    if (!format) {
        PyErr_SetString(PyExc_BufferError, "bfloat16 has no buffer format; convert to float32 first");
        return -1;
    }
    const int bytes = info(type.scalar()).bytes();
    auto* extents = new Py_ssize_t[4]{type.rows(), type.cols(), static_cast<Py_ssize_t>(bytes) * type.cols(), bytes};
    if (!type.is_matrix()) extents[2] = bytes;
    *view = Py_buffer{};
    view->buf = value.data();
    view->obj = Py_NewRef(object);
    view->len = static_cast<Py_ssize_t>(type.size_bytes());
    view->itemsize = bytes;
    view->readonly = type.is_scalar();
    view->ndim = type.is_scalar() ? 0 : type.is_matrix() ? 2 : 1;
    view->format = flags & PyBUF_FORMAT ? const_cast<char*>(format) : nullptr;
    view->shape = flags & PyBUF_ND ? extents : nullptr;
    view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? extents + 2 : nullptr;
    view->internal = extents;
    return 0;
}

void release_buffer(PyObject*, Py_buffer* view) { delete[] static_cast<Py_ssize_t*>(view->internal); }

PyType_Slot kValueSlots[] = {
    {Py_bf_getbuffer, reinterpret_cast<void*>(&get_buffer)},
    {Py_bf_releasebuffer, reinterpret_cast<void*>(&release_buffer)},
    {0, nullptr},
};

nb::object restore_value(const std::string& type_name, nb::bytes data) {
    const std::optional<Type> type = parse_ir_type(type_name);
    if (!type || static_cast<std::int64_t>(data.size()) != type->size_bytes()) {
        throw UsageError("unpickling",
                         "no value of type '" + type_name + "' has " + std::to_string(data.size()) + " bytes",
                         ErrorCategory::value);
    }
    nb::object made = new_value(*type);
    std::memcpy(value_pointer(made)->data(), data.c_str(), data.size());
    return made;
}

template <class Class>
nb::class_<Class, AggregateValue> bind_aggregate(nb::module_& m, const char* name) {
    nb::class_<Class, AggregateValue> bound(m, name);
    bound.def("__init__", &construct<Class>);
    return bound;
}

}  // namespace

nb::object new_value(Type type) { return make_instance(type); }
nb::object new_view(Type type, std::byte* data, nb::handle owner) { return make_instance(type, data, owner); }

bool is_numpy_array(nb::handle object) {
    static PyTypeObject* array_class = nullptr;
    if (!array_class) {
        nb::handle numpy = PyDict_GetItemString(PyImport_GetModuleDict(), "numpy");
        if (!numpy.is_valid() || !nb::hasattr(numpy, "ndarray")) return false;
        array_class = reinterpret_cast<PyTypeObject*>(nb::object(numpy.attr("ndarray")).release().ptr());
    }
    return PyObject_TypeCheck(object.ptr(), array_class);
}

void bind_values(nb::module_& m) {
    nb::class_<Value> value(m, "Value", nb::type_slots(kValueSlots));
    value.def("__repr__", &repr_of);
    value.def("__str__", &text_of);
    m.def("_restore_value", &restore_value);
    m.def(
        "is_value", [](nb::handle object) { return value_pointer(object) != nullptr; }, nb::arg("object").none(),
        "Whether `object` is a typed scalar, vector, matrix, quaternion or transform.");
    value.def("__reduce__", [restore = nb::object(m.attr("_restore_value"))](const Value& self) {
        return nb::make_tuple(restore, nb::make_tuple(self.type().ir_name(),
                                                      nb::bytes(reinterpret_cast<const char*>(self.data()),
                                                                static_cast<std::size_t>(self.type().size_bytes()))));
    });
    // NumPy's scalars give way to our operators: np.float32(2) * v is a vector.
    value.attr("__array_priority__") = 1000.0;

    nb::class_<ScalarValue, Value> scalar(m, "ScalarValue");
    scalar.def("__init__", &construct<ScalarValue>);
    scalar.def_prop_ro("value", [](const Value& self) { return load_component(self, 0); });
    scalar.def("__float__",
               [](const Value& self) { return convert(self.component(0), self.type().scalar(), Scalar::f64).f; });
    scalar.def("__int__", [](const Value& self) { return nb::int_(load_component(self, 0)); });
    scalar.def("__bool__", [](const Value& self) { return self.component(0).as_double() != 0.0; });
    scalar.def("__hash__", [](const Value& self) { return nb::hash(load_component(self, 0)); });
    scalar.def("__format__", [](const Value& self, nb::handle specification) {
        return load_component(self, 0).attr("__format__")(specification);
    });
    nb::class_<IntegerValue, ScalarValue> integer(m, "IntegerValue");
    integer.def("__init__", &construct<IntegerValue>);
    integer.def("__index__", [](const Value& self) { return load_component(self, 0); });

    nb::class_<AggregateValue, Value> aggregate(m, "AggregateValue");
    aggregate.def("__len__", [](const Value& self) { return self.type().rows(); });
    aggregate.def("__getitem__", &get_item);
    aggregate.def("__setitem__", &set_item);
    aggregate.def("__iter__", &iterate);
    bind_letters(bind_aggregate<VectorValue>(m, "VectorValue").def("__getattr__", &get_letters));
    bind_aggregate<MatrixValue>(m, "MatrixValue");
    bind_letters(bind_aggregate<QuaternionValue>(m, "QuaternionValue"));

    auto transform = bind_aggregate<TransformValue>(m, "TransformValue");
    const auto part = [](bool is_p) {
        return [is_p](nb::handle handle) {
            const Value& self = *nb::inst_ptr<Value>(handle);
            const Type p = Type::vector(self.type().scalar(), 3), q = Type::quaternion(self.type().scalar());
            return new_view(is_p ? p : q, self.data() + (is_p ? 0 : p.size_bytes()), handle);
        };
    };
    transform.def_prop_ro("p", part(true), "Position: a view of the first 3 components.");
    transform.def_prop_ro("q", part(false), "Rotation: a view of the last 4 components.");

    bind_arithmetic(value);
    aggregate.attr("__hash__") = nb::none();  // mutable
}

}  // namespace weft::bindings
