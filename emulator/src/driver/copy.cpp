// Copies and fills.
#include <cstring>

#include "driver/state.h"
#include "driver/submit.h"
#include "driver/task.h"

namespace weft::emulator {

namespace {

// One side of a copy. Memory of a device is checked, and has marks of its written bytes.
struct CopySide {
    std::byte* data = nullptr;
    Allocation* allocation = nullptr;
    uint64_t address = 0;
};

// The accessing device, and whether the access is made now or by a later launch of a graph. In the latter case, memory
// may not be allocated yet.
struct When {
    int device;  // the copying device; kBoth: each device accesses its own memory
    bool in_graph = false;
};
constexpr int kBoth = -1;

CopySide on_device(CUdeviceptr address, uint64_t bytes, When when) {
    Allocation* found = AddressSpace::instance().find(address);
    if (found && when.device != kBoth && !AddressSpace::instance().can_reach(*found, when.device)) {
        note_refusal("no peer access: device " + std::to_string(when.device) + " copies or fills memory of device " +
                     std::to_string(found->device) + ", which is not open to it: " + found->describe() +
                     "; cuMemcpyPeerAsync needs no access");
        fail(CUDA_ERROR_INVALID_VALUE);
    }
    require(found && (!found->freed || when.in_graph) && bytes <= found->size &&
            address - found->address <= found->size - bytes);
    return {found->data + (address - found->address), found, address};
}

// Memory of the host; fails for an address of a device.
CopySide on_host(const void* memory, uint64_t bytes) {
    const auto address = reinterpret_cast<uint64_t>(memory);
    require(memory && !AddressSpace::instance().is_device_address(address) &&
            !AddressSpace::instance().is_device_address(address + bytes - 1));
    return {static_cast<std::byte*>(const_cast<void*>(memory)), nullptr, address};
}

CopySide anywhere(CUdeviceptr address, uint64_t bytes, When when) {
    return AddressSpace::instance().is_device_address(address) ? on_device(address, bytes, when)
                                                               : on_host(reinterpret_cast<const void*>(address), bytes);
}

// Copies the marks too: bytes that were never written stay unwritten in the copy.
void copy_marks(const CopySide& to, const CopySide& from, uint64_t bytes) {
    if (!to.allocation || !to.allocation->written) return;
    if (!from.allocation || !from.allocation->written || from.allocation->complete)
        return mark_written(*to.allocation, to.address, bytes);
    if (to.allocation->complete) to.allocation->complete = false;
    std::memmove(to.allocation->written + (to.address - to.allocation->address),
                 from.allocation->written + (from.address - from.allocation->address), bytes);
}

using Pair = std::pair<CopySide, CopySide>;

using Find = std::function<std::vector<Pair>(When)>;

bool is_pageable(const CopySide& place) { return !place.allocation && !AddressSpace::instance().find(place.address); }

enum class Wait {
    No,   // asynchronous; but host memory that is not pinned may be reused when the call returns
    Yes,  // unless both sides are a device's
};

// Runs the copy in its turn. An access that is no longer allowed fails like a kernel's.
void run_copy(Context& context, int device, const Find& find, uint64_t bytes) {
    try {
        const std::shared_lock running(AddressSpace::instance().running);
        for (const auto& [to, from] : find({device})) {
            std::memmove(to.data, from.data, bytes);
            copy_marks(to, from, bytes);
        }
    } catch (const Failure&) {
        note_fault(context, CUDA_ERROR_ILLEGAL_ADDRESS,
                   "use after free: a copy of " + std::to_string(bytes) +
                       " bytes in a stream came to memory that had been freed before its turn, or closed to it");
    }
}

// The context of a stream, and whether the stream is being captured.
std::pair<Context*, bool> owner_of(CUstream stream) {
    State& state = State::instance();
    const std::lock_guard lock(state.mutex);
    const Stream& found = *state.stream(stream);
    return {found.context, found.capture != nullptr};
}

// Copies rows of `bytes` bytes. Arguments are checked at once. Bytes of the host that are not pinned are read at once,
// unless a graph will read them; all other bytes are read when the copy runs.
void copy(CUstream stream, uint64_t bytes, Wait wait, const Find& find, bool both = false) {
    const auto [context, is_captured] = owner_of(stream);
    const int device = both ? kBoth : context->device;
    std::vector<Pair> now;
    if (bytes > 0) {
        const std::shared_lock running(AddressSpace::instance().running);
        now = find({device, is_captured});
    }
    if (now.empty()) {
        submit(stream, CU_GRAPH_NODE_TYPE_EMPTY, nullptr);
        return;
    }
    const CopySide to = now.front().first, from = now.front().second;
    if (!is_captured && now.size() == 1 && is_pageable(from) && to.allocation) {
        const auto staged = std::make_shared<std::vector<std::byte>>(from.data, from.data + bytes);
        submit(stream, CU_GRAPH_NODE_TYPE_MEMCPY, [context = context, device, find, staged, bytes] {
            run_copy(
                *context, device,
                [&](When when) {
                    std::vector<Pair> pairs = find(when);
                    pairs.front().second.data = staged->data();
                    return pairs;
                },
                bytes);
        });
        return;
    }
    const TaskPtr task = submit(stream, CU_GRAPH_NODE_TYPE_MEMCPY,
                                [context = context, device, find, bytes] { run_copy(*context, device, find, bytes); });
    const bool touches_host = !to.allocation || !from.allocation;
    if (is_pageable(to) || is_pageable(from) || (wait == Wait::Yes && touches_host)) Tasks::instance().finish(task);
}

void copy_to_device(CUdeviceptr to, const void* from, size_t bytes, CUstream stream, Wait wait) {
    copy(stream, bytes, wait,
         [=](When when) { return std::vector{Pair{on_device(to, bytes, when), on_host(from, bytes)}}; });
}
void copy_to_host(void* to, CUdeviceptr from, size_t bytes, CUstream stream, Wait wait) {
    copy(stream, bytes, wait,
         [=](When when) { return std::vector{Pair{on_host(to, bytes), on_device(from, bytes, when)}}; });
}
void copy_on_device(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream, bool both = false) {
    copy(
        stream, bytes, Wait::No,
        [=](When when) { return std::vector{Pair{on_device(to, bytes, when), on_device(from, bytes, when)}}; }, both);
}
void copy_anywhere(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream, Wait wait) {
    copy(stream, bytes, wait,
         [=](When when) { return std::vector{Pair{anywhere(to, bytes, when), anywhere(from, bytes, when)}}; });
}

// The first byte of a row of one side.
CopySide row_of(CUmemorytype type, const void* host, CUdeviceptr device, size_t x, size_t y, size_t pitch, size_t bytes,
                When when) {
    const size_t offset = y * pitch + x;
    if (type == CU_MEMORYTYPE_HOST) return on_host(static_cast<const std::byte*>(host) + offset, bytes);
    if (type == CU_MEMORYTYPE_DEVICE) return on_device(device + offset, bytes, when);
    require(type == CU_MEMORYTYPE_UNIFIED);
    return anywhere(device + offset, bytes, when);
}

void copy_rows(const CUDA_MEMCPY2D* given, CUstream stream, Wait wait) {
    require(given);
    const CUDA_MEMCPY2D copied = *given;
    require(copied.Height <= 1 || (copied.srcPitch >= copied.WidthInBytes + copied.srcXInBytes &&
                                   copied.dstPitch >= copied.WidthInBytes + copied.dstXInBytes));
    copy(stream, copied.WidthInBytes, wait, [copied](When when) {
        std::vector<Pair> rows;
        for (size_t row = 0; row < copied.Height; ++row) {
            rows.emplace_back(row_of(copied.dstMemoryType, copied.dstHost, copied.dstDevice, copied.dstXInBytes,
                                     copied.dstY + row, copied.dstPitch, copied.WidthInBytes, when),
                              row_of(copied.srcMemoryType, copied.srcHost, copied.srcDevice, copied.srcXInBytes,
                                     copied.srcY + row, copied.srcPitch, copied.WidthInBytes, when));
        }
        return rows;
    });
}

template <class T>
void fill(CUdeviceptr address, size_t pitch, T value, size_t width, size_t height, CUstream stream) {
    require(address % sizeof(T) == 0 && (height <= 1 || (pitch % sizeof(T) == 0 && pitch >= width * sizeof(T))));
    if (width == 0 || height == 0) {
        submit(stream, CU_GRAPH_NODE_TYPE_EMPTY, nullptr);
        return;
    }
    const uint64_t bytes = width * sizeof(T);
    const auto [context, is_captured] = owner_of(stream);
    {
        const std::shared_lock running(AddressSpace::instance().running);
        on_device(address, (height - 1) * pitch + bytes, {context->device, is_captured});
    }
    submit(stream, CU_GRAPH_NODE_TYPE_MEMSET, [=, context = context] {
        try {
            const std::shared_lock running(AddressSpace::instance().running);
            for (size_t row = 0; row < height; ++row) {
                const CopySide place = on_device(address + row * pitch, bytes, {context->device});
                for (size_t i = 0; i < width; ++i) std::memcpy(place.data + i * sizeof(T), &value, sizeof(T));
                mark_written(*place.allocation, place.address, bytes);
            }
        } catch (const Failure&) {
            note_fault(*context, CUDA_ERROR_ILLEGAL_ADDRESS,
                       "use after free: a fill in a stream came to memory that had been freed before its turn");
        }
    });
}

void require_contexts(CUcontext a, CUcontext b) {
    const std::lock_guard lock(State::instance().mutex);
    const auto& contexts = State::instance().contexts;
    require(contexts.contains(a) && contexts.contains(b), CUDA_ERROR_INVALID_CONTEXT);
}

template <class F>
CUresult in_context(F body, const char* function = __builtin_FUNCTION()) {
    return entry(
        [&] {
            {
                const std::lock_guard lock(State::instance().mutex);
                current_context();
            }
            body();
        },
        true, function);
}

}  // namespace

extern "C" {

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
    return in_context([&] { copy_anywhere(to, from, bytes, nullptr, Wait::Yes); });
}
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    return in_context([&] { copy_anywhere(to, from, bytes, stream, Wait::No); });
}
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t bytes) {
    return in_context([&] { copy_to_device(to, from, bytes, nullptr, Wait::Yes); });
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
    return in_context([&] { copy_to_device(to, from, bytes, stream, Wait::No); });
}
CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes) {
    return in_context([&] { copy_to_host(to, from, bytes, nullptr, Wait::Yes); });
}
CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
    return in_context([&] { copy_to_host(to, from, bytes, stream, Wait::No); });
}
CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
    return cuMemcpyDtoDAsync_v2(to, from, bytes, nullptr);
}
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    return in_context([&] { copy_on_device(to, from, bytes, stream); });
}
CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes) {
    // in order with all work of both contexts
    return in_context([&] {
        require_contexts(to_context, from_context);
        Tasks::instance().finish_all(nullptr);
        copy_on_device(to, from, bytes, nullptr, /*both=*/true);
        Tasks::instance().finish_all(nullptr);
    });
}
CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes,
                           CUstream stream) {
    return in_context([&] {
        require_contexts(to_context, from_context);
        copy_on_device(to, from, bytes, stream, /*both=*/true);
    });
}
CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* copied) {
    return in_context([&] { copy_rows(copied, nullptr, Wait::Yes); });
}
CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* copied) { return cuMemcpy2D_v2(copied); }
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* copied, CUstream stream) {
    return in_context([&] { copy_rows(copied, stream, Wait::No); });
}

#define WEFT_FILLS(bits, T)                                                                               \
    CUresult cuMemsetD##bits##Async(CUdeviceptr to, T value, size_t count, CUstream stream) {             \
        return in_context([&] { fill(to, 0, value, count, 1, stream); });                                 \
    }                                                                                                     \
    CUresult cuMemsetD##bits##_v2(CUdeviceptr to, T value, size_t count) {                                \
        return cuMemsetD##bits##Async(to, value, count, nullptr);                                         \
    }                                                                                                     \
    CUresult cuMemsetD2D##bits##Async(CUdeviceptr to, size_t pitch, T value, size_t width, size_t height, \
                                      CUstream stream) {                                                  \
        return in_context([&] { fill(to, pitch, value, width, height, stream); });                        \
    }                                                                                                     \
    CUresult cuMemsetD2D##bits##_v2(CUdeviceptr to, size_t pitch, T value, size_t width, size_t height) { \
        return cuMemsetD2D##bits##Async(to, pitch, value, width, height, nullptr);                        \
    }
WEFT_FILLS(8, unsigned char)
WEFT_FILLS(16, unsigned short)
WEFT_FILLS(32, unsigned int)
#undef WEFT_FILLS

}  // extern "C"

}  // namespace weft::emulator
