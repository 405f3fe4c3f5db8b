#include "runtime/cpu/fault.h"

#include <atomic>

extern "C" void weft_fault(const weft::LaunchContext* context, std::int32_t kind, std::int64_t thread,
                           std::int64_t index, std::int64_t size, std::int32_t axis, std::int32_t site) noexcept {
    const bool is_note = kind == static_cast<std::int32_t>(weft::FaultKind::not_finite);
    weft::Fault* const fault = is_note ? context->not_finite : context->fault;
    if (fault == nullptr) return;
    // The one that moves `claimed` from 0 to 1 writes the rest; the launch reads it after its threads have been joined,
    // so that no further ordering is needed.
    std::int32_t unclaimed = 0;
    if (!std::atomic_ref(fault->claimed).compare_exchange_strong(unclaimed, 1, std::memory_order_relaxed)) return;
    for (int dimension = weft::kMaxDims - 1; dimension >= 0; --dimension) {
        const std::int64_t extent = context->dim[dimension] > 0 ? context->dim[dimension] : 1;
        fault->thread[dimension] = thread % extent;
        thread /= extent;
    }
    fault->kind = kind;
    fault->index = index;
    fault->size = size;
    fault->axis = axis;
    fault->site = site;
}
