#include "memory/address_space.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace weft::emulator {

namespace {

// As allocate_locked() rounds it up.
uint64_t stored_size(const Allocation& allocation) { return (std::max<uint64_t>(allocation.size, 1) + 7) / 4 * 4; }

}  // namespace

std::string Allocation::describe() const {
    const std::string range = std::to_string(size - padding) + " bytes at " + hexadecimal(address);
    switch (kind) {
        case Kind::Device:
            return "an allocation of " + range;
        case Kind::Variable:
            return "the variable '" + name + "' of " + range;
        case Kind::Constant:
            return "the constant '" + name + "' of " + range;
        case Kind::Pinned:
            return "pinned host memory of " + range;
        case Kind::Registered:
            return "registered host memory of " + range;
        case Kind::Heap:
            return "an allocation by malloc() in a kernel of " + range;
    }
    return range;
}

AddressSpace& AddressSpace::instance() {
    // never destroyed: threads may still run kernels while the process ends
    static AddressSpace* space = new AddressSpace;
    return *space;
}

AddressSpace::AddressSpace() {
    for (uint64_t size = uint64_t(256) << 30; size >= uint64_t(1) << 30 && !reserve(size); size /= 2) continue;
}

bool AddressSpace::reserve(uint64_t size) {
    void* range = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) return false;
    const size_t table = size / kGranule * sizeof *granules_;
    void* granules = mmap(nullptr, table, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (granules == MAP_FAILED) {
        munmap(range, size);
        return false;
    }
    base_ = reinterpret_cast<uint64_t>(range);
    size_ = size;
    // page zero has null pointers; the first granule stays unused
    granules_ = static_cast<std::atomic<Allocation*>*>(granules);
    next_ = kGranule;
    return true;
}

// The next free addresses for an allocation followed by a gap of the same size, at most 64 MiB. 0: there are none.
uint64_t AddressSpace::place(uint64_t size) {
    const uint64_t rounded = (size + kGranule - 1) / kGranule * kGranule;
    const uint64_t needed = rounded + std::min<uint64_t>(rounded, uint64_t(64) << 20);
    for (int round = 0; round < 2; ++round) {
        while (needed < size_ && next_ <= size_ - needed) {
            // the first live allocation in the way
            auto live = live_.lower_bound(base_ + next_);
            if (live != live_.begin() && std::prev(live)->second->end() > base_ + next_) --live;
            if (live == live_.end() || live->first >= base_ + next_ + needed) {
                const uint64_t address = base_ + next_;
                next_ += needed;
                return address;
            }
            next_ = (live->second->end() - base_ + 2 * kGranule - 1) / kGranule * kGranule;
        }
        next_ = kGranule;
    }
    return 0;
}

Allocation* AddressSpace::allocate(int device, uint64_t size, Allocation::Kind kind, bool zeroed) {
    const std::lock_guard lock(mutex_);
    return allocate_locked(device, size, kind, zeroed);
}

Allocation* AddressSpace::allocate_pooled(int device, uint64_t size) {
    const std::lock_guard lock(mutex_);
    const uint64_t before = held_[device];
    held_[device] = before - std::min(before, size);
    Allocation* const made = allocate_locked(device, size, Allocation::Kind::Device, /*zeroed=*/false);
    if (made)
        made->is_pooled = true;
    else
        held_[device] = before;
    return made;
}

void AddressSpace::trim_held(int device, uint64_t most) {
    const std::lock_guard lock(mutex_);
    held_[device] = std::min<uint64_t>(held_[device], most);
}

Allocation* AddressSpace::allocate_locked(int device, uint64_t size, Allocation::Kind kind, bool zeroed) {
    const uint64_t stored = std::max<uint64_t>(size, 1);
    if (size > total_ || used_[device] + held_[device] > total_ - size) return nullptr;
    const uint64_t address = place(stored);
    if (!address) return nullptr;
    auto made = std::make_unique<Allocation>();
    made->kind = kind;
    made->device = device;
    made->address = address;
    made->size = size;
    const uint64_t words = (stored + 7) / 4;
    made->data = static_cast<std::byte*>(std::calloc(words, 4));
    if (!zeroed) made->written = static_cast<uint8_t*>(std::calloc(words, 4));
    if (race_checks_) made->words = static_cast<ShadowWord*>(std::calloc(words, sizeof(ShadowWord)));
    made->complete = zeroed;
    if (!made->data || (!zeroed && !made->written) || (race_checks_ && !made->words)) {
        free_storage(*made);
        return nullptr;
    }
    used_[device] += size;
    Allocation* result = made.get();
    set_granules(*result, result);
    live_.emplace(address, std::move(made));
    return result;
}

