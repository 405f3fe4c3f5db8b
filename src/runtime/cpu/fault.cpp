#include "runtime/cpu/fault.h"

#include <atomic>

#include "runtime/print.h"

namespace {

// The record for the first caller, null for later ones. The caller that changes `claimed` from 0 to 1 writes the rest.
// The launch reads it after joining its threads, so no further ordering is needed.
weft::Fault* claim(const weft::LaunchContext* context, weft::Fault* fault, std::int64_t thread) noexcept {
    std::int32_t unclaimed = 0;
    if (fault == nullptr ||
        !std::atomic_ref(fault->claimed).compare_exchange_strong(unclaimed, 1, std::memory_order_relaxed))
        return nullptr;
    weft::thread_coordinates(*context, thread, fault->thread);
    return fault;
}

}  // namespace

void weft::thread_coordinates(const LaunchContext& context, std::int64_t thread,
                              std::int64_t (&coordinates)[kMaxDims]) {
    for (int dimension = kMaxDims - 1; dimension >= 0; --dimension) {
        const std::int64_t extent = context.dim[dimension] > 0 ? context.dim[dimension] : 1;
        coordinates[dimension] = thread % extent;
        thread /= extent;
    }
}

extern "C" void weft_fault(const weft::LaunchContext* context, std::int32_t kind, std::int64_t thread,
                           std::int64_t index, std::int64_t size, std::int32_t axis, std::int32_t site) noexcept {
    const bool is_note = kind == static_cast<std::int32_t>(weft::FaultKind::not_finite);
    weft::Fault* const fault = claim(context, is_note ? context->not_finite : context->fault, thread);
    if (fault == nullptr) return;
    fault->kind = kind;
    fault->index = index;
    fault->size = size;
    fault->axis = axis;
    fault->site = site;
}

extern "C" void weft_raise(const weft::LaunchContext* context, std::int64_t thread, std::int32_t site,
                           const char* format, const std::int64_t* words, std::int64_t count) noexcept {
    weft::Fault* const fault = claim(context, context->fault, thread);
    if (fault == nullptr) return;
    fault->kind = static_cast<std::int32_t>(weft::FaultKind::raised);
    fault->site = site;
    weft::runtime::set_message(*fault, weft::runtime::format_text(format, words, static_cast<std::size_t>(count)));
}
