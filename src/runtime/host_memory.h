// Memory of the host that somebody else has allocated.
#pragma once

#include <cstdint>

namespace weft::runtime {

// It is about to be written, for the first time most likely: asks for huge pages, where it is large enough for some.
// What lies there, and pages that are there already, stay as they are.
void expect_first_write(void* data, std::int64_t size_bytes);

}  // namespace weft::runtime
