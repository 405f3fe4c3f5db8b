// A processor that owns the memory of arrays and runs kernels. runtime/cpu/ has the CPU's; whatever else the host has
// to say about memory goes through this interface, so that memory which the host cannot read needs no second way.
//
// A stream is an order of work. What is put into one is done one after the other; it has been done at the latest when
// the stream has been synchronized. The CPU does it before the call returns. Each device has a default stream; a thread
// may take another one for its current stream.
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
class Pool;
class Primitives;
class Recording;
struct CopyPlan;
struct GradientView;

class Stream {
public:
    explicit Stream(Device& device) : device_(device) {}
    virtual ~Stream();
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;

    Device& device() const { return device_; }
    // Returns when all work that was put into it is done.
    virtual void synchronize() = 0;
    // Whether all of it is done. Does not wait.
    virtual bool is_complete() = 0;
    // 0 for most; the lower, the more urgent.
    virtual int priority() { return 0; }

    // What takes the work that this thread puts into the stream, in place of the device (graph.h); null where nobody
    // does, which is nearly always.
    Recording* recording() const {
        Recording* const any = recording_.load(std::memory_order_acquire);
        return any ? recording_here(any) : nullptr;
    }
    // Whether anybody records it.
    bool is_recorded() const {
        Recording* const any = recording_.load(std::memory_order_relaxed);
        return any && (any != shared_mark() || const_cast<Stream*>(this)->find_recording() != nullptr);
    }

protected:
    // From now on another library may capture it: then find_recording() has the recording of any thread.
    void share();
    virtual Recording* find_recording() { return nullptr; }

private:
    friend class Recording;
    Recording* recording_here(Recording* any) const;
    static Recording* shared_mark() { return reinterpret_cast<Recording*>(alignof(void*)); }

    Device& device_;
    Recording* idle_ = nullptr;  // in the place of a recording while there is none
    std::atomic<Recording*> recording_{nullptr};
    // Whose it is: other threads must not look into it, because that one may end it at any time.
    std::atomic<std::uint64_t> recording_thread_{0};
};

// How a stream is captured.
struct CaptureOptions {
    // What other threads may call of a CUDA driver meanwhile: the number of wp.CaptureMode.
    int mode = 1;
    bool is_external = false;  // another library has begun the capture, and ends it
    std::string thread;        // the name of the thread that begins it, for messages; empty where it has none
};

// What programs may ask of a GPU.
struct CudaProperties {
    int arch = 0;  // 86 for 8.6
    int sm_count = 0;
    std::int64_t threads_at_once = 0;  // that all multiprocessors have room for
    int max_threads_per_block = 0;
    int max_shared_memory_per_block = 0;  // bytes
    bool is_uva = false;                  // it shares addresses with the host
    bool has_pools = false;               // memory is given and taken in the order of streams
    bool has_conditions = false;          // in graphs
    bool is_emulated = false;             // src/emulator
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
    const int ordinal;  // of a CUDA device; -1 for a CPU
    // Whether the host may read and write the memory of arrays in place (runtime/bytes.h).
    const bool is_host_memory;

    Stream& default_stream() const { return *default_stream_; }
    virtual void synchronize() = 0;  // all streams
    // `priority`: of CUDA devices; the driver takes the nearest that it has.
    virtual std::shared_ptr<Stream> make_stream(int priority = 0) = 0;
    virtual std::shared_ptr<Event> make_event(bool has_time = false) = 0;

    // What this thread puts into the stream from now on is recorded and not done. Throws UsageError where the stream is
    // recorded already.
    virtual void begin_capture(Stream& stream, const CaptureOptions& options = {}) = 0;
    // Throws UsageError where it is not recorded, or by another thread.
    virtual std::shared_ptr<Graph> end_capture(Stream& stream) = 0;

    // At least `size_bytes` > 0 bytes, 64-byte aligned, for work of this stream; null where there is no more. They hold
    // zeros where that is asked for, else anything.
    virtual void* allocate(std::int64_t size_bytes, bool zeroed, Stream& stream) = 0;
    // After the work that is in the stream. `size_bytes` as it was given to allocate().
    virtual void free(void* data, std::int64_t size_bytes, Stream& stream) = 0;

    // Gives back what it keeps of free memory, when its work is done.
    virtual void make_room() {}
    virtual Pool* pool() { return nullptr; }  // null for a CPU

    // One side of a copy is this device's; the other may be memory of the host, which is read or written when the call
    // returns.
    virtual void copy(const CopyPlan& plan, Stream& stream) = 0;
    // The source is one element in the host's memory, which may be gone when the call returns.
    virtual void fill(const CopyPlan& plan, Stream& stream) = 0;
    // Bytes in a line from the memory of another device, after what is in that one's current stream, which goes on when
    // they are copied. False where only the host knows how.
    virtual bool copy_from(void* /*to*/, Device& /*other*/, const void* /*from*/, std::int64_t /*size_bytes*/,
                           Stream& /*stream*/) {
        return false;
    }
    virtual void clear(void* data, std::int64_t size_bytes, Stream& stream) = 0;

