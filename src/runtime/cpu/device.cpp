#include "runtime/cpu/device.h"

#include <unistd.h>

#include <chrono>
#include <cstring>
#include <fstream>
#include <vector>

#include "runtime/cpu/accesses.h"
#include "runtime/cpu/block_cache.h"
#include "runtime/cpu/copy.h"
#include "runtime/cpu/deferred.h"
#include "runtime/cpu/primitives.h"
#include "runtime/cpu/private_gradients.h"
#include "runtime/recording.h"
#include "runtime/timing.h"
#include "support/error.h"

namespace weft::runtime {
namespace {

// "AMD EPYC 7B13" as the kernel reports it; the architecture's name if it reports none.
std::string processor_name() {
    std::ifstream cpuinfo("/proc/cpuinfo");
    for (std::string line; std::getline(cpuinfo, line);) {
        if (line.starts_with("model name")) {
            auto colon = line.find(": ");
            if (colon != std::string::npos) return line.substr(colon + 2);
        }
    }
#if defined(__x86_64__)
    return "x86_64";
#elif defined(__aarch64__)
    return "aarch64";
#else
    return "cpu";
#endif
}

std::int64_t pages(int which) {
    const long count = sysconf(which);
    return count < 0 ? 0 : static_cast<std::int64_t>(count) * sysconf(_SC_PAGESIZE);
}

// Its work is done at once, or together with all other work of a deferred device.
class CpuStream final : public Stream {
public:
    using Stream::Stream;
    void synchronize() override {
        if (Stream& all = device().default_stream(); &all != this) all.synchronize();
    }
    bool is_complete() override {
        Stream& all = device().default_stream();
        return &all == this || all.is_complete();
    }
};

// Waiting for an event does nothing: work of all streams is done in the order in which it was enqueued.
class CpuEvent final : public Event {
public:
    explicit CpuEvent(Device& device) : device_(device) {}

