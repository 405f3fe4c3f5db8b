// Carries out plans of copies (runtime/copy_plan.h) on the host's threads: nearly every one ends as memcpy or as one
// tight loop.
#pragma once

#include "runtime/copy_plan.h"

namespace weft::runtime {

void run_copy(const CopyPlan& plan);
void run_clear(void* data, std::int64_t size_bytes);

}  // namespace weft::runtime
