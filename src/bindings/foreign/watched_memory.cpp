// Memory of tensors for arrays that outlive the call that made them. PyTorch may give a tensor other memory at any
// time: `t.set_()` and `t.data = ...` another storage, `t.resize_()` other bytes to the same storage, swap_tensors()
// all of it. The memory of such an array would then be freed, so the array checks that its tensor still has the memory.
// The check reads the tensor's own words, since asking PyTorch would cost more than a launch. Their offsets are found
// by experiment (python/warp/_interop/torch_memory.py); if the experiment fails nothing is watched. Whether a tensor
// stands for negated numbers is read in the same way, and asked of PyTorch if the experiment failed.
#include "bindings/foreign/foreign.h"
#include "bindings/python/python_function.h"
#include "bindings/values/array_value.h"

namespace weft::bindings {
namespace {

// Offsets in bytes: of the tensor in its Python object, of the storage in the tensor, of address and size in the
// storage. Then the offset of the word of the tensor with the bit for negated numbers; and that bit.
using TensorOffsets = std::array<std::uint64_t, 6>;

const std::optional<TensorOffsets>& tensor_offsets() {
    static std::optional<std::optional<TensorOffsets>> found;  // guarded by the GIL
    if (!found) {
        PyObject* function = nullptr;
        const nb::object answer = function_of("warp._interop.torch_memory", function, "places_of_memory")();
        Py_XDECREF(function);
        found.emplace();
        if (!answer.is_none()) {
            TensorOffsets& made = found->emplace();
            for (std::size_t i = 0; i < made.size(); ++i) made[i] = nb::cast<std::uint64_t>(answer[i]);
        }
    }
    return *found;
}

const std::byte* word_at(const std::byte* address) { return *reinterpret_cast<const std::byte* const*>(address); }

}  // namespace

std::optional<bool> known_negation(nb::handle tensor) {
    const std::optional<TensorOffsets>& at = tensor_offsets();
    if (!at) return std::nullopt;
    const std::byte* const inner = word_at(reinterpret_cast<const std::byte*>(tensor.ptr()) + (*at)[0]);
    return (*reinterpret_cast<const std::uint64_t*>(inner + (*at)[4]) & (*at)[5]) != 0;
}

std::optional<runtime::Home> home_of(const runtime::Array& array, nb::handle object) {
    if (!array.view.data || !is_torch_tensor(object)) return std::nullopt;
    const std::optional<TensorOffsets>& at = tensor_offsets();
    if (!at) return std::nullopt;
    runtime::Home home;
    const std::byte* from = reinterpret_cast<const std::byte*>(object.ptr());
    for (std::size_t i = 0; i < 3; ++i) {
        const std::byte* const address = from + (*at)[i];
        home.words[i] = {address, word_at(address)};
        if (i == 2) home.size_bytes = reinterpret_cast<const std::int64_t*>(from + (*at)[3]);
        from = home.words[i].value;
    }
    return home;
}

void watch_memory(runtime::Array& array, nb::handle object) {
    if (const std::optional<runtime::Home> home = home_of(array, object))
        array.buffer->home = std::make_unique<const runtime::Home>(*home);
}

}  // namespace weft::bindings
