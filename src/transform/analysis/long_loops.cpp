#include "transform/analysis/long_loops.h"

#include <algorithm>
#include <optional>

#include "ir/loops.h"

namespace weft::transform {

using ir::Op;
using ir::Operation;

namespace {

constexpr double kLongNs = 100'000.0;

// The rough cost of one run of the region, in nanoseconds. Empty if it has a loop without a constant trip count, or one
// that takes longer than kLongNs.
std::optional<double> short_cost(const ir::Region& region) {
    double cost = 0.0;
    for (const Operation* operation : region.operations) {
        double inner_cost = 0.0;
        for (const ir::Region* inner : operation->regions) {
            const std::optional<double> one = short_cost(*inner);
            if (!one) return {};
            inner_cost += *one;
        }
        if (operation->op == Op::for_ || operation->op == Op::while_) {
            const std::optional<std::int64_t> trips = ir::known_trips(*operation);
            if (!trips) return {};
            inner_cost = (inner_cost + 0.5) * static_cast<double>(std::max(*trips, std::int64_t{0}));
            if (inner_cost > kLongNs) return {};
        }
        cost += inner_cost + ir::op_info(operation->op).cost;
    }
    return cost;
}

}  // namespace

bool has_long_loops(const ir::Function& function) { return !short_cost(function.body); }

}  // namespace weft::transform
