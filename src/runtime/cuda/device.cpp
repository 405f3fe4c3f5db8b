#include "runtime/cuda/device.h"

#include <cstdio>
#include <vector>

#include "runtime/cuda/capture.h"
#include "runtime/cuda/primitives/primitives.h"
#include "runtime/cuda/timing.h"
#include "runtime/out_of_memory.h"
#include "runtime/pinned.h"
#include "runtime/waiting.h"
#include "support/error.h"

namespace weft::runtime {

using namespace cuda;

namespace {

CUdeviceptr device_address(const void* data) { return reinterpret_cast<CUdeviceptr>(data); }
std::size_t count(std::int64_t size_bytes) { return static_cast<std::size_t>(size_bytes); }

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

CudaProperties properties_of(int ordinal) {
    CudaProperties made;
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
    made.has_conditions = has_conditions();
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

// ---- the device ----

CudaDevice::CudaDevice(int ordinal)
    : Device("cuda:" + std::to_string(ordinal), name_of(ordinal), /*is_cpu=*/false, ordinal, /*is_host_memory=*/false),
      properties_(properties_of(ordinal)),
      target_(cuda_target(properties_.arch)) {
    default_stream_ = new CudaStream(*this);
}

CudaDevice::CudaDevice(std::string alias, int ordinal, CUcontext context)
    : Device(std::move(alias), name_of(ordinal), /*is_cpu=*/false, ordinal, /*is_host_memory=*/false),
      properties_(properties_of(ordinal)),
      target_(cuda_target(properties_.arch)) {
    properties_.is_primary = false;
    default_stream_ = new CudaStream(*this);
    if (!gpus()[static_cast<std::size_t>(ordinal)]->is_open()) begin_pool();
    pool_.begin();
    is_used = true;
    context_.store(context, std::memory_order_release);
}

void CudaDevice::close(const char* api) {
    if (const std::int64_t count = allocations_; count > 0)
        throw UsageError(api, std::to_string(count) + " allocations of '" + alias +
                                  "' are in use. help: delete its arrays and graphs first");
    context_.store(nullptr, std::memory_order_release);
}

CUcontext CudaDevice::context() {
    if (!is_open()) open();
    return context_.load(std::memory_order_acquire);
}

// The device's pool keeps freed memory for reuse.
void CudaDevice::begin_pool() {
    pool_.begin();
    if (!properties_.has_pools) return;
    CUmemoryPool pool = nullptr;
    check(driver().cuDeviceGetDefaultMemPool(&pool, ordinal), "cuDeviceGetDefaultMemPool");
    unsigned long long threshold = ~0ull;
    check(driver().cuMemPoolSetAttribute(pool, kReleaseThreshold, &threshold), "cuMemPoolSetAttribute");
}

void CudaDevice::open() {
    if (!is_primary()) throw UsageError("device", "'" + alias + "' is no device any more: its context was unmapped");
    const std::lock_guard lock(mutex_);
    if (is_open()) return;
    CUcontext made = nullptr;
    check(driver().cuDevicePrimaryCtxRetain(&made, ordinal), "cuDevicePrimaryCtxRetain");
    begin_pool();
    is_used = true;
    context_.store(made, std::memory_order_release);
}

CUresult CudaDevice::Inside::enter(CUcontext wanted) {
    CUcontext current = nullptr;
    CUresult result = driver().cuCtxGetCurrent(&current);
    if (result == kSuccess && current != wanted) {
        result = driver().cuCtxPushCurrent_v2(wanted);
        is_pushed_ = result == kSuccess;
    }
    is_inside_ = result == kSuccess;
    return result;
}

CudaDevice::Inside::Inside(CudaDevice& device) { device.check(enter(device.context()), "cuCtxPushCurrent"); }

CudaDevice::Inside::Inside(CudaDevice& device, std::nothrow_t) noexcept {
    if (!device.is_open()) return;
    const CUcontext wanted = device.context_.load(std::memory_order_acquire);
    if (enter(wanted) != kSuccess) enter(wanted);
}

CudaDevice::Inside::~Inside() {
    CUcontext popped = nullptr;
    if (is_pushed_ && driver().cuCtxPopCurrent_v2(&popped) != kSuccess) driver().cuCtxPopCurrent_v2(&popped);
}

// ---- streams ----

void CudaDevice::synchronize() {
    {
        const std::lock_guard lock(mutex_);
        std::erase_if(streams_, [](const std::weak_ptr<Stream>& stream) { return stream.expired(); });
    }
    for_each_stream([](Stream& stream) { stream.synchronize(); });
    free_late_memory();
}

std::shared_ptr<Stream> CudaDevice::make_stream(int priority) {
    const std::shared_ptr<CudaStream> made(new CudaStream(*this, priority), &Recording::let_go);
    made->own_handle();
    const std::lock_guard lock(mutex_);
    streams_.push_back(made);
    return made;
}

std::shared_ptr<Stream> CudaDevice::adopt_stream(CUstream foreign) {
    std::vector<std::shared_ptr<Stream>> kept;  // keeps the streams alive until the lock is released
    std::shared_ptr<CudaStream> owner;
    const std::lock_guard lock(mutex_);
    for (const std::weak_ptr<Stream>& each : streams_) {
        kept.push_back(each.lock());
        if (auto there = std::static_pointer_cast<CudaStream>(kept.back()); there && there->lends(foreign))
            owner = there;
    }
    std::shared_ptr<CudaStream> made(new CudaStream(*this, foreign, std::move(owner)), &Recording::let_go);
    streams_.push_back(made);
    return made;
}

std::shared_ptr<Event> CudaDevice::make_event(bool has_time) { return std::make_shared<CudaEvent>(*this, has_time); }

// ---- memory ----

// Atomics of 16 bits access whole 32-bit words, so the last word is allocated and initialized completely.
void* CudaDevice::allocate(std::int64_t size_bytes, bool zeroed, Stream& stream) {
    const Inside inside(*this);
    if (CudaRecording* const recording = cuda_recording(stream)) {
        void* const data = recording->allocate(size_bytes, zeroed, stream);
        if (data && zeroed) {  // the graph clears it at each launch
            clear_or_free(data, size_bytes, stream);
            recording->describe("fill", {data},
                                [this, data, size_bytes](Stream& again) { clear(data, size_bytes, again); });
        }
        return data;
    }
    const std::int64_t asked = size_bytes;
    size_bytes = (size_bytes + 3) / 4 * 4;
    void* const data = take(size_bytes, stream);
    if (data == nullptr) return nullptr;
    if (size_bytes > asked && driver().note_asked) driver().note_asked(device_address(data), count(asked));
    if (zeroed || size_bytes > asked) clear_or_free(data, size_bytes, stream, zeroed ? 0 : size_bytes - 4);
    return data;
}

void CudaDevice::clear_or_free(void* data, std::int64_t size_bytes, Stream& stream, std::int64_t from) {
    try {
        put_clear(static_cast<std::byte*>(data) + from, size_bytes - from, stream);
    } catch (...) {
        free(data, size_bytes, stream);
        throw;
    }
}

void* CudaDevice::require_memory(std::int64_t size_bytes, bool zeroed, Stream& stream) {
    return take_memory(*this, size_bytes, zeroed, stream, "launch()");
}

// A failure here follows one in an earlier call, which reported it. At the end of the process the driver may be gone.
void CudaDevice::free(void* data, std::int64_t size_bytes, Stream& stream) {
    const Inside inside(*this, std::nothrow);
    if (!inside.is_inside()) return;
    CudaRecording* const recording = cuda_recording(stream);
    if (recording && recording->take_back(data, size_bytes, stream)) return;
    const WithoutRecording without;  // the memory existed before the capture
    give_back(data, stream);
}

void CudaDevice::put_clear(void* data, std::int64_t size_bytes, Stream& stream) {
    const Inside inside(*this);
    const TimedWork timed(static_cast<CudaStream&>(stream), kTimedFill, "memset");
    check(
        driver().cuMemsetD8Async(device_address(data), 0, count(size_bytes), static_cast<CudaStream&>(stream).handle()),
        "cuMemsetD8Async");
}

void CudaDevice::copy_line(void* to, const void* from, std::int64_t size_bytes, Stream& stream) {
    const Inside inside(*this);
    const TimedWork timed(static_cast<CudaStream&>(stream), kTimedCopy, "memcpy DtoD");
    check(driver().cuMemcpyDtoDAsync_v2(device_address(to), device_address(from), count(size_bytes),
                                        static_cast<CudaStream&>(stream).handle()),
          "cuMemcpyDtoDAsync");
}

void CudaDevice::to_host(void* to, const void* from, std::int64_t size_bytes, Stream& stream) {
    if (stream.recording())
        throw UsageError("copy()",
                         "a graph is being captured, and its launches have not run: nothing can be copied "
                         "from '" +
                             alias + "' to the host. help: copy after wp.capture_launch()");
    auto& queue = static_cast<CudaStream&>(stream);
    queue.wait();
    // No interrupt before the bytes have arrived: the caller's memory might be freed.
    const Uninterrupted uninterrupted;
    const Inside inside(*this);
    {
        const TimedWork timed(queue, kTimedCopy, "memcpy DtoH");
        check(driver().cuMemcpyDtoHAsync_v2(to, device_address(from), count(size_bytes), queue.handle()),
              "cuMemcpyDtoHAsync");
    }
    queue.wait();
}

void CudaDevice::put_to_host(void* to, const void* from, std::int64_t size_bytes, Stream& stream) {
    const Inside inside(*this);
    const TimedWork timed(static_cast<CudaStream&>(stream), kTimedCopy, "memcpy DtoH");
    check(driver().cuMemcpyDtoHAsync_v2(to, device_address(from), count(size_bytes),
                                        static_cast<CudaStream&>(stream).handle()),
          "cuMemcpyDtoHAsync");
}

// For memory that is not pinned, the driver has made a copy when the call returns.
void CudaDevice::from_host(void* to, const void* from, std::int64_t size_bytes, Stream& stream) {
    const Inside inside(*this);
    CudaRecording* const recording = cuda_recording(stream);
    if (recording && !is_pinned(reinterpret_cast<std::uintptr_t>(from)))
        return copy_line(to, recording->keep_bytes(from, size_bytes), size_bytes, stream);
    const TimedWork timed(static_cast<CudaStream&>(stream), kTimedCopy, "memcpy HtoD");
    check(driver().cuMemcpyHtoDAsync_v2(device_address(to), from, count(size_bytes),
                                        static_cast<CudaStream&>(stream).handle()),
          "cuMemcpyHtoDAsync");
}

void CudaDevice::wait(Stream& stream) { static_cast<CudaStream&>(stream).wait(); }

void CudaDevice::load(void* to, const void* from, std::int64_t size_bytes) {
    const WithoutRecording without;
    default_stream().synchronize();
    to_host(to, from, size_bytes, default_stream());
}

void CudaDevice::store(void* to, const void* from, std::int64_t size_bytes) {
    const WithoutRecording without;
    from_host(to, from, size_bytes, default_stream());
    default_stream().synchronize();
}

std::int64_t CudaDevice::total_memory() const {
    std::size_t total = 0;
    check(driver().cuDeviceTotalMem_v2(&total, ordinal), "cuDeviceTotalMem");
    return static_cast<std::int64_t>(total);
}

std::int64_t CudaDevice::free_memory() const {
    const Inside inside(const_cast<CudaDevice&>(*this));  // may open the device
    std::size_t free_bytes = 0, total = 0;
    check(driver().cuMemGetInfo_v2(&free_bytes, &total), "cuMemGetInfo");
    return static_cast<std::int64_t>(free_bytes);
}

Primitives& CudaDevice::primitives() {
    static CudaPrimitives primitives;
    return primitives;
}

// ---- all devices ----

std::span<CudaDevice* const> gpus() {
    static const std::vector<CudaDevice*>* const all = [] {
        auto* const made = new std::vector<CudaDevice*>;
        const Driver* const driver = find_driver();
        for (int ordinal = 0; driver && ordinal < driver->devices; ++ordinal) made->push_back(new CudaDevice(ordinal));
        return made;
    }();
    return *all;
}

bool has_used_cuda() { return is_used; }

}  // namespace weft::runtime
