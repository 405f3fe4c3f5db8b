// Memory of devices, pinned memory, pools.
#include <cstdlib>

#include "emulator/driver/state.h"

namespace weft::emulator {

namespace {

using Kind = Allocation::Kind;

AddressSpace& space() { return AddressSpace::instance(); }

template <class F>
CUresult locked(F body) {
    return entry([&] {
        const std::lock_guard lock(State::instance().mutex);
        body(State::instance());
    });
}

CUdeviceptr allocate(int device, size_t bytes) {
    const Allocation* made = space().allocate(device, bytes, Kind::Device);
    require(made, CUDA_ERROR_OUT_OF_MEMORY);
    return made->address;
}

void allocate_from(Pool& pool, CUdeviceptr* address, size_t bytes) {
    require(address && bytes > 0);
    *address = allocate(pool.device, bytes);
    pool.used += bytes;
    pool.most = std::max(pool.most, pool.used);
}

Pool& known_pool(CUmemoryPool pool) {
    for (Device& device : State::instance().devices) {
        if (&device.pool == pool) return *pool;
    }
    fail(CUDA_ERROR_INVALID_HANDLE);
}

// Some host memory ends with a line of its own, so that kernels may use vectors up to its end.
void* host_memory(size_t bytes) {
    void* memory = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    require(memory, CUDA_ERROR_OUT_OF_MEMORY);
    return memory;
}

void allocate_host(void** memory, size_t bytes) {
    require(memory && bytes > 0);
    const Context& context = current_context();
    void* made = host_memory(bytes);
    if (!space().add_host(made, bytes, Kind::Pinned, context.device)) {
        std::free(made);
        fail(CUDA_ERROR_OUT_OF_MEMORY);
    }
    *memory = made;
}

bool is_host(const Allocation& allocation) {
    return allocation.kind == Kind::Pinned || allocation.kind == Kind::Registered;
}

}  // namespace

extern "C" {

CUresult cuMemGetInfo_v2(size_t* free_bytes, size_t* total) {
    return locked([&](State&) {
        const Context& context = current_context();
        if (free_bytes) *free_bytes = space().total() - space().used(context.device);
        if (total) *total = space().total();
    });
}

CUresult cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
    return locked([&](State&) {
        const Context& context = current_context();
        require(address && bytes > 0);
        *address = allocate(context.device, bytes);
    });
}

CUresult cuMemFree_v2(CUdeviceptr address) {
    return entry([&] {
        current_context();
        require(!address || space().release(address, Kind::Device));
    });
}

CUresult cuMemAllocAsync(CUdeviceptr* address, size_t bytes, CUstream stream) {
    return locked([&](State& state) {
        const Stream& found = *state.stream(stream);
        allocate_from(*state.devices[found.context->device].current_pool, address, bytes);
    });
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
    return entry([&] {
        const Allocation* found = space().find(address);
        require(found && found->kind == Kind::Device && found->address == address && !found->freed);
        const uint64_t bytes = found->size;
        const int device = found->device;
        submit(stream, [&] {
            require(space().release(address, Kind::Device));
            const std::lock_guard lock(State::instance().mutex);
            Pool& pool = State::instance().devices[device].pool;
            pool.used -= std::min(pool.used, bytes);
        });
    });
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr* address, size_t bytes, CUmemoryPool pool, CUstream stream) {
    return locked([&](State& state) {
        state.stream(stream);
        allocate_from(known_pool(pool), address, bytes);
    });
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device) {
    return locked([&](State& state) {
        require(pool);
        require(device >= 0 && device < AddressSpace::kDevices, CUDA_ERROR_INVALID_DEVICE);
        *pool = &state.devices[device].pool;
    });
}

CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice device) { return cuDeviceGetDefaultMemPool(pool, device); }

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
    return locked([&](State& state) {
        require(device >= 0 && device < AddressSpace::kDevices, CUDA_ERROR_INVALID_DEVICE);
        require(known_pool(pool).device == device);
        state.devices[device].current_pool = pool;
    });
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
    return locked([&](State&) {
        require(value);
        Pool& found = known_pool(pool);
        if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
            found.threshold = *static_cast<uint64_t*>(value);
        } else if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH || attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) {
            require(*static_cast<uint64_t*>(value) == 0);
            found.most = found.used;
        } else {
            // reuse policies change nothing here: addresses are not used again
            require(attribute >= 1 && attribute <= 3);
        }
    });
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
    return locked([&](State&) {
        require(value);
        const Pool& found = known_pool(pool);
        uint64_t& number = *static_cast<uint64_t*>(value);
        switch (attribute) {
            case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
                number = found.threshold;
                break;
            case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
            case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
                number = found.used;
                break;
            case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
            case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
                number = found.most;
                break;
            default:
                require(attribute >= 1 && attribute <= 3);
                *static_cast<int*>(value) = 1;
        }
    });
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t) {
    return locked([&](State&) { known_pool(pool); });
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* access, size_t count) {
    return locked([&](State&) {
        known_pool(pool);
        require(access || count == 0);
    });
}

