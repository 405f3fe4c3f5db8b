// Memory that belongs to other code of the host.
#pragma once

#include <cstdint>

namespace weft::runtime {

// To be called before a probable first write to the memory: asks for huge pages if it is large enough. Its contents and
// pages that exist already stay unchanged.
void expect_first_write(void* data, std::int64_t size_bytes);

}  // namespace weft::runtime