Allocation* AddressSpace::add_host(void* memory, uint64_t size, Allocation::Kind kind, int device) {
    const std::lock_guard lock(mutex_);
    const uint64_t address = reinterpret_cast<uint64_t>(memory);
    const std::unique_lock host(host_mutex_);
    const auto next = host_.lower_bound(address);
    if (next != host_.end() && next->first < address + size) return nullptr;
    if (next != host_.begin() && std::prev(next)->second->end() > address) return nullptr;
    auto made = std::make_unique<Allocation>();
    made->kind = kind;
    made->device = device;
    made->address = address;
    made->size = size;
    made->data = static_cast<std::byte*>(memory);
    made->complete = true;
    return host_[address] = (live_[address] = std::move(made)).get();
}

int AddressSpace::share(uint64_t address) {
    const std::unique_lock alone(running);
    const std::lock_guard lock(mutex_);
    const auto found = live_.find(address);
    if (found == live_.end()) return -1;
    Allocation& allocation = *found->second;
    if (allocation.shared >= 0) return allocation.shared;
    const int file = memfd_create("emulated device memory", MFD_CLOEXEC);
    if (file < 0) return -1;
    void* data = MAP_FAILED;
    if (ftruncate(file, off_t(stored_size(allocation))) == 0)
        data = mmap(nullptr, stored_size(allocation), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (data == MAP_FAILED) {
        close(file);
        return -1;
    }
    std::memcpy(data, allocation.data, allocation.size);
    std::free(allocation.data);
    allocation.data = static_cast<std::byte*>(data);
    // Writes of other processes are not known here.
    std::free(allocation.written);
    allocation.written = nullptr;
    allocation.complete = true;
    return allocation.shared = file;
}

Allocation* AddressSpace::add_shared(int device, uint64_t size, int file) {
    const std::lock_guard lock(mutex_);
    Allocation* const made = allocate_locked(device, size, Allocation::Kind::Device, /*zeroed=*/true);
    if (!made) return nullptr;
    void* const data = mmap(nullptr, stored_size(*made), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (data == MAP_FAILED) {
        used_[device] -= size;
        set_granules(*made, nullptr);
        free_storage(*made);
        live_.erase(made->address);
        return nullptr;
    }
    std::free(made->data);
    made->data = static_cast<std::byte*>(data);
    made->shared = file;
    return made;
}

Allocation* AddressSpace::find_host(uint64_t address) const {
    const std::shared_lock lock(host_mutex_);
    auto next = host_.upper_bound(address);
    if (next == host_.begin()) return nullptr;
    Allocation* found = std::prev(next)->second;
    return address < found->end() ? found : nullptr;
}

void AddressSpace::set_granules(const Allocation& allocation, Allocation* value) {
    const uint64_t first = (allocation.address - base_) / kGranule;
    const uint64_t count = (std::max<uint64_t>(allocation.size, 1) + kGranule - 1) / kGranule;
    for (uint64_t i = 0; i < count; ++i) {
        // addresses of a forgotten allocation may belong to another already
        if (value || granules_[first + i].load(std::memory_order_relaxed) == &allocation) {
            granules_[first + i].store(value, std::memory_order_release);
        }
    }
}

void AddressSpace::free_storage(Allocation& allocation) {
    if (allocation.kind == Allocation::Kind::Registered) allocation.data = nullptr;
    if (allocation.shared >= 0) {
        munmap(allocation.data, stored_size(allocation));
        close(allocation.shared);
        allocation.shared = -1;
        allocation.data = nullptr;
    }
    std::free(allocation.data);
    std::free(allocation.written);
    std::free(allocation.words);
    allocation.data = nullptr;
    allocation.written = nullptr;
    allocation.words = nullptr;
}

// Remembers freed allocations, so that a use after free can name them.
void AddressSpace::retire(std::unique_ptr<Allocation> allocation) {
    allocation->freed = true;
    free_storage(*allocation);
    retired_.push_back(std::move(allocation));
    if (retired_.size() <= kRemembered) return;
    set_granules(*retired_.front(), nullptr);
    retired_.pop_front();
}

bool AddressSpace::release(uint64_t address, Allocation::Kind kind, int device) {
    // kernels free their own memory while they run
    std::unique_lock<std::shared_mutex> alone(running, std::defer_lock);
    if (kind != Allocation::Kind::Heap) alone.lock();
    const std::lock_guard lock(mutex_);
    const auto found = live_.find(address);
    if (found == live_.end() || found->second->kind != kind) return false;
    Allocation& allocation = *found->second;
    if (device >= 0 && allocation.device != device) return false;
    if (kind == Allocation::Kind::Pinned || kind == Allocation::Kind::Registered) {
        const std::unique_lock host(host_mutex_);
        host_.erase(address);
        free_storage(allocation);
    } else {
        used_[allocation.device] -= allocation.size;
        if (allocation.is_pooled) held_[allocation.device] += allocation.size;
        retire(std::move(found->second));
    }
    live_.erase(found);
    return true;
}

void AddressSpace::set_there(uint64_t address, bool is_there) {
    const std::unique_lock alone(running);
    const std::lock_guard lock(mutex_);
    const auto found = live_.find(address);
    if (found == live_.end()) return;
    Allocation& allocation = *found->second;
    if (is_there && allocation.written) std::memset(allocation.written, 0, allocation.size);
    if (is_there) allocation.complete = false;
    allocation.freed = !is_there;
}

void AddressSpace::set_asked(uint64_t address, uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto found = live_.find(address);
    if (found != live_.end() && bytes <= found->second->size) found->second->padding = found->second->size - bytes;
}

void AddressSpace::release_all(int device) {
    std::map<uint64_t, Allocation::Kind> all;
    {
        const std::lock_guard lock(mutex_);
        for (const auto& [address, allocation] : live_) {
            if (allocation->device == device) all[address] = allocation->kind;
        }
    }
    for (const auto& [address, kind] : all) release(address, kind);
    held_[device] = 0;
    for (int other = 0; other < kDevices; ++other) {
        for (const bool of_pool : {false, true}) set_open(of_pool, device, other, false);
        set_open(false, other, device, false);
    }
}

size_t AddressSpace::count(Allocation::Kind kind) const {
    const std::lock_guard lock(mutex_);
    size_t found = 0;
    for (const auto& [address, allocation] : live_) found += allocation->kind == kind;
    return found;
}

std::string AddressSpace::describe_near(uint64_t address) const {
    const std::lock_guard lock(mutex_);
    const auto after = live_.upper_bound(address);
    std::string text;
    if (after != live_.begin()) {
        const Allocation& before = *std::prev(after)->second;
        if (address >= before.end())
            text = std::to_string(address - before.end()) + " bytes behind " + before.describe();
    }
    if (after != live_.end() && (text.empty() || after->first - address < address - std::prev(after)->second->end())) {
        text = std::to_string(after->first - address) + " bytes before " + after->second->describe();
    }
    return text.empty() ? "there are no allocations" : text;
}

uint32_t AddressSpace::next_launch() {
    {
        const std::lock_guard lock(mutex_);
        if (launch_ < Actor::kLaunches) return ++launch_;
    }
    // same order of locks as release()
    const std::unique_lock alone(running);
    const std::lock_guard lock(mutex_);
    if (launch_ < Actor::kLaunches) return ++launch_;
    for (const auto& [address, allocation] : live_) {
        if (!allocation->words) continue;
        const uint64_t words = (allocation->size + 7) / 4;
        // Fresh zero pages: writing zeros would allocate pages for memory that no kernel has accessed.
        if (void* cleared = std::calloc(words, sizeof(ShadowWord))) {
            std::free(allocation->words);
            allocation->words = static_cast<ShadowWord*>(cleared);
        } else {
            std::memset(static_cast<void*>(allocation->words), 0, words * sizeof(ShadowWord));
        }
    }
    ++numbering_;
    return launch_ = 1;
}

void mark_written(Allocation& allocation, uint64_t address, uint64_t size) {
    if (!allocation.written || allocation.complete.load(std::memory_order_relaxed)) return;
    std::memset(allocation.written + (address - allocation.address), 1, size);
    if (size == allocation.size) allocation.complete = true;
}

}  // namespace weft::emulator
