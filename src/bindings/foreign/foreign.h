// Arrays of other libraries: the memory that one of their protocols describes, in one form. Protocols in the order in
// which they are tried:
//
//   a NumPy array                   its struct, read in place
//   __dlpack_c_exchange_api__       of the class (torch, Paddle): C functions, no Python call
//   the buffer protocol             JAX, array.array, memoryview ...
//   __array_interface__             by NumPy
//   __dlpack__                      CuPy, and types that the others lack (bfloat16 of JAX)
//   __cuda_array_interface__        memory of a CUDA device
//   __array__                       a copy, which is read-only here: writes to it would be lost
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "bindings/foreign/dlpack.h"
#include "bindings/values/array_value.h"
#include "support/error.h"

namespace weft::bindings {

namespace numpy {
struct NdArray;
}

inline constexpr int kMaxForeignDims = kMaxDims + 2;  // dimensions of an array and of matrices in it

struct ForeignArray {
    void* data = nullptr;  // null if there are no elements
    runtime::Device* device = nullptr;
    Scalar scalar = Scalar::f32;
    int ndim = 0;
    std::int64_t shape[kMaxForeignDims];
    std::int64_t strides[kMaxForeignDims];  // in bytes
    bool is_read_only = false;
    nb::object owner;  // keeps the memory alive
    // The stream that a __cuda_array_interface__ names, for whose work ours waits already.
    std::optional<std::uint64_t> stream;

    std::span<const std::int64_t> extents() const { return {shape, static_cast<std::size_t>(ndim)}; }
    std::int64_t size() const;
};

// The name of the object in errors: `api` and `argument`, "argument 'x' of kernel 'saxpy'". The text is made only for
// an error.
class ForeignName {
public:
    ForeignName(std::string_view api, std::string_view argument) : api(api), context_(&argument_), argument_(argument) {
        make_ = [](const void* text) { return std::string(*static_cast<const std::string_view*>(text)); };
    }
    // `make` is a function that outlives this object.
    template <typename Make>
        requires std::is_invocable_r_v<std::string, Make>
    ForeignName(std::string_view api, const Make& make) : api(api), context_(&make) {
        make_ = [](const void* function) -> std::string { return (*static_cast<const Make*>(function))(); };
    }
    ForeignName(const ForeignName&) = delete;
    ForeignName& operator=(const ForeignName&) = delete;