CUresult cuMemHostAlloc(void** memory, size_t bytes, unsigned int flags) {
    return locked([&](State&) {
        require(flags <= 7);
        allocate_host(memory, bytes);
    });
}

CUresult cuMemAllocHost_v2(void** memory, size_t bytes) {
    return locked([&](State&) { allocate_host(memory, bytes); });
}

CUresult cuMemFreeHost(void* memory) {
    return entry([&] { require(memory && space().release(reinterpret_cast<uint64_t>(memory), Kind::Pinned)); });
}

CUresult cuMemHostRegister_v2(void* memory, size_t bytes, unsigned int) {
    return locked([&](State&) {
        require(memory && bytes > 0);
        const Context& context = current_context();
        require(space().add_host(memory, bytes, Kind::Registered, context.device),
                CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    });
}

CUresult cuMemHostUnregister(void* memory) {
    return entry([&] {
        require(memory);
        require(space().release(reinterpret_cast<uint64_t>(memory), Kind::Registered),
                CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    });
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* address, void* memory, unsigned int flags) {
    return locked([&](State&) {
        require(address && memory && flags == 0);
        const Allocation* found = space().find(reinterpret_cast<uint64_t>(memory));
        require(found && is_host(*found));
        *address = reinterpret_cast<CUdeviceptr>(memory);
    });
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* bytes, CUdeviceptr address) {
    return locked([&](State&) {
        const Allocation* found = space().find(address);
        require(found && !found->freed && address < found->end(), CUDA_ERROR_NOT_FOUND);
        if (base) *base = found->address;
        if (bytes) *bytes = found->size;
    });
}

CUresult cuPointerGetAttribute(void* value, CUpointer_attribute attribute, CUdeviceptr address) {
    return locked([&](State& state) {
        require(value);
        const Allocation* found = space().find(address);
        require(found && !found->freed && address < found->end());
        switch (attribute) {
            case CU_POINTER_ATTRIBUTE_CONTEXT:
                *static_cast<CUcontext*>(value) = state.devices[found->device].primary.get();
                break;
            case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
                *static_cast<unsigned int*>(value) =
                    unsigned(is_host(*found) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
                break;
            case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
                *static_cast<CUdeviceptr*>(value) = address;
                break;
            case CU_POINTER_ATTRIBUTE_HOST_POINTER:
                require(is_host(*found));
                *static_cast<CUdeviceptr*>(value) = address;
                break;
            case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
                *static_cast<int*>(value) = found->device;
                break;
            case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
                *static_cast<CUdeviceptr*>(value) = found->address;
                break;
            case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
                *static_cast<size_t*>(value) = found->size;
                break;
            default:
                fail(CUDA_ERROR_INVALID_VALUE);
        }
    });
}

}  // extern "C"

}  // namespace weft::emulator
