#include "ir/loops.h"

namespace weft::ir {

std::optional<std::int64_t> known_trips(const Operation& loop) {
    if (loop.op != Op::for_) return std::nullopt;
    std::int64_t range[3];
    for (std::size_t i = 0; i < 3; ++i) {
        const Operation* definition = loop.operands[i]->definition;
        if (!definition || definition->op != Op::constant) return std::nullopt;
        range[i] = definition->numbers[0].i;
    }
    const auto [lo, hi, step] = range;
    if (step == 0 || (step > 0 ? lo >= hi : lo <= hi)) return 0;
    std::int64_t distance = 0;
    if (__builtin_sub_overflow(hi, lo, &distance)) return std::nullopt;
    return distance / step + (distance % step != 0 ? 1 : 0);
}

}  // namespace weft::ir
