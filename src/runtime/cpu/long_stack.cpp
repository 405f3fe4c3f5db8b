#include "runtime/cpu/long_stack.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <limits>
#include <new>
#include <string>

namespace weft::runtime {
namespace {

constexpr std::int64_t kInMemory = std::int64_t{1} << 28;  // the rest is in a file
constexpr std::int64_t kKept = std::int64_t{1} << 24;      // kept by an idle worker
constexpr std::int64_t kMost = std::int64_t{1} << 40;
constexpr std::int64_t kMostRows = std::numeric_limits<std::int32_t>::max();

// Number of this process, changed by each fork: parent and child would write to the same file.
std::atomic<int> process{0};

int this_process() {
    static const int registered = pthread_atfork(nullptr, nullptr, [] { ++process; });
    return registered == 0 ? process.load(std::memory_order_relaxed) : -1;
}

struct Spill {
    int file = -1;
    std::int64_t room = 0;  // size limit of one file, in bytes
};

// Opens a file that is removed when it is closed. Each takes at most a quarter of the free space.
Spill open_spill() {
    const char* chosen = std::getenv("TMPDIR");
    for (const char* folder : {chosen ? chosen : "", "/var/tmp", "/tmp"}) {
        if (!*folder) continue;
        struct statvfs system{};
        const int file = ::open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        if (file < 0) continue;
        if (::fstatvfs(file, &system) == 0)
            return {file, static_cast<std::int64_t>(system.f_bavail) * static_cast<std::int64_t>(system.f_frsize) / 4};
        ::close(file);
    }
    return {};
}

}  // namespace

LongStack::~LongStack() { release(); }

void LongStack::release() {
    if (begin_) ::munmap(begin_, static_cast<std::size_t>(size_));
    if (file_ >= 0) ::close(file_);
    begin_ = nullptr;
    file_ = -1;
}

void LongStack::reserve() {
    Spill spill = open_spill();
    std::int64_t size = kInMemory + std::min(kMost, spill.room / kInMemory * kInMemory);
    void* memory = MAP_FAILED;
    // The limits of a process may allow less.
    while (true) {
        memory = ::mmap(nullptr, static_cast<std::size_t>(size), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory != MAP_FAILED || size <= kKept) break;
        size /= 2;
    }
    if (memory == MAP_FAILED) {
        if (spill.file >= 0) ::close(spill.file);
        return;
    }
    begin_ = static_cast<std::byte*>(memory);
    process_ = this_process();
    memory_size_ = std::min(size, kInMemory);
    size_ = memory_size_;
    file_ = spill.file;
    const std::int64_t beyond = size - memory_size_;
    const auto map_file = [&] {
        return ::ftruncate(file_, beyond) == 0 &&
               ::mmap(begin_ + memory_size_, static_cast<std::size_t>(beyond), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_FIXED, file_, 0) != MAP_FAILED;
    };
    if (beyond > 0 && file_ >= 0 && map_file())
        size_ = size;
    else if (beyond > 0)
        ::munmap(begin_ + memory_size_, static_cast<std::size_t>(beyond));
}

void* LongStack::open(std::int64_t row_bytes, std::int64_t& rows) {
    if (begin_ && process_ != this_process()) release();
    if (!begin_) reserve();
    if (!begin_) throw std::bad_alloc();
    rows = std::min(size_ / row_bytes, kMostRows);
    return begin_;
}

void LongStack::trim() {
    if (!begin_) return;
    if (memory_size_ > kKept) ::madvise(begin_ + kKept, static_cast<std::size_t>(memory_size_ - kKept), MADV_DONTNEED);
    const std::int64_t in_file = size_ - memory_size_;
    if (in_file == 0 || ::lseek(file_, 0, SEEK_DATA) < 0) return;
    // Truncating the file frees its blocks and the pages that are mapped from it.
    if (::ftruncate(file_, 0) != 0 || ::ftruncate(file_, in_file) != 0) size_ = memory_size_;
}

}  // namespace weft::runtime
