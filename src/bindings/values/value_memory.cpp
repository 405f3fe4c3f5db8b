// The memory of typed values: as a buffer, from addresses and buffers, and as bytes for pickling.
#include <nanobind/stl/string.h>

#include <cstring>

#include "bindings/values/value_object.h"

namespace weft::bindings {

// PEP 3118: the components one after the other, in place; a matrix is flat too, as in release 1.19. Floats without a
// format are refused if the caller asks for one: under an integer's format it would compute with the bits.
int get_value_buffer(PyObject* object, Py_buffer* view, int flags) {
    Value& value = value_of_object(object);
    const Type type = value.type();
    if ((flags & PyBUF_FORMAT) && info(type.scalar()).is_bits_in_numpy()) {
        view->obj = nullptr;
        PyErr_Format(PyExc_BufferError, "memoryview(): buffers have no format for %s. help: list(v), float(x)",
                     info(type.scalar()).python);
        return -1;
    }
    const int bytes = info(type.scalar()).bytes();
    auto* extents = new Py_ssize_t[2]{type.components(), bytes};
    *view = Py_buffer{};
    view->buf = value.data();
    view->obj = Py_NewRef(object);
    view->len = static_cast<Py_ssize_t>(type.size_bytes());
    view->itemsize = bytes;
    view->readonly = type.is_scalar();
    view->ndim = type.is_scalar() ? 0 : 1;
    view->format = flags & PyBUF_FORMAT ? const_cast<char*>(info(type.scalar()).letter) : nullptr;
    view->shape = flags & PyBUF_ND ? extents : nullptr;
    view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? extents + 1 : nullptr;
    view->internal = extents;
    return 0;
}

void release_value_buffer(PyObject*, Py_buffer* view) { delete[] static_cast<Py_ssize_t*>(view->internal); }

namespace {

Type type_of_class(PyObject* python_class, const char* api) {
    if (const auto type = value_type_of_class(reinterpret_cast<PyTypeObject*>(python_class))) return *type;
    throw UsageError(api, "expected a class such as wp.vec3, got " + describe(python_class), ErrorCategory::type);
}

PyObject* from_ptr(PyObject* python_class, PyObject* address) {
    return guarded([&] {
        const Type type = type_of_class(python_class, "from_ptr()");
        const void* memory = address == Py_None ? nullptr : PyLong_AsVoidPtr(address);
        if (PyErr_Occurred()) {
            PyErr_Clear();
            throw UsageError(type.python_name() + ".from_ptr()",
                             "expected an address as an int, got " + describe(address), ErrorCategory::type);
        }
        if (!memory) throw UsageError(type.python_name() + ".from_ptr()", "the address is null");
        nb::object made = new_value(type);
        std::memcpy(value_pointer(made)->data(), memory, static_cast<std::size_t>(type.size_bytes()));
        return made.release().ptr();
    });
}

// `size_bytes()` bytes of a buffer from an offset on, and the memoryview that keeps them alive.
struct BufferSlice {
    nb::object memory;
    std::byte* data;
    bool is_writable;
};
BufferSlice part_of(Type type, const char* name, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
    static const Signature<2> signature("from_buffer()", {"source", "offset"}, 1);
    const std::string api = type.python_name() + name;
    const auto given = signature.parse(args, count, keywords);
    const std::int64_t offset = is_given(given[1]) ? integer(given[1], api, "offset") : 0;
    nb::object memory = nb::steal(PyMemoryView_FromObject(given[0]));
    if (!memory.is_valid()) throw nb::python_error();
    const Py_buffer* buffer = PyMemoryView_GET_BUFFER(memory.ptr());
    if (!PyBuffer_IsContiguous(buffer, 'C')) throw UsageError(api, "the buffer is not contiguous", ErrorCategory::type);
    if (offset < 0 || offset > buffer->len || buffer->len - offset < type.size_bytes()) {
        throw UsageError(api,
                         "the buffer has " + std::to_string(buffer->len) + " bytes, expected at least " +
                             std::to_string(type.size_bytes()) + " from " + std::to_string(offset) + " on",
                         ErrorCategory::value);
    }
    return {memory, static_cast<std::byte*>(buffer->buf) + offset, !buffer->readonly};
}

PyObject* from_buffer(PyObject* python_class, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
    return guarded([&] {
        const Type type = type_of_class(python_class, "from_buffer()");
        const BufferSlice part = part_of(type, ".from_buffer()", args, count, keywords);
        if (!part.is_writable)
            throw UsageError(type.python_name() + ".from_buffer()", "the buffer is read-only. help: from_buffer_copy()",
                             ErrorCategory::type);
        return new_view(type, part.data, part.memory).release().ptr();
    });
}

PyObject* from_buffer_copy(PyObject* python_class, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
    return guarded([&] {
        const Type type = type_of_class(python_class, "from_buffer_copy()");
        const BufferSlice part = part_of(type, ".from_buffer_copy()", args, count, keywords);
        nb::object made = new_value(type);
        std::memcpy(value_pointer(made)->data(), part.data, static_cast<std::size_t>(type.size_bytes()));
        return made.release().ptr();
    });
}

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

// The type, the bytes, and the attributes that programs have set.
PyObject* reduce(PyObject* self, PyObject*) {
    return guarded([&] {
        const Value& value = value_of_object(self);
        const nb::object restore = nb::module_::import_("warp._weft").attr("_restore_value");
        const nb::bytes bytes(reinterpret_cast<const char*>(value.data()),
                              static_cast<std::size_t>(value.type().size_bytes()));
        const nb::object arguments = nb::make_tuple(value.type().ir_name(), bytes);
        PyObject* attributes = reinterpret_cast<ValueObject*>(self)->attributes;
        if (!attributes || PyDict_GET_SIZE(attributes) == 0) return nb::make_tuple(restore, arguments).release().ptr();
        return nb::make_tuple(restore, arguments, nb::handle(attributes)).release().ptr();
    });
}

template <class Function>
PyMethodDef class_method(const char* name, Function* function, const char* doc) {
    return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(function)),
            METH_FASTCALL | METH_KEYWORDS | METH_CLASS, doc};
}

}  // namespace

PyMethodDef kValueMethods[] = {
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {"from_ptr", from_ptr, METH_O | METH_CLASS,
     "from_ptr($type, address)\n--\n\nA copy of the value at an address, which is checked only for null."},
    class_method("from_buffer", from_buffer,
                 "from_buffer($type, source, offset=0)\n--\n\nA value in the memory of a writable buffer."),
    class_method("from_buffer_copy", from_buffer_copy,
                 "from_buffer_copy($type, source, offset=0)\n--\n\nA value of the bytes of a buffer."),
    {},
};

void bind_value_memory(nb::module_& m) {
    m.def("_restore_value", &restore_value);
    m.def(
        "ir_name", [](nb::handle dtype) { return dtype_argument(dtype.ptr(), "ir_name()").ir_name(); },
        nb::arg("dtype"), "The name of a type of numbers, which every process understands.");
    m.def(
        "type_of_ir_name",
        [](const std::string& name) {
            const std::optional<Type> type = parse_ir_type(name);
            if (!type)
                throw UsageError("unpickling", "there is no type of numbers '" + name + "'", ErrorCategory::value);
            return dtype_to_python(*type);
        },
        nb::arg("name"), "The inverse of ir_name().");
}

}  // namespace weft::bindings
