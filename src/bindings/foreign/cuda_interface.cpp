// __cuda_array_interface__, version 3, by which CuPy, Numba, PyTorch and others describe memory of a CUDA device.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <string>
#include <vector>

#include "bindings/foreign/foreign.h"
#include "runtime/cuda_devices.h"
#include "runtime/foreign_memory.h"

namespace weft::bindings {

namespace {

nb::object entry(const nb::dict& interface, const char* key) {
    return nb::borrow(PyDict_GetItemString(interface.ptr(), key));
}

template <typename T>
T required(const nb::dict& interface, const char* key, const char* expected, nb::handle object,
           const ForeignName& name) {
    T value;
    const nb::object found = entry(interface, key);
    if (found.is_valid() && nb::try_cast(found, value)) return value;
    refuse(name, object,
           std::string("its __cuda_array_interface__ has ") +
               (found.is_valid() ? nb::cast<std::string>(nb::repr(found)) : "nothing") + " for '" + key +
               "', expected " + expected);
}

Scalar scalar_of_text(const std::string& text, nb::handle object, const ForeignName& name) {
    if (text.size() > 2 && text[0] != '>')
        for (const ScalarInfo& row : all_scalars())
            if (!row.is_bits_in_numpy() && text.substr(1) == row.numpy) return row.id;
    refuse(name, object,
           "its numbers are '" + text +
               "', and Weft has no such numbers: expected bool, integers of 8 to 64 bits or floats");
}

runtime::Device& device_of(void* data, nb::handle object, const ForeignName& name) {
    const std::vector<runtime::Device*> there = runtime::cuda_devices();
    if (there.empty()) {
        refuse(name, object,
               "its memory is on a CUDA device, and there is none here (" + runtime::cuda_problem() +
                   "). help: copy it to the CPU first",
               ErrorCategory::runtime);
    }
    if (data == nullptr) return *there.front();  // no elements
    runtime::Device* const found = runtime::cuda_device_of(data);
    if (found == nullptr) refuse(name, object, "no CUDA device has memory at its address", ErrorCategory::runtime);
    return *found;
}

// A GPU reads numbers only at multiples of their size.
void require_reachable(const ForeignArray& array, std::uint64_t address, nb::handle object, const ForeignName& name) {
    if (address == 0) refuse(name, object, "its __cuda_array_interface__ has the address 0, and elements");
    const auto size = static_cast<std::int64_t>(info(array.scalar).bytes());
    bool is_aligned = address % static_cast<std::uint64_t>(size) == 0;
    for (int i = 0; i < array.ndim; ++i) is_aligned &= array.shape[i] < 2 || array.strides[i] % size == 0;
    if (!is_aligned)
        refuse(name, object,
               "its address or its strides are no multiples of " + std::to_string(size) +
                   " bytes, the size of its numbers, which a GPU cannot read. help: copy it first");
}

}  // namespace

ForeignArray read_cuda_interface(nb::handle object, nb::handle interface, const ForeignName& name) {
    nb::dict fields;
    if (!nb::try_cast(interface, fields)) refuse(name, object, "its __cuda_array_interface__ is no dict");
    const auto shape = required<std::vector<std::int64_t>>(fields, "shape", "a tuple of integers", object, name);
    const auto type = required<std::string>(fields, "typestr", "text like '<f4'", object, name);
    const auto [address, is_read_only] = required<std::pair<std::uint64_t, bool>>(
        fields, "data", "(address, whether it may only be read)", object, name);
    ForeignArray result;
    result.scalar = scalar_of_text(type, object, name);
    if (shape.size() > static_cast<std::size_t>(kMaxForeignDims))
        refuse(name, object, "it has " + std::to_string(shape.size()) + " dimensions, expected at most 6");
    result.ndim = static_cast<int>(shape.size());
    std::ranges::copy(shape, result.shape);
    std::int64_t step = info(result.scalar).bytes();
    for (int i = result.ndim; i-- > 0;) {
        result.strides[i] = step;
        step *= result.shape[i];
    }
    if (const nb::object given = entry(fields, "strides"); given.is_valid() && !given.is_none()) {
        const auto strides = required<std::vector<std::int64_t>>(
            fields, "strides", "as many integers as 'shape' has, or None", object, name);
        if (strides.size() != shape.size())
            refuse(name, object, "its __cuda_array_interface__ has strides of another length than its shape");
        std::ranges::copy(strides, result.strides);
    }
    if (const nb::object mask = entry(fields, "mask"); mask.is_valid() && !mask.is_none())
        refuse(name, object,
               "it has a mask, and arrays have none. help: fill the masked elements, and pass it without a mask");
    if (result.size() > 0) require_reachable(result, address, object, name);
    result.data = result.size() > 0 ? reinterpret_cast<void*>(address) : nullptr;
    result.device = &device_of(result.data, object, name);
    result.is_read_only = is_read_only;
    result.owner = nb::borrow(object);
    if (const nb::object stream = entry(fields, "stream"); stream.is_valid() && !stream.is_none()) {
        const auto number = required<std::uint64_t>(fields, "stream", "a positive integer or None", object, name);
        runtime::wait_for_foreign_stream(*result.device, number, name.api);
        result.stream = number;
    }
    return result;
}

}  // namespace weft::bindings