    void record(Stream& stream, bool) override {
        Recording* const recording = stream.recording();
        capture_ = recording ? recording->number() : 0;
        if (recording)
            recording->add("event", [self = state_] { self->stamp(); }, {});
        else
            state_->stamp();
    }
    void make_wait(Stream& stream, bool) override {
        if (Recording* const recording = find_recording(capture_)) recording->join(stream);
    }
    void synchronize() override { device_.synchronize(); }
    bool is_complete() override { return true; }
    bool is_recorded() const override { return state_->is_stamped; }
    double ms_since(const Event& earlier) const override {
        const auto& from = *static_cast<const CpuEvent&>(earlier).state_;
        return std::chrono::duration<double, std::milli>(state_->time - from.time).count();
    }

private:
    struct State {
        void stamp() { time = std::chrono::steady_clock::now(), is_stamped = true; }
        std::chrono::steady_clock::time_point time;
        bool is_stamped = false;
    };
    Device& device_;
    std::shared_ptr<State> state_ = std::make_shared<State>();
    std::uint64_t capture_ = 0;  // capture of its last record
};

thread_local int inside = 0;  // number of CpuDevice::Access objects of this thread

}  // namespace

CpuDevice::CpuDevice(std::string alias, const CpuMemory* memory)
    : Device(std::move(alias), processor_name(), /*is_cpu=*/true, /*ordinal=*/-1, /*is_host_memory=*/memory == nullptr),
      memory_(memory) {
    default_stream_ = memory ? static_cast<Stream*>(new DeferredStream(*this)) : new CpuStream(*this);
}

Device& make_cpu_device(std::string alias, const CpuMemory* memory) { return *new CpuDevice(std::move(alias), memory); }

// ---- streams ----

std::shared_ptr<Stream> CpuDevice::make_stream(int) { return {new CpuStream(*this), &Recording::let_go}; }
std::shared_ptr<Event> CpuDevice::make_event(bool) { return std::make_shared<CpuEvent>(*this); }
void CpuDevice::begin_capture(Stream& stream, const CaptureOptions& options) {
    if (options.is_external)
        throw UsageError("capture_begin()",
                         "external=True is for streams of CUDA that another library captures, and '" + alias +
                             "' is no CUDA device. help: leave it out");
    begin_recording(stream, options);
}
std::shared_ptr<Graph> CpuDevice::end_capture(Stream& stream) { return end_recording(stream); }

// ---- work ----

void CpuDevice::Access::enter() {
    ++inside;
    memory_->open();
}

void CpuDevice::Access::leave() {
    memory_->close();
    --inside;
}

DeferredStream* CpuDevice::deferred_where_not_inside() const {
    return inside > 0 ? nullptr : static_cast<DeferredStream*>(default_stream_);
}

void CpuDevice::run(std::function<void()> work) {
    if (!memory_) return work();
    auto open = [this, work = std::move(work)] {
        const Access access(*this);
        work();
    };
    if (DeferredStream* const stream = deferred())
        stream->put(std::move(open));
    else
        open();
}

// ---- memory ----

void* CpuDevice::allocate(std::int64_t size_bytes, bool zeroed, Stream& stream) {
    if (memory_) {
        void* const data = memory_->allocate(size_bytes);
        if (zeroed && data) clear(data, size_bytes, stream);
        return data;
    }
    const Block block = take_block(size_bytes);
    if (!zeroed && block.data && marks_new_memory()) mark_unwritten(block.data, size_bytes);
    if (zeroed && !block.is_zero && block.data) run_clear(block.data, size_bytes);
    if (zeroed && block.data && stream.recording())
        clear(block.data, size_bytes, stream);  // the graph clears it at each launch
    return block.data;
}

void CpuDevice::free(void* data, std::int64_t size_bytes, Stream&) {
    if (!memory_) return give_block(data, size_bytes);
    run([this, data, size_bytes] { memory_->free(data, size_bytes); });
}

void CpuDevice::copy(const CopyPlan& plan, Stream& stream) {
    if (Recording* const recording = stream.recording()) {
        recording->add("copy", [this, plan] { copy(plan, default_stream()); }, {plan.to, plan.from});
        return;
    }
    if (!memory_) {
        const TimedHostWork timed(*this, kTimedCopy, "memcpy");
        return run_copy(plan);
    }
    if (plan.sides != CopyPlan::Sides::inside) stream.synchronize();
    run([this, plan] {
        const TimedHostWork timed(*this, kTimedCopy, "memcpy");
        run_copy(plan);
    });
    if (plan.sides != CopyPlan::Sides::inside) stream.synchronize();
}

void CpuDevice::fill(const CopyPlan& plan, Stream& stream) {
    Recording* const recording = stream.recording();
    if (!memory_ && !recording) {
        const TimedHostWork timed(*this, kTimedFill, "memset");
        return run_copy(plan);
    }
    const auto* const from = static_cast<const std::byte*>(plan.from);
    auto work = [this, plan = plan, element = std::vector<std::byte>(from, from + plan.element)]() mutable {
        plan.from = element.data();
        const TimedHostWork timed(*this, kTimedFill, "memset");
        run_copy(plan);
    };
    if (recording)
        recording->add("fill", [this, work] { run(work); }, {plan.to});
    else
        run(std::move(work));
}

void CpuDevice::clear(void* data, std::int64_t size_bytes, Stream& stream) {
    if (Recording* const recording = stream.recording()) {
        recording->add("fill", [this, data, size_bytes] { clear(data, size_bytes, default_stream()); }, {data});
        return;
    }
    if (!memory_) {
        const TimedHostWork timed(*this, kTimedFill, "memset");
        return run_clear(data, size_bytes);
    }
    run([this, data, size_bytes] {
        const TimedHostWork timed(*this, kTimedFill, "memset");
        run_clear(data, size_bytes);
    });
}

void CpuDevice::load(void* to, const void* from, std::int64_t size_bytes) {
    if (DeferredStream* const stream = deferred()) stream->synchronize();
    const Access access(*this);
    std::memcpy(to, from, static_cast<std::size_t>(size_bytes));
}

void CpuDevice::store(void* to, const void* from, std::int64_t size_bytes) { load(to, from, size_bytes); }

Primitives& CpuDevice::primitives() {
    if (DeferredStream* const stream = deferred()) stream->synchronize();
    static CpuPrimitives primitives;
    return primitives;
}

bool CpuDevice::should_privatise(std::span<const GradientView> gradients, std::int64_t threads) const {
    return runtime::should_privatise(gradients, threads);
}

std::int64_t CpuDevice::total_memory() const { return pages(_SC_PHYS_PAGES); }
std::int64_t CpuDevice::free_memory() const { return pages(_SC_AVPHYS_PAGES); }

}  // namespace weft::runtime
