#include "bindings/gradients/recording.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "bindings/arrays/array_object.h"
#include "bindings/arrays/nested_arrays.h"
#include "bindings/arrays/writes.h"
#include "ir/typing.h"
#include "runtime/array.h"
#include "support/error.h"

namespace weft::bindings {
namespace {

// (buffer, first byte, one past the last, writes so far): the memory of an array, and how often it was written.
nb::tuple memory_of_array(nb::handle object) {
    const runtime::Array& array = array_argument(object.ptr(), "Tape", "array").array;
    auto [begin, end] = array.extent();
    return nb::make_tuple(reinterpret_cast<std::uintptr_t>(array.buffer.get()), reinterpret_cast<std::uintptr_t>(begin),
                          reinterpret_cast<std::uintptr_t>(end), array.buffer ? array.buffer->version : 0);
}

// The memory that an array is a part of, as bytes: a copy of it, or zeros.
nb::object memory_like(nb::handle object, bool zeros) {
    const runtime::Array& array = array_argument(object.ptr(), "Tape", "array").array;
    const std::int64_t size = array.buffer ? array.buffer->size_bytes : 0;
    runtime::Array bytes;
    bytes.dtype = Type::scalar(Scalar::u8);
    bytes.device = array.device;
    bytes.view.shape[0] = size;
    bytes.view.strides[0] = 1;
    bytes.buffer = zeros ? runtime::allocate_zeroed(size, *array.device) : runtime::allocate(size, *array.device);
    bytes.view.data = bytes.buffer->data;
    if (!zeros && size > 0) {
        without_gil(size, [&] { runtime::copy_bytes(*array.device, bytes.buffer->data, array.buffer->data, size); });
        bytes.buffer->references.add_all(array.buffer->references, *bytes.buffer);
    }
    return nb::steal(make_array(std::move(bytes)));
}

// The view of `array`'s place in its own memory, in memory from memory_like().
nb::object view_in_memory(nb::handle object, nb::handle memory) {
    const runtime::Array& array = array_argument(object.ptr(), "Tape", "array").array;
    const runtime::BufferPtr& buffer = array_argument(memory.ptr(), "Tape", "memory").array.buffer;
    runtime::Array view = array;
    view.view.grad = nullptr;
    view.buffer = buffer;
    if (view.size() > 0) {
        const void* const start = array.buffer ? array.buffer->data : nullptr;
        const auto [low, high] = array.extent();
        WEFT_CHECK(start && low >= start && high <= static_cast<const std::byte*>(start) + buffer->size_bytes,
                   "an array lies outside of its memory");
        view.view.data = runtime::moved(array.view.data, start, buffer->data);
    }
    return nb::steal(make_array(std::move(view)));
}

}  // namespace

void bind_recording(nb::module_& m) {
    m.def("memory_of", &memory_of_array, nb::arg("array"));
    m.def(
        "count_write", [](nb::handle array) { count_write(array_argument(array.ptr(), "Tape", "array")); },
        nb::arg("array"), "Counts a write through a view of NumPy, which Weft does not see otherwise.");
    m.def("memory_like", &memory_like, nb::arg("array"), nb::arg("zeros"),
          "The memory that an array is a part of, as bytes: a copy of it, or zeros.");
    m.def("view_in_memory", &view_in_memory, nb::arg("array"), nb::arg("memory"),
          "The view of a memory from memory_like() that the array is of its own memory.");
    m.def(
        "holds_arrays",
        [](nb::handle array) { return ir::holds_array(array_argument(array.ptr(), "Tape", "array").array.dtype); },
        nb::arg("array"), "Whether its elements are structs with arrays.");
    m.def("nested_arrays", &nested_arrays, nb::arg("value").none(),
          "The arrays that lie in the elements of an array, or of the arrays in a struct, at any depth.");
    m.def("with_nested", &with_nested, nb::arg("array"), nb::arg("originals"), nb::arg("copies"),
          "A copy of an array of structs, whose elements lead to the copies in place of the originals, at any depth.");
    m.def("with_nested_gradients", &with_nested_gradients, nb::arg("array"), nb::arg("gradient"),
          "A copy of an array of structs, whose arrays have the arrays in the elements of `gradient` as gradients.");
    m.def("keep", &keep, nb::arg("array"), "A copy of the array's memory, with the same strides.");
    m.def("keep_together", &keep_together, nb::arg("arrays"),
          "Copies of arrays of one memory, with the same strides; those that overlap do so in the copies too.");
}

}  // namespace weft::bindings
