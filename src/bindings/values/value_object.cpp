// The Python classes of typed values: life, attributes, buffers, pickling.
//
// Eight base classes are made here (VectorValue ...). The class of each type (wp.vec3f) is derived from one of them at
// its first use (types.cpp). finish_value_class() lets calls of it come straight to construct().
#include "bindings/values/value_object.h"

#include <structmember.h>

#include <cstddef>
#include <cstring>

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

PyTypeObject* value_class = nullptr;  // the base of all

// ---- life ----

template <class... More>
PyObject* make_instance(PyTypeObject* python_class, Type type, More... more) {
    PyObject* made = python_class->tp_alloc(python_class, 0);
    if (!made) throw nb::python_error();
    new (&value_of_object(made)) Value(type, more...);
    return made;
}

PyTypeObject* class_of(Type type) { return reinterpret_cast<PyTypeObject*>(dtype_to_python(type).ptr()); }

Type require_type(PyTypeObject* python_class) {
    if (const std::optional<Type> type = value_type_of_class(python_class)) return *type;
    throw UsageError(std::string(python_class->tp_name) + "()",
                     "is the common base of typed values; make one of a type such as wp.vec3 or wp.float64",
                     ErrorCategory::type);
}

// A call of wp.vec3 itself: one step, without a tuple of arguments.
PyObject* construct(PyObject* python_class, PyObject* const* arguments, std::size_t flags, PyObject* names) {
    return guarded([&] {
        auto* type = reinterpret_cast<PyTypeObject*>(python_class);
        const auto count = static_cast<std::size_t>(PyVectorcall_NARGS(flags));
        nb::object made = nb::steal(make_instance(type, require_type(type)));
        Keywords keywords;
        for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); ++i) {
            keywords.emplace_back(nb::cast<std::string>(nb::handle(PyTuple_GET_ITEM(names, i))),
                                  arguments[count + static_cast<std::size_t>(i)]);
        }
        fill_value(value_of_object(made.ptr()), {arguments, count}, keywords);
        return made.release().ptr();
    });
}

// The same for classes that users derive.
PyObject* new_zero(PyTypeObject* python_class, PyObject*, PyObject*) {
    return guarded([&] { return make_instance(python_class, require_type(python_class)); });
}

int initialise(PyObject* self, PyObject* arguments, PyObject* named) {
    return guarded(
        [&] {
            Keywords keywords;
            PyObject *key, *value;
            for (Py_ssize_t at = 0; named && PyDict_Next(named, &at, &key, &value);)
                keywords.emplace_back(nb::cast<std::string>(nb::handle(key)), value);
            fill_value(value_of_object(self),
                       {&PyTuple_GET_ITEM(arguments, 0), static_cast<std::size_t>(PyTuple_GET_SIZE(arguments))},
                       keywords);
            return 0;
        },
        -1);
}

void deallocate(PyObject* self) {
    PyTypeObject* python_class = Py_TYPE(self);
    Py_CLEAR(reinterpret_cast<ValueObject*>(self)->attributes);
    value_of_object(self).~Value();
    python_class->tp_free(self);
    Py_DECREF(python_class);
}

// ---- x, y, z, w ----

// The component numbers of a name such as "zyx"; 0 for another name.
int read_letters(PyObject* name, int places[4]) {
    const Py_ssize_t length = PyUnicode_GET_LENGTH(name);
    if (length < 1 || length > 4 || !PyUnicode_IS_ASCII(name)) return 0;
    const char* text = reinterpret_cast<const char*>(PyUnicode_1BYTE_DATA(name));
    for (Py_ssize_t i = 0; i < length; ++i) {
        if (text[i] == 'w')
            places[i] = 3;
        else if (text[i] >= 'x' && text[i] <= 'z')
            places[i] = text[i] - 'x';
        else
            return 0;
    }
    return static_cast<int>(length);
}

