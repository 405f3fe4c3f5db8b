#include "runtime/cuda/device.h"

#include <exception>
#include <vector>

#include "runtime/cuda/capture.h"
#include "runtime/cuda/geometry.h"
#include "runtime/cuda/primitives.h"
#include "runtime/pinned.h"
#include "runtime/verify.h"
#include "support/error.h"

namespace weft::runtime {

using namespace cuda;

// ---- the device ----

CudaDevice::CudaDevice(int ordinal)
    : CudaContext("cuda:" + std::to_string(ordinal), ordinal, /*is_primary=*/true), geometry_(new CudaGeometry(*this)) {
    default_stream_ = new CudaStream(*this);
}

CudaDevice::CudaDevice(std::string alias, int ordinal, CUcontext context)
    : CudaContext(std::move(alias), ordinal, /*is_primary=*/false), geometry_(new CudaGeometry(*this)) {
    default_stream_ = new CudaStream(*this);
    if (!gpus()[static_cast<std::size_t>(ordinal)]->is_open()) begin_pool();
    pool_.begin();
    set_context(context);
}

void CudaDevice::close(const char* api) {
    for_each_stream([](Stream& stream) { static_cast<CudaStream&>(stream).reports().free_kept(); });
    if (const std::int64_t count = allocations_ - objects().allocations(); count > 0)
        throw UsageError(api, std::to_string(count) + " allocations of '" + alias +
                                  "' are in use. help: delete its arrays and graphs first");
    objects().close();
    set_context(nullptr);
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

// ---- streams ----

void CudaDevice::synchronize() {
    {
        const std::lock_guard lock(mutex_);
        std::erase_if(streams_, [](const std::weak_ptr<Stream>& stream) { return stream.expired(); });
    }
    std::exception_ptr first;  // a fault in one stream leaves no other one without a wait
    for_each_stream([&](Stream& stream) {
        try {
            stream.synchronize();
        } catch (const UsageError&) {
            if (!first) first = std::current_exception();
        }
    });
    if (first) std::rethrow_exception(first);
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

std::shared_ptr<Stream> CudaDevice::stream_of_handle(CUstream handle) {
    if (static_cast<CudaStream&>(default_stream()).lends(handle)) return {std::shared_ptr<Stream>(), default_stream_};
    std::vector<std::shared_ptr<Stream>> kept;  // as above
    const std::lock_guard lock(mutex_);
    for (const std::weak_ptr<Stream>& each : streams_) {
        kept.push_back(each.lock());
        if (kept.back() && static_cast<CudaStream&>(*kept.back()).lends(handle)) return kept.back();
    }
    return {new CudaStream(*this, handle), &Recording::let_go};
}

std::shared_ptr<Event> CudaDevice::make_event(bool has_time) {
    return std::make_shared<CudaEvent>(*this, has_time ? 0u : kNoTiming);
}

// ---- captures ----

void CudaDevice::begin_capture(Stream& stream, const CaptureOptions& options) {
    ExternalUse::free_unused();
    auto& queue = static_cast<CudaStream&>(stream);
    end_abandoned_recordings();
    const CudaStream::WorkLock lock = queue.lock_work();
    if (!options.is_external) refuse_second_recording(stream);
    if (verifies_cuda())
        throw UsageError("capture_begin()",
                         "wp.config.verify_cuda is on, which waits for each launch on '" + alias +
                             "': nothing is launched in a capture. help: wp.config.verify_cuda = False around it");
    if (options.is_external) return queue.begin_external();
    new CudaRecording(queue, options);  // end_recording() deletes it
}

// Another library's capture has no graph of ours.
std::shared_ptr<Graph> CudaDevice::end_capture(Stream& stream) {
    const Recording* const recording = stream.recording();
    if (!recording || !recording->is_external()) return end_recording(stream);
    static_cast<CudaStream&>(stream).end_external();
    return nullptr;
}

std::unique_ptr<StreamRecording> CudaDevice::record_external(CudaStream& stream, CUgraph graph) {
    return std::make_unique<CudaRecording>(stream, graph);
}

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
    if (size_bytes > asked && driver().note_asked)
        driver().note_asked(reinterpret_cast<CUdeviceptr>(data), static_cast<std::size_t>(asked));
    if (zeroed || size_bytes > asked) clear_or_free(data, size_bytes, stream, zeroed ? 0 : size_bytes - 4);
    return data;
}

void CudaDevice::clear_or_free(void* data, std::int64_t size_bytes, Stream& stream, std::int64_t from) {
    try {
        static_cast<CudaStream&>(stream).put_clear(static_cast<std::byte*>(data) + from, size_bytes - from);
    } catch (...) {
        free(data, size_bytes, stream);
        throw;
    }
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

void CudaDevice::from_host(void* to, const void* from, std::int64_t size_bytes, Stream& stream) {
    auto& queue = static_cast<CudaStream&>(stream);
    CudaRecording* const recording = cuda_recording(stream);
    if (recording && !is_pinned(reinterpret_cast<std::uintptr_t>(from)))
        return queue.put_line(to, recording->keep_bytes(from, size_bytes), size_bytes);
    queue.put_from_host(to, from, size_bytes);
}

void CudaDevice::load(void* to, const void* from, std::int64_t size_bytes) {
    const WithoutRecording without;
    default_stream().synchronize();
    static_cast<CudaStream&>(default_stream()).read(to, from, size_bytes);
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

spatial::DeviceGeometry* CudaDevice::geometry() const { return geometry_; }
CudaObjects& CudaDevice::objects() const { return geometry_->objects(); }

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

}  // namespace weft::runtime
