#include "bindings/interop/torch_tensors.h"

#include <algorithm>
#include <string>
#include <vector>

#include "bindings/foreign/current_streams.h"
#include "bindings/interop/tensors.h"
#include "bindings/python/python_function.h"
#include "bindings/values/types.h"
#include "runtime/foreign_memory.h"
#include "support/error.h"

namespace weft::bindings {
namespace {

void set_reason(void* reason, const char* kind, const char* message) {
    *static_cast<std::string*>(reason) = std::string(kind) + ": " + message;
}

// By the C function of the tensor's class; an object with Python's error if it fails.
nb::object allocated(const dlpack::ExchangeApi& api, dlpack::Tensor& prototype) {
    dlpack::VersionedTensor* made = nullptr;
    std::string reason;
    if (api.allocate(&prototype, &made, &reason, set_reason) != 0) {
        PyErr_Clear();
        throw UsageError("torch_op()", "PyTorch could not make a tensor for the result: " + reason,
                         ErrorCategory::memory);
    }
    void* tensor = nullptr;
    if (api.to_object(made, &tensor) != 0) throw nb::python_error();
    return nb::steal(static_cast<PyObject*>(tensor));
}

// For releases without the C exchange API.
nb::object allocated_by_python(nb::handle like, Scalar scalar, const std::vector<std::int64_t>& shape) {
    static PyObject* module = nullptr;
    nb::list extents;
    for (const std::int64_t extent : shape) extents.append(extent);
    return function_of("warp._interop.torch", module, "new_tensor")(like, extents, info(scalar).python);
}

}  // namespace

runtime::Device& device_of_tensor(nb::handle tensor, const ForeignName& name) {
    const dlpack::ExchangeApi* const api = exchange_api(Py_TYPE(tensor.ptr()));
    dlpack::Tensor seen;
    if (api && api->view_of_object) {
        if (api->view_of_object(tensor.ptr(), &seen) != 0) refuse(name, tensor, taken_error());
        return *read_tensor(seen, tensor, name).device;
    }
    const std::optional<ForeignArray> found = read_foreign(tensor, name);
    if (!found) refuse(name, tensor, "expected a tensor");
    return *found->device;
}

std::shared_ptr<runtime::Stream> torch_stream(nb::handle tensor, const runtime::Device& device) {
    if (!device.gpu()) return nullptr;
    const std::optional<std::uint64_t> stream = current_stream_of(tensor, device);
    return stream ? runtime::stream_of_handle(const_cast<runtime::Device&>(device), *stream) : nullptr;
}

NewTensor new_tensor(nb::handle like, Type element, std::span<const std::int64_t> shape, runtime::Device& device,
                     const ForeignName& name) {
    std::vector<std::int64_t> extents(shape.begin(), shape.end());
    std::int64_t inner[2];
    const int inner_count = inner_shape(element, inner);
    extents.insert(extents.end(), inner, inner + inner_count);
    const Scalar scalar = scalar_of_tensor(element.scalar());
    NewTensor result;
    const dlpack::ExchangeApi* const api = exchange_api(Py_TYPE(like.ptr()));
    if (api && api->allocate) {
        dlpack::Tensor prototype{nullptr,
                                 {dlpack::DeviceType::cuda, device.ordinal},
                                 static_cast<std::int32_t>(extents.size()),
                                 dlpack_type(scalar),
                                 extents.data(),
                                 nullptr,
                                 0};
        result.tensor = allocated(*api, prototype);
    } else {
        result.tensor = allocated_by_python(like, scalar, extents);
    }
    ForeignArray found = read_foreign(result.tensor, name).value();
    found.scalar = element.scalar();
    result.array = fit(found, result.tensor, element, static_cast<int>(shape.size()), name);
    return result;
}

}  // namespace weft::bindings
