// Recordings: while a thread captures a stream, the stream has a Recording, which becomes a Graph.
//
// If the host does the device's work, a HostRecording stores each piece that the thread enqueues as a node, in that
// order. A device that captures by itself (runtime/cuda/capture.h) receives the work as usual, and the nodes describe
// it.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/array.h"
#include "runtime/device.h"
#include "runtime/graph.h"

namespace weft::runtime {

// A condition either repeats one body, or runs one of up to two bodies once.
enum class ConditionKind { repeat, choose };
struct Branches {
    bool on_true = true;  // also the repeated body
    bool on_false = false;
};

class Recording {
public:
    virtual ~Recording();
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;

    // Whether the host will run the nodes. If not, the device receives the work from the code that adds the node.
    virtual bool runs_nodes() const = 0;
    // `addresses`: memory that the node reads or writes.
    void add(NodePtr node, std::span<const void* const> addresses);
    // Adds a node for `work`. A host recording runs it when the graph runs. A device that captures by itself runs it at
    // once, on streams that are being captured.
    virtual void add(std::string name, std::function<void()> work, std::initializer_list<const void*> addresses) = 0;
    KeptMemory& memory() { return *memory_; }
    // Adds another stream, whose work comes after everything recorded so far.
    virtual void join(Stream& stream);
    // Called by the last owner of a stream: deletes it. A stream that belongs to a capture stays until the capture
    // ends, even if another thread releases it. If the capturing thread releases the stream of its capture, or has
    // ended, the capture cannot be completed any more and is lost.
    static void let_go(Stream* stream) noexcept;

    // A condition on element 0 of an int32 array, which is read when the graph runs. begin_condition() comes before its
    // bodies are captured. Each body, `on_true` (also the repeated one) and then `on_false`, lies between
    // begin_branch() and end_branch(). end_condition() is always called; after an exception, `is_complete` is false.
    // Conditions nest. The caller adds the node that has the bodies.
    virtual void begin_condition(const Array& condition, ConditionKind kind, Branches branches) = 0;
    virtual void begin_branch(bool on_true);
    virtual std::shared_ptr<Graph> end_branch();
    virtual void end_condition(bool is_complete) = 0;
    virtual bool is_in_branch() const { return !outer_.empty(); }

    // Ends the recording and returns the graph of the nodes so far.
    virtual std::shared_ptr<Graph> finish() = 0;
    // Whether another library began the capture and will end it: the recording then belongs to every thread.
    bool is_external() const { return is_external_; }
    // The other thread that records a stream.
    struct Owner {
        std::string thread;      // its description; empty if this thread or none records
        bool has_ended = false;  // the thread has: its recording cannot be completed any more
    };
    static Owner owner_of(const Stream& stream);
    // The recording that this thread began through Weft; null if there is none. Does not ask the driver.
    static Recording* begun_here(const Stream& stream);
    // Never 0, and unique in the process.
    std::uint64_t number() const { return number_; }
    Stream& stream() const { return *streams_.front(); }

protected:
    // Records work that this thread enqueues into the stream.
    Recording(Stream& stream, const CaptureOptions& options);
    // Records work of any thread: the stream finds the recording by itself.
    struct External {};
    Recording(Stream& stream, External);

    // Detaches all streams from the recording, each by release().
    void release_streams() noexcept;
    virtual void release(Stream& stream) noexcept;

    std::vector<Stream*> streams_;  // the first one is that of the capture
    std::vector<NodePtr> nodes_;
    std::unique_ptr<KeptMemory> memory_;
    struct Branch {
        std::vector<NodePtr> nodes;
        std::unique_ptr<KeptMemory> memory;
    };
    std::vector<Branch> outer_;

private:
    friend struct OwnRecordings;
    friend void end_abandoned_recordings() noexcept;
    // Precondition: the lock of all recordings is held.
    void take(Stream& stream);

    const std::string thread_;       // name of the recording thread
    bool has_thread_ended_ = false;  // guarded by the lock; the recording cannot be completed any more
    bool is_external_ = false;
    std::uint64_t number_;
    std::vector<std::unique_ptr<Stream>> left_;  // released by their owners
};

class HostRecording final : public Recording {
public:
    HostRecording(Stream& stream, const CaptureOptions& options) : Recording(stream, options) {}

    bool runs_nodes() const override { return true; }
    using Recording::add;
    void add(std::string name, std::function<void()> work, std::initializer_list<const void*> addresses) override;
    void begin_condition(const Array&, ConditionKind, Branches) override {}
    void end_condition(bool) override {}
    std::shared_ptr<Graph> finish() override;
};

// The recording of this thread with the number; null if it has ended.
Recording* find_recording(std::uint64_t number);

// Throws UsageError if this thread captures on another device than `device`: the work named by `what` would be done at
// once and not become a part of that graph.
void refuse_beside_recording(const Device& device, std::string_view api, std::string_view what);

// Ends the recordings of this thread whose stream another thread has released: they cannot be completed.
void end_abandoned_recordings() noexcept;
// Ends all recordings of this thread, which is about to end; their graphs are lost. Returns the aliases of their
// devices.
std::vector<std::string> end_recordings_of_thread();
// For Device::begin_capture(): throws UsageError if the stream is being recorded.
void refuse_second_recording(const Stream& stream);
// Device::begin_capture() for devices whose work the host does.
void begin_recording(Stream& stream, const CaptureOptions& options);
// Device::end_capture() for the same devices.
std::shared_ptr<Graph> end_recording(Stream& stream);
// Ends a recording without its graph, after an exception. Throws nothing.
void drop_recording(Stream& stream) noexcept;

// The recording of this thread's current stream for the device; null if there is none.
inline Recording* current_recording(const Device& device) { return current_stream(device).recording(); }

// To be called after the memory was written to, or after work that writes to it was recorded (Buffer::version).
void count_write(const BufferPtr& buffer);
// The same of memory of the host that a device writes to, whose work may be recorded.
void count_write_by_graph(const BufferPtr& buffer, const Device& device);
// Throws UsageError if this thread's work is being recorded: `api` would need results that do not exist yet.
void refuse_recording(const Device& device, std::string_view api, std::string_view help);

}  // namespace weft::runtime
