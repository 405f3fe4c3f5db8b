#include "transform/analysis/cost/speculation.h"

namespace weft::transform {

using ir::Op;

bool is_cheap_to_speculate(const ir::Operation& operation) {
    if (!operation.regions.empty() || ir::has_effects(operation)) return false;
    switch (operation.op) {
        case Op::load:
        case Op::loaded:
        case Op::object:
        case Op::call_library:
        case Op::extract_at:
        case Op::insert_at:
        case Op::matmul:
        case Op::bit_count:
            return false;
        case Op::select:  // between arrays that exist
        case Op::extract:
            return true;
        default:
            return operation.results.empty() || !operation.result()->type.is_array();
    }
}

}  // namespace weft::transform
