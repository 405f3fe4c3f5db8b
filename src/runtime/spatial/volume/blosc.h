// Blosc, a library of compressors that files of grids may need. It is loaded when such a file is met, so that neither
// the build nor the use of Weft depends on it.
#pragma once

#include <cstddef>
#include <string_view>

namespace weft::runtime {

struct Blosc {
    // As its header declares them. Returns 0 and the decompressed size if the buffer is well formed.
    int (*validate)(const void* compressed, std::size_t size, std::size_t* decompressed_size);
    // Returns the number of written bytes; 0 or less on failure.
    int (*decompress)(const void* from, void* to, std::size_t room, int threads);
    int (*compress)(int level, int shuffle, std::size_t type_size, std::size_t size, const void* from, void* to,
                    std::size_t room, const char* compressor, std::size_t block_size, int threads);
};
// The most bytes that compression adds to incompressible data.
inline constexpr std::size_t kBloscOverhead = 16;

// Throws UsageError in the name of `api` if the library is not installed.
const Blosc& blosc(std::string_view api);

}  // namespace weft::runtime
