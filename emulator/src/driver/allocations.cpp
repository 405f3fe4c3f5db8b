// Memory of devices, pinned memory and pools.
#include <cstdlib>

#include "driver/capture.h"
#include "driver/state.h"
#include "driver/submit.h"
#include "driver/task.h"

namespace weft::emulator {

namespace {

using Kind = Allocation::Kind;

AddressSpace& space() { return AddressSpace::instance(); }

CUdeviceptr allocate(int device, size_t bytes) {
    const Allocation* made = space().allocate(device, bytes, Kind::Device);
    require(made, CUDA_ERROR_OUT_OF_MEMORY);
    return made->address;
}

Pool& known_pool(CUmemoryPool pool) {
    for (Device& device : State::instance().devices) {
        if (&device.pool == pool) return *pool;
    }
    fail(CUDA_ERROR_INVALID_HANDLE);
}

// Whether memory is allocated, and no pending task will free it.
bool is_live(CUdeviceptr address) {
    const Allocation* found = space().find(address);
    return found && found->kind == Kind::Device && found->address == address && !found->freed &&
           !State::instance().going.contains(address);
}

// Memory of a pool is returned to the pool.
void release(CUdeviceptr address) {
    State& state = State::instance();
    const bool is_graphs = [&] {
        const std::lock_guard lock(state.mutex);
        state.going.erase(address);
        state.of_contexts.erase(address);
        if (const auto found = state.pooled.find(address); found != state.pooled.end()) {
            found->second.pool->used -= found->second.bytes;
            state.pooled.erase(found);
        }
        return state.of_graphs.contains(address);
    }();
    // the graph keeps the memory, and its next launch may allocate it again
    if (is_graphs)
        space().set_there(address, false);
    else
        space().release(address, Kind::Device);
}

// Memory of a graph is accessible from the node that allocates it to the node that frees it.
void allocate_in_graph(Stream& stream, Pool& pool, CUdeviceptr* address, size_t bytes) {
    const Allocation* const given = space().allocate_pooled(pool.device, bytes);
    require(given, CUDA_ERROR_OUT_OF_MEMORY);
    const CUdeviceptr made = *address = given->address;
    space().set_there(made, false);
    State::instance().of_graphs.insert(made);
    GraphNode* node = add_node(stream, CU_GRAPH_NODE_TYPE_MEM_ALLOC, [made] { space().set_there(made, true); });
    node->memory = made;
    node->graph->memory.push_back(std::shared_ptr<void>(nullptr, [made](void*) {
        const std::lock_guard lock(State::instance().mutex);
        State::instance().of_graphs.erase(made);
        space().set_there(made, true);
        space().release(made, Kind::Device);
    }));
}

void free_in_graph(Stream& stream, CUdeviceptr address) {
    require(State::instance().of_graphs.contains(address));
    GraphNode* node = add_node(stream, CU_GRAPH_NODE_TYPE_MEM_FREE, [address] { space().set_there(address, false); });
    node->memory = address;
}

bool try_to_allocate(CUdeviceptr* address, size_t bytes, CUmemoryPool asked, CUstream stream) {
    State& state = State::instance();
    const std::lock_guard lock(state.mutex);
    Stream& found = *state.stream(stream);
    Pool& pool = asked ? known_pool(asked) : *state.devices[found.context->device].current_pool;
    if (found.capture) {
        allocate_in_graph(found, pool, address, bytes);
        return true;
    }
    require_no_implicit_capture(found);
    const Allocation* made = space().allocate_pooled(pool.device, bytes);
    if (!made) return false;
    *address = made->address;
    pool.used += bytes;
    pool.most = std::max(pool.most, pool.used);
    pool.most_reserved = std::max(pool.most_reserved, pool.reserved());
    state.pooled[made->address] = {&pool, bytes};
    return true;
}

// If there is no more memory, waits for pending tasks that free some, as a pool does.
void allocate_in_order(CUdeviceptr* address, size_t bytes, CUmemoryPool pool, CUstream stream) {
    require(address && bytes > 0);
    if (try_to_allocate(address, bytes, pool, stream)) return;
    Tasks::instance().finish_all(nullptr);
    require(try_to_allocate(address, bytes, pool, stream), CUDA_ERROR_OUT_OF_MEMORY);
}

// Whole pages, so that kernels may use vectors up to the end.
void* host_memory(size_t bytes) {
    void* memory = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    require(memory, CUDA_ERROR_OUT_OF_MEMORY);
    return memory;
}

void allocate_host(void** memory, size_t bytes) {
    require(memory && bytes > 0);
    const Context& context = current_context();
    require_no_unsafe_capture();
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

void trim_pools() {
    const std::lock_guard lock(State::instance().mutex);
    for (const Device& device : State::instance().devices) device.pool.trim(device.pool.threshold);
}

extern "C" {

CUresult cuMemGetInfo_v2(size_t* free_bytes, size_t* total) {
    return locked([&](State&) {
        const Context& context = current_context();
        const uint64_t taken = space().used(context.device) + space().held(context.device);
        if (free_bytes) *free_bytes = space().total() - std::min(taken, space().total());
        if (total) *total = space().total();
    });
}

void weftEmulatedAsked(CUdeviceptr address, size_t bytes) { space().set_asked(address, bytes); }

CUresult cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
    return locked([&](State& state) {
        Context& context = current_context();
        require(address && bytes > 0);
        require_no_unsafe_capture();
        *address = allocate(context.device, bytes);
        if (!context.primary) state.of_contexts[*address] = &context;
    });
}

// Memory of the device that the host can access too: nothing migrates.
CUresult cuMemAllocManaged(CUdeviceptr* address, size_t bytes, unsigned int flags) {
    return locked([&](State& state) {
        Context& context = current_context();
        require(address && bytes > 0);
        require(flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST);
        require_no_unsafe_capture();
        *address = allocate(context.device, bytes);
        if (!context.primary) state.of_contexts[*address] = &context;
    });
}

// Waits for all work of the context.
CUresult cuMemFree_v2(CUdeviceptr address) {
    return entry([&] {
        const Context* context;
        {
            const std::lock_guard lock(State::instance().mutex);
            context = &current_context();
            if (!address) return;
            require_no_unsafe_capture();
            require(is_live(address));
        }
        Tasks::instance().finish_all(context);
        release(address);
    });
}

CUresult cuMemAllocAsync(CUdeviceptr* address, size_t bytes, CUstream stream) {
    return entry([&] { allocate_in_order(address, bytes, nullptr, stream); });
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
    return entry([&] {
        {
            const std::lock_guard lock(State::instance().mutex);
            Stream& found = *State::instance().stream(stream);
            if (found.capture) {
                free_in_graph(found, address);
                return;
            }
            // for memory of a graph, this ends the lifetime that the graph left open
            require(State::instance().pooled.contains(address) || State::instance().of_graphs.contains(address));
            require(is_live(address) && State::instance().going.insert(address).second);
        }
        submit(stream, CU_GRAPH_NODE_TYPE_MEM_FREE, [=] { release(address); });
    });
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr* address, size_t bytes, CUmemoryPool pool, CUstream stream) {
    return entry([&] { allocate_in_order(address, bytes, pool, stream); });
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device) {
    return locked([&](State& state) {
        require(pool);
        require(device >= 0 && device < AddressSpace::kDevices, CUDA_ERROR_INVALID_DEVICE);
        *pool = &state.devices[device].pool;
    });
}

CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice device) {
    return locked([&](State& state) {
        require(pool);
        require(device >= 0 && device < AddressSpace::kDevices, CUDA_ERROR_INVALID_DEVICE);
        *pool = state.devices[device].current_pool;
    });
}

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
            if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH)
                found.most = found.used;
            else
                found.most_reserved = found.reserved();
        } else {
            // reuse policies have no effect here, since addresses are not reused
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
                number = found.reserved();
                break;
            case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
                number = found.used;
                break;
            case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
                number = found.most_reserved;
                break;
            case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
                number = found.most;
                break;
            default:
                require(attribute >= 1 && attribute <= 3);
                *static_cast<int*>(value) = 1;
        }
    });
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t kept) {
    return locked([&](State&) { known_pool(pool).trim(kept); });
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* access, size_t count) {
    return locked([&](State&) {
        Pool& found = known_pool(pool);
        require(access || count == 0);
        for (size_t i = 0; i < count; ++i) {
            const int device = access[i].location_id, flags = access[i].flags;
            require(access[i].location_type == CU_MEM_LOCATION_TYPE_DEVICE);
            require(device >= 0 && device < AddressSpace::kDevices, CUDA_ERROR_INVALID_DEVICE);
            require(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ||
                    (flags == CU_MEM_ACCESS_FLAGS_PROT_NONE && device != found.device));
            found.is_open_to[device] = flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
            if (device != found.device) space().set_open(true, found.device, device, found.is_open_to[device]);
        }
    });
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool pool, CUmemLocation* location) {
    return locked([&](State&) {
        require(flags && location && location->type == CU_MEM_LOCATION_TYPE_DEVICE);
        require(location->id >= 0 && location->id < AddressSpace::kDevices, CUDA_ERROR_INVALID_DEVICE);
        const Pool& found = known_pool(pool);
        *flags = found.device == location->id || found.is_open_to[location->id] ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                                                                                : CU_MEM_ACCESS_FLAGS_PROT_NONE;
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

// Waits for all work: copies may still access the memory.
CUresult cuMemFreeHost(void* memory) {
    return entry([&] {
        require_no_unsafe_capture();
        Tasks::instance().finish_all(nullptr);
        require(memory && space().release(reinterpret_cast<uint64_t>(memory), Kind::Pinned));
    });
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
        Tasks::instance().finish_all(nullptr);
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
                *static_cast<CUcontext*>(value) = state.of_contexts.contains(found->address)
                                                      ? state.of_contexts.at(found->address)
                                                      : state.devices[found->device].primary.get();
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
