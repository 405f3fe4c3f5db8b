// The memory of CUDA devices: pools, the driver's plain allocations, pinned memory of the host, and access of devices
// to each other's memory.
#include "runtime/allocator.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "runtime/array.h"
#include "runtime/cuda/capture.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/timing.h"
#include "runtime/cuda_devices.h"
#include "runtime/foreign_memory.h"
#include "runtime/ipc.h"
#include "runtime/pinned.h"
#include "runtime/waiting.h"
#include "support/error.h"

namespace weft::runtime {

using namespace cuda;

namespace {

std::atomic<bool> pools_at_init = true;

CUdeviceptr address_of(const void* data) { return reinterpret_cast<CUdeviceptr>(data); }

CudaDevice& as_cuda(Device& device) { return static_cast<CudaDevice&>(device); }

}  // namespace

void set_pools_at_init(bool are_enabled) { pools_at_init = are_enabled; }

int cuda_driver_version() { return find_driver() ? find_driver()->version : 0; }

// ---- the pool ----

bool CudaPool::is_supported() const { return device_.gpu()->has_pools; }

bool CudaPool::is_enabled() const {
    const Use use = use_;
    return is_supported() && (use == Use::undecided ? pools_at_init.load() : use == Use::on);
}

void CudaPool::begin() {
    Use undecided = Use::undecided;
    use_.compare_exchange_strong(undecided, is_enabled() ? Use::on : Use::off);
}

void CudaPool::set_enabled(bool is_enabled) {
    if (is_enabled) handle("set_mempool_enabled()");
    use_ = is_enabled ? Use::on : Use::off;
}

CUmemoryPool CudaPool::handle(const char* api) {
    if (!is_supported())
        throw UsageError(api, "'" + device_.alias +
                                  "' has no memory pools: its driver gives and takes memory one allocation at a time. "
                                  "help: ask wp.is_mempool_supported() first");
    device_.context();  // the release threshold is set when the device is opened
    CUmemoryPool pool = nullptr;
    device_.check(driver().cuDeviceGetDefaultMemPool(&pool, device_.ordinal), "cuDeviceGetDefaultMemPool");
    return pool;
}

std::uint64_t CudaPool::number(CUmemPool_attribute attribute, const char* api) {
    unsigned long long value = 0;
    device_.check(driver().cuMemPoolGetAttribute(handle(api), attribute, &value), "cuMemPoolGetAttribute");
    return value;
}

std::uint64_t CudaPool::release_threshold() { return number(kReleaseThreshold, "get_mempool_release_threshold()"); }
std::uint64_t CudaPool::used() { return number(kUsedMemory, "get_mempool_used_mem_current()"); }
std::uint64_t CudaPool::most_used() { return number(kMostUsedMemory, "get_mempool_used_mem_high()"); }

void CudaPool::set_release_threshold(std::uint64_t bytes) {
    unsigned long long value = bytes;
    const CUmemoryPool pool = handle("set_mempool_release_threshold()");
    device_.check(driver().cuMemPoolSetAttribute(pool, kReleaseThreshold, &value), "cuMemPoolSetAttribute");
}

void CudaPool::trim() {
    if (!is_supported()) return;
    device_.check(driver().cuMemPoolTrimTo(handle("array memory"), 0), "cuMemPoolTrimTo");
}

// ---- memory of a device ----

void* CudaDevice::take(std::int64_t size_bytes, Stream& stream) {
    CUdeviceptr made = 0;
    const auto bytes = static_cast<std::size_t>(size_bytes);
    const bool is_pooled = pool_.is_enabled();
    const CUresult result = [&] {
        if (!is_pooled) return driver().cuMemAlloc_v2(&made, bytes);
        const RelaxedCapture relaxed;  // the call waits for nothing
        return driver().cuMemAllocAsync(&made, bytes, static_cast<CudaStream&>(stream).handle());
    }();
    if (result == kOutOfMemory) return nullptr;
    check(result, is_pooled ? "cuMemAllocAsync" : "cuMemAlloc");
    void* const data = reinterpret_cast<void*>(made);
    ++allocations_;
    if (!is_pooled && properties_.has_pools) {
        const std::lock_guard lock(plain_mutex_);
        plain_.insert(data);
        has_plain_ = true;
    }
    return data;
}

bool CudaDevice::is_pooled(const void* data) const {
    if (!properties_.has_pools) return false;
    if (!has_plain_) return true;
    const std::lock_guard lock(plain_mutex_);
    return !plain_.contains(data);
}

// Forgets plain memory; returns whether it was plain.
bool CudaDevice::forget_plain(void* data) {
    if (!properties_.has_pools) return true;
    if (!has_plain_) return false;
    const std::lock_guard lock(plain_mutex_);
    return plain_.erase(data) > 0;
}

namespace {

// Points in the streams of a device behind the work that they have now; none while one of them is being captured, which
// work in other streams may disturb.
class PresentWork {
public:
    PresentWork() = default;
    explicit PresentWork(CudaDevice& device) {
        const CudaDevice::Inside inside(device, std::nothrow);
        if (!inside.is_inside()) return;
        const RelaxedCapture relaxed;
        bool is_captured = false;
        device.for_each_stream([&](Stream& stream) { is_captured |= stream.is_recorded(); });
        if (is_captured) return;
        device.for_each_stream([&](Stream& stream) {
            const CudaStream::Handle handle = static_cast<CudaStream&>(stream).handle_outside_if_made();
            CUevent event = nullptr;
            if (!handle || driver().cuEventCreate(&event, kNoTiming) != kSuccess) return;
            events_.push_back(event);
            driver().cuEventRecord(event, handle);  // if that fails, no work runs there any more
        });
    }
    PresentWork(PresentWork&&) = default;
    PresentWork& operator=(PresentWork&&) = default;

