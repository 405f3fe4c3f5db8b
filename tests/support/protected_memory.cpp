// Memory that the host cannot touch: pages without access, opened only while the device's own work runs. It stands in
// for a GPU's. Code that reads or writes it in place is recorded, with the calls that led there, and goes on.
#include <execinfo.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <vector>

#include "runtime/cpu/memory_hooks.h"

namespace {

constexpr std::size_t kArenaBytes = std::size_t{1} << 38;  // of addresses; memory is taken as it is written
constexpr std::size_t kLeastBytes = 64;
constexpr std::int64_t kGivenBack = 1 << 21;  // freed blocks from here on keep no memory, and no page tables
constexpr int kMostFrames = 24, kMostFaults = 16;

struct Fault {
    void* frames[kMostFrames];
    int count;
};

struct Arena {
    std::mutex mutex;
    std::byte* begin = nullptr;
    std::size_t used = 0;
    std::vector<void*> freed[64];  // by the power of two that is their size
    int open = 0;
    // Written by the signal handler: the thread that it interrupts is inside no function of this file.
    Fault faults[kMostFaults];
    volatile int fault_count = 0;
    struct sigaction before;
};

Arena& arena() {
    static auto* const the_arena = new Arena;
    return *the_arena;
}

void protect(int protection) {
    if (arena().used > 0) mprotect(arena().begin, arena().used, protection);
}

int power_for(std::int64_t size_bytes) {
    const auto size = static_cast<std::size_t>(size_bytes);
    return std::bit_width(std::bit_ceil(size < kLeastBytes ? kLeastBytes : size)) - 1;
}

void on_fault(int signal, siginfo_t* information, void*) {
    Arena& memory = arena();
    auto* const address = static_cast<std::byte*>(information->si_addr);
    if (address < memory.begin || address >= memory.begin + kArenaBytes) {
        sigaction(signal, &memory.before, nullptr);  // not ours: it happens again, and is theirs
        return;
    }
    if (memory.fault_count < kMostFaults) {
        Fault& fault = memory.faults[memory.fault_count];
        fault.count = backtrace(fault.frames, kMostFrames);
    }
    memory.fault_count = memory.fault_count + 1;
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t offset = static_cast<std::size_t>(address - memory.begin) / page * page;
    mprotect(memory.begin + offset, page, PROT_READ | PROT_WRITE);
}

void* allocate(std::int64_t size_bytes) {
    Arena& memory = arena();
    const std::lock_guard lock(memory.mutex);
    const int power = power_for(size_bytes);
    if (auto& freed = memory.freed[power]; !freed.empty()) {
        void* const data = freed.back();
        freed.pop_back();
        if (memory.open > 0 && size_bytes >= kGivenBack) protect(PROT_READ | PROT_WRITE);
        return data;
    }
    const std::size_t size = std::size_t{1} << power;
    if (2 * size > kArenaBytes - memory.used) return nullptr;
    memory.used = (memory.used + size - 1) / size * size;  // whole pages, if it is one or more
    void* const data = memory.begin + memory.used;
    memory.used += size;
    if (memory.open > 0) protect(PROT_READ | PROT_WRITE);
    return data;
}

void release(void* data, std::int64_t size_bytes) {
    Arena& memory = arena();
    const std::lock_guard lock(memory.mutex);
    const int power = power_for(size_bytes);
    if (size_bytes >= kGivenBack)
        mmap(data, std::size_t{1} << power, PROT_NONE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    memory.freed[power].push_back(data);
}

void open() {
    Arena& memory = arena();
    const std::lock_guard lock(memory.mutex);
    if (memory.open++ == 0) protect(PROT_READ | PROT_WRITE);
}

void close() {
    Arena& memory = arena();
    const std::lock_guard lock(memory.mutex);
    if (--memory.open == 0) protect(PROT_NONE);
}

}  // namespace

// The memory, to be given to a device. Null if there are no addresses for it.
extern "C" const weft::runtime::CpuMemory* protected_memory() {
    static const weft::runtime::CpuMemory memory{allocate, release, open, close};
    Arena& self = arena();
    void* const mapped = mmap(nullptr, kArenaBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) return nullptr;
    self.begin = static_cast<std::byte*>(mapped);
    void* frame;
    backtrace(&frame, 1);  // loads what it needs, which a signal handler must not do
    struct sigaction action = {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGSEGV, &action, &self.before);
    return &memory;
}

// How often this memory was touched from outside since the last call.
extern "C" int take_faults() {
    Arena& memory = arena();
    const int count = memory.fault_count;
    memory.fault_count = 0;
    return count;
}

// Stores the addresses of the calls that led to one of them, innermost first; returns their number.
extern "C" int fault_frames(int fault, void** frames, int most) {
    if (fault >= kMostFaults) return 0;
    const Fault& found = arena().faults[fault];
    const int count = found.count < most ? found.count : most;
    std::memcpy(frames, found.frames, static_cast<std::size_t>(count) * sizeof(void*));
    return count;
}
