// parallel_range() (runtime/cpu/thread_pool.h) for any callable.
#pragma once

#include <cstdint>
#include <type_traits>

#include "runtime/cpu/thread_pool.h"

namespace weft::runtime {

template <typename Body>
void for_ranges(std::int64_t count, std::int64_t grain, Body&& body) {
    parallel_range(
        count, grain,
        [](void* state, std::int64_t begin, std::int64_t end) {
            (*static_cast<std::remove_reference_t<Body>*>(state))(begin, end);
        },
        &body);
}

}  // namespace weft::runtime
