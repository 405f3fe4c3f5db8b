// The hash by which compiled code is addressed: BLAKE3.
#pragma once

#include <string_view>

#include "binary/binary.h"

namespace weft::jit {

Digest hash_bytes(std::string_view bytes);

}  // namespace weft::jit
