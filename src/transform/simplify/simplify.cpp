#include "transform/simplify/simplify.h"

#include "transform/simplify/simplifier.h"

namespace weft::transform {

void simplify(ir::Function& function) {
    // Each round can open the way for the next (a folded condition frees an arm, which makes a loop trivial). Programs
    // that need more rounds than these are rare and lose only a little speed.
    constexpr int kMostRounds = 6;
    for (int round = 0; round < kMostRounds; ++round) {
        const bool changed = Simplifier(function).run();
        if (!(remove_dead(function) | changed)) return;
    }
}

}  // namespace weft::transform
