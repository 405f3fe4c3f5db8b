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

void forget_fault(Report& report) {
    if (!report.late) report.fault = nullptr;
    report.not_finite = nullptr;
}

// A late fault that has been found, or null: the first one is kept, later ones are forgotten.
void add_late(const std::shared_ptr<LateFault>& found, std::shared_ptr<LateFault>& first) {
    if (!found || !found->fault.claimed || found == first) return;
    if (first)
        found->fault = {};
    else
        first = found;
}

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

ReportMemory PendingReports::take_memory(std::int64_t size_bytes, Device& device, Stream& stream, std::int64_t most) {
    constexpr std::int64_t kLine = 64, kAllocation = 1 << 16;
    size_bytes = (size_bytes + kLine - 1) / kLine * kLine;
    const auto take = [&]() -> ReportMemory {
        const auto found = std::ranges::find(free_, size_bytes, &ReportMemory::size_bytes);
        if (found == free_.end()) return {};
        ReportMemory memory = std::move(*found);
        *found = std::move(free_.back());
        free_.pop_back();
        return memory;
    };
    {
        const std::lock_guard lock(mutex_);
        if (ReportMemory memory = take(); memory.data) return memory;
    }
    const std::int64_t count = std::clamp<std::int64_t>(kAllocation / size_bytes, 1, most);
    const auto owner = std::make_shared<CudaMemory>(device, count * size_bytes, /*zeroed=*/true, stream);
    const std::lock_guard lock(mutex_);
    for (std::int64_t i = 1; i < count; ++i)
        free_.push_back({static_cast<std::byte*>(owner->data()) + i * size_bytes, size_bytes, owner});
    return {owner->data(), size_bytes, owner};
}

void PendingReports::keep(ReportMemory memory) {
    constexpr std::int64_t kMostBytes = 16 << 20;
    std::int64_t bytes = memory.size_bytes;
    for (const ReportMemory& each : free_) bytes += each.size_bytes;
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
        if (each.owner == std::this_thread::get_id()) forget_fault(each.report);
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
    std::vector<ReportMemory> kept;
    const std::lock_guard lock(mutex_);
    kept.swap(free_);
}

bool PendingReports::is_full() {
    constexpr std::size_t kMost = 1024;  // as many launches as a driver queues
    const std::lock_guard lock(mutex_);
    return pending_.size() >= kMost;
}

std::shared_ptr<LateFault> PendingReports::collect(ReportSource& source, bool keeps) {
    std::shared_ptr<LateFault> first;
    const Uninterrupted uninterrupted;  // a signal handler may enqueue into the stream too
    // Held to the end: a thread that finds its report gone may read its Fault at once.
    const std::lock_guard lock(mutex_);
    std::ptrdiff_t done = 0;
    try {
        for (PendingReport& each : pending_) {
            const std::int64_t said = read(each.report, source);
            ++done;
            add_late(each.report.late, first);
            if (!keeps) continue;
            if (said > 0) source.put_clear(each.report.data, said);
            keep(std::move(each.memory));
        }
    } catch (...) {
        pending_.erase(pending_.begin(), pending_.begin() + done);
        throw;
    }
    pending_.clear();
    for (const std::shared_ptr<GraphReports>& graph : graphs_) add_late(graph->collect(source), first);
    graphs_.clear();
    return first;
}

// ---- of graphs ----

void GraphReports::add(Report report, std::shared_ptr<void> memory) {
    const std::lock_guard lock(mutex_);
    reports_.push_back(std::move(report));
    memory_.push_back(std::move(memory));
}

std::shared_ptr<LateFault> GraphReports::collect(ReportSource& source) {
    std::shared_ptr<LateFault> first;
    const Uninterrupted uninterrupted;
    const std::lock_guard lock(mutex_);
    bool any = false;
    for (const Report& report : reports_) {
        const std::int64_t said = read(report, source);
        add_late(report.late, first);
        if (said > 0) source.put_clear(report.data, said);
        any |= said > 0;
    }
    if (any) source.wait();
    for (const std::function<void()>& bring : brings_) bring();
    return first;
}

void GraphReports::forget_faults() {
    const std::lock_guard lock(mutex_);
    for (Report& report : reports_) forget_fault(report);
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
