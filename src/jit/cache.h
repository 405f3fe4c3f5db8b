// The disk cache: one file per Binary, named by its key. Safe with any number of processes: files are written under a
// temporary name and renamed; a reader sees a whole file or none. A damaged file (checksum) is removed and rebuilt.
// A folder that cannot be written, or vanishes while running, costs the caching and nothing else.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "binary/binary.h"

namespace weft::jit {

class Cache {
public:
    // Least recently used files are removed once the folder holds more than `limit_bytes`.
    explicit Cache(std::filesystem::path folder, std::uint64_t limit_bytes = std::uint64_t{1} << 30);

    std::optional<Binary> load(const Digest& key);
    // False where the folder cannot be written.
    bool store(const Binary& binary);
    void clear();
    const std::filesystem::path& folder() const { return folder_; }

private:
    void trim();
    std::filesystem::path folder_;
    std::uint64_t limit_bytes_;
};

// A folder of this compiler version below `root`, or, where that is empty, below $WARP_CACHE_PATH, else
// $XDG_CACHE_HOME/weft, else ~/.cache/weft.
std::filesystem::path cache_folder(std::filesystem::path root = {});

}  // namespace weft::jit
