// into += what, for the floats of any element. If several elements of the destination share memory, one thread adds all
// of them in order.
#include "devlib/cuda/numbers.h"
#include "devlib/cuda/primitives.h"
#include "devlib/cuda/threads.h"

namespace weft::devlib {

extern "C" {

[[clang::device_kernel]] void weft_add(AddPlan plan) {
    for (std::int64_t at = thread_index(); at < plan.elements.count; at += threads()) {
        const Strided::Pair pair = plan.elements.pair(at);
        for (int kind = 0; kind < plan.kinds; ++kind) {
            const AddPlan::Floats& floats = plan.floats[kind];
            const auto scalar = static_cast<Scalar>(floats.scalar);
            for (std::int64_t i = 0; i < floats.count; ++i) {
                char* const into = pair.to + floats.offset + i * floats.bytes;
                const char* const what = pair.from + floats.offset + i * floats.bytes;
                // At the precision of the numbers, but at least single.
                if (scalar == Scalar::f64)
                    *reinterpret_cast<double*>(into) += *reinterpret_cast<const double*>(what);
                else
                    store_number(
                        static_cast<double>(load_number<float>(scalar, into) + load_number<float>(scalar, what)),
                        scalar, scalar, into);
            }
        }
    }
}

}  // extern "C"

}  // namespace weft::devlib