[[noreturn]] void throw_no_component(const Value& self, int place) {
    throw UsageError(name_of(self), std::string("has no component '") + "xyzw"[place] + "'", ErrorCategory::attribute);
}

// v.x, and swizzles of vectors: v.zyx is a new vector. They come before other attributes, because most accesses are of
// them.
PyObject* get_attribute(PyObject* self, PyObject* name) {
    int places[4];
    const int count = read_letters(name, places);
    const Value& value = value_of_object(self);
    if (count == 0 || (count > 1 && !value.type().is_vector())) return PyObject_GenericGetAttr(self, name);
    return guarded([&] {
        for (int i = 0; i < count; ++i)
            if (places[i] >= value.type().components()) throw_no_component(value, places[i]);
        if (count == 1) return load_component(value, places[0]).release().ptr();
        nb::object made = new_value(Type::vector(value.type().scalar(), count));
        for (int i = 0; i < count; ++i) value_pointer(made)->set_component(i, value.component(places[i]));
        return made.release().ptr();
    });
}

PyObject* get_letter(PyObject* self, void* place) {
    return guarded([&] {
        const int index = static_cast<int>(reinterpret_cast<std::intptr_t>(place));
        if (index >= value_of_object(self).type().components()) throw_no_component(value_of_object(self), index);
        return load_component(value_of_object(self), index).release().ptr();
    });
}

int set_letter(PyObject* self, PyObject* number, void* place) {
    return guarded(
        [&] {
            Value& value = value_of_object(self);
            const int index = static_cast<int>(reinterpret_cast<std::intptr_t>(place));
            if (index >= value.type().components()) throw_no_component(value, index);
            if (!number) throw UsageError(name_of(value), "components cannot be deleted", ErrorCategory::type);
            store_component(value, index, number);
            return 0;
        },
        -1);
}

PyGetSetDef kLetters[] = {{"x", get_letter, set_letter, "The first component.", reinterpret_cast<void*>(0)},
                          {"y", get_letter, set_letter, "The second component.", reinterpret_cast<void*>(1)},
                          {"z", get_letter, set_letter, "The third component.", reinterpret_cast<void*>(2)},
                          {"w", get_letter, set_letter, "The fourth component.", reinterpret_cast<void*>(3)},
                          {}};

// ---- p and q of transforms ----

struct TransformComponent {
    Type type;
    std::byte* data;
};
TransformComponent transform_part(PyObject* self, void* which) {
    const Value& value = value_of_object(self);
    const Type p = Type::vector(value.type().scalar(), 3);
    if (!which) return {p, value.data()};
    return {Type::quaternion(value.type().scalar()), value.data() + p.size_bytes()};
}

PyObject* get_part(PyObject* self, void* which) {
    return guarded([&] {
        const TransformComponent part = transform_part(self, which);
        return new_view(part.type, part.data, self).release().ptr();
    });
}

int set_part(PyObject* self, PyObject* given, void* which) {
    return guarded(
        [&] {
            const TransformComponent part = transform_part(self, which);
            Value copy(part.type);  // a value that does not fit must change nothing
            if (!given || !write_components(given, part.type, copy.data(), true)) {
                throw UsageError(name_of(value_of_object(self)) + (which ? ".q" : ".p"),
                                 "expected a " + part.type.python_name() + ", got " +
                                     (given ? describe(given) : "nothing: it cannot be deleted"),
                                 ErrorCategory::type);
            }
            std::memcpy(part.data, copy.data(), static_cast<std::size_t>(part.type.size_bytes()));
            return 0;
        },
        -1);
}

char kIsRotation;
PyGetSetDef kTransformParts[] = {{"p", get_part, set_part, "Position: a view of the first 3 components.", nullptr},
                                 {"q", get_part, set_part, "Rotation: a view of the last 4 components.", &kIsRotation},
                                 {}};

// ---- text, numbers, sequences ----