    std::string argument() const { return make_(context_); }
    std::string_view api;

private:
    const void* context_;
    std::string_view argument_;
    std::string (*make_)(const void*);
};

// Throws the error for an object that cannot be used, with a description of it and the reason.
[[noreturn]] void refuse(const ForeignName& name, nb::handle object, const std::string& why,
                         ErrorCategory category = ErrorCategory::type);
// Whether the owner lends the memory for reading only.
inline bool is_read_only(const runtime::Array& array) { return array.buffer && array.buffer->is_read_only; }

// The memory of `view`, which belongs to `owner`: kept alive as long as a view of it.
runtime::BufferPtr borrowed_memory(const runtime::Array& view, nb::handle owner, bool is_read_only = false);

// Takes Python's error and returns its first line: some frameworks append a list of their own functions.
std::string taken_error();

// The memory of an object; empty if it has no protocol. Throws UsageError if it has one but its memory cannot be used:
// a type that Weft lacks, an unknown device, too many dimensions.
std::optional<ForeignArray> read_foreign(nb::handle object, const ForeignName& name);
// The same for NumPy's arrays and classes with DLPack's C functions, whose memory lives as long as the object; empty
// for all others.
std::optional<ForeignArray> read_in_place(nb::handle object, const ForeignName& name);
// For an array that outlives the call, and may outlive the memory: PyTorch may give a tensor other memory meanwhile.
// Empty if the memory stays.
std::optional<runtime::Home> home_of(const runtime::Array& array, nb::handle object);
void watch_memory(runtime::Array& array, nb::handle object);  // watches that of its buffer
ForeignArray read_ndarray(nb::handle object, const numpy::NdArray& array, const ForeignName& name);

// The memory as an array of `element` and `ndim`: trailing dimensions become the components. Throws UsageError, with
// expected and found values, if dtype, dimensions or inner strides do not fit. Messages describe `object`.
ArrayView fit_view(const ForeignArray& from, nb::handle object, Type element, int ndim, const ForeignName& name,
                   ErrorCategory category = ErrorCategory::type);
// The same with a buffer that keeps the owner.
runtime::Array fit(const ForeignArray& from, nb::handle object, Type element, int ndim, const ForeignName& name,
                   ErrorCategory category = ErrorCategory::type);
// The memory with elements of `dtype`; if that is Kind::none, with its own scalars. Memory without dimensions is one
// element. are_compatible() gives the scalars that stand for each other.
runtime::Array as_elements(const ForeignArray& from, nb::handle object, Type dtype, const ForeignName& name);
// The same without a buffer: the caller keeps the memory alive.
runtime::Array shown_as_elements(const ForeignArray& from, nb::handle object, Type dtype, const ForeignName& name);
// Integers of one size stand for each other, and bytes for bool.
bool are_compatible(Scalar found, Scalar asked);
// An array of `element` and `ndim` over the memory of a foreign object (NumPy array, anything with __array_interface__
// or the buffer protocol), without copying; trailing dimensions become vector and matrix components. Throws UsageError
// if dtype, dimensions or inner strides do not fit. Empty if the object has no such interface. `outlives`: whether it
// is kept longer than the call that it is an argument of. `stream` gets ForeignArray::stream.
std::optional<runtime::Array> foreign_array(nb::handle object, Type element, int ndim, const ForeignName& name,
                                            bool outlives, std::optional<std::uint64_t>* stream = nullptr);
// The same memory as an ndarray.
nb::object ndarray_of(const ForeignArray& from);

// The contents of a DLPack tensor; the caller sets `owner`.
ForeignArray read_tensor(const dlpack::Tensor& tensor, nb::handle object, const ForeignName& name);
// Memory of a capsule, which is consumed, or of an object's __dlpack__. Memory of a CUDA device from read_by_dlpack()
// is ordered: later work in this thread's stream comes after the object's work. read_capsule() orders nothing.
ForeignArray read_capsule(nb::handle capsule, nb::handle object, const ForeignName& name);
ForeignArray read_by_dlpack(nb::handle object, const ForeignName& name);
// The memory that a __cuda_array_interface__ describes; later work in this thread's stream comes after the work in the
// stream that it names. Throws UsageError if the interface breaks the protocol, or if there is no such device.
ForeignArray read_cuda_interface(nb::handle object, nb::handle interface, const ForeignName& name);
// The exchange functions of the class, or null.
const dlpack::ExchangeApi* exchange_api(PyTypeObject* type);
// Whether a tensor is a view of PyTorch that stands for the negated numbers of its memory, which DLPack does not tell.
bool is_negated(nb::handle tensor);
// The same from the tensor's own bytes, in less time; empty if their layout is not known.
std::optional<bool> known_negation(nb::handle tensor);
// Whether it is a tensor of PyTorch; false if its class has no exchange functions.
bool is_torch_tensor(nb::handle object);

// An array as DLPack's structures, with a reference to its memory. Throws UsageError for elements that are no numbers
// and for memory that is neither the host's nor a CUDA device's. Does not wait for work on the memory. `scalar`
// replaces the type of its numbers in the result.
dlpack::VersionedTensor* export_versioned(const runtime::Array& array, const char* api,
                                          std::optional<Scalar> scalar = {});
dlpack::ManagedTensor* export_unversioned(const runtime::Array& array, const char* api,
                                          std::optional<Scalar> scalar = {});
nb::object capsule_of(dlpack::VersionedTensor* tensor);
nb::object capsule_of(dlpack::ManagedTensor* tensor);
void bind_dlpack(nb::module_& m);  // after bind_arrays(), whose class gets the exchange functions
// array.__dlpack__() and array.__dlpack_device__().
PyObject* array_dlpack(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keywords);
PyObject* array_dlpack_device(PyObject* self, PyObject*);

// DLPack's type of a scalar, and back; empty for types that Weft lacks.
dlpack::DataType dlpack_type(Scalar scalar);
std::optional<Scalar> scalar_of(dlpack::DataType type);

}  // namespace weft::bindings
