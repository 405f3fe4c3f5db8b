#include "runtime/cuda/context.h"

#include <cstdio>

#include "runtime/cuda_devices.h"
#include "support/error.h"

namespace weft::runtime {

using namespace cuda;

namespace {

int attribute(Attribute which, int ordinal) {
    int value = 0;
    check(driver().cuDeviceGetAttribute(&value, which, ordinal), "cuDeviceGetAttribute",
          "cuda:" + std::to_string(ordinal));
    return value;
}

std::string name_of(int ordinal) {
    char name[256] = "";
    check(driver().cuDeviceGetName(name, sizeof name, ordinal), "cuDeviceGetName", "cuda:" + std::to_string(ordinal));
    return name;
}

GpuProperties properties_of(int ordinal) {
    GpuProperties made;
    made.arch = 10 * attribute(kComputeCapabilityMajor, ordinal) + attribute(kComputeCapabilityMinor, ordinal);
    made.sm_count = attribute(kMultiprocessorCount, ordinal);
    made.threads_at_once = std::int64_t{made.sm_count} * attribute(kThreadsOfMultiprocessor, ordinal);
    made.max_shared_memory_per_block = attribute(kMaxSharedMemoryPerBlockOptin, ordinal);
    made.max_threads_per_block = attribute(kMaxThreadsPerBlock, ordinal);
    made.is_uva = attribute(kUnifiedAddressing, ordinal) != 0;
    made.has_pools = driver().cuMemAllocAsync && driver().cuMemFreeAsync && driver().cuDeviceGetDefaultMemPool &&
                     driver().cuMemPoolSetAttribute && driver().cuMemPoolGetAttribute && driver().cuMemPoolTrimTo &&
                     driver().cuMemPoolSetAccess && driver().cuMemPoolGetAccess &&
                     attribute(kMemoryPoolsSupported, ordinal) != 0;
    made.has_conditions = driver().has_conditions();
    made.is_emulated = driver().is_emulated();
    CUuuid uuid;
    check(driver().cuDeviceGetUuid_v2(&uuid, ordinal), "cuDeviceGetUuid", "cuda:" + std::to_string(ordinal));
    made.uuid = "GPU-";
    for (int i = 0; i < 16; ++i) {
        char digits[8];
        const bool begins_group = i == 4 || i == 6 || i == 8 || i == 10;
        std::snprintf(digits, sizeof digits, begins_group ? "-%02x" : "%02x",
                      static_cast<unsigned char>(uuid.bytes[i]));
        made.uuid += digits;
    }
    char bus[64] = "";
    check(driver().cuDeviceGetPCIBusId(bus, sizeof bus, ordinal), "cuDeviceGetPCIBusId",
          "cuda:" + std::to_string(ordinal));
    made.pci_bus_id = bus;
    return made;
}

std::atomic<bool> is_used = false;

}  // namespace

bool has_used_cuda() { return is_used; }

CudaContext::CudaContext(std::string alias, int ordinal, bool is_primary)
    : Device(std::move(alias), name_of(ordinal), /*is_cpu=*/false, ordinal, /*is_host_memory=*/false),
      properties_(properties_of(ordinal)),
      target_(cuda_target(properties_.arch)) {
    properties_.is_primary = is_primary;
}

CUcontext CudaContext::context() {
    if (!is_open()) open();
    return context_.load(std::memory_order_acquire);
}

void CudaContext::set_context(CUcontext context) {
    if (context != nullptr) is_used = true;
    context_.store(context, std::memory_order_release);
}

void CudaContext::open() {
    if (!is_primary()) throw UsageError("device", "'" + alias + "' is no device any more: its context was unmapped");
    const std::lock_guard lock(opening_);
    if (is_open()) return;
    CUcontext made = nullptr;
    check(driver().cuDevicePrimaryCtxRetain(&made, ordinal), "cuDevicePrimaryCtxRetain");
    begin_pool();
    set_context(made);
}

CUresult CudaContext::Inside::enter(CUcontext wanted, bool stays) {
    CUcontext current = nullptr;
    CUresult result = driver().cuCtxGetCurrent(&current);
    if (result == kSuccess && current == nullptr && stays) {
        result = driver().cuCtxSetCurrent(wanted);
    } else if (result == kSuccess && current != wanted) {
        result = driver().cuCtxPushCurrent_v2(wanted);
        is_pushed_ = result == kSuccess;
    }
    is_inside_ = result == kSuccess;
    return result;
}

CudaContext::Inside::Inside(CudaContext& device) {
    device.check(enter(device.context(), device.stays_current()), "cuCtxPushCurrent");
}

CudaContext::Inside::Inside(CudaContext& device, std::nothrow_t) noexcept {
    if (!device.is_open()) return;
    const CUcontext wanted = device.context_.load(std::memory_order_acquire);
    if (enter(wanted, device.stays_current()) != kSuccess) enter(wanted, device.stays_current());
}

CudaContext::Inside::~Inside() {
    CUcontext popped = nullptr;
    if (is_pushed_ && driver().cuCtxPopCurrent_v2(&popped) != kSuccess) driver().cuCtxPopCurrent_v2(&popped);
}

}  // namespace weft::runtime
