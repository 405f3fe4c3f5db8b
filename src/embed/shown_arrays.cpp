#include "embed/shown_arrays.h"

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "runtime/array_copies.h"
#include "runtime/bytes.h"

namespace weft {

namespace {

// By address.
struct Memories {
    std::mutex mutex;
    std::map<std::uintptr_t, std::weak_ptr<runtime::Buffer>> known;
};

Memories& memories() {
    static Memories memories;
    return memories;
}

runtime::BufferPtr memory_at(std::uintptr_t address) {
    if (!address) return nullptr;
    Memories& all = memories();
    const std::lock_guard lock(all.mutex);
    // The program may have memory that begins inside of other memory.
    for (auto at = all.known.upper_bound(address); at != all.known.begin();) {
        --at;
        const runtime::BufferPtr buffer = at->second.lock();
        if (!buffer)
            at = all.known.erase(at);
        else if (address < at->first + static_cast<std::uintptr_t>(buffer->size_bytes))
            return buffer;
    }
    return nullptr;
}

// A buffer for memory that was not remembered yet; it is remembered for later lookups.
runtime::BufferPtr unknown_memory(const runtime::Array& array) {
    const auto [begin, end] = array.extent();
    auto buffer = std::make_shared<runtime::Buffer>();
    buffer->data = const_cast<std::byte*>(begin);
    buffer->size_bytes = end - begin;
    buffer->device = array.device;
    buffer->release = [] {};  // the program owns it
    remember_memory(buffer);
    return buffer;
}

template <typename Visit>
void for_each_field(Type type, std::int64_t offset, const Visit& visit) {
    for (const Type::Field& field : type.fields()) {
        if (field.type.is_array()) visit(offset + field.offset, field.type);
        if (field.type.is_struct()) for_each_field(field.type, offset + field.offset, visit);
    }
}

void find_within(const runtime::Array& array, std::set<std::string>& seen, std::vector<program::Variable>& found) {
    if (array.size() == 0 || !array.dtype.is_struct()) return;
    const runtime::Array packed = runtime::contiguous(array);
    const std::byte* const begin = runtime::host_data(packed);
    for (std::int64_t i = 0; i < packed.size(); ++i) {
        for_each_field(array.dtype, i * array.dtype.size_bytes(), [&](std::int64_t offset, Type type) {
            ArrayView view;
            std::memcpy(&view, begin + offset, sizeof view);
            const std::string key = std::string(reinterpret_cast<const char*>(&view), sizeof view) + type.ir_name();
            if (!view.data || !seen.insert(key).second) return;
            found.push_back(shown_array(view, type));
            find_within(runtime::Array(found.back().array), seen, found);
        });
    }
}

}  // namespace

void remember_memory(const runtime::BufferPtr& buffer) {
    if (!buffer || !buffer->data || buffer->size_bytes == 0) return;
    Memories& all = memories();
    const std::lock_guard lock(all.mutex);
    all.known.insert_or_assign(reinterpret_cast<std::uintptr_t>(buffer->data), buffer);
}

runtime::BufferPtr shown_memory(const ArrayView& view) {
    return memory_at(reinterpret_cast<std::uintptr_t>(view.data));
}

program::Variable shown_array(const ArrayView& view, Type array_type) {
    program::Variable shown;
    shown.array.dtype = array_type.element();
    shown.array.ndim = array_type.ndim();
    shown.array.view = view;
    shown.array.buffer = shown_memory(view);
    shown.array.device = shown.array.buffer ? shown.array.buffer->device : &runtime::host_device();
    if (!shown.array.buffer && shown.array.size() > 0) shown.array.buffer = unknown_memory(shown.array);
    if (!view.grad) return shown;
    shown.requires_grad = true;
    shown.gradient = memory_at(reinterpret_cast<std::uintptr_t>(view.grad));
    if (!shown.gradient) shown.gradient = unknown_memory(gradient_of(shown));
    return shown;
}

std::vector<program::Variable> arrays_within(const runtime::Array& array) {
    std::vector<program::Variable> found;
    std::set<std::string> seen;
    find_within(array, seen, found);
    return found;
}

}  // namespace weft