PyObject* to_text(const std::string& text) {
    return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
}
PyObject* represent(PyObject* self) {
    return guarded([&] { return to_text(repr_of(value_of_object(self))); });
}
PyObject* write_text(PyObject* self) {
    return guarded([&] { return to_text(text_of(value_of_object(self))); });
}

PyObject* number_of(PyObject* self, void* = nullptr) {
    return guarded([&] { return load_component(value_of_object(self), 0).release().ptr(); });
}
PyObject* to_float(PyObject* self) {
    const Value& value = value_of_object(self);
    return PyFloat_FromDouble(convert(value.component(0), value.type().scalar(), Scalar::f64).f);
}
PyObject* to_int(PyObject* self) {
    nb::object number = nb::steal(number_of(self));
    return number.is_valid() ? PyNumber_Long(number.ptr()) : nullptr;
}
int is_not_zero(PyObject* self) { return value_of_object(self).component(0).as_double() != 0.0; }
Py_hash_t hash_number(PyObject* self) {
    nb::object number = nb::steal(number_of(self));
    return number.is_valid() ? PyObject_Hash(number.ptr()) : -1;
}
PyObject* format_number(PyObject* self, PyObject* specification) {
    nb::object number = nb::steal(number_of(self));
    return number.is_valid() ? PyObject_Format(number.ptr(), specification) : nullptr;
}

Py_ssize_t length_of(PyObject* self) { return value_of_object(self).type().rows(); }

PyObject* iterate(PyObject* self) {
    const Py_ssize_t count = length_of(self);
    nb::object items = nb::steal(PyTuple_New(count));
    if (!items.is_valid()) return nullptr;
    for (Py_ssize_t i = 0; i < count; ++i) {
        PyObject* item = value_item(self, i);
        if (!item) return nullptr;
        PyTuple_SET_ITEM(items.ptr(), i, item);
    }
    return PyObject_GetIter(items.ptr());
}

// ---- the classes ----

