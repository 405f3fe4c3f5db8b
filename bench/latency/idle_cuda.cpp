// A CUDA driver that does nothing: one device whose memory is the host's, whose copies copy, and whose kernels are
// never run. What a program takes on it is what the host needs. bench/idle_cuda.py builds it; functions that are not
// here answer that they are not supported (idle_cuda_rest.cpp).
#include <cstdlib>
#include <cstring>

#include "runtime/cuda/driver.h"

namespace {

using namespace weft::runtime::cuda;

constexpr CUresult kNotSupported = 801;
char handle[64];  // what all handles point at

template <typename Handle>
CUresult give(Handle* to) {
    *to = reinterpret_cast<Handle>(handle);
    return kSuccess;
}
thread_local CUcontext current = nullptr;

CUresult allocate(CUdeviceptr* to, size_t size) {
    void* const memory = std::aligned_alloc(256, (size + 255) / 256 * 256);
    *to = reinterpret_cast<CUdeviceptr>(memory);
    return memory ? kSuccess : kOutOfMemory;
}
CUresult release(CUdeviceptr memory) {
    std::free(reinterpret_cast<void*>(memory));
    return kSuccess;
}
template <typename Number>
CUresult fill(CUdeviceptr to, Number value, size_t count) {
    for (size_t i = 0; i < count; ++i) reinterpret_cast<Number*>(to)[i] = value;
    return kSuccess;
}

}  // namespace

extern "C" {

CUresult cuInit(unsigned int) { return kSuccess; }
CUresult cuDriverGetVersion(int* version) { return *version = 13000, kSuccess; }
CUresult cuGetErrorName(CUresult result, const char** name) {
    return *name = result == kNotSupported ? "CUDA_ERROR_NOT_SUPPORTED" : "an error", kSuccess;
}
CUresult cuGetErrorString(CUresult result, const char** text) {
    return *text = result == kNotSupported ? "the idle driver does not have this" : "", kSuccess;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) { return *device = ordinal, kSuccess; }
CUresult cuDeviceGetCount(int* count) { return *count = 1, kSuccess; }
CUresult cuDeviceGetName(char* name, int size, CUdevice) {
    std::strncpy(name, "idle", static_cast<size_t>(size));
    return kSuccess;
}
CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice) { return *uuid = {}, kSuccess; }
CUresult cuDeviceTotalMem_v2(size_t* size, CUdevice) { return *size = size_t{1} << 34, kSuccess; }
CUresult cuDeviceGetPCIBusId(char* id, int size, CUdevice) {
    std::strncpy(id, "0000:00:00.0", static_cast<size_t>(size));
    return kSuccess;
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute which, CUdevice) {
    switch (which) {
        case kMaxThreadsPerBlock:
            return *value = 1024, kSuccess;
        case kMaxSharedMemoryPerBlock:
        case kMaxSharedMemoryPerBlockOptin:
            return *value = 48 << 10, kSuccess;
        case kMultiprocessorCount:
            return *value = 132, kSuccess;
        case kComputeCapabilityMajor:
            return *value = 9, kSuccess;
        case kComputeCapabilityMinor:
            return *value = 0, kSuccess;
        case kUnifiedAddressing:
        case kMemoryPoolsSupported:
            return *value = 1, kSuccess;
        default:
            return *value = 0, kSuccess;
    }
}
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) { return give(context); }
CUresult cuCtxGetCurrent(CUcontext* context) { return *context = current, kSuccess; }
CUresult cuCtxPushCurrent_v2(CUcontext context) { return current = context, kSuccess; }
CUresult cuCtxPopCurrent_v2(CUcontext* context) { return *context = current, current = nullptr, kSuccess; }

CUresult cuModuleLoadDataEx(CUmodule* module, const void*, unsigned int, CUjit_option*, void**) { return give(module); }
CUresult cuModuleUnload(CUmodule) { return kSuccess; }
CUresult cuModuleGetFunction(CUfunction* function, CUmodule, const char*) { return give(function); }

CUresult cuMemGetInfo_v2(size_t* free, size_t* total) { return *free = *total = size_t{1} << 34, kSuccess; }
CUresult cuPointerGetAttribute(void* value, CUpointer_attribute, CUdeviceptr) {
    return *static_cast<int*>(value) = 0, kSuccess;
}
CUresult cuMemAlloc_v2(CUdeviceptr* memory, size_t size) { return allocate(memory, size); }
CUresult cuMemFree_v2(CUdeviceptr memory) { return release(memory); }
CUresult cuMemAllocAsync(CUdeviceptr* memory, size_t size, CUstream) { return allocate(memory, size); }
CUresult cuMemFreeAsync(CUdeviceptr memory, CUstream) { return release(memory); }
CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice) { return give(pool); }
CUresult cuMemPoolSetAttribute(CUmemoryPool, CUmemPool_attribute, void*) { return kSuccess; }
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t size, CUstream) {
    return std::memcpy(reinterpret_cast<void*>(to), from, size), kSuccess;
}
CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t size, CUstream) {
    return std::memcpy(to, reinterpret_cast<void*>(from), size), kSuccess;
}
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream) {
    return std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), size), kSuccess;
}
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream) { return fill(to, value, count); }
CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream) {
    return fill(to, value, count);
}
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t count, CUstream) { return fill(to, value, count); }

CUresult cuStreamCreate(CUstream* stream, unsigned int) { return give(stream); }
CUresult cuStreamDestroy_v2(CUstream) { return kSuccess; }
CUresult cuStreamSynchronize(CUstream) { return kSuccess; }
CUresult cuStreamWaitEvent(CUstream, CUevent, unsigned int) { return kSuccess; }
CUresult cuEventCreate(CUevent* event, unsigned int) { return give(event); }
CUresult cuEventDestroy_v2(CUevent) { return kSuccess; }
CUresult cuEventRecord(CUevent, CUstream) { return kSuccess; }
CUresult cuEventQuery(CUevent) { return kSuccess; }
CUresult cuEventSynchronize(CUevent) { return kSuccess; }
CUresult cuLaunchKernel(CUfunction, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int,
                        unsigned int, CUstream, void**, void**) {
    return kSuccess;
}
}
