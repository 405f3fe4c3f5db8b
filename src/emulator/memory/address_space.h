#pragma once
// The memory of the emulated devices.
//
// Device addresses are a reserved range without access, so that the host faults where it touches one. What an
// allocation holds lies elsewhere. Each allocation begins at a granule of its own, and at least as much again is left
// free behind it: an access that misses an allocation hits nothing. Addresses are not used again until the range is
// used up; so memory that was freed is known.
//
// One space serves all devices of the process, as with unified addressing.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>

#include "emulator/memory/fault.h"
#include "emulator/memory/shadow.h"

namespace weft::emulator {

struct Allocation {
    enum class Kind : uint8_t { Device, Variable, Constant, Pinned, Registered, Heap };
    Kind kind = Kind::Device;
    int device = 0;
    uint64_t address = 0, size = 0;
    uint64_t padding = 0;               // bytes at its end that nobody asked for: for accesses of whole words only
    std::byte* data = nullptr;          // nullptr once it is freed
    uint8_t* written = nullptr;         // for each byte whether it was ever written; nullptr: all were
    ShadowWord* words = nullptr;        // for each four bytes; nullptr: races are not looked for
    std::atomic<bool> complete{false};  // all bytes were written
    std::atomic<bool> freed{false};
    bool is_pooled = false;  // a pool gave it
    std::string name;        // of a variable

    uint64_t end() const { return address + size; }
    // How far an access of so many bytes may go.
    uint64_t size_for(uint32_t bytes) const { return bytes < 4 ? size - padding : size; }
    // "an allocation of 4096 bytes at 0x…"
    std::string describe() const;
};

class AddressSpace {
public:
    static AddressSpace& instance();

    // Memory of a device. nullptr: not enough, of the device or of the host. With `zeroed` it counts as written.
    Allocation* allocate(int device, uint64_t size, Allocation::Kind kind, bool zeroed = false);
    // The same for a pool, from what it holds first.
    Allocation* allocate_pooled(int device, uint64_t size);
    // Memory of the host that kernels may use, at its own address.
    Allocation* add_host(void* memory, uint64_t size, Allocation::Kind kind, int device);

    // Frees what begins at the address. False: nothing does, or another kind. Waits until no kernel runs.
    bool release(uint64_t address, Allocation::Kind kind, int device = -1);
    // Memory that stays somebody's, while it is to be used or not; when it comes back, nothing is written in it.
    void set_there(uint64_t address, bool is_there);
    // Of the allocation at the address, only so many bytes were asked for.
    void set_asked(uint64_t address, uint64_t bytes);
    // Everything of a device, as when its context is reset.
    void release_all(int device);

    // The allocation that holds the address, live or freed, or nullptr.
    Allocation* find(uint64_t address) const {
        const uint64_t offset = address - base_;
        if (offset < size_) return granules_[offset / kGranule].load(std::memory_order_acquire);
        return find_host(address);
    }
    bool is_device_address(uint64_t address) const { return address - base_ < size_; }
    // What is near an address that no allocation holds.
    std::string describe_near(uint64_t address) const;

    uint64_t used(int device) const { return used_[device].load(std::memory_order_relaxed); }
    // What the device's pool has been given back and holds: nobody else gets it.
    uint64_t held(int device) const { return held_[device].load(std::memory_order_relaxed); }
    // At most so much, from now on.
    void trim_held(int device, uint64_t most);

    // Whether kernels and copies of a device may touch an allocation: its own, memory of the host, and what was opened
    // to it.
    bool can_reach(const Allocation& allocation, int from) const {
        return allocation.device == from || allocation.kind == Allocation::Kind::Pinned ||
               allocation.kind == Allocation::Kind::Registered ||
               open_[allocation.is_pooled][allocation.device][from].load(std::memory_order_relaxed);
    }
    // Opens the memory of a device, its pool's or all other, to another device; or closes it.
    void set_open(bool of_pool, int device, int to, bool is_open) { open_[of_pool][device][to] = is_open; }
    size_t count(Allocation::Kind kind) const;
    uint64_t total() const { return total_; }
    void set_total(uint64_t bytes) { total_ = bytes; }

    // Held shared while a kernel or a copy runs, alone while memory is given back.
    std::shared_mutex running;

    // Numbers launches for the shadow; clears it when the numbers are used up. Takes `running` alone for that.
    uint32_t next_launch();
    // How often they were used up: a launch of an earlier time needs another number.
    uint32_t numbering() const { return numbering_.load(std::memory_order_relaxed); }
    void set_race_checks(bool on) { race_checks_ = on; }
    bool race_checks() const { return race_checks_; }

    static constexpr int kDevices = 2;

private:
    static constexpr uint64_t kGranule = 16384;
    static constexpr size_t kRemembered = 65536;  // freed allocations

    AddressSpace();
    Allocation* find_host(uint64_t address) const;
    Allocation* allocate_locked(int device, uint64_t size, Allocation::Kind kind, bool zeroed);
    bool reserve(uint64_t size);
    uint64_t place(uint64_t size);
    void set_granules(const Allocation& allocation, Allocation* value);
    void free_storage(Allocation& allocation);
    void retire(std::unique_ptr<Allocation> allocation);

    uint64_t base_ = 0, size_ = 0, next_ = 0;
    uint64_t total_ = uint64_t(8) << 30;  // of a device
    std::atomic<Allocation*>* granules_ = nullptr;
    mutable std::mutex mutex_;
    std::map<uint64_t, std::unique_ptr<Allocation>> live_;
    std::map<uint64_t, Allocation*> host_;
    mutable std::shared_mutex host_mutex_;
    std::deque<std::unique_ptr<Allocation>> retired_;
    std::atomic<uint64_t> used_[kDevices] = {}, held_[kDevices] = {};
    std::atomic<bool> open_[2][kDevices][kDevices] = {};  // plain memory, pools': of a device, to a device
    uint32_t launch_ = 0;
    std::atomic<uint32_t> numbering_{0};
    std::atomic<bool> race_checks_{true};
};

// Copies between the host and allocations; the whole range must lie in one allocation.
void mark_written(Allocation& allocation, uint64_t address, uint64_t size);

}  // namespace weft::emulator