// The user's own attributes. The classes are not garbage-collected: a value that holds itself in one lives for ever.
PyMemberDef kValueMembers[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(ValueObject, attributes), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};
PyGetSetDef kValueAttributes[] = {{"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr}, {}};
PyMethodDef kScalarMethods[] = {{"__format__", format_number, METH_O, nullptr}, {}};
PyGetSetDef kScalarMembers[] = {
    {"value", number_of, nullptr, "The number as Python's own int, float or bool.", nullptr}, {}};

// The class and a reference to it in the module.
PyTypeObject* add_class(nb::module_& m, const char* name, PyTypeObject* base, std::vector<PyType_Slot> slots) {
    slots.push_back({0, nullptr});
    const auto* full_name = new std::string(std::string("warp._weft.") + name);  // the class keeps the pointer
    PyType_Spec specification{full_name->c_str(), sizeof(ValueObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                              slots.data()};
    nb::object bases = base ? nb::object(nb::make_tuple(nb::handle(reinterpret_cast<PyObject*>(base)))) : nb::object();
    nb::object made = nb::steal(PyType_FromSpecWithBases(&specification, bases.ptr()));
    if (!made.is_valid()) throw nb::python_error();
    m.attr(name) = made;
    return reinterpret_cast<PyTypeObject*>(made.release().ptr());
}

// Leaked on purpose, like the module's other classes.
PyTypeObject *scalar_class, *integer_class, *vector_class, *matrix_class, *quaternion_class, *transform_class;

}  // namespace

nb::object new_value(Type type) { return nb::steal(make_instance(class_of(type), type)); }
nb::object new_view(Type type, std::byte* data, nb::handle owner) {
    return nb::steal(make_instance(class_of(type), type, data, owner));
}

Value* value_pointer(nb::handle object) {
    PyTypeObject* python_class = Py_TYPE(object.ptr());
    if (python_class->tp_dealloc == &deallocate || PyType_IsSubtype(python_class, value_class))
        return &value_of_object(object.ptr());
    return nullptr;
}

nb::handle value_base_class(Type type) {
    PyTypeObject* base = nullptr;
    switch (type.kind()) {
        case Kind::scalar:
            base = type.is_int() ? integer_class : scalar_class;
            break;
        case Kind::vector:
            base = vector_class;
            break;
        case Kind::matrix:
            base = matrix_class;
            break;
        case Kind::quaternion:
            base = quaternion_class;
            break;
        case Kind::transform:
            base = transform_class;
            break;
        default:
            throw InternalError("no Python class for the type " + type.python_name());
    }
    return reinterpret_cast<PyObject*>(base);
}

void finish_value_class(nb::handle python_class) {
    auto* type = reinterpret_cast<PyTypeObject*>(python_class.ptr());
    type->tp_vectorcall = &construct;
    type->tp_dealloc = &deallocate;
}

void bind_values(nb::module_& m) {
    bind_value_memory(m);
    m.def(
        "is_value", [](nb::handle object) { return value_pointer(object) != nullptr; }, nb::arg("object").none(),
        "Whether `object` is a typed scalar, vector, matrix, quaternion or transform.");

    std::vector<PyType_Slot> slots = {
        {Py_tp_new, type_slot(new_zero)},
        {Py_tp_init, type_slot(initialise)},
        {Py_tp_dealloc, type_slot(deallocate)},
        {Py_tp_repr, type_slot(represent)},
        {Py_tp_str, type_slot(write_text)},
        {Py_tp_richcompare, type_slot(compare_values)},
        {Py_tp_hash, type_slot(PyObject_HashNotImplemented)},
        {Py_tp_methods, kValueMethods},
        {Py_tp_members, kValueMembers},
        {Py_tp_getset, kValueAttributes},
        {Py_bf_getbuffer, type_slot(get_value_buffer)},
        {Py_bf_releasebuffer, type_slot(release_value_buffer)},
    };
    for (const PyType_Slot* each = kOperatorSlots; each->slot; ++each) slots.push_back(*each);
    value_class = add_class(m, "Value", nullptr, slots);
    // NumPy's scalars give way to our operators: np.float32(2) * v is a vector.
    nb::setattr(reinterpret_cast<PyObject*>(value_class), "__array_priority__", nb::float_(1000.0));

    scalar_class = add_class(m, "ScalarValue", value_class,
                             {{Py_nb_float, type_slot(to_float)},
                              {Py_nb_int, type_slot(to_int)},
                              {Py_nb_bool, type_slot(is_not_zero)},
                              {Py_tp_hash, type_slot(hash_number)},
                              {Py_tp_richcompare, type_slot(compare_values)},
                              {Py_tp_methods, kScalarMethods},
                              {Py_tp_getset, kScalarMembers}});
    integer_class = add_class(m, "IntegerValue", scalar_class, {{Py_nb_index, type_slot(to_int)}});

    PyTypeObject* aggregate_class = add_class(m, "AggregateValue", value_class,
                                              {{Py_sq_length, type_slot(length_of)},
                                               {Py_sq_item, type_slot(value_item)},
                                               {Py_mp_length, type_slot(length_of)},
                                               {Py_mp_subscript, type_slot(value_subscript)},
                                               {Py_mp_ass_subscript, type_slot(value_assign_subscript)},
                                               {Py_tp_iter, type_slot(iterate)}});
    const std::vector<PyType_Slot> lettered = {{Py_tp_getattro, type_slot(get_attribute)}, {Py_tp_getset, kLetters}};
    vector_class = add_class(m, "VectorValue", aggregate_class, lettered);
    quaternion_class = add_class(m, "QuaternionValue", aggregate_class, lettered);
    matrix_class = add_class(m, "MatrixValue", aggregate_class, {{Py_tp_methods, kMatrixMethods}});
    transform_class = add_class(m, "TransformValue", aggregate_class, {{Py_tp_getset, kTransformParts}});
}

}  // namespace weft::bindings
