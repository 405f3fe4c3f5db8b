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
    std::shared_ptr<LateFault> late;  // owns `fault`; null if the launch's caller does
};

// Memory of one report: a part of an allocation for several.
struct ReportMemory {
    void* data = nullptr;
    std::int64_t size_bytes = 0;
    std::shared_ptr<CudaMemory> owner;
};

// The report of a launch that may not be done.
struct PendingReport {
    Report report;
    ReportMemory memory;
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
    // Returns the first late fault, null if there is none; later ones are forgotten.
    std::shared_ptr<LateFault> collect(ReportSource& source);
    // To be called when the graph is destroyed: the receivers of its faults, and the arrays, are gone too. Late faults
    // of its launches are still found.
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
    // Memory of so many bytes, all 0: that of an earlier report, or a part of a new allocation of `stream`, for `most`
    // reports at most. Launches that are waited for now and then need no allocation.
    ReportMemory take_memory(std::int64_t size_bytes, Device& device, Stream& stream, std::int64_t most);
    // Reads the reports of finished launches: fills the Faults, and forwards printed text. Reports that could not be
    // read stay. `keeps`: their memory is kept for later ones. Returns the first late fault, null if there is none;
    // later ones are forgotten.
    std::shared_ptr<LateFault> collect(ReportSource& source, bool keeps);
    // Whether so many launches have not been read that the next one should wait for them.
    bool is_full();
    bool is_empty();
    void free_kept();
    // Discards all reports: their stream ends.
    void drop();
    // This thread continues without having waited for its launches: their faults are not stored any more.
    void forget_faults();

private:
    void keep(ReportMemory memory);

    std::mutex mutex_;
    std::vector<PendingReport> pending_;
    std::vector<ReportMemory> free_;
    std::vector<std::shared_ptr<GraphReports>> graphs_;  // without duplicates
};

}  // namespace weft::runtime
