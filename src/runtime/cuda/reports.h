// What launches on a CUDA device leave behind for the host (CudaReports): read when their stream has been synchronized.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "binary/cuda_abi.h"
#include "runtime/executable.h"

namespace weft::runtime {

class CudaDevice;
class CudaMemory;

// The text that printf makes of a format and its arguments, each 8 bytes.
std::string format_text(const std::string& format, const std::int64_t* arguments, std::size_t count);

// Of one launch that is in the stream.
struct PendingReport {
    std::unique_ptr<CudaMemory> memory;  // CudaReports, and what was printed
    Fault* fault;                        // null where nobody asks
    Fault* not_finite;
    Grid grid;
    std::shared_ptr<const std::vector<std::string>> formats;
};

class PendingReports {
public:
    PendingReports();
    ~PendingReports();
    void add(PendingReport report);
    // Those of launches that are done: fills the Faults, and hands on what was printed.
    void collect(CudaDevice& device, Stream& stream);
    // After an error: nobody will fill them.
    void drop();

private:
    std::mutex mutex_;
    std::vector<PendingReport> pending_;
};

}  // namespace weft::runtime
