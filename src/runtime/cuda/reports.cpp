#include "runtime/cuda/reports.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "runtime/cuda/relaxed_capture.h"
#include "runtime/pinned.h"
#include "runtime/print.h"
#include "runtime/waiting.h"

namespace weft::runtime {

namespace {

void fill(Fault& to, const CudaFault& from, const Report& report) {
    if (from.claimed == 0) return;
    to.claimed = 1;
    to.kind = from.kind;
    to.index = from.index;
    to.size = from.size;
    to.axis = from.axis;
    to.site = from.site;
    std::int64_t thread = from.thread;
    for (int axis = kMaxDims - 1; axis >= 0; --axis) {
        const std::int64_t extent = std::max<std::int64_t>(1, report.grid.dim[axis]);
        to.thread[axis] = thread % extent;
        thread /= extent;
    }
    if (static_cast<FaultKind>(from.kind) != FaultKind::raised) return;
    set_message(to, format_text(report.formats->at(static_cast<std::size_t>(from.format) - 1), from.arguments,
                                kMostRaisedArguments));
}

// Each record is the number of the format, from 1 on, the number of arguments, and the arguments. If a record did not
// fit, it and all later ones are missing: unwritten words are 0.
void print(const std::vector<std::int64_t>& words, bool is_cut, const Report& report) {
    for (std::size_t at = 0; at + 2 <= words.size();) {
        const auto format = static_cast<std::size_t>(words[at]), count = static_cast<std::size_t>(words[at + 1]);
        if (format == 0) break;
        append_print(format_text(report.formats->at(format - 1), words.data() + at + 2, count));
        at += 2 + count;
    }
    if (is_cut)
        append_print("(the launch printed more than the " + std::to_string(8 * kCudaPrintWords) +
                     " bytes that are kept of one launch on a CUDA device)\n");
}

// Stores faults to the requested places and prints the text. Returns the number of leading bytes that may not be 0.
std::int64_t read(const Report& report, ReportSource& source) {
    CudaReports found;
    source.read(&found, report.data, sizeof found);
    if (report.fault) fill(*report.fault, found.fault, report);
    if (report.not_finite) fill(*report.not_finite, found.not_finite, report);
    constexpr auto kHead = static_cast<std::int64_t>(sizeof found);
    if (found.printed == 0) return found.fault.claimed || found.not_finite.claimed ? kHead : 0;
    std::vector<std::int64_t> words(static_cast<std::size_t>(std::min(found.printed, kCudaPrintWords)));
    const auto bytes = static_cast<std::int64_t>(8 * words.size());
    source.read(words.data(), static_cast<const std::byte*>(report.data) + kHead, bytes);
    print(words, found.printed > kCudaPrintWords, report);
    return kHead + bytes;
}

}  // namespace

void PendingReports::add(PendingReport report) {
    const std::lock_guard lock(mutex_);
    pending_.push_back(std::move(report));
}

std::unique_ptr<CudaMemory> PendingReports::take_memory(std::int64_t size_bytes) {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(free_, size_bytes, &CudaMemory::size_bytes);
    if (found == free_.end()) return nullptr;
    std::unique_ptr<CudaMemory> memory = std::move(*found);
    free_.erase(found);
    return memory;
}

void PendingReports::keep(std::unique_ptr<CudaMemory> memory) {
    constexpr std::int64_t kMostBytes = 16 << 20;
    std::int64_t bytes = memory->size_bytes();
    for (const std::unique_ptr<CudaMemory>& each : free_) bytes += each->size_bytes();
    if (bytes <= kMostBytes) free_.push_back(std::move(memory));
}

void PendingReports::drop() {
    const std::lock_guard lock(mutex_);
    free_.clear();
    pending_.clear();
    graphs_.clear();
}

void PendingReports::forget_faults() {
    const std::lock_guard lock(mutex_);
    for (PendingReport& each : pending_)
        if (each.owner == std::this_thread::get_id()) each.report.fault = each.report.not_finite = nullptr;
}

void PendingReports::add(std::shared_ptr<GraphReports> graph) {
    const std::lock_guard lock(mutex_);
    if (std::ranges::find(graphs_, graph) == graphs_.end()) graphs_.push_back(std::move(graph));
}

// Precondition: the stream's work is done, so all reports have been written.
bool PendingReports::is_empty() {
    const std::lock_guard lock(mutex_);
    return pending_.empty() && graphs_.empty();
}

void PendingReports::free_kept() {
    std::vector<std::unique_ptr<CudaMemory>> kept;
    const std::lock_guard lock(mutex_);
    kept.swap(free_);
}

void PendingReports::collect(ReportSource& source, bool keeps) {
    const Uninterrupted uninterrupted;  // a signal handler may enqueue into the stream too
    // Held to the end: a thread that finds its report gone may read its Fault at once.
    const std::lock_guard lock(mutex_);
    std::ptrdiff_t done = 0;
    try {
        for (PendingReport& each : pending_) {
            const std::int64_t said = read(each.report, source);
            ++done;
            if (!keeps) continue;
            if (said > 0) source.put_clear(each.report.data, said);
            keep(std::move(each.memory));
        }
    } catch (...) {
        pending_.erase(pending_.begin(), pending_.begin() + done);
        throw;
    }
    pending_.clear();
    for (const std::shared_ptr<GraphReports>& graph : graphs_) graph->collect(source);
    graphs_.clear();
}

// ---- of graphs ----

void GraphReports::add(Report report, std::shared_ptr<void> memory) {
    const std::lock_guard lock(mutex_);
    reports_.push_back(std::move(report));
    memory_.push_back(std::move(memory));
}

void GraphReports::collect(ReportSource& source) {
    const Uninterrupted uninterrupted;
    const std::lock_guard lock(mutex_);
    bool any = false;
    for (const Report& report : reports_) {
        const std::int64_t said = read(report, source);
        if (said > 0) source.put_clear(report.data, said);
        any |= said > 0;
    }
    if (any) source.wait();
    for (const std::function<void()>& bring : brings_) bring();
}

void GraphReports::forget_faults() {
    const std::lock_guard lock(mutex_);
    for (Report& report : reports_) report.fault = report.not_finite = nullptr;
    brings_.clear();
}

void GraphReports::add(std::function<void()> bring) {
    const std::lock_guard lock(mutex_);
    brings_.push_back(std::move(bring));
}

// ---- bytes that a graph leaves ----

LeftBytes::LeftBytes(std::int64_t size_bytes) {
    const WithoutRecording without;
    const RelaxedCapture relaxed;
    memory_ = static_cast<std::byte*>(allocate_pinned(kHead + size_bytes));
    std::memset(memory_, 0, kHead);
}

LeftBytes::~LeftBytes() {
    const RelaxedCapture relaxed;
    free_pinned(memory_);
}

// The mark goes first: the bytes of the next launch have one of their own.
bool LeftBytes::take() { return std::atomic_ref(*reinterpret_cast<std::int64_t*>(memory_)).exchange(0) != 0; }

}  // namespace weft::runtime