    // Bytes to the host and from it, after the work that is in the default stream; done when the call returns.
    virtual void load(void* to, const void* from, std::int64_t size_bytes) = 0;
    virtual void store(void* to, const void* from, std::int64_t size_bytes) = 0;

    virtual Primitives& primitives() = 0;

    // Whether it pays that each worker of a launch of so many threads gets these gradients of its own
    // (LaunchOptions::private_gradients). It does not on a device without workers.
    virtual bool pays_to_own(std::span<const GradientView>, std::int64_t /*threads*/) const { return false; }

    virtual std::int64_t total_memory() const = 0;  // bytes; 0 where nobody knows
    virtual std::int64_t free_memory() const = 0;

    // What code for it is compiled for; null for the processor that this runs on.
    virtual const Target* target() const { return nullptr; }
    virtual const CudaProperties* cuda() const { return nullptr; }  // null for a CPU

protected:
    Device(std::string alias, std::string name, bool is_cpu, int ordinal, bool is_host_memory)
        : alias(std::move(alias)),
          name(std::move(name)),
          is_cpu(is_cpu),
          ordinal(ordinal),
          is_host_memory(is_host_memory) {}
    // Devices are never destroyed: arrays that outlive main() still point at theirs.
    virtual ~Device() = default;

    Stream* default_stream_ = nullptr;
};

// A moment in a stream.
class Event {
public:
    virtual ~Event() = default;
    // When the work that is in the stream has been done. `by_graph`: where the stream is captured, each launch of the
    // graph records it, for those outside of the graph; else it orders streams of the capture.
    virtual void record(Stream& stream, bool by_graph = false) = 0;
    // What is put into the stream from now on is done after that. Of an event that was never recorded nothing waits.
    // `by_graph`: each launch of the graph waits for what the event means then.
    virtual void make_wait(Stream& stream, bool by_graph = false) = 0;
    virtual void synchronize() = 0;
    virtual bool is_complete() = 0;
    // Milliseconds from the moment of another event of the device. Precondition: both were recorded.
    virtual double ms_since(const Event& earlier) const = 0;
    virtual bool is_recorded() const = 0;
};

// The stream into which this thread puts its work for a device: the default one, where it has not chosen another.
// Where no thread has, launches do not ask for thread-local data, which takes several nanoseconds.
inline constinit std::atomic<int> choosing_threads{0};
Stream& chosen_stream(const Device& device);
inline Stream& current_stream(const Device& device) {
    return choosing_threads.load(std::memory_order_relaxed) != 0 ? chosen_stream(device) : device.default_stream();
}
// Until the thread chooses another one.
void set_current_stream(std::shared_ptr<Stream> stream);
std::shared_ptr<Stream> current_stream_ptr(const Device& device);
// While it lives. Null leaves the stream that there is.
class UseStream {
public:
    explicit UseStream(std::shared_ptr<Stream> stream);
    ~UseStream();
    UseStream(const UseStream&) = delete;
    UseStream& operator=(const UseStream&) = delete;

private:
    std::shared_ptr<Stream> before_;
};

// Throws UsageError where there is no such device. "cuda" means the current CUDA device: the default device where it is
// one, else the first. The result lives for ever.
Device& device(std::string_view name);
// The CPU first, then CUDA devices by their ordinals. The driver is asked for these at the first call.
std::vector<Device*> devices();
std::vector<Device*> cuda_devices();
std::vector<Device*> cpu_devices();  // does not ask for the driver
// The CUDA device of a number that is known to be there.
Device& cuda_device(int ordinal);
// What code for GPUs of an architecture is compiled for: 86 for 8.6. It runs on those and on later ones.
Target cuda_target(int arch);
// A name for a context of CUDA that somebody has made, given as its handle; 0 is the current one of this thread. A
// device of its own, from now on; for the primary context of a GPU one more name of that device. Throws UsageError
// where the name is taken, or there is no such context.
Device& map_cuda_context(const std::string& alias, std::uint64_t context);
// Takes the name back; the context may be destroyed then. Throws UsageError where there is no such name, or memory of
// the device is in use.
void unmap_cuda_context(const std::string& alias);
// The handle of the context of a CUDA device.
std::uint64_t cuda_context(Device& device);
// Why there is no CUDA device, where there is none.
const std::string& cuda_problem();
// All devices have done their work. Does not ask for the driver.
void synchronize_devices();
// The CPU that Python runs on, in whose memory the host's own data lie: "cpu".
Device& host_device();
Device& default_device();  // of the program, in all of its threads
void set_default_device(Device& device);

// One more device, from now on. Its alias is new.
void add_device(Device& device);

}  // namespace weft::runtime
