// Matrices of floats of 8 and 16 bits become floats of 32 bits, and products of these are rounded to them.
#include "devlib/cuda/numbers.h"
#include "devlib/cuda/primitives.h"
#include "devlib/cuda/threads.h"

namespace weft::devlib {

namespace {

template <typename Body>
void for_each_number(const MatrixConversion& plan, const Body& body) {
    for (std::int64_t at = thread_index(); at < plan.batches * plan.rows * plan.columns; at += threads()) {
        const std::int64_t line = at / plan.columns, batch = line / plan.rows;
        char* const place = plan.small.data + batch * plan.small.batch + (line - batch * plan.rows) * plan.small.row +
                            (at - line * plan.columns) * plan.small.column;
        body(place, plan.wide + at);
    }
}

}  // namespace

extern "C" {

[[clang::device_kernel]] void weft_widen_matrix(MatrixConversion plan) {
    const auto scalar = static_cast<Scalar>(plan.scalar);
    for_each_number(plan, [&](char* small, float* wide) { *wide = load_number<float>(scalar, small); });
}

[[clang::device_kernel]] void weft_narrow_matrix(MatrixConversion plan) {
    const auto scalar = static_cast<Scalar>(plan.scalar);
    for_each_number(plan, [&](char* small, float* wide) { store_number(*wide, scalar, scalar, small); });
}

}  // extern "C"

}  // namespace weft::devlib
