#pragma once
// The memory of the emulated devices.
//
// Device addresses are a reserved range without access, so that the host faults on any access. The contents of
// allocations are stored elsewhere. Each allocation begins at its own granule and is followed by a gap of at least its
// size, so that an access beyond an allocation hits no other. Addresses are not reused until the range is used up, so
// uses of freed memory are detected.
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

#include "memory/fault.h"
#include "memory/shadow.h"

namespace weft::emulator {

struct Allocation {
    enum class Kind : uint8_t { Device, Variable, Constant, Pinned, Registered, Heap };
    Kind kind = Kind::Device;
    int device = 0;
    uint64_t address = 0, size = 0;
    uint64_t padding = 0;               // bytes at its end beyond the requested size: for accesses of whole words only
    std::byte* data = nullptr;          // nullptr after it is freed
    uint8_t* written = nullptr;         // for each byte, whether it was ever written; nullptr: all were
    ShadowWord* words = nullptr;        // for each four bytes; nullptr: no race detection
    std::atomic<bool> complete{false};  // all bytes were written
    std::atomic<bool> freed{false};
    bool is_pooled = false;  // from a pool
    std::string name;        // of a variable
    int shared = -1;         // the file that other processes map, too

    uint64_t end() const { return address + size; }
    // The limit of an access of so many bytes.
    uint64_t size_for(uint32_t bytes) const { return bytes < 4 ? size - padding : size; }
    // "an allocation of 4096 bytes at 0x…"
    std::string describe() const;
};

class AddressSpace {
public:
    static AddressSpace& instance();

    // Memory of a device; nullptr if the device or the host has not enough. With `zeroed` it counts as written.
    Allocation* allocate(int device, uint64_t size, Allocation::Kind kind, bool zeroed = false);
    // Memory of a pool, which uses the bytes that it holds first.
    Allocation* allocate_pooled(int device, uint64_t size);
    // Memory of the host that kernels may access, at its own address.
    Allocation* add_host(void* memory, uint64_t size, Allocation::Kind kind, int device);

    // Brings what an allocation holds into a file that other processes can map: its descriptor. -1: that failed.
    int share(uint64_t address);
    // An allocation over such a file, whose descriptor it takes. nullptr: that failed.
    Allocation* add_shared(int device, uint64_t size, int file);
    // Frees the allocation that begins at the address; false if there is none of this kind. Waits until no kernel runs.
    bool release(uint64_t address, Allocation::Kind kind, int device = -1);
    // Makes memory with a persistent owner accessible or not. When it becomes accessible, all bytes are unwritten.
    void set_there(uint64_t address, bool is_there);
    // Notes that only so many bytes were requested of the allocation at the address.
    void set_asked(uint64_t address, uint64_t bytes);
    // Frees all memory of a device, as when its context is reset.
    void release_all(int device);

    // The allocation, live or freed, that contains the address, or nullptr.
    Allocation* find(uint64_t address) const {
        const uint64_t offset = address - base_;
        if (offset < size_) return granules_[offset / kGranule].load(std::memory_order_acquire);
        return find_host(address);
    }
    bool is_device_address(uint64_t address) const { return address - base_ < size_; }
    // Describes allocations near an address that no allocation contains.
    std::string describe_near(uint64_t address) const;

    uint64_t used(int device) const { return used_[device].load(std::memory_order_relaxed); }
    // Freed bytes that the device's pool holds and no other allocation can use.
    uint64_t held(int device) const { return held_[device].load(std::memory_order_relaxed); }
    // Limits the bytes that the pool holds at present.
    void trim_held(int device, uint64_t most);

    // Whether kernels and copies of a device may access an allocation: its own, memory of the host, and memory opened
    // to it.
    bool can_reach(const Allocation& allocation, int from) const {
        return allocation.device == from || allocation.kind == Allocation::Kind::Pinned ||
               allocation.kind == Allocation::Kind::Registered ||
               open_[allocation.is_pooled][allocation.device][from].load(std::memory_order_relaxed);
    }
    // Opens the memory of a device, that of its pool or all other, to another device; or closes it.
    void set_open(bool of_pool, int device, int to, bool is_open) { open_[of_pool][device][to] = is_open; }
    size_t count(Allocation::Kind kind) const;
    uint64_t total() const { return total_; }
    void set_total(uint64_t bytes) { total_ = bytes; }

    // Held shared while a kernel or a copy runs, exclusively while memory is freed.
    std::shared_mutex running;

    // Numbers launches for the shadow memory; clears it when the numbers are used up, with `running` held exclusively.
    uint32_t next_launch();
    // How often they were used up: an older launch needs a new number.
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
    uint64_t total_ = uint64_t(8) << 30;  // per device
    std::atomic<Allocation*>* granules_ = nullptr;
    mutable std::mutex mutex_;
    std::map<uint64_t, std::unique_ptr<Allocation>> live_;
    std::map<uint64_t, Allocation*> host_;
    mutable std::shared_mutex host_mutex_;
    std::deque<std::unique_ptr<Allocation>> retired_;
    std::atomic<uint64_t> used_[kDevices] = {}, held_[kDevices] = {};
    std::atomic<bool> open_[2][kDevices][kDevices] = {};  // [pools' memory][of a device][to a device]
    uint32_t launch_ = 0;
    std::atomic<uint32_t> numbering_{0};
    std::atomic<bool> race_checks_{true};
};

// Copies between the host and allocations; the whole range must be in one allocation.
void mark_written(Allocation& allocation, uint64_t address, uint64_t size);

}  // namespace weft::emulator
