#pragma once
// The choice among tasks that could run next.
#include <cstddef>
#include <random>

namespace weft::emulator {

// The order in which tasks run: the environment variable WEFT_EMULATED_STREAMS.
struct Order {
    enum class Kind {
        Eager,   // "eager": at once
        Latest,  // not set, or 0: as late as possible; of two candidates, the later one
        Random,  // a number: random, with this seed
    };
    Kind kind = Kind::Latest;
    std::mt19937_64 random;

    size_t below(size_t count) { return count < 2 ? 0 : size_t(random() % count); }
    bool coin() { return kind == Kind::Random && random() % 2 == 0; }
};

}  // namespace weft::emulator
