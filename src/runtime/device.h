// A processor that owns the memory of arrays and runs kernels. The host accesses memory only through this interface, so
// that memory which it cannot read needs no second way. runtime/cpu/ implements it for CPUs, runtime/cuda/ for GPUs.
//
// A stream is an ordered queue of work. Synchronizing a stream waits until all of its work is done; the CPU does the
// work before the call returns. Each device has a default stream, and a thread may choose another one as its current
// stream.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "binary/target.h"

namespace weft::runtime {

class Device;
class Event;
class Graph;
class MemoryPool;
class Primitives;
namespace spatial {
class DeviceGeometry;
}
class Recording;
struct CopyPlan;
struct GradientView;

class Stream {
public:
    explicit Stream(Device& device) : device_(device) {}
    virtual ~Stream() = default;
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;

    Device& device() const { return device_; }
    // Returns when all work in the stream is done.
    virtual void synchronize() = 0;
    // Whether synchronize() throws the faults of earlier launches (LaunchOptions::late_fault).
    virtual bool keeps_faults() const { return false; }
    // Whether all work in the stream is done. Does not wait.
    virtual bool is_complete() = 0;
    // Lower numbers are more urgent; 0 is the default.
    virtual int priority() { return 0; }

    // The recording that receives the work of this thread in place of the device (recording.h); null if there is none,
    // which is nearly always.
    Recording* recording() const {
        Recording* const any = recording_.load(std::memory_order_acquire);
        return any ? recording_here(any) : nullptr;
    }
    // Whether any thread records the stream.
    bool is_recorded() const {
        Recording* const any = recording_.load(std::memory_order_relaxed);
        return any && (any != shared_mark() || const_cast<Stream*>(this)->find_recording() != nullptr);
    }

protected:
    // Another library may capture the stream from now on: find_recording() then finds its recording, for every thread.
    void share();
    virtual Recording* find_recording() { return nullptr; }

private:
    friend class Recording;
    // A number of this thread, unique in the process: the system reuses its own numbers of threads.
    static std::uint64_t this_thread();
    Recording* recording_here(Recording* any) const;
    static Recording* shared_mark() { return reinterpret_cast<Recording*>(alignof(void*)); }

    Device& device_;
    Recording* idle_ = nullptr;  // the value of recording_ while there is no recording
    std::atomic<Recording*> recording_{nullptr};
    // Number of the recording thread. Other threads must not use the recording, which may end at any time.
    std::atomic<std::uint64_t> recording_thread_{0};
};

struct CaptureOptions {
    // Calls of the device's driver that other threads may make meanwhile: a number of wp.CaptureMode.
    int mode = 1;
    bool is_external = false;  // another library began the capture and ends it
    std::string thread;        // name of the thread that begins the capture, for messages; may be empty
};

// Properties of a GPU that programs may query.
struct GpuProperties {
    int arch = 0;  // 86 for compute capability 8.6
    int sm_count = 0;
    std::int64_t threads_at_once = 0;  // resident threads of all multiprocessors
    int max_threads_per_block = 0;
    int max_shared_memory_per_block = 0;  // bytes
    bool is_uva = false;                  // shares addresses with the host
    bool has_pools = false;               // memory is allocated and freed in the order of streams
    bool has_conditions = false;          // in graphs
    bool is_emulated = false;             // it is that of emulator/src
    bool is_primary = true;               // its context is the one that libraries share
    std::string uuid, pci_bus_id;
};

class Device {
public:
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;

    const std::string alias;  // "cpu", "cuda:0"
    const std::string name;   // the processor's own name
    const bool is_cpu;
    const int ordinal;  // of a GPU; -1 for a CPU
    // Whether the host may read and write the memory of arrays in place (runtime/bytes.h).
    const bool is_host_memory;

    Stream& default_stream() const { return *default_stream_; }
    virtual void synchronize() = 0;  // all streams
    // `priority`: of GPUs only; the driver takes the nearest that it supports.
    virtual std::shared_ptr<Stream> make_stream(int priority = 0) = 0;
    virtual std::shared_ptr<Event> make_event(bool has_time = false) = 0;

    // Work that this thread enqueues into the stream from now on is recorded and not done. Throws UsageError if the
    // stream is being recorded already.
    virtual void begin_capture(Stream& stream, const CaptureOptions& options = {}) = 0;
    // Throws UsageError if the stream is not being recorded, or by another thread.
    virtual std::shared_ptr<Graph> end_capture(Stream& stream) = 0;

    // At least `size_bytes` > 0 bytes, 64-byte aligned, for use in the order of this stream; null if there is no more
    // memory. The bytes are zero if `zeroed`, else uninitialized.
    virtual void* allocate(std::int64_t size_bytes, bool zeroed, Stream& stream) = 0;
    // Frees the memory after the work that is in the stream. `size_bytes` as given to allocate().
    virtual void free(void* data, std::int64_t size_bytes, Stream& stream) = 0;

    // Waits for the device's work and returns unused memory that it keeps.
    virtual void make_room() {}
    virtual MemoryPool* pool() { return nullptr; }  // null for a CPU

