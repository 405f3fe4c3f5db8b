// Blosc, a library of compressors, where the machine has it: files of grids may be compressed by it. It is looked for
// when such a file is met, so that Weft needs it neither to be built nor to run.
#pragma once

#include <cstddef>
#include <string_view>

namespace weft::runtime {

struct Blosc {
    // As its header declares them. 0, and the size of what was compressed, if a buffer is well formed.
    int (*validate)(const void* compressed, std::size_t size, std::size_t* decompressed_size);
    // The size of what was written; 0 or less if that failed.
    int (*decompress)(const void* from, void* to, std::size_t room, int threads);
    int (*compress)(int level, int shuffle, std::size_t type_size, std::size_t size, const void* from, void* to,
                    std::size_t room, const char* compressor, std::size_t block_size, int threads);
};
// At most so many bytes are added to what cannot be compressed.
inline constexpr std::size_t kBloscOverhead = 16;

// Throws UsageError in the name of `api` where there is none.
const Blosc& blosc(std::string_view api);

}  // namespace weft::runtime
