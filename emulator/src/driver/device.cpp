// Devices and contexts.
#include <cstdio>
#include <cstring>

#include "driver/capture.h"
#include "driver/limits.h"
#include "driver/state.h"
#include "driver/task.h"

namespace weft::emulator {

namespace {

Device& device_of(CUdevice device) {
    require(device >= 0 && device < AddressSpace::kDevices, CUDA_ERROR_INVALID_DEVICE);
    return State::instance().devices[device];
}

Context* known_context(CUcontext context) {
    require(State::instance().contexts.contains(context), CUDA_ERROR_INVALID_CONTEXT);
    return context;
}

// Finishes the work in the streams of the primary context, before it is destroyed.
void finish_work_of(CUdevice device) {
    if (device < 0 || device >= AddressSpace::kDevices || !State::instance().is_usable()) return;
    const Context* context;
    {
        const std::lock_guard lock(State::instance().mutex);
        context = State::instance().devices[device].primary.get();
    }
    if (context) Tasks::instance().finish_all(context);
}

// Invalidates the handles of all objects in the context.
void destroy(State& state, Context& context) {
    Tasks::instance().drop(context);
    leave_capture(context.default_stream);
    leave_capture(context.thread_stream);
    for (const auto& [handle, stream] : context.streams) leave_capture(*stream);
    std::erase_if(state.executables, [&](const auto& one) { return one.second->context == &context; });
    std::erase_if(state.graphs, [&](const auto& one) { return one.second->context == &context; });
    context.orphans.clear();
    context.modules.clear();
    for (Context* other : state.contexts) other->peers.erase(&context);
    context.peers.clear();
    state.contexts.erase(&context);
    std::erase_if(state.of_contexts, [&](const auto& one) {
        if (one.second != &context) return false;
        AddressSpace::instance().release(one.first, Allocation::Kind::Device);
        return true;
    });
    bool last = true;
    for (const Context* other : state.contexts) last &= other->device != context.device;
    if (!last) return;
    Pool& pool = state.devices[context.device].pool;
    std::erase_if(state.pooled, [&](const auto& one) { return one.second.pool == &pool; });
    pool.used = pool.most = pool.most_reserved = 0;
    std::ranges::fill(pool.is_open_to, false);
    state.going.clear();
    AddressSpace::instance().release_all(context.device);
}

void drop_primary(State& state, Device& device) {
    if (!device.primary) return;
    destroy(state, *device.primary);
    device.primary.reset();
}

}  // namespace

extern "C" {

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
    return entry([&] {
        require(device);
        device_of(ordinal);
        *device = ordinal;
    });
}

CUresult cuDeviceGetCount(int* count) {
    return entry([&] {
        require(count);
        *count = AddressSpace::kDevices;
    });
}

CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
    return entry([&] {
        require(name && length > 0);
        device_of(device);
        std::snprintf(name, size_t(length), "Weft emulated device sm_%d", State::instance().architecture());
    });
}

CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
    return entry([&] {
        require(uuid);
        device_of(device);
        std::memcpy(uuid->bytes, "weft-emulated-0", 16);
        uuid->bytes[15] = char('0' + device);
    });
}

CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
    return entry([&] {
        require(bytes);
        device_of(device);
        *bytes = AddressSpace::instance().total();
    });
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
    return entry([&] {
        require(value);
        device_of(device);
        switch (attribute) {
#define WEFT_ATTRIBUTE(name, number, given) \
    case name:                              \
        *value = given;                     \
        break;
#include "driver/codes.def"
            default:
                fail(CUDA_ERROR_INVALID_VALUE);
        }
        const int architecture = State::instance().architecture();
        if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) *value = architecture / 10;
        if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR) *value = architecture % 10;
        if (attribute == CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID) *value = device;
        const ArchitectureLimits& limits = architecture_limits();
        if (attribute == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN) *value = limits.shared_of_block;
        if (attribute == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)
            *value = limits.shared_of_multiprocessor;
        if (attribute == CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR) *value = limits.threads;
        if (attribute == CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR) *value = limits.blocks;
    });
}

CUresult cuDeviceGetPCIBusId(char* text, int length, CUdevice device) {
    return entry([&] {
        require(text && length >= 13);
        device_of(device);
        std::snprintf(text, size_t(length), "0000:00:%02d.0", device);
    });
}

CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
    return entry([&] {
        require(can);
        device_of(device);
        device_of(peer);
        *can = device != peer;
    });
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
    return locked([&](State& state) {
        require(context);
        Device& owner = device_of(device);
        if (!owner.primary) {
            owner.primary = std::make_unique<Context>();
            owner.primary->device = device;
            owner.primary->primary = true;
            owner.primary->default_stream.context = owner.primary->thread_stream.context = owner.primary.get();
            state.contexts.insert(owner.primary.get());
        }
        ++owner.primary_uses;
        *context = owner.primary.get();
    });
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    finish_work_of(device);
    return locked([&](State& state) {
        Device& owner = device_of(device);
        require(owner.primary_uses > 0, CUDA_ERROR_INVALID_CONTEXT);
        if (--owner.primary_uses == 0) drop_primary(state, owner);
    });
}

// Destroys everything in the context, including a fault; its owners keep a valid context.
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
    finish_work_of(device);
    return locked([&](State& state) {
        Device& owner = device_of(device);
        if (!owner.primary) return;
        Context& context = *owner.primary;
        destroy(state, context);
        context.streams.clear();
        context.default_stream.last = context.thread_stream.last = nullptr;
        context.events.clear();
        context.peers.clear();
        context.failed = CUDA_SUCCESS;
        state.contexts.insert(&context);
    });
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int* flags, int* active) {
    return locked([&](State&) {
        require(flags && active);
        *flags = device_of(device).primary_flags;
        *active = device_of(device).primary != nullptr;
    });
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags) {
    return locked([&](State&) { device_of(device).primary_flags = flags; });
}

CUresult cuCtxCreate_v4(CUcontext* context, CUctxCreateParams* parameters, unsigned int flags, CUdevice device) {
    return locked([&](State& state) {
        require(context && flags <= 0x1f);
        require(!parameters, CUDA_ERROR_NOT_SUPPORTED);
        device_of(device);
        auto made = std::make_unique<Context>();
        made->device = device;
        made->flags = flags;
        made->default_stream.context = made->thread_stream.context = made.get();
        *context = made.get();
        state.contexts.insert(*context);
        state.stack().push_back(*context);
        state.made.push_back(std::move(made));
    });
}

// Primary contexts are released instead. The work in its streams is finished first.
CUresult cuCtxDestroy_v2(CUcontext context) {
    const CUresult result =
        locked([&](State&) { require(!known_context(context)->primary, CUDA_ERROR_INVALID_CONTEXT); });
    if (result != CUDA_SUCCESS) return result;
    Tasks::instance().finish_all(context);
    return locked([&](State& state) {
        destroy(state, *known_context(context));
        context->streams.clear();
        context->events.clear();
        if (state.current() == context) state.stack().pop_back();
    });
}

CUresult cuCtxGetCurrent(CUcontext* context) {
    return entry([&] {
        require(context);
        *context = State::instance().current();
    });
}

CUresult cuCtxSetCurrent(CUcontext context) {
    return locked([&](State& state) { state.make_current(context ? known_context(context) : nullptr); });
}

CUresult cuCtxPushCurrent_v2(CUcontext context) {
    return locked([&](State& state) { state.stack().push_back(known_context(context)); });
}

CUresult cuCtxPopCurrent_v2(CUcontext* context) {
    return locked([&](State& state) {
        require(!state.stack().empty(), CUDA_ERROR_INVALID_CONTEXT);
        if (context) *context = state.stack().back();
        state.stack().pop_back();
    });
}

CUresult cuCtxGetDevice(CUdevice* device) {
    return locked([&](State& state) {
        require(device);
        require(state.current() && state.contexts.contains(state.current()), CUDA_ERROR_INVALID_CONTEXT);
        *device = state.current()->device;
    });
}

CUresult cuCtxGetApiVersion(CUcontext context, unsigned int* version) {
    return locked([&](State&) {
        require(version);
        if (context) known_context(context);
        *version = State::instance().version();
    });
}

CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
    return locked([&](State&) {
        current_context();
        if (least) *least = 0;
        if (greatest) *greatest = -5;
    });
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags) {
    return locked([&](State&) {
        Context& context = current_context();
        known_context(peer);
        require(flags == 0);
        require(peer->device != context.device, CUDA_ERROR_INVALID_DEVICE);
        require(context.peers.insert(peer).second, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
        AddressSpace::instance().set_open(false, peer->device, context.device, true);
    });
}

CUresult cuCtxDisablePeerAccess(CUcontext peer) {
    return locked([&](State&) {
        Context& context = current_context();
        require(context.peers.erase(known_context(peer)), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
        AddressSpace::instance().set_open(false, peer->device, context.device, false);
    });
}

}  // extern "C"

}  // namespace weft::emulator
