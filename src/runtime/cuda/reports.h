// What launches on a CUDA device leave behind for the host (CudaReports): read when their stream has been synchronized.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "binary/cuda_abi.h"
#include "runtime/executable.h"

namespace weft::runtime {

class CudaDevice;
class CudaMemory;

// The text that printf makes of a format and its arguments, each 8 bytes.
std::string format_text(const std::string& format, const std::int64_t* arguments, std::size_t count);

// Of one launch.
struct Report {
    void* data;    // CudaReports, and what was printed
    Fault* fault;  // null where nobody asks
    Fault* not_finite;
    Grid grid;
    std::shared_ptr<const std::vector<std::string>> formats;
};

// Of one that is in the stream.
struct PendingReport {
    Report report;
    std::unique_ptr<CudaMemory> memory;  // of the report
    std::thread::id owner = std::this_thread::get_id();
};

// Those of the launches of a graph, which is launched again and again: what was read is cleared, and what several
// launches, or several turns of a loop, have printed meanwhile is read together.
class GraphReports {
public:
    // `memory` is that of the report, and all 0.
    void add(Report report, std::shared_ptr<void> memory);
    bool is_empty() const { return reports_.empty(); }
    void collect(CudaDevice& device, Stream& stream);
    // The graph is gone, and those who would be told with it.
    void forget_faults();

private:
    std::mutex mutex_;
    std::vector<Report> reports_;
    std::vector<std::shared_ptr<void>> memory_;
};

class PendingReports {
public:
    PendingReports();
    ~PendingReports();
    void add(PendingReport report);
    void add(std::shared_ptr<GraphReports> graph);
    // Those of launches that are done: fills the Faults, and hands on what was printed. What could not be read stays.
    void collect(CudaDevice& device, Stream& stream);
    // What they would say is lost: their stream ends.
    void drop();
    // This thread has gone on without waiting for its launches.
    void forget_faults();

private:
    std::mutex mutex_;
    std::vector<PendingReport> pending_;
    std::vector<std::shared_ptr<GraphReports>> graphs_;  // each once
};

}  // namespace weft::runtime
