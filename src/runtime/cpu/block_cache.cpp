#include "runtime/cpu/block_cache.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "runtime/host_memory.h"

namespace weft::runtime {
namespace {

constexpr std::int64_t kKiB = 1024;
constexpr std::int64_t kMiB = 1024 * kKiB;
constexpr std::int64_t kSmallLimit = kKiB;      // multiples of 64 bytes up to here
constexpr std::int64_t kMappedLimit = kMiB;     // the C library up to here, mmap above
constexpr std::int64_t kKeptLimit = 64 * kMiB;  // above, never kept
constexpr std::int64_t kHugePage = 2 * kMiB;
constexpr int kSmallClasses = static_cast<int>(kSmallLimit / kArrayAlignment);
// Four classes in each power of two from 1 KiB to 64 MiB.
constexpr int kClasses = kSmallClasses + 4 * (std::bit_width(std::uint64_t{kKeptLimit / kSmallLimit}) - 1);

struct SizeClass {
    int index = -1;  // -1: not kept
    std::int64_t size_bytes = 0;
};

std::int64_t round_up(std::int64_t value, std::int64_t step) { return (value + step - 1) / step * step; }

SizeClass size_class(std::int64_t size) {
    if (size <= kSmallLimit) {
        std::int64_t rounded = round_up(size, kArrayAlignment);
        return {static_cast<int>(rounded / kArrayAlignment) - 1, rounded};
    }
    if (size > kKeptLimit) return {-1, round_up(size, sysconf(_SC_PAGESIZE))};
    // size lies in (2^p, 2^(p+1)]; the classes there are 2^p + k * 2^(p-2), k = 1..4.
    int power = std::bit_width(static_cast<std::uint64_t>(size - 1)) - 1;
    std::int64_t base = std::int64_t{1} << power;
    std::int64_t quarter = base / 4;
    std::int64_t k = (size - base + quarter - 1) / quarter;
    int first = kSmallClasses + 4 * (power - (std::bit_width(std::uint64_t{kSmallLimit}) - 1));
    return {first + static_cast<int>(k) - 1, base + k * quarter};
}

// Whole pages from the system. From 2 MiB on they start at a huge page's border. That saves most page faults of the
// first touch, and most address translation afterwards.
void* map_pages(std::int64_t size) {
    bool huge = size >= kHugePage;
    auto length = static_cast<std::size_t>(huge ? size + kHugePage : size);
    void* mapped = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) return nullptr;
    if (!huge) return mapped;
    auto address = reinterpret_cast<std::uintptr_t>(mapped);
    std::uintptr_t aligned = (address + kHugePage - 1) / kHugePage * kHugePage;
    if (aligned > address) munmap(mapped, aligned - address);
    std::uintptr_t end = aligned + static_cast<std::uintptr_t>(size);
    if (address + length > end) munmap(reinterpret_cast<void*>(end), address + length - end);
    expect_first_write(reinterpret_cast<void*>(aligned), size);
    return reinterpret_cast<void*>(aligned);
}

Block from_system(std::int64_t size) {
    if (size > kMappedLimit) return {map_pages(size), true};
    return {std::aligned_alloc(kArrayAlignment, static_cast<std::size_t>(size)), false};
}

void to_system(void* data, std::int64_t size) {
    if (size > kMappedLimit) {
        munmap(data, static_cast<std::size_t>(size));
    } else {
        std::free(data);
    }
}

// One lock for all classes: it is held for some nanoseconds, and one lock is easy to keep consistent across fork(). The
// kept blocks of a class form a list with its links in the blocks, so that freeing never allocates.
struct Cache {
    std::mutex lock;
    void* kept[kClasses] = {};
    std::int64_t kept_bytes = 0;
    std::int64_t limit_bytes = 256 * kMiB;
};

void* next_block(void* block) {
    void* next;
    std::memcpy(&next, block, sizeof next);
    return next;
}

// Never destroyed: arrays may be freed while the process exits.
Cache& cache() {
    static Cache* instance = [] {
        // If another thread held the lock during a fork, the child would wait for it for ever.
        pthread_atfork([] { cache().lock.lock(); }, [] { cache().lock.unlock(); }, [] { cache().lock.unlock(); });
        return new Cache;
    }();
    return *instance;
}

std::int64_t class_bytes(int index) {
    if (index < kSmallClasses) return (index + 1) * kArrayAlignment;
    int step = index - kSmallClasses;
    std::int64_t base = kSmallLimit << (step / 4);
    return base + (step % 4 + 1) * (base / 4);
}

}  // namespace

Block take_block(std::int64_t size_bytes) {
    SizeClass wanted = size_class(size_bytes);
    if (wanted.index >= 0) {
        Cache& c = cache();
        std::lock_guard guard(c.lock);
        if (void* data = c.kept[wanted.index]) {
            c.kept[wanted.index] = next_block(data);
            c.kept_bytes -= wanted.size_bytes;
            return {data, false};
        }
    }
    Block block = from_system(wanted.size_bytes);
    if (!block.data) {
        trim_blocks();
        block = from_system(wanted.size_bytes);
    }
    return block;
}

void give_block(void* data, std::int64_t size_bytes) {
    SizeClass given = size_class(size_bytes);
    if (given.index >= 0) {
        Cache& c = cache();
        std::lock_guard guard(c.lock);
        if (c.kept_bytes + given.size_bytes <= c.limit_bytes) {
            std::memcpy(data, &c.kept[given.index], sizeof(void*));
            c.kept[given.index] = data;
            c.kept_bytes += given.size_bytes;
            return;
        }
    }
    to_system(data, given.size_bytes);
}

void expect_first_write([[maybe_unused]] void* data, [[maybe_unused]] std::int64_t size_bytes) {
#ifdef MADV_HUGEPAGE
    if (size_bytes < kHugePage) return;
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE)),
               address = reinterpret_cast<std::uintptr_t>(data);
    const std::uintptr_t begin = (address + page - 1) / page * page;
    const std::uintptr_t end = (address + static_cast<std::uintptr_t>(size_bytes)) / page * page;
    madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);  // a failure only costs speed
#endif
}

void trim_blocks() {
    Cache& c = cache();
    std::lock_guard guard(c.lock);
    for (int index = 0; index < kClasses; ++index) {
        while (void* data = c.kept[index]) {
            c.kept[index] = next_block(data);
            to_system(data, class_bytes(index));
        }
    }
    c.kept_bytes = 0;
}

std::int64_t kept_block_bytes() {
    std::lock_guard guard(cache().lock);
    return cache().kept_bytes;
}

void set_kept_block_limit(std::int64_t size_bytes) {
    std::lock_guard guard(cache().lock);
    cache().limit_bytes = size_bytes;
}

}  // namespace weft::runtime
