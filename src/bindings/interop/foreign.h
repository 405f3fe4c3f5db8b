// Arrays of other libraries: what one of their protocols says of the memory, in one form. Protocols in the order in
// which they are tried:
//
//   a NumPy array                   its struct, read in place
//   __dlpack_c_exchange_api__       of the class (torch, Paddle): C functions, no Python call
//   the buffer protocol             JAX, array.array, memoryview ...
//   __array_interface__             by NumPy
//   __dlpack__                      CuPy, and whatever the others cannot say (bfloat16 of JAX)
//   __cuda_array_interface__        memory of a CUDA device
//   __array__                       a copy, which is read-only here: what is written to it would be lost
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "bindings/arrays/array.h"
#include "bindings/interop/dlpack.h"
#include "support/error.h"

namespace weft::bindings {

namespace numpy {
struct NdArray;
}

inline constexpr int kMaxForeignDims = kMaxDims + 2;  // those of an array and of matrices in it

struct ForeignArray {
    void* data = nullptr;  // null where there are no elements
    runtime::Device* device = nullptr;
    Scalar scalar = Scalar::f32;
    int ndim = 0;
    std::int64_t shape[kMaxForeignDims];
    std::int64_t strides[kMaxForeignDims];  // in bytes
    bool is_read_only = false;
    nb::object owner;  // keeps the memory alive

    std::span<const std::int64_t> extents() const { return {shape, static_cast<std::size_t>(ndim)}; }
    std::int64_t size() const;
};

// How an error names the object: by `api` and `argument`, "argument 'x' of kernel 'saxpy'", which is put together only
// where there is an error.
class ForeignName {
public:
    ForeignName(std::string_view api, std::string_view argument) : api(api), context_(&argument_), argument_(argument) {
        make_ = [](const void* text) { return std::string(*static_cast<const std::string_view*>(text)); };
    }
    // `make` is a function that lives longer than this.
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

// The error for an object that cannot be used: what it is, and why.
[[noreturn]] void refuse(const ForeignName& name, nb::handle object, const std::string& why,
                         ErrorCategory category = ErrorCategory::type);
// Whether the owner of its memory lends it to be read only.
inline bool is_read_only(const runtime::Array& array) { return array.buffer && array.buffer->is_read_only; }

// What Python's error says, which is taken: its first line, as some frameworks add a list of their own functions.
std::string taken_error();

// The memory of an object, or empty where it speaks no protocol. Throws UsageError where it does and its memory cannot
// be used: a type that Weft has not, a device that is not there, too many dimensions.
std::optional<ForeignArray> read_foreign(nb::handle object, const ForeignName& name);
// The same for NumPy's arrays and classes with DLPack's C functions, whose memory stays as long as the object; empty
// for all others.
std::optional<ForeignArray> read_in_place(nb::handle object, const ForeignName& name);
// For an array that outlives the call, and may outlive the memory: a tensor of torch can get other memory meanwhile.
// Nothing where the memory stays.
std::optional<runtime::Home> home_of(const runtime::Array& array, nb::handle object);
void watch_memory(runtime::Array& array, nb::handle object);  // its buffer
ForeignArray read_ndarray(nb::handle object, const numpy::NdArray& array, const ForeignName& name);

// As an array of `element` and `ndim`: trailing dimensions become the components. Throws UsageError with what was
// expected and found where dtype, dimensions or inner strides do not fit. `object` is what the message describes.
ArrayView fit_view(const ForeignArray& from, nb::handle object, Type element, int ndim, const ForeignName& name,
                   ErrorCategory category = ErrorCategory::type);
// With a buffer that keeps the owner.
runtime::Array fit(const ForeignArray& from, nb::handle object, Type element, int ndim, const ForeignName& name,
                   ErrorCategory category = ErrorCategory::type);
// With the elements that `dtype` asks for, or the scalars that are there where it is Kind::none; without dimensions it
// is one element; are_compatible() says which scalars stand for each other.
runtime::Array as_elements(const ForeignArray& from, nb::handle object, Type dtype, const ForeignName& name);
// The same without a buffer: what keeps the memory is the caller's business.
runtime::Array shown_as_elements(const ForeignArray& from, nb::handle object, Type dtype, const ForeignName& name);
// Integers of one size stand for each other, and bytes for bool.
bool are_compatible(Scalar found, Scalar asked);
// The same memory as an ndarray.
nb::object ndarray_of(const ForeignArray& from);

// What a DLPack tensor says; `owner` is left to the caller.
ForeignArray read_tensor(const dlpack::Tensor& tensor, nb::handle object, const ForeignName& name);
// Memory of a capsule, which is used up, or of what an object's __dlpack__ gives. Of memory on a CUDA device, what this
// thread puts into its stream afterwards comes after the object's work; with a capsule nobody waits.
ForeignArray read_capsule(nb::handle capsule, nb::handle object, const ForeignName& name);
ForeignArray read_by_dlpack(nb::handle object, const ForeignName& name);
// The functions of the class, or null.
const dlpack::ExchangeApi* exchange_api(PyTypeObject* type);
// Whether a tensor is a view of torch that stands for the negated numbers of its memory, of which DLPack says nothing.
bool is_negated(nb::handle tensor);
// The same from the tensor's own words, in less time; nothing where it is not known where they are.
std::optional<bool> known_negation(nb::handle tensor);
// Whether it is a tensor of torch; false where its class does not say how to exchange tensors.
bool is_torch_tensor(nb::handle object);

// An array as DLPack's structures, with a reference to its memory. Throws UsageError for elements that are no numbers
// and for memory that is neither the host's nor a CUDA device's. Nobody waits for work on it. `scalar` is what its
// numbers are said to be, where that is something else than what they are.
dlpack::VersionedTensor* export_versioned(const runtime::Array& array, const char* api,
                                          std::optional<Scalar> scalar = {});
dlpack::ManagedTensor* export_unversioned(const runtime::Array& array, const char* api,
                                          std::optional<Scalar> scalar = {});
nb::object capsule_of(dlpack::VersionedTensor* tensor);
nb::object capsule_of(dlpack::ManagedTensor* tensor);
void bind_dlpack(nb::module_& m);

// Of a scalar and back; empty for what Weft has not.
dlpack::DataType dlpack_type(Scalar scalar);
std::optional<Scalar> scalar_of(dlpack::DataType type);

}  // namespace weft::bindings