    // One side of the copy is this device's memory. The other may be the host's, which has been read or written when
    // the call returns.
    virtual void copy(const CopyPlan& plan, Stream& stream) = 0;
    // The source is one element in the host's memory, and may be freed when the call returns.
    virtual void fill(const CopyPlan& plan, Stream& stream) = 0;
    // Copies contiguous bytes from another device: after the work in that device's current stream, which continues
    // after the copy. False if only the host can do it.
    virtual bool copy_from(void* /*to*/, Device& /*other*/, const void* /*from*/, std::int64_t /*size_bytes*/,
                           Stream& /*stream*/) {
        return false;
    }
    virtual void clear(void* data, std::int64_t size_bytes, Stream& stream) = 0;

    // Copies bytes to the host and from it, after the work in the default stream. Done when the call returns.
    virtual void load(void* to, const void* from, std::int64_t size_bytes) = 0;
    virtual void store(void* to, const void* from, std::int64_t size_bytes) = 0;

    virtual Primitives& primitives() = 0;
    // Null for a device whose kernels read the host's memory.
    virtual spatial::DeviceGeometry* geometry() const { return nullptr; }

    // Whether a launch of so many threads gets faster if each worker adds to a private copy of these gradients
    // (LaunchOptions::private_gradients). Never on a device without workers.
    virtual bool should_privatise(std::span<const GradientView>, std::int64_t /*threads*/) const { return false; }

    virtual std::int64_t total_memory() const = 0;  // bytes; 0 if unknown
    virtual std::int64_t free_memory() const = 0;

    // The target of code generation; null for the processor that runs this process.
    virtual const Target* target() const { return nullptr; }
    virtual const GpuProperties* gpu() const { return nullptr; }  // null for a CPU

protected:
    Device(std::string alias, std::string name, bool is_cpu, int ordinal, bool is_host_memory)
        : alias(std::move(alias)),
          name(std::move(name)),
          is_cpu(is_cpu),
          ordinal(ordinal),
          is_host_memory(is_host_memory) {}
    // Devices are never destroyed: arrays that outlive main() still refer to theirs.
    virtual ~Device() = default;

    Stream* default_stream_ = nullptr;
};

// A point in the order of a stream.
class Event {
public:
    virtual ~Event() = default;
    // Records the point after the work in the stream. If the stream is being captured: with `by_graph`, each launch of
    // the graph records the event, for waits outside of the graph; else the event orders streams of the capture.
    virtual void record(Stream& stream, bool by_graph = false) = 0;
    // Later work in the stream waits for the event. An event that was never recorded delays nothing. `by_graph`: each
    // launch of the graph waits for the latest record at that time.
    virtual void make_wait(Stream& stream, bool by_graph = false) = 0;
    virtual void synchronize() = 0;
    virtual bool is_complete() = 0;
    // Milliseconds since another event of the device. Precondition: both were recorded.
    virtual double ms_since(const Event& earlier) const = 0;
    virtual bool is_recorded() const = 0;
};

// The current stream of this thread for a device: the default one unless the thread has chosen another. If no thread
// has, launches skip the thread-local lookup, which takes several nanoseconds.
inline constinit std::atomic<int> choosing_threads{0};
Stream& chosen_stream(const Device& device);
inline Stream& current_stream(const Device& device) {
    return choosing_threads.load(std::memory_order_relaxed) != 0 ? chosen_stream(device) : device.default_stream();
}
// Chooses the current stream of this thread for the stream's device.
void set_current_stream(std::shared_ptr<Stream> stream);
std::shared_ptr<Stream> current_stream_ptr(const Device& device);
// Chooses a stream for its own lifetime. Null changes nothing.
class UseStream {
public:
    explicit UseStream(std::shared_ptr<Stream> stream);
    ~UseStream();
    UseStream(const UseStream&) = delete;
    UseStream& operator=(const UseStream&) = delete;

private:
    std::shared_ptr<Stream> before_;
};

// While it lives, the work of this thread is done and not recorded: a graph runs, or is prepared.
class WithoutRecording {
public:
    WithoutRecording();
    ~WithoutRecording();
    WithoutRecording(const WithoutRecording&) = delete;
    WithoutRecording& operator=(const WithoutRecording&) = delete;
};

// Throws UsageError if there is no such device. "cuda" means the default device if it is a GPU,
// else the first GPU. The result lives for ever.
Device& device(std::string_view name);
// The host's first, then those of the other back ends (backend.h), then added ones. The first call asks drivers.
std::vector<Device*> devices();
// The host's and added ones. Does not ask a driver.
std::vector<Device*> cpu_devices();
// Waits for the work of all devices. Does not ask for a driver.
void synchronize_devices();
// "cpu": the CPU that runs this process, whose memory has the host's own data.
Device& host_device();
Device& default_device();  // of the program, for all of its threads
void set_default_device(Device& device);
// While it lives, the device is the default one of this thread, which set_default_device() then changes for it alone.
class UseDevice {
public:
    explicit UseDevice(Device& device);
    ~UseDevice();
    UseDevice(const UseDevice&) = delete;
    UseDevice& operator=(const UseDevice&) = delete;

private:
    Device* before_;
};

// Registers another device. Precondition: its alias is new.
void add_device(Device& device);

}  // namespace weft::runtime
