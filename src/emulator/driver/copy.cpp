// Copies and fills.
#include <cstring>

#include "emulator/driver/state.h"

namespace weft::emulator {

namespace {

// One side of a copy: what is a device's is checked, and its bytes have marks of what was written.
struct Place {
    std::byte* data = nullptr;
    Allocation* allocation = nullptr;
    uint64_t address = 0;
};

Place on_device(CUdeviceptr address, uint64_t bytes) {
    Allocation* found = AddressSpace::instance().find(address);
    require(found && !found->freed && bytes <= found->size && address - found->address <= found->size - bytes);
    return {found->data + (address - found->address), found, address};
}

// Memory of the host, which must not be an address of a device.
Place on_host(const void* memory, uint64_t bytes) {
    const auto address = reinterpret_cast<uint64_t>(memory);
    require(memory && !AddressSpace::instance().is_device_address(address) &&
            !AddressSpace::instance().is_device_address(address + bytes - 1));
    return {static_cast<std::byte*>(const_cast<void*>(memory)), nullptr, address};
}

Place anywhere(CUdeviceptr address, uint64_t bytes) {
    return AddressSpace::instance().is_device_address(address) ? on_device(address, bytes)
                                                               : on_host(reinterpret_cast<const void*>(address), bytes);
}

// The marks are copied too: what was never written is not written by a copy.
void copy_marks(const Place& to, const Place& from, uint64_t bytes) {
    if (!to.allocation || !to.allocation->written) return;
    if (!from.allocation || !from.allocation->written || from.allocation->complete)
        return mark_written(*to.allocation, to.address, bytes);
    if (to.allocation->complete) to.allocation->complete = false;
    std::memmove(to.allocation->written + (to.address - to.allocation->address),
                 from.allocation->written + (from.address - from.allocation->address), bytes);
}

template <class Find>
void copy(CUstream stream, uint64_t bytes, Find find) {
    if (bytes == 0) {
        submit(stream, [] {});
        return;
    }
    // the arguments are judged at once, the bytes are copied in their turn
    {
        const std::shared_lock running(AddressSpace::instance().running);
        find();
    }
    submit(stream, [find, bytes] {
        const std::shared_lock running(AddressSpace::instance().running);
        const auto [to, from] = find();
        std::memmove(to.data, from.data, bytes);
        copy_marks(to, from, bytes);
    });
}

using Pair = std::pair<Place, Place>;

void copy_to_device(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
    copy(stream, bytes, [=] { return Pair{on_device(to, bytes), on_host(from, bytes)}; });
}
void copy_to_host(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
    copy(stream, bytes, [=] { return Pair{on_host(to, bytes), on_device(from, bytes)}; });
}
void copy_on_device(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    copy(stream, bytes, [=] { return Pair{on_device(to, bytes), on_device(from, bytes)}; });
}
void copy_anywhere(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    copy(stream, bytes, [=] { return Pair{anywhere(to, bytes), anywhere(from, bytes)}; });
}

// The first byte of a row of one side.
Place row_of(CUmemorytype type, const void* host, CUdeviceptr device, size_t x, size_t y, size_t pitch, size_t bytes) {
    const size_t offset = y * pitch + x;
    if (type == CU_MEMORYTYPE_HOST) return on_host(static_cast<const std::byte*>(host) + offset, bytes);
    if (type == CU_MEMORYTYPE_DEVICE) return on_device(device + offset, bytes);
    require(type == CU_MEMORYTYPE_UNIFIED);
    return anywhere(device + offset, bytes);
}

void copy_rows(const CUDA_MEMCPY2D* given, CUstream stream) {
    require(given);
    const CUDA_MEMCPY2D copied = *given;
    require(copied.Height <= 1 || (copied.srcPitch >= copied.WidthInBytes + copied.srcXInBytes &&
                                   copied.dstPitch >= copied.WidthInBytes + copied.dstXInBytes));
    for (size_t row = 0; row < copied.Height; ++row) {
        copy(stream, copied.WidthInBytes, [copied, row] {
            return Pair{row_of(copied.dstMemoryType, copied.dstHost, copied.dstDevice, copied.dstXInBytes,
                               copied.dstY + row, copied.dstPitch, copied.WidthInBytes),
                        row_of(copied.srcMemoryType, copied.srcHost, copied.srcDevice, copied.srcXInBytes,
                               copied.srcY + row, copied.srcPitch, copied.WidthInBytes)};
        });
    }
}

template <class T>
void fill(CUdeviceptr address, size_t pitch, T value, size_t width, size_t height, CUstream stream) {
    require(address % sizeof(T) == 0 && (height <= 1 || (pitch % sizeof(T) == 0 && pitch >= width * sizeof(T))));
    if (width == 0 || height == 0) {
        submit(stream, [] {});
        return;
    }
    const uint64_t bytes = width * sizeof(T);
    {
        const std::shared_lock running(AddressSpace::instance().running);
        on_device(address, (height - 1) * pitch + bytes);
    }
    submit(stream, [=] {
        const std::shared_lock running(AddressSpace::instance().running);
        for (size_t row = 0; row < height; ++row) {
            const Place place = on_device(address + row * pitch, bytes);
            for (size_t i = 0; i < width; ++i) std::memcpy(place.data + i * sizeof(T), &value, sizeof(T));
            mark_written(*place.allocation, place.address, bytes);
        }
    });
}

template <class F>
CUresult in_context(F body) {
    return entry([&] {
        current_context();
        body();
    });
}

}  // namespace

extern "C" {

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) { return cuMemcpyAsync(to, from, bytes, nullptr); }
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    return in_context([&] { copy_anywhere(to, from, bytes, stream); });
}
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t bytes) {
    return cuMemcpyHtoDAsync_v2(to, from, bytes, nullptr);
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
    return in_context([&] { copy_to_device(to, from, bytes, stream); });
}
CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes) {
    return cuMemcpyDtoHAsync_v2(to, from, bytes, nullptr);
}
CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
    return in_context([&] { copy_to_host(to, from, bytes, stream); });
}
CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
    return cuMemcpyDtoDAsync_v2(to, from, bytes, nullptr);
}
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    return in_context([&] { copy_on_device(to, from, bytes, stream); });
}
CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes) {
    return cuMemcpyPeerAsync(to, to_context, from, from_context, bytes, nullptr);
}
CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes,
                           CUstream stream) {
    return in_context([&] {
        const auto& contexts = State::instance().contexts;
        require(contexts.contains(to_context) && contexts.contains(from_context), CUDA_ERROR_INVALID_CONTEXT);
        copy_on_device(to, from, bytes, stream);
    });
}
CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* copied) {
    return in_context([&] { copy_rows(copied, nullptr); });
}
CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* copied) { return cuMemcpy2D_v2(copied); }
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* copied, CUstream stream) {
    return in_context([&] { copy_rows(copied, stream); });
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
