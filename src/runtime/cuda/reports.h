// Reports of launches on a CUDA device (CudaReports): read when their stream has been synchronized.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "binary/cuda_abi.h"
#include "runtime/cuda/memory.h"
#include "runtime/executable.h"

namespace weft::runtime {

// Access to the memory of reports, in the order of a stream whose work is done.
class ReportSource {
public:
    virtual void read(void* to, const void* from, std::int64_t size_bytes) = 0;  // done when it returns
    virtual void put_clear(void* data, std::int64_t size_bytes) = 0;
    virtual void wait() = 0;

protected:
    ~ReportSource() = default;
};

// The report of one launch.
struct Report {
    void* data;    // CudaReports, and the printed data
    Fault* fault;  // null if not wanted
    Fault* not_finite;
    Grid grid;
    std::shared_ptr<const std::vector<std::string>> formats;
};

// The report of a launch that may not be done.
struct PendingReport {
    Report report;
    std::unique_ptr<CudaMemory> memory;  // of the report
    std::thread::id owner = std::this_thread::get_id();
};

// Bytes that a node of a graph leaves in pinned memory, and a mark beside them.
class LeftBytes {
public:
    // Throws UsageError if there is no more pinned memory.
    explicit LeftBytes(std::int64_t size_bytes);
    ~LeftBytes();
    LeftBytes(const LeftBytes&) = delete;
    LeftBytes& operator=(const LeftBytes&) = delete;

    std::byte* data() const { return memory_ + kHead; }
    // 8 bytes, which the node sets to another number than 0 after the bytes.
    std::byte* mark() const { return memory_; }
    // After the graph's stream has been waited for: whether a launch has left bytes since the last call.
    bool take();

private:
    static constexpr std::int64_t kHead = 64;
    std::byte* memory_;
};

// The reports of a graph's launches. A graph is launched repeatedly: a report is cleared when it is read, and the
// output of several launches, or of several iterations of a loop, is read together.
class GraphReports {
public:
    // `memory` is that of the report, and all 0.
    void add(Report report, std::shared_ptr<void> memory);
    // `bring` takes bytes of the graph to an array of the host: in the order in which they are added.
    void add(std::function<void()> bring);
    bool is_empty() const { return reports_.empty() && brings_.empty(); }
    bool brings_bytes() const { return !brings_.empty(); }
    void collect(ReportSource& source);
    // To be called when the graph is destroyed: the receivers of its faults, and the arrays, are gone too.
    void forget_faults();

private:
    std::mutex mutex_;
    std::vector<Report> reports_;
    std::vector<std::shared_ptr<void>> memory_;
    std::vector<std::function<void()>> brings_;
};

class PendingReports {
public:
    void add(PendingReport report);
    void add(std::shared_ptr<GraphReports> graph);
    // Memory of an earlier report of this size, all 0; null if there is none. Launches that wait for each other, or are
    // waited for now and then, need no allocation.
    std::unique_ptr<CudaMemory> take_memory(std::int64_t size_bytes);
    // Reads the reports of finished launches: fills the Faults, and forwards printed text. Reports that could not be
    // read stay. `keeps`: their memory is kept for later ones.
    void collect(ReportSource& source, bool keeps);
    bool is_empty();
    void free_kept();
    // Discards all reports: their stream ends.
    void drop();
    // This thread continues without having waited for its launches: their faults are not stored any more.
    void forget_faults();

private:
    void keep(std::unique_ptr<CudaMemory> memory);

    std::mutex mutex_;
    std::vector<PendingReport> pending_;
    std::vector<std::unique_ptr<CudaMemory>> free_;
    std::vector<std::shared_ptr<GraphReports>> graphs_;  // without duplicates
};

}  // namespace weft::runtime