    bool is_known() const { return !events_.empty(); }
    bool is_done() const {
        return std::ranges::all_of(events_, [](CUevent event) { return driver().cuEventQuery(event) != kNotReady; });
    }
    // To be called at the end. Precondition: the device's context is current.
    void forget() const {
        for (const CUevent event : events_) destroy_quietly(driver().cuEventDestroy_v2, event);
    }

private:
    std::vector<CUevent> events_;
};

// Memory that the driver frees only when the work of a device is done; of all devices if `device` is null. While there
// is work, the memory waits here, and a later call frees it: if it finds the device without work, or all work done that
// was there when the memory came. Waiting for the work instead would block the program's other threads and Ctrl-C.
class LateFrees {
public:
    static void add(CudaDevice* device, std::function<void()> free) {
        PresentWork work;
        if (device && device->is_open() && !is_idle(*device)) work = PresentWork(*device);
        {
            const std::lock_guard lock(mutex());
            all().push_back({device, std::move(free), std::move(work)});
        }
        free_if_idle();
    }
    static void free_if_idle() {
        {
            const std::lock_guard lock(mutex());
            if (all().empty()) return;
        }
        // A capture in global mode would forbid this to all threads; but no capture uses memory that is freed here.
        const RelaxedCapture relaxed;
        std::vector<const CudaDevice*> busy;
        for (Device* device : cuda_devices())
            if (!is_idle(as_cuda(*device))) busy.push_back(&as_cuda(*device));
        std::vector<Late> idle;
        {
            const std::lock_guard lock(mutex());
            std::vector<const CudaDevice*> waiting;  // later memory of theirs has later work
            std::erase_if(all(), [&](Late& late) {
                const bool is_busy = late.device ? std::ranges::count(busy, late.device) > 0 : !busy.empty();
                if (is_busy && (std::ranges::count(waiting, late.device) > 0 || !is_done(late))) {
                    if (std::ranges::count(waiting, late.device) == 0) waiting.push_back(late.device);
                    return false;
                }
                idle.push_back(std::move(late));
                return true;
            });
        }
        for (const Late& late : idle) {
            if (late.work.is_known()) {
                const CudaDevice::Inside inside(*late.device, std::nothrow);
                if (inside.is_inside()) late.work.forget();
            }
            late.free();
        }
    }

private:
    struct Late {
        CudaDevice* device;
        std::function<void()> free;
        PresentWork work;
    };
    static bool is_done(const Late& late) {
        if (!late.work.is_known()) return false;
        const CudaDevice::Inside inside(*late.device, std::nothrow);
        return inside.is_inside() && late.work.is_done();
    }
    static bool is_idle(CudaDevice& device) {
        bool is_idle = true;
        if (!device.is_open()) return true;
        device.for_each_stream([&](Stream& stream) {
            if (is_idle && !stream.is_recorded()) is_idle = is_complete(stream);
        });
        return is_idle;
    }
    static bool is_complete(Stream& stream) {
        try {
            return stream.is_complete();
        } catch (const Error&) {
            return true;  // no work runs there any more; the next wait reports the error
        }
    }
    // Never destroyed: threads may come here while the program ends.
    static std::mutex& mutex() {
        static auto* const one = new std::mutex;
        return *one;
    }
    static std::vector<Late>& all() {
        static auto* const one = new std::vector<Late>;
        return *one;
    }
};

}  // namespace

void free_late_memory() { LateFrees::free_if_idle(); }
void free_when_idle(CudaDevice& device, std::function<void()> free) { LateFrees::add(&device, std::move(free)); }

// It knows nothing of streams: it gets memory back when the device's work is done.
BufferPtr CudaDevice::take_from(std::shared_ptr<ProgramAllocator> allocator, std::int64_t size_bytes, bool zeroed) {
    context();
    void* data = nullptr;
    {
        const Inside inside(*this);
        data = allocator->allocate(size_bytes);
    }
    auto buffer = std::make_shared<Buffer>();
    buffer->data = data;
    buffer->size_bytes = size_bytes;
    buffer->device = this;
    buffer->kind = allocator->memory_kind();
    if (properties_.has_pools) {
        const std::lock_guard lock(plain_mutex_);
        plain_.insert(data);
        has_plain_ = true;
    }
    buffer->release = [this, data, size_bytes, allocator = std::move(allocator)] {
        forget_plain(data);
        LateFrees::add(this, [this, data, size_bytes, allocator] {
            const Inside inside(*this, std::nothrow);
            allocator->deallocate(data, size_bytes);
        });
    };
    if (zeroed) clear(data, size_bytes, current_stream(*this));
    return buffer;
}

namespace {

struct OwnAllocators {
    std::mutex mutex;
    std::map<Device*, std::shared_ptr<ProgramAllocator>> by_device;
};

OwnAllocators& own_allocators() {
    static auto* const one = new OwnAllocators;
    return *one;
}

}  // namespace

void set_allocator(Device& device, std::shared_ptr<ProgramAllocator> allocator) {
    std::shared_ptr<ProgramAllocator> former;  // its last owner lets go after the lock is given back
    const std::lock_guard lock(own_allocators().mutex);
    former = std::exchange(own_allocators().by_device[&device], std::move(allocator));
    if (!own_allocators().by_device[&device]) own_allocators().by_device.erase(&device);
    has_allocators = !own_allocators().by_device.empty();
}

std::shared_ptr<ProgramAllocator> allocator_of(Device& device) {
    if (!has_allocators.load(std::memory_order_relaxed)) return nullptr;
    const std::lock_guard lock(own_allocators().mutex);
    const auto found = own_allocators().by_device.find(&device);
    return found == own_allocators().by_device.end() ? nullptr : found->second;
}

BufferPtr find_buffer_of_program(std::int64_t size_bytes, bool zeroed, Device& device) {
    std::shared_ptr<ProgramAllocator> allocator = allocator_of(device);
    return allocator ? as_cuda(device).take_from(std::move(allocator), size_bytes, zeroed) : nullptr;
}

std::uintptr_t allocate_managed(std::int64_t size_bytes) {
    if (!find_driver() || !driver().cuMemAllocManaged)
        throw UsageError("CudaManagedAllocator.allocate()", "there is no CUDA driver with managed memory");
    CUdeviceptr made = 0;
    cuda::check(driver().cuMemAllocManaged(&made, static_cast<std::size_t>(size_bytes), kManagedForAll),
                "cuMemAllocManaged", "the current CUDA context");
    return made;
}

void free_managed(std::uintptr_t address) {
    cuda::check(driver().cuMemFree_v2(address), "cuMemFree", "the current CUDA context");
}

void set_profiling(Device& device, bool is_on) {
    CudaDevice& gpu = as_cuda(device);
    gpu.context();
    const CudaDevice::Inside inside(gpu);
    const auto call = is_on ? driver().cuProfilerStart : driver().cuProfilerStop;
    const char* const name = is_on ? "cuProfilerStart" : "cuProfilerStop";
    if (!call)
        throw UsageError(is_on ? "cuda_profiler_start()" : "cuda_profiler_stop()",
                         std::string("the CUDA driver has no ") + name);
    gpu.check(call(), name);
}

// If freeing in the stream's order fails, the memory is freed by a synchronous call later.
void CudaDevice::give_back(void* data, Stream& stream) {
    auto& queue = static_cast<CudaStream&>(stream);
    --allocations_;
    const bool is_pooled = !forget_plain(data);
    const RelaxedCapture relaxed;
    if (is_pooled && driver().cuMemFreeAsync(address_of(data), queue.handle()) == kSuccess) return;
    LateFrees::add(this, [this, data] {
        const Inside inside(*this, std::nothrow);
        if (inside.is_inside()) destroy_quietly(driver().cuMemFree_v2, address_of(data));
    });
}

void CudaDevice::for_each_stream(const std::function<void(Stream&)>& visit) {
    std::vector<std::shared_ptr<Stream>> others;
    {
        const std::lock_guard lock(mutex_);
        for (const std::weak_ptr<Stream>& stream : streams_)
            if (std::shared_ptr<Stream> there = stream.lock()) others.push_back(std::move(there));
    }
    visit(default_stream());
    for (const std::shared_ptr<Stream>& stream : others) visit(*stream);
}

// A stream that is being captured cannot be waited for. The memory that streams keep for reports is freed in their
// order, and that has to be done before the pool is trimmed.
void CudaDevice::make_room() {
    if (!is_open()) return;
    {
        const Uninterrupted uninterrupted;
        for_each_stream([](Stream& stream) {
            if (stream.is_recorded()) return;
            auto& queue = static_cast<CudaStream&>(stream);
            queue.wait();
            queue.reports().free_kept();
            queue.wait();
        });
    }
    LateFrees::free_if_idle();
    const Inside inside(*this);
    pool_.trim();
}

// The other device's stream waits for the copy, so its memory may then be freed or written.
bool CudaDevice::copy_from(void* to, Device& other, const void* from, std::int64_t size_bytes, Stream& stream) {
    if (other.gpu() == nullptr) return false;
    CudaDevice& owner = as_cuda(other);
    Stream& theirs = current_stream(owner);
    const bool is_ordered = !stream.is_recorded() && !theirs.is_recorded();
    if (is_ordered) {
        const std::shared_ptr<Event> ready = owner.make_event();
        ready->record(theirs);
        ready->make_wait(stream);
    } else if (!theirs.is_recorded()) {
        // A graph waits for no other device, so that device's work has to be done before the graph can be launched.
        static_cast<CudaStream&>(theirs).wait();
    }
    {
        const CUcontext here = context(), there = owner.context();
        const Inside inside(*this);
        const TimedWork timed(static_cast<CudaStream&>(stream), kTimedCopy, "memcpy PtoP");
        check(
            driver().cuMemcpyPeerAsync(address_of(to), here, address_of(from), there,
                                       static_cast<std::size_t>(size_bytes), static_cast<CudaStream&>(stream).handle()),
            "cuMemcpyPeerAsync");
    }
    if (CudaRecording* const recording = cuda_recording(stream))
        recording->describe("copy", {to, from}, [this, to, &other, from, size_bytes](Stream& again) {
            copy_from(to, other, from, size_bytes, again);
        });
    if (!is_ordered) return true;
    try {
        const std::shared_ptr<Event> copied = make_event();
        copied->record(stream);
        copied->make_wait(theirs);
    } catch (...) {
        // The other device's memory may be freed at once.
        const Inside inside(*this, std::nothrow);
        const RelaxedCapture relaxed;
        driver().cuStreamSynchronize(static_cast<CudaStream&>(stream).handle());
        throw;
    }
    return true;
}

// Memory of other libraries is not pooled.
bool is_pooled(const Array& array) {
    return array.device->gpu() != nullptr && array.buffer && array.buffer->data && !array.buffer->release &&
           as_cuda(*array.device).is_pooled(array.buffer->data);
}

// ---- access between devices ----

namespace {

bool can_reach(CudaDevice& owner, CudaDevice& peer) {
    int can = 0;
    peer.check(driver().cuDeviceCanAccessPeer(&can, peer.ordinal, owner.ordinal), "cuDeviceCanAccessPeer");
    return can != 0;
}

// Another library may have enabled access. The driver only tells by refusing to enable it again.
bool is_plain_open(CudaDevice& owner, CudaDevice& peer) {
    const CUcontext target = owner.context();
    const CudaDevice::Inside inside(peer);
    const CUresult result = driver().cuCtxEnablePeerAccess(target, 0);
    if (result == kPeerAccessAlreadyEnabled) return true;
    peer.check(result, "cuCtxEnablePeerAccess");
    const CUresult undone = driver().cuCtxDisablePeerAccess(target);
    if (undone != kSuccess) driver().cuCtxDisablePeerAccess(target);
    peer.check(undone, "cuCtxDisablePeerAccess");
    return false;
}

bool is_pool_open(CudaDevice& owner, CudaDevice& peer) {
    CUmemAccess_flags flags = kNoAccess;
    CUmemLocation location{kLocationIsDevice, peer.ordinal};
    const CUmemoryPool pool = owner.pool()->handle("is_mempool_access_enabled()");
    owner.check(driver().cuMemPoolGetAccess(&flags, pool, &location), "cuMemPoolGetAccess");
    return flags == kReadAndWrite;
}

// The peer's work with the memory is done before access is disabled.
void set_plain_open(CudaDevice& owner, CudaDevice& peer, bool is_open) {
    const CUcontext target = owner.context();
    if (!is_open) peer.synchronize();
    const CudaDevice::Inside inside(peer);
    const CUresult result =
        is_open ? driver().cuCtxEnablePeerAccess(target, 0) : driver().cuCtxDisablePeerAccess(target);
    if (result == (is_open ? kPeerAccessAlreadyEnabled : kPeerAccessNotEnabled)) return;
    peer.check(result, is_open ? "cuCtxEnablePeerAccess" : "cuCtxDisablePeerAccess");
}

void set_pool_open(CudaDevice& owner, CudaDevice& peer, bool is_open, const char* api) {
    if (!is_open) peer.synchronize();
    const CUmemAccessDesc access{{kLocationIsDevice, peer.ordinal}, is_open ? kReadAndWrite : kNoAccess};
    owner.check(driver().cuMemPoolSetAccess(owner.pool()->handle(api), &access, 1), "cuMemPoolSetAccess");
}

}  // namespace

bool can_open(MemoryOf kind, Device& owner, Device& peer) {
    if (owner.gpu() == nullptr || peer.gpu() == nullptr) return false;
    if (kind == MemoryOf::pool && !owner.pool()->is_supported()) return false;
    if (kind == MemoryOf::pool && owner.ordinal == peer.ordinal) return true;  // of all contexts of the GPU
    return &owner == &peer || can_reach(as_cuda(owner), as_cuda(peer));
}

bool is_open(MemoryOf kind, Device& owner, Device& peer) {
    if (!can_open(kind, owner, peer)) return false;
    if (&owner == &peer || (kind == MemoryOf::pool && owner.ordinal == peer.ordinal)) return true;
    return kind == MemoryOf::pool ? is_pool_open(as_cuda(owner), as_cuda(peer))
                                  : is_plain_open(as_cuda(owner), as_cuda(peer));
}

void set_open(MemoryOf kind, Device& owner, Device& peer, bool is_open, const char* api) {
    if (!can_open(kind, owner, peer)) {
        if (!is_open) return;
        throw UsageError(api, "'" + peer.alias + "' cannot reach the memory of '" + owner.alias +
                                  "' on this machine. help: wp.copy() works between all devices");
    }
    if (&owner == &peer || (kind == MemoryOf::pool && owner.ordinal == peer.ordinal)) return;
    if (kind == MemoryOf::pool)
        set_pool_open(as_cuda(owner), as_cuda(peer), is_open, api);
    else
        set_plain_open(as_cuda(owner), as_cuda(peer), is_open);
}

bool may_touch(Device& device, const Array& array) {
    if (&device == array.device) return true;
    if (device.gpu() == nullptr || array.device->gpu() == nullptr) return false;
    return is_open(is_pooled(array) ? MemoryOf::pool : MemoryOf::plain, *array.device, device);
}

namespace {
std::atomic<bool> takes_only_own_arrays{false};
}

void set_only_own_arrays(bool are_asked_for) { takes_only_own_arrays = are_asked_for; }

bool launches_take(Device& device, const Array& array) {
    return &device == array.device || (!takes_only_own_arrays && may_touch(device, array));
}

// ---- memory that processes share ----

bool is_ipc_supported(const Device& device) {
    return device.gpu() != nullptr && driver().cuIpcGetMemHandle && driver().cuIpcOpenMemHandle_v2 &&
           driver().cuIpcCloseMemHandle;
}

static_assert(sizeof(IpcHandle) == sizeof(CUipcMemHandle));

IpcHandle ipc_handle(const Array& array, const char* api) {
    CudaDevice& device = as_cuda(*array.device);
    if (is_pooled(array))
        throw UsageError(api, "the array lies in memory of the pool of '" + device.alias +
                                  "', which the driver does not share. help: wp.set_mempool_enabled('" + device.alias +
                                  "', False) before the array is made");
    if (array.size() == 0 || array.view.data != array.buffer->data)
        throw UsageError(api, "a handle is for whole memory, and the array of shape " + shape_text(array.shape()) +
                                  " begins " + std::to_string(array.size() == 0 ? 0 : array.offset()) +
                                  " bytes behind that or is empty. help: the handle of the array that it is a view of, "
                                  "or of wp.clone(array)");
    const CudaDevice::Inside inside(device);
    const RelaxedCapture relaxed;
    IpcHandle handle;
    device.check(
        driver().cuIpcGetMemHandle(reinterpret_cast<CUipcMemHandle*>(handle.data()), address_of(array.view.data)),
        "cuIpcGetMemHandle");
    return handle;
}

OpenedMemory open_ipc_handle(const IpcHandle& handle, Device& of, const char* api) {
    CudaDevice& device = as_cuda(of);
    const CudaDevice::Inside inside(device);
    const RelaxedCapture relaxed;
    CUipcMemHandle given;
    std::copy(handle.begin(), handle.end(), reinterpret_cast<std::byte*>(given.reserved));
    CUdeviceptr opened = 0;
    const CUresult result = driver().cuIpcOpenMemHandle_v2(&opened, given, kLazyPeerAccess);
    if (result == kInvalidContext)
        throw UsageError(api,
                         "the memory belongs to this process, or to another context of it: a handle is for other "
                         "processes. help: use the array itself");
    if (result == kInvalidHandle || result == kInvalidValue || result == kMapFailed)
        throw UsageError(api, "'" + device.alias +
                                  "' knows no memory of this handle: another process has made it with "
                                  "array.ipc_handle(), for the same GPU, and keeps its array as long as it is used");
    device.check(result, "cuIpcOpenMemHandle");
    std::size_t bytes = 0;
    const CUresult asked = driver().cuPointerGetAttribute(&bytes, kPointerRangeSize, opened);
    if (asked != kSuccess) driver().cuIpcCloseMemHandle(opened);
    device.check(asked, "cuPointerGetAttribute");
    return {reinterpret_cast<void*>(opened), static_cast<std::int64_t>(bytes)};
}

void close_ipc_handle(void* data, Device& of) {
    CudaDevice& device = as_cuda(of);
    LateFrees::add(&device, [&device, data] {
        const CudaDevice::Inside inside(device, std::nothrow);
        if (inside.is_inside()) destroy_quietly(driver().cuIpcCloseMemHandle, address_of(data));
    });
}

// ---- pinned memory of the host ----

void* allocate_pinned(std::int64_t size_bytes) {
    if (gpus().empty()) return nullptr;
    CudaDevice& device = *gpus().front();
    LateFrees::free_if_idle();
    const CudaDevice::Inside inside(device);
    void* data = nullptr;
    const auto allocate = [&] {
        return driver().cuMemHostAlloc(&data, static_cast<std::size_t>(size_bytes), kPortable);
    };
    CUresult result = allocate();
    if (result == kOutOfMemory) {
        for (Device* each : cuda_devices()) each->make_room();
        result = allocate();
    }
    if (result == kOutOfMemory)
        throw UsageError("array memory",
                         "cannot allocate " + std::to_string(size_bytes) +
                             " bytes of pinned memory: the system has no more that it can keep in place. help: "
                             "pinned=False, or smaller pieces",
                         ErrorCategory::memory);
    device.check(result, "cuMemHostAlloc");
    return data;
}

// Copies may still be in progress, on any device and in any stream.
void free_pinned(void* data) {
    LateFrees::add(nullptr, [data] {
        const CudaDevice::Inside inside(*gpus().front(), std::nothrow);
        if (inside.is_inside()) destroy_quietly(driver().cuMemFreeHost, data);
    });
}

namespace {

// 0 if the driver has not been used, or does not know the memory.
unsigned type_of_memory(std::uintptr_t address) {
    if (!has_used_cuda()) return 0;
    const CudaDevice::Inside inside(*gpus().front());
    unsigned type = 0;
    const CUresult result = driver().cuPointerGetAttribute(&type, kPointerMemoryType, CUdeviceptr{address});
    return result == kSuccess ? type : 0;
}

}  // namespace

bool is_pinned(std::uintptr_t address) { return type_of_memory(address) == kMemoryOfHost; }
Device* gpu_with_memory_at(std::uintptr_t address) {
    if (type_of_memory(address) != kMemoryOfDevice) return nullptr;
    return cuda_device_of(reinterpret_cast<const void*>(address));
}

}  // namespace weft::runtime
