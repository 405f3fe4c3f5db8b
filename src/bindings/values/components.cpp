// From sequences, buffers and other values to the components of a vector, matrix, quaternion or transform.
#include <span>

#include "bindings/python/fastcall.h"
#include "bindings/values/types.h"
#include "bindings/values/values.h"

namespace weft::bindings {
namespace {

// The scalar of a buffer's format ("f", "<d", "l"), if it is a single one in this machine's byte order.
std::optional<Scalar> scalar_of_format(const char* format, Py_ssize_t item_bytes) {
    if (!format) return Scalar::u8;  // PEP 3118: unsigned bytes
    if (*format == '@' || *format == '=' || *format == '<') ++format;
    if (!*format || format[1]) return std::nullopt;
    if (*format == 'l') format = item_bytes == 8 ? "q" : "i";
    if (*format == 'L') format = item_bytes == 8 ? "Q" : "I";
    for (const ScalarInfo& row : all_scalars())
        if (*row.letter == *format && row.bytes() == item_bytes && !row.is_bits_in_numpy()) return row.id;
    return std::nullopt;
}

bool store_number(Number number, Scalar from, Scalar to, std::byte* place) {
    if (!converts(number, to)) return false;
    write_scalar(to, convert(number, from, to), place);
    return true;
}

// A buffer of shape (components,), or (rows, cols) for a matrix.
bool write_from_buffer(const Py_buffer& buffer, Type type, std::byte* to) {
    const std::optional<Scalar> from = scalar_of_format(buffer.format, buffer.itemsize);
    if (!from) return false;
    const bool flat = buffer.ndim == 1 && buffer.shape[0] == type.components();
    const bool nested =
        type.is_matrix() && buffer.ndim == 2 && buffer.shape[0] == type.rows() && buffer.shape[1] == type.cols();
    if (!flat && !nested) return false;
    const Scalar scalar = type.scalar();
    const int bytes = info(scalar).bytes();
    for (int i = 0; i < type.components(); ++i) {
        const Py_ssize_t offset =
            flat ? i * buffer.strides[0] : i / type.cols() * buffer.strides[0] + i % type.cols() * buffer.strides[1];
        const Number number = read_scalar(*from, static_cast<const char*>(buffer.buf) + offset);
        if (!store_number(number, *from, scalar, to + i * bytes)) return false;
    }
    return true;
}

// A constructor converts another type as a cast does; elsewhere floats do not become integers.
bool write_from_value(const Value& value, Type type, std::byte* to, bool explicit_conversion) {
    const Type from = value.type();
    if (from.is_scalar() || from.components() != type.components()) return false;
    if (from.is_matrix() != type.is_matrix() || (type.is_matrix() && from.rows() != type.rows())) return false;
    const int bytes = info(type.scalar()).bytes();
    for (int i = 0; i < type.components(); ++i) {
        const Number number = value.component(i);
        if (explicit_conversion)
            write_scalar(type.scalar(), convert(number, from.scalar(), type.scalar()), to + i * bytes);
        else if (!store_number(number, from.scalar(), type.scalar(), to + i * bytes))
            return false;
    }
    return true;
}

}  // namespace

bool write_items(std::span<PyObject* const> items, Type type, std::byte* to, bool explicit_conversion) {
    const int bytes = info(type.scalar()).bytes();
    const auto count = static_cast<int>(items.size());
    if (count == type.components()) {
        const Scalar scalar = type.scalar();
        int written = 0;
        while (written < count && write_component(items[written], scalar, to + written * bytes)) ++written;
        if (written == count) return true;
    }
    if (type.is_matrix() && count == type.rows()) {
        const Type row = Type::vector(type.scalar(), type.cols());
        for (int r = 0; r < count; ++r) {
            if (!write_components(items[r], row, to + r * row.size_bytes(), explicit_conversion)) return false;
        }
        return true;
    }
    if (type.is(Kind::transform) && count == 2) {
        const Type p = Type::vector(type.scalar(), 3), q = Type::quaternion(type.scalar());
        return write_components(items[0], p, to, explicit_conversion) &&
               write_components(items[1], q, to + p.size_bytes(), explicit_conversion);
    }
    // wp.spatial_vector(w, v)
    if (type.is_vector() && type.rows() == 6 && count == 2) {
        const Type half = Type::vector(type.scalar(), 3);
        return write_components(items[0], half, to, explicit_conversion) &&
               write_components(items[1], half, to + half.size_bytes(), explicit_conversion);
    }
    return false;
}

bool write_components(nb::handle value, Type type, std::byte* to, bool explicit_conversion) {
    PyObject* object = value.ptr();
    if (const Value* typed = value_pointer(value)) return write_from_value(*typed, type, to, explicit_conversion);
    const auto write_all = [&](nb::handle items) {
        return write_items({&PyTuple_GET_ITEM(items.ptr(), 0), static_cast<std::size_t>(PyTuple_GET_SIZE(items.ptr()))},
                           type, to, explicit_conversion);
    };
    if (PyTuple_Check(object) || PyList_Check(object)) return write_all(sequence_items(object));
    if (PyUnicode_Check(object) || PyBytes_Check(object) || PyByteArray_Check(object) || PyDict_Check(object))
        return false;
    if (PyObject_CheckBuffer(object)) {
        Py_buffer buffer;
        if (PyObject_GetBuffer(object, &buffer, PyBUF_FORMAT | PyBUF_STRIDES) == 0) {
            const bool written = write_from_buffer(buffer, type, to);
            PyBuffer_Release(&buffer);
            if (written) return true;
        } else {
            PyErr_Clear();  // an exporter without a layout of this kind: it may still be a sequence
        }
    }
    if (!PySequence_Check(object)) return false;
    // No value has more items than components. A longer object is not unpacked, which could take all memory.
    if (PyObject_Size(object) > type.components()) return false;
    PyErr_Clear();  // set by an object without a length
    const nb::object items = sequence_items(object);
    return items.is_valid() && write_all(items);
}

ErrorCategory misfit_category(nb::handle value, Type type) {
    if (type.is_scalar() || PyUnicode_Check(value.ptr()) || PyDict_Check(value.ptr())) return ErrorCategory::type;
    const Py_ssize_t length = PyObject_Size(value.ptr());
    if (length < 0) PyErr_Clear();
    const bool is_possible = length < 0 || length == type.components() || length == type.rows();
    return is_possible ? ErrorCategory::type : ErrorCategory::value;
}

}  // namespace weft::bindings
