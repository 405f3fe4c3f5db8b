#include "jit/disk_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

#include "jit/compiler_version.h"
#include "jit/hash.h"
#include "support/error.h"

namespace weft::jit {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kExtension = ".weft";
constexpr std::string_view kTemporaryExtension = ".tmp";
// A scan of the folder costs about a microsecond a file: done once in so many stores.
constexpr unsigned kStoresBetweenTrims = 64;
// A temporary file this old belongs to a process that died while writing it.
constexpr std::chrono::hours kTemporaryLifetime{1};

fs::path file_of(const fs::path& folder, const Digest& key) { return folder / (key.hex() + std::string(kExtension)); }

// Unique among the processes and threads that share the folder. Over a network, two processes with one number on two
// hosts differ in the clock; in a clash O_EXCL refuses the second file.
fs::path temporary_beside(const fs::path& file) {
    static std::atomic<unsigned> count{0};
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    return fs::path(file.string() + '.' + std::to_string(::getpid()) + '.' + std::to_string(now) + '.' +
                    std::to_string(count.fetch_add(1, std::memory_order_relaxed)) + std::string(kTemporaryExtension));
}

// Empty if there is no such file or it cannot be read.
std::optional<std::vector<std::byte>> read_file(const fs::path& path) {
    std::error_code error;
    if (!fs::is_regular_file(path, error)) return std::nullopt;  // opening a pipe would wait for its writer
    std::FILE* const file = std::fopen(path.c_str(), "rb");
    if (file == nullptr) return std::nullopt;
    std::vector<std::byte> bytes;
    const std::uintmax_t size = fs::file_size(path, error);
    bool is_whole = false;
    if (!error) {
        bytes.resize(size);
        is_whole = std::fread(bytes.data(), 1, bytes.size(), file) == bytes.size();
    }
    std::fclose(file);
    if (!is_whole) return std::nullopt;
    return bytes;
}

bool write_file(const fs::path& path, const std::vector<std::byte>& bytes) {
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (descriptor < 0) return false;
    std::FILE* const file = ::fdopen(descriptor, "wb");
    if (file == nullptr) {
        ::close(descriptor);
        return false;
    }
    const bool is_written = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
    return (std::fclose(file) == 0) && is_written;
}

struct Entry {
    fs::path path;
    fs::file_time_type time;
    std::uintmax_t size = 0;
};

// The cache's own files in a folder; all others are neither counted nor removed. Files that vanish during the scan were
// removed by another process, and are skipped.
std::vector<Entry> entries_of(const fs::path& folder) {
    std::vector<Entry> entries;
    std::error_code error;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
        const fs::path extension = it->path().extension();
        if (extension != kExtension && extension != kTemporaryExtension) continue;
        std::error_code vanished;
        Entry entry{it->path(), it->last_write_time(vanished), 0};
        if (!vanished) entry.size = it->file_size(vanished);
        if (!vanished) entries.push_back(std::move(entry));
    }
    return entries;
}

}  // namespace

DiskCache::DiskCache(std::filesystem::path folder, std::uint64_t limit_bytes)
    : folder_(std::move(folder)), limit_bytes_(limit_bytes) {}

std::string DiskCache::problem() const {
    struct stat status{};
    if (::stat(folder_.c_str(), &status) != 0) return "";
    if (status.st_uid != ::geteuid() && status.st_uid != 0) return "belongs to another user, who could put code there";
    if (status.st_mode & (S_IWGRP | S_IWOTH)) return "can be written by others, who could put code there";
    return "";
}

std::optional<Binary> DiskCache::load(const Digest& key) {
    if (!problem().empty()) return std::nullopt;
    const fs::path path = file_of(folder_, key);
    const auto bytes = read_file(path);
    if (!bytes) return std::nullopt;
    std::error_code ignored;  // a failed touch or removal costs a worse order of removal, or a rebuild
    try {
        Binary binary = deserialize(*bytes);
        // A file under another key's name (copied by hand, say) counts as damaged.
        if (binary.key == key) {
            fs::last_write_time(path, fs::file_time_type::clock::now(), ignored);  // used now: removed last
            return binary;
        }
    } catch (const UsageError&) {
        // Damaged: removed below, then rebuilt and stored again.
    }
    fs::remove(path, ignored);
    return std::nullopt;
}

void DiskCache::remove(const Digest& key) {
    std::error_code ignored;  // another process may have removed the file first
    if (problem().empty()) fs::remove(file_of(folder_, key), ignored);
}

bool DiskCache::store(const Binary& binary) {
    // Any failure here (no room, no permission, folder deleted this moment) costs the caching and nothing else.
    std::error_code error;
    const bool is_new = fs::create_directories(folder_, error);
    if (error) return false;
    if (is_new) fs::permissions(folder_, fs::perms::owner_all, error);
    if (error || !problem().empty()) return false;
    const fs::path path = file_of(folder_, binary.key);
    const fs::path temporary = temporary_beside(path);
    if (!write_file(temporary, serialize(binary))) {
        fs::remove(temporary, error);
        return false;
    }
    // Atomic within one folder: a reader sees the old file or the whole new one. Two writers of one key write the same.
    fs::rename(temporary, path, error);
    if (error) {
        fs::remove(temporary, error);
        return false;
    }

    static std::atomic<unsigned> stores{0};
    if (stores.fetch_add(1, std::memory_order_relaxed) % kStoresBetweenTrims == 0) trim();
    return true;
}

void DiskCache::trim() {
    std::vector<Entry> entries = entries_of(folder_);
    std::error_code ignored;  // another process may have removed a file first
    const auto oldest_temporary = fs::file_time_type::clock::now() - kTemporaryLifetime;
    std::uintmax_t total = 0;
    std::erase_if(entries, [&](const Entry& entry) {
        const bool is_temporary = entry.path.extension() == kTemporaryExtension;
        if (is_temporary && entry.time < oldest_temporary) fs::remove(entry.path, ignored);
        if (!is_temporary) total += entry.size;
        return is_temporary;
    });
    if (total <= limit_bytes_) return;
    // Down to three quarters, so that a full cache is not trimmed every time.
    std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.time < b.time; });
    for (const Entry& entry : entries) {
        if (total <= limit_bytes_ / 4 * 3) break;
        fs::remove(entry.path, ignored);
        total -= entry.size;
    }
}

void DiskCache::clear() {
    std::error_code ignored;  // another process may have removed a file first
    for (const Entry& entry : entries_of(folder_)) fs::remove(entry.path, ignored);
}

std::filesystem::path cache_folder(std::filesystem::path root) {
    const auto from_environment = [](const char* name) -> fs::path {
        const char* const value = std::getenv(name);
        return value != nullptr ? fs::path(value) : fs::path();
    };
    if (root.empty()) root = from_environment("WARP_CACHE_PATH");
    if (root.empty()) {
        root = from_environment("XDG_CACHE_HOME");
        if (root.empty() && !from_environment("HOME").empty()) root = from_environment("HOME") / ".cache";
        // Without a home (a bare container): a folder of this user in the temporary folder.
        if (root.empty()) root = fs::path("/tmp") / ("weft-" + std::to_string(::getuid()));
        root /= "weft";
    }
    return root / std::string(WEFT_COMPILER_VERSION).substr(0, 16);
}

}  // namespace weft::jit
