// The disk cache: one file per Binary, named by its key. Safe with any number of processes: files are written under a
// temporary name and renamed, so that a reader sees a whole file or none. A damaged file (checksum) is removed and
// rebuilt. A folder that cannot be written, or vanishes at run time, costs the caching and nothing else.
//
// The files are code that gets executed. So folder and files are accessible to their owner only, and a folder that
// other users can write to is not used.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "binary/binary.h"

namespace weft::jit {

class DiskCache {
public:
    // Least recently used files are removed once the folder holds more than `limit_bytes`.
    explicit DiskCache(std::filesystem::path folder, std::uint64_t limit_bytes = std::uint64_t{1} << 30);

    std::optional<Binary> load(const Digest& key);
    void remove(const Digest& key);
    // False if the folder is not used, or cannot be written.
    bool store(const Binary& binary);
    // The reason why the folder is not used, as "belongs to another user ..."; "" if it is used, or does not exist yet.
    std::string problem() const;
    void clear();
    const std::filesystem::path& folder() const { return folder_; }

private:
    void trim();
    std::filesystem::path folder_;
    std::uint64_t limit_bytes_;
};

// A folder of this compiler version below `root`. If that is empty, below $WARP_CACHE_PATH, else $XDG_CACHE_HOME/weft,
// else ~/.cache/weft, else a folder of the user in /tmp.
std::filesystem::path cache_folder(std::filesystem::path root = {});

}  // namespace weft::jit
