// Writing to arrays, as methods, functions and assignments do it: checks, tapes, counted writes.
#include <algorithm>
#include <cstring>

#include "bindings/arrays/array_object.h"
#include "bindings/arrays/writes.h"
#include "bindings/devices/device.h"
#include "bindings/structs/structs.h"
#include "bindings/values/values.h"
#include "ir/typing.h"
#include "runtime/array_copies.h"
#include "runtime/pinned.h"

namespace weft::bindings {

using runtime::Array;
using runtime::Shape;

std::optional<std::vector<std::byte>> element_bytes(PyObject* value, Type dtype) {
    std::vector<std::byte> element(static_cast<std::size_t>(dtype.size_bytes()));
    if (write_value(value, dtype, element.data())) return element;
    if (dtype.is_struct() && PyLong_CheckExact(value) && PyLong_AsLong(value) == 0) return element;  // zeros
    // A number for all components.
    if (dtype.is_numeric_aggregate()) {
        auto scalar_bytes = static_cast<std::size_t>(info(dtype.scalar()).bytes());
        if (write_value(value, dtype.scalar_type(), element.data())) {
            for (int i = 1; i < dtype.components(); ++i) {
                std::memcpy(element.data() + static_cast<std::size_t>(i) * scalar_bytes, element.data(), scalar_bytes);
            }
            return element;
        }
    }
    return std::nullopt;
}

void fill_array(PyArray& array, PyObject* value, const char* api) {
    auto element = element_bytes(value, array.array.dtype);
    if (!element) {
        throw UsageError(api, "cannot fill an array of " + array.array.dtype.python_name() + " with " + describe(value),
                         ErrorCategory::value);
    }
    if (array.array.dtype.is_struct()) require_arrays_on(*array.array.device, value, api);
    record_write(array);
    without_gil(array.array.size_bytes(), [&] { runtime::fill(array.array, element->data()); });
    if (array.array.dtype.is_struct()) keep_arrays(value, *array.array.buffer);
    count_write(array);
}

bool same_memory(Type a, Type b) {
    if (a == b) return true;
    return a.is_numeric_aggregate() && b.is_numeric_aggregate() && a.scalar() == b.scalar() &&
           a.components() == b.components();
}

namespace {

// `count` elements from `offset` on, in C order.
Array run_of(const Array& array, std::int64_t offset, std::int64_t count, const char* api, const char* name) {
    if (offset < 0 || count < 0 || offset > array.size() || count > array.size() - offset) {
        throw UsageError(api,
                         std::string(name) + " has " + std::to_string(array.size()) + " elements, of which " +
                             std::to_string(count) + " from " + std::to_string(offset) + " on are asked for",
                         ErrorCategory::value);
    }
    if (array.ndim == 1) return runtime::slice(array, 0, offset, count, 1);
    if (!array.is_contiguous()) {
        throw UsageError(api,
                         std::string(name) + " of shape " + runtime::shape_text(array.shape()) +
                             " is not contiguous: a part of it, or another shape, cannot be copied. help: contiguous()",
                         ErrorCategory::value);
    }
    return runtime::slice(runtime::reshape(array, Shape{array.size()}), 0, offset, count, 1);
}

}  // namespace

nb::object same_bytes(nb::handle array, Type dtype, const char* api) {
    const Array& given = value_of(array.ptr()).array;
    if (same_memory(given.dtype, dtype)) return nb::borrow(array);
    if (given.dtype.size_bytes() != dtype.size_bytes() || ir::holds_array(given.dtype) || ir::holds_array(dtype)) {
        throw UsageError(api,
                         "the source has elements of " + given.dtype.python_name() + ", the destination of " +
                             dtype.python_name() +
                             ": expected elements of as many bytes, which hold no arrays. help: src.astype() converts",
                         ErrorCategory::type);
    }
    Array bytes = given;
    bytes.dtype = dtype;
    bytes.view.grad = nullptr;
    return nb::steal(make_array(std::move(bytes)));
}

void require_same_reach(const Array& to, const Array& from, const char* api) {
    if (to.device == from.device || !from.buffer || !ir::holds_array(from.dtype)) return;
    for (const runtime::BufferPtr& kept : from.buffer->references.all()) {
        if (kept->device == to.device) continue;
        throw UsageError(api, "the elements are structs that hold arrays on '" + kept->device->alias +
                                  "', and are copied to '" + to.device->alias +
                                  "', where kernels could not reach these. help: make the array of structs from "
                                  "struct.to('" +
                                  to.device->alias + "')");
    }
}

void copy_elements(PyArray& to, PyArray& from, std::int64_t to_offset, std::int64_t from_offset, std::int64_t count,
                   const char* api) {
    if (!same_memory(to.array.dtype, from.array.dtype)) {
        throw UsageError(api,
                         "the source has elements of " + from.array.dtype.python_name() + ", the destination of " +
                             to.array.dtype.python_name() + ". help: src.astype() converts, src.view() reinterprets",
                         ErrorCategory::type);
    }
    const bool is_whole = to_offset == 0 && from_offset == 0 &&
                          std::ranges::equal(to.array.shape(), from.array.shape()) &&
                          (count == 0 || count == from.array.size());
    if (count == 0) count = std::max<std::int64_t>(0, from.array.size() - from_offset);
    const auto target = [&](const Array& of) {
        return is_whole ? of : run_of(of, to_offset, count, api, "the destination");
    };
    const auto source = [&](const Array& of) {
        return is_whole ? of : run_of(of, from_offset, count, api, "the source");
    };
    require_same_reach(to.array, from.array, api);
    runtime::refuse_lost_copy(*to.array.device, *from.array.device);
    const auto move = [&](const Array& into, const Array& of) {
        const Array read = source(of), written = target(into);
        const runtime::RecordedCopies recorded;
        without_gil(read.size_bytes(), [&] { runtime::copy(written, read); });
    };
    if (write_observer()) {
        if (is_whole)
            record_write(object_of(to), object_of(from));
        else
            record_write(nb::steal(make_view(to, target)), nb::steal(make_view(from, source)));
    }
    move(to.array, from.array);
    count_write(to);
    runtime::count_write_by_graph(to.array.buffer, *from.array.device);
    // Without a tape the gradient is copied along; a tape carries it back instead.
    if (!write_observer() && to.requires_grad && from.requires_grad) {
        move(gradient_of(to), gradient_to_read(from));
        runtime::count_write(to.gradient);
    }
}

}  // namespace weft::bindings
