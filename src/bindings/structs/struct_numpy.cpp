// Arrays of structs as structured NumPy arrays: one dtype with the names, types and offsets of the fields.
//
//   float, int, ...        their NumPy type; of floats that NumPy lacks, the bits
//   vectors, matrices      a subarray: ("<f4", (3,))
//   structs                their structured dtype
//   arrays                 an ArrayView: data and grad, which are addresses, shape and strides
#include <algorithm>
#include <cstring>
#include <vector>

#include "bindings/foreign/foreign.h"
#include "bindings/python/numpy_api.h"
#include "bindings/structs/structs.h"
#include "bindings/values/types.h"
#include "ir/typing.h"
#include "runtime/bytes.h"

namespace weft::bindings {
namespace {

nb::object dtype_of_field(Type type, const char* api);

nb::object struct_dtype(Type type, const char* api) {
    nb::list names, formats, offsets;
    for (const Type::Field& field : type.fields()) {
        names.append(nb::str(field.name.c_str()));
        formats.append(dtype_of_field(field.type, api));
        offsets.append(field.offset);
    }
    nb::dict description;
    description["names"] = names;
    description["formats"] = formats;
    description["offsets"] = offsets;
    description["itemsize"] = type.size_bytes();
    return numpy::module().attr("dtype")(description);
}

nb::object dtype_of_field(Type type, const char* api) {
    nb::object dtype = numpy::module().attr("dtype");
    if (type.is_struct()) return struct_dtype(type, api);
    if (type.is_array()) {
        nb::list members;
        for (const char* name : {"data", "grad"}) members.append(nb::make_tuple(name, "u8"));
        for (const char* name : {"shape", "strides"})
            members.append(nb::make_tuple(name, "i8", nb::make_tuple(kMaxDims)));
        return dtype(members);
    }
    nb::object scalar = dtype(nb::str(info(type.scalar()).numpy));
    std::int64_t inner[2];
    const int count = inner_shape(type, inner);
    if (count == 0) return scalar;
    nb::object shape =
        count == 1 ? nb::object(nb::make_tuple(inner[0])) : nb::object(nb::make_tuple(inner[0], inner[1]));
    return dtype(nb::make_tuple(scalar, shape));
}

nb::object names_of(nb::handle array) { return array.attr("dtype").attr("names"); }

}  // namespace

nb::object struct_numpy_view(const runtime::Array& array, nb::handle keep_alive, const char* api) {
    // An array of bytes: NumPy then sees each row of them as one struct.
    std::vector<Py_intptr_t> shape(array.shape().begin(), array.shape().end());
    std::vector<Py_intptr_t> strides(array.strides().begin(), array.strides().end());
    shape.push_back(array.dtype.size_bytes());
    strides.push_back(1);
    nb::object dtype = struct_dtype(array.dtype, api);
    nb::object bytes = numpy::make_ndarray(Scalar::u8, shape, strides.data(), runtime::host_data(array), keep_alive);
    nb::object rows = bytes.attr("view")(dtype);
    return rows[nb::make_tuple(nb::handle(Py_Ellipsis), 0)];
}

void assign_structured(nb::handle target, nb::handle source, Type type, const char* api) {
    nb::object names = names_of(source);
    std::vector<std::string> expected, found;
    for (const Type::Field& field : type.fields()) expected.push_back(field.name);
    if (!names.is_none()) {
        for (nb::handle name : names) found.emplace_back(nb::str(name).c_str());
    }
    std::vector<std::string> sorted = expected;
    std::sort(sorted.begin(), sorted.end());
    std::sort(found.begin(), found.end());
    if (sorted != found) {
        throw UsageError(api,
                         "data is " + describe(source) + ", expected a structured array with the fields of " +
                             type.python_name() + ": " + join_or(expected),
                         ErrorCategory::type);
    }
    for (const Type::Field& field : type.fields()) {
        const nb::str name(field.name.c_str());
        if (field.type.is_array()) {
            throw UsageError(api,
                             "field '" + field.name + "' of " + type.python_name() +
                                 " is an array, which NumPy cannot hold: expected a list of " + type.python_name(),
                             ErrorCategory::type);
        }
        nb::object to = target[name], from = source[name];
        if (is_bits_in_numpy(field.type)) {
            to = numpy::bits_of_numbers(to, field.type.scalar());
            from = numpy::bits_of_numbers(from, field.type.scalar());
        }
        if (field.type.is_struct()) {
            assign_structured(to, from, field.type, api);
        } else if (PyObject_SetItem(to.ptr(), Py_Ellipsis, from.ptr()) < 0) {
            throw nb::python_error();
        }
    }
}

runtime::Array from_structured(nb::handle source, Type type, const std::optional<runtime::Shape>& wanted, bool copy,
                               runtime::Device& device, const char* api) {
    const numpy::NdArray& data = *numpy::ndarray_pointer(source);
    nb::object reshaped = nb::borrow(source);
    runtime::Shape shape(data.shape().begin(), data.shape().end());
    if (shape.empty()) shape = {1};
    if (wanted) {
        shape = *wanted;
        if (runtime::checked_size(shape, type.size_bytes(), api) != data.size()) {
            throw UsageError(api,
                             "data of " + std::to_string(data.size()) + " structs does not fill the shape " +
                                 runtime::shape_text(shape),
                             ErrorCategory::value);
        }
    }
    nb::list extents;
    for (std::int64_t extent : shape) extents.append(extent);
    reshaped = reshaped.attr("reshape")(nb::tuple(extents));
    runtime::checked_size(shape, type.size_bytes(), api);
    const numpy::NdArray& rows = *numpy::ndarray_pointer(reshaped);
    const bool fits = !copy && device.is_host_memory && !ir::holds_array(type) && rows.is_aligned() &&
                      rows.is_writable() && reshaped.attr("dtype").equal(struct_dtype(type, api));
    if (fits) {
        runtime::Array result;
        result.dtype = type;
        result.ndim = rows.ndim;
        result.device = &device;
        std::copy(rows.dimensions, rows.dimensions + rows.ndim, result.view.shape);
        std::copy(rows.strides, rows.strides + rows.ndim, result.view.strides);
        result.view.data = result.size() > 0 ? rows.data : nullptr;
        result.buffer = borrowed_memory(result, reshaped);
        return result;
    }
    runtime::Array result = runtime::zeros(type, shape, device);
    runtime::HostWrite write(result, /*keeps=*/true);
    nb::object target = struct_numpy_view(write.array(), nb::handle(), api);
    assign_structured(target, reshaped, type, api);
    write.finish();
    return result;
}

}  // namespace weft::bindings
